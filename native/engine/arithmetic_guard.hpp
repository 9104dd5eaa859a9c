// The floating-point environment of a thread: foreign code may round otherwise, flush small numbers, or trap.
// In:  a scope in which such code runs
// Out: the same environment behind it; whether any such code has changed it
#pragma once

#include <atomic>
#include <cfenv>
#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace hocket {

#if defined(__x86_64__) || defined(_M_X64)
// The flags of what has happened so far (the lowest six bits) are nobody's setting.
inline std::uint32_t read_arithmetic() { return _mm_getcsr() & ~0x3fu; }
inline void write_arithmetic(std::uint32_t mode) { _mm_setcsr(mode); }
#else
inline std::uint32_t read_arithmetic() { return static_cast<std::uint32_t>(std::fegetround()); }
inline void write_arithmetic(std::uint32_t mode) { std::fesetround(static_cast<int>(mode)); }
#endif

inline std::atomic<bool> arithmetic_was_changed{false};

class ArithmeticGuard {
  public:
    ArithmeticGuard() : mode_(read_arithmetic()) {}
    ~ArithmeticGuard() {
        if (read_arithmetic() == mode_) return;
        write_arithmetic(mode_);
        arithmetic_was_changed = true;
    }
    ArithmeticGuard(const ArithmeticGuard&) = delete;
    ArithmeticGuard& operator=(const ArithmeticGuard&) = delete;

  private:
    std::uint32_t mode_;
};

}  // namespace hocket
