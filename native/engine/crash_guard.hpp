// What is left when the process ends inside foreign code: whose function ran, and the rows of every run.
// In:  the function that each thread is in, runs with their rows, signals and exit(), however they come about
// Out: words on standard error; per run its waiting rows, and a run.json that says how it ended; a file that tells
//      later processes of it
// What runs in a signal handler calls nothing but write(), open(), close(), rename() and raise(). Needs
// POSIX.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/row_buffer.hpp"

namespace hocket {

// Which of a few functions that an instance calls every few nanoseconds was called last, from 1 on; 0: none
// yet. It lies beside what these calls read anyway.
using Stage = std::atomic<unsigned char>;

// The function of foreign code that a thread is in, and the instance that it was called for.
struct ForeignCall {
    const char* function = nullptr;
    const void* handle = nullptr;
    // Of the instance that goes through its stages, and none in between; counts without a function.
    const Stage* stage = nullptr;
};

#if defined(__linux__) && !defined(HOCKET_LOADED_OFTEN)  // one instruction in place of a call
[[gnu::tls_model("initial-exec")]]
#endif
extern constinit thread_local ForeignCall foreign_call;

// The call that this thread is in; of a thread of the foreign code's own, one that is under way elsewhere.
ForeignCall find_foreign_call();

class ForeignCallScope {
  public:
    ForeignCallScope(const char* function, const void* handle)
        : function_(foreign_call.function), handle_(foreign_call.handle) {
        foreign_call.function = function;
        foreign_call.handle = handle;
    }
    ~ForeignCallScope() {
        foreign_call.function = function_;
        foreign_call.handle = handle_;
    }
    ForeignCallScope(const ForeignCallScope&) = delete;
    ForeignCallScope& operator=(const ForeignCallScope&) = delete;

  private:
    const char* function_;
    const void* handle_;
};

// An instance of foreign code, known by its handle, and before it has one by the address of its name.
class Callee {
  public:
    // `stages`: the names of the functions that `stage` counts. `mark`: the file in which it is written down
    // that it has ended the process; empty: nowhere.
    Callee(const char* name, const char* file, const char* mark = "", const Stage* stage = nullptr,
           const char* const* stages = nullptr);
    ~Callee();
    Callee(const Callee&) = delete;
    Callee& operator=(const Callee&) = delete;
    bool has(const void* other) const { return other && (other == handle || other == name); }

    const char *const name, *const file, *const mark;
    const Stage* const stage;
    const char* const* const stages;
    std::atomic<const void*> handle{nullptr};
    Callee *next = nullptr, **link = nullptr;
};

// A run under way: what is written of it should the process end.
class RunGuard {
  public:
    // Where its rows go, and where they wait, the oldest first.
    using Table = std::pair<std::string, std::vector<std::shared_ptr<RowBuffer>>>;
    RunGuard(std::string folder, std::string facts_path);
    ~RunGuard() { close(); }
    RunGuard(const RunGuard&) = delete;
    RunGuard& operator=(const RunGuard&) = delete;
    // The text of run.json but for the words that say how it ended.
    void set_facts(std::string before, std::string after);
    void set_tables(std::vector<Table> tables);
    void close();  // it is over: nothing is written any more; what was written for nothing is removed

  private:
    friend class CrashWriter;
    std::string folder_, facts_, fresh_, before_, after_;
    std::vector<Table> tables_;
    RunGuard *next_ = nullptr, **link_ = nullptr;
};

// For the rest of this process, unless another watch was set up before: signals that end it, and exit().
// Handlers that are there already have their turn afterwards.
// `quiet`: nothing is said, for whoever has started this process reads what the runs leave.
void guard_process(bool quiet = false);
// Another watch has been set up: guard_process() does nothing.
void leave_process_alone();
// Signals of this thread are handled on a stack of their own: one that has overflown cannot be used.
void guard_thread();

}  // namespace hocket
