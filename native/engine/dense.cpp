#include "engine/dense.hpp"

#include <cstddef>

namespace hocket {

void add(double* __restrict total, const double* __restrict matrix, const double* __restrict x, int rows,
         int columns) {
    for (int j = 0; j < columns; ++j) {
        const double factor = x[j];
        const double* column = matrix + static_cast<std::size_t>(j) * rows;
        for (int i = 0; i < rows; ++i) total[i] = total[i] + column[i] * factor;
    }
}

}  // namespace hocket
