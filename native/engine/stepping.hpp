// Children stepped and read: what the hot loop is made of, therefore all in the header.
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
    // To be called before outputs are read one by one.
    void prepare_single_ports() { kept_.resize(state_.memory.y.size()); }

    bool step(Slot& slot, std::int64_t ticks) {
        const Span now = span(slot, ticks);
        slot.tick = now.tick + ticks;
        return slot.simulator->step(now, state_.memory.u.data() + slot.u) || state_.fail(slot);
    }
    bool read(Slot& slot) {
        const int number = state_.index(slot);
        const Child& child = state_.children[number];
        const double* polynomials = state_.inputs_now(number, inputs_.data() + child.input_room);
        if (!child.events.empty()) [[unlikely]]
            return read_but_events(slot, number, polynomials);
        if (!slot.simulator->output(slot.tick, polynomials, state_.memory.y.data() + slot.y))
            return state_.fail(slot);
        return finish_read(slot, child, polynomials);
    }
    // Outputs at an instant; those that are events and not here stay as they were.
    bool read_at_instant(Slot& slot, const std::vector<std::uint8_t>& event, const std::uint8_t* here);
    const double* inputs_now(int number) {
        return state_.inputs_now(number, inputs_.data() + state_.children[number].input_room);
    }
    // Evaluates all outputs, and stores some.
    bool read(Slot& slot, const std::vector<int>& ports);
    bool step_read(Slot& slot, std::int64_t ticks) { return step_read(state_, slot, ticks); }
    // Neighbours, in runs of one kind where there are any; otherwise nothing.
    std::vector<Run> find_runs(int begin, int end) const;
    bool step_read(const std::vector<Run>& runs, std::int64_t ticks) {
        for (const Run& run : runs)
            if (!(run.step && ticks == state_.step.ticks
                      ? step_run(run, ticks)
                      : step_read(run.begin, run.end, ticks, state_.hot[run.begin] != nullptr))) [[unlikely]]
                return false;
        return true;
    }
    // Neighbours; `prefetches`: what they touch is fetched ahead of time.
    bool step_read(int begin, int end, std::int64_t ticks, bool prefetches) {
        LevelState& state = state_;
        Slot *slot = state.slots.data() + begin, *last = state.slots.data() + end;
        if (prefetches)
            for (const void** hot = state.hot.data() + begin + ahead; last - slot > ahead; ++slot, ++hot) {
                __builtin_prefetch(*hot);
                if (!step_read(state, *slot, ticks)) [[unlikely]]
                    return false;
            }
        for (; slot < last; ++slot)
            if (!step_read(state, *slot, ticks)) [[unlikely]]
                return false;
        return true;
    }

  private:
    static constexpr int ahead = 4;  // how many simulators ahead memory is fetched

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
    bool step_run(const Run& run, std::int64_t ticks) {
        LevelState& state = state_;
        Slot *slot = state.slots.data() + run.begin, *last = state.slots.data() + run.end;
        while (true) {
            const auto [at, good] =
                run.step(slot, last, state.step, state.memory.u.data(), state.memory.y.data());
            if (!good) [[unlikely]]
                return state.fail(*at);
            if (at == last) [[likely]]
                return true;
            if (!step_read_slowly(*at, ticks))
                return false;  // it stands elsewhere, or is different this time
            slot = at + 1;
        }
    }
    bool read_but_events(Slot& slot, int number, const double* polynomials);

    Span span(const Slot& slot, std::int64_t ticks) const {
        if (slot.tick == state_.step.tick && ticks == state_.step.ticks) [[likely]]
            return state_.step;
        return state_.timed ? Span::of(state_.clock, slot.tick, ticks) : Span{slot.tick, ticks, 0.0, 0.0};
    }
    // NaN and infinity are not: a number minus itself is zero.
    [[gnu::always_inline]] static bool are_finite(const double* values, int count) {
        double sum = 0.0;
        for (int k = 0; k < count; ++k) sum += values[k] - values[k];
        return sum == 0.0;
    }
    [[gnu::always_inline]] bool finish_read(Slot& slot, const Child& child, const double* polynomials) {
        ExchangeMemory& memory = state_.memory;
        if (child.unchecked && !are_finite(memory.y.data() + slot.y, child.outputs)) [[unlikely]]
            return state_.fail(slot);
        if (child.rings.empty()) return true;
        double* slopes = nullptr;
        if (child.sloped) {
            slopes = slopes_.data() + child.slope_room;
            if (!slot.simulator->slope(slot.tick, polynomials, slopes)) return state_.fail(slot);
        }
        const std::int64_t at = slot.simulator->shown_at(slot.tick);
        for (int signal : child.rings)
            memory.ring(signal).push(at, memory.y[signal], slopes ? slopes[signal - slot.y] : 0.0);
        return true;
    }

    LevelState& state_;
    // per child, as several may be read at once: polynomials seen from another time; slopes of outputs
    std::vector<double> inputs_, slopes_;
    std::vector<double> kept_;  // per output: what stays, while some are read
};

}  // namespace hocket
