// Children saved and restored within a step: the twin of engine/reference/rollback.py.
// In:  children by their numbers
// Out: simulators, clocks, samples, filters and accounts as they were when the children were saved
#pragma once

#include <cstdint>
#include <vector>

#include "engine/energy_ledger.hpp"
#include "engine/input_fitting.hpp"
#include "engine/level_state.hpp"

namespace hocket {

class Rollback {
  public:
    Rollback(LevelState& state, InputFitting& fitting, EnergyLedger& ledger)
        : state_(state), fitting_(fitting), ledger_(ledger) {}

    bool save(const std::vector<int>& children);
    // In a Repeat what is newer than the state restored stays behind the old samples: the next sweep begins
    // with it.
    bool restore(const std::vector<int>& children);
    // The state that a child may be rolled back to in the step under way; none: it was not saved in it.
    const Snapshot* restorable(std::size_t child) const {
        const bool fresh = child < saved_.size() && saved_[child].step == state_.steps;
        return fresh ? &saved_[child].simulator : nullptr;
    }

  private:
    // Where a child was saved; its memory is used again.
    struct Saved {
        Snapshot simulator;
        std::int64_t tick = 0, shown = 0;
        std::int64_t step = -1;  // the step in which it was saved
        std::vector<double> y;
        std::vector<Ring> rings;
        std::vector<FittedInput::Filter> filters;
    };
    LevelState& state_;
    InputFitting& fitting_;
    EnergyLedger& ledger_;
    std::vector<Saved> saved_;  // per child
};

}  // namespace hocket
