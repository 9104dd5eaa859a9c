// Algebraic loops inside a step: the twin of loops.py, operation for operation.
// In:  the outputs that must agree with themselves, and the children that compute them
// Out: samples that do, or a failure
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/elimination.hpp"
#include "engine/level.hpp"
#include "engine/residual.hpp"

namespace hocket {

namespace {

constexpr double tolerance = 1e-10;
constexpr double nudge = 0x1p-26;
constexpr double singular = 1e-12;
constexpr int iterations = 25;
constexpr double fractions[] = {1.0, 0.5, 0.25, 0.125, 0.0625};

}  // namespace

bool Level::loop_failed(Operation& operation, Failure::Kind kind, double residual) {
    std::lock_guard lock(failing_);
    if (first_failure.kind == Failure::Kind::none) {
        first_failure = {
            .kind = kind, .level = this, .child = operation.children[0], .port = operation.number};
        first_failure.tick = slots_[operation.children[0]].tick;
        first_failure.value = residual;
    }
    return false;
}

// Puts a guess into the exchange memory and finds what it leads to: values first, then slopes.
bool Level::around(Operation& operation, const double* guess, double* found) {
    put(operation, guess);
    if (post) {
        for (int child : operation.children) post->feed(child);
        for (int child : operation.children) post->read(child);
    }
    if (!feed(operation)) return false;
    for (int child : operation.children)
        if (!read_child(slots_[child])) return false;
    newest(operation, found);
    return true;
}

void Level::put(const Operation& operation, const double* numbers) {
    for (int signal : operation.signals) {
        y[signal] = *numbers++;
        if (ring_of[signal] >= 0) rings[ring_of[signal]].values[rings[ring_of[signal]].newest] = y[signal];
    }
    const double length = clock.span(this->length);
    for (int signal : operation.slopes)
        rings[ring_of[signal]].slopes[rings[ring_of[signal]].newest] = *numbers++ / length;
}

// The unknowns of a loop; slopes as changes over a step, so that all are of a size.
void Level::newest(const Operation& operation, double* to) const {
    for (int signal : operation.signals) *to++ = y[signal];
    const double length = clock.span(this->length);
    for (int signal : operation.slopes)
        *to++ = rings[ring_of[signal]].slopes[rings[ring_of[signal]].newest] * length;
}

bool Level::solve(Operation& operation) {
    const int size = static_cast<int>(operation.signals.size() + operation.slopes.size());
    operation.room.resize(static_cast<std::size_t>(size) * (size + 6));
    double* v = operation.room.data();
    newest(operation, v);
    double *residual = v + size, *moved = v + 2 * size, *after = v + 3 * size, *change = v + 4 * size,
           *found = v + 5 * size;
    double* matrix = v + 6 * size;
    const auto residual_at = [&](const double* guess, double* to) {
        if (!around(operation, guess, found)) return false;
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
        if (!solved(matrix, change, size, singular))
            return loop_failed(operation, Failure::Kind::loop_singular, now_at);
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
    if (!settled && !(now_at <= tolerance)) return loop_failed(operation, Failure::Kind::loop_stuck, now_at);
    return around(operation, v, found);
}

}  // namespace hocket
