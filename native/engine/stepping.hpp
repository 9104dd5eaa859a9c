// Children stepped and read: what the hot loop is made of.
// In:  a child by its slot, ticks
// Out: the child moved on; its outputs, and samples of them, in the exchange memory
#pragma once

#include <cstdint>
#include <vector>

#include "engine/level_state.hpp"

namespace hocket {

class Stepping {
  public:
    explicit Stepping(LevelState& state) : state_(state) {}

    // To be called when all children and rings are there.
    void prepare();

    bool step(Slot& slot, std::int64_t ticks);
    bool read(Slot& slot);
    bool step_read(Slot& slot, std::int64_t ticks) { return step_read(state_, slot, ticks); }
    // Neighbours; `prefetches`: what they touch is fetched ahead of time.
    bool step_read(int begin, int end, std::int64_t ticks, bool prefetches);

  private:
    [[gnu::always_inline]] bool step_read(LevelState& state, Slot& slot, std::int64_t ticks) {
        if (slot.quick && slot.tick == state.step.tick && ticks == state.step.ticks) [[likely]] {
            slot.tick += ticks;
            ExchangeMemory& memory = state.memory;
            if (slot.quick(*slot.simulator, state.step, memory.u.data() + slot.u, memory.y.data() + slot.y))
                [[likely]]
                return true;
            return state.fail(slot);
        }
        return step_read_slowly(slot, ticks);
    }
    bool step_read_slowly(Slot& slot, std::int64_t ticks);
    Span span(const Slot& slot, std::int64_t ticks) const;
    bool finish_read(Slot& slot, const Child& child, const double* polynomials);

    struct Room {
        int inputs = 0, slopes = 0;  // where that of a child begins
    };
    LevelState& state_;
    std::vector<Room> rooms_;              // per child: several may be read at once
    std::vector<double> inputs_, slopes_;  // polynomials seen from another time; slopes of outputs
};

}  // namespace hocket
