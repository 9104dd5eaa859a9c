// Operations on their way from Python: any of the bound classes is an Operation.
// In:  an object of Python
// Out: a copy of what is bound to it
#pragma once

#include <nanobind/nanobind.h>

#include "engine/operations.hpp"

namespace nanobind::detail {

template <> struct type_caster<hocket::Operation> {
    NB_TYPE_CASTER(hocket::Operation, const_name("Operation"))

    bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
        const auto any = [&]<class... T>(std::variant<T...>*) { return (take<T>(source) || ...); };
        return any(static_cast<hocket::AnyOperation*>(nullptr));
    }

  private:
    template <class T> bool take(handle source) {
        if (!isinstance<T>(source)) return false;
        value = *inst_ptr<T>(source);
        return true;
    }
};

}  // namespace nanobind::detail
