// In the process of an isolated FMU: the last words before it ends, and no life without its parent.
// In:  signals and exit(), however they come about
// Out: the FMI function under way, in shared memory
// Needs POSIX (platform.hpp).
#pragma once

#include "isolation/channel.hpp"
#include "isolation/platform.hpp"

namespace hocket {

// For the rest of this process: notes where it crashes or exits; ends with its parent; is deaf to Ctrl-C.
void watch_crashes(Channel* channel, ProcessId parent);
bool is_orphaned();
// From outside: asks a process that is watched to note where it is; false if that cannot be asked.
bool ask_where(ProcessId process);

}  // namespace hocket
