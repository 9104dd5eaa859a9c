// Algebraic loops inside a step, by Newton's method: the twin of engine/algebraic_loops.py, operation for
// operation.
// In:  the outputs that must agree with themselves, and the children that compute them
// Out: samples that do, or a failure
#pragma once

#include <memory>

#include "engine/input_fitting.hpp"
#include "engine/message_counter.hpp"
#include "engine/operations.hpp"
#include "engine/stepping.hpp"

namespace hocket {

class AlgebraicLoop {
  public:
    AlgebraicLoop(LevelState& state, InputFitting& fitting, Stepping& stepping,
                  const std::unique_ptr<MessageCounter>& messages)
        : state_(state), fitting_(fitting), stepping_(stepping), messages_(messages) {}

    // Adds the other unknowns of a loop whose children are fed with slopes: a slope follows every input at
    // once.
    void widen(SolveOperation& operation) const;
    bool solve(SolveOperation& operation);

  private:
    bool evaluate(const SolveOperation& operation, const double* guess, double* found);
    bool fail(const SolveOperation& operation, Failure::Kind kind, double residual);

    LevelState& state_;
    InputFitting& fitting_;
    Stepping& stepping_;
    const std::unique_ptr<MessageCounter>& messages_;
};

}  // namespace hocket
