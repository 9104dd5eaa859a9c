#include "engine/sampled.hpp"

#include <algorithm>
#include <cmath>

namespace hocket {

Sampled::Sampled(std::unique_ptr<Simulator> inner, const Setup& setup)
    : next_(setup.length),
      inputs_(setup.inputs),
      outputs_(static_cast<int>(setup.given.size())),
      follows_(setup.follows),
      around_(setup.around),
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

void Sampled::feed() {
    if (plain_)
        for (int k = 0; k < taken_count_; ++k) used_[k] = offered_[k];
    else
        for (int k = 0; k < taken_count_; ++k) used_[k] = taken_[k].of(offered_.data(), used_[k]);
}

// Looks at the outputs of the simulator and shows them.
bool Sampled::keep_outputs(bool made, std::int64_t tick) {
    double finite = 0.0;
    for (int k = 0; k < values_count_; ++k) finite = finite + (values_[k] - values_[k]);
    if (!made || finite != 0.0) [[unlikely]] {
        failure_ = inner_->failure();
        failure_.level = number_;
        failure_.child = 0;
        if (failure_.kind != Failure::Kind::none) return false;
        failure_.kind = Failure::Kind::internal;
        failure_.tick = tick;
        for (int port = values_count_ - 1; port >= 0; --port)
            if (!std::isfinite(values_[port])) {
                failure_.kind = Failure::Kind::not_finite;
                failure_.port = port;
                failure_.value = values_[port];
            }
        return false;
    }
    if (plain_)
        for (int k = 0; k < outputs_; ++k) shown_[k] = values_[k];
    else
        for (int k = 0; k < outputs_; ++k) shown_[k] = given_[k].of(values_.data(), 0.0);
    return true;
}

bool Sampled::own_step() {
    feed();
    const Span span{now_, length_, 0.0, 0.0};
    const bool made = step_inner_(*inner_, span, used_.data(), values_.data());
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
        if (!keep_outputs(inner_->output(tick, used_.data(), values_.data()), tick)) return false;
    }
    show(y);
    return true;
}

Simulator::StepOutput Sampled::step_output() const {
    return [](Simulator& self, const Span& span, const double* u, double* y) {
        Sampled& sampled = static_cast<Sampled&>(self);
        const std::int64_t end = span.tick + span.ticks;
        if (span.tick < sampled.now_ || end > sampled.next_) [[unlikely]]
            return sampled.Sampled::step(span, u) && sampled.Sampled::output(end, u, y);
        if (span.tick == sampled.now_) sampled.take(u);
        if (end == sampled.next_) {
            if (!sampled.own_step()) return false;
            if (sampled.around_) sampled.take(u);
            if (sampled.follows_) return sampled.Sampled::output(end, u, y);
        }
        sampled.show(y);
        return true;
    };
}

bool Sampled::save(Snapshot& to) {
    to.begin();
    to.inner.resize(1);
    to.keep(now_);
    to.keep(next_);
    to.keep(shown_.data(), outputs_);
    to.keep(offered_.data(), inputs_);
    to.keep(used_.data(), taken_count_);
    to.keep(values_.data(), values_count_);
    return inner_->save(to.inner[0]);
}

bool Sampled::restore(Snapshot& from) {
    from.rewind();
    from.take(now_);
    from.take(next_);
    from.take(shown_.data(), outputs_);
    from.take(offered_.data(), inputs_);
    from.take(used_.data(), taken_count_);
    from.take(values_.data(), values_count_);
    return inner_->restore(from.inner[0]);
}

}  // namespace hocket
