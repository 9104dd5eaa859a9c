// What a level knows of its children.
// In:  ticks and input polynomials
// Out: outputs written where the level wants them; false when something failed, with the reason kept
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/snapshot.hpp"

namespace hocket {

// Ticks to seconds with one rounded division, as clock.py does.
struct Clock {
    std::int64_t tick = 1;
    std::int64_t start = 0;
    std::int64_t denominator = 1;
    double time(std::int64_t ticks) const {
        return static_cast<double>(static_cast<Wide>(ticks) * tick + start) /
               static_cast<double>(denominator);
    }
    double span(std::int64_t ticks) const {
        return static_cast<double>(static_cast<Wide>(ticks) * tick) / static_cast<double>(denominator);
    }

  private:
    using Wide = __int128;  // fine ticks times long runs
};

// A step: from where, how far; in ticks, and in seconds for those who ask for them (Simulator::timed).
struct Span {
    std::int64_t tick = 0, ticks = 0;
    double t = 0.0, h = 0.0;
    static Span of(const Clock& clock, std::int64_t tick, std::int64_t ticks) {
        return {tick, ticks, clock.time(tick), clock.span(ticks)};
    }
};

enum class Call : int { step, output, slope, save, restore };

// Why a run ended.
struct Failure {
    enum class Kind : int {
        none,
        raised,
        stopped_early,
        not_finite,
        internal,
        loop_singular,
        loop_stuck,
        reported,
        no_agreement,
        not_met,
        no_energy
    };
    Kind kind = Kind::none;
    const void* level = nullptr;
    int child = -1;
    int port = -1;
    Call call = Call::step;
    std::int64_t tick = 0;
    std::int64_t ticks = 0;
    double value = 0.0;
};

// Rows waiting for the recorder: time, then one value per column.
struct Rows {
    int width = 1;
    std::int64_t interval = 1;
    std::int64_t newest = -1;  // tick of the newest row
    std::vector<double> data;
    std::size_t count() const { return data.size() / static_cast<std::size_t>(width); }
    void keep(Snapshot& to) const {
        to.keep(static_cast<std::int64_t>(data.size()));
        to.keep(newest);
    }
    void go_back(Snapshot& from) {
        data.resize(static_cast<std::size_t>(from.taken()));
        newest = from.taken();
    }
};

class Simulator {
  public:
    virtual ~Simulator() = default;
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
    virtual double* state() { return nullptr; }          // of a linear model, where it stays
    virtual const void* hot() const { return nullptr; }  // what a step touches first: fetched ahead of time
    virtual bool timed() const { return true; }          // it looks at the seconds of a span
    virtual bool prepare(std::int64_t /*ticks*/) { return true; }  // to step by so many ticks
    virtual void given(int /*rows*/) {}  // how many powers of time its inputs come with
    // The time of what it shows now: a level with a longer step shows what it reached last.
    virtual std::int64_t shown_at(std::int64_t tick) const { return tick; }
    virtual bool needs_python() const { return false; }
    virtual bool foreign() const { return false; }        // it may contain Python of its own, as some FMUs do
    virtual bool checks_itself() const { return false; }  // its outputs are known to be finite
    // Going back, for those that can.
    virtual bool keep(Snapshot& /*to*/) { return false; }
    virtual bool go_back(Snapshot& /*from*/) { return false; }
    // The slow lane: texts are handed on as they are.
    virtual bool get_text(int /*port*/, std::string& /*value*/) { return false; }
    virtual bool set_text(int /*port*/, const std::string& /*value*/) { return false; }
    // What the last call that returned false has to say; nothing, if its outputs speak for themselves.
    virtual Failure failure() const { return {}; }
};

}  // namespace hocket
