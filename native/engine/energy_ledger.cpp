#include "engine/energy_ledger.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/dense.hpp"
#include "engine/polynomial.hpp"

namespace hocket {

namespace {

// The derivative of a polynomial at s.
inline double rate_at(const double* c, int count, int stride, double s) {
    double value = (count - 1) * c[(count - 1) * stride];
    for (int k = count - 2; k >= 1; --k) value = value * s + k * c[k * stride];
    return value;
}

// Two numbers that are worked on at once: each as it would be alone.
using Two = double __attribute__((vector_size(16)));
using Bits = std::int64_t __attribute__((vector_size(16)));

inline Two size_of(Two numbers) { return reinterpret_cast<Two>(reinterpret_cast<Bits>(numbers) & INT64_MAX); }

// Where two accounts are: next to each other, or anywhere.
template <bool neighbours> struct Places {
    int a, b;
    Two take(const double* from) const {
        Two both{from[a], 0.0};
        if constexpr (neighbours)
            std::memcpy(&both, from + a, sizeof both);
        else
            both[1] = from[b];
        return both;
    }
    void put(double* to, Two both) const {
        if constexpr (neighbours) {
            std::memcpy(to + a, &both, sizeof both);
        } else {
            to[a] = both[0];
            to[b] = both[1];
        }
    }
};

// Two by two; an odd one at the end is paired with itself.
template <typename Keep> inline void in_twos(const std::vector<int>& numbers, Keep keep) {
    const std::size_t count = numbers.size();
    if (count == 0) return;
    if (numbers.back() - numbers.front() + 1 == static_cast<int>(count)) {
        int number = numbers.front();
        for (; number < numbers.back(); number += 2) keep(Places<true>{number, number + 1});
        if (number == numbers.back()) keep(Places<false>{number, number});
        return;
    }
    for (std::size_t k = 0; k < count; k += 2)
        keep(Places<false>{numbers[k], numbers[k + 1 < count ? k + 1 : k]});
}

// The part of a row between its first and its last number that is not zero; where all are, the first one.
struct Part {
    int first, count;
    Part(const double* row, int size) : first(0), count(size) {
        while (count > 1 && row[first] == 0.0) ++first, --count;
        while (count > 1 && row[first + count - 1] == 0.0) --count;
    }
};

const double nothing = 0.0;

// The sum of products of one at least, from the left.
inline double some(const double* one, const double* other, int count) {
    double total = *one * *other;
    while (--count > 0) total = total + *++one * *++other;
    return total;
}

}  // namespace

void Accounts::add(const AccountSetup& setup) {
    std::vector<double> shares = setup.state_shares;
    for (const auto* more : {&setup.input_shares, &setup.feedthrough})
        shares.insert(shares.end(), more->begin(), more->end());
    Account& account = of.emplace_back();
    account.child = setup.child;
    account.input = setup.input;
    account.asked = setup.asked;
    account.anew = setup.anew;
    account.inside = setup.inside;
    account.states = static_cast<int>(setup.state_shares.size());
    account.reacts = !setup.feedthrough.empty();
    if (!shares.empty()) {  // equal models share them
        const auto place = std::search(slopes.begin(), slopes.end(), shares.begin(), shares.end());
        account.slopes = static_cast<int>(place - slopes.begin());
        if (place == slopes.end()) slopes.insert(slopes.end(), shares.begin(), shares.end());
    }
    signal.push_back(setup.signal);
    factor.push_back(setup.factor);
    power.push_back(setup.power);
    energy.push_back(setup.energy);
    moved.push_back(0.0);
    from_y.push_back(setup.from_y);
    from_rest.push_back(setup.from_rest);
    from_slope.push_back(0.0);
    since.push_back(setup.since);
    u.push_back(0);
    bends.push_back({});
}

void EnergyLedger::place() {
    saved_y_.resize(accounts.size());
    saved_tick_.assign(accounts.size(), -1);
    saved_ = accounts;
    for (Child& child : state_.children) child.accounts.clear();
    for (std::size_t number = 0; number < accounts.size(); ++number) {
        Account& account = accounts.of[number];
        const Slot& slot = state_.slots[account.child];
        Child& child = state_.children[account.child];
        child.accounts.push_back(static_cast<int>(number));
        accounts.u[number] = slot.u + account.input;
        account.rows = child.rows;
        account.stride = child.inputs;
        account.base = &child.base;
        if (account.inside >= 0) account.there = slot.simulator->accounts();
        if (account.slopes < 0) continue;
        account.z = slot.simulator->state();
        if (!account.bends()) continue;
        const double *shares = accounts.slopes.data() + account.slopes, *gains = shares + account.states;
        const Part states(shares, account.states), inputs(gains, child.inputs);
        accounts.bends[number] = {
            shares + states.first, account.z + states.first, gains + inputs.first, states.count,
            inputs.count,          slot.u + inputs.first,    child.inputs};
        if (account.states == 0) accounts.bends[number].shares = accounts.bends[number].z = &nothing;
    }
}

void EnergyLedger::sort(CloseAccountsOperation& operation) const {
    std::sort(operation.held.begin(), operation.held.end());
    if (!operation.fed) return;
    const std::vector<int> every = std::move(operation.moving);
    operation.moving.clear();
    for (int number : every) {
        const Account& account = accounts.of[number];
        (!account.bends()    ? operation.moving
         : account.rows == 2 ? operation.lines
                             : operation.curves)
            .push_back(number);
    }
    std::sort(operation.lines.begin(), operation.lines.end());
}

inline double EnergyLedger::rest_of(const Account& account) const {
    return account.slopes < 0 ? 0.0 : dot(accounts.slopes.data() + account.slopes, account.z, account.states);
}

// How much larger the slope of a linear model's output was at the start of a step than at its end.
inline double EnergyLedger::bend_of(const Account& account, const double* c, double rest, double s,
                                    double h) const {
    const double* gain = accounts.slopes.data() + account.slopes + account.states;
    const int rows = account.rows, stride = account.stride;
    if (rows == 2) return rest - h * dot(gain, c + stride, stride);
    double total = rest;
    for (int k = 0; k < stride; ++k)
        total = total + gain[k] * (value_at(c + k, rows, stride, s - h) - value_at(c + k, rows, stride, s));
    if (account.reacts)
        for (int k = 0; k < stride; ++k)
            total = total + gain[stride + k] *
                                (rate_at(c + k, rows, stride, s - h) - rate_at(c + k, rows, stride, s));
    return total;
}

// The slope that a simulator tells of its output, under its inputs now.
bool EnergyLedger::ask_slope(std::size_t number, double& slope) {
    const Account& account = accounts.of[number];
    slope = 0.0;
    if (!account.asked) return true;
    Slot& slot = state_.slots[account.child];
    const Child& child = state_.children[account.child];
    std::vector<double> slopes(child.outputs), room(child.coefficients());
    if (!slot.simulator->slope(slot.tick, state_.inputs_now(account.child, room.data()), slopes.data()))
        return state_.fail(slot);
    slope = slopes[accounts.signal[number] - slot.y];
    return true;
}

// The output at the start of the step under way.
bool EnergyLedger::ask_start(std::size_t number, double& value) {
    const Account& account = accounts.of[number];
    Slot& slot = state_.slots[account.child];
    // in a Repeat the newest output of one that went back is one of the end of the step
    const bool back = state_.iterating > 0 && saved_tick_[number] == slot.tick;
    value = back ? saved_y_[number] : state_.memory.y[accounts.signal[number]];
    if (!account.anew) return true;
    const Child& child = state_.children[account.child];
    std::vector<double> outputs(child.outputs), room(child.coefficients());
    if (!slot.simulator->output(slot.tick, state_.inputs_now(account.child, room.data()), outputs.data()))
        return state_.fail(slot);
    value = outputs[accounts.signal[number] - slot.y];
    return true;
}

bool EnergyLedger::open(int number, bool held) {
    const Account& account = accounts.of[number];
    if (account.there || accounts.since[number] >= 0) return true;  // not read since: it goes over both steps
    accounts.since[number] = state_.slots[account.child].tick;
    accounts.from_rest[number] = held ? state_.memory.u[accounts.u[number]] : rest_of(account);
    return ask_start(number, accounts.from_y[number]) && ask_slope(number, accounts.from_slope[number]);
}

bool EnergyLedger::open(const OpenAccountsOperation& operation) {
    for (int number : operation.held)
        if (!open(number, true)) return false;
    for (int number : operation.moving)
        if (!open(number, false)) return false;
    return true;
}

// Where all steps are of one length two accounts are closed at once.
bool EnergyLedger::close(const CloseAccountsOperation& operation) {
    Lengths step, age;
    if (operation.ticks > 0) {
        const double h = state_.clock.span(operation.ticks);
        close_alike(operation.held, h);
        close_lines(operation.lines, h);
        close_curves(operation.curves, h);
    } else {
        for (int number : operation.held) close_held(number, operation.reopens, step);
    }
    for (int number : operation.moving)
        if (!close_moving(number, operation.reopens, step, age)) return false;
    return true;
}

// The account of an input that moves within a step.
bool EnergyLedger::close_moving(int number, bool again, Lengths& step, Lengths& age) {
    const Account& account = accounts.of[number];
    std::int64_t& since = accounts.since[number];
    if (account.there) {
        accounts.power[number] = account.there->power[account.inside];
        accounts.energy[number] = account.there->energy[account.inside];
        accounts.moved[number] = account.there->moved[account.inside];
        return true;
    }
    if (since < 0) return true;
    const std::int64_t tick = state_.slots[account.child].tick;
    const double h = step.of(state_.clock, tick - since), s = age.of(state_.clock, tick - *account.base);
    const double factor = accounts.factor[number], now = state_.memory.y[accounts.signal[number]],
                 from = accounts.from_y[number];
    since = again ? tick : -1;
    accounts.from_y[number] = now;
    double &energy = accounts.energy[number], &moved = accounts.moved[number];
    if (account.input < 0) {
        accounts.power[number] = (factor * now - energy) / h;
        moved = moved + std::fabs(factor * now - energy);
        energy = factor * now;
        return true;
    }
    const double* c = state_.memory.u.data() + accounts.u[number];
    const int rows = account.rows, stride = account.stride;
    const double first = value_at(c, rows, stride, s - h), last = value_at(c, rows, stride, s);
    const double half = rows == 2 ? first + last : 2.0 * value_at(c, rows, stride, s - 0.5 * h);  // twice
    double bend = 0.0;
    if (account.slopes >= 0) {
        const double rest = rest_of(account);
        bend = bend_of(account, c - account.input, accounts.from_rest[number] - rest, s, h);
        accounts.from_rest[number] = rest;
    } else if (account.asked) {
        double slope;
        if (!ask_slope(number, slope)) return false;
        bend = accounts.from_slope[number] - slope;
    }
    const double middle = (from + now) + 0.25 * h * bend, end = last * now;  // the first one twice
    const double work = h / 6.0 * factor * (first * from + end + half * middle);
    accounts.power[number] = factor * end;
    energy = energy + work;
    moved = moved + std::fabs(work);
    return true;
}

// The account of an input that is held.
void EnergyLedger::close_held(int number, bool again, Lengths& step) {
    std::int64_t& since = accounts.since[number];
    if (since < 0) return;
    const std::int64_t tick = state_.slots[accounts.of[number].child].tick;
    const double h = step.of(state_.clock, tick - since);
    const double factor = accounts.factor[number], now = state_.memory.y[accounts.signal[number]],
                 last = state_.memory.u[accounts.u[number]];
    const double first =
        again ? last : accounts.from_rest[number];  // not the last where the account goes over several steps
    const double start = factor * first * accounts.from_y[number], power = factor * last * now;
    const double work = 0.5 * h * (start + power);
    since = again ? tick : -1;
    accounts.from_y[number] = now;
    accounts.power[number] = power;
    accounts.energy[number] = accounts.energy[number] + work;
    accounts.moved[number] = accounts.moved[number] + std::fabs(work);
}

// Accounts of inputs that are held, over steps of one length.
void EnergyLedger::close_alike(const std::vector<int>& numbers, double h) {
    const int *signal = accounts.signal.data(), *input = accounts.u.data();
    const double *outputs = state_.memory.y.data(), *inputs = state_.memory.u.data(),
                 *factor = accounts.factor.data();
    double *from_y = accounts.from_y.data(), *powers = accounts.power.data(),
           *energy = accounts.energy.data(), *moved = accounts.moved.data();
    const double half = 0.5 * h;
    in_twos(numbers, [=](auto at) {
        const Two now{outputs[signal[at.a]], outputs[signal[at.b]]},
            given{inputs[input[at.a]], inputs[input[at.b]]};
        const Two scale = at.take(factor) * given;
        const Two start = scale * at.take(from_y), power = scale * now;
        const Two work = half * (start + power);
        at.put(from_y, now);
        at.put(powers, power);
        at.put(energy, at.take(energy) + work);
        at.put(moved, at.take(moved) + size_of(work));
    });
}

// Accounts of linear models under inputs that are lines since the start of the step, over steps of one
// length.
void EnergyLedger::close_lines(const std::vector<int>& numbers, double h) {
    const int *signal = accounts.signal.data(), *input = accounts.u.data();
    const double *outputs = state_.memory.y.data(), *inputs = state_.memory.u.data(),
                 *factors = accounts.factor.data();
    double *from_y = accounts.from_y.data(), *from_rest = accounts.from_rest.data(),
           *powers = accounts.power.data();
    double *energy = accounts.energy.data(), *moved = accounts.moved.data();
    const Bend* bends = accounts.bends.data();
    const double quarter = 0.25 * h, sixth = h / 6.0;
    in_twos(numbers, [=](auto at) {
        const Bend &one = bends[at.a], &other = bends[at.b];
        const Two rests{some(one.shares, one.z, one.states), some(other.shares, other.z, other.states)};
        const Two gains{some(one.gains, inputs + one.u + one.stride, one.inputs),
                        some(other.gains, inputs + other.u + other.stride, other.inputs)};
        const double *c = inputs + input[at.a], *d = inputs + input[at.b];
        const Two first{c[0], d[0]}, slope{c[one.stride], d[other.stride]}, last = slope * h + first;
        const Two from = at.take(from_y), now{outputs[signal[at.a]], outputs[signal[at.b]]}, end = last * now;
        const Two bend = (at.take(from_rest) - rests) - h * gains;
        const Two middle = (from + now) + quarter * bend;  // twice
        const Two factor = at.take(factors);
        const Two work = sixth * factor * (first * from + end + (first + last) * middle);
        at.put(from_y, now);
        at.put(from_rest, rests);
        at.put(powers, factor * end);
        at.put(energy, at.take(energy) + work);
        at.put(moved, at.take(moved) + size_of(work));
    });
}

// The same for polynomials of a higher degree, one by one; parabolas have code of their own.
void EnergyLedger::close_curves(const std::vector<int>& numbers, double h) {
    for (int number : numbers)
        accounts.of[number].rows == 3 ? close_curve<3>(number, h) : close_curve<0>(number, h);
}

template <int known> inline void EnergyLedger::close_curve(int number, double h) {
    const Bend& bends = accounts.bends[number];
    const double *c = state_.memory.u.data() + accounts.u[number], factor = accounts.factor[number];
    const int rows = known > 0 ? known : accounts.of[number].rows, stride = bends.stride;
    const double first = c[0], last = value_at(c, rows, stride, h),
                 half = 2.0 * value_at(c, rows, stride, h - 0.5 * h);
    const double rest = some(bends.shares, bends.z, bends.states);
    double bend = accounts.from_rest[number] - rest;
    for (int k = 0; k < bends.inputs; ++k) {
        const double* other = state_.memory.u.data() + bends.u + k;
        bend = bend + bends.gains[k] * (other[0] - (other == c ? last : value_at(other, rows, stride, h)));
    }
    const double from = accounts.from_y[number], now = state_.memory.y[accounts.signal[number]],
                 end = last * now;
    const double middle = (from + now) + 0.25 * h * bend;  // twice
    const double work = h / 6.0 * factor * (first * from + end + half * middle);
    accounts.from_y[number] = now;
    accounts.from_rest[number] = rest;
    accounts.power[number] = factor * end;
    accounts.energy[number] = accounts.energy[number] + work;
    accounts.moved[number] = accounts.moved[number] + std::fabs(work);
}

// Those of some children.
void EnergyLedger::copy(const std::vector<int>& children, const Standing& from, Standing& to) const {
    if (children.size() == state_.children.size()) {
        to = from;
        return;
    }
    for (int number : children)
        for (int account : state_.children[number].accounts) to.copy(from, account);
}

void EnergyLedger::save(const std::vector<int>& children) {
    for (int number : children)
        for (int account : state_.children[number].accounts) {
            saved_y_[account] = state_.memory.y[accounts.signal[account]];
            saved_tick_[account] = state_.slots[number].tick;
        }
    copy(children, accounts, saved_);
}

void EnergyLedger::restore(const std::vector<int>& children) { copy(children, saved_, accounts); }

void EnergyLedger::save(Snapshot& to) const {
    for (const std::vector<double>* numbers : accounts.numbers()) to.keep(*numbers);
    to.keep(accounts.since);
}

void EnergyLedger::restore(Snapshot& from) {
    for (std::vector<double>* numbers : accounts.numbers()) from.take(*numbers);
    from.take(accounts.since);
}

double EnergyLedger::column(int number) const {
    const int bond = number / 3, what = number % 3;
    return what == 2 ? accounts.residual(bond) : accounts.power[2 * bond + what];
}

// What the residuals changed since then, in sum.
double EnergyLedger::residual_since(const std::vector<double>& before) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < before.size(); ++k) sum = sum + std::fabs(accounts.residual(k) - before[k]);
    return sum;
}

std::vector<double> EnergyLedger::residuals() const {
    std::vector<double> found;
    for (std::size_t k = 0; k < accounts.bonds; ++k) found.push_back(accounts.residual(k));
    return found;
}

}  // namespace hocket
