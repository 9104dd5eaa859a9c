// Blocks: simulators that are formulas, the twins of simulators/block.py.
// In:  programs as simulators/formulas.py writes them down
// Out: the same bits: operation for operation, in the same order
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/simulator.hpp"

namespace hocket {

// Operations on registers: first what is given, then constants, then what each operation gives.
class Formulas {
  public:
    // In the order of OPERATIONS in simulators/formulas.py.
    enum class Code : int {
        add,
        subtract,
        multiply,
        divide,
        power,
        negative,
        sin,
        cos,
        tan,
        sqrt,
        exp,
        log,
        abs,
        floor,
        least,
        greatest,
        less,
        select,
        uniform,
        normal,
        count
    };
    struct Operation {
        Code code;
        std::array<int, 3> places;
    };
    Formulas() = default;
    // Raises std::invalid_argument for registers that are not there.
    Formulas(int given, const std::vector<double>& constants,
             const std::vector<std::array<int, 4>>& operations, std::vector<int> results);
    double* given() { return registers_.data(); }
    int count() const { return static_cast<int>(results_.size()); }
    void run(double* results);
    // What it is made of, for a file (export/plan_file.cpp).
    template <class List> void list(List& line) { line(first_, registers_, operations_, results_); }
    bool is_whole() const;  // all its registers are there

  private:
    int first_ = 0;  // the register of the first result of an operation
    std::vector<double> registers_;
    std::vector<Operation> operations_;
    std::vector<int> results_;
};

class Block final : public Simulator {
  public:
    struct Setup {
        int inputs = 0, outputs = 0;
        int degree = 0;         // the highest power of time in its inputs that it honours
        double longest = 0.0;   // micro step; 0: one per step
        bool instants = false;  // its level takes instants
        bool takes_part = false;
        bool moves = false;  // it has `advance`
        Formulas advance, show, next, react;
        std::vector<double> state;
    };
    explicit Block(Setup setup);
    const Setup& setup() const { return setup_; }  // its state is that of now

    void set_rows(int rows) override;
    bool step(const Span& span, const double* u) override;
    bool output(std::int64_t tick, const double* u, double* y) override;
    bool slope(std::int64_t, const double*, double*) override { return false; }
    bool save(Snapshot& to) override;
    bool restore(Snapshot& from) override;
    bool takes_part() const override { return setup_.takes_part; }
    void set_clock(const Clock& clock) override { clock_ = clock; }
    bool due(std::int64_t& tick) override;
    bool react(std::int64_t tick, int n, const double* u, const std::uint8_t* present,
               std::uint8_t* shown) override;
    bool commit(bool& again) override;

  private:
    double next_time();
    void find_reaction(double t, const double* u, const std::uint8_t* present, bool due);
    void catch_up(double limit, const double* u);

    Setup setup_;
    Clock clock_;
    int rows_ = 1;
    std::vector<double> moved_, following_;
};

}  // namespace hocket
