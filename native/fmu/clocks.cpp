#include "fmu/clocks.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

namespace hocket {

namespace {

constexpr __int128 largest_whole = std::numeric_limits<std::int64_t>::max();

__int128 gcd(__int128 a, __int128 b) {
    if (a < 0) a = -a;
    while (b != 0) {
        const __int128 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The fraction with a denominator up to a million that is this float, by its continued fraction.
bool find_simple(double value, Ratio& found) {
    std::int64_t n0 = 0, d0 = 1, n1 = 1, d1 = 0;
    double rest = value;
    for (int k = 0; k < 40; ++k) {
        const double whole = std::floor(rest);
        if (!(std::fabs(whole) < 1e12)) return false;
        const auto a = static_cast<std::int64_t>(whole);
        const std::int64_t n = a * n1 + n0, d = a * d1 + d0;
        if (d > 1000000) return false;
        if (static_cast<double>(n) / static_cast<double>(d) == value) {
            found = {n, d};
            return true;
        }
        n0 = n1;
        d0 = d1;
        n1 = n;
        d1 = d;
        rest = 1.0 / (rest - whole);
    }
    return false;
}

}  // namespace

Ratio Ratio::reduce(__int128 n, __int128 d, bool exact) {
    const __int128 common = std::max<__int128>(1, gcd(n, d));
    n /= common;
    d /= common;
    while (d > largest_whole || n > largest_whole || n < -largest_whole) {
        exact = false;
        n /= 2;
        d = std::max<__int128>(1, d / 2);
    }
    return {static_cast<std::int64_t>(n), static_cast<std::int64_t>(d), exact};
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
    if (digits > 13 && find_simple(seconds, simple)) return simple;
    constexpr __int128 room = static_cast<__int128>(1) << 123;  // a tenth of what 128 bits hold
    for (; exponent > 0 && n < room; --exponent) n *= 10;
    for (; exponent < 0 && d < room; ++exponent) d *= 10;
    for (; exponent < 0 && n != 0; ++exponent) n /= 10;  // below 1e-37 s: digits are lost, the size is kept
    const Ratio nearest = reduce(text[0] == '-' ? -n : n, d);
    return {nearest.n, nearest.d};
}

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
        state[k].base = state[k].next = now + setup[k].shift;
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
    if (!timed && !(std::fabs(now.value() - t) <= grid)) now = Ratio::of(t);
}

void Clocks::end_instant() {
    for (std::size_t k = 0; k < setup.size(); ++k) {
        ClockState& each = state[k];
        if (each.active && setup[k].kind == ClockSetup::Kind::periodic) {
            each.ticked = true;
            ++each.count;
            each.next = each.base + each.count * each.interval;
        } else if (each.active && setup[k].is_timed()) {
            each.waits = false;  // until it tells an interval
        }
        each.active = false;
    }
}

void Clocks::end_time() {
    for (ClockState& each : state) each.ticked = false;
}

int Clocks::find_inexact() const {
    for (std::size_t k = 0; k < setup.size(); ++k) {
        const ClockState& each = state[k];
        if (setup[k].kind != ClockSetup::Kind::periodic || !each.waits) continue;
        if (!each.interval.exact || (!each.found && !each.next.exact)) return static_cast<int>(k);
    }
    return -1;
}

bool Clocks::set_interval(int clock, const Ratio& interval) {
    ClockState& each = state[clock];
    const bool periodic = setup[clock].kind == ClockSetup::Kind::periodic;
    if (interval.n < 0 || (periodic && interval.n == 0)) return false;
    if (!periodic) {  // from its own tick, or from this event mode: that is now
        each.next = now + interval;
        each.waits = true;
    } else if (interval.n * static_cast<__int128>(each.interval.d) !=
               each.interval.n * static_cast<__int128>(interval.d)) {
        const bool before = each.count == 0;
        each.interval = interval;
        if (before) return true;
        each.found = true;
        each.base = now;  // a tunable interval counts from now
        each.count = 1;
        each.next = now + interval;
    }
    return true;
}

}  // namespace hocket
