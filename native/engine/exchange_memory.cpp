#include "engine/exchange_memory.hpp"

#include <algorithm>
#include <cstring>

namespace hocket {

ExchangeMemory::ExchangeMemory(int degree, int inputs) : degree(degree), inputs(inputs) {
    used.coefficients.assign(static_cast<std::size_t>(degree + 1) * inputs, 0.0);
    offered = used;
}

void ExchangeMemory::add_child(std::size_t coefficients, std::size_t outputs) {
    u.resize(u.size() + coefficients);
    y.resize(y.size() + outputs);
    ring_of.resize(y.size(), -1);
}

void ExchangeMemory::add_ring(int signal, int depth, bool sloped) {
    ring_of[signal] = static_cast<int>(rings.size());
    rings.emplace_back(depth, sloped);
}

void ExchangeMemory::offer(std::int64_t tick, const double* polynomials) {
    auto& to = offered.coefficients;
    if (!to.empty()) std::memcpy(to.data(), polynomials, sizeof(double) * to.size());
    offered.base = tick;
}

void ExchangeMemory::admit() {
    std::copy(offered.coefficients.begin(), offered.coefficients.end(), used.coefficients.begin());
    used.base = offered.base;
}

void ExchangeMemory::read(const Unknowns& unknowns, double length, double* to) const {
    for (int signal : unknowns.values) *to++ = y[signal];
    for (int signal : unknowns.slopes) *to++ = ring(signal).slopes[ring(signal).newest] * length;
}

void ExchangeMemory::write(const Unknowns& unknowns, double length, const double* from) {
    for (int signal : unknowns.values) {
        y[signal] = *from++;
        if (ring_of[signal] >= 0) ring(signal).values[ring(signal).newest] = y[signal];
    }
    for (int signal : unknowns.slopes) ring(signal).slopes[ring(signal).newest] = *from++ / length;
}

void ExchangeMemory::save(Snapshot& to) const {
    to.keep(u);
    to.keep(y);
    for (const OwnInputs* each : {&used, &offered}) {
        to.keep(each->coefficients);
        to.keep(each->base);
    }
    for (const Ring& ring : rings) {
        to.keep(static_cast<std::int64_t>(ring.count));
        to.keep(static_cast<std::int64_t>(ring.newest));
        to.keep(ring.ticks);
        to.keep(ring.values);
        to.keep(ring.slopes);
    }
}

void ExchangeMemory::restore(Snapshot& from) {
    from.take(u);
    from.take(y);
    for (OwnInputs* each : {&used, &offered}) {
        from.take(each->coefficients);
        from.take(each->base);
    }
    for (Ring& ring : rings) {
        ring.count = static_cast<int>(from.take_count());
        ring.newest = static_cast<int>(from.take_count());
        from.take(ring.ticks);
        from.take(ring.values);
        from.take(ring.slopes);
        if (ring.count < 1 || ring.count > ring.depth || ring.newest < 0 || ring.newest >= ring.depth) {
            from.refuse();
            ring.count = 1;
            ring.newest = 0;
        }
    }
}

}  // namespace hocket
