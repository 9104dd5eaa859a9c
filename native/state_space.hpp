// Linear simulators: the twin of state_space.py.
// In:  matrices computed once in Python
// Out: the same bits as the specification: sums run column by column, left to right
#pragma once

#include "simulator.hpp"

namespace hocket {

// One micro step: z' = Phi z + sum_k Gamma_k c_k; columns are contiguous.
struct Maps {
    std::vector<double> Phi;
    std::vector<double> Gamma;
};

// What all simulators of one model share, for one length of step.
struct Linear {
    int states = 0;  // of z: the state, and the history of a multistep method
    int size = 0;    // of x
    int inputs = 0;
    int outputs = 0;
    int rows = 1;
    int count = 1;  // micro steps
    std::int64_t ticks = 0;
    double h = 0.0;
    double length = 0.0;
    bool multistep = false;
    bool feeds_through = false;  // D is not zero
    Maps maps;
    Maps first;
    std::vector<double> A, B, C, D;
};

// Keeps the outputs at some ports after every micro step.
struct MicroRows {
    std::shared_ptr<Rows> rows;
    std::vector<int> ports;
    const Clock* clock;
    std::vector<double> values;
};

// The model must outlive the simulator. Small systems get code for their exact size.
std::unique_ptr<Simulator> state_space(const Linear& model, const std::vector<double>& z, bool begun,
                                       std::unique_ptr<MicroRows> micro);

}  // namespace hocket
