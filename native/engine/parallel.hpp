// Work that does not depend on each other, on several threads, where that pays.
// In:  pieces of work by their index
// Out: the same numbers, sooner
#pragma once

#include <functional>
#include <vector>

#include "engine/thread_pool.hpp"

namespace hocket {

// How long the pieces of an operation take, to decide whether threads pay.
struct Workload {
    bool parallel = false;  // whether it may run on several threads; later, whether it does
    int measured = 0;
    std::vector<double> seconds;  // per piece
    double in_a_row = 1e9, shared_out = 1e9;
    std::vector<std::vector<int>> shares;  // per thread
};

class ParallelExecution {
  public:
    using Piece = std::function<bool(int index)>;

    // always: whether threads are used without a look at what they gain
    void share(ThreadPool* pool, bool always) {
        pool_ = pool;
        always_ = always;
    }
    bool applies(const Workload& workload) const { return workload.parallel && pool_; }
    // `stays`: whether a piece must run on the calling thread.
    bool run(Workload& workload, int count, const Piece& piece, const Piece& stays);

  private:
    void assign(Workload& workload, int count, const Piece& stays);
    bool run_shares(Workload& workload, int count, const Piece& piece);

    ThreadPool* pool_ = nullptr;
    bool always_ = false;
};

}  // namespace hocket
