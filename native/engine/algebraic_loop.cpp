#include "engine/algebraic_loop.hpp"

#include <algorithm>
#include <set>

#include "engine/fixed_point.hpp"

namespace hocket {

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
    state_.memory.read(operation.unknowns, state_.step_seconds(), operation.room.data());
    const auto [end, residual] = find_fixed_point(
        operation.room, size,
        [&](const double* guess, double* found) { return evaluate(operation, guess, found); });
    switch (end) {
        case FixedPointSearch::End::failed: return false;
        case FixedPointSearch::End::singular: return fail(operation, Failure::Kind::loop_singular, residual);
        case FixedPointSearch::End::stuck:
            return fail(operation, Failure::Kind::loop_not_converged, residual);
        case FixedPointSearch::End::settled: break;
    }
    double *v = operation.room.data(), *found = v + 5 * size;
    return evaluate(operation, v, found);
}

}  // namespace hocket
