#include "level.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hocket {

namespace {

constexpr int ahead = 4;  // how many simulators ahead memory is fetched

}  // namespace

void Ring::push(std::int64_t tick, double value, double slope) {
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

void Level::add_child(std::shared_ptr<Simulator> child, int child_rows, int child_inputs, int child_outputs) {
    child->given(child_rows);
    timed_ = timed_ || child->timed();
    python_ = python_ || child->needs_python();
    foreign_ = foreign_ || child->foreign();
    Slot slot;
    slot.simulator = child.get();
    slot.hot = child->hot();
    slot.step_output = child->step_output();
    slot.outputs = child_outputs;
    slot.unchecked = !child->checks_itself();
    slot.curved = child_rows > 1;
    slots_.push_back(slot);
    children.push_back(std::move(child));
    rows.push_back(child_rows);
    inputs.push_back(child_inputs);
    outputs.push_back(child_outputs);
    first_u.push_back(static_cast<int>(u.size()));
    first_y.push_back(static_cast<int>(y.size()));
    u.resize(u.size() + static_cast<std::size_t>(child_rows) * child_inputs);
    y.resize(y.size() + child_outputs);
    ring_of.resize(y.size(), -1);
    base.push_back(0);
    sloped_.push_back(0);
    fits_of_.emplace_back();
    copies_of_.emplace_back();
    texts_of_.emplace_back();
    rings_of_.emplace_back();
}

void Level::add_drive(const Fit& fit, bool plain) {
    if (plain) {
        copies_of_[fit.child].push_back({fit.source, first_u[fit.child] + fit.input});
    } else {
        fits_of_[fit.child].push_back(static_cast<int>(fits.size()));
        fits.push_back(fit);
    }
}

void Level::add_text(int from, int source, int to, int target) { texts_of_[to].push_back({from, source, target}); }

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
    const auto child = std::upper_bound(first_y.begin(), first_y.end(), signal) - first_y.begin() - 1;
    rings_of_[child].push_back(signal);
    if (sloped) sloped_[child] = 1;
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
        if (auto* level = dynamic_cast<Level*>(child.get())) level->share(pool, always, locked);
}

void Level::set_programs(std::vector<Operation> step, std::vector<Operation> output) {
    own_ = Span::of(clock, 0, length);
    step_program_ = std::move(step);
    output_program_ = std::move(output);
    prepare(step_program_);
    prepare(output_program_);
    for (std::size_t child = 0; child < children.size(); ++child) {
        slots_[child].u = u.data() + first_u[child];
        slots_[child].y = y.data() + first_y[child];
        Slot& slot = slots_[child];
        slot.ringed = !rings_of_[child].empty();
        slot.simple = slot.outputs > 0 && !slot.unchecked && !slot.ringed && !slot.curved;
    }
    std::size_t room = 0, slopes = 0;
    first_seen_.clear();
    for (std::size_t child = 0; child < children.size(); ++child) {
        first_seen_.push_back(static_cast<int>(room));
        if (rows[child] > 1) room += static_cast<std::size_t>(rows[child]) * inputs[child];
        slopes = std::max(slopes, static_cast<std::size_t>(outputs[child]));
    }
    seen_.resize(room);
    slopes_.resize(slopes * children.size() * (rings.empty() ? 0 : 1));
}

void Level::prepare(std::vector<Operation>& program) {
    for (auto& operation : program) {
        const auto& list = operation.children;
        bool neighbours = !list.empty();
        for (std::size_t k = 1; k < list.size(); ++k) neighbours = neighbours && list[k] == list[k - 1] + 1;
        if (neighbours) {
            operation.begin = list.front();
            operation.end = list.back() + 1;
        }
        if (operation.kind == Operation::Kind::feed || operation.kind == Operation::Kind::solve)
            for (int child : operation.children) {
                const auto& copies = copies_of_[child];
                operation.copies.insert(operation.copies.end(), copies.begin(), copies.end());
                operation.fits.insert(operation.fits.end(), fits_of_[child].begin(), fits_of_[child].end());
                if (rows[child] > 1) operation.based.push_back(child);
                if (!texts_of_[child].empty()) operation.texted.push_back(child);
            }
        for (auto& body : operation.bodies) prepare(body);
    }
}

// the life of a step

bool Level::run_outermost(std::int64_t steps) {
    for (std::int64_t k = 0; k < steps; ++k)
        if (!own_step(now)) return false;
    return true;
}

bool Level::step(const Span& span, const double* polynomials) {
    const std::int64_t tick = span.tick, count = span.ticks;
    const bool whole = count % length == 0;
    if (whole || tick == now) {
        if (!offered.empty()) std::memcpy(offered.data(), polynomials, sizeof(double) * offered.size());
        offered_base = tick;
    }
    if (whole) {
        for (std::int64_t start = tick; start < tick + count; start += length)
            if (!own_step(start)) return false;
        return true;
    }
    return tick + count == now + length ? own_step(now) : true;
}

bool Level::own_step(std::int64_t tick) {
    now = tick;
    reached_ = tick + length;
    own_.tick = tick;
    if (timed_) own_.t = clock.time(tick);
    if (!run(step_program_)) return false;
    now = tick + length;
    return true;
}

bool Level::run(std::vector<Operation>& program) {
    for (auto& operation : program)
        if (!execute(operation)) return false;
    return true;
}

[[gnu::always_inline]] inline bool Level::both(Slot& slot, std::int64_t count) {
    if (slot.simple && slot.tick == own_.tick && count == own_.ticks) [[likely]] {
        slot.tick += count;
        if (slot.step_output(*slot.simulator, own_, slot.u, slot.y)) [[likely]]
            return true;
        return failed(slot);
    }
    return both_slowly(slot, count);
}

bool Level::execute(Operation& operation) {
    using Kind = Operation::Kind;
    switch (operation.kind) {
        case Kind::feed:
            return feed(operation);
        case Kind::step:
        case Kind::read:
        case Kind::step_read:
            if (operation.parallel && pool_) return spread(operation, static_cast<int>(operation.children.size()));
            if (operation.kind == Kind::step_read && operation.begin >= 0) {
                Slot *slot = &slots_[operation.begin], *end = slot + (operation.end - operation.begin);
                for (; end - slot > ahead && slot->hot; ++slot) {
                    __builtin_prefetch(slot[ahead].hot);
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
        case Kind::solve:
            return solve(operation);
        case Kind::admit:
            std::copy(offered.begin(), offered.end(), used.begin());
            used_base = offered_base;
            return true;
        case Kind::record:
            keep_row(reached_ % (rows_ ? rows_->interval : 1) == 0);
            return true;
        case Kind::times:
            for (int k = 0; k < operation.n; ++k)
                if (!run(operation.bodies[0])) return false;
            return true;
        case Kind::together:
            if (operation.parallel && pool_) return spread(operation, static_cast<int>(operation.bodies.size()));
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
    return slot.simulator->step(now, slot.u) || failed(slot);
}

bool Level::read_child(Slot& slot) {
    if (slot.outputs == 0) return true;
    const double* polynomials = slot.u;
    const int child = number(slot);
    if (slot.curved && base[child] != slot.tick) {
        double* seen = seen_.data() + first_seen_[child];
        std::memcpy(seen, polynomials, sizeof(double) * rows[child] * inputs[child]);
        const double ds = clock.span(slot.tick - base[child]);
        for (int j = 0; j < inputs[child]; ++j) shift(seen + j, rows[child], inputs[child], ds);
        polynomials = seen;
    }
    if (!slot.simulator->output(slot.tick, polynomials, slot.y)) return failed(slot);
    return finish_read(slot, polynomials);
}

bool Level::both_slowly(Slot& slot, std::int64_t count) {
    if (!slot.simple) return step_child(slot, count) && read_child(slot);
    const Span other = span(slot, count);
    slot.tick += count;
    return slot.step_output(*slot.simulator, other, slot.u, slot.y) || failed(slot);
}

inline bool Level::finish_read(Slot& slot, const double* polynomials) {
    if (slot.unchecked) {
        double sum = 0.0;
        for (int k = 0; k < slot.outputs; ++k) sum += slot.y[k] - slot.y[k];
        if (sum != 0.0) [[unlikely]]
            return failed(slot);
    }
    if (!slot.ringed) return true;
    const int child = number(slot);
    double* slopes = nullptr;
    if (sloped_[child]) {
        slopes = slopes_.data() + (slopes_.size() / children.size()) * child;
        if (!slot.simulator->slope(slot.tick, polynomials, slopes)) return failed(slot);
    }
    const std::int64_t at = slot.simulator->shown_at(slot.tick);
    for (int signal : rings_of_[child])
        rings[ring_of[signal]].push(at, y[signal], slopes ? slopes[signal - first_y[child]] : 0.0);
    return true;
}

bool Level::apply(Operation::Kind kind, Slot& slot, std::int64_t count) {
    if (kind == Operation::Kind::step) return step_child(slot, count);
    return kind == Operation::Kind::read ? read_child(slot) : both(slot, count);
}

// Keeps the first failure: what the simulator says, or else a number in its outputs that is none.
bool Level::failed(Slot& slot) {
    std::lock_guard lock(failing_);
    if (first_failure.kind != Failure::Kind::none) return false;
    first_failure = slot.simulator->failure();
    if (first_failure.kind == Failure::Kind::none) {
        first_failure.kind = Failure::Kind::internal;
        first_failure.tick = slot.tick;
        for (int port = slot.outputs - 1; port >= 0; --port)
            if (!std::isfinite(slot.y[port])) {
                first_failure.kind = Failure::Kind::not_finite;
                first_failure.port = port;
                first_failure.value = slot.y[port];
            }
    }
    if (!first_failure.level) {
        first_failure.level = this;
        first_failure.child = number(slot);
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

void Level::keep_last_row() {
    reached_ = now;
    keep_row(now > 0 && rows_ && rows_->newest != now);
    for (auto& child : children)
        if (auto* level = dynamic_cast<Level*>(child.get())) level->keep_last_row();
}

void Level::keep_row(bool due) {
    const std::int64_t tick = reached_;
    if (!rows_ || !due) return;
    auto& data = rows_->data;
    if (!data.empty() && rows_->newest == tick) data.resize(data.size() - rows_->width);
    rows_->newest = tick;
    data.push_back(clock.time(tick));
    for (const Column& column : columns_) {
        if (column.is_input) {
            const double s = clock.span(tick - base[column.child]);
            const double* c = u.data() + first_u[column.child] + column.port;
            data.push_back(value_at(c, rows[column.child], inputs[column.child], s));
        } else {
            data.push_back(y[first_y[column.child] + column.port]);
        }
    }
}

}  // namespace hocket
