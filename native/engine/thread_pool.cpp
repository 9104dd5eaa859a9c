#include "engine/thread_pool.hpp"

#include <chrono>
#include <system_error>

#include "engine/crash_guard.hpp"
#include "engine/spin.hpp"
#include "engine/watch.hpp"

namespace hocket {

namespace {

// Work comes every few microseconds while a run lasts: waiting begins with spinning.
constexpr int spins = 4000;
constexpr std::chrono::milliseconds patience{50};  // until others stand still

}  // namespace

ThreadPool::ThreadPool(int threads) {
    try {
        for (int number = 1; number < threads; ++number)
            workers_.emplace_back([this, number] { work(number); });
    } catch (const std::system_error&) {
        // the machine gives no more: fewer must do
    }
}

ThreadPool::~ThreadPool() {
    ending_ = true;
    {
        std::lock_guard lock(mutex_);
        ++round_;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
}

bool ThreadPool::run(void (*task)(void*, int), void* context) {
    if (workers_.empty() || busy_.exchange(true, std::memory_order_acquire)) return false;
    task_ = task;
    context_ = context;
    left_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) > 0) {
        std::lock_guard lock(mutex_);
        wake_.notify_all();
    }
    task(context, 0);
    for (int spin = 0; left_.load(std::memory_order_acquire) > 0;) {
        if (spin < spins) {
            spin_pause();
            ++spin;
        } else {
            std::this_thread::yield();
            if (watch) watch->go_on();
        }
    }
    busy_.store(false, std::memory_order_release);
    return true;
}

bool ThreadPool::hold() {
    held_ = true;
    const auto until = std::chrono::steady_clock::now() + patience;
    while (parked_ < left_) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::yield();
    }
    return true;
}

void ThreadPool::release() {
    held_ = false;
    while (parked_ > 0) std::this_thread::yield();
}

void ThreadPool::park() {
    if (!held_) return;
    ++parked_;
    while (held_) std::this_thread::yield();
    --parked_;
}

void ThreadPool::work(int number) {
    unsigned seen = 0;
    guard_thread();
    const LookWhileWaiting looks([this] { return !watch || watch->go_on(); });
    for (;;) {
        for (int spin = 0; round_.load(std::memory_order_acquire) == seen && spin < spins; ++spin)
            spin_pause();
        if (round_.load(std::memory_order_acquire) == seen) {
            std::unique_lock lock(mutex_);
            ++sleeping_;
            wake_.wait(lock, [&] { return round_.load(std::memory_order_seq_cst) != seen; });
            --sleeping_;
        }
        ++seen;
        if (ending_) return;
        task_(context_, number);
        left_.fetch_sub(1, std::memory_order_release);
    }
}

}  // namespace hocket
