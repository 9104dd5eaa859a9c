#include "engine/sampled.hpp"

#include <algorithm>
#include <cmath>

#include "engine/level_state.hpp"

namespace hocket {

Sampled::Sampled(std::unique_ptr<Simulator> inner, const Setup& setup)
    : next_(setup.length),
      inputs_(setup.inputs),
      outputs_(static_cast<int>(setup.given.size())),
      follows_(setup.follows),
      around_(setup.around),
      checked_(inner->checks_itself()),
      step_inner_(inner->step_output()),
      inner_(std::move(inner)),
      length_(setup.length),
      number_(setup.number),
      taken_count_(static_cast<int>(setup.taken.size())),
      values_count_(static_cast<int>(setup.values.size())),
      taken_(setup.taken),
      given_(setup.given) {
    std::copy(setup.offered.begin(), setup.offered.end(), offered_.begin());
    std::copy(setup.used.begin(), setup.used.end(), used_.begin());
    std::copy(setup.values.begin(), setup.values.end(), values_.begin());
    const auto in_place = [](const std::vector<Handed>& all) {
        int place = 0;
        return std::all_of(all.begin(), all.end(), [&](const Handed& each) {
            return each.source == place++ && each.gain == 1.0 && each.offset == 0.0;
        });
    };
    plain_ = in_place(taken_) && in_place(given_);
    for (int k = 0; k < outputs_; ++k) shown_[k] = given_[k].of(values_.data(), 0.0);
}

inline void Sampled::feed() {
    if (plain_) return;
    for (int k = 0; k < taken_count_; ++k) used_[k] = taken_[k].of(offered_.data(), used_[k]);
}

bool Sampled::fail(std::int64_t tick) {
    failure_ = inner_->failure();
    failure_.level = number_;
    failure_.child = 0;
    if (failure_.kind != Failure::Kind::none) return false;
    failure_.kind = Failure::Kind::internal;
    failure_.tick = tick;
    const double* found = values();
    for (int port = values_count_ - 1; port >= 0; --port)
        if (!std::isfinite(found[port])) {
            failure_.kind = Failure::Kind::not_finite;
            failure_.port = port;
            failure_.value = found[port];
        }
    return false;
}

// Looks at the outputs of the simulator and shows them.
inline bool Sampled::keep_outputs(bool made, std::int64_t tick) {
    double finite = 0.0;
    if (!checked_)
        for (int k = 0; k < values_count_; ++k) finite = finite + (values()[k] - values()[k]);
    if (!made || finite != 0.0) [[unlikely]]
        return fail(tick);
    if (plain_) return true;
    for (int k = 0; k < outputs_; ++k) shown_[k] = given_[k].of(values_.data(), 0.0);
    return true;
}

inline bool Sampled::own_step() {
    feed();
    const Span span{now_, length_, 0.0, 0.0};
    const bool made = step_inner_(*inner_, span, used(), values());
    now_ = next_;
    next_ = now_ + length_;
    return keep_outputs(made, now_);
}

// The twin of Level::step and Level::step_sampled.
bool Sampled::step(const Span& span, const double* u) {
    const std::int64_t tick = span.tick, end = tick + span.ticks;
    if (around_) {
        if (tick <= now_) take(u);
        while (next_ <= end) {
            if (!own_step()) return false;
            if (tick <= now_) take(u);
        }
        return true;
    }
    const bool whole = span.ticks % length_ == 0;
    if (whole || tick == now_) take(u);
    if (!whole) return end == next_ ? own_step() : true;
    now_ = tick;
    next_ = tick + length_;
    while (now_ < end)
        if (!own_step()) return false;
    return true;
}

bool Sampled::output(std::int64_t tick, const double* u, double* y) {
    if (follows_ && tick == now_) {
        take(u);
        feed();
        if (!keep_outputs(inner_->output(tick, used(), values()), tick)) return false;
    }
    show(y);
    return true;
}

[[gnu::always_inline]] inline bool Sampled::step_show(const Span& span, const double* u, double* y) {
    const std::int64_t end = span.tick + span.ticks;
    if (span.tick > now_ && end < next_) [[likely]] {
        show(y);
        return true;
    }
    if (span.tick < now_ || end > next_) [[unlikely]]
        return Sampled::step(span, u) && Sampled::output(end, u, y);
    if (span.tick == now_) take(u);
    if (end == next_) {
        if (!own_step()) return false;
        if (around_) take(u);
        if (follows_) return Sampled::output(end, u, y);
    }
    show(y);
    return true;
}

Simulator::StepOutput Sampled::step_output() const {
    return [](Simulator& self, const Span& span, const double* u, double* y) {
        return static_cast<Sampled&>(self).step_show(span, u, y);
    };
}

// Who ends a period changes from step to step: found without a branch, which could not be foretold, and
// stepped afterwards.
Simulator::RunEnd Sampled::step_single(Slot* slot, Slot* last, const Span& span, const double* u, double* y) {
    constexpr int together = 64;
    const std::int64_t tick = span.tick, after = span.tick + span.ticks;
    while (slot != last) {
        Slot* ending[together];
        int count = 0;
        Slot* const end = last - slot > together ? slot + together : last;
        for (; slot != end; ++slot) {
            Sampled& sampled = static_cast<Sampled&>(*slot->simulator);
            if (slot->tick != tick || tick < sampled.now_ || after > sampled.next_) [[unlikely]]
                break;
            slot->tick = after;
            if (tick == sampled.now_) sampled.offered_[0] = u[slot->u];
            y[slot->y] = sampled.shown_[0];
            ending[count] = slot;
            count += after == sampled.next_;
        }
        for (int k = 0; k < count; ++k) {
            Sampled& sampled = static_cast<Sampled&>(*ending[k]->simulator);
            if (!sampled.own_step()) [[unlikely]]
                return {ending[k], false};
            if (sampled.around_) sampled.take(u + ending[k]->u);
            y[ending[k]->y] = sampled.shown_[0];
        }
        if (slot != end) return {slot, true};  // it stands elsewhere, or its period does not fit the step
    }
    return {slot, true};
}

Simulator::StepRun Sampled::step_run() const {
    if (inputs_ == 1 && outputs_ == 1 && !follows_) return step_single;
    return [](Slot* slot, Slot* last, const Span& span, const double* u, double* y) -> RunEnd {
        const std::int64_t tick = span.tick, after = span.tick + span.ticks;
        for (; slot != last && slot->tick == tick; ++slot) {
            slot->tick = after;
            if (!static_cast<Sampled&>(*slot->simulator).step_show(span, u + slot->u, y + slot->y))
                [[unlikely]]
                return {slot, false};
        }
        return {slot, true};
    };
}

bool Sampled::save(Snapshot& to) {
    to.begin();
    to.inner.resize(1);
    to.inner[0].whole = to.whole;
    to.inner[0].portable = to.portable;
    to.keep(now_);
    to.keep(next_);
    to.keep(shown_.data(), most);  // with outputs that nobody outside sees
    to.keep(offered_.data(), inputs_);
    to.keep(used_.data(), taken_count_);
    to.keep(values_.data(), values_count_);
    return inner_->save(to.inner[0]);
}

bool Sampled::restore(Snapshot& from) {
    from.rewind();
    from.take(now_);
    from.take(next_);
    from.take(shown_.data(), most);
    from.take(offered_.data(), inputs_);
    from.take(used_.data(), taken_count_);
    from.take(values_.data(), values_count_);
    return inner_->restore(from.part(0));
}

}  // namespace hocket
