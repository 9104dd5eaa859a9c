// Time in ticks, and in seconds for those that ask for it: the twin of model/clock.py.
// In:  ticks
// Out: seconds, with one rounded division
#pragma once

#include <cstdint>

namespace hocket {

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

// A step: from where, how far; in ticks, and in seconds for simulators that use them (Simulator::timed).
struct Span {
    std::int64_t tick = 0, ticks = 0;
    double t = 0.0, h = 0.0;
    static Span of(const Clock& clock, std::int64_t tick, std::int64_t ticks) {
        return {tick, ticks, clock.time(tick), clock.span(ticks)};
    }
};

}  // namespace hocket
