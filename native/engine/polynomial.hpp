// Polynomials through samples: the twin of model/extrapolators.py, operation for operation.
// In:  samples, oldest first, times in seconds from the start of the step
// Out: coefficients in powers of that time
#pragma once

namespace hocket {

inline constexpr int max_rows = 9;  // coefficients of a polynomial: degree 8 at the most

// Newton's form (in place: divided differences) to monomials.
inline void newton(const double* nodes, double* c, int count) {
    const int last = count - 1;
    for (int k = last - 1; k >= 0; --k)
        for (int j = k; j < last; ++j) c[j] = c[j] - nodes[k] * c[j + 1];
}

inline void divided_differences(const double* nodes, double* table, int count, int from) {
    for (int k = from; k < count; ++k)
        for (int j = count - 1; j >= k; --j) table[j] = (table[j] - table[j - 1]) / (nodes[j] - nodes[j - k]);
}

// The same curve in powers of (s - ds); coefficients lie `stride` apart.
inline void shift(double* c, int count, int stride, double ds) {
    if (ds == 0.0) return;
    for (int k = 0; k < count - 1; ++k)
        for (int j = count - 2; j >= k; --j) c[j * stride] = c[j * stride] + ds * c[(j + 1) * stride];
}

inline double value_at(const double* c, int count, int stride, double s) {
    double value = c[(count - 1) * stride];
    for (int k = count - 2; k >= 0; --k) value = value * s + c[k * stride];
    return value;
}

}  // namespace hocket
