// Looks after a run while a step lasts: rows are handed out and a request to stop is heard within a step.
// In:  looks from every body that a level runs, and while an isolated simulator is waited for, on any thread
// Out: about once per interval a call of `attend`, on the thread that runs the steps
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace hocket {

class ThreadPool;

class Watch {
  public:
    // `still`: nothing moves meanwhile, rows may be taken; returns whether the run goes on.
    using Attend = std::function<bool(bool still)>;

    explicit Watch(ThreadPool* pool = nullptr) : pool_(pool) {}
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // To be called by the thread that runs the steps, before it does.
    void begin(double seconds, Attend attend);
    // Whether the interval is over: all that the hot loop looks at.
    bool due() const { return due_.load(std::memory_order_relaxed); }
    bool go_on() { return !due() || look(); }
    void go_on_again() { stopped_ = due_ = false; }  // after it was stopped: the state is another one
    bool stopped() const { return stopped_.load(std::memory_order_acquire); }

  private:
    bool look();
    void count_time(double seconds);

    std::atomic<bool> due_{false}, stopped_{false};
    Attend attend_;
    ThreadPool* pool_;  // none: there is one thread
    std::thread::id runner_;
    std::mutex mutex_;
    std::condition_variable ends_;
    bool ending_ = false;
    std::thread timer_;
};

// What this thread looks at, now and then, while it waits for an answer that may never come.
class LookWhileWaiting {
  public:
    using Look = std::function<bool()>;  // returns whether the answer is still wanted

    explicit LookWhileWaiting(Look look) : look_(std::move(look)), before_(std::exchange(current_, this)) {}
    ~LookWhileWaiting() { current_ = before_; }
    LookWhileWaiting(const LookWhileWaiting&) = delete;
    LookWhileWaiting& operator=(const LookWhileWaiting&) = delete;

    static LookWhileWaiting* current() { return current_; }  // none: nobody looks after this thread
    bool go_on() { return look_(); }

  private:
    Look look_;
    LookWhileWaiting* before_;
    inline static thread_local LookWhileWaiting* current_ = nullptr;
};

}  // namespace hocket
