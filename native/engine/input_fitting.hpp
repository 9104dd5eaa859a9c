// Samples become polynomials: the twin of engine/memory.py's feeding, and of model/extrapolators.py.
// In:  the samples in the exchange memory
// Out: coefficients for the inputs of children
#pragma once

#include <cstdint>
#include <vector>

#include "engine/level_state.hpp"
#include "engine/operations.hpp"

namespace hocket {

// One driven input that is more than a copied value.
struct FittedInput {
    enum class Kind : int { hold, polynomial, hermite, nepce, passed, passed_hold, latch, correction };
    Kind kind = Kind::hold;
    int child = 0;
    int input = 0;
    int source = 0;  // an output of a sibling, or an input of the level
    int samples = 1;
    double alpha = 0.0;
    double gain = 1.0;
    double offset = 0.0;
    struct Filter {  // what NEPCE remembers
        std::int64_t seen = 0;
        double before = 0.0, after = 0.0;
        bool fresh = false;  // it begins anew with the next sample
    } filter;
    bool converts = false;  // gain or offset change the value
};

class InputFitting {
  public:
    explicit InputFitting(LevelState& state) : state_(state) {}

    void add(const FittedInput& input);
    const FittedInput& operator[](int number) const { return inputs_[number]; }
    FittedInput::Filter& filter(int number) { return inputs_[number].filter; }

    // What a Feed of these children has to do.
    FedInputs collect(const std::vector<int>& children) const;
    FedInputs collect(int child, const std::vector<int>& ports) const;
    bool feed(const FedInputs& fed) {
        ExchangeMemory& memory = state_.memory;
        const double* y = memory.y.data();
        double* u = memory.u.data();
#pragma GCC unroll 4
        for (const Copy& copy : fed.copies) u[copy.to] = y[copy.from];
        for (int child : fed.based) state_.children[child].base = state_.slots[child].tick;
        if (!fed.fits.empty()) fit(fed.fits);
        for (int child : fed.texted)
            if (!pass_texts(child)) return false;
        return true;
    }
    // Some inputs of a child; the curves of the others count from the same time as theirs.
    bool feed(int child, const FedInputs& fed) {
        state_.move_inputs(child);
        return feed(fed);
    }

    // What is remembered of a signal begins with its next sample.
    void begin_anew(int signal) {
        for (FittedInput& each : inputs_)
            if (each.kind == FittedInput::Kind::nepce && each.source == signal) each.filter.fresh = true;
    }

    void begin_anew() {  // all that is remembered
        for (FittedInput& each : inputs_) each.filter.fresh = each.kind == FittedInput::Kind::nepce;
    }

    void save(Snapshot& to) const;
    void restore(Snapshot& from);

  private:
    void fit(const std::vector<int>& numbers);
    void fit(FittedInput& input);
    bool pass_texts(int child);

    LevelState& state_;
    std::vector<FittedInput> inputs_;
};

}  // namespace hocket
