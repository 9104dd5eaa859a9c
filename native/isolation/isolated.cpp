#include "isolation/isolated.hpp"

#ifdef HOCKET_POSIX
#include <signal.h>
#include <sys/wait.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include "engine/watch.hpp"
#include "isolation/crash_report.hpp"

namespace hocket {

bool (*Isolated::interrupted)() = nullptr;

namespace {

constexpr Nanoseconds spinning = 30'000;     // a wake-up costs about as much
constexpr Nanoseconds yielding = 1'000'000;  // and is felt in steps that take less than this
constexpr std::uint32_t settled = 64;        // questions, before one is sure of that
constexpr Nanoseconds slice = 10'000'000;    // between two looks at the process
constexpr double patience_at_most = 10.0;    // limits, on a machine that gives a process next to no time

std::atomic<unsigned> given_up{0};  // how often the user has stopped waiting

// Those that spin must leave a core to those that work.
std::atomic<int> population{0}, asking{0};

bool is_crowded() {
    static const int available = cores();
    const int sides =
        population.load(std::memory_order_relaxed) + std::max(1, asking.load(std::memory_order_relaxed));
    return sides > available;
}

// What the system tells of a process: how long it has worked, has waited for a processor before that, and
// whether it would work if it had one.
struct Presence {
    Nanoseconds worked = 0, starved = 0;
    bool ready = false;
};

Presence find_presence([[maybe_unused]] ProcessId process) {
    Presence found;
#ifdef __linux__
    const std::string folder = "/proc/" + std::to_string(process);
    std::ifstream times(folder + "/schedstat"), state(folder + "/stat");
    times >> found.worked >> found.starved;
    std::string line;
    std::getline(state, line);
    const std::size_t name = line.rfind(") ");  // it may hold anything
    found.ready = name != std::string::npos && line.compare(name + 2, 1, "R") == 0;
#endif
    return found;
}

}  // namespace

Isolated::Isolated(int fd, int inputs, int outputs, double limit)
    : memory_(fd, inputs, outputs), inputs_(inputs), outputs_(outputs), limit_(limit) {
    memory_->asked.number.store(1);
    ++population;
}

Isolated::~Isolated() { --population; }

void Isolated::attach(ProcessId process) { process_ = process; }

void Isolated::detach() {
    process_ = 0;
    if (end_ == End::none) end_ = End::closed;
}

// asking and waiting

bool Isolated::raise(Ask ask) {
    problem_.clear();
    if (end_ != End::none) return false;
    const Nanoseconds at = now();
    if (since_) memory_->asked.note_time(at - since_);
    memory_->ask = ask;
    crowded_ = is_crowded();
    memory_->awake = {crowded_ ? 0 : spinning, false};
    const bool follows =
        crowded_ && number_ > settled && memory_->answered.usual.load(std::memory_order_relaxed) < yielding;
    memory_->core = follows ? core() : Channel::anywhere;
    memory_->asked.raise(++number_);
    return true;
}

bool Isolated::wait(const char* name, double limit) {
    if (end_ != End::none) return false;
    asking.fetch_add(1, std::memory_order_relaxed);
    const Awake awake{crowded_ ? yielding : spinning, crowded_};
    const bool soon = memory_->answered.await(number_, awake, patience_);
    asking.fetch_sub(1, std::memory_order_relaxed);
    if (!soon && !wait_long(name, limit)) return false;
    if (!listen()) {
        note_end(End::malformed, name);
        return false;
    }
    since_ = now();
    asked_ = name;
    return memory_->good != 0;
}

void Isolated::give_up() { ++given_up; }

bool Isolated::wait_long(const char* name, double limit) {
    const Nanoseconds begin = now();
    const Presence before = find_presence(process_);
    Nanoseconds worked = before.worked;
    const unsigned round = given_up.load();
    said_.clear();
    for (;;) {
        const bool answered = memory_->answered.sleep(number_, slice);
        End end = End::none;
        if (given_up.load() != round)
            end = End::interrupted;
        else if (answered)
            return true;
        else if (!look(end))
            ;  // and may have answered before
        else if (is_late(begin, before.starved, worked, limit))
            end = End::late;
        if (end == End::none) {
            if (!listen()) {
                note_end(End::malformed, name);
                return false;
            }
            if (is_wanted()) continue;
            note_end(End::interrupted, name);
            return false;
        } else if (end == End::interrupted ||
                   memory_->answered.number.load(std::memory_order_acquire) != number_) {
            note_end(end, name);
            return false;
        }
    }
}

// What it has waited for a processor is no fault of the FMU, and does not count; but there is an end to that.
// How long it has waited is known once it works again.
bool Isolated::is_late(Nanoseconds begin, Nanoseconds starved, Nanoseconds& worked, double limit) {
    took_ = static_cast<double>(now() - begin) * 1e-9;
    if (took_ <= limit) return false;
    const Presence found = find_presence(process_);
    const bool waits = found.ready && found.worked == worked;
    worked = found.worked;
    starved_ = static_cast<double>(found.starved - starved) * 1e-9;
    return (!waits && took_ - starved_ > limit) || took_ > patience_at_most * limit;
}

bool Isolated::is_wanted() {
    if (LookWhileWaiting* run = LookWhileWaiting::current()) return run->go_on();
    if (!interrupted || !interrupted()) return true;
    give_up();
    return false;
}

#ifdef HOCKET_POSIX
bool Isolated::look(End& end) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        end = End::vanished;  // someone else has reaped it
        return false;
    }
    if (info.si_pid == 0) return true;
    end = info.si_code == CLD_EXITED ? End::exited : End::signalled;
    code_ = info.si_status;
    return false;
}
#else
bool Isolated::look(End& end) {
    end = End::vanished;
    return false;
}
#endif

void Isolated::note_end(End how, const char* name) {
    if (how == End::late || how == End::interrupted || how == End::malformed) kill();
    listen();
    end_ = how;
    asked_ = name;
}

void Isolated::kill() {
    End end = End::none;
    if (process_ <= 0 || !look(end)) return;
    // it may still be able to say where it is
    if (ask_where(process_))
        for (int k = 0; k < 50 && !memory_->noted.load(); ++k)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
#ifdef HOCKET_POSIX
    ::kill(process_, SIGKILL);
#endif
}

bool Isolated::listen() {
    if (!memory_.has_log()) [[likely]]
        return true;
    const std::uint64_t until = memory_.log_end();  // what is said meanwhile is heard the next time
    for (Message message;;) {
        const Memory::Heard heard = memory_.hear(message, until);
        if (heard != Memory::Heard::message) return heard == Memory::Heard::nothing;
        if (message.status > 0) said_ = message.text;
        if (!quiet) log(std::move(message));
    }
}

std::string Isolated::payload() {
    std::optional<std::string> payload = memory_.payload();
    if (!payload) reject();
    return std::move(payload).value_or("");
}

void Isolated::reject() {
    if (end_ == End::none) note_end(End::malformed, std::string(asked_).c_str());
}

std::string Isolated::function() const {
    if (!memory_->noted.load()) return "";
    const char *begin = memory_->function, *end = std::find(begin, begin + sizeof memory_->function, '\0');
    return std::string(begin, end);
}

// Simulator

// Whether an FMU can have failed in this way.
bool Isolated::can_be(const Failure& failure) const {
    using Kind = Failure::Kind;
    const bool known = failure.kind == Kind::none || failure.kind == Kind::stopped_early ||
                       failure.kind == Kind::not_finite || failure.kind == Kind::reported ||
                       failure.kind == Kind::internal || failure.kind == Kind::ended;
    const bool called = failure.call >= Call::step && failure.call <= Call::restore;
    const bool placed =
        failure.port < outputs_ && failure.port >= (failure.kind == Kind::not_finite ? 0 : -1);
    return known && called && placed;
}

bool Isolated::report_failure(Call call, std::int64_t tick, std::int64_t ticks) {
    if (end_ == End::none && problem_.empty()) {
        const Failure said = memory_->failure;
        if (can_be(said)) {
            failure_ = {};
            failure_.kind = said.kind;
            failure_.call = said.call;
            failure_.port = said.port;
            failure_.tick = said.tick;
            failure_.ticks = said.ticks;
            failure_.value = said.value;
            return false;
        }
        reject();
    }
    failure_ = {};
    failure_.kind = Failure::Kind::reported;
    failure_.call = call;
    failure_.tick = tick;
    failure_.ticks = ticks;
    return false;
}

bool Isolated::step(const Span& span, const double* u) {
    give(u, rows_);
    memory_->rows = rows_;
    memory_->span = span;
    return ask(Ask::step, "step") || report_failure(Call::step, span.tick, span.ticks);
}

bool Isolated::output(std::int64_t tick, const double* u, double* y) {
    give(u, rows_);
    memory_->rows = rows_;
    memory_->span.tick = tick;
    const bool good = ask(Ask::output, "output");
    if (end_ == End::none) take(y);
    return good || report_failure(Call::output, tick, 0);
}

bool Isolated::both(const Span& span, const double* u, double* y) {
    give(u, rows_);
    memory_->rows = rows_;
    memory_->span = span;
    const bool good = ask(Ask::step_output, "step");
    if (end_ == End::none) take(y);
    return good || report_failure(Call::step, span.tick, span.ticks);
}

bool Isolated::slope(std::int64_t tick, const double* u, double* dy) {
    give(u, rows_);
    memory_->rows = rows_;
    memory_->span.tick = tick;
    const bool good = ask(Ask::slope, "slope");
    if (end_ == End::none) take(dy);
    return good || report_failure(Call::slope, tick, 0);
}

bool Isolated::get_text(int port, std::string& value) {
    memory_->port = port;
    if (!ask(Ask::get_text, "text")) return report_failure(Call::output, 0, 0);
    value = payload();
    return end_ == End::none || report_failure(Call::output, 0, 0);
}

bool Isolated::set_text(int port, const std::string& value) {
    memory_->port = port;
    if (!memory_.put(value)) {
        problem_ = "a text of " + std::to_string(value.size()) + " bytes is too long for an isolated FMU";
        return report_failure(Call::step, 0, 0);
    }
    return ask(Ask::set_text, "set_text") || report_failure(Call::step, 0, 0);
}

// Python

bool Isolated::call(const char* name, const std::string& question, double limit) {
    if (memory_.put(question)) {
        const bool good = raise(Ask::call) && wait(name, limit);
        note_request(end_ == End::none && memory_->ended != 0);
        return good;
    }
    problem_ = "a value of " + std::to_string(question.size()) + " bytes is too long for an isolated FMU";
    return false;
}

bool Isolated::call(Ask asked, double t, double h, const double* u, int rows, double* answer, int count) {
    static const char* names[] = {"step", "output", "slope"};
    if (rows > Channel::most_rows) {
        problem_ = "inputs of degree " + std::to_string(rows - 1) + " are too many for an isolated FMU";
        return false;
    }
    give(u, rows);
    memory_->rows = rows;
    memory_->span = {0, 0, t, h};
    if (!ask(asked, names[static_cast<int>(asked) - static_cast<int>(Ask::python_step)])) return false;
    std::copy(memory_.y(), memory_.y() + count, answer);
    return true;
}

}  // namespace hocket
