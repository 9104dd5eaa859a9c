// The step to be tried next, and the errors that led to it: the twin of MacroStepController in
// engine/reference/step_control.py.
// In:  errors in parts of the tolerance
// Out: lengths in ticks
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/snapshot.hpp"

namespace hocket {

struct StepSizeController {
    enum class Estimate : int { defect, orders, richardson, energy };
    double tolerance = 1.0;
    Estimate estimate = Estimate::defect;
    bool per_unit = true;
    std::array<double, 3> gains{1.0, 0.0,
                                0.0};  // of the newest error, of the one before, of the one before that
    std::int64_t quantum = 1, largest = 1, wanted = 1, first = 1;
    bool rejects = false;
    int passes = 0;  // how many of the smallest steps in a row may have too large an error
    double safety = 0.9, most = 3.0, least = 0.2, power = 1.0;
    double before = 1.0, earlier = 1.0;
    std::int64_t in_a_row = 0;  // of such steps
    std::int64_t scaled = -1;   // the span that the steps of the body are parts of
    Snapshot start;             // the level at the start of the step

    bool may_pass() const { return in_a_row < passes || (passes > 0 && estimate == Estimate::orders); }
    void begin() {  // at the start, and after an event: nothing is known yet
        wanted = first;
        before = earlier = 1.0;
        in_a_row = 0;
    }
    std::int64_t share_out(std::int64_t left) const;
    std::int64_t next(std::int64_t span, double ratio, bool accepted) const;
    void accept(std::int64_t span, double ratio, bool cut);
    void save(Snapshot& to) const;
    void restore(Snapshot& from);
};

// How many steps an adaptive level made, and how long they were.
struct StepCounts {
    std::int64_t accepted = 0, rejected = 0, shortest = 0, longest = 0;
    std::int64_t passed = 0, passed_at = 0;  // smallest steps whose error stayed too large, the first of them
    double worst = 0.0;                      // the largest error of these
    double seen = 0.0;                       // of all that were accepted
    void add_passed(std::int64_t start, double ratio) {
        if (passed == 0) passed_at = start;
        ++passed;
        worst = std::max(worst, ratio);
    }
    void add(std::int64_t span, double ratio) {
        ++accepted;
        seen = std::max(seen, ratio);
        shortest = shortest == 0 ? span : std::min(shortest, span);
        longest = std::max(longest, span);
    }
};

}  // namespace hocket
