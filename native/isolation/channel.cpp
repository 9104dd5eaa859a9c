#include "isolation/channel.hpp"

#include "isolation/platform.hpp"

#ifdef HOCKET_POSIX
#include <sys/mman.h>
#include <sys/stat.h>
#endif
#ifdef __linux__
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#endif

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include "engine/spin.hpp"

namespace hocket {

namespace {

constexpr std::size_t log_room = 1 << 20;
constexpr std::size_t page = 4096;
constexpr Nanoseconds nap = 100'000;  // where there is no futex

struct Head {  // of a message in the log
    std::uint32_t total;
    std::int32_t status;
    std::uint32_t name, category;
};

std::size_t align_to_page(std::size_t size) { return (size + page - 1) / page * page; }

std::size_t log_place(int inputs, int outputs) {
    const std::size_t numbers = static_cast<std::size_t>(Channel::most_rows) * inputs + std::max(outputs, 1);
    return align_to_page(align_to_page(sizeof(Channel)) + numbers * sizeof(double));
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Nanoseconds longest) {
#ifdef __linux__
    const timespec timeout{longest / 1'000'000'000, static_cast<long>(longest % 1'000'000'000)};
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
#else
    if (word.load() == seen) std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(longest, nap)));
#endif
}

void futex_wake(std::atomic<std::uint32_t>& word) {
#ifdef __linux__
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
#else
    (void)word;
#endif
}

}  // namespace

int cores() {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

int core() {
#ifdef __linux__
    return sched_getcpu();
#else
    return Channel::anywhere;
#endif
}

void move_to(int core) {
#ifdef __linux__
    thread_local const cpu_set_t everywhere = [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof set, &set);
        return set;
    }();
    cpu_set_t set = everywhere;
    if (core != Channel::anywhere && core < CPU_SETSIZE && CPU_ISSET(core, &everywhere)) {
        CPU_ZERO(&set);
        CPU_SET(core, &set);
    }
    sched_setaffinity(0, sizeof set, &set);
#else
    (void)core;
#endif
}

// Turn: either the sleeper sees the new number, or the other side sees that someone sleeps.

void Turn::raise(std::uint32_t to) {
    number.store(to, std::memory_order_seq_cst);
    if (asleep.load(std::memory_order_seq_cst)) futex_wake(number);
}

bool Turn::await(std::uint32_t until, Awake awake, Patience& patience) const {
    if (number.load(std::memory_order_acquire) == until) return true;
    if (usual.load(std::memory_order_relaxed) > awake.longest || awake.longest == 0 || !patience.lasts())
        return false;
    bool there = false;
    const Nanoseconds begin = now();
    do {
        for (int k = 0; k < (awake.yields ? 1 : 32) && !there; ++k) {
            awake.yields ? std::this_thread::yield() : spin_pause();
            there = number.load(std::memory_order_acquire) == until;
        }
    } while (!there && now() - begin < awake.longest);
    patience.learn(there);
    return there;
}

bool Turn::sleep(std::uint32_t until, Nanoseconds longest) {
    asleep.store(1, std::memory_order_seq_cst);
    const std::uint32_t seen = number.load(std::memory_order_seq_cst);
    if (seen != until) futex_wait(number, seen, longest);
    asleep.store(0, std::memory_order_relaxed);
    return number.load(std::memory_order_acquire) == until;
}

// Memory

std::size_t Memory::required_size(int inputs, int outputs, std::size_t payload) {
    return log_place(inputs, outputs) + log_room + align_to_page(payload);
}

#ifdef HOCKET_POSIX
void Memory::map(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) throw std::runtime_error("the shared memory cannot be looked at");
    size_ = static_cast<std::size_t>(status.st_size);
    void* place = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (place == MAP_FAILED) throw std::runtime_error("the shared memory cannot be mapped");
    start_ = static_cast<char*>(place);
}

Memory::~Memory() { munmap(start_, size_); }
#else
void Memory::map(int) {
    throw std::runtime_error("a simulator in a process of its own needs POSIX shared memory");
}

Memory::~Memory() = default;
#endif

Memory::Memory(int fd, int inputs, int outputs) : inputs_(inputs), outputs_(outputs) {
    map(fd);
    log_at_ = log_place(inputs, outputs);
    log_size_ = log_room;
    payload_at_ = log_at_ + log_size_;
    channel_ = new (start_) Channel;
    channel_->inputs = inputs;
    channel_->outputs = outputs;
    channel_->size = size_;
    channel_->log_at = log_at_;
    channel_->log_size = log_size_;
    channel_->payload_at = payload_at_;
}

Memory::Memory(int fd) {
    map(fd);
    channel_ = std::launder(reinterpret_cast<Channel*>(start_));
    if (channel_->format != Channel::version || channel_->size != size_)
        throw std::runtime_error("the shared memory is of another version of hocket");
    inputs_ = channel_->inputs;
    outputs_ = channel_->outputs;
    log_at_ = channel_->log_at;
    log_size_ = channel_->log_size;
    payload_at_ = channel_->payload_at;
}

double* Memory::u() const { return reinterpret_cast<double*>(start_ + align_to_page(sizeof(Channel))); }

bool Memory::put(const std::string& payload) {
    if (payload.size() > size_ - payload_at_) return false;
    std::memcpy(start_ + payload_at_, payload.data(), payload.size());
    channel_->length = payload.size();
    return true;
}

std::optional<std::string> Memory::payload() const {
    const std::size_t length = std::atomic_ref(channel_->length).load(std::memory_order_relaxed);
    if (length > size_ - payload_at_) return std::nullopt;
    return std::string(start_ + payload_at_, length);
}

// The log: a ring of bytes. Written under the lock of log(), read by who waits for the answer.

void Memory::copy_in(std::uint64_t at, const void* from, std::size_t count) {
    const std::size_t place = at % log_size_, first = std::min(count, log_size_ - place);
    std::memcpy(start_ + log_at_ + place, from, first);
    std::memcpy(start_ + log_at_, static_cast<const char*>(from) + first, count - first);
}

void Memory::copy_out(std::uint64_t at, void* to, std::size_t count) const {
    const std::size_t place = at % log_size_, first = std::min(count, log_size_ - place);
    std::memcpy(to, start_ + log_at_ + place, first);
    std::memcpy(static_cast<char*>(to) + first, start_ + log_at_, count - first);
}

void Memory::say(const Message& message) {
    const std::size_t total = message.name.size() + message.category.size() + message.text.size();
    std::uint64_t at = channel_->log_written.load(std::memory_order_relaxed);
    const std::uint64_t used = at - channel_->log_read.load(std::memory_order_acquire);
    if (used + sizeof(Head) + total > log_size_) {
        channel_->log_dropped.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const Head head{static_cast<std::uint32_t>(total), message.status,
                    static_cast<std::uint32_t>(message.name.size()),
                    static_cast<std::uint32_t>(message.category.size())};
    copy_in(at, &head, sizeof head);
    at += sizeof head;
    for (const std::string* part : {&message.name, &message.category, &message.text}) {
        copy_in(at, part->data(), part->size());
        at += part->size();
    }
    channel_->log_written.store(at, std::memory_order_release);
}

Memory::Heard Memory::hear(Message& message, std::uint64_t until) {
    if (heard_ == until) {
        const std::uint64_t dropped = channel_->log_dropped.exchange(0, std::memory_order_relaxed);
        if (dropped == 0) return Heard::nothing;
        message = {"", 1, "", std::to_string(dropped) + " more messages were dropped: too many at once"};
        return Heard::message;
    }
    const std::uint64_t waiting = until - heard_;
    if (waiting > log_size_ || waiting < sizeof(Head)) return Heard::malformed;
    Head head{};
    copy_out(heard_, &head, sizeof head);
    if (head.total > waiting - sizeof head || head.name > head.total ||
        head.category > head.total - head.name)
        return Heard::malformed;
    std::string all(head.total, '\0');
    copy_out(heard_ + sizeof head, all.data(), all.size());
    message = {all.substr(0, head.name), head.status, all.substr(head.name, head.category),
               all.substr(head.name + head.category)};
    heard_ += sizeof head + head.total;
    channel_->log_read.store(heard_, std::memory_order_release);
    return Heard::message;
}

}  // namespace hocket
