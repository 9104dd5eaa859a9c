// The floating-point environment of a thread: foreign code may round otherwise, flush small numbers, or trap.
// In:  a scope in which such code runs
// Out: the same environment behind it; whether any such code has changed it
#pragma once

#include <atomic>
#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hocket {

#if defined(__x86_64__)
// Two units compute, each with a setting of its own: that of vectors (its lowest six bits, what has happened
// so far, are nobody's setting), and the old one, by whose rounding texts are read and written.
inline std::uint64_t read_arithmetic() {
    std::uint16_t old = 0;
    __asm__ __volatile__("fnstcw %0" : "=m"(old));
    return (std::uint64_t{old} << 32) | (_mm_getcsr() & ~0x3fu);
}
inline void write_arithmetic(std::uint64_t mode) {
    const auto old = static_cast<std::uint16_t>(mode >> 32);
    __asm__ __volatile__("fnclex; fldcw %0" : : "m"(old));
    _mm_setcsr(static_cast<std::uint32_t>(mode));
}
#else
inline std::uint64_t read_arithmetic() { return static_cast<std::uint64_t>(std::fegetround()); }
inline void write_arithmetic(std::uint64_t mode) { std::fesetround(static_cast<int>(mode)); }
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
    std::uint64_t mode_;
};

}  // namespace hocket
