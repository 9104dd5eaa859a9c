#include "engine/level.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hocket {

namespace {

constexpr int ahead = 4;  // how many simulators ahead memory is fetched

}  // namespace

void Ring::push(std::int64_t tick, double value, double slope) {
    while (count > 0 && ticks[newest] > tick) {  // what was kept of a later time is gone
        newest = back(1);
        --count;
    }
    if (count == 0 || ticks[newest] != tick) {
        newest = (newest + 1) % depth;
        if (count < depth) ++count;
    }
    ticks[newest] = tick;
    values[newest] = value;
    if (sloped) slopes[newest] = slope;
}

Level::Level(Clock clock, std::int64_t length, int degree, int inputs)
    : clock(clock), length(length), degree(degree), own_inputs(inputs) {
    used.assign(static_cast<std::size_t>(degree + 1) * inputs, 0.0);
    offered = used;
}

void Level::add_child(std::shared_ptr<Simulator> simulator, int rows, int inputs, int outputs) {
    simulator->given(rows);
    timed_ = timed_ || simulator->timed();
    python_ = python_ || simulator->needs_python();
    foreign_ = foreign_ || simulator->foreign();
    slots_.push_back(
        {.simulator = simulator.get(), .u = static_cast<int>(u.size()), .y = static_cast<int>(y.size())});
    hot_.push_back(simulator->hot());
    Child& child = children.emplace_back();
    child.rows = rows;
    child.inputs = inputs;
    child.outputs = outputs;
    child.unchecked = !simulator->checks_itself();
    child.simulator = std::move(simulator);
    u.resize(u.size() + static_cast<std::size_t>(child.coefficients()));
    y.resize(y.size() + outputs);
    ring_of.resize(y.size(), -1);
}

void Level::add_drive(const Fit& fit, bool plain) {
    if (plain) {
        children[fit.child].copies.push_back({fit.source, slots_[fit.child].u + fit.input});
    } else {
        children[fit.child].fits.push_back(static_cast<int>(fits.size()));
        fits.push_back(fit);
    }
}

void Level::add_text(int from, int source, int to, int target) {
    children[to].texts.push_back({from, source, target});
}

void Level::add_output(int source, double gain, double offset) {
    outputs_.push_back({source, gain, offset, gain != 1.0 || offset != 0.0});
}

void Level::set_ring(int signal, int depth, bool sloped) {
    Ring ring;
    ring.depth = depth;
    ring.sloped = sloped;
    ring.ticks.resize(depth);
    ring.values.resize(depth);
    ring.slopes.resize(depth);
    ring_of[signal] = static_cast<int>(rings.size());
    const auto after = std::upper_bound(slots_.begin(), slots_.end(), signal,
                                        [](int at, const Slot& slot) { return at < slot.y; });
    Child& child = children[after - slots_.begin() - 1];
    child.rings.push_back(signal);
    child.sloped = child.sloped || sloped;
    rings.push_back(std::move(ring));
}

void Level::record(std::shared_ptr<Rows> rows, std::vector<Column> columns) {
    rows_ = std::move(rows);
    columns_ = std::move(columns);
}

void Level::share(Pool* pool, bool always, bool locked) {
    pool_ = pool;
    always_parallel_ = always;
    locked_ = locked;
    for (auto& child : children)
        if (auto* level = dynamic_cast<Level*>(child.simulator.get())) level->share(pool, always, locked);
}

void Level::set_programs(std::vector<Operation> step, std::vector<Operation> output) {
    own_ = Span::of(clock, 0, length);
    step_program_ = std::move(step);
    output_program_ = std::move(output);
    place_accounts();
    prepare(step_program_);
    prepare(output_program_);
    int seen = 0, slopes = 0;
    for (std::size_t number = 0; number < children.size(); ++number) {
        Child& child = children[number];
        const bool plain = child.outputs > 0 && !child.unchecked && child.rings.empty() && !child.curved();
        if (plain) slots_[number].quick = child.simulator->step_output();
        child.seen = seen;
        child.slopes = slopes;
        if (child.curved()) seen += child.coefficients();
        if (child.sloped) slopes += child.outputs;
    }
    seen_.resize(seen);
    slopes_.resize(slopes);
}

void Level::prepare(std::vector<Operation>& program) {
    for (auto& operation : program) {
        const auto& list = operation.children;
        bool neighbours = !list.empty();
        for (std::size_t k = 1; k < list.size(); ++k) neighbours = neighbours && list[k] == list[k - 1] + 1;
        if (neighbours) {
            operation.begin = list.front();
            operation.end = list.back() + 1;
            operation.fetches = hot_[operation.begin] != nullptr;
        }
        if (operation.kind == Operation::Kind::feed || operation.kind == Operation::Kind::solve)
            for (int number : operation.children) {
                const Child& child = children[number];
                operation.copies.insert(operation.copies.end(), child.copies.begin(), child.copies.end());
                operation.fits.insert(operation.fits.end(), child.fits.begin(), child.fits.end());
                if (child.curved()) operation.based.push_back(number);
                if (!child.texts.empty()) operation.texted.push_back(number);
            }
        if (operation.kind == Operation::Kind::solve) widen_loop(operation);
        if (operation.kind == Operation::Kind::close) sort_accounts(operation);
        if (operation.accelerator) accelerators_.push_back(operation.accelerator);
        if (operation.pace) pace_ = operation.pace;
        for (auto& body : operation.bodies) {
            prepare(body);
            // a text is asked of its source, which another thread may be stepping
            for (const auto& inner : body) operation.parallel = operation.parallel && inner.texted.empty();
        }
    }
}

// What else is in a loop whose children are fed with slopes: a slope follows every input at once.
void Level::widen_loop(Operation& operation) const {
    const auto inside = [&](int signal) {
        return std::any_of(operation.children.begin(), operation.children.end(), [&](int child) {
            return slots_[child].y <= signal && signal < slots_[child].y + children[child].outputs;
        });
    };
    std::set<int> values, slopes;
    for (const Copy& copy : operation.copies)
        if (inside(copy.from)) values.insert(copy.from);
    for (int number : operation.fits) {
        const Fit& fit = fits[number];
        if (fit.kind == Fit::Kind::passed || fit.kind == Fit::Kind::passed_hold || !inside(fit.source))
            continue;
        values.insert(fit.source);
        if (fit.kind == Fit::Kind::hermite) slopes.insert(fit.source);
    }
    operation.slopes.assign(slopes.begin(), slopes.end());
    if (slopes.empty()) return;
    for (int signal : operation.signals) values.erase(signal);
    operation.signals.insert(operation.signals.end(), values.begin(), values.end());
}

// the life of a step

bool Level::run_outermost(std::int64_t steps) {
    for (std::int64_t k = 0; k < steps; ++k)
        if (!own_step(now, length)) return false;
    return true;
}

bool Level::step(const Span& span, const double* polynomials) {
    const std::int64_t tick = span.tick, count = span.ticks;
    const bool whole = pace_ || count % length == 0;
    if (whole || tick == now) {
        if (!offered.empty()) std::memcpy(offered.data(), polynomials, sizeof(double) * offered.size());
        offered_base = tick;
    }
    if (pace_) return own_step(tick, count);
    if (whole) {
        for (std::int64_t start = tick; start < tick + count; start += length)
            if (!own_step(start, length)) return false;
        return true;
    }
    return tick + count == now + length ? own_step(now, length) : true;
}

bool Level::own_step(std::int64_t tick, std::int64_t ticks) {
    now = tick;
    reached_ = tick + ticks;
    own_.tick = tick;
    if (timed_) own_.t = clock.time(tick);
    if (!run(step_program_)) return false;
    now = tick + ticks;
    return true;
}

bool Level::run(std::vector<Operation>& program) {
    for (auto& operation : program)
        if (!execute(operation)) return false;
    return true;
}

[[gnu::always_inline]] inline bool Level::both(Slot& slot, std::int64_t count) {
    if (slot.quick && slot.tick == own_.tick && count == own_.ticks) [[likely]] {
        slot.tick += count;
        if (slot.quick(*slot.simulator, own_, u.data() + slot.u, y.data() + slot.y)) [[likely]]
            return true;
        return failed(slot);
    }
    return both_slowly(slot, count);
}

bool Level::execute(Operation& operation) {
    using Kind = Operation::Kind;
    if (post) [[unlikely]]
        note(operation);
    switch (operation.kind) {
        case Kind::feed: return feed(operation);
        case Kind::step:
        case Kind::read:
        case Kind::step_read:
            if (operation.parallel && pool_)
                return spread(operation, static_cast<int>(operation.children.size()));
            if (operation.kind == Kind::step_read && operation.begin >= 0) {
                Slot *slot = slots_.data() + operation.begin, *end = slots_.data() + operation.end;
                if (operation.fetches)
                    for (const void** hot = hot_.data() + operation.begin + ahead; end - slot > ahead;
                         ++slot, ++hot) {
                        __builtin_prefetch(*hot);
                        if (!both(*slot, operation.ticks)) [[unlikely]]
                            return false;
                    }
                for (; slot < end; ++slot)
                    if (!both(*slot, operation.ticks)) [[unlikely]]
                        return false;
                return true;
            }
            for (int child : operation.children)
                if (!apply(operation.kind, slots_[child], operation.ticks)) return false;
            return true;
        case Kind::solve: return solve(operation);
        case Kind::admit:
            std::copy(offered.begin(), offered.end(), used.begin());
            used_base = offered_base;
            return true;
        case Kind::record: keep_row(reached_ % (rows_ ? rows_->interval : 1) == 0); return true;
        case Kind::save: return save(operation);
        case Kind::restore: return restore(operation);
        case Kind::repeat: return repeat(operation);
        case Kind::adapt: return adapt(operation);
        case Kind::next: return take_turns(operation);
        case Kind::open: return open_accounts(operation);
        case Kind::close: return close_accounts(operation);
        case Kind::times:
            for (int k = 0; k < operation.n; ++k)
                if (!run(operation.bodies[0])) return false;
            return true;
        case Kind::together:
            if (operation.parallel && pool_)
                return spread(operation, static_cast<int>(operation.bodies.size()));
            for (auto& body : operation.bodies)
                if (!run(body)) return false;
            return true;
    }
    return false;
}

// stepping and reading

inline Span Level::span(const Slot& slot, std::int64_t count) const {
    if (slot.tick == own_.tick && count == own_.ticks) [[likely]]
        return own_;
    return timed_ ? Span::of(clock, slot.tick, count) : Span{slot.tick, count, 0.0, 0.0};
}

inline bool Level::step_child(Slot& slot, std::int64_t count) {
    const Span now = span(slot, count);
    slot.tick = now.tick + count;
    return slot.simulator->step(now, u.data() + slot.u) || failed(slot);
}

bool Level::read_child(Slot& slot) {
    const Child& child = children[number(slot)];
    if (child.outputs == 0) return true;
    const double* polynomials = u.data() + slot.u;
    if (child.curved() && child.base != slot.tick) {
        double* seen = seen_.data() + child.seen;
        std::memcpy(seen, polynomials, sizeof(double) * child.coefficients());
        const double ds = clock.span(slot.tick - child.base);
        for (int j = 0; j < child.inputs; ++j) shift(seen + j, child.rows, child.inputs, ds);
        polynomials = seen;
    }
    if (!slot.simulator->output(slot.tick, polynomials, y.data() + slot.y)) return failed(slot);
    return finish_read(slot, child, polynomials);
}

bool Level::both_slowly(Slot& slot, std::int64_t count) {
    if (!slot.quick) return step_child(slot, count) && read_child(slot);
    const Span other = span(slot, count);
    slot.tick += count;
    return slot.quick(*slot.simulator, other, u.data() + slot.u, y.data() + slot.y) || failed(slot);
}

inline bool Level::finish_read(Slot& slot, const Child& child, const double* polynomials) {
    if (child.unchecked) {
        const double* values = y.data() + slot.y;
        double sum = 0.0;
        for (int k = 0; k < child.outputs; ++k) sum += values[k] - values[k];
        if (sum != 0.0) [[unlikely]]
            return failed(slot);
    }
    if (child.rings.empty()) return true;
    double* slopes = nullptr;
    if (child.sloped) {
        slopes = slopes_.data() + child.slopes;
        if (!slot.simulator->slope(slot.tick, polynomials, slopes)) return failed(slot);
    }
    const std::int64_t at = slot.simulator->shown_at(slot.tick);
    for (int signal : child.rings)
        rings[ring_of[signal]].push(at, y[signal], slopes ? slopes[signal - slot.y] : 0.0);
    return true;
}

bool Level::apply(Operation::Kind kind, Slot& slot, std::int64_t count) {
    if (kind == Operation::Kind::step) return step_child(slot, count);
    return kind == Operation::Kind::read ? read_child(slot) : both(slot, count);
}

// Keeps the first failure: what the simulator says, or else a number in its outputs that is none.
bool Level::failed(Slot& slot, Call call) {
    std::lock_guard lock(failing_);
    if (first_failure.kind != Failure::Kind::none) return false;
    first_failure = slot.simulator->failure();
    if (first_failure.kind == Failure::Kind::none) {
        first_failure.kind = Failure::Kind::internal;
        first_failure.tick = slot.tick;
        for (int port = children[number(slot)].outputs - 1; port >= 0; --port)
            if (const double value = y[slot.y + port]; !std::isfinite(value)) {
                first_failure.kind = Failure::Kind::not_finite;
                first_failure.port = port;
                first_failure.value = value;
            }
    }
    if (!first_failure.level) {
        first_failure.level = this;
        first_failure.child = number(slot);
        if (call != Call::step) {  // going back has no time of its own
            first_failure.call = call;
            first_failure.tick = slot.tick;
        }
    }
    return false;
}

bool Level::output(std::int64_t tick, const double* polynomials, double* values) {
    if (!output_program_.empty() && tick == now) {
        std::memcpy(offered.data(), polynomials, sizeof(double) * offered.size());
        offered_base = tick;
        reached_ = tick;
        if (!run(output_program_)) return false;
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        const Output& o = outputs_[k];
        values[k] = o.converts ? o.gain * y[o.source] + o.offset : y[o.source];
    }
    return true;
}

bool Level::slope(std::int64_t, const double*, double* dy) {
    // the children behind the outputs are sloped too: their rings hold the newest slopes
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        const Output& o = outputs_[k];
        const Ring& ring = rings[ring_of[o.source]];
        const double value = ring.slopes[ring.newest];
        dy[k] = o.gain != 1.0 ? o.gain * value + 0.0 : value;
    }
    return true;
}

}  // namespace hocket
