// Clocks of FMI 3: which of them tick at an instant, in which order, and when the next tick is due.
// In:  what the model description says of clocks; intervals that the FMU tells; what is present
// Out: the clocks that are active, the time of the next tick
//
// Clocks that tick at the same instant come by priority, the smallest number first, and those of equal
// priority as the model description lists them. Ticks are counted, not added up: the k-th tick of a periodic
// clock is at start + shift + k interval, a fraction.
#pragma once

#include <cstdint>
#include <vector>

#include "fmu/fmi.hpp"

namespace hocket {

struct Ratio {
    std::int64_t n = 0, d = 1;
    bool exact =
        true;  // false: 64 bits do not hold the fraction that was meant, and this is the nearest that fits
    double value() const { return static_cast<double>(static_cast<long double>(n) / d); }
    // What a float was meant as: the decimal it is written as, or a fraction such as 1/3; of more digits than
    // 64 bits hold, as many as a float has. That is all a float can say: it counts as exact.
    static Ratio of(double seconds);
    static Ratio reduce(__int128 n, __int128 d, bool exact = true);
    friend Ratio operator+(const Ratio& a, const Ratio& b) {
        return reduce(static_cast<__int128>(a.n) * b.d + static_cast<__int128>(b.n) * a.d,
                      static_cast<__int128>(a.d) * b.d, a.exact && b.exact);
    }
    friend Ratio operator*(std::int64_t k, const Ratio& a) {
        return reduce(static_cast<__int128>(k) * a.n, a.d, a.exact);
    }
};

struct ClockSetup {
    enum class Kind : int { triggered, output, periodic, changing, countdown };
    fmi::Reference reference = 0;
    Kind kind = Kind::triggered;
    int place = -1;     // of its port: an input that triggers it, or an output that shows it
    int priority = 0;   // the smallest number ticks first
    bool told = false;  // the FMU tells interval and shift, when initialisation ends
    bool tunable = false;
    bool fractions = false;  // it tells them as fractions
    Ratio interval, shift;
    bool is_input() const { return kind != Kind::output; }
    bool is_timed() const { return is_input() && kind != Kind::triggered; }
};

// What changes while it runs, and is saved.
struct ClockState {
    bool waits = false;  // for its next tick
    bool ticked = false, active = false;
    bool found = false;  // its base is the time of an event, a float: not the start of the run
    std::int64_t count = 0;
    Ratio base, next, interval;
};

class Clocks {
  public:
    explicit Clocks(std::vector<ClockSetup> clocks);
    bool empty() const { return setup.empty(); }
    double due() const;  // the next tick; infinity: none is known
    // Which clocks tick at t: those that are triggered, and those that are due within `grid` seconds.
    void activate(double t, double grid, const std::uint8_t* present);
    void start(double t);
    void end_instant();  // none is active any more
    void end_time();     // the event mode is over
    // A periodic clock whose next tick is a fraction that 64 bits do not hold; -1: none.
    int find_inexact() const;
    // The interval of a clock, or a new one; false: it is not allowed.
    bool set_interval(int clock, const Ratio& interval);
    std::vector<ClockSetup> setup;
    std::vector<ClockState> state;
    std::vector<int> order;  // of simultaneous ticks
    Ratio now;               // the time of the instant
};

}  // namespace hocket
