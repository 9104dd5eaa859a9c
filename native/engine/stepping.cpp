#include "engine/stepping.hpp"

namespace hocket {

namespace {

constexpr int ahead = 4;  // how many simulators ahead memory is fetched

}  // namespace

void Stepping::prepare() {
    Room next;
    rooms_.clear();
    for (std::size_t number = 0; number < state_.children.size(); ++number) {
        const Child& child = state_.children[number];
        const bool plain = child.outputs > 0 && !child.unchecked && child.rings.empty() && !child.curved();
        if (plain) state_.slots[number].quick = child.simulator->step_output();
        rooms_.push_back(next);
        if (child.curved()) next.inputs += child.coefficients();
        if (child.sloped) next.slopes += child.outputs;
    }
    inputs_.resize(next.inputs);
    slopes_.resize(next.slopes);
}

bool Stepping::step_read(int begin, int end, std::int64_t ticks, bool prefetches) {
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

inline Span Stepping::span(const Slot& slot, std::int64_t ticks) const {
    if (slot.tick == state_.step.tick && ticks == state_.step.ticks) [[likely]]
        return state_.step;
    return state_.timed ? Span::of(state_.clock, slot.tick, ticks) : Span{slot.tick, ticks, 0.0, 0.0};
}

bool Stepping::step(Slot& slot, std::int64_t ticks) {
    const Span now = span(slot, ticks);
    slot.tick = now.tick + ticks;
    return slot.simulator->step(now, state_.memory.u.data() + slot.u) || state_.fail(slot);
}

bool Stepping::read(Slot& slot) {
    const int number = state_.index(slot);
    const Child& child = state_.children[number];
    if (child.outputs == 0) return true;
    const double* polynomials = state_.inputs_now(number, inputs_.data() + rooms_[number].inputs);
    if (!slot.simulator->output(slot.tick, polynomials, state_.memory.y.data() + slot.y))
        return state_.fail(slot);
    return finish_read(slot, child, polynomials);
}

bool Stepping::step_read_slowly(Slot& slot, std::int64_t ticks) {
    if (!slot.quick) return step(slot, ticks) && read(slot);
    const Span other = span(slot, ticks);
    slot.tick += ticks;
    ExchangeMemory& memory = state_.memory;
    return slot.quick(*slot.simulator, other, memory.u.data() + slot.u, memory.y.data() + slot.y) ||
           state_.fail(slot);
}

inline bool Stepping::finish_read(Slot& slot, const Child& child, const double* polynomials) {
    ExchangeMemory& memory = state_.memory;
    if (child.unchecked) {
        const double* values = memory.y.data() + slot.y;
        double sum = 0.0;
        for (int k = 0; k < child.outputs; ++k) sum += values[k] - values[k];
        if (sum != 0.0) [[unlikely]]
            return state_.fail(slot);
    }
    if (child.rings.empty()) return true;
    double* slopes = nullptr;
    if (child.sloped) {
        slopes = slopes_.data() + rooms_[state_.index(slot)].slopes;
        if (!slot.simulator->slope(slot.tick, polynomials, slopes)) return state_.fail(slot);
    }
    const std::int64_t at = slot.simulator->shown_at(slot.tick);
    for (int signal : child.rings)
        memory.ring(signal).push(at, memory.y[signal], slopes ? slopes[signal - slot.y] : 0.0);
    return true;
}

}  // namespace hocket
