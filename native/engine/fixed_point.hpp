// Values that agree with themselves, by Newton's method: the twin of `newton` in engine/algebraic_loops.py,
// operation for operation.
// In:  a guess, and a function from guesses to what they lead to
// Out: the values it leaves alone; or why there are none
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/elimination.hpp"
#include "engine/residual.hpp"

namespace hocket {

struct FixedPointSearch {
    enum class End { settled, failed, singular, stuck };
    End end = End::settled;
    double residual = 0.0;
};

// `room` holds the guess in its first `size` numbers, and the values found afterwards; `evaluate(guess,
// found)` returns false where it failed.
template <class Evaluate>
FixedPointSearch find_fixed_point(std::vector<double>& room, int size, const Evaluate& evaluate) {
    constexpr double tolerance = 1e-10, nudge = 0x1p-26, singular = 1e-12;
    constexpr int iterations = 25;
    constexpr double fractions[] = {1.0, 0.5, 0.25, 0.125, 0.0625};
    using End = FixedPointSearch::End;
    room.resize(static_cast<std::size_t>(size) * (size + 6));
    double* v = room.data();
    double *residual = v + size, *moved = v + 2 * size, *after = v + 3 * size, *change = v + 4 * size,
           *found = v + 5 * size;
    double* matrix = v + 6 * size;
    const auto residual_at = [&](const double* guess, double* to) {
        if (!evaluate(guess, found)) return false;
        for (int i = 0; i < size; ++i) to[i] = found[i] - guess[i];
        return true;
    };
    if (!residual_at(v, residual)) return {End::failed, 0.0};
    double before = 0.0, now_at = relative(residual, v, size);
    for (int iteration = 0; iteration < iterations; ++iteration) {
        if (!(now_at < std::numeric_limits<double>::infinity())) break;
        if (now_at <= 1e-15 || (iteration > 1 && now_at <= tolerance && now_at > 0.1 * before))
            return {End::settled, now_at};
        for (int j = 0; j < size; ++j) {
            std::copy(v, v + size, moved);
            moved[j] = v[j] + nudge * std::max(std::max(1.0, std::fabs(v[j])), std::fabs(residual[j]));
            if (!residual_at(moved, after)) return {End::failed, now_at};
            for (int i = 0; i < size; ++i)
                matrix[i * size + j] = (after[i] - residual[i]) / (moved[j] - v[j]);
        }
        for (int i = 0; i < size; ++i) change[i] = -residual[i];
        if (!solve_in_place(matrix, change, size, singular)) return {End::singular, now_at};
        before = now_at;
        for (double fraction : fractions) {
            for (int i = 0; i < size; ++i) moved[i] = v[i] + fraction * change[i];
            if (!residual_at(moved, after)) return {End::failed, now_at};
            if (relative(after, v, size) < before) break;  // on the old scale: running away is no progress
        }
        std::copy(moved, moved + size, v);
        std::copy(after, after + size, residual);
        now_at = relative(residual, v, size);
    }
    return {now_at <= tolerance ? End::settled : End::stuck, now_at};
}

}  // namespace hocket
