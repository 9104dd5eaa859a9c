// Bodies iterated until they agree with themselves: the twin of engine/reference/iteration.py.
// In:  a body that begins by restoring its children
// Out: samples that agree, or a failure with the residuals on the way
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/message_counter.hpp"
#include "engine/operations.hpp"

namespace hocket {

struct IterationCounts {
    std::int64_t repeats = 0, total = 0, most = 0;
    void add(std::int64_t sweeps) {
        ++repeats;
        total += sweeps;
        most = std::max(most, sweeps);
    }
};

class Iteration {
  public:
    Iteration(LevelState& state, ProgramRunner& runner, const std::unique_ptr<MessageCounter>& messages)
        : state_(state), runner_(runner), messages_(messages) {}

    void add(std::shared_ptr<Accelerator> accelerator) { accelerators_.push_back(std::move(accelerator)); }
    bool repeat(RepeatOperation& operation);

    const IterationCounts& counts() const { return counts_; }
    const std::vector<double>& residuals() const { return residuals_; }

    void list_state(SnapshotLine& line) { line(counts_.repeats, counts_.total, counts_.most); }
    void save(Snapshot& to) const;
    void restore(Snapshot& from);

  private:
    bool iterate(RepeatOperation& operation);
    Values predict(const RepeatOperation& operation, std::int64_t& samples) const;
    bool fail(const RepeatOperation& operation);

    LevelState& state_;
    ProgramRunner& runner_;
    const std::unique_ptr<MessageCounter>& messages_;
    std::vector<std::shared_ptr<Accelerator>> accelerators_;
    IterationCounts counts_;
    std::vector<double> residuals_;  // of the newest iteration
};

}  // namespace hocket
