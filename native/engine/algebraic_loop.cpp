#include "engine/algebraic_loop.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "engine/elimination.hpp"
#include "engine/residual.hpp"

namespace hocket {

namespace {

constexpr double tolerance = 1e-10;
constexpr double nudge = 0x1p-26;
constexpr double singular = 1e-12;
constexpr int iterations = 25;
constexpr double fractions[] = {1.0, 0.5, 0.25, 0.125, 0.0625};

}  // namespace

void AlgebraicLoop::widen(SolveOperation& operation) const {
    const auto inside = [&](int signal) {
        return std::any_of(operation.children.begin(), operation.children.end(), [&](int child) {
            const int first = state_.slots[child].y;
            return first <= signal && signal < first + state_.children[child].outputs;
        });
    };
    std::set<int> values, slopes;
    for (const Copy& copy : operation.inputs.copies)
        if (inside(copy.from)) values.insert(copy.from);
    for (int number : operation.inputs.fits) {
        using Kind = FittedInput::Kind;
        const FittedInput& fit = fitting_[number];
        if (fit.kind == Kind::passed || fit.kind == Kind::passed_hold || !inside(fit.source)) continue;
        values.insert(fit.source);
        if (fit.kind == Kind::hermite) slopes.insert(fit.source);
    }
    Unknowns& unknowns = operation.unknowns;
    unknowns.slopes.assign(slopes.begin(), slopes.end());
    if (slopes.empty()) return;
    for (int signal : unknowns.values) values.erase(signal);
    unknowns.values.insert(unknowns.values.end(), values.begin(), values.end());
}

bool AlgebraicLoop::fail(const SolveOperation& operation, Failure::Kind kind, double residual) {
    const int first = operation.children[0];
    return state_.fail({.kind = kind,
                        .child = first,
                        .port = operation.number,
                        .tick = state_.slots[first].tick,
                        .value = residual});
}

// Writes a guess into the exchange memory and finds what it leads to: values first, then slopes.
bool AlgebraicLoop::evaluate(const SolveOperation& operation, const double* guess, double* found) {
    const double length = state_.step_seconds();
    state_.memory.write(operation.unknowns, length, guess);
    if (messages_) {
        if (!messages_->feed(operation.children)) return false;
        messages_->read(operation.children);
    }
    if (!fitting_.feed(operation.inputs)) return false;
    for (int child : operation.children)
        if (!stepping_.read(state_.slots[child])) return false;
    state_.memory.read(operation.unknowns, length, found);
    return true;
}

bool AlgebraicLoop::solve(SolveOperation& operation) {
    const int size = static_cast<int>(operation.unknowns.size());
    operation.room.resize(static_cast<std::size_t>(size) * (size + 6));
    double* v = operation.room.data();
    state_.memory.read(operation.unknowns, state_.step_seconds(), v);
    double *residual = v + size, *moved = v + 2 * size, *after = v + 3 * size, *change = v + 4 * size,
           *found = v + 5 * size;
    double* matrix = v + 6 * size;
    const auto residual_at = [&](const double* guess, double* to) {
        if (!evaluate(operation, guess, found)) return false;
        for (int i = 0; i < size; ++i) to[i] = found[i] - guess[i];
        return true;
    };
    if (!residual_at(v, residual)) return false;
    double before = 0.0, now_at = relative(residual, v, size);
    bool settled = false;
    for (int iteration = 0; iteration < iterations; ++iteration) {
        if (!(now_at < std::numeric_limits<double>::infinity())) break;
        if (now_at <= 1e-15 || (iteration > 1 && now_at <= tolerance && now_at > 0.1 * before)) {
            settled = true;
            break;
        }
        for (int j = 0; j < size; ++j) {
            std::copy(v, v + size, moved);
            moved[j] = v[j] + nudge * std::max(std::max(1.0, std::fabs(v[j])), std::fabs(residual[j]));
            if (!residual_at(moved, after)) return false;
            for (int i = 0; i < size; ++i)
                matrix[i * size + j] = (after[i] - residual[i]) / (moved[j] - v[j]);
        }
        for (int i = 0; i < size; ++i) change[i] = -residual[i];
        if (!solve_in_place(matrix, change, size, singular))
            return fail(operation, Failure::Kind::loop_singular, now_at);
        before = now_at;
        for (double fraction : fractions) {
            for (int i = 0; i < size; ++i) moved[i] = v[i] + fraction * change[i];
            if (!residual_at(moved, after)) return false;
            if (relative(after, v, size) < before) break;  // on the old scale: running away is no progress
        }
        std::copy(moved, moved + size, v);
        std::copy(after, after + size, residual);
        now_at = relative(residual, v, size);
    }
    if (!settled && !(now_at <= tolerance)) return fail(operation, Failure::Kind::loop_not_converged, now_at);
    return evaluate(operation, v, found);
}

}  // namespace hocket
