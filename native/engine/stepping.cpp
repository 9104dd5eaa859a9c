#include "engine/stepping.hpp"

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

bool Stepping::step_read_slowly(Slot& slot, std::int64_t ticks) {
    if (!slot.quick) return step(slot, ticks) && read(slot);
    const Span other = span(slot, ticks);
    slot.tick += ticks;
    ExchangeMemory& memory = state_.memory;
    return slot.quick(*slot.simulator, other, memory.u.data() + slot.u, memory.y.data() + slot.y) ||
           state_.fail(slot);
}

}  // namespace hocket
