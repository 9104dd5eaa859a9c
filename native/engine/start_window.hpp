// The start window: a past for the extrapolators, found by letting simulators run ahead and back again. The
// twin of engine/start_window.py, operation for operation.
// In:  simulators at the start, with consistent outputs
// Out: polynomials of their outputs around the start; the simulators are where they were
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/failure.hpp"
#include "engine/simulator.hpp"
#include "engine/start_program.hpp"

namespace hocket {

// Per output of all leaves: coefficients in powers of the time since the start.
using Curves = std::vector<std::vector<double>>;

Curves cold_curves(const std::vector<double>& y);

class StartWindow {
  public:
    // `simulators`: of the leaves, in their order; `rows`: how many powers of time their inputs come with.
    StartWindow(const StartProgram& program, const StartProgram::Window& window, const Clock& clock,
                std::vector<Simulator*> simulators, std::vector<int> rows);

    // Curves through `degree` steps around the start; false: a simulator failed, and `failure` and `leaf` say
    // which, and how.
    bool find(const std::vector<double>& y, Curves& curves);

    Failure failure;
    int leaf = -1;

  private:
    // Who runs ahead for a leaf: its simulator, or one with matrices for such steps.
    struct Runner {
        Simulator* simulator = nullptr;
        std::unique_ptr<Simulator> stand_in;
        bool frozen = false;
        int rows = 1;  // of its inputs here
        Snapshot saved;
        std::vector<double> u, before;  // inputs; those of the run that its samples are of
        bool seen = false;
        std::vector<std::vector<double>> samples;  // per output: at the start and after each step
    };
    enum class Settled { good, none, failed };

    bool begin();
    bool end(const std::vector<int>& rows);
    void fill_inputs(int leaf, const Curves& curves);
    bool restore(int leaf);
    bool run_ahead(int leaf, bool& finite);
    bool sample(int leaf, int step);
    Settled settle(const std::vector<double>& y, Curves& curves);
    std::vector<double> fit(int leaf, int port) const;
    bool predicts_last(const std::vector<double>& curve, const std::vector<double>& column) const;
    bool fail(int number, Call call);

    const StartProgram& program_;
    const StartProgram::Window& window_;
    Clock clock_;
    double delta_;
    std::vector<Runner> runners_;
    std::vector<int> rows_;
    std::vector<std::uint8_t> held_, driving_;
    std::vector<double> moved_, y_;  // room
};

}  // namespace hocket
