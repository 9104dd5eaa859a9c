// The start: outputs of all levels that agree with each other, and a past for the extrapolators. The twin of
// engine/initialise.py, operation for operation; no Python is needed where no simulator does.
// In:  a tree of levels as it was built, whose clock begins at tick 0; its simulators are started, or start
//      themselves (Simulator::start)
// Out: consistent samples in every exchange memory at tick 0; or why there are none
#pragma once

#include <vector>

#include "engine/failure.hpp"
#include "engine/simulator.hpp"
#include "engine/start_program.hpp"

namespace hocket {

class Level;

struct StartReport {
    // A leaf that is initialised once, and was so with another input than it has now.
    struct Late {
        int leaf, input;
        double used, now;
    };
    Failure failure;             // of `level` and `child`; of a loop: `port` is the number of its round
    std::vector<int> unsettled;  // places of outputs that keep changing: the failure is `not_settled`
    std::vector<Late> late;
    bool failed() const { return failure.kind != Failure::Kind::none; }
};

// Starts the tree. `when`: the time of tick 0, and the end of the run where it is known; simulators that were
// started before, by Python, are not started again: `started`.
StartReport start(Level& root, const StartProgram& program, const StartTime& when, bool started = false);

}  // namespace hocket
