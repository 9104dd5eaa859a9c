#include "engine/formulas.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "engine/polynomial.hpp"

namespace hocket {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t golden = 0x9E3779B97F4A7C15;

std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
    return value ^ (value >> 31);
}

double uniform(double seed, double number) {
    const std::uint64_t mixed =
        mix(mix(static_cast<std::uint64_t>(static_cast<std::int64_t>(seed)) + golden) +
            static_cast<std::uint64_t>(static_cast<std::int64_t>(number)) * golden);
    return (static_cast<double>(mixed >> 12) + 0.5) * 0x1p-52;
}

double normal(double seed, double number) {
    const double radius = std::sqrt(-2.0 * std::log(uniform(seed, 2.0 * number)));
    return radius * std::cos(2.0 * std::numbers::pi * uniform(seed, 2.0 * number + 1.0));
}

// Where Python raises, there is no number.
double finite_of(double found, double a) { return std::isinf(found) && std::isfinite(a) ? nan : found; }

double evaluate(Formulas::Code code, double a, double b, double c) {
    using enum Formulas::Code;
    switch (code) {
        case add: return a + b;
        case subtract: return a - b;
        case multiply: return a * b;
        case divide: return b == 0.0 ? nan : a / b;
        case power: {
            const double found = std::pow(a, b);
            return std::isinf(found) && std::isfinite(a) && std::isfinite(b) ? nan : found;
        }
        case negative: return -a;
        case sin: return std::sin(a);
        case cos: return std::cos(a);
        case tan: return std::tan(a);
        case sqrt: return std::sqrt(a);
        case exp: return finite_of(std::exp(a), a);
        case log: return a > 0.0 ? std::log(a) : nan;
        case abs: return std::fabs(a);
        case floor: return std::floor(a);
        case least: return a < b || a != a ? a : b;
        case greatest: return a > b || a != a ? a : b;
        case less: return a < b ? 1.0 : 0.0;
        case select: return a != 0.0 ? b : c;
        case Formulas::Code::uniform: return hocket::uniform(a, b);
        case Formulas::Code::normal: return hocket::normal(a, b);
        case count: break;
    }
    return nan;
}

}  // namespace

Formulas::Formulas(int given, const std::vector<double>& constants,
                   const std::vector<std::array<int, 4>>& operations, std::vector<int> results)
    : first_(given + static_cast<int>(constants.size())), results_(std::move(results)) {
    const auto check = [](int place, int limit) {
        if (place < 0 || place >= std::max(limit, 1))
            throw std::invalid_argument("there is no such register");
    };
    registers_.resize(static_cast<std::size_t>(first_) + operations.size() + 1);
    std::copy(constants.begin(), constants.end(), registers_.begin() + given);
    int number = first_;
    for (const auto& [code, a, b, c] : operations) {
        if (code < 0 || code >= static_cast<int>(Code::count))
            throw std::invalid_argument("there is no such operation");
        for (int place : {a, b, c}) check(place, number);
        operations_.push_back({static_cast<Code>(code), {a, b, c}});
        ++number;
    }
    for (int place : results_) check(place, number);
}

bool Formulas::is_whole() const {
    if (operations_.empty() && results_.empty() && registers_.empty()) return true;
    if (first_ < 0 || registers_.size() != static_cast<std::size_t>(first_) + operations_.size() + 1)
        return false;
    int number = first_;
    const auto fits = [](int place, int limit) { return place >= 0 && place < std::max(limit, 1); };
    for (const Operation& each : operations_) {
        if (each.code < Code::add || each.code >= Code::count) return false;
        for (int place : each.places)
            if (!fits(place, number)) return false;
        ++number;
    }
    return std::all_of(results_.begin(), results_.end(), [&](int place) { return fits(place, number); });
}

void Formulas::run(double* results) {
    double* const registers = registers_.data();
    double* to = registers + first_;
    for (const Operation& each : operations_)
        *to++ = evaluate(each.code, registers[each.places[0]], registers[each.places[1]],
                         registers[each.places[2]]);
    for (int place : results_) *results++ = registers[place];
}

Block::Block(Setup setup) : setup_(std::move(setup)), following_(setup_.state) {
    moved_.resize(static_cast<std::size_t>(max_rows) * std::max(setup_.inputs, 1));
}

void Block::set_rows(int rows) { rows_ = std::max(rows, 1); }

// The twin of BlockSimulator.step.
bool Block::step(const Span& span, const double* u) {
    if (span.h == 0.0) return true;
    if (setup_.takes_part) catch_up(span.t, u);
    if (setup_.moves) {
        const int inputs = setup_.inputs, states = static_cast<int>(setup_.state.size());
        std::int64_t count = 1;
        if (setup_.longest > 0.0)
            count = std::max<std::int64_t>(
                1, -static_cast<std::int64_t>(std::floor(-(span.h / setup_.longest) * (1.0 - 1e-9))));
        const double length = span.h / static_cast<double>(count);
        const int rows = std::min(rows_, max_rows), wanted = setup_.degree + 1;
        for (std::int64_t k = 0; k < count; ++k) {
            std::fill(moved_.begin(), moved_.end(), 0.0);
            std::copy(u, u + rows * inputs, moved_.begin());
            const double s = static_cast<double>(k) * length;
            for (int input = 0; input < inputs; ++input) shift(moved_.data() + input, rows, inputs, s);
            double* to = setup_.advance.given();
            *to++ = span.t + s;
            *to++ = length;
            to = std::copy(setup_.state.begin(), setup_.state.begin() + states, to);
            std::copy(moved_.begin(), moved_.begin() + wanted * inputs, to);
            setup_.advance.run(setup_.state.data());
        }
    }
    if (setup_.takes_part && !setup_.instants) catch_up(span.t + span.h, u);
    return true;
}

bool Block::output(std::int64_t tick, const double* u, double* y) {
    double* to = setup_.show.given();
    *to++ = clock_.time(tick);
    to = std::copy(setup_.state.begin(), setup_.state.end(), to);
    std::copy(u, u + setup_.inputs, to);
    setup_.show.run(y);
    return true;
}

double Block::next_time() {
    if (setup_.next.count() == 0) return std::numeric_limits<double>::infinity();
    double found;
    std::copy(setup_.state.begin(), setup_.state.end(), setup_.next.given());
    setup_.next.run(&found);
    return found;
}

void Block::find_reaction(double t, const double* u, const std::uint8_t* present, bool due) {
    double* to = setup_.react.given();
    *to++ = t;
    *to++ = due ? 1.0 : 0.0;
    to = std::copy(setup_.state.begin(), setup_.state.end(), to);
    to = std::copy(u, u + setup_.inputs, to);
    for (int input = 0; input < setup_.inputs; ++input) *to++ = present && present[input] ? 1.0 : 0.0;
    setup_.react.run(following_.data());
}

// Events that nobody has let it react to, as in a sampled level.
void Block::catch_up(double limit, const double* u) {
    for (double next = next_time(); next <= limit; next = next_time()) {
        find_reaction(next, u, nullptr, true);
        setup_.state = following_;
    }
}

bool Block::due(std::int64_t& tick) {
    const double next = next_time();
    tick = std::isfinite(next) ? clock_.event_tick(next, true) : never_due;
    return true;
}

bool Block::react(std::int64_t tick, int, const double* u, const std::uint8_t* present, std::uint8_t*) {
    const double t = clock_.time(tick);
    bool any = false;
    for (int input = 0; input < setup_.inputs; ++input) any = any || present[input];
    find_reaction(t, u, present, !any || next_time() <= t);
    return true;
}

bool Block::commit(bool& again) {
    setup_.state = following_;
    again = false;
    return true;
}

bool Block::save(Snapshot& to) {
    to.begin();
    to.keep(setup_.state);
    return true;
}

bool Block::restore(Snapshot& from) {
    from.rewind();
    from.take(setup_.state);
    return true;
}

}  // namespace hocket
