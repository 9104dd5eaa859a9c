#include "engine/iteration.hpp"

#include "engine/polynomial.hpp"
#include "engine/residual.hpp"

namespace hocket {

namespace {

constexpr double grown = 1e12;

}  // namespace

bool Iteration::repeat(RepeatOperation& operation) {
    ++state_.iterating;
    const bool good = iterate(operation);
    --state_.iterating;
    return good;
}

bool Iteration::iterate(RepeatOperation& operation) {
    const std::size_t size = operation.unknowns.size();
    std::int64_t samples = 0;
    Values predicted = predict(operation, samples);
    if (!runner_.run(operation.body)) return false;
    if (size == 0) {
        counts_.add(1);
        return true;
    }
    Accelerator& accelerator = *operation.accelerator;
    const double length = state_.step_seconds();
    std::int64_t count = 1;
    Values given(size), found(size), change(size), first;
    const Sweep sweep = [&](const Values& numbers, Values& to) {
        ++count;
        to.resize(size);
        state_.memory.write(operation.unknowns, length, numbers.data());
        if (!runner_.run(operation.body) || (messages_ && !messages_->flush())) return false;
        state_.memory.read(operation.unknowns, length, to.data());
        return true;
    };
    if (messages_ && !messages_->flush()) return false;  // all hosts find out together whether it has ended
    state_.memory.read(operation.unknowns, length, given.data());
    accelerator.begin();
    residuals_.clear();
    if (!predicted.empty()) {
        accelerator.check_step(state_.reached - state_.now, samples);
        if (!accelerator.next(predicted, given, sweep)) return accelerator.stuck ? fail(operation) : false;
        given = predicted;
    }
    for (int turn = 1; turn < operation.at_most; ++turn) {
        if (!sweep(given, found)) return false;
        if (operation.until >= 0.0) {
            for (std::size_t i = 0; i < size; ++i) change[i] = found[i] - given[i];
            const int n = static_cast<int>(size);
            if (first.empty()) first = found;
            if (relative(change.data(), found.data(), n) <= operation.until) {
                counts_.add(count);
                return true;
            }
            // beside values that grow too, growth would not show
            residuals_.push_back(relative(change.data(), first.data(), n));
            if (!(residuals_.back() <= grown * std::max(1.0, residuals_.front()))) break;
        }
        if (turn + 1 < operation.at_most && !accelerator.next(given, found, sweep))
            return accelerator.stuck ? fail(operation) : false;
        if (turn + 1 == operation.at_most && !predicted.empty()) accelerator.finish(given, found);
    }
    if (operation.until >= 0.0) return fail(operation);
    counts_.add(count);
    return true;
}

// The values at the end of the step that the extrapolation predicts, and from how many samples.
Values Iteration::predict(const RepeatOperation& operation, std::int64_t& samples) const {
    Values predicted;
    const ExchangeMemory& memory = state_.memory;
    const Clock& clock = state_.clock;
    const double end = clock.span(state_.reached - state_.now);
    for (std::size_t i = 0; i < operation.samples.size(); ++i) {
        const int signal = operation.unknowns.values[i];
        double c[max_rows] = {memory.y[signal]}, nodes[max_rows];
        int count = 1;
        if (operation.samples[i] > 1) {
            const Ring& ring = memory.ring(signal);
            count = std::min(operation.samples[i], ring.count);
            for (int k = 0; k < count; ++k) {
                const int at = ring.back(count - 1 - k);
                nodes[k] = clock.span(ring.ticks[at] - state_.now);
                c[k] = ring.values[at];
            }
            divided_differences(nodes, c, count, 1);
            newton(nodes, c, count);
        }
        predicted.push_back(value_at(c, count, 1, end));
        samples += count;
    }
    return predicted;
}

bool Iteration::fail(const RepeatOperation& operation) {
    return state_.fail(
        {.kind = Failure::Kind::not_converged, .child = 0, .port = operation.number, .tick = state_.now});
}

void Iteration::save(Snapshot& to) const {
    to.inner.resize(accelerators_.size());
    for (std::size_t k = 0; k < accelerators_.size(); ++k) accelerators_[k]->save(to.inner[k]);
}

void Iteration::restore(Snapshot& from) {
    for (std::size_t k = 0; k < accelerators_.size(); ++k) accelerators_[k]->restore(from.part(k));
}

}  // namespace hocket
