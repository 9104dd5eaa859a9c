// Going back within a step, and steps made again until they agree: the twin of rewinding.py and iterating.py.
// In:  children that were saved, a body that begins by restoring them
// Out: samples that agree with themselves, or a failure with the residuals on the way
#include <algorithm>
#include <functional>

#include "engine/level.hpp"
#include "engine/residual.hpp"

namespace hocket {

namespace {

constexpr double grown = 1e12;

Values minus(const Values& one, const Values& other) {
    Values result(one.size());
    for (std::size_t i = 0; i < one.size(); ++i) result[i] = one[i] - other[i];
    return result;
}

}  // namespace

bool Level::save(const Operation& operation) {
    if (kept_.empty()) kept_.resize(children.size());
    for (int number : operation.children) {
        Slot& slot = slots_[number];
        const Child& child = children[number];
        Kept& kept = kept_[number];
        if (!slot.simulator->keep(kept.state)) return failed(slot, Call::save);
        kept.tick = slot.tick;
        kept.shown = slot.simulator->shown_at(slot.tick);
        kept.y.assign(y.begin() + slot.y, y.begin() + slot.y + child.outputs);
        kept.rings.resize(child.rings.size());
        for (std::size_t k = 0; k < child.rings.size(); ++k) kept.rings[k] = rings[ring_of[child.rings[k]]];
        kept.fits.clear();
        for (int fit : child.fits) kept.fits.push_back({fits[fit].seen, fits[fit].before, fits[fit].after});
        for (int account : child.accounts) saved_y_[account] = y[accounts.signal[account]];
    }
    copy_accounts(operation, accounts, saved_accounts_);
    return true;
}

// In a Repeat what is newer than the place gone back to stays behind the old samples: the next sweep begins
// with it.
bool Level::restore(const Operation& operation) {
    for (int number : operation.children) {
        Slot& slot = slots_[number];
        const Child& child = children[number];
        Kept& kept = kept_[number];
        const bool newer = slot.simulator->shown_at(slot.tick) > kept.shown;
        if (!slot.simulator->go_back(kept.state)) return failed(slot, Call::restore);
        slot.tick = kept.tick;
        for (std::size_t k = 0; k < child.rings.size(); ++k) {
            Ring& ring = rings[ring_of[child.rings[k]]];
            const std::int64_t tick = ring.ticks[ring.newest];
            const double value = ring.values[ring.newest], slope = ring.slopes[ring.newest];
            ring = kept.rings[k];
            if (repeating_ > 0 && tick > ring.ticks[ring.newest]) ring.push(tick, value, slope);
        }
        if (!newer || repeating_ == 0) std::copy(kept.y.begin(), kept.y.end(), y.begin() + slot.y);
        for (std::size_t k = 0; k < child.fits.size(); ++k) {
            Fit& fit = fits[child.fits[k]];
            fit.seen = kept.fits[k].seen;
            fit.before = kept.fits[k].before;
            fit.after = kept.fits[k].after;
        }
    }
    copy_accounts(operation, saved_accounts_, accounts);
    return true;
}

bool Level::repeat(Operation& operation) {
    ++repeating_;
    const bool good = repeated(operation);
    --repeating_;
    return good;
}

bool Level::repeated(Operation& operation) {
    auto& body = operation.bodies[0];
    const std::size_t size = operation.signals.size() + operation.slopes.size();
    if (!run(body)) return false;
    if (size == 0) {
        sweeps.add(1);
        return true;
    }
    Accelerator& accelerator = *operation.accelerator;
    std::int64_t count = 1;
    Values given(size), found(size), first;
    const Sweep sweep = [&](const Values& numbers, Values& to) {
        ++count;
        to.resize(size);
        if (post && accelerator.leads() && count > 2) post->renew(operation.signals);
        put(operation, numbers.data());
        if (!run(body)) return false;
        newest(operation, to.data());
        return true;
    };
    newest(operation, given.data());
    accelerator.begin();
    residuals.clear();
    for (int turn = 1; turn < operation.n; ++turn) {
        if (!sweep(given, found)) return false;
        if (operation.until >= 0.0) {
            const Values change = minus(found, given);
            const int n = static_cast<int>(size);
            if (first.empty()) first = found;
            if (relative(change.data(), found.data(), n) <= operation.until) {
                sweeps.add(count);
                return true;
            }
            residuals.push_back(relative(change.data(), first.data(),
                                         n));  // beside values that grow too, growth would not show
            if (!(residuals.back() <= grown * std::max(1.0, residuals.front()))) break;
        }
        if (turn + 1 < operation.n && !accelerator.next(given, found, sweep))
            return accelerator.stuck ? no_agreement(operation) : false;
    }
    if (operation.until >= 0.0) return no_agreement(operation);
    sweeps.add(count);
    return true;
}

// The twin of nexting.py: who is furthest behind goes next, the first of equals.
bool Level::take_turns(Operation& operation) {
    const auto step_of = [](std::vector<Operation>& body) -> Operation& {
        return *std::find_if(body.begin(), body.end(), [](const Operation& each) {
            return each.kind == Operation::Kind::step || each.kind == Operation::Kind::step_read;
        });
    };
    const auto later = std::greater<std::pair<std::int64_t, int>>{};
    behind_.clear();
    for (std::size_t number = 0; number < operation.bodies.size(); ++number) {
        const std::int64_t tick = slots_[step_of(operation.bodies[number]).children[0]].tick;
        if (tick < reached_) behind_.emplace_back(tick, static_cast<int>(number));
    }
    std::make_heap(behind_.begin(), behind_.end(), later);
    while (!behind_.empty()) {
        std::pop_heap(behind_.begin(), behind_.end(), later);
        const auto [tick, number] = behind_.back();
        auto& body = operation.bodies[number];
        if (!run(body)) return false;
        behind_.pop_back();
        if (const std::int64_t next = tick + step_of(body).ticks; next < reached_) {
            behind_.emplace_back(next, number);
            std::push_heap(behind_.begin(), behind_.end(), later);
        }
    }
    return true;
}

bool Level::no_agreement(const Operation& operation) {
    std::lock_guard lock(failing_);
    if (first_failure.kind == Failure::Kind::none)
        first_failure = {.kind = Failure::Kind::no_agreement,
                         .level = this,
                         .child = 0,
                         .port = operation.number,
                         .tick = now};
    return false;
}

// the level as a simulator among others

bool Level::keep(Snapshot& to) {
    to.begin();
    to.inner.resize(children.size() + accelerators_.size());
    for (std::size_t number = 0; number < children.size(); ++number)
        if (!slots_[number].simulator->keep(to.inner[number])) return failed(slots_[number], Call::save);
    to.keep(u);
    to.keep(y);
    to.keep(used);
    to.keep(offered);
    to.keep(used_base);
    to.keep(offered_base);
    to.keep(now);
    for (std::size_t number = 0; number < children.size(); ++number) {
        to.keep(slots_[number].tick);
        to.keep(children[number].base);
    }
    for (const Ring& ring : rings) {
        to.keep(static_cast<std::int64_t>(ring.count));
        to.keep(static_cast<std::int64_t>(ring.newest));
        to.keep(ring.ticks);
        to.keep(ring.values);
        to.keep(ring.slopes);
    }
    for (const Fit& fit : fits) {
        to.keep(fit.seen);
        to.keep(fit.before);
        to.keep(fit.after);
    }
    for (const std::vector<double>* numbers : accounts.numbers()) to.keep(*numbers);
    to.keep(accounts.since);
    for (std::size_t k = 0; k < accelerators_.size(); ++k)
        accelerators_[k]->keep(to.inner[children.size() + k]);
    if (pace_) {
        to.keep(pace_->wanted);
        to.keep(pace_->before);
        to.keep(pace_->earlier);
    }
    if (rows_) rows_->keep(to);
    return true;
}

bool Level::go_back(Snapshot& from) {
    from.rewind();
    for (std::size_t number = 0; number < children.size(); ++number)
        if (!slots_[number].simulator->go_back(from.inner[number]))
            return failed(slots_[number], Call::restore);
    from.take(u);
    from.take(y);
    from.take(used);
    from.take(offered);
    from.take(used_base);
    from.take(offered_base);
    from.take(now);
    for (std::size_t number = 0; number < children.size(); ++number) {
        from.take(slots_[number].tick);
        from.take(children[number].base);
    }
    for (Ring& ring : rings) {
        ring.count = static_cast<int>(from.taken());
        ring.newest = static_cast<int>(from.taken());
        from.take(ring.ticks);
        from.take(ring.values);
        from.take(ring.slopes);
    }
    for (Fit& fit : fits) {
        from.take(fit.seen);
        from.take(fit.before);
        from.take(fit.after);
    }
    for (std::vector<double>* numbers : accounts.numbers()) from.take(*numbers);
    from.take(accounts.since);
    for (std::size_t k = 0; k < accelerators_.size(); ++k)
        accelerators_[k]->go_back(from.inner[children.size() + k]);
    if (pace_) {
        from.take(pace_->wanted);
        from.take(pace_->before);
        from.take(pace_->earlier);
    }
    if (rows_) rows_->go_back(from);
    return true;
}

}  // namespace hocket
