// What a level knows of its children.
// In:  ticks and input polynomials
// Out: outputs written where the level wants them; false when something failed, with the reason kept
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/clock.hpp"
#include "engine/failure.hpp"
#include "engine/snapshot.hpp"

namespace hocket {

struct Accounts;
struct Slot;
class Watch;

// When a run starts, and when it ends, where that is known; in seconds.
struct StartTime {
    double t = 0.0;
    bool ends = false;
    double end = 0.0;
};

class Simulator {
  public:
    virtual ~Simulator() = default;
    // To the initial state: what was built in it has nothing to do.
    virtual bool start(const StartTime& /*when*/) { return true; }
    // Leaves the initialisation: the inputs are those of the last output.
    virtual bool ready() { return true; }
    // u: coefficients, a row per power of time, a column per input.
    virtual bool step(const Span& span, const double* u) = 0;
    virtual bool output(std::int64_t tick, const double* u, double* y) = 0;
    virtual bool slope(std::int64_t tick, const double* u, double* dy) = 0;
    // Step, then the outputs under the same held inputs, as a plain function: the hot loop saves two
    // look-ups.
    using StepOutput = bool (*)(Simulator&, const Span& span, const double* u, double* y);
    virtual StepOutput step_output() const {
        return [](Simulator& self, const Span& span, const double* u, double* y) {
            return self.step(span, u) && self.output(span.tick + span.ticks, u, y);
        };
    }
    // The same for neighbours of one kind that all stand where the span begins, without a call for each: up
    // to the first that does not, or that must be stepped by itself, or that fails.
    struct RunEnd {
        Slot* slot;
        bool good;
    };
    using StepRun = RunEnd (*)(Slot* first, Slot* last, const Span& span, const double* u, double* y);
    virtual StepRun step_run() const { return nullptr; }
    virtual double* state() { return nullptr; }          // of a linear model, where it stays
    virtual const void* hot() const { return nullptr; }  // what a step touches first: fetched ahead of time
    virtual bool uses_seconds() const { return true; }   // it looks at the seconds of a span
    virtual bool prepare(std::int64_t /*ticks*/) { return true; }  // to step by so many ticks
    virtual void set_rows(int /*rows*/) {}  // how many powers of time its inputs come with
    // The time of what it shows now: a level with a longer step shows what it reached last.
    virtual std::int64_t shown_at(std::int64_t tick) const { return tick; }
    virtual bool needs_python() const { return false; }
    virtual bool foreign() const { return false; }        // it may contain Python of its own, as some FMUs do
    virtual bool checks_itself() const { return false; }  // its outputs are known to be finite
    // Rollback, for those that can.
    virtual bool save(Snapshot& /*to*/) { return false; }
    virtual bool restore(Snapshot& /*from*/) { return false; }
    // Instants, for those that take part (EventSimulator in model/protocols.py).
    virtual bool takes_part() const { return false; }
    virtual void set_clock(const Clock& /*clock*/) {}  // in whose ticks it announces events
    virtual bool due(std::int64_t& tick) {             // of its next event
        tick = never_due;
        return true;
    }
    virtual bool react(std::int64_t /*tick*/, int /*n*/, const double* /*u*/, const std::uint8_t* /*present*/,
                       std::uint8_t* /*shown*/) {
        return true;
    }
    virtual bool commit(bool& again) {
        again = false;
        return true;
    }
    // Where events pile up: from now on they are at least so many seconds apart, if it can do that.
    virtual bool space_events(std::int64_t /*tick*/, double /*interval*/) { return true; }
    virtual void forget_past() {}  // what was before an event does not lead beyond it
    // The outputs as they are, without evaluating anything anew.
    virtual bool newest(std::int64_t tick, const double* u, double* y) { return output(tick, u, y); }
    // Which of its rows are final, so that they may be taken: those before the state that it may be rolled
    // back to; none: all of them. `inside`: within a step of the level around it.
    virtual void settle_rows(const Snapshot* /*restorable*/, bool /*inside*/) {}
    virtual void set_watch(Watch* /*watch*/) {}  // to be looked at in a long step
    // The slow lane: texts are handed on as they are.
    virtual bool get_text(int /*port*/, std::string& /*value*/) { return false; }
    virtual bool set_text(int /*port*/, const std::string& /*value*/) { return false; }
    // What the last call that returned false has to say; nothing, if its outputs speak for themselves.
    virtual Failure failure() const { return {}; }
    // Forgets a failure that a shorter step may mend.
    virtual bool forget_failure() { return false; }
    // The simulator whose outputs it replaces; none: it is one itself.
    virtual const std::shared_ptr<Simulator>* itself() const { return nullptr; }
    virtual const Accounts* accounts() const { return nullptr; }  // of the power bonds inside a level
};

}  // namespace hocket
