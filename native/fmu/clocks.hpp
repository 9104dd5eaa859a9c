// Clocks of FMI 3: which of them tick at an instant, in which order, and when the next tick is due.
// In:  what the model description says of clocks; intervals that the FMU tells; what is present
// Out: the clocks that are active, the time of the next tick
//
// Clocks that tick at the same instant come by priority, the smallest number first, and those of equal
// priority as the model description lists them. Ticks are counted, not added up: the k-th tick of a periodic
// clock is at start + shift + k interval, a fraction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fmu/fmi.hpp"

namespace hocket {

struct Ratio {
    std::int64_t n = 0, d = 1;
    bool fits = true;       // false: it has no numerator and denominator in 64 bits
    bool measured = false;  // a time that was found: as good as a float, no better
    double value() const { return static_cast<double>(static_cast<long double>(n) / d); }
    // What a float was meant as: the decimal it is written as, or a fraction such as 1/3.
    static Ratio of(double seconds);
    static Ratio of_time(double seconds);  // of something that happened
    static Ratio reduce(__int128 n, __int128 d);
    // The tick so many intervals behind a time. Behind one that was found it may be rounded, as that is.
    Ratio after(std::int64_t count, const Ratio& interval) const;
    // Whether both are whole numbers of some tick that has 64 bits.
    bool meets(const Ratio& other) const;
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
    std::string name;
    bool is_input() const { return kind != Kind::output; }
    bool is_timed() const { return is_input() && kind != Kind::triggered; }
};

// What changes while it runs, and is saved.
struct ClockState {
    bool waits = false;  // for its next tick
    bool ticked = false, active = false;
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
    // What is wrong with the times of ticks that are not fractions in 64 bits; empty: nothing.
    std::string find_fault() const;
    // The interval of a clock, or a new one; false: it is not allowed.
    bool set_interval(int clock, const Ratio& interval);
    std::vector<ClockSetup> setup;
    std::vector<ClockState> state;
    std::vector<int> order;  // of simultaneous ticks
    Ratio now;               // the time of the instant
};

}  // namespace hocket
