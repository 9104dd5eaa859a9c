// Samples become polynomials: the twin of memory.py's feeding.
// In:  the samples in the exchange memory
// Out: coefficients for the inputs of children
#include <algorithm>

#include "engine/level.hpp"

namespace hocket {

bool Level::feed(const Operation& operation) {
    for (const Copy& copy : operation.copies) u[copy.to] = y[copy.from];
    for (int child : operation.based) children[child].base = slots_[child].tick;
    for (int number : operation.fits) fit(fits[number]);
    for (int child : operation.texted)
        if (!hand_on(child)) return false;
    return true;
}

bool Level::hand_on(int child) {
    std::string text;
    for (const TextCopy& copy : children[child].texts) {
        if (!slots_[copy.from].simulator->get_text(copy.source, text)) return failed(slots_[copy.from]);
        if (!slots_[child].simulator->set_text(copy.target, text)) return failed(slots_[child]);
    }
    return true;
}

void Level::fit(Fit& f) {
    double c[max_rows], nodes[max_rows];
    int count = 1;
    const std::int64_t tick = slots_[f.child].tick;
    switch (f.kind) {
        case Fit::Kind::hold: c[0] = y[f.source]; break;
        case Fit::Kind::latch: {
            const Ring& ring = rings[ring_of[f.source]];
            int back = 0;
            while (back + 1 < std::min(f.samples, ring.count) && ring.ticks[ring.back(back)] > tick) ++back;
            c[0] = ring.values[ring.back(back)];
            break;
        }
        case Fit::Kind::correction: {
            const Ring& ring = rings[ring_of[f.source]];
            c[0] = y[f.source];
            if (ring.count > 1) {
                const double before = ring.values[ring.back(1)];
                c[0] = c[0] + f.alpha * (0.5 * (before + c[0]) - before);
            }
            break;
        }
        case Fit::Kind::nepce: {
            const Ring& ring = rings[ring_of[f.source]];
            if (f.seen != ring.ticks[ring.newest]) {
                f.seen = ring.ticks[ring.newest];
                f.before = f.after;
            }
            f.after = f.alpha * f.before + (1.0 - f.alpha) * y[f.source];
            c[0] = f.after;
            break;
        }
        case Fit::Kind::polynomial: {
            const Ring& ring = rings[ring_of[f.source]];
            count = std::min(f.samples, ring.count);
            for (int k = 0; k < count; ++k) {
                const int at = ring.back(count - 1 - k);
                nodes[k] = clock.span(ring.ticks[at] - tick);
                c[k] = ring.values[at];
            }
            divided_differences(nodes, c, count, 1);
            newton(nodes, c, count);
            break;
        }
        case Fit::Kind::hermite: {
            const Ring& ring = rings[ring_of[f.source]];
            const int points = std::min(f.samples, ring.count);
            count = 2 * points;
            double slopes[max_rows];
            for (int k = 0; k < points; ++k) {
                const int at = ring.back(points - 1 - k);
                nodes[2 * k] = nodes[2 * k + 1] = clock.span(ring.ticks[at] - tick);
                c[2 * k] = c[2 * k + 1] = ring.values[at];
                slopes[k] = ring.slopes[at];
            }
            for (int j = count - 1; j > 0; --j)
                c[j] = j % 2 ? slopes[j / 2] : (c[j] - c[j - 1]) / (nodes[j] - nodes[j - 1]);
            divided_differences(nodes, c, count, 2);
            newton(nodes, c, count);
            break;
        }
        case Fit::Kind::passed:
        case Fit::Kind::passed_hold:
            count = degree + 1;
            for (int k = 0; k < count; ++k) c[k] = used[k * own_inputs + f.source];
            shift(c, count, 1, clock.span(tick - used_base));
            if (f.kind == Fit::Kind::passed_hold) count = 1;
            break;
    }
    if (f.converts) {
        for (int k = 0; k < count; ++k) c[k] = f.gain * c[k];
        c[0] = c[0] + f.offset;
    }
    const Child& child = children[f.child];
    double* to = u.data() + slots_[f.child].u + f.input;
    const int stride = child.inputs;
    for (int k = 0; k < child.rows; ++k) to[k * stride] = k < count ? c[k] : 0.0;
}

}  // namespace hocket
