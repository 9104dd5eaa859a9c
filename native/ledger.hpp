// The accounts of power bonds: the twin of ledger.py.
// In:  the outputs and the input polynomials of children, at both ends of their steps
// Out: power and energy per side of a bond
#pragma once

#include <cstdint>

namespace hocket {

// One side: factor * output * input of a child is the power that it sees. What a step under held inputs touches comes first.
struct alignas(64) Account {
    double factor = 1.0;
    double power = 0.0, energy = 0.0, moved = 0.0;
    double from_y = 0.0;      // the output at the start of the step under way
    std::int64_t since = -1;  // the tick of that start; -1: no step is under way
    const std::int64_t* tick = nullptr;  // of the child
    int signal = 0;           // its output
    int u = 0;                // where the coefficients of its input begin,

    int rows = 1, stride = 1;  // and how they lie;
    int first = 0;            // those of the child's first input
    int input = 0;            // below zero: the child keeps the account itself
    const std::int64_t* base = nullptr;  // the tick that they are about
    double from_slope = 0.0, from_rest = 0.0;  // of the output at the start of the step: as told; what the state gives to it
    const double* z = nullptr;  // the state of a linear model,
    int slopes = -1;            // and where its share in the slope of the output is, with that of the inputs
    int states = 0;
    int child = 0;
    bool asked = false;       // whether the simulator is asked for the slope
    bool reacts = false;      // whether the output reacts at once
    double saved_y = 0.0;     // the output when the child was last saved
};

}  // namespace hocket
