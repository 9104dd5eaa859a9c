// Sums of products whose order never changes: those of many rows at once, column by column, and one from the
// left.
#pragma once

namespace hocket {

// total += matrix x; columns of the matrix are contiguous.
void add(double* total, const double* matrix, const double* x, int rows, int columns);

inline double dot(const double* one, const double* other, int count) {
    double total = 0.0;
    for (int k = 0; k < count; ++k) total = total + one[k] * other[k];
    return total;
}

}  // namespace hocket
