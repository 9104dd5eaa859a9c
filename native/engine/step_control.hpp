// Steps as long as their error allows: the twin of engine/reference/step_control.py, operation for
// operation.
// In:  a body, and what its steps may err
// Out: the end of the level's step, reached in as many parts as the tolerance asks for
#pragma once

#include <memory>
#include <vector>

#include "engine/energy_ledger.hpp"
#include "engine/instants.hpp"
#include "engine/operations.hpp"

namespace hocket {

class StepControl {
  public:
    StepControl(LevelState& state, Simulator& level, ProgramRunner& runner, EnergyLedger& ledger,
                Instants& instants)
        : state_(state), level_(level), runner_(runner), ledger_(ledger), instants_(instants) {}

    void add(std::shared_ptr<StepSizeController> controller) { controller_ = std::move(controller); }
    bool active() const { return controller_ != nullptr; }
    bool adapt(AdaptOperation& operation);
    // Does a body to the end of the step, in as many parts as there are events on the way.
    bool attempt(TryOperation& operation);
    void end_jump() {
        if (controller_) controller_->begin();
    }
    bool ends_outside = false;  // the level around handles steps that end early in this one

    // The state that the level may be rolled back to; none: the step under way stays as it is.
    const Snapshot* restorable() const {
        if (controller_) return saved_in_ == state_.steps ? &controller_->start : nullptr;
        return tried_in_ == state_.steps ? tried_ : nullptr;
    }

    const StepCounts& counts() const { return counts_; }
    void list_state(SnapshotLine& line) {
        line(counts_.accepted, counts_.rejected, counts_.shortest, counts_.longest, counts_.passed,
             counts_.passed_at, counts_.worst, counts_.seen);
    }
    void save(Snapshot& to) const {
        if (controller_) controller_->save(to);
    }
    void restore(Snapshot& from) {
        if (controller_) controller_->restore(from);
    }

  private:
    bool try_step(AdaptOperation& operation, std::int64_t start, std::int64_t span, double& ratio);
    bool make_step(AdaptOperation& operation, std::int64_t start, std::int64_t span);
    bool make_twice(AdaptOperation& operation, std::int64_t start, std::int64_t span, double& error);
    bool scale(Program& body, std::int64_t span);
    bool prepare(const std::vector<int>& children, std::int64_t ticks);
    double defect(const AdaptOperation& operation) const;
    double difference_of_orders(const AdaptOperation& operation, double h) const;

    LevelState& state_;
    Simulator& level_;  // saved at the start of a step, restored when the step is rejected
    ProgramRunner& runner_;
    EnergyLedger& ledger_;
    Instants& instants_;
    const Snapshot* tried_ = nullptr;
    std::int64_t tried_in_ = -1;                      // the step of the level in which a Try saved it
    std::shared_ptr<StepSizeController> controller_;  // none: the level is not adaptive
    StepCounts counts_;
    std::int64_t saved_in_ = -1;  // the step of the level in which its start was saved
};

}  // namespace hocket
