// The accounts of power bonds: the twin of ledger.py.
// In:  the outputs and the input polynomials of children, at both ends of their steps
// Out: power and energy per side of a bond
#pragma once

#include <cstdint>

namespace hocket {

// One side: factor * output * input of a child is the power that it sees.
struct Account {
    int child = 0, signal = 0, input = 0;
    double factor = 1.0;
    bool sloped = false;      // whether the slope of the output is asked for
    double power = 0.0, energy = 0.0;
    double at_start = 0.0, from_y = 0.0, from_slope = 0.0;  // power, output and slope at the start of the step under way
    double saved_y = 0.0;     // the output when the child was last saved
    std::int64_t since = -1;  // the tick at which the step under way began; -1: none is
};

}  // namespace hocket
