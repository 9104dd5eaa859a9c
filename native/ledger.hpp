// The accounts of power bonds: the twin of ledger.py.
// In:  the outputs and the input polynomials of children, at both ends of their steps
// Out: power and energy per side of a bond
#pragma once

#include <cstdint>

namespace hocket {

// One side: factor * output * input of a child is the power that it sees. What a step under held inputs touches comes
// first, in a line of memory of its own.
struct alignas(64) Account {
    double factor = 1.0;
    double power = 0.0, energy = 0.0, moved = 0.0;
    double from_y = 0.0;      // the output at the start of the step under way,
    double from_rest = 0.0;   // and what the state gives to its slope there
    int signal = 0;           // its output
    int u = 0;                // where the coefficients of its input begin
    int slopes = -1;          // of a linear model: where the shares of state and inputs in the slope of the output are
    int states = 0;

    const double* z = nullptr;           // the state of a linear model
    const std::int64_t* base = nullptr;  // the tick that the coefficients are about
    std::int64_t since = -1;  // the tick at which the step under way began; -1: none is
    int rows = 1, stride = 1;  // how the coefficients lie
    int input = 0;            // below zero: the child keeps the account itself
    int child = 0;
    double from_slope = 0.0;  // of the output at the start of the step, as the simulator told it
    bool asked = false;       // whether the simulator is asked for the slope
    bool reacts = false;      // whether the output reacts at once
};

}  // namespace hocket
