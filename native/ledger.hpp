// The accounts of power bonds: the twin of ledger.py.
// In:  the outputs and the input polynomials of children, at both ends of their steps
// Out: power and energy per side of a bond
#pragma once

#include <cstdint>

namespace hocket {

// One side: factor * output * input of a child is the power that it sees.
struct Account {
    double factor = 1.0;
    int signal = 0;           // its output
    int input = 0;            // below zero: the child keeps the account itself
    int u = 0, rows = 1, stride = 1;  // where the coefficients of its input are
    int first = 0;            // and those of the child's first input
    const std::int64_t *tick = nullptr, *base = nullptr;  // of the child
    std::int64_t since = -1;  // the tick at which the step under way began; -1: none is
    double power = 0.0, energy = 0.0, moved = 0.0;
    double from_y = 0.0, from_slope = 0.0, from_rest = 0.0;  // at the start of the step under way
    const double* z = nullptr;  // the state of a linear model,
    int slopes = -1;            // and where its share in the slope of the output is, with that of the inputs
    int states = 0;
    int child = 0;
    bool asked = false;       // whether the simulator is asked for the slope
    bool reacts = false;      // whether the output reacts at once
    double saved_y = 0.0;     // the output when the child was last saved
};

}  // namespace hocket
