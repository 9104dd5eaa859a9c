// Children that do not depend on each other, on several threads, where that pays.
// In:  an operation on many children, or many bodies
// Out: the same numbers, sooner
#include <algorithm>
#include <chrono>
#include <numeric>

#include "engine/level.hpp"

namespace hocket {

namespace {

using Time = std::chrono::steady_clock;
constexpr int measurements = 4;
constexpr double worth_it = 20e-6;  // seconds in a row below which a thread is not woken

double since(Time::time_point begin) { return std::chrono::duration<double>(Time::now() - begin).count(); }

}  // namespace

bool Level::each(Operation& operation, int index) {
    if (operation.kind == Operation::Kind::together) return run(operation.bodies[index]);
    return apply(operation.kind, slots_[operation.children[index]], operation.ticks);
}

bool Level::spread(Operation& operation, int count) {
    // first what each one costs, then what all cost in a row and shared out; the better way stays
    const int round = operation.measured;
    if (round < measurements) {
        operation.seconds.resize(count, 1e9);
        for (int index = 0; index < count; ++index) {
            const auto begin = Time::now();
            if (!each(operation, index)) return false;
            operation.seconds[index] = std::min(operation.seconds[index], since(begin));
        }
        if (++operation.measured == measurements) share_out(operation, count);
        return true;
    }
    if (always_parallel_ || round == 3 * measurements) return in_parallel(operation);
    const bool in_a_row = round < 2 * measurements;
    const auto begin = Time::now();
    if (!(in_a_row ? one_by_one(operation, count) : in_parallel(operation))) return false;
    double& best = in_a_row ? operation.in_a_row : operation.shared_out;
    best = std::min(best, since(begin));
    if (++operation.measured == 3 * measurements)
        operation.parallel = operation.shared_out < 0.85 * operation.in_a_row;
    if (operation.measured == 2 * measurements) operation.parallel = operation.in_a_row > worth_it;
    return true;
}

bool Level::one_by_one(Operation& operation, int count) {
    for (int index = 0; index < count; ++index)
        if (!each(operation, index)) return false;
    return true;
}

// Who goes to which thread: the longest first, to the thread with the least to do.
void Level::share_out(Operation& operation, int count) {
    const int threads = pool_->threads();
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return operation.seconds[a] > operation.seconds[b]; });
    std::vector<double> load(threads, 0.0);
    auto stays = [&](int index) {  // Python is only called on the thread that holds its lock
        if (operation.kind == Operation::Kind::together) return python_ || (locked_ && foreign_);
        const Simulator& child = *children[operation.children[index]].simulator;
        return child.needs_python() || (locked_ && child.foreign());
    };
    operation.shares.assign(threads, {});
    for (int pass = 0; pass < 2; ++pass)
        for (int index : order) {
            if (stays(index) != (pass == 0)) continue;
            const auto least = std::min_element(load.begin(), load.end()) - load.begin();
            const std::size_t at = pass == 0 ? 0 : static_cast<std::size_t>(least);
            operation.shares[at].push_back(index);
            load[at] += operation.seconds[index];
        }
    for (auto& share : operation.shares) std::sort(share.begin(), share.end());
}

bool Level::in_parallel(Operation& operation) {
    struct Context {
        Level* level;
        Operation* operation;
        std::atomic<bool> good{true};
    } context{this, &operation};
    const auto task = [](void* raw, int thread) {
        auto& c = *static_cast<Context*>(raw);
        for (int index : c.operation->shares[thread])
            if (!c.level->each(*c.operation, index)) {
                c.good = false;
                return;
            }
    };
    if (pool_->run(task, &context)) return context.good;
    const auto count =
        operation.kind == Operation::Kind::together ? operation.bodies.size() : operation.children.size();
    return one_by_one(operation, static_cast<int>(count));
}

}  // namespace hocket
