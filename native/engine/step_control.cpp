#include "engine/step_control.hpp"

#include <algorithm>
#include <cmath>

#include "engine/polynomial.hpp"
#include "engine/residual.hpp"

namespace hocket {

namespace {

using Estimate = StepSizeController::Estimate;
constexpr double too_long = 1e10;

// The polynomial through `count` samples of a ring, the newest of them `skip` back, s after a tick.
double extrapolate(const Clock& clock, const Ring& ring, int skip, int count, std::int64_t tick, double s) {
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

bool StepControl::adapt(AdaptOperation& operation) {
    StepSizeController& controller = *operation.controller;
    const std::int64_t end = state_.reached;
    while (state_.now < end) {
        const std::int64_t start = state_.now;
        std::int64_t until = end;
        if (instants_.active() && !instants_.end_before(start, end, until)) return false;
        const std::int64_t left = until - start;
        const std::int64_t planned = controller.share_out(left);
        std::int64_t span = planned;
        if (controller.rejects) {
            if (!level_.save(controller.start)) return false;
            saved_in_ = state_.steps;
        }
        double ratio = 0.0;
        if (!try_step(operation, start, span, ratio)) return false;
        while (ratio > 1.0 && (controller.rejects || controller.estimate == Estimate::orders)) {
            if (span <= controller.quantum) {
                if (!controller.may_pass())
                    return state_.fail({.kind = Failure::Kind::tolerance_not_met,
                                        .child = 0,
                                        .port = operation.number,
                                        .tick = start,
                                        .value = ratio});
                counts_.add_passed(start, ratio);
                break;
            }
            if (controller.rejects) {
                if (!level_.restore(controller.start)) return false;
                ++counts_.rejected;
            }
            span = std::min(left, controller.next(span, ratio, false));
            if (!try_step(operation, start, span, ratio)) return false;
        }
        if (controller.estimate == Estimate::orders && !make_step(operation, start, span)) return false;
        if (state_.reached < start + span) {
            span = state_.reached - start;
            controller.begin();
        } else if (instants_.taken != state_.reached) {
            controller.accept(span, ratio,
                              span == planned && (planned < controller.wanted || planned == left));
        }
        counts_.add(span, ratio);
        state_.now = start + span;
    }
    state_.reached = end;
    return true;
}

// The error of a step in tolerances; the step is made, unless the error is known before.
bool StepControl::try_step(AdaptOperation& operation, std::int64_t start, std::int64_t span, double& ratio) {
    const StepSizeController& controller = *operation.controller;
    const double h = state_.clock.span(span);
    double error = 0.0;
    if (controller.estimate == Estimate::orders) {
        error = difference_of_orders(operation, h);
    } else {
        std::vector<double> before;
        if (controller.estimate == Estimate::energy) before = ledger_.residuals();
        const bool good = controller.estimate == Estimate::richardson
                              ? make_twice(operation, start, span, error)
                              : make_step(operation, start, span);
        if (!good) {
            const bool ended = level_.failure().kind == Failure::Kind::stopped_early;
            if (!controller.rejects || span <= controller.quantum || (ends_outside && ended) ||
                !level_.forget_failure())
                return false;
            ratio = too_long;
            return true;
        }
        if (state_.reached < start + span) {
            ratio = 0.0;
            return true;
        }
        if (controller.estimate == Estimate::defect) error = defect(operation);
        if (controller.estimate == Estimate::energy) error = ledger_.residual_since(before) / h;
    }
    ratio = (controller.per_unit ? error : error * h) / controller.tolerance;
    return true;
}

bool StepControl::make_step(AdaptOperation& operation, std::int64_t start, std::int64_t span) {
    state_.now = start;
    state_.reached = start + span;
    state_.step = Span::of(state_.clock, start, span);
    if (operation.controller->scaled != span) {
        operation.controller->scaled = span;
        if (!scale(operation.body, span)) return false;
    }
    return runner_.run(operation.body);
}

constexpr int attempts = 50;  // how often one step is made shorter

bool StepControl::attempt(TryOperation& operation) {
    const std::int64_t end = state_.reached;
    const bool adaptive = active(), lone = operation.lone && !adaptive;
    while (true) {
        const std::int64_t start = state_.now;
        if (operation.announced && !instants_.end_before(start, end, state_.reached)) return false;
        const bool saves = operation.found && !lone;
        if (saves) {
            if (!level_.save(*operation.start)) return false;
            if (!adaptive) {
                tried_ = operation.start.get();
                tried_in_ = state_.steps;
            }
        }
        bool early = false, made = false;
        const std::int64_t limit = state_.reached;
        for (int turn = 0; turn < attempts && !made; ++turn) {
            const std::int64_t span = state_.reached - start;
            if (operation.scaled != span) {
                operation.scaled = span;
                if (!scale(operation.body, span)) return false;
            }
            state_.begin_span(start, span);
            if (runner_.run(operation.body)) {
                made = true;
                break;
            }
            const Failure failure = level_.failure();
            if (!operation.found || failure.kind != Failure::Kind::stopped_early) return false;
            if (operation.last >= 0 && state_.slots[operation.last].tick != start) return false;
            std::int64_t tick = state_.clock.event_tick(failure.value, false);
            const double last = state_.clock.time(limit);
            if (tick > limit && failure.value <= last + 4.0 * 0x1p-52 * std::fabs(last)) tick = limit;
            if (tick <= start || tick > limit || !(state_.clock.time(tick) > state_.clock.time(start)))
                return false;
            if (!level_.forget_failure()) return false;
            early = true;
            if (saves && !level_.restore(*operation.start)) return false;
            state_.reached = tick;
            if (lone) {
                state_.slots[0].tick = tick;
                state_.step = Span::of(state_.clock, start, tick - start);
                if (!runner_.run(operation.rest)) return false;
                made = true;
            }
        }
        if (!made) return state_.fail({.kind = Failure::Kind::never_whole, .child = 0, .tick = start});
        tried_in_ = -1;
        if (early && instants_.taken != state_.reached) level_.forget_past();
        if (state_.reached == end || adaptive) return true;
        state_.now = state_.reached;
        state_.reached = end;
    }
}

bool StepControl::prepare(const std::vector<int>& children, std::int64_t ticks) {
    for (int child : children)
        if (!state_.slots[child].simulator->prepare(ticks)) return state_.fail(state_.slots[child]);
    return true;
}

// Makes the steps of a body parts of another span.
bool StepControl::scale(Program& body, std::int64_t span) {
    const auto scale_one = [&]<class T>(T& each) {
        if constexpr (std::is_same_v<T, TryOperation>) each.scaled = span;
        if constexpr (requires { each.fraction; }) {
            if constexpr (std::is_same_v<T, CloseAccountsOperation>) {
                if (each.ticks > 0) each.ticks = each.fraction.of(span);
            } else {
                each.ticks = each.fraction.of(span);
                if (!prepare(each.children, each.ticks)) return false;
            }
        }
        bool good = true;
        for_each_body(each, [&](Program& inner) { good = good && scale(inner, span); });
        return good;
    };
    for (Operation& operation : body)
        if (!std::visit(scale_one, operation)) return false;
    return true;
}

bool StepControl::make_twice(AdaptOperation& operation, std::int64_t start, std::int64_t span,
                             double& error) {
    const StepSizeController& controller = *operation.controller;
    const std::size_t size = operation.signals.size();
    std::vector<double> once(size), twice(size), apart(size);
    const auto read = [&](std::vector<double>& to) {
        for (std::size_t k = 0; k < size; ++k) to[k] = state_.memory.y[operation.signals[k]];
    };
    if (!make_step(operation, start, span)) return false;
    error = 0.0;
    if (state_.reached < start + span) return true;
    read(once);
    if (!level_.restore(operation.controller->start)) return false;
    const std::int64_t half = span / 2;
    if (!make_step(operation, start, half) || !make_step(operation, start + half, span - half)) return false;
    read(twice);
    const double order = controller.per_unit ? controller.power : controller.power - 1.0;
    const double part = (std::pow(2.0, order) - 1.0) * state_.clock.span(span);
    for (std::size_t k = 0; k < size; ++k) apart[k] = (twice[k] - once[k]) / part;
    error = relative(apart.data(), twice.data(), static_cast<int>(size));
    return true;
}

// How far the extrapolation of the samples before was from the newest ones. What has no new sample, as a
// level with a longer step within it, says nothing about the step.
double StepControl::defect(const AdaptOperation& operation) const {
    const std::size_t size = operation.signals.size();
    std::vector<double> differences(size), values(size);
    for (std::size_t k = 0; k < size; ++k) {
        const Ring& ring = state_.memory.ring(operation.signals[k]);
        const std::int64_t tick = ring.ticks[ring.newest];
        const int count = tick > state_.now ? std::min(operation.degrees[k] + 1, ring.count - 1) : 0;
        values[k] = ring.values[ring.newest];
        differences[k] = count > 0 ? values[k] - extrapolate(state_.clock, ring, 1, count, tick, 0.0) : 0.0;
    }
    return relative(differences.data(), values.data(), static_cast<int>(size));
}

// How far an extrapolation one order higher is from the one that is used, at the end of the step to come.
double StepControl::difference_of_orders(const AdaptOperation& operation, double h) const {
    const std::size_t size = operation.signals.size();
    std::vector<double> differences(size), values(size);
    for (std::size_t k = 0; k < size; ++k) {
        const Ring& ring = state_.memory.ring(operation.signals[k]);
        const std::int64_t tick = ring.ticks[ring.newest];
        const int degree = operation.degrees[k];
        values[k] = extrapolate(state_.clock, ring, 0, std::min(degree + 1, ring.count), tick, h);
        differences[k] =
            extrapolate(state_.clock, ring, 0, std::min(degree + 2, ring.count), tick, h) - values[k];
    }
    return relative(differences.data(), values.data(), static_cast<int>(size));
}

}  // namespace hocket
