// The accounts of power bonds: the twin of ledger.py, operation for operation.
// In:  accounts of children that are about to step, or that were read
// Out: the energy of the step added to them
#include <cmath>
#include <vector>

#include "level.hpp"

namespace hocket {

namespace {

// The sum of products, from the left.
inline double sum(const double* one, const double* other, int count) {
    double total = 0.0;
    for (int k = 0; k < count; ++k) total = total + one[k] * other[k];
    return total;
}

// The derivative of a polynomial at s.
inline double rate_at(const double* c, int count, int stride, double s) {
    double value = (count - 1) * c[(count - 1) * stride];
    for (int k = count - 2; k >= 1; --k) value = value * s + k * c[k * stride];
    return value;
}

}  // namespace

void Level::place_accounts() {
    saved_y_.resize(accounts.size());
    for (Account& account : accounts) {
        const Slot& slot = slots_[account.child];
        const Child& child = children[account.child];
        account.u = slot.u + account.input;
        account.rows = child.rows;
        account.stride = child.inputs;
        account.base = &child.base;
        if (account.slopes >= 0) account.z = slot.simulator->state();
    }
}

inline double Level::rest_of(const Account& account) const {
    return account.slopes < 0 ? 0.0 : sum(account_slopes.data() + account.slopes, account.z, account.states);
}

// How much larger the slope of a linear model's output was at the start of a step than at its end.
inline double Level::bend_of(const Account& account, double rest, double s, double h) const {
    const double *gain = account_slopes.data() + account.slopes + account.states, *c = u.data() + account.u - account.input;
    const int rows = account.rows, stride = account.stride;
    if (rows == 2) return rest - h * sum(gain, c + stride, stride);
    double total = rest;
    for (int k = 0; k < stride; ++k)
        total = total + gain[k] * (value_at(c + k, rows, stride, s - h) - value_at(c + k, rows, stride, s));
    if (account.reacts)
        for (int k = 0; k < stride; ++k)
            total = total + gain[stride + k] * (rate_at(c + k, rows, stride, s - h) - rate_at(c + k, rows, stride, s));
    return total;
}

// The slope that a simulator tells of its output, under its inputs now.
bool Level::ask_slope(const Account& account, double& slope) {
    slope = 0.0;
    if (!account.asked) return true;
    Slot& slot = slots_[account.child];
    const Child& child = children[account.child];
    std::vector<double> slopes(child.outputs), polynomials(u.begin() + slot.u, u.begin() + slot.u + child.coefficients());
    if (child.base != slot.tick) {
        const double ds = clock.span(slot.tick - child.base);
        for (int j = 0; j < child.inputs; ++j) shift(polynomials.data() + j, child.rows, child.inputs, ds);
    }
    if (!slot.simulator->slope(slot.tick, polynomials.data(), slopes.data())) return failed(slot);
    slope = slopes[account.signal - slot.y];
    return true;
}

bool Level::open_accounts(const Operation& operation) {
    const auto open = [this](int number) {
        Account& account = accounts[number];
        if (account.since >= 0) return true;  // it was not read since: the account goes over both steps
        account.since = slots_[account.child].tick;
        // in a Repeat the newest output is one of the end of the step
        account.from_y = repeating_ > 0 ? saved_y_[number] : y[account.signal];
        account.from_rest = rest_of(account);
        return ask_slope(account, account.from_slope);
    };
    for (int number : operation.slopes) open(number);
    for (int number : operation.signals)
        if (!open(number)) return false;
    return true;
}

// Where nothing happens between a read and the next step, each account is opened again as it is closed.
bool Level::close_accounts(const Operation& operation) {
    const bool again = operation.number != 0;
    if (operation.ticks > 0)
        close_held<true>(operation.slopes, again, clock.span(operation.ticks));
    else
        close_held<false>(operation.slopes, again, 0.0);
    const double h = operation.ticks > 0 ? clock.span(operation.ticks) : 0.0;
    if (operation.number == 2) return close_moving<true, true>(operation.signals, again, h);
    return h > 0.0 ? close_moving<true, false>(operation.signals, again, h) : close_moving<false, false>(operation.signals, again, h);
}

// The accounts of inputs that move within a step; all were fed when that began, or each is looked at.
template <bool alike, bool fed>
bool Level::close_moving(const std::vector<int>& numbers, bool again, double h) {
    std::int64_t ticks = -1, aged = -1;
    double s = h;
    for (int number : numbers) {
        Account& account = accounts[number];
        const std::int64_t tick = fed ? 0 : slots_[account.child].tick;
        if constexpr (!alike) {
            if (account.since < 0) continue;
            if (const std::int64_t count = tick - account.since; count != ticks) {
                ticks = count;
                h = clock.span(ticks);
            }
            account.since = again ? tick : -1;
        }
        const double now = y[account.signal], from = account.from_y;
        account.from_y = now;
        if (account.input < 0) {
            account.power = (account.factor * now - account.energy) / h;
            account.moved = account.moved + std::fabs(account.factor * now - account.energy);
            account.energy = account.factor * now;
            continue;
        }
        if constexpr (!fed) {
            if (const std::int64_t age = tick - *account.base; age != aged) {
                aged = age;
                s = clock.span(age);
            }
        }
        const double* c = u.data() + account.u;
        double first, last, half;  // the last one twice
        if (account.rows == 2) {  // most are lines
            const double slope = c[account.stride], value = c[0];
            first = slope * (s - h) + value;
            last = slope * s + value;
            half = first + last;
        } else {
            first = value_at(c, account.rows, account.stride, s - h);
            last = value_at(c, account.rows, account.stride, s);
            half = 2.0 * value_at(c, account.rows, account.stride, s - 0.5 * h);
        }
        double bend = 0.0;
        if (account.slopes >= 0) {
            const double rest = rest_of(account);
            bend = bend_of(account, account.from_rest - rest, s, h);
            account.from_rest = rest;
        } else if (account.asked) {
            double slope;
            if (!ask_slope(account, slope)) return false;
            bend = account.from_slope - slope;
        }
        const double middle = (from + now) + 0.25 * h * bend, end = last * now;  // the first one twice
        const double work = h / 6.0 * account.factor * (first * from + end + half * middle);
        account.power = account.factor * end;
        account.energy = account.energy + work;
        account.moved = account.moved + std::fabs(work);
    }
    return true;
}

// The accounts of inputs that are held; all steps are of one length, h, or each is looked at.
template <bool alike>
void Level::close_held(const std::vector<int>& numbers, bool again, double h) {
    std::int64_t ticks = -1;
    const double *inputs = u.data(), *outputs = y.data();
    Account* every = accounts.data();
    for (int number : numbers) {
        Account& account = every[number];
        if constexpr (!alike) {
            if (account.since < 0) continue;
            const std::int64_t tick = slots_[account.child].tick;
            if (const std::int64_t count = tick - account.since; count != ticks) {
                ticks = count;
                h = clock.span(ticks);
            }
            account.since = again ? tick : -1;
        }
        const double now = outputs[account.signal], given = inputs[account.u];
        const double start = account.factor * given * account.from_y, power = account.factor * given * now;
        const double work = 0.5 * h * (start + power);
        account.from_y = now;
        account.power = power;
        account.energy = account.energy + work;
        account.moved = account.moved + std::fabs(work);
    }
}

double Level::ledger_column(int number) const {
    const Account &given = accounts[2 * (number / 3)], &taken = accounts[2 * (number / 3) + 1];
    const int what = number % 3;
    return what == 2 ? taken.energy - given.energy : what == 1 ? taken.power : given.power;
}

// What the bonds gained since then, in sum.
double Level::gained_since(const std::vector<double>& before) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < before.size(); ++k) {
        const double gained = (accounts[2 * k + 1].energy - accounts[2 * k].energy) - before[k];
        sum = sum + (gained < 0.0 ? -gained : gained);
    }
    return sum;
}

std::vector<double> Level::gained() const {
    std::vector<double> found;
    for (std::size_t k = 0; k + 1 < accounts.size(); k += 2) found.push_back(accounts[k + 1].energy - accounts[k].energy);
    return found;
}

}  // namespace hocket
