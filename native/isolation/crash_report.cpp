#include "isolation/crash_report.hpp"

#include "engine/crash_guard.hpp"

#ifdef HOCKET_POSIX

#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <cstdio>
#include <cstdlib>

namespace hocket {

namespace {

Channel* noted_in = nullptr;
ProcessId parent_process = 0;

#ifdef __linux__
int where_signal() { return SIGRTMAX - 5; }
int parent_signal() { return SIGRTMAX - 6; }
#endif

void note() {
    if (!noted_in || noted_in->noted.load()) return;
    if (const char* name = find_foreign_call().function)
        for (std::size_t k = 0; k < sizeof noted_in->function - 1 && name[k]; ++k)
            noted_in->function[k] = name[k];
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
    leave_process_alone();
    guard_thread();
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
