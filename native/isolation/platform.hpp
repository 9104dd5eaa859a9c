// What isolation needs of a platform: shared memory, processes and signals as POSIX has them (Linux, macOS,
// BSD).
// In:  the compiler's macros
// Out: HOCKET_POSIX, where they are there; elsewhere isolation is refused at run time  On Linux alone:
// waiting by futex (elsewhere in naps), a core shared by both sides, the death of the parent told by a
// signal (elsewhere looked for every second), and where an FMU hangs that takes too long.
#pragma once

#if defined(__unix__) || defined(__APPLE__)
#define HOCKET_POSIX 1
#endif

namespace hocket {

using ProcessId = int;

}  // namespace hocket
