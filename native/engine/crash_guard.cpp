#include "engine/crash_guard.hpp"

#include <mutex>

#if defined(__unix__) || defined(__APPLE__)
#define HOCKET_SIGNALS 1
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hocket {

constinit thread_local ForeignCall foreign_call;

namespace {

// Changed under the lock, read by handlers without it. Never destroyed: the process may end at any time.
struct Known {
    std::mutex lock;
    Callee* callees = nullptr;
    RunGuard* runs = nullptr;
    ForeignCall* threads[256] = {};  // those that have called foreign code
};

Known& known() {
    static Known* it = new Known;
    return *it;
}

std::atomic<bool> guarded{false}, fired{false}, told{false}, silent{false};
std::atomic<const void*> teller{nullptr};  // the thread that tells, by its foreign_call

// The call that a thread is in; a stage is looked at only if whoever it belongs to is still there.
ForeignCall call_of(const ForeignCall& thread) {
    if (thread.function || !thread.stage) return thread;
    for (const Callee* one = known().callees; one; one = one->next)
        if (one->stage == thread.stage)
            if (const int stage = thread.stage->load()) return {one->stages[stage - 1], one->handle};
    return {};
}

}  // namespace

ForeignCall find_foreign_call() {
    if (const ForeignCall own = call_of(foreign_call); own.function) return own;
    for (const ForeignCall* other : known().threads)
        if (other)
            if (const ForeignCall call = call_of(*other); call.function) return call;
    return {};
}

Callee::Callee(const char* name, const char* file, const char* mark, const Stage* stage,
               const char* const* stages)
    : name(name), file(file), mark(mark), stage(stage), stages(stages) {
    std::lock_guard guard(known().lock);
    if ((next = known().callees)) next->link = &next;
    link = &known().callees;
    known().callees = this;
}

Callee::~Callee() {
    std::lock_guard guard(known().lock);
    if (next) next->link = link;
    *link = next;
}

RunGuard::RunGuard(std::string folder, std::string facts_path)
    : folder_(std::move(folder)), facts_(std::move(facts_path)), fresh_(facts_ + ".crash") {
    std::lock_guard guard(known().lock);
    if ((next_ = known().runs)) next_->link_ = &next_;
    link_ = &known().runs;
    known().runs = this;
}

void RunGuard::set_facts(std::string before, std::string after) {
    std::lock_guard guard(known().lock);
    before_ = std::move(before);
    after_ = std::move(after);
}

void RunGuard::set_tables(std::vector<Table> tables) {
    std::lock_guard guard(known().lock);
    tables_ = std::move(tables);
}

void RunGuard::close() {
    std::lock_guard guard(known().lock);
    if (!link_) return;
    if (next_) next_->link_ = link_;
    *link_ = next_;
    link_ = nullptr;
    if (fired.load())  // a signal that somebody else took care of
        for (const auto& [path, rows] : tables_) std::remove(path.c_str());
    tables_.clear();
}

#ifdef HOCKET_SIGNALS

namespace {

constexpr std::size_t stack_size = 1 << 16;
constexpr int longest = 2048;

struct Ending {
    int number;
    const char* words;
};
constexpr Ending endings[] = {
    {SIGSEGV, "segmentation fault (SIGSEGV)"},
    {SIGBUS, "bus error (SIGBUS)"},
    {SIGFPE, "floating point exception (SIGFPE)"},
    {SIGILL, "illegal instruction (SIGILL)"},
    {SIGABRT, "aborted (SIGABRT)"},
};
struct sigaction handled_before[std::size(endings)];

// A text put together without memory of its own to ask for.
class Line {
  public:
    Line& operator<<(const char* text) {
        while (text && *text && size_ < longest - 1) text_[size_++] = *text++;
        return *this;
    }
    Line& operator<<(long number) {
        char digits[24];
        int count = 0;
        for (unsigned long left = number < 0 ? 0UL - static_cast<unsigned long>(number)
                                             : static_cast<unsigned long>(number);
             count == 0 || left > 0; left /= 10)
            digits[count++] = static_cast<char>('0' + left % 10);
        if (number < 0 && size_ < longest - 1) text_[size_++] = '-';
        while (count > 0 && size_ < longest - 1) text_[size_++] = digits[--count];
        return *this;
    }
    const char* data() const { return text_; }
    std::size_t size() const { return size_; }

  private:
    char text_[longest] = {};
    std::size_t size_ = 0;
};

bool write_all(int file, const void* data, std::size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t done = write(file, at, size);
        if (done <= 0) return false;
        at += done;
        size -= static_cast<std::size_t>(done);
    }
    return true;
}

void say(const Line& line) {
    if (!silent.load()) write_all(STDERR_FILENO, line.data(), line.size());
}

std::uint32_t checksum(const void* data, std::size_t size, std::uint32_t sum) {  // that of zlib.crc32
    sum = ~sum;
    for (const auto* at = static_cast<const unsigned char*>(data); size > 0; --size, ++at) {
        sum ^= *at;
        for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (0xedb88320u & (0u - (sum & 1u)));
    }
    return ~sum;
}

}  // namespace

class CrashWriter {
  public:
    // All that a run leaves: its rows first, then the words.
    static void keep(const RunGuard& run, const Line& what) {
        for (const auto& [path, rows] : run.tables_) keep_rows(path.c_str(), rows);
        if (run.before_.empty()) return;
        const int file = open(run.fresh_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (file < 0) return;
        bool good = write_all(file, run.before_.data(), run.before_.size());
        for (std::size_t k = 0; k < what.size(); ++k) {
            const char one = what.data()[k];
            if (one == '"' || one == '\\') good = good && write_all(file, "\\", 1);
            const char plain = static_cast<unsigned char>(one) < 0x20 ? ' ' : one;
            good = good && write_all(file, &plain, 1);
        }
        good = good && write_all(file, run.after_.data(), run.after_.size());
        close(file);
        if (good) rename(run.fresh_.c_str(), run.facts_.c_str());
    }
    static const char* folder(const RunGuard& run) { return run.folder_.c_str(); }
    static const RunGuard* next(const RunGuard& run) { return run.next_; }

  private:
    // Whole rows: "hkrows1", the checksum of the numbers, the width, the number of rows, the numbers.
    static void keep_rows(const char* path, const std::vector<std::shared_ptr<RowBuffer>>& buffers) {
        struct {
            char mark[8] = {'h', 'k', 'r', 'o', 'w', 's', '1', 0};
            std::uint64_t sum = 0, width = 0, count = 0;
        } head;
        for (const auto& rows : buffers) {
            head.width = static_cast<std::uint64_t>(rows->width);
            head.count += rows->count();
            head.sum = checksum(rows->data.data(), size(*rows), static_cast<std::uint32_t>(head.sum));
        }
        if (head.count == 0) return;
        const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (file < 0) return;
        bool good = write_all(file, &head, sizeof head);
        for (const auto& rows : buffers) good = good && write_all(file, rows->data.data(), size(*rows));
        close(file);
    }
    static std::size_t size(const RowBuffer& rows) {
        return rows.count() * static_cast<std::size_t>(rows.width) * sizeof(double);
    }
};

namespace {

void keep_mark(const char* path, const char* words, std::size_t size) {
    const int file = *path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (file < 0) return;
    write_all(file, words, size);
    close(file);
}

void tell(const Line& how, const ForeignCall& call) {
    Line what;
    what << how.data();
    if (call.function) {
        what << " in " << call.function;
        const std::size_t plain = what.size();
        for (const Callee* one = known().callees; one; one = one->next)
            if (one->has(call.handle)) {
                keep_mark(one->mark, what.data(), plain);
                what << " of the FMU `" << one->name << "` (" << one->file << ")";
                break;
            }
    }
    Line news;
    news << "hocket: " << what.data() << "\n";
    if (call.function) say(news);
    for (const RunGuard* run = known().runs; run; run = CrashWriter::next(*run)) {
        CrashWriter::keep(*run, what);
        Line kept;
        kept << "hocket: the rows of the run are kept in " << CrashWriter::folder(*run) << "\n";
        say(kept);
    }
    Line advice;
    advice << "hocket: isolate=True (--isolate) gives an FMU a process of its own, and Python lives on\n";
    if (call.function) say(advice);
}

void on_signal(int number, siginfo_t* info, void*) {
    int place = 0;
    while (endings[place].number != number) ++place;
    if (!fired.exchange(true)) {
        teller.store(&foreign_call);
        Line how;
        how << endings[place].words;
        tell(how, find_foreign_call());
        told.store(true);
    } else if (teller.load() != &foreign_call) {
        // another thread crashes too: it must not end the process before all is written
        for (int naps = 0; !told.load() && naps < 1000; ++naps) {
            const timespec nap{0, 10'000'000};
            nanosleep(&nap, nullptr);
        }
    }
    // Who was there before is next: by the same fault again, or by the same signal if it was sent.
    sigaction(number, &handled_before[place], nullptr);
    if (info->si_code <= 0) raise(number);
}

// exit() runs this on the thread that has called it.
void on_end(int code) {
    const ForeignCall call = call_of(foreign_call);
    if (!call.function || fired.exchange(true)) return;
    Line how;
    how << "exit(" << static_cast<long>(code) << ")";
    tell(how, call);
    std::fflush(nullptr);
    _exit(code ? code : EXIT_FAILURE);  // a program that ends in the middle of a step has not succeeded
}

struct ThreadStack {
    char* memory = nullptr;
    int place = -1;
    ThreadStack() {
        stack_t now{};
        if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE)) {
            memory = new (std::nothrow) char[stack_size];
            now.ss_sp = memory;
            now.ss_size = stack_size;
            now.ss_flags = 0;
            if (memory) sigaltstack(&now, nullptr);
        }
        std::lock_guard guard(known().lock);
        for (int k = 0; k < static_cast<int>(std::size(known().threads)) && place < 0; ++k)
            if (!known().threads[k]) known().threads[place = k] = &foreign_call;
    }
    ~ThreadStack() {
        {
            std::lock_guard guard(known().lock);
            if (place >= 0) known().threads[place] = nullptr;
        }
        if (!memory) return;
        stack_t now{};
        if (sigaltstack(nullptr, &now) == 0 && now.ss_sp == memory) {
            now = {};
            now.ss_flags = SS_DISABLE;
            sigaltstack(&now, nullptr);
        }
        delete[] memory;
    }
};

}  // namespace

void guard_thread() { static thread_local ThreadStack stack; }

void guard_process(bool quiet) {
    guard_thread();
    if (quiet) silent.store(true);
    if (guarded.exchange(true)) return;
    (void)known();
    for (std::size_t k = 0; k < std::size(endings); ++k) {
        struct sigaction action{};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        sigaction(endings[k].number, &action, &handled_before[k]);
    }
#ifdef __GLIBC__
    on_exit([](int code, void*) { on_end(code); }, nullptr);
    std::at_quick_exit([] { on_end(EXIT_FAILURE); });
#else
    std::atexit([] { on_end(EXIT_FAILURE); });
#endif
}

#else

void guard_thread() {}
void guard_process(bool) {}

#endif

void leave_process_alone() { guarded.store(true); }

}  // namespace hocket
