#include "engine/projected.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/dense.hpp"
#include "engine/polynomial.hpp"

namespace hocket {

namespace {

// The energy that a bond agreed on, into a simulator; what the one at its other end stores (below zero: not
// told), and how many bonds that has.
struct Flow {
    double energy, stored;
    int bonds;
};

// The energies of all bonds after the limit of a simulator (simulators/energy_projection.py).
class Limit {
  public:
    // Changes the energies of the flows.
    void allow(double stored, std::vector<Flow>& flows) {
        if (stored < 0.0) return;
        double left = stored;
        for (const Flow& flow : flows) left = left + std::max(sure(flow), 0.0);
        asked_.clear();
        for (std::size_t k = 0; k < flows.size(); ++k)
            if (flows[k].energy < 0.0) asked_.emplace_back(-flows[k].energy, k);
        std::sort(asked_.begin(), asked_.end());
        for (std::size_t rank = 0; rank < asked_.size(); ++rank) {
            const auto [energy, number] = asked_[rank];
            const double given = std::min(energy, left / static_cast<double>(asked_.size() - rank));
            flows[number].energy = -given;
            left = std::max(left - given, 0.0);
        }
    }

  private:
    // What the other one gives whatever else it is asked for.
    static double sure(const Flow& flow) {
        return flow.stored < 0.0 ? flow.energy : std::min(flow.energy, flow.stored / flow.bonds);
    }
    std::vector<std::pair<double, std::size_t>> asked_;
};

// One side's part of what both sides of a bond booked and nobody gave.
double part_to_settle(double owed, double own, double theirs) {
    const double together = own + std::max(theirs, 0.0);
    return together > 0.0 ? owed * own / together : 0.0;
}

double integral(const std::vector<double>& power, double h) {
    double total = 0.0;
    for (int k = static_cast<int>(power.size()) - 1; k >= 0; --k) total = (total + power[k] / (k + 1)) * h;
    return total;
}

double after(double stored, const std::vector<double>& handed) {
    for (double each : handed) stored = stored + each;
    return stored;
}

class Projected final : public Simulator {
  public:
    Projected(std::shared_ptr<Balance> balance, const std::vector<double>& z, double last,
              std::vector<double> work, double brought, Agreed agreed)
        : balance_(std::move(balance)),
          linear_(*balance_->linear),
          plain_(state_space(linear_, z, last, nullptr)),
          stored_(balance_->Q, balance_->held, linear_.size),
          work_(std::move(work)),
          brought_(brought),
          agreed_(std::move(agreed)),
          bonds_(balance_->seats.size()) {
        own_.resize(static_cast<std::size_t>(linear_.rows) * linear_.inputs);
        powers_.resize(bonds_);
        for (std::vector<double>* each : {&handed_, &worked_}) each->resize(bonds_);
        for (std::vector<double>* each : {&began_, &push_}) each->resize(linear_.size);
        slopes_.resize(linear_.outputs);
        all_.resize(linear_.states + own_.size());
        pulls_.resize((bonds_ + 1) * all_.size());
        end_.resize(linear_.inputs);
    }

    bool needs_python() const override { return plain_->needs_python(); }
    bool prepare(std::int64_t ticks) override { return plain_->prepare(ticks); }
    double* state() override { return plain_->state(); }
    Failure failure() const override { return failure_; }

    bool output(std::int64_t tick, const double* u, double* y) override {
        if (!plain_->output(tick, u, y)) return false;
        double share;
        if (!take_share(tick, Call::output, share)) return false;
        y[linear_.outputs] = share;
        std::copy(work_.begin(), work_.end(), y + linear_.outputs + 1);
        return true;
    }

    bool slope(std::int64_t tick, const double* u, double* dy) override {
        take_own(u);
        std::fill(dy + linear_.outputs, dy + linear_.outputs + 1 + bonds_, 0.0);
        return plain_->slope(tick, own_.data(), dy);
    }

    bool step(const Span& span, const double* u) override {
        take_own(u);
        take_powers(u);
        double share;
        if (!take_share(span.tick, Call::step, share)) return false;
        std::copy(plain_->state(), plain_->state() + linear_.size, began_.begin());
        const double had = stored_.value(began_.data());
        hand(span, u, share);
        const bool starts = silent(span.tick, u);
        double besides;
        if (!plain_step(span, besides)) return false;
        if (starts) {
            handed_ = worked_;
            limit(handed_, share, span.h, u);
        }
        if (balance_->whole == 0.0) settle(handed_, share, u);
        const double target = after(had, handed_) + besides;
        if (!std::isfinite(target)) return lost(span.tick, Call::step, target);
        push(span.h);
        double* x = plain_->state();
        stored_.onto(x, target, push_.data());
        brought_ = balance_->whole == 0.0 ? besides : brought_ + besides;
        double missed = stored_.value(x) - target;
        if (target < 0.0)  // what a damper of its own took is not missing in the bonds
            missed = std::max(missed - std::max(-besides, 0.0), 0.0);
        book(missed);
        return true;
    }

    bool save(Snapshot& to) override {
        if (!plain_->save(to)) return false;
        to.keep(work_);
        to.keep(brought_);
        to.keep(static_cast<std::int64_t>(agreed_.parts.size()));
        to.keep(agreed_.t);
        for (const std::vector<double>* each : {&agreed_.parts, &agreed_.paid, &agreed_.work}) to.keep(*each);
        return true;
    }
    bool restore(Snapshot& from) override {
        if (!plain_->restore(from)) return false;
        from.take(work_);
        from.take(brought_);
        std::size_t count = from.take_size();
        if (count != 0 && count != seats().size()) {
            from.refuse();
            count = 0;
        }
        from.take(agreed_.t);
        for (std::vector<double>* each : {&agreed_.parts, &agreed_.paid, &agreed_.work}) {
            each->resize(count);
            from.take(*each);
        }
        return true;
    }

  private:
    const std::vector<Seat>& seats() const { return balance_->seats; }

    bool lost(std::int64_t tick, Call call, double energy) {
        failure_.kind = Failure::Kind::no_energy;
        failure_.call = call;
        failure_.tick = tick;
        failure_.value = energy;
        return false;
    }

    // What it may give: what it stores, and what sources bring besides, as in the last step.
    bool take_share(std::int64_t tick, Call call, double& share) {
        const double stored = stored_.value(plain_->state());
        share = std::max(stored, 0.0) + std::max(brought_, 0.0);
        if (!std::isfinite(stored)) return lost(tick, call, stored);
        return std::isfinite(share) || lost(tick, call, share);
    }

    // The inputs of the linear model, without gaps.
    void take_own(const double* u) {
        for (int row = 0; row < linear_.rows; ++row)
            std::copy_n(u + static_cast<std::ptrdiff_t>(row) * balance_->inputs, linear_.inputs,
                        own_.data() + row * linear_.inputs);
    }

    // The power of two signals, in powers of time.
    void product(double sign, const double* u, int output, int given, std::vector<double>& power) const {
        const int rows = linear_.rows, stride = balance_->inputs;
        power.assign(2 * rows - 1, 0.0);
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < rows; ++j)
                power[i + j] = power[i + j] + sign * (u[i * stride + output] * u[j * stride + given]);
        if (balance_->straight) power.resize(std::min<std::size_t>(power.size(), 2));
    }

    void take_powers(const double* u) {
        for (std::size_t k = 0; k < bonds_; ++k)
            product(seats()[k].sign, u, seats()[k].told, seats()[k].input, powers_[k]);
    }

    // The energies to hand over in this step: those agreed for a longer one, up to its end.
    void hand(const Span& span, const double* u, double share) {
        const double whole = balance_->whole, h = span.h;
        if (whole == 0.0) {
            for (std::size_t k = 0; k < bonds_; ++k) handed_[k] = integral(powers_[k], h);
            limit(handed_, share, h, u);
            return;
        }
        if (agreed_.parts.empty() || !(0.0 <= span.t - agreed_.t && span.t - agreed_.t < whole - 0.5 * h))
            agree(span.t, u, share);
        const double s = span.t - agreed_.t;
        for (std::size_t k = 0; k < bonds_; ++k)
            handed_[k] = agreed_.parts[k] * (integral(powers_[k], h) - integral(powers_[k], -s)) +
                         agreed_.paid[k] * (s + h) / whole - (work_[k] - agreed_.work[k]);
    }

    void agree(double t, const double* u, double share) {
        const double whole = balance_->whole;
        std::vector<double>&asked = worked_, &limited = handed_;
        for (std::size_t k = 0; k < bonds_; ++k) asked[k] = integral(powers_[k], whole);
        limited = asked;
        limit(limited, share, whole, u);
        agreed_ = {t, limited, limited, work_};
        brought_ = 0.0;
        settle(agreed_.paid, share, u);
        for (std::size_t k = 0; k < bonds_; ++k) {
            agreed_.parts[k] = asked[k] != 0.0 ? limited[k] / asked[k] : 1.0;
            agreed_.paid[k] = agreed_.paid[k] - limited[k];
        }
    }

    // Nobody gives more than it has.
    void limit(std::vector<double>& energies, double stored, double h, const double* u) {
        flows_.clear();
        for (std::size_t k = 0; k < bonds_; ++k)
            flows_.push_back(
                {energies[k], u[seats()[k].share], 1 + static_cast<int>(seats()[k].beyond.size())});
        limit_.allow(stored, flows_);
        for (std::size_t k = 0; k < bonds_; ++k) {
            const double energy = energies[k];
            energies[k] = flows_[k].energy;
            if (!(energy > 0.0)) continue;
            around_.assign(1, {-energy, stored, static_cast<int>(bonds_)});
            for (const View& view : seats()[k].beyond) {
                product(view.sign, u, view.output, view.input, power_);
                around_.push_back({integral(power_, h), u[view.share], view.bonds});
            }
            limit_.allow(u[seats()[k].share], around_);
            energies[k] = -around_[0].energy;
        }
    }

    // Whether it starts from rest: nothing but zeros was told, and yet an output rises.
    bool silent(std::int64_t tick, const double* u) {
        for (const std::vector<double>& power : powers_)
            for (double each : power)
                if (each != 0.0) return false;
        plain_->slope(tick, own_.data(), slopes_.data());
        return std::any_of(seats().begin(), seats().end(), [&](const Seat& seat) {
            return slopes_[seat.output] != u[balance_->inputs + seat.told];
        });
    }

    // Pays for what it or a partner booked and nobody gave.
    void settle(std::vector<double>& handed, double stored, const double* u) const {
        double left = std::max(after(stored, handed), 0.0);
        const double own = left;
        for (std::size_t k = 0; k < bonds_; ++k) {
            const Seat& seat = seats()[k];
            if (seat.booked < 0) continue;
            const double owed = work_[k] + u[seat.booked];
            const double part = std::min(part_to_settle(owed, own, u[seat.share] - handed[k]), left);
            left = left - std::max(part, 0.0);
            handed[k] = handed[k] - part;
        }
    }

    // Steps under the inputs as they are; the work of each bond, and what came in besides.
    bool plain_step(const Span& span, double& besides) {
        std::copy(plain_->state(), plain_->state() + linear_.states, all_.begin());
        std::copy(own_.begin(), own_.end(), all_.begin() + linear_.states);
        if (!length_ || length_->ticks != span.ticks) length_ = linear_.find(span.ticks);
        if (!length_ || !plain_->step(span, own_.data())) return false;
        const int size = static_cast<int>(all_.size());
        std::fill(pulls_.begin(), pulls_.end(), 0.0);
        add(pulls_.data(), length_->works.data(), all_.data(), static_cast<int>(pulls_.size()), size);
        for (std::size_t k = 0; k < bonds_; ++k)
            worked_[k] = dot(pulls_.data() + k * size, all_.data(), size);
        besides = dot(pulls_.data() + bonds_ * size, all_.data(), size);
        return true;
    }

    // The way to leave by where the energy has no gradient.
    void push(double h) {
        const double* x = plain_->state();
        for (int j = 0; j < linear_.inputs; ++j)
            end_[j] = value_at(own_.data() + j, linear_.rows, linear_.inputs, h);
        std::fill(push_.begin(), push_.end(), 0.0);
        add(push_.data(), linear_.A.data(), x, linear_.size, linear_.size);
        add(push_.data(), linear_.B.data(), end_.data(), linear_.size, linear_.inputs);
        if (std::all_of(push_.begin(), push_.end(), [](double each) { return each == 0.0; }))
            for (int k = 0; k < linear_.size; ++k) push_[k] = x[k] - began_[k];
    }

    // What each bond really did: who was asked for more than it stored ended empty, and gave less.
    void book(double missed) {
        double total = 0.0;
        for (double each : handed_) total = total + std::fabs(each);
        for (std::size_t k = 0; k < bonds_; ++k)
            work_[k] =
                work_[k] + (total > 0.0 ? handed_[k] + missed * std::fabs(handed_[k]) / total : handed_[k]);
    }

    std::shared_ptr<Balance> balance_;
    const Linear& linear_;
    const Length* length_ = nullptr;  // of the newest step
    std::unique_ptr<Simulator> plain_;
    Quadratic stored_;
    std::vector<double> work_;  // per bond: the energy that came in
    double brought_;            // what came in besides in the last step for which energies were agreed
    Agreed agreed_;
    std::size_t bonds_;
    Limit limit_;
    Failure failure_;
    // room
    std::vector<double> own_, handed_, worked_, began_, push_, slopes_, all_, pulls_, end_, power_;
    std::vector<std::vector<double>> powers_;
    std::vector<Flow> flows_, around_;
};

}  // namespace

std::unique_ptr<Simulator> make_projected(std::shared_ptr<Balance> balance, const std::vector<double>& z,
                                          double last, std::vector<double> work, double brought,
                                          Agreed agreed) {
    return std::make_unique<Projected>(std::move(balance), z, last, std::move(work), brought,
                                       std::move(agreed));
}

}  // namespace hocket
