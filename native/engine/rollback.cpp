#include "engine/rollback.hpp"

#include <algorithm>

namespace hocket {

bool Rollback::save(const std::vector<int>& children) {
    if (saved_.empty()) saved_.resize(state_.children.size());
    const ExchangeMemory& memory = state_.memory;
    for (int number : children) {
        const Slot& slot = state_.slots[number];
        const Child& child = state_.children[number];
        Saved& saved = saved_[number];
        if (!slot.simulator->save(saved.simulator)) return state_.fail(slot, Call::save);
        saved.tick = slot.tick;
        saved.step = state_.steps;
        saved.shown = slot.simulator->shown_at(slot.tick);
        saved.y.assign(memory.y.begin() + slot.y, memory.y.begin() + slot.y + child.outputs);
        saved.rings.resize(child.rings.size());
        for (std::size_t k = 0; k < child.rings.size(); ++k) saved.rings[k] = memory.ring(child.rings[k]);
        saved.filters.clear();
        for (int fit : child.fits) saved.filters.push_back(fitting_.filter(fit));
    }
    ledger_.save(children);
    return true;
}

bool Rollback::restore(const std::vector<int>& children) {
    ExchangeMemory& memory = state_.memory;
    for (int number : children) {
        Slot& slot = state_.slots[number];
        const Child& child = state_.children[number];
        Saved& saved = saved_[number];
        const bool newer = slot.simulator->shown_at(slot.tick) > saved.shown;
        if (!slot.simulator->restore(saved.simulator)) return state_.fail(slot, Call::restore);
        slot.tick = saved.tick;
        ++state_.children[number].restored;
        if (!newer || state_.iterating == 0)
            std::copy(saved.y.begin(), saved.y.end(), memory.y.begin() + slot.y);
        for (std::size_t k = 0; k < child.rings.size(); ++k) {
            Ring& ring = memory.ring(child.rings[k]);
            const std::int64_t tick = ring.ticks[ring.newest];
            const double value = ring.values[ring.newest], slope = ring.slopes[ring.newest];
            ring = saved.rings[k];
            if (state_.iterating > 0 && tick > ring.ticks[ring.newest]) ring.push(tick, value, slope);
            memory.y[child.rings[k]] = ring.values[ring.newest];  // outputs need not be of one age
        }
        for (std::size_t k = 0; k < child.fits.size(); ++k) fitting_.filter(child.fits[k]) = saved.filters[k];
    }
    ledger_.restore(children);
    return true;
}

}  // namespace hocket
