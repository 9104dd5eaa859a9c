#include "engine/stepping.hpp"

#include <algorithm>

namespace hocket {

void Stepping::prepare() {
    int inputs = 0, slopes = 0;
    for (std::size_t number = 0; number < state_.children.size(); ++number) {
        Child& child = state_.children[number];
        const bool plain = child.outputs > 0 && !child.unchecked && child.rings.empty() && !child.is_curved();
        if (plain) state_.slots[number].quick = child.simulator->step_output();
        child.input_room = inputs;
        child.slope_room = slopes;
        if (child.is_curved()) inputs += child.coefficients();
        if (child.sloped) slopes += child.outputs;
    }
    inputs_.resize(inputs);
    slopes_.resize(slopes);
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
    if (!slot.quick) return step(slot, ticks) && read(slot);
    const Span other = span(slot, ticks);
    slot.tick += ticks;
    ExchangeMemory& memory = state_.memory;
    return slot.quick(*slot.simulator, other, memory.u.data() + slot.u, memory.y.data() + slot.y) ||
           state_.fail(slot);
}

}  // namespace hocket
