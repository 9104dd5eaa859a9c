// Time in ticks, and in seconds for those that ask for it: the twin of model/clock.py.
// In:  ticks
// Out: seconds, with one rounded division
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hocket {

constexpr std::int64_t never_due = std::numeric_limits<std::int64_t>::max();

struct Clock {
    using Wide = __int128;  // fine ticks times long runs
    std::int64_t tick = 1;
    std::int64_t start = 0;
    std::int64_t denominator = 1;
    std::int64_t quantum = 1;  // events happen at multiples of so many ticks

    // The tick of an event: the first place not before a time, or the nearest one (of two, the even one).
    std::int64_t event_tick(double seconds, bool nearest) const {
        int exponent = 0;
        const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(seconds, &exponent), 53));
        exponent -= 53;
        // seconds * denominator = whole + rest / 2^shift
        Wide whole = static_cast<Wide>(mantissa) * denominator, rest = 0;
        int shift = 0;
        if (exponent >= 0) {
            whole <<= std::min(exponent, 62);
        } else {
            shift = std::min(-exponent, 120);
            const Wide product = whole;
            whole = product >> shift;
            rest = product - (whole << shift);
        }
        const Wide place = static_cast<Wide>(tick) * quantum, from = whole - start;
        Wide count = from / place;
        if (count * place > from) --count;
        const Wide left = from - count * place;  // of a place, with the rest
        if (!nearest) {
            if (left > 0 || rest > 0) ++count;
        } else {
            // twice what is left against a place
            const Wide more = 2 * left - place;
            const Wide half = shift > 0 ? static_cast<Wide>(1) << (shift - 1) : 0;
            const int side = more >= 0    ? (more > 0 || rest > 0)
                             : more == -1 ? (shift == 0    ? -1
                                             : rest > half ? 1
                                             : rest < half ? -1
                                                           : 0)
                                          : -1;
            if (side > 0 || (side == 0 && count % 2 != 0)) ++count;
        }
        return static_cast<std::int64_t>(count * quantum);
    }
    double time(std::int64_t ticks) const {
        return static_cast<double>(static_cast<Wide>(ticks) * tick + start) /
               static_cast<double>(denominator);
    }
    double span(std::int64_t ticks) const {
        return static_cast<double>(static_cast<Wide>(ticks) * tick) / static_cast<double>(denominator);
    }
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
