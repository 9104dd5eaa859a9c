// Steps as long as their error allows: the twin of adapting.py, operation for operation.
// In:  a body, and what its steps may err
// Out: the end of the level's step, reached in as many parts as the tolerance asks for
#include "engine/step_control.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/level.hpp"
#include "engine/residual.hpp"

namespace hocket {

namespace {

constexpr double too_long = 1e10, least_ratio = 1e-10;

std::int64_t rounded(std::int64_t parts) {
    const int lost = std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(parts))) - 4);
    return parts >> lost << lost;
}

// The polynomial through `count` samples of a ring, the newest of them `skip` back, s after a tick.
double led(const Clock& clock, const Ring& ring, int skip, int count, std::int64_t tick, double s) {
    double nodes[max_rows + 1], c[max_rows + 1];
    for (int k = 0; k < count; ++k) {
        const int at = ring.back(skip + count - 1 - k);
        nodes[k] = clock.span(ring.ticks[at] - tick);
        c[k] = ring.values[at];
    }
    divided_differences(nodes, c, count, 1);
    newton(nodes, c, count);
    return value_at(c, count, 1, s);
}

}  // namespace

std::int64_t Pace::after(std::int64_t span, double ratio, bool accepted) const {
    const double now = std::max(ratio, least_ratio);
    const double first = accepted ? gains[0] : 1.0, second = accepted ? gains[1] : 0.0,
                 third = accepted ? gains[2] : 0.0;
    double factor = std::pow(safety, first - second + third) * std::pow(now, -first / power);
    if (second != 0.0) factor = factor * std::pow(before, second / power);
    if (third != 0.0) factor = factor * std::pow(earlier, -third / power);
    factor = std::min(accepted ? most : 0.9, std::max(least, factor));
    const std::int64_t parts =
        rounded(static_cast<std::int64_t>(factor * static_cast<double>(span) / static_cast<double>(quantum)));
    return std::min(largest, std::max(quantum, parts * quantum));
}

void Pace::accept(std::int64_t span, double ratio, bool cut) {
    const std::int64_t following = after(span, ratio, true);
    wanted = cut && ratio <= 1.0 ? std::max(wanted, following) : following;
    earlier = before;
    before = std::max(ratio, least_ratio);
}

bool Level::adapt(Operation& operation) {
    Pace& pace = *operation.pace;
    const std::int64_t end = reached_;
    while (now < end) {
        const std::int64_t start = now, left = end - now;
        std::int64_t span = std::min(pace.wanted, left);
        if (pace.rejects && !keep(pace.saved)) return false;
        double ratio = 0.0;
        if (!tried(operation, start, span, ratio)) return false;
        while (ratio > 1.0 && (pace.rejects || pace.estimate == Pace::Estimate::orders)) {
            if (span <= pace.quantum) {
                if (!pace.rejects) break;
                first_failure = {.kind = Failure::Kind::not_met,
                                 .level = this,
                                 .child = 0,
                                 .port = operation.number,
                                 .tick = start};
                first_failure.value = ratio;
                return false;
            }
            if (pace.rejects) {
                if (!go_back(pace.saved)) return false;
                ++steps.rejected;
            }
            span = std::min(left, pace.after(span, ratio, false));
            if (!tried(operation, start, span, ratio)) return false;
        }
        if (pace.estimate == Pace::Estimate::orders && !made(operation, start, span)) return false;
        steps.add(span);
        pace.accept(span, ratio, span == left);
        now = start + span;
    }
    reached_ = end;
    return true;
}

// The error of a step in tolerances; it is made, unless the error is known before.
bool Level::tried(Operation& operation, std::int64_t start, std::int64_t span, double& ratio) {
    Pace& pace = *operation.pace;
    const double h = clock.span(span);
    double error = 0.0;
    if (pace.estimate == Pace::Estimate::orders) {
        error = outlook(operation, h);
    } else {
        std::vector<double> before;
        if (pace.estimate == Pace::Estimate::energy) before = gained();
        const bool good = pace.estimate == Pace::Estimate::richardson ? doubled(operation, start, span, error)
                                                                      : made(operation, start, span);
        if (!good) {
            if (!pace.rejects || span <= pace.quantum || !forget_failure()) return false;
            ratio = too_long;
            return true;
        }
        if (pace.estimate == Pace::Estimate::defect) error = missed(operation);
        if (pace.estimate == Pace::Estimate::energy) error = gained_since(before) / h;
    }
    ratio = (pace.per_unit ? error : error * h) / pace.tolerance;
    return true;
}

bool Level::made(Operation& operation, std::int64_t start, std::int64_t span) {
    now = start;
    reached_ = start + span;
    own_ = Span::of(clock, start, span);
    if (operation.pace->scaled != span) {
        operation.pace->scaled = span;
        if (!scale(operation.bodies[0], span)) return false;
    }
    return run(operation.bodies[0]);
}

// Makes the steps of a body parts of another span.
bool Level::scale(std::vector<Operation>& body, std::int64_t span) {
    for (Operation& operation : body) {
        if (operation.kind == Operation::Kind::step || operation.kind == Operation::Kind::step_read) {
            operation.ticks = span * operation.numerator / operation.denominator;
            for (int child : operation.children)
                if (!slots_[child].simulator->prepare(operation.ticks)) return failed(slots_[child]);
        }
        if (operation.kind == Operation::Kind::close && operation.ticks > 0)
            operation.ticks = span * operation.numerator / operation.denominator;
        for (auto& inner : operation.bodies)
            if (!scale(inner, span)) return false;
    }
    return true;
}

// A failure that a shorter step may mend is forgotten, here and in the levels inside.
bool Level::forget_failure() {
    using Kind = Failure::Kind;
    const Kind kind = first_failure.kind;
    if (kind != Kind::stopped_early && kind != Kind::no_agreement && kind != Kind::loop_singular &&
        kind != Kind::loop_stuck && kind != Kind::not_met)
        return false;
    first_failure = {};
    for (auto& child : children)
        if (auto* level = dynamic_cast<Level*>(child.simulator.get())) level->forget_failure();
    return true;
}

bool Level::doubled(Operation& operation, std::int64_t start, std::int64_t span, double& error) {
    const Pace& pace = *operation.pace;
    const std::size_t size = operation.signals.size();
    std::vector<double> once(size), twice(size), apart(size);
    const auto newest = [&](std::vector<double>& to) {
        for (std::size_t k = 0; k < size; ++k) to[k] = y[operation.signals[k]];
    };
    if (!made(operation, start, span)) return false;
    newest(once);
    if (!go_back(operation.pace->saved)) return false;
    const std::int64_t half = span / 2;
    if (!made(operation, start, half) || !made(operation, start + half, span - half)) return false;
    newest(twice);
    const double order = pace.per_unit ? pace.power : pace.power - 1.0;
    const double part = (std::pow(2.0, order) - 1.0) * clock.span(span);
    for (std::size_t k = 0; k < size; ++k) apart[k] = (twice[k] - once[k]) / part;
    error = relative(apart.data(), twice.data(), static_cast<int>(size));
    return true;
}

double Level::missed(const Operation& operation) const {
    const std::size_t size = operation.signals.size();
    std::vector<double> differences(size), values(size);
    for (std::size_t k = 0; k < size; ++k) {
        const Ring& ring = rings[ring_of[operation.signals[k]]];
        const std::int64_t tick = ring.ticks[ring.newest];
        const int count = std::min(operation.degrees[k] + 1, ring.count - 1);
        values[k] = ring.values[ring.newest];
        differences[k] = count > 0 ? values[k] - led(clock, ring, 1, count, tick, 0.0) : 0.0;
    }
    return relative(differences.data(), values.data(), static_cast<int>(size));
}

double Level::outlook(const Operation& operation, double h) const {
    const std::size_t size = operation.signals.size();
    std::vector<double> differences(size), values(size);
    for (std::size_t k = 0; k < size; ++k) {
        const Ring& ring = rings[ring_of[operation.signals[k]]];
        const std::int64_t tick = ring.ticks[ring.newest];
        const int degree = operation.degrees[k];
        values[k] = led(clock, ring, 0, std::min(degree + 1, ring.count), tick, h);
        differences[k] = led(clock, ring, 0, std::min(degree + 2, ring.count), tick, h) - values[k];
    }
    return relative(differences.data(), values.data(), static_cast<int>(size));
}

}  // namespace hocket
