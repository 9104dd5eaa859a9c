// Linear simulators: the twin of simulators/state_space.py.
// In:  matrices computed once in Python
// Out: the same bits as the specification: sums run column by column, left to right
#pragma once

#include <functional>

#include "engine/row_buffer.hpp"
#include "engine/simulator.hpp"

namespace hocket {

// One micro step: z' = Phi z + sum_k Gamma_k c_k; columns are contiguous.
struct Maps {
    std::vector<double> Phi;
    std::vector<double> Gamma;
};

// A step of some length: so many micro steps.
struct Length {
    std::int64_t ticks = 0;
    std::int64_t count = 1;
    double h = 0.0;
    double length = 0.0;  // of a micro step
    Maps maps;
    Maps first;
    std::vector<double>
        works;  // of a balanced model: what flows through each bond and besides, as forms of state and inputs
};

// What all simulators of one model share.
struct Linear {
    Linear() = default;
    Linear(const Linear&) = delete;
    Linear& operator=(const Linear&) = delete;

    int states = 0;  // of z: the state, and the history of a multistep method
    int size = 0;    // of x
    int inputs = 0;
    int outputs = 0;
    int rows = 1;
    bool multistep = false;
    bool feeds_through = false;  // D is not zero
    std::vector<double> A, B, C, D;
    std::vector<std::unique_ptr<Length>> lengths;
    std::function<void(std::int64_t)> ask;  // for a length that is not there; calls Python
    const Length* find(std::int64_t ticks) const {
        if (newest_ && newest_->ticks == ticks) return newest_;
        for (const auto& each : lengths)
            if (each->ticks == ticks) return each.get();
        return nullptr;
    }
    // Makes sure that a length is there, and found at once by all that share the model.
    bool provide(std::int64_t ticks) const {
        if (!ask) return find(ticks) != nullptr;  // other threads may be looking, too
        newest_ = find(ticks);
        if (!newest_) {
            ask(ticks);
            newest_ = find(ticks);
        }
        return newest_ != nullptr;
    }

  private:
    mutable const Length* newest_ = nullptr;  // that was provided; only with Python, hence on one thread
};

// Keeps the outputs at some ports after every micro step.
struct MicroRows {
    std::shared_ptr<RowBuffer> rows;
    std::vector<int> ports;
    const Clock* clock;
    std::vector<double> values;
};

// The model must outlive the simulator. Small systems get code for their exact size.
std::unique_ptr<Simulator> state_space(const Linear& model, const std::vector<double>& z, double last,
                                       std::unique_ptr<MicroRows> micro);

}  // namespace hocket
