#include "engine/watch.hpp"

#include <chrono>

#include "engine/thread_pool.hpp"

namespace hocket {

Watch::~Watch() {
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
    }
    ends_.notify_all();
    if (timer_.joinable()) timer_.join();
}

void Watch::begin(double seconds, Attend attend) {
    runner_ = std::this_thread::get_id();
    attend_ = std::move(attend);
    due_ = false;
    if (!timer_.joinable()) timer_ = std::thread([this, seconds] { count_time(seconds); });
}

// A thread of its own: to read the clock takes as long as a small step.
void Watch::count_time(double seconds) {
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return ending_; }))
        due_ = true;
}

bool Watch::look() {
    if (stopped()) return false;
    if (std::this_thread::get_id() != runner_) {
        pool_->park();
        return !stopped();
    }
    const bool still = !pool_ || pool_->hold();
    due_ = false;  // not before: it is what makes the others look, and stand still
    const bool goes_on = attend_(still);
    if (!goes_on) stopped_ = due_ = true;  // every other look is answered so
    if (pool_) pool_->release();
    return goes_on;
}

}  // namespace hocket
