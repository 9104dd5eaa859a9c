// The fixed-step methods of model exchange: the twin of simulators/solvers.py, with events.
// In:  the state, a step, the tableau of a method
// Out: the state after it; what crossed zero on the way is located and handled
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/elimination.hpp"
#include "fmu/model_exchange.hpp"

namespace hocket {

namespace {

constexpr double precision = 1e-10;    // of an event's time, in micro steps
constexpr int events_at_most = 10000;  // in one micro step
constexpr int iterations = 25;         // of Newton's method

// How many micro steps of at most `longest` seconds make up h, as simulators/methods.py counts them.
int micro_steps(double h, double longest) {
    if (longest == 0.0) return 1;
    return std::max(1, -static_cast<int>(std::floor(-(h / longest) * (1.0 - 1e-9))));
}

double largest(const std::vector<double>& values) {
    double most = 0.0;
    for (double value : values) most = std::max(most, std::fabs(value));
    return most;
}

}  // namespace

bool Exchange::advance(double t, double h, const double* u, double* reached) {
    if (setup_.method.b.empty()) return fmu_.wrong("its steps are made by a solver in Python");
    if (!enter(t, fmu_.rows_, u)) return false;
    h -= lag_;
    if (h > 0.0) {
        const int count = micro_steps(h, setup_.method.longest);
        const double dt = h / count;
        for (int number = 0; number < count; ++number) {
            const double end = number == count - 1 ? h : (number + 1) * dt;
            Postponed postponed = Postponed::no;
            if (!cover(number * dt, end, dt, h, postponed)) return false;
            if (postponed == Postponed::within) *reached = fmu_.own_;
            if (postponed != Postponed::no) break;
            if (fmu_.ended_ && number < count - 1) return fmu_.end_inside(t_ + (number + 1) * dt);
        }
    }
    leave();
    return true;
}

// One micro step, in as many parts as there are events.
bool Exchange::cover(double begin, double end, double dt, double h, Postponed& postponed) {
    double from = begin;
    for (int events = 0; events < events_at_most; ++events) {
        const double timed = due(end);
        double stop = std::max(from, std::min(timed, end));
        bool happens = stop >= timed;
        if (stop > from) {
            const double wanted = stop;
            bool event = false;
            if (!over(from, from == begin && stop == end ? dt : stop - from, stop, event)) return false;
            happens = event || (happens && stop == wanted);
        }
        from = stop;
        if (happens) postponed = postpone(from, h);
        if (postponed != Postponed::no) return true;
        if (happens && !event()) return false;
        if (from >= end) return true;
        if (fmu_.ended_) return fmu_.end_inside(t_ + from);
    }
    return fmu_.wrong("its events do not settle: " + std::to_string(events_at_most) +
                      " of them before t = " + std::to_string(t_ + end) + " s");
}

// From one point to the next, or to a state event before it.
bool Exchange::over(double from, double ds, double& stop, bool& event) {
    if (!watch(from, ds) || !micro(from, ds)) return false;
    bool beyond = false;
    if (!detect_crossing(stop, next_x_.data(), beyond)) return false;
    if (beyond) {
        const double whole = stop;
        if (!locate(from, ds, stop)) return false;
        if (stop < whole) ds = stop - from;
    } else {
        std::swap(first_z_, z_);
    }
    if (setup_.method.multistep) {
        past_ = rate_;
        past_length_ = ds;
    }
    if (!accept(stop, next_x_.data(), event)) return false;
    event = event || beyond;
    return true;
}

// The first crossing after `from`: the method's own step is shortened until it ends just behind it.
bool Exchange::locate(double from, double ds, double& stop) {
    const double fine =
        std::max(precision * ds, 4.0 * std::numeric_limits<double>::epsilon() * std::fabs(t_ + from));
    double low = 0.0, high = ds;
    low_z_ = first_z_;
    high_z_ = z_;
    far_x_ = next_x_;
    int row = 0;  // how often the same end has moved
    while (high - low > fine) {
        double part = low + 0.5 * (high - low);
        if (std::abs(row) < 2) {
            double nearest = high;
            for (int j = 0; j < indicators_; ++j) {
                const double from_z = low_z_[j], to_z = high_z_[j];
                if ((to_z > 0.0) == (above_[j] != 0) || !(from_z != to_z)) continue;
                nearest = std::min(nearest, low + (high - low) * (from_z / (from_z - to_z)));
            }
            part = std::min(std::max(nearest, low + 0.5 * fine), high - 0.5 * fine);
        } else {
            row = 0;
        }
        bool beyond = false;
        if (!micro(from, part) || !detect_crossing(from + part, next_x_.data(), beyond)) return false;
        if (beyond) {
            high = part;
            high_z_ = z_;
            far_x_ = next_x_;
            row = row > 0 ? row + 1 : 1;
        } else {
            low = part;
            low_z_ = z_;
            row = row < 0 ? row - 1 : -1;
        }
    }
    if (high < ds) stop = from + high;
    next_x_ = far_x_;
    return true;
}

// The state after ds seconds, in next_x_; the operations run in the order of simulators/solvers.py.
bool Exchange::micro(double s, double ds) {
    const Method& method = setup_.method;
    const std::size_t stages = method.b.size();
    const bool starts_here = method.c[0] == 0.0 && method.a[0] == 0.0;
    if (starts_here && !rated_) {
        if (!rates(s, x_.data(), rate_.data())) return false;
        rated_ = true;
    }
    if (method.multistep && past_length_ == ds) {
        for (int i = 0; i < states_; ++i)
            next_x_[i] = (x_[i] + (1.5 * ds) * rate_[i]) - (0.5 * ds) * past_[i];
        return true;
    }
    for (std::size_t k = 0; k < stages; ++k) {
        double* rate = rates_.data() + k * states_;
        if (k == 0 && starts_here) {
            std::copy(rate_.begin(), rate_.end(), rate);
            continue;
        }
        stage_ = x_;
        for (std::size_t j = 0; j < k; ++j) {
            const double weight = method.a[k * stages + j];
            if (weight == 0.0) continue;
            for (int i = 0; i < states_; ++i) stage_[i] = stage_[i] + (ds * weight) * rates_[j * states_ + i];
        }
        if (!stage(s + method.c[k] * ds, stage_.data(), ds * method.a[k * stages + k], rate)) return false;
    }
    next_x_ = x_;
    for (std::size_t k = 0; k < stages; ++k)
        for (int i = 0; i < states_; ++i)
            next_x_[i] = next_x_[i] + (ds * method.b[k]) * rates_[k * states_ + i];
    return true;
}

// The rate k for which k = f(s, guess + own k), by Newton's method for the state z = guess + own k.
bool Exchange::stage(double s, const double* guess, double own, double* rate) {
    if (own == 0.0 || states_ == 0) return rates(s, guess, rate);
    const int n = states_;
    std::vector<double>&z = moved_, &trial = tried_;
    z.assign(guess, guess + n);
    matrix_.resize(static_cast<std::size_t>(n) * n);
    double before = std::numeric_limits<double>::infinity();
    for (int round = 0; round < iterations; ++round) {
        if (!rates(s, z.data(), rate)) return false;
        const double most = largest(z), smallest = most > 0.0 ? 1e-3 * most : 1.0;
        for (int column = 0; column < n; ++column) {
            trial = z;
            trial[column] += 1.5e-8 * std::max(std::fabs(z[column]), smallest);
            if (!rates(s, trial.data(), right_.data())) return false;
            for (int i = 0; i < n; ++i)
                matrix_[i * n + column] =
                    (i == column ? 1.0 : 0.0) - own * ((right_[i] - rate[i]) / (trial[column] - z[column]));
        }
        for (int i = 0; i < n; ++i) right_[i] = guess[i] + own * rate[i] - z[i];
        if (!solve_in_place(matrix_.data(), right_.data(), n, 0.0)) break;
        for (int i = 0; i < n; ++i) z[i] += right_[i];
        const double change = largest(right_), size = largest(z);
        // round-off keeps the change of a stiff system from shrinking any further
        if (change <= 1e-11 * size + 1e-4 * setup_.method.atol ||
            (before <= change && change <= 1e-7 * size + setup_.method.atol)) {
            for (int i = 0; i < n; ++i) rate[i] = (z[i] - guess[i]) / own;
            return true;
        }
        before = change;
    }
    return fmu_.wrong("Newton's method did not converge at t = " + std::to_string(t_ + s) +
                      " s: a smaller `step` may help");
}

}  // namespace hocket
