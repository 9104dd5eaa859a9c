#include "engine/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>

namespace hocket {

namespace {

using Time = std::chrono::steady_clock;
constexpr int measurements = 4;
constexpr double worth_it = 20e-6;  // seconds in a row below which a thread is not woken

double since(Time::time_point begin) { return std::chrono::duration<double>(Time::now() - begin).count(); }

bool run_in_a_row(int count, const ParallelExecution::Piece& piece) {
    for (int index = 0; index < count; ++index)
        if (!piece(index)) return false;
    return true;
}

}  // namespace

bool ParallelExecution::run(Workload& workload, int count, const Piece& piece, const Piece& stays) {
    // first what each one costs, then what all cost in a row and shared out; the better way stays
    const int round = workload.measured;
    if (round < measurements) {
        workload.seconds.resize(count, 1e9);
        for (int index = 0; index < count; ++index) {
            const auto begin = Time::now();
            if (!piece(index)) return false;
            workload.seconds[index] = std::min(workload.seconds[index], since(begin));
        }
        if (++workload.measured == measurements) assign(workload, count, stays);
        return true;
    }
    if (always_ || round == 3 * measurements) return run_shares(workload, count, piece);
    const bool in_a_row = round < 2 * measurements;
    const auto begin = Time::now();
    if (!(in_a_row ? run_in_a_row(count, piece) : run_shares(workload, count, piece))) return false;
    double& best = in_a_row ? workload.in_a_row : workload.shared_out;
    best = std::min(best, since(begin));
    if (++workload.measured == 3 * measurements)
        workload.parallel = workload.shared_out < 0.85 * workload.in_a_row;
    if (workload.measured == 2 * measurements) workload.parallel = workload.in_a_row > worth_it;
    return true;
}

// The longest piece first, to the thread with the least to do.
void ParallelExecution::assign(Workload& workload, int count, const Piece& stays) {
    const int threads = pool_->threads();
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return workload.seconds[a] > workload.seconds[b]; });
    std::vector<double> load(threads, 0.0);
    workload.shares.assign(threads, {});
    for (const bool here : {true, false})
        for (int index : order) {
            if (stays(index) != here) continue;
            const auto least = std::min_element(load.begin(), load.end()) - load.begin();
            const std::size_t at = here ? 0 : static_cast<std::size_t>(least);
            workload.shares[at].push_back(index);
            load[at] += workload.seconds[index];
        }
    for (auto& share : workload.shares) std::sort(share.begin(), share.end());
}

bool ParallelExecution::run_shares(Workload& workload, int count, const Piece& piece) {
    struct Context {
        const Workload& workload;
        const Piece& piece;
        std::atomic<bool> good{true};
    } context{workload, piece};
    const auto task = [](void* raw, int thread) {
        auto& c = *static_cast<Context*>(raw);
        for (int index : c.workload.shares[thread])
            if (!c.piece(index)) {
                c.good = false;
                return;
            }
    };
    if (pool_->run(task, &context)) return context.good;
    return run_in_a_row(count, piece);  // the pool is busy: a level inside a level
}

}  // namespace hocket
