// How fast events follow each other: the twin of model/event_pace.py, operation for operation.
// In:  the ticks of the events of one child, as they are met
// Out: whether they pile up (Zeno) or chatter, and how far the limit is
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/snapshot.hpp"

namespace hocket {

enum class Pace : int { fine, zeno, chattering };

class EventPace {
  public:
    // `step`: of the level; `shortest`: intervals up to this are as short as they can be.
    Pace count(std::int64_t tick, std::int64_t step, std::int64_t shortest) {
        while (!ticks_.empty() && ticks_.back() >= tick) ticks_.pop_back();
        ticks_.push_back(tick);
        if (ticks_.size() < 3) return Pace::fine;
        const std::int64_t now = interval(1), before = interval(2);
        if (now > shortest && static_cast<double>(now) > shrinking * static_cast<double>(before)) {
            ticks_.erase(ticks_.begin(), ticks_.end() - 2);
            return Pace::fine;
        }
        if (chatters(shortest)) return Pace::chattering;
        return piles_up(step) ? Pace::zeno : Pace::fine;
    }

    double left() const { return left_; }  // ticks from the newest event to the limit
    void list_state(SnapshotLine& line) {
        line.growing(ticks_);
        line(left_);
    }

  private:
    static constexpr int intervals = 8, crowd = 64, many = 32;
    static constexpr double shrinking = 0.995, stable = 0.01, near = 0x1p-13;

    // The k-th newest.
    std::int64_t interval(int k) const { return ticks_.end()[-k] - ticks_.end()[-k - 1]; }

    bool chatters(std::int64_t shortest) const {
        if (ticks_.size() <= many) return false;
        for (int k = 1; k <= many; ++k)
            if (interval(k) > shortest) return false;
        return true;
    }

    bool piles_up(std::int64_t step) {
        if (ticks_.size() <= intervals) return false;
        double least = 1.0, most = 0.0, ratio = 1.0;
        for (int k = intervals - 1; k > 0; --k) {
            ratio = static_cast<double>(interval(k)) / static_cast<double>(interval(k + 1));
            least = std::min(least, ratio);
            most = std::max(most, ratio);
        }
        if (most > shrinking || most - least > stable * most) return false;
        left_ = static_cast<double>(interval(1)) * ratio / (1.0 - ratio);
        const bool crowded = ticks_.size() > crowd && ticks_.back() - ticks_.end()[-crowd - 1] <= step;
        return crowded || left_ <= near * static_cast<double>(ticks_.back() - ticks_.front());
    }

    std::vector<std::int64_t> ticks_;
    double left_ = 0.0;
};

}  // namespace hocket
