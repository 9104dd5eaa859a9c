// The accounts of power bonds: the twin of engine/ledger.py.
// In:  the outputs and the input polynomials of children, at both ends of their steps
// Out: power and energy per side of a bond
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/level_state.hpp"
#include "engine/operations.hpp"

namespace hocket {

struct Accounts;

// One side: factor * output * input of a child is the power that it sees.
struct Account {
    int child = 0;
    int input = 0;             // below zero: the child keeps the account itself
    int rows = 1, stride = 1;  // how the coefficients of its input lie
    int slopes =
        -1;  // of a linear model: where the shares of state and inputs in the slope of the output are
    int states = 0;
    const double* z = nullptr;           // the state of a linear model
    const std::int64_t* base = nullptr;  // the tick that the coefficients are about
    bool asked = false;                  // whether the simulator is asked for the slope
    bool reacts = false;                 // whether the output reacts at once
    bool anew = false;  // whether it is asked for again at the start of a step, under the inputs of that
    int inside = -1;    // the account that a child keeps of its border, which is taken over
    const Accounts* there = nullptr;  // and those among which it is

    bool bends() const { return slopes >= 0 && rows > 1 && (rows == 2 || !reacts); }
};

// An account as Python hands it over.
struct AccountSetup {
    int child;
    int input;   // below zero: the child keeps the account itself
    int signal;  // the output
    double factor;
    bool asked, anew;
    int inside;
    // of a linear model C A, C B and, where the output reacts at once, D; else empty
    std::vector<double> state_shares, input_shares, feedthrough;
    double power, energy, from_y, from_rest;
    std::int64_t since;
};

// How the output of a linear model bends: shares of the state and of the inputs in its slope, without the
// zeros around them; one at least.
struct Bend {
    const double *shares, *z;
    const double* gains;
    int states, inputs;
    int u;       // where the polynomials of those inputs begin
    int stride;  // from one coefficient of a polynomial to the next
};

// What changes of accounts. What every step touches lies side by side, so that two accounts are kept at once.
struct Standing {
    std::vector<double> power, energy, moved;
    std::vector<double> from_y;       // the output at the start of the step under way,
    std::vector<double> from_rest;    // what the state gives to its slope there; of a held input that input,
    std::vector<double> from_slope;   // or that slope, as the simulator told it
    std::vector<std::int64_t> since;  // the tick of that start; -1: no step is under way

    auto numbers() { return std::array{&power, &energy, &moved, &from_y, &from_rest, &from_slope}; }
    auto numbers() const { return std::array{&power, &energy, &moved, &from_y, &from_rest, &from_slope}; }
    void copy(const Standing& from, int number) {
        power[number] = from.power[number];
        energy[number] = from.energy[number];
        moved[number] = from.moved[number];
        from_y[number] = from.from_y[number];
        from_rest[number] = from.from_rest[number];
        from_slope[number] = from.from_slope[number];
        since[number] = from.since[number];
    }
};

// Seconds of a number of ticks; the newest is remembered.
struct Lengths {
    std::int64_t ticks = -1;
    double seconds = 0.0;
    double of(const Clock& clock, std::int64_t count) {
        if (count != ticks) {
            ticks = count;
            seconds = clock.span(count);
        }
        return seconds;
    }
};

// All accounts of a level.
struct Accounts : Standing {
    std::vector<Account> of;
    std::size_t bonds = 0;  // the accounts of bonds come first, then those that the level around takes over
    std::vector<double> factor;
    std::vector<int> signal;     // the output
    std::vector<int> u;          // where the coefficients of the input begin
    std::vector<double> slopes;  // of linear models: C A, C B and D of one output each
    std::vector<Bend> bends;

    std::size_t size() const { return of.size(); }
    double residual(std::size_t bond) const { return energy[2 * bond + 1] - energy[2 * bond]; }
    void add(const AccountSetup& setup);
};

class EnergyLedger {
  public:
    explicit EnergyLedger(LevelState& state) : state_(state) {}

    Accounts accounts;  // given and taken, in turn

    // Finds where the numbers of accounts are; to be called when all children are there.
    void place();
    // Finds the accounts that can be closed without a look at the clock: held ones, and those of linear
    // models that were fed right before a step of a known length.
    void sort(CloseAccountsOperation& operation) const;

    bool open(const OpenAccountsOperation& operation);
    bool close(const CloseAccountsOperation& operation);

    // A column of the recorded table: of each bond the power given, the power taken and the residual.
    double column(int number) const;
    std::vector<double> residuals() const;
    double residual_since(const std::vector<double>& before) const;

    // Of the accounts of some children.
    void save(const std::vector<int>& children);
    void restore(const std::vector<int>& children);
    // Of all.
    void save(Snapshot& to) const;
    void restore(Snapshot& from);

  private:
    bool open(int number, bool held);
    double rest_of(const Account& account) const;
    double bend_of(const Account& account, const double* c, double rest, double s, double h) const;
    bool ask_slope(std::size_t number, double& slope);
    bool ask_start(std::size_t number, double& value);
    bool close_moving(int number, bool again, Lengths& step, Lengths& age);
    void close_held(int number, bool again, Lengths& step);
    void close_alike(const std::vector<int>& numbers, double h);
    void close_lines(const std::vector<int>& numbers, double h);
    void close_curves(const std::vector<int>& numbers, double h);
    template <int known> void close_curve(int number, double h);
    void copy(const std::vector<int>& children, const Standing& from, Standing& to) const;

    LevelState& state_;
    // when their children were last saved: per account the output, the tick, and where the account stood
    std::vector<double> saved_y_;
    std::vector<std::int64_t> saved_tick_;
    Standing saved_;
};

}  // namespace hocket
