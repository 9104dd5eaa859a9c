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

    std::int64_t coarse = 0;  // what floats mean that cannot tell places apart; 0: they can

    // The tick of an event: the first place not before a time, or the nearest one (of two, the even one).
    std::int64_t event_tick(double seconds, bool nearest) const {
        constexpr Wide roundings = 4;
        // beyond the ticks of any run, on either side
        if (!(std::fabs(seconds) * static_cast<double>(denominator) < 0x1p62 * static_cast<double>(tick)))
            return seconds < 0.0 ? -never_due : never_due;
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
        const Wide from = whole - start;
        if (nearest && coarse > 0) {
            const Wide place = static_cast<Wide>(tick) * coarse;
            const Wide count = nearest_place(from, rest, shift, place);
            // how far it is: off - rest / 2^shift, against so many units of the last bit
            const Wide off = count * place - from, most = roundings * denominator;
            const Wide size = off < 0 ? -off : off;
            if (size <= (most >> shift) + 2) {
                const Wide distance = off * (static_cast<Wide>(1) << shift) - rest;
                if ((distance < 0 ? -distance : distance) <= most)
                    return static_cast<std::int64_t>(count * coarse);
            }
        }
        const Wide place = static_cast<Wide>(tick) * quantum;
        if (nearest) return static_cast<std::int64_t>(nearest_place(from, rest, shift, place) * quantum);
        Wide count = floor_place(from, place);
        if (from > count * place || rest > 0) ++count;
        return static_cast<std::int64_t>(count * quantum);
    }
    static Wide floor_place(Wide from, Wide place) {
        const Wide count = from / place;
        return count * place > from ? count - 1 : count;
    }
    // The multiple of a place next to from + rest / 2^shift; of two, the even one.
    static Wide nearest_place(Wide from, Wide rest, int shift, Wide place) {
        const Wide count = floor_place(from, place);
        // twice what is left against a place
        const Wide more = 2 * (from - count * place) - place;
        const Wide half = shift > 0 ? static_cast<Wide>(1) << (shift - 1) : 0;
        const int side = more >= 0    ? (more > 0 || rest > 0)
                         : more == -1 ? (shift == 0    ? -1
                                         : rest > half ? 1
                                         : rest < half ? -1
                                                       : 0)
                                      : -1;
        return side > 0 || (side == 0 && count % 2 != 0) ? count + 1 : count;
    }
    double time(std::int64_t ticks) const {
        std::int64_t product, sum;  // the same numbers as those of Wide, which take a while to become floats
        if (!__builtin_mul_overflow(ticks, tick, &product) && !__builtin_add_overflow(product, start, &sum))
            return static_cast<double>(sum) / static_cast<double>(denominator);
        return static_cast<double>(static_cast<Wide>(ticks) * tick + start) /
               static_cast<double>(denominator);
    }
    double span(std::int64_t ticks) const {
        std::int64_t product;
        if (!__builtin_mul_overflow(ticks, tick, &product))
            return static_cast<double>(product) / static_cast<double>(denominator);
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
