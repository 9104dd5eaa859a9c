// The loggers that FMUs are given.
// In:  a message with its arguments, as C passes them
// Out: a message in the log
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "fmu/fmi.hpp"
#include "fmu/log.hpp"

namespace hocket {

inline void log_formatted(const char* name, fmi::Status status, const char* category, const char* format,
                          std::va_list arguments) {
    std::va_list again;
    va_copy(again, arguments);
    const int length = format ? std::vsnprintf(nullptr, 0, format, arguments) : 0;
    std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
    if (length > 0) std::vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    log({name ? name : "", status, category ? category : "", std::move(text)});
}

// FMI 1 and 2 alike: who speaks is told by name.
inline void log_variadic(void*, fmi::Text name, fmi::Status status, fmi::Text category, fmi::Text message,
                         ...) {
    std::va_list arguments;
    va_start(arguments, message);
    log_formatted(name, status, category, message, arguments);
    va_end(arguments);
}

}  // namespace hocket
