#include "fmu/clocks.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

namespace hocket {

namespace {

constexpr __int128 largest_whole = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t simple_denominator = 1'000'000;          // 1/3, 5/7: meant as fractions
constexpr std::int64_t finest_decimal = 1'000'000'000'000'000;  // times of two hours still fit
constexpr std::int64_t finest_fraction = 1'000'000'000'000;     // any float from 1e-6 s on has one
constexpr __int128 furthest = largest_whole * largest_whole;    // ten times that is still a number

__int128 gcd(__int128 a, __int128 b) {
    if (a < 0) a = -a;
    while (b != 0) {
        const __int128 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The fraction with the least denominator that reads back as this float, by its continued fraction.
bool find_simple(double value, std::int64_t largest_denominator, Ratio& found) {
    std::int64_t n0 = 0, d0 = 1, n1 = 1, d1 = 0;
    long double rest = value;
    for (int k = 0; k < 40; ++k) {
        const long double whole = std::floor(rest);
        if (!(std::fabs(whole) < 1e12L)) return false;
        const auto a = static_cast<std::int64_t>(whole);
        const __int128 wide_n = static_cast<__int128>(a) * n1 + n0,
                       wide_d = static_cast<__int128>(a) * d1 + d0;
        if (wide_d > largest_denominator || wide_n > largest_whole || wide_n < -largest_whole) return false;
        const auto n = static_cast<std::int64_t>(wide_n), d = static_cast<std::int64_t>(wide_d);
        if (static_cast<double>(n) / static_cast<double>(d) == value) {
            found = {n, d};
            return true;
        }
        n0 = n1;
        d0 = d1;
        n1 = n;
        d1 = d;
        rest = 1.0L / (rest - whole);
    }
    return false;
}

}  // namespace

Ratio Ratio::reduce(__int128 n, __int128 d) {
    const __int128 common = std::max<__int128>(1, gcd(n, d));
    n /= common;
    d /= common;
    if (d > largest_whole || n > largest_whole || n < -largest_whole) return {0, 1, false};
    return {static_cast<std::int64_t>(n), static_cast<std::int64_t>(d)};
}

Ratio Ratio::of(double seconds) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, seconds, std::chars_format::scientific).ptr;
    __int128 n = 0, d = 1;
    int digits = 0, exponent = 0;
    bool behind = false;
    const char* at = text + (text[0] == '-');
    for (; at < end && *at != 'e'; ++at) {
        if (*at == '.') {
            behind = true;
            continue;
        }
        n = 10 * n + (*at - '0');
        ++digits;
        if (behind) d *= 10;
    }
    std::from_chars(at + (at[1] == '+' ? 2 : 1), end, exponent);
    Ratio simple;
    if (digits > 13 && find_simple(seconds, simple_denominator, simple)) return simple;
    for (; exponent > 0 && n <= largest_whole; --exponent) n *= 10;
    for (; exponent < 0 && d < furthest; ++exponent) d *= 10;
    if (n == 0) return {};
    const Ratio written = exponent == 0 ? reduce(text[0] == '-' ? -n : n, d) : Ratio{0, 1, false};
    if (written.fits && written.d <= finest_decimal) return written;
    return find_simple(seconds, finest_fraction, simple) ? simple : written;
}

Ratio Ratio::of_time(double seconds) {
    Ratio found = of(seconds);
    if (!found.fits && std::fabs(seconds) < 1.0)
        found = {static_cast<std::int64_t>(std::llround(std::ldexp(seconds, 62))), std::int64_t{1} << 62};
    found.measured = true;
    return found;
}

Ratio Ratio::after(std::int64_t count, const Ratio& interval) const {
    if (!fits || !interval.fits) return {0, 1, false};
    const Ratio span = reduce(static_cast<__int128>(count) * interval.n, interval.d);
    Ratio sum = !span.fits ? span
                           : reduce(static_cast<__int128>(n) * span.d + static_cast<__int128>(span.n) * d,
                                    static_cast<__int128>(d) * span.d);
    if (measured && span.fits && !sum.fits) sum = of_time(value() + span.value());
    sum.measured = measured;
    return sum;
}

bool Ratio::meets(const Ratio& other) const { return d / gcd(d, other.d) * other.d <= largest_whole; }

Clocks::Clocks(std::vector<ClockSetup> clocks) : setup(std::move(clocks)), state(setup.size()) {
    for (std::size_t k = 0; k < setup.size(); ++k)
        if (setup[k].is_input()) order.push_back(static_cast<int>(k));
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return setup[a].priority < setup[b].priority; });
}

double Clocks::due() const {
    double first = std::numeric_limits<double>::infinity();
    for (const ClockState& each : state)
        if (each.waits) first = std::min(first, each.next.value());
    return first;
}

void Clocks::start(double t) {
    now = Ratio::of(t);
    for (std::size_t k = 0; k < setup.size(); ++k) {
        state[k] = {};
        state[k].interval = setup[k].interval;
        if (setup[k].kind != ClockSetup::Kind::periodic) continue;
        state[k].base = state[k].next = now.after(1, setup[k].shift);
        state[k].waits = true;
    }
}

void Clocks::activate(double t, double grid, const std::uint8_t* present) {
    bool timed = false;
    for (int k : order) {
        const ClockSetup& clock = setup[k];
        ClockState& each = state[k];
        if (clock.is_timed())
            each.active = each.active || (each.waits && !each.ticked && each.next.value() <= t + grid);
        else
            each.active = each.active || (clock.place >= 0 && present[clock.place]);
        if (!each.active || !clock.is_timed()) continue;
        now = timed && now.value() > each.next.value() ? now : each.next;
        timed = true;
    }
    if (!timed && !(std::fabs(now.value() - t) <= grid)) now = Ratio::of_time(t);
}

void Clocks::end_instant() {
    for (std::size_t k = 0; k < setup.size(); ++k) {
        ClockState& each = state[k];
        if (each.active && setup[k].kind == ClockSetup::Kind::periodic) {
            each.ticked = true;
            ++each.count;
            each.next = each.base.after(each.count, each.interval);
        } else if (each.active && setup[k].is_timed()) {
            each.waits = false;  // until it tells an interval
        }
        each.active = false;
    }
}

void Clocks::end_time() {
    for (ClockState& each : state) each.ticked = false;
}

std::string Clocks::find_fault() const {
    const auto describe = [&](std::size_t k) {
        const Ratio& interval = state[k].interval;
        const std::string part = interval.d == 1 ? "" : "/" + std::to_string(interval.d);
        return "`" + setup[k].name + "` (" + std::to_string(interval.n) + part + " s)";
    };
    for (std::size_t k = 0; k < setup.size(); ++k) {
        if (!setup[k].is_timed()) continue;
        if (state[k].waits && !state[k].next.fits)
            return "the next tick of its clock " + describe(k) +
                   " is not a fraction in 64 bits: its interval has no common tick with the time reached";
        for (std::size_t other = 0; other < k && setup[k].kind == ClockSetup::Kind::periodic; ++other)
            if (setup[other].kind == ClockSetup::Kind::periodic &&
                !state[k].interval.meets(state[other].interval))
                return "the intervals of its clocks " + describe(other) + " and " + describe(k) +
                       " have no common tick in 64 bits";
    }
    return "";
}

bool Clocks::set_interval(int clock, const Ratio& interval) {
    ClockState& each = state[clock];
    if (!interval.fits) return false;
    const bool periodic = setup[clock].kind == ClockSetup::Kind::periodic;
    if (interval.n < 0 || (periodic && interval.n == 0)) return false;
    if (!periodic) {  // from its own tick, or from this event mode: that is now
        each.interval = interval;
        each.next = now.after(1, interval);
        each.waits = true;
    } else if (interval.n * static_cast<__int128>(each.interval.d) !=
               each.interval.n * static_cast<__int128>(interval.d)) {
        const bool before = each.count == 0;
        each.interval = interval;
        if (before) return true;
        each.base = now;  // a tunable interval counts from now
        each.count = 1;
        each.next = now.after(1, interval);
    }
    return true;
}

}  // namespace hocket
