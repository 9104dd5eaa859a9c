// How far values are from agreeing: the twin of engine/reference/iteration.py.
// In:  differences and values
// Out: the largest difference over its value; values below one count as one
#pragma once

#include <algorithm>
#include <cmath>

namespace hocket {

inline double relative(const double* residual, const double* v, int size) {
    double most = 0.0;
    for (int i = 0; i < size; ++i) {
        const double part = std::fabs(residual[i]) / std::max(1.0, std::fabs(v[i]));
        if (!(part <= most)) most = part;  // a NaN must come through
    }
    return most;
}

}  // namespace hocket
