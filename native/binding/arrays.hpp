// Numbers on their way to and from Python.
// In:  arrays of doubles
// Out: NumPy arrays that own what they hold
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hocket {

using Vector = nanobind::ndarray<const double, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Numbers = nanobind::ndarray<const double, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

using AnyNumbers = nanobind::ndarray<const double, nanobind::c_contig, nanobind::device::cpu>;
using Integers64 =
    nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

inline std::vector<double> to_vector(const AnyNumbers& array) {
    return {array.data(), array.data() + array.size()};
}

// A new array; `fill` writes to it.
nanobind::object numbers(std::size_t count, auto fill) {
    auto* data = new double[std::max<std::size_t>(count, 1)];
    nanobind::capsule owner(data, [](void* raw) noexcept { delete[] static_cast<double*>(raw); });
    fill(data);
    return nanobind::cast(nanobind::ndarray<nanobind::numpy, double>(data, {count}, owner));
}

}  // namespace hocket
