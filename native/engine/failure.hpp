// Why a run ended: data for the messages that Python writes.
// In:  failures, from any thread
// Out: the first of them
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace hocket {

enum class Call : int { step, output, slope, save, restore, due, react, commit, space_events, start };

struct Failure {
    enum class Kind : int {
        none,
        raised,
        stopped_early,
        not_finite,
        internal,
        loop_singular,
        loop_not_converged,
        reported,
        not_converged,
        tolerance_not_met,
        no_energy,
        endless_instants,
        past_event,   // announced at the start, or after commit(), and over then
        zeno,         // events that pile up before some time
        chattering,   // events as close together as time can tell
        never_whole,  // a step that was made shorter again and again
        ended,        // it asks to end the simulation
        not_settled   // at the start: outputs keep changing
    };
    Kind kind = Kind::none;
    int level = -1;  // its number; below zero: the level that hears of it
    int child = -1;
    int port = -1;  // of the child; which loop, iteration or step control of the plan, if it is about one
    Call call = Call::step;
    std::int64_t tick = 0;
    std::int64_t ticks = 0;
    double value = 0.0;

    // Whether a shorter step may mend it.
    bool mendable() const {
        return kind == Kind::stopped_early || kind == Kind::not_converged || kind == Kind::loop_singular ||
               kind == Kind::loop_not_converged || kind == Kind::tolerance_not_met;
    }
};

// Simulators of this process that have asked to end the simulation they are in: looked at between steps.
struct EndRequests {
    std::atomic<std::uint64_t> ever{0};  // so that it is seen that there is a new one
    std::atomic<int> now{0};
};
inline EndRequests end_requests;

// The first failure of a level; children may fail on several threads at once.
class FailureLog {
  public:
    const Failure& first() const { return first_; }

    // Keeps what `describe` returns, unless something failed before; returns false, as a step that failed
    // does.
    template <class Describe> bool add(Describe describe) {
        std::lock_guard lock(mutex_);
        if (first_.kind == Failure::Kind::none) first_ = describe();
        return false;
    }

    // Forgets a failure that a shorter step may mend; false: it is of another kind.
    bool forget() {
        if (!first_.mendable()) return false;
        first_ = {};
        return true;
    }

    void forget_all() { first_ = {}; }  // the state is another one

  private:
    Failure first_;
    std::mutex mutex_;
};

}  // namespace hocket
