#include "engine/input_fitting.hpp"

#include <algorithm>
#include <string>

#include "engine/polynomial.hpp"

namespace hocket {

void InputFitting::add(const FittedInput& input) {
    Child& child = state_.children[input.child];
    const bool converts = input.gain != 1.0 || input.offset != 0.0;
    if (input.kind == FittedInput::Kind::hold && !converts) {
        child.copies.push_back({input.source, state_.slots[input.child].u + input.input});
    } else {
        child.fits.push_back(static_cast<int>(inputs_.size()));
        inputs_.push_back(input);
        inputs_.back().converts = converts;
    }
}

FedInputs InputFitting::collect(const std::vector<int>& children) const {
    FedInputs fed;
    for (int number : children) {
        const Child& child = state_.children[number];
        fed.copies.insert(fed.copies.end(), child.copies.begin(), child.copies.end());
        fed.fits.insert(fed.fits.end(), child.fits.begin(), child.fits.end());
        if (child.is_curved()) fed.based.push_back(number);
        if (!child.texts.empty()) fed.texted.push_back(number);
    }
    return fed;
}

FedInputs InputFitting::collect(int number, const std::vector<int>& ports) const {
    const auto chosen = [&](int port) { return std::find(ports.begin(), ports.end(), port) != ports.end(); };
    const int first = state_.slots[number].u;
    FedInputs fed = collect({number});
    std::erase_if(fed.copies, [&](const Copy& copy) { return !chosen(copy.to - first); });
    std::erase_if(fed.fits, [&](int fit) { return !chosen(inputs_[fit].input); });
    return fed;
}

bool InputFitting::pass_texts(int child) {
    std::string text;
    for (const TextCopy& copy : state_.children[child].texts) {
        const Slot &from = state_.slots[copy.from], &to = state_.slots[child];
        if (!from.simulator->get_text(copy.source, text)) return state_.fail(from);
        if (!to.simulator->set_text(copy.target, text)) return state_.fail(to);
    }
    return true;
}

void InputFitting::save(Snapshot& to) const {
    for (const FittedInput& each : inputs_) {
        to.keep(each.filter.seen);
        to.keep(each.filter.before);
        to.keep(each.filter.after);
    }
}

void InputFitting::restore(Snapshot& from) {
    for (FittedInput& each : inputs_) {
        from.take(each.filter.seen);
        from.take(each.filter.before);
        from.take(each.filter.after);
    }
}

[[gnu::always_inline]] inline void InputFitting::fit(FittedInput& f) {
    double c[max_rows], nodes[max_rows];
    c[0] = 0.0;
    int count = 1;
    ExchangeMemory& memory = state_.memory;
    const Clock& clock = state_.clock;
    const std::int64_t tick = state_.slots[f.child].tick;
    switch (f.kind) {
        case FittedInput::Kind::hold: c[0] = memory.y[f.source]; break;
        case FittedInput::Kind::latch: {
            const Ring& ring = memory.ring(f.source);
            int back = 0;
            while (back + 1 < std::min(f.samples, ring.count) && ring.ticks[ring.back(back)] > tick) ++back;
            c[0] = ring.values[ring.back(back)];
            break;
        }
        case FittedInput::Kind::correction: {
            const Ring& ring = memory.ring(f.source);
            c[0] = memory.y[f.source];
            if (ring.count > 1) {
                const double before = ring.values[ring.back(1)];
                c[0] = c[0] + f.alpha * (0.5 * (before + c[0]) - before);
            }
            break;
        }
        case FittedInput::Kind::nepce: {
            const Ring& ring = memory.ring(f.source);
            if (f.filter.seen != ring.ticks[ring.newest]) {
                f.filter.seen = ring.ticks[ring.newest];
                f.filter.before = f.filter.after;
            }
            f.filter.after = f.alpha * f.filter.before + (1.0 - f.alpha) * memory.y[f.source];
            c[0] = f.filter.after;
            break;
        }
        case FittedInput::Kind::polynomial: {
            const Ring& ring = memory.ring(f.source);
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
        case FittedInput::Kind::hermite: {
            const Ring& ring = memory.ring(f.source);
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
        case FittedInput::Kind::passed:
        case FittedInput::Kind::passed_hold:
            count = memory.degree + 1;
            for (int k = 0; k < count; ++k) c[k] = memory.used.coefficients[k * memory.inputs + f.source];
            shift(c, count, 1, clock.span(tick - memory.used.base));
            if (f.kind == FittedInput::Kind::passed_hold) count = 1;
            break;
    }
    if (f.converts) {
        for (int k = 0; k < count; ++k) c[k] = f.gain * c[k];
        c[0] = c[0] + f.offset;
    }
    const Child& child = state_.children[f.child];
    double* to = memory.u.data() + state_.slots[f.child].u + f.input;
    const int stride = child.inputs;
    for (int k = 0; k < child.rows; ++k) to[k * stride] = k < count ? c[k] : 0.0;
}

void InputFitting::fit(const std::vector<int>& numbers) {
    for (int number : numbers) fit(inputs_[number]);
}

}  // namespace hocket
