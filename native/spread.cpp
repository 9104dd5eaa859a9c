// Children that do not depend on each other, on several threads, where that pays.
// In:  an operation on many children, or many bodies
// Out: the same numbers, sooner
#include <algorithm>
#include <chrono>
#include <numeric>

#include "level.hpp"

namespace hocket {

namespace {

using Time = std::chrono::steady_clock;
constexpr int measurements = 4;
constexpr double worth_it = 15e-6;  // seconds saved per round that pay for waking a thread

}  // namespace

bool Level::each(Operation& operation, int index) {
    if (operation.kind == Operation::Kind::together) return run(operation.bodies[index]);
    return apply(operation.kind, slots_[operation.children[index]], operation.ticks);
}

bool Level::spread(Operation& operation, int count) {
    if (operation.measured < measurements) {  // find out what each one costs
        operation.seconds.resize(count, 1e9);
        for (int index = 0; index < count; ++index) {
            const auto begin = Time::now();
            if (!each(operation, index)) return false;
            const double took = std::chrono::duration<double>(Time::now() - begin).count();
            operation.seconds[index] = std::min(operation.seconds[index], took);
        }
        if (++operation.measured == measurements) {
            const int threads = pool_->threads();
            std::vector<int> order(count);
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(),
                             [&](int a, int b) { return operation.seconds[a] > operation.seconds[b]; });
            std::vector<std::vector<int>> shares(threads);
            std::vector<double> load(threads, 0.0);
            auto stays = [&](int index) {  // Python is only called on the thread that holds its lock
                if (operation.kind == Operation::Kind::together) return python_ || (locked_ && foreign_);
                const Simulator& child = *children[operation.children[index]];
                return child.needs_python() || (locked_ && child.foreign());
            };
            double total = 0.0;
            for (int pass = 0; pass < 2; ++pass)
                for (int index : order) {
                    if (stays(index) != (pass == 0)) continue;
                    const auto least = std::min_element(load.begin(), load.end()) - load.begin();
                    const std::size_t at = pass == 0 ? 0 : static_cast<std::size_t>(least);
                    shares[at].push_back(index);
                    load[at] += operation.seconds[index];
                    total += operation.seconds[index];
                }
            const double longest = *std::max_element(load.begin(), load.end());
            if (always_parallel_ || total - longest > worth_it) {
                for (auto& share : shares) std::sort(share.begin(), share.end());
                operation.shares = std::move(shares);
            } else {
                operation.parallel = false;
            }
        }
        return true;
    }
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
    for (int index = 0; index < count; ++index)
        if (!each(operation, index)) return false;
    return true;
}

}  // namespace hocket
