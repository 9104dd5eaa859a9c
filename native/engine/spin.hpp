// Waiting without sleeping.
// In:  nothing
// Out: a short pause of this core, on processors that have one (x86, ARM); else none
#pragma once

namespace hocket {

inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace hocket
