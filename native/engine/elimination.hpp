// Small systems of linear equations.
// In:  a matrix whose rows are contiguous, and the right side
// Out: the solution in its place
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

namespace hocket {

// By elimination with partial pivoting; false where a pivot is not above `singular` times the largest entry.
inline bool solve_in_place(double* matrix, double* right, int size, double singular) {
    double largest = 0.0;
    for (int k = 0; k < size * size; ++k) largest = std::max(largest, std::fabs(matrix[k]));
    const auto at = [&](int i, int j) -> double& { return matrix[i * size + j]; };
    for (int k = 0; k < size; ++k) {
        int best = k;
        for (int i = k + 1; i < size; ++i)
            if (std::fabs(at(i, k)) > std::fabs(at(best, k))) best = i;
        if (!(std::fabs(at(best, k)) > singular * largest)) return false;
        if (best != k) std::swap_ranges(matrix + k * size, matrix + (k + 1) * size, matrix + best * size);
        std::swap(right[k], right[best]);
        for (int i = k + 1; i < size; ++i) {
            const double factor = at(i, k) / at(k, k);
            for (int j = k + 1; j < size; ++j) at(i, j) = at(i, j) - factor * at(k, j);
            right[i] = right[i] - factor * right[k];
        }
    }
    for (int k = size - 1; k >= 0; --k) {
        for (int j = k + 1; j < size; ++j) right[k] = right[k] - at(k, j) * right[j];
        right[k] = right[k] / at(k, k);
    }
    return true;
}

}  // namespace hocket
