#include "isolation/crash_report.hpp"

#ifdef HOCKET_POSIX

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
#include <unwind.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hocket {

namespace {

constexpr int kept = 128;  // the outermost frames: what a level has called is among them
constexpr int deepest = 1 << 20;
constexpr std::size_t stack_size = 1 << 17;

Channel* noted_in = nullptr;
ProcessId parent_process = 0;

#ifdef __linux__
int where_signal() { return SIGRTMAX - 5; }
int parent_signal() { return SIGRTMAX - 6; }
#endif

struct Frames {
    void* addresses[kept];
    int count = 0;
};

_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void* raw) {
    auto& frames = *static_cast<Frames*>(raw);
    frames.addresses[frames.count % kept] = reinterpret_cast<void*>(_Unwind_GetIP(context));
    return ++frames.count < deepest ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// fmi2DoStep, fmi3DoStep, or name_fmiDoStep of FMI 1; null for any other.
const char* fmi_function(const char* name) {
    if (std::strncmp(name, "fmi", 3) == 0) return name;
    const char* found = name[0] == '_' ? nullptr : std::strstr(name, "_fmi");
    return found ? found + 1 : nullptr;
}

// Not all of this is meant for signal handlers: if it fails, the process ends a little less informatively.
void note() {
    if (!noted_in || noted_in->noted.load()) return;
    static Frames frames;
    frames.count = 0;
    _Unwind_Backtrace(visit_frame, &frames);
    for (int k = frames.count - 1; k >= 0 && k >= frames.count - kept; --k) {
        Dl_info info;
        const auto address = static_cast<char*>(frames.addresses[k % kept]) - 1;  // inside the call
        if (!dladdr(address, &info) || !info.dli_sname) continue;
        if (const char* name = fmi_function(info.dli_sname)) {
            std::strncpy(noted_in->function, name, sizeof noted_in->function - 1);
            break;
        }
    }
    noted_in->noted.store(1);
}

// The handler is gone by now: the signal ends the process as soon as this one returns.
void on_crash(int signal) {
    note();
    raise(signal);
}

#ifdef __linux__
void on_question(int) { note(); }

// Sent when the thread ends that has started this process; the process may go on.
void on_parent(int) {
    if (is_orphaned()) std::_Exit(1);
}
#endif

void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
}

}  // namespace

bool is_orphaned() { return getppid() != parent_process; }

void watch_crashes(Channel* channel, ProcessId parent) {
    noted_in = channel;
    parent_process = parent;
    signal(SIGINT, SIG_IGN);
    stack_t stack{};
    stack.ss_sp = std::malloc(stack_size);  // a stack that has overflown cannot be used
    stack.ss_size = stack_size;
    if (stack.ss_sp) sigaltstack(&stack, nullptr);
    Frames warm;  // the first call loads what it needs
    _Unwind_Backtrace(visit_frame, &warm);
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
        handle(number, on_crash, SA_RESETHAND | SA_ONSTACK);
#ifdef __GLIBC__
    const auto at_exit = [](int, void*) {
        if (noted_in->asked.number.load() != noted_in->answered.number.load()) note();
    };
    on_exit(at_exit, nullptr);
#endif
#ifdef __linux__
    handle(where_signal(), on_question, SA_ONSTACK | SA_RESTART);
    handle(parent_signal(), on_parent, SA_ONSTACK | SA_RESTART);
    prctl(PR_SET_PDEATHSIG, parent_signal());
#endif
    if (is_orphaned()) std::_Exit(1);
    setvbuf(stdout, nullptr, _IOLBF, 0);  // what it prints is not lost in a crash
}

bool ask_where(ProcessId process) {
#ifdef __linux__
    return kill(process, where_signal()) == 0;
#else
    (void)process;
    return false;
#endif
}

}  // namespace hocket

#else

namespace hocket {

bool is_orphaned() { return false; }
void watch_crashes(Channel*, ProcessId) {}
bool ask_where(ProcessId) { return false; }

}  // namespace hocket

#endif
