// Numbers of the exchange memory and values of FMI types.
// In:  doubles, one per port
// Out: the FMU's own types, and back; whatever would not survive the way is refused
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "fmu/fmu.hpp"

namespace hocket {

template <class T> bool fits(double value) {
    if constexpr (std::is_floating_point_v<T>)
        return !std::isfinite(value) || std::fabs(value) <= std::numeric_limits<T>::max();
    // 2^63 and 2^64 are doubles, the largest integers are not
    const double below = std::is_signed_v<T> ? -std::ldexp(1.0, sizeof(T) * 8 - 1) : 0.0;
    const double above = std::ldexp(1.0, sizeof(T) * 8 - (std::is_signed_v<T> ? 1 : 0));
    return value == std::nearbyint(value) && value >= below && value < above;
}

// Room is kept by the caller, so that a step allocates nothing.
template <class T> bool Fmu::pack(const Group& group, const double* values, std::vector<T>& room) {
    room.resize(group.places.size());
    for (std::size_t k = 0; k < room.size(); ++k) {
        const double value = group.turn(values[group.places[k]]);
        if (!fits<T>(value) || (group.type == Type::boolean && value != 0.0 && value != 1.0)) {
            char text[96];
            std::snprintf(text, sizeof text, "%.17g does not fit the type of input number %d", value,
                          group.places[k] + 1);
            return wrong(text);
        }
        room[k] = static_cast<T>(value);
    }
    return true;
}

template <class T> bool Fmu::unpack(const Group& group, const std::vector<T>& room, double* values) {
    constexpr bool wide = std::is_integral_v<T> && sizeof(T) == 8;
    for (std::size_t k = 0; k < room.size(); ++k) {
        if constexpr (wide) {
            constexpr T most = T{1} << 53;
            bool exact = room[k] <= most;
            if constexpr (std::is_signed_v<T>) exact = exact && room[k] >= -most;
            if (!exact)
                return wrong("output number " + std::to_string(group.places[k] + 1) + " is " +
                             std::to_string(room[k]) + ", beyond 2^53: it would lose digits");
        }
        values[group.places[k]] = group.turn(static_cast<double>(room[k]));
    }
    return true;
}

}  // namespace hocket
