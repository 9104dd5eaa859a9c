// The accounts of power bonds: the twin of ledger.py, operation for operation.
// In:  accounts of children that are about to step, or that were read
// Out: the energy of the step added to them
#include <vector>

#include "level.hpp"

namespace hocket {

// The input that a child sees, or saw some time before.
inline double Level::input_of(const Account& account, double ago) const {
    const Child& child = children[account.child];
    const Slot& slot = slots_[account.child];
    const double* c = u.data() + slot.u + account.input;
    return child.rows == 1 ? *c : value_at(c, child.rows, child.inputs, clock.span(slot.tick - child.base) - ago);
}

bool Level::slope_of(const Account& account, double& slope) {
    slope = 0.0;
    if (!account.sloped) return true;
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
    for (int number : operation.signals) {
        Account& account = accounts[number];
        if (account.since >= 0) continue;  // it was not read since: the account goes over both steps
        account.since = slots_[account.child].tick;
        if (account.input < 0) continue;  // its simulator keeps it
        // in a Repeat the newest output is one of the end of the step
        account.from_y = repeating_ > 0 ? account.saved_y : y[account.signal];
        if (!slope_of(account, account.from_slope)) return false;
        account.at_start = account.factor * account.from_y * input_of(account, 0.0);
    }
    return true;
}

bool Level::close_accounts(const Operation& operation) {
    std::int64_t ticks = -1;
    double h = 0.0;
    for (int number : operation.signals) {
        Account& account = accounts[number];
        if (account.since < 0) continue;
        if (const std::int64_t count = slots_[account.child].tick - account.since; count != ticks) {
            ticks = count;
            h = clock.span(ticks);
        }
        account.since = -1;
        const double now = y[account.signal];
        if (account.input < 0) {
            account.power = (account.factor * now - account.energy) / h;
            account.energy = account.factor * now;
            continue;
        }
        account.power = account.factor * now * input_of(account, 0.0);
        double work;
        if (children[account.child].rows == 1) {
            work = 0.5 * h * (account.at_start + account.power);
        } else {
            double slope;
            if (!slope_of(account, slope)) return false;
            const double middle = 0.5 * (account.from_y + now) + 0.125 * h * (account.from_slope - slope);
            const double there = account.factor * middle * input_of(account, 0.5 * h);
            work = h * (account.at_start + 4.0 * there + account.power) / 6.0;
        }
        account.energy = account.energy + work;
    }
    return true;
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
