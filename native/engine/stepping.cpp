#include "engine/stepping.hpp"

#include <algorithm>

namespace hocket {

void Stepping::prepare() {
    int inputs = 0, slopes = 0;
    for (std::size_t number = 0; number < state_.children.size(); ++number) {
        Child& child = state_.children[number];
        const bool plain = child.outputs > 0 && !child.unchecked && child.rings.empty() &&
                           !child.is_curved() && child.events.empty();
        if (plain) state_.slots[number].quick = child.simulator->step_output();
        child.input_room = inputs;
        child.slope_room = slopes;
        if (child.is_curved()) inputs += child.coefficients();
        if (child.sloped) slopes += child.outputs;
    }
    inputs_.resize(inputs);
    slopes_.resize(slopes);
}

std::vector<Run> Stepping::find_runs(int begin, int end) const {
    constexpr int several = 2;
    const auto kind = [this](int number) {
        const Slot& slot = state_.slots[number];
        return slot.quick ? slot.simulator->step_run() : nullptr;
    };
    std::vector<Run> runs;
    bool found = false;
    for (int number = begin; number < end;) {
        const Simulator::StepRun step = kind(number);
        int next = number + 1;
        while (next < end && kind(next) == step) ++next;
        const bool together = step && next - number >= several;
        if (!runs.empty() && !together && !runs.back().step)
            runs.back().end = next;
        else
            runs.push_back({number, next, together ? step : nullptr});
        found = found || together;
        number = next;
    }
    if (!found) runs.clear();
    return runs;
}

bool Stepping::read_but_events(Slot& slot, int number, const double* polynomials) {
    Child& child = state_.children[number];
    std::vector<double>& y = state_.memory.y;
    for (std::size_t k = 0; k < child.events.size(); ++k) child.last_events[k] = y[child.events[k]];
    if (!slot.simulator->output(slot.tick, polynomials, y.data() + slot.y)) return state_.fail(slot);
    for (std::size_t k = 0; k < child.events.size(); ++k) y[child.events[k]] = child.last_events[k];
    return finish_read(slot, child, polynomials);
}

bool Stepping::read_at_instant(Slot& slot, const std::vector<std::uint8_t>& event, const std::uint8_t* here) {
    const int number = state_.index(slot);
    Child& child = state_.children[number];
    ExchangeMemory& memory = state_.memory;
    for (std::size_t k = 0; k < child.events.size(); ++k) child.last_events[k] = memory.y[child.events[k]];
    const double* polynomials = inputs_now(number);
    if (!slot.simulator->newest(slot.tick, polynomials, memory.y.data() + slot.y)) return state_.fail(slot);
    for (std::size_t k = 0; k < child.events.size(); ++k)
        if (!here[child.events[k] - slot.y]) memory.y[child.events[k]] = child.last_events[k];
    if (child.unchecked && !are_finite(memory.y.data() + slot.y, child.outputs)) return state_.fail(slot);
    double* slopes = nullptr;
    if (child.sloped) {
        slopes = slopes_.data() + child.slope_room;
        if (!slot.simulator->slope(slot.tick, polynomials, slopes)) return state_.fail(slot);
    }
    for (int signal : child.rings) {
        const int port = signal - slot.y;
        if (!event[port] || here[port])
            memory.ring(signal).push(slot.tick, memory.y[signal], slopes ? slopes[port] : 0.0);
    }
    return true;
}

bool Stepping::read(Slot& slot, const std::vector<int>& ports) {
    const int number = state_.index(slot);
    const Child& child = state_.children[number];
    ExchangeMemory& memory = state_.memory;
    double *y = memory.y.data() + slot.y, *kept = kept_.data() + slot.y;
    std::copy(y, y + child.outputs, kept);
    const double* polynomials = state_.inputs_now(number, inputs_.data() + child.input_room);
    if (!slot.simulator->output(slot.tick, polynomials, y)) return state_.fail(slot);
    if (child.unchecked && !are_finite(y, child.outputs)) return state_.fail(slot);
    for (int port : ports) kept[port] = y[port];
    std::copy(kept, kept + child.outputs, y);
    double* slopes = nullptr;
    if (child.sloped) {
        slopes = slopes_.data() + child.slope_room;
        if (!slot.simulator->slope(slot.tick, polynomials, slopes)) return state_.fail(slot);
    }
    const std::int64_t at = slot.simulator->shown_at(slot.tick);
    for (int port : ports)
        if (const int ring = memory.ring_of[slot.y + port]; ring >= 0)
            memory.rings[ring].push(at, y[port], slopes ? slopes[port] : 0.0);
    return true;
}

bool Stepping::step_read_slowly(Slot& slot, std::int64_t ticks) {
    if (!slot.quick) {
        // what shows nothing is read only where the plan says so: a level that evaluates what is inside
        const bool shows = state_.children[state_.index(slot)].outputs > 0;
        return step(slot, ticks) && (!shows || read(slot));
    }
    const Span other = span(slot, ticks);
    slot.tick += ticks;
    ExchangeMemory& memory = state_.memory;
    return slot.quick(*slot.simulator, other, memory.u.data() + slot.u, memory.y.data() + slot.y) ||
           state_.fail(slot);
}

}  // namespace hocket
