// Two processes and one piece of memory: one asks, the other answers, and each waits for its turn.
// In:  a file descriptor of shared memory
// Out: numbers, texts and log messages seen by both sides
// Needs POSIX (platform.hpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/simulator.hpp"
#include "fmu/log.hpp"

namespace hocket {

// The first seven are what a level asks of a Simulator; the rest is answered in Python.
enum class Ask : int {
    open,
    step,
    output,
    step_output,
    slope,
    get_text,
    set_text,
    call,
    python_step,
    python_output,
    python_slope
};

using Nanoseconds = std::int64_t;
inline Nanoseconds now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Whoever waits for little time stays awake: to wake up on an idle core takes longer than most steps. With a
// core for every side it spins; else it gives its core away, to the other side first of all, which follows it
// there.
struct Awake {
    Nanoseconds longest = 0;  // 0: goes to sleep at once
    bool yields = false;
};

// It may stay awake unless that was in vain of late: then all cores have other work to do.
struct Patience {
    int vain = 0, left = 0;
    bool lasts() { return left == 0 || --left == 0; }
    void learn(bool worked) {
        vain = worked ? 0 : vain < 128 ? 2 * vain + 1 : vain;
        left = vain;
    }
};

// A number that one side raises and the other waits for; a futex on Linux.
struct alignas(64) Turn {
    std::atomic<std::uint32_t> number{0};
    std::atomic<std::uint32_t> asleep{0};
    std::atomic<Nanoseconds> usual{0};  // how long the side that raises it takes, smoothed

    void raise(std::uint32_t to);
    bool await(std::uint32_t until, Awake awake, Patience& patience) const;
    bool sleep(std::uint32_t until, Nanoseconds longest);
    void note_time(Nanoseconds time) {
        const Nanoseconds before = std::clamp<Nanoseconds>(usual.load(std::memory_order_relaxed), 0, longest);
        usual.store(before + (std::min(time, longest) - before) / 4, std::memory_order_relaxed);
    }
    static constexpr Nanoseconds longest = Nanoseconds{1} << 60;  // what the other side wrote may be anything
};

// What lies at the beginning of the memory. The one who asks writes, then the one who answers, in turn.
struct Channel {
    static constexpr std::uint32_t version = 1;
    static constexpr int most_rows = 16;
    static constexpr int anywhere = -1;
    std::uint32_t format = version;
    int inputs = 0, outputs = 0;
    std::size_t size = 0, payload_at = 0, log_at = 0, log_size = 0;

    Turn asked, answered;
    alignas(64) Ask ask = Ask::open;
    int rows = 1, port = 0;
    Awake awake;          // the side that answers, while it waits
    int core = anywhere;  // where it is to run: where it is asked from
    Span span;
    std::size_t length = 0;  // of the payload
    alignas(64) int good = 0;
    int worded = 0;  // the payload says what went wrong
    int ended = 0;   // it has asked to end the simulation
    Failure failure;

    // what the FMU says, and where it was when its process ended
    alignas(64) std::atomic<std::uint64_t> log_written{0};
    std::atomic<std::uint64_t> log_dropped{0};
    alignas(64) std::atomic<std::uint64_t> log_read{0};
    alignas(64) std::atomic<int> noted{0};
    char function[128] = {};
};

// A view of the memory. Whoever reads trusts nothing in it: the other side may have gone mad, or be hostile.
// Where things lie is known from the beginning; each length is read once, checked, and then used.
class Memory {
  public:
    static std::size_t required_size(int inputs, int outputs, std::size_t payload);
    Memory(int fd, int inputs, int outputs);  // lays it out
    explicit Memory(int fd);                  // as another has laid it out
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    Channel& operator*() const { return *channel_; }
    Channel* operator->() const { return channel_; }
    double* u() const;
    double* y() const { return u() + static_cast<std::size_t>(Channel::most_rows) * inputs_; }
    bool put(const std::string& payload);        // false: too long
    std::optional<std::string> payload() const;  // nothing: its length cannot be
    std::size_t payload_at() const { return payload_at_; }
    void say(const Message& message);
    enum class Heard : int { nothing, message, malformed };
    // The next message of those that end before `until`, which is what log_end() was.
    Heard hear(Message& message, std::uint64_t until);
    std::uint64_t log_end() const { return channel_->log_written.load(std::memory_order_acquire); }
    bool has_log() const {
        return log_end() != heard_ || channel_->log_dropped.load(std::memory_order_relaxed) != 0;
    }

  private:
    void map(int fd);
    void copy_in(std::uint64_t at, const void* from, std::size_t count);
    void copy_out(std::uint64_t at, void* to, std::size_t count) const;

    Channel* channel_ = nullptr;
    char* start_ = nullptr;
    std::size_t size_ = 0, payload_at_ = 0, log_at_ = 0, log_size_ = 0;
    int inputs_ = 0, outputs_ = 0;
    std::uint64_t heard_ = 0;  // of the log
};

int cores();             // that this process may use
int core();              // that this thread runs on
void move_to(int core);  // this thread; anywhere: back to all it may use

}  // namespace hocket
