#include "engine/overrides.hpp"

#include <algorithm>
#include <iterator>

namespace hocket {

namespace {

// Moves what is so to another list.
template <class T, class Which> void move_if(std::vector<T>& from, std::vector<T>& to, Which which) {
    const auto first = std::stable_partition(from.begin(), from.end(), [&](const T& x) { return !which(x); });
    std::move(first, from.end(), std::back_inserter(to));
    from.erase(first, from.end());
}

}  // namespace

bool Overrides::set_input(int number, int input, double value) {
    Child& child = state_.children[number];
    const int first = state_.slots[number].u;
    const auto [at, added] = drives_.try_emplace({number, input});
    if (added) {
        Drive& drive = at->second;
        move_if(child.copies, drive.copies, [&](const Copy& copy) { return copy.to == first + input; });
        move_if(child.fits, drive.fits, [&](int fit) { return fitting_[fit].input == input; });
    }
    double* u = state_.memory.u.data() + first + input;
    for (int row = 0; row < child.rows; ++row) u[row * child.inputs] = row == 0 ? value : 0.0;
    return added;
}

bool Overrides::release_input(int number, int input) {
    const auto at = drives_.find({number, input});
    if (at == drives_.end()) return false;
    Child& child = state_.children[number];
    child.copies.insert(child.copies.end(), at->second.copies.begin(), at->second.copies.end());
    child.fits.insert(child.fits.end(), at->second.fits.begin(), at->second.fits.end());
    drives_.erase(at);
    return true;
}

void Overrides::replace(int number, std::shared_ptr<Simulator> simulator) {
    state_.slots[number].simulator = simulator.get();
    state_.children[number].simulator = std::move(simulator);
}

// A jump: what was before it does not lead beyond it.
void Overrides::store(int signal, double value, double slope) {
    ExchangeMemory& memory = state_.memory;
    memory.y[signal] = value;
    if (memory.ring_of[signal] >= 0) {
        Ring& ring = memory.ring(signal);
        ring.values[ring.newest] = value;
        if (ring.sloped) ring.slopes[ring.newest] = slope;
        ring.count = std::min(ring.count, 1);
    }
    fitting_.begin_anew(signal);
}

bool Overrides::set_output(int number, int output, double value) {
    const std::shared_ptr<Simulator>& simulator = state_.children[number].simulator;
    const bool added = simulator->itself() == nullptr;
    if (added) replace(number, std::make_shared<Overridden>(simulator));
    static_cast<Overridden&>(*state_.children[number].simulator).values[output] = value;
    store(state_.slots[number].y + output, value, 0.0);
    return added;
}

bool Overrides::release_output(int number, int output) {
    const std::shared_ptr<Simulator> simulator = state_.children[number].simulator;
    if (!simulator->itself()) return false;
    auto& overridden = static_cast<Overridden&>(*simulator);
    overridden.values.erase(output);
    if (!overridden.values.empty()) return false;
    replace(number, overridden.inner);
    return true;
}

bool Overrides::show_output(int number, int output, const double* polynomials) {
    const Slot& slot = state_.slots[number];
    const Child& child = state_.children[number];
    std::vector<double> y(state_.memory.y.begin() + slot.y, state_.memory.y.begin() + slot.y + child.outputs);
    std::vector<double> slopes(child.outputs);
    if (!slot.simulator->newest(slot.tick, polynomials, y.data())) return state_.fail(slot, Call::output);
    if (child.sloped && !slot.simulator->slope(slot.tick, polynomials, slopes.data()))
        return state_.fail(slot, Call::slope);
    store(slot.y + output, y[output], slopes[output]);
    return true;
}

}  // namespace hocket
