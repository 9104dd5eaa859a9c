#include "engine/level.hpp"

#include <algorithm>
#include <functional>

namespace hocket {

namespace {

// Whether a body passes texts: a text is asked of its source, which another thread may be stepping.
bool passes_texts(Program& body) {
    bool found = false;
    const auto look = [&]<class T>(T& each) {
        if constexpr (requires { each.inputs.texted; }) found = found || !each.inputs.texted.empty();
        for_each_body(each, [&](Program& inner) { found = found || passes_texts(inner); });
    };
    for (Operation& operation : body) std::visit(look, operation);
    return found;
}

// The child that a body of a Next steps, and how far.
std::pair<int, std::int64_t> step_of(const Program& body) {
    for (const Operation& operation : body) {
        if (const auto* step = std::get_if<StepOperation>(&operation))
            return {step->children[0], step->ticks};
        if (const auto* both = std::get_if<StepReadOperation>(&operation))
            return {both->children[0], both->ticks};
    }
    return {0, 1};
}

}  // namespace

Level::Level(int number, Clock clock, std::int64_t length, int degree, int inputs)
    : state(number, clock, length, degree, inputs),
      ledger(state),
      instants(state, fitting_, stepping_, recorder_, *this),
      fitting_(state),
      stepping_(state),
      recorder_(state, ledger),
      loop_(state, fitting_, stepping_, messages),
      rollback_(state, fitting_, ledger),
      iteration_(state, *this, messages),
      control_(state, *this, *this, ledger, instants),
      overrides_(state, fitting_) {}

// building

void Level::add_child(std::shared_ptr<Simulator> simulator, int rows, int inputs, int outputs) {
    python_ = python_ || simulator->needs_python();
    foreign_ = foreign_ || simulator->foreign();
    simulator->set_clock(state.clock);
    state.add_child(std::move(simulator), rows, inputs, outputs);
}

void Level::add_text(int from, int source, int to, int target) {
    state.children[to].texts.push_back({from, source, target});
}

void Level::add_text_ports(TextPorts inputs, TextPorts outputs) {
    texts_in_ = std::move(inputs);
    texts_out_ = std::move(outputs);
}

bool Level::get_text(int port, std::string& value) {
    Slot& slot = state.slots[texts_out_[port].first];
    return slot.simulator->get_text(texts_out_[port].second, value) || state.fail(slot);
}

bool Level::set_text(int port, const std::string& value) {
    Slot& slot = state.slots[texts_in_[port].first];
    return slot.simulator->set_text(texts_in_[port].second, value) || state.fail(slot);
}

void Level::add_output(int source, double gain, double offset) {
    outputs_.push_back({source, gain, offset, gain != 1.0 || offset != 0.0});
}

void Level::add_member(Member member) {
    const int number = instants.size();
    Child& child = state.children[number];
    for (std::size_t port = 0; port < member.event_output.size(); ++port)
        if (member.event_output[port]) child.events.push_back(state.slots[number].y + static_cast<int>(port));
    child.last_events.resize(child.events.size());
    instants.add(std::move(member));
}

void Level::record(std::shared_ptr<RowBuffer> rows, std::vector<Column> columns) {
    recorder_.record(std::move(rows), std::move(columns));
}

void Level::share(ThreadPool* pool, bool always, bool locked) {
    parallel_.share(pool, always);
    locked_ = locked;
    for (Level* level : levels_inside()) level->share(pool, always, locked);
}

std::vector<Level*> Level::levels_inside() const {
    std::vector<Level*> found;
    for (const Child& child : state.children) {
        const std::shared_ptr<Simulator>* itself = child.simulator->itself();
        if (auto* level = dynamic_cast<Level*>((itself ? *itself : child.simulator).get()))
            found.push_back(level);
    }
    return found;
}

void Level::set_programs(Program step, Program output) {
    step_program_ = std::move(step);
    output_program_ = std::move(output);
    ledger.place();
    stepping_.prepare();
    prepare(step_program_);
    prepare(output_program_);
    instants.prepare();
}

void Level::prepare(Program& program) {
    const auto prepare_one = [this](auto& each) {
        for_each_body(each, [this](Program& body) { prepare(body); });
        prepare(each);
    };
    for (Operation& operation : program) std::visit(prepare_one, operation);
}

void Level::prepare(StepReadOperation& operation) {
    const std::vector<int>& list = operation.children;
    for (std::size_t k = 1; k < list.size(); ++k)
        if (list[k] != list[k - 1] + 1) return;
    if (list.empty()) return;
    operation.begin = list.front();
    operation.end = list.back() + 1;
    operation.prefetches = state.hot[operation.begin] != nullptr;
    operation.runs = stepping_.find_runs(operation.begin, operation.end);
}

void Level::prepare(SolveOperation& operation) {
    operation.inputs = fitting_.collect(operation.children);
    loop_.widen(operation);
}

void Level::prepare(TogetherOperation& operation) {
    for (Program& body : operation.bodies)
        operation.workload.parallel = operation.workload.parallel && !passes_texts(body);
}

// the start

void Level::begin_start() {
    for (Slot& slot : state.slots) slot.tick = 0;
    for (Child& child : state.children) child.base = 0;
    for (Ring& ring : state.memory.rings) {
        ring.count = 0;
        ring.newest = -1;
    }
    fitting_.begin_anew();
    state.now = state.reached = state.steps = 0;
}

bool Level::feed_at_start(int child) { return fitting_.feed(fitting_.collect({child})); }

bool Level::slope_at_start(int number) {
    const Child& child = state.children[number];
    if (!child.sloped) return true;
    Slot& slot = state.slots[number];
    std::vector<double> slopes(static_cast<std::size_t>(child.outputs));
    if (!slot.simulator->slope(0, state.memory.u.data() + slot.u, slopes.data()))
        return state.fail(slot, Call::slope);
    for (int signal : child.rings)
        state.memory.ring(signal).push(0, state.memory.y[signal], slopes[signal - slot.y]);
    return true;
}

bool Level::take_first_instants() {
    InstantOperation* found = nullptr;
    const auto look = [&](Program& program, const auto& self) -> void {
        for (Operation& operation : program) {
            if (auto* instant = std::get_if<InstantOperation>(&operation)) found = instant;
            if (found) return;
            std::visit([&](auto& each) { for_each_body(each, [&](Program& body) { self(body, self); }); },
                       static_cast<AnyOperation&>(operation));
        }
    };
    look(step_program_, look);
    return !found || execute(*found);
}

// the life of a step

bool Level::run_step() { return own_step(state.now, state.length); }

bool Level::step(const Span& span, const double* polynomials) {
    const std::int64_t tick = span.tick, count = span.ticks, length = state.length;
    if (instants.around) [[unlikely]]
        return instants.active() ? step_freely(tick, tick + count, polynomials)
                                 : step_sampled(tick, tick + count, polynomials);
    const bool whole = control_.active() || count % length == 0;
    if (whole || tick == state.now) state.memory.offer(tick, polynomials);
    if (control_.active()) return own_step(tick, count);
    if (whole) {
        for (std::int64_t start = tick; start < tick + count; start += length)
            if (!go_on() || !own_step(start, length)) return false;
        return true;
    }
    return tick + count == state.now + length ? own_step(state.now, length) : true;
}

// To any tick: whole steps of its own, and a part of one where there is an event.
bool Level::step_freely(std::int64_t tick, std::int64_t end, const double* polynomials) {
    if (tick == state.now) state.memory.offer(tick, polynomials);
    instants.asked = end;
    if (control_.active()) return own_step(tick, end - tick);
    while (state.now < end) {
        const std::int64_t whole = (state.now / state.length + 1) * state.length;
        if (whole > end && state.length > instants.longest) {
            std::int64_t due = never_due;
            if (!instants.next_due(due)) return false;
            if (due > end) return true;  // a level with a longer step waits for its end
        }
        if (!go_on() || !own_step(state.now, std::min(whole, end) - state.now)) return false;
    }
    return true;
}

// The steps of its own that end here; each takes its inputs when it begins.
bool Level::step_sampled(std::int64_t tick, std::int64_t end, const double* polynomials) {
    if (tick <= state.now) state.memory.offer(tick, polynomials);
    while (state.now + state.length <= end) {
        if (!go_on() || !own_step(state.now, state.length)) return false;
        if (tick <= state.now) state.memory.offer(tick, polynomials);
    }
    return true;
}

bool Level::own_step(std::int64_t tick, std::int64_t ticks) {
    state.steps = (state.steps + 2) | 1;  // odd also after a step that failed
    instants.forget_shown();              // time goes on: what the level around has ended is over
    state.now = tick;
    state.reached = tick + ticks;
    state.step.tick = tick;
    if (state.timed) state.step.t = state.clock.time(tick);
    if (!execute(step_program_)) return false;
    state.now = state.reached;
    ++state.steps;
    return true;
}

bool Level::run(Program& body) { return go_on() && execute(body); }

bool Level::execute(Program& program) {
    for (Operation& operation : program)
        if (!std::visit([this](auto& each) { return execute(each); }, operation)) return false;
    return true;
}

bool Level::execute(AdmitOperation&) {
    state.memory.admit();
    return true;
}

inline bool Level::execute(FeedOperation& operation) {
    if (messages && !messages->feed(operation.children)) [[unlikely]]
        return false;
    return fitting_.feed(operation.inputs);
}

bool Level::execute(StepOperation& operation) {
    if (messages) [[unlikely]]
        messages->step(operation.children);
    if (parallel_.applies(operation.workload))
        return parallel_.run(
            operation.workload, static_cast<int>(operation.children.size()),
            [&](int index) {
                return stepping_.step(state.slots[operation.children[index]], operation.ticks);
            },
            [&](int index) { return stays_here(operation.children[index]); });
    for (int child : operation.children)
        if (!stepping_.step(state.slots[child], operation.ticks)) return false;
    return true;
}

bool Level::execute(ReadOperation& operation) {
    if (messages) [[unlikely]]
        messages->read(operation.children);
    for (int child : operation.children)
        if (!stepping_.read(state.slots[child])) return false;
    return true;
}

inline bool Level::execute(StepReadOperation& operation) {
    if (messages) [[unlikely]] {
        messages->step(operation.children);
        messages->read(operation.children);
    }
    if (operation.end - operation.begin == 1)  // as in Gauss-Seidel, where inputs are fed in between
        return stepping_.step_read(state.slots[operation.begin], operation.ticks);
    if (parallel_.applies(operation.workload))
        return parallel_.run(
            operation.workload, static_cast<int>(operation.children.size()),
            [&](int index) {
                return stepping_.step_read(state.slots[operation.children[index]], operation.ticks);
            },
            [&](int index) { return stays_here(operation.children[index]); });
    if (!operation.runs.empty()) return stepping_.step_read(operation.runs, operation.ticks);
    if (operation.begin >= 0)
        return stepping_.step_read(operation.begin, operation.end, operation.ticks, operation.prefetches);
    for (int child : operation.children)
        if (!stepping_.step_read(state.slots[child], operation.ticks)) return false;
    return true;
}

bool Level::execute(RecordOperation&) {
    if (instants.n == 0) [[likely]]
        recorder_.add_due(state.reached);
    else if (instants.reacted())
        recorder_.add_event(state.reached, instants.n);
    else
        recorder_.renew(state.reached);
    return true;
}

bool Level::execute(SolveOperation& operation) {
    if (instants.n == 0) [[likely]]
        return loop_.solve(operation);
    if (!instants.concerns(operation.children)) return true;
    if (!loop_.solve(operation)) return false;
    instants.hear(operation.children);
    return true;
}

bool Level::execute(ReactOperation& operation) {
    for (int child : operation.children)
        if (!instants.react(child)) return false;
    return true;
}

bool Level::execute(InstantOperation& operation) {
    const std::int64_t before = instants.taken;
    instants.taken = -1;
    if (!instants.take(operation)) return false;
    if (instants.taken < 0)
        instants.taken = before;
    else
        control_.end_jump();
    return true;
}

bool Level::feed(int child, const FedInputs& inputs) {
    if (messages && !messages->feed(child)) return false;
    return fitting_.feed(inputs);
}

// The twin of engine/reference/level.py: the child furthest behind goes next, the first of equals.
bool Level::execute(NextOperation& operation) {
    const auto later = std::greater<std::pair<std::int64_t, int>>{};
    behind_.clear();
    for (std::size_t number = 0; number < operation.bodies.size(); ++number) {
        const std::int64_t tick = state.slots[step_of(operation.bodies[number]).first].tick;
        if (tick < state.reached) behind_.emplace_back(tick, static_cast<int>(number));
    }
    std::make_heap(behind_.begin(), behind_.end(), later);
    while (!behind_.empty()) {
        std::pop_heap(behind_.begin(), behind_.end(), later);
        const auto [tick, number] = behind_.back();
        Program& body = operation.bodies[number];
        if (!run(body)) return false;
        behind_.pop_back();
        if (const std::int64_t next = tick + step_of(body).second; next < state.reached) {
            behind_.emplace_back(next, number);
            std::push_heap(behind_.begin(), behind_.end(), later);
        }
    }
    return true;
}

bool Level::execute(TimesOperation& operation) {
    for (int k = 0; k < operation.count; ++k)
        if (!run(operation.body)) return false;
    return true;
}

bool Level::execute(TogetherOperation& operation) {
    if (parallel_.applies(operation.workload))
        return parallel_.run(
            operation.workload, static_cast<int>(operation.bodies.size()),
            [&](int index) { return run(operation.bodies[index]); },
            [&](int) { return python_ || (locked_ && foreign_); });
    for (Program& body : operation.bodies)
        if (!run(body)) return false;
    return true;
}

bool Level::execute(FeedPortsOperation& operation) {
    if (messages && !messages->feed(operation.child, &operation.ports)) return false;
    return fitting_.feed(operation.child, operation.inputs);
}

bool Level::execute(ReadPortsOperation& operation) {
    if (messages) messages->read(operation.child, &operation.ports);
    return stepping_.read(state.slots[operation.child], operation.ports);
}

// Python is only called on the thread that holds its lock.
bool Level::stays_here(int child) const {
    const Simulator& simulator = *state.children[child].simulator;
    return simulator.needs_python() || (locked_ && simulator.foreign());
}

void Level::add_last_rows() {
    if (state.under_way()) return;  // levels inside, too, may yet be rolled back
    state.reached = state.now;
    recorder_.add_last(state.now);
    for (Level* level : levels_inside()) level->add_last_rows();
}

// the level as a simulator among others

bool Level::output(std::int64_t tick, const double* polynomials, double* values) {
    if (!output_program_.empty() && tick == state.now) {
        state.memory.offer(tick, polynomials);
        state.reached = tick;
        if (!run(output_program_)) return false;
    }
    newest_outputs(values);
    return true;
}

bool Level::newest(std::int64_t tick, const double* polynomials, double* values) {
    // one that has instants has just evaluated them; one that is sampled takes its sample again
    if (!instants.active()) return output(tick, polynomials, values);
    newest_outputs(values);
    return true;
}

void Level::newest_outputs(double* values) {
    const std::vector<double>& y = state.memory.y;
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        const Output& o = outputs_[k];
        values[k] = o.converts ? o.gain * y[o.source] + o.offset : y[o.source];
    }
}

bool Level::due(std::int64_t& tick) { return instants.next_due(tick); }

bool Level::react(std::int64_t tick, int n, const double* u, const std::uint8_t* present,
                  std::uint8_t* shown) {
    if (state.now < tick) {  // a level with a longer step goes to the event before its step is over
        instants.asked = tick;
        if (!own_step(state.now, tick - state.now)) return false;
    }
    state.memory.offer(tick, u);
    state.memory.admit();
    return instants.react_inside(tick, n, present, shown);
}

bool Level::commit(bool& again) {
    if (!instants.commit_inside(again)) return false;
    control_.end_jump();
    return true;
}

void Level::forget_past() {
    for (Ring& ring : state.memory.rings) ring.count = std::min(ring.count, 1);
    for (Slot& slot : state.slots) slot.simulator->forget_past();
}

bool Level::slope(std::int64_t, const double*, double* dy) {
    // the children behind the outputs are sloped too: their rings hold the newest slopes
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        const Output& o = outputs_[k];
        const Ring& ring = state.memory.ring(o.source);
        const double value = ring.slopes[ring.newest];
        dy[k] = o.gain != 1.0 ? o.gain * value + 0.0 : value;
    }
    return true;
}

void Level::settle_rows(const Snapshot* restorable, bool inside) {
    if (!restorable && state.under_way()) restorable = control_.restorable();
    if (restorable)
        recorder_.settle(restorable->rows);
    else  // a row is replaced when outputs are evaluated again at its time, and at an event
        recorder_.settle_all(state.under_way() ? instants.active()
                                               : inside && (instants.active() || !output_program_.empty()));
    for (std::size_t number = 0; number < state.children.size(); ++number) {
        const bool stays = static_cast<int>(number) == last_;
        const Snapshot* inner = stays        ? nullptr
                                : restorable ? &restorable->inner[number]
                                             : rollback_.restorable(number);
        state.slots[number].simulator->settle_rows(inner, inside || state.under_way());
    }
}

void Level::set_watch(Watch* watch) {
    state.watch = watch;
    for (Slot& slot : state.slots) slot.simulator->set_watch(watch);
}

bool Level::forget_failure() {
    if (!state.failures.forget()) return false;
    for (Level* level : levels_inside()) level->forget_failure();
    return true;
}

bool Level::save(Snapshot& to) {
    const std::size_t count = state.children.size();
    to.begin();
    to.inner.resize(count + 1);
    for (std::size_t number = 0; number < count; ++number) {
        Slot& slot = state.slots[number];
        const bool stays = static_cast<int>(number) == last_ && !to.whole;
        to.inner[number].whole = to.whole;
        to.inner[number].portable = to.portable;
        if (!stays && !slot.simulator->save(to.inner[number])) return state.fail(slot, Call::save);
        to.keep(slot.tick);
        to.keep(state.children[number].base);
    }
    to.keep(state.now);
    state.memory.save(to);
    fitting_.save(to);
    ledger.save(to);
    iteration_.save(to.inner[count]);
    control_.save(to);
    if (!to.portable) recorder_.save(to);
    if (to.whole) list_lasting({to, false});
    return true;
}

bool Level::restore(Snapshot& from) {
    const std::size_t count = state.children.size();
    from.rewind();
    for (std::size_t number = 0; number < count; ++number) {
        Slot& slot = state.slots[number];
        const bool stays = static_cast<int>(number) == last_ && !from.whole;  // it has not stepped since
        if (!stays && !slot.simulator->restore(from.part(number))) return state.fail(slot, Call::restore);
        from.take(slot.tick);
        ++state.children[number].restored;
        from.take(state.children[number].base);
    }
    from.take(state.now);
    state.memory.restore(from);
    fitting_.restore(from);
    ledger.restore(from);
    iteration_.restore(from.part(count));
    control_.restore(from);
    if (!from.portable) recorder_.restore(from);
    if (!from.whole) {
        instants.forget_floors();
        return true;
    }
    list_lasting({from, true});
    state.reached = state.now;
    state.steps += state.steps % 2;  // a step that failed is not under way any more
    state.iterating = 0;
    state.failures.forget_all();
    return true;
}

// What lasts beside the state that a rollback within a step needs.
void Level::list_lasting(SnapshotLine line) {
    instants.list_state(line);
    iteration_.list_state(line);
    control_.list_state(line);
    if (messages) messages->list_state(line);
    for (Child& child : state.children) line(child.last_events);
}

}  // namespace hocket
