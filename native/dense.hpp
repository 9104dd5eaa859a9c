// Sums of many rows at once, column by column: vectorised without changing the order of any sum.
#pragma once

namespace hocket {

// total += matrix x; columns of the matrix are contiguous.
void add(double* total, const double* matrix, const double* x, int rows, int columns);

}  // namespace hocket
