// A few threads that wait for work: they never touch Python.
// In:  tasks numbered 1 .. threads - 1; task 0 is the caller's own
// Out: all tasks done when run() returns
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace hocket {

class Watch;

class ThreadPool {
  public:
    explicit ThreadPool(int threads);
    ~ThreadPool();
    int threads() const { return static_cast<int>(workers_.size()) + 1; }

    // Runs task(0) here and the others on the workers; false if the pool is busy (a level inside a level).
    bool run(void (*task)(void*, int), void* context);

    // While others work: lets them stand still at their next look; false: one of them does not come to it.
    bool hold();
    void release();  // lets them go on
    void park();     // stands still while held; called by workers

    Watch* watch = nullptr;  // looked at by the caller of run(), while it waits for the others

  private:
    void work(int number);

    std::atomic<bool> busy_{false};
    std::atomic<bool> ending_{false};
    std::atomic<unsigned> round_{0};
    std::atomic<int> left_{0};
    std::atomic<bool> held_{false};
    std::atomic<int> parked_{0};
    void (*task_)(void*, int) = nullptr;
    void* context_ = nullptr;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::atomic<int> sleeping_{0};
    std::vector<std::thread> workers_;  // last: they use all of the above
};

}  // namespace hocket
