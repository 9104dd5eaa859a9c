#include "engine/level_state.hpp"

#include <algorithm>
#include <cmath>

#include "engine/watch.hpp"

namespace hocket {

void LevelState::add_child(std::shared_ptr<Simulator> simulator, int rows, int inputs, int outputs) {
    simulator->set_rows(rows);
    timed = timed || simulator->uses_seconds();
    slots.push_back({.simulator = simulator.get(),
                     .u = static_cast<int>(memory.u.size()),
                     .y = static_cast<int>(memory.y.size())});
    hot.push_back(simulator->hot());
    Child& child = children.emplace_back();
    child.rows = rows;
    child.inputs = inputs;
    child.outputs = outputs;
    child.unchecked = !simulator->checks_itself();
    child.simulator = std::move(simulator);
    memory.add_child(static_cast<std::size_t>(child.coefficients()), static_cast<std::size_t>(outputs));
}

void LevelState::add_ring(int signal, int depth, bool sloped) {
    const auto after = std::upper_bound(slots.begin(), slots.end(), signal,
                                        [](int at, const Slot& slot) { return at < slot.y; });
    Child& child = children[after - slots.begin() - 1];
    child.rings.push_back(signal);
    child.sloped = child.sloped || sloped;
    memory.add_ring(signal, depth, sloped);
}

bool LevelState::fail(Failure failure) {
    failure.level = number;
    return failures.add([&] { return failure; });
}

bool LevelState::fail(const Slot& slot, Call call) {
    return failures.add([&] {
        Failure failure = slot.simulator->failure();
        if (failure.kind == Failure::Kind::none) {
            if (watch && watch->stopped()) return failure;  // a level that was stopped: nobody's fault
            failure.kind = Failure::Kind::internal;
            failure.tick = slot.tick;
            for (int port = children[index(slot)].outputs - 1; port >= 0; --port)
                if (const double value = memory.y[slot.y + port]; !std::isfinite(value)) {
                    failure.kind = Failure::Kind::not_finite;
                    failure.port = port;
                    failure.value = value;
                }
        }
        if (failure.level < 0) {
            failure.level = number;
            failure.child = index(slot);
            if (call != Call::step) {  // a rollback has no time of its own
                failure.call = call;
                failure.tick = slot.tick;
            }
        }
        return failure;
    });
}

}  // namespace hocket
