#include "export/coupled_system.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "engine/byte_stream.hpp"
#include "engine/start.hpp"
#include "fmu/fmu.hpp"

namespace hocket {

namespace {

std::string written(double value) {
    char text[40];
    for (int digits = 15; digits <= 17; ++digits) {  // the shortest that is read back as the same
        std::snprintf(text, sizeof text, "%.*g", digits, value);
        if (std::strtod(text, nullptr) == value) break;
    }
    return text;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + " cannot be read");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void gather(Level& level, std::vector<Level*>& levels) {
    const auto number = static_cast<std::size_t>(level.state.number);
    if (levels.size() <= number) levels.resize(number + 1);
    levels[number] = &level;
    for (Level* inner : level.levels_inside()) gather(*inner, levels);
}

const char* kind_words(Failure::Kind kind) {
    using enum Failure::Kind;
    switch (kind) {
        case stopped_early: return "a step ended early";
        case not_finite: return "an output is not a finite number";
        case loop_singular: return "an algebraic loop has no solution, or no single one";
        case loop_not_converged: return "an algebraic loop did not converge";
        case not_converged: return "an iteration did not converge";
        case tolerance_not_met: return "the tolerance is not met by the smallest step";
        case no_energy: return "an agreed energy is not there";
        case endless_instants: return "instants follow each other without end";
        case past_event: return "an event was announced for a time that is over";
        case zeno: return "events pile up before some time";
        case chattering: return "events are as close together as time can tell";
        case never_whole: return "a step was made shorter again and again";
        case not_settled: return "the initialisation does not converge";
        case raised:
        case reported:
        case ended:
        case internal:
        case none: break;
    }
    return "a call failed";
}

const char* call_words(Call call) {
    switch (call) {
        case Call::step: return "step";
        case Call::output: return "output";
        case Call::slope: return "slope";
        case Call::save: return "save";
        case Call::restore: return "restore";
        case Call::due: return "due";
        case Call::react: return "react";
        case Call::commit: return "commit";
        case Call::space_events: return "space_events";
        case Call::start: return "start";
    }
    return "";
}

}  // namespace

CoupledSystem::CoupledSystem(std::string name, const std::string& resources)
    : name(std::move(name)), resources_(resources), bytes_(read_file(resources + "/plan.hocket")) {
    try {
        build();
    } catch (const std::invalid_argument& error) {
        throw std::runtime_error(resources + "/plan.hocket: " + error.what());
    }
    const ExchangeMemory& memory = plan_.root->level->state.memory;
    inputs_.assign(memory.offered.coefficients.size(), 0.0);
    for (const Variable& each : plan_.face.variables)
        if (each.kind == Variable::Kind::input) inputs_[static_cast<std::size_t>(each.port)] = each.start;
    for (const Variable& each : plan_.face.variables) initial_.push_back(each.start);
}

void CoupledSystem::build() {
    watch_.reset();
    plan_ = read_plan(bytes_, {resources_, name});
    levels_.clear();
    gather(*plan_.root->level, levels_);
    watch_ = std::make_unique<Watch>();
    plan_.root->level->set_watch(watch_.get());
    fresh_ = true;
    started_ = false;
}

bool CoupledSystem::fail(std::string what) {
    problem_ = std::move(what);
    return false;
}

bool CoupledSystem::fail(const Failure& failure) {
    std::string what = kind_words(failure.kind);
    if (failure.kind == Failure::Kind::none) return fail("a level was stopped");
    const auto number = static_cast<std::size_t>(std::max(failure.level, 0));
    std::string where = "the outermost level";
    if (number < plan_.face.names.size() && failure.child >= 0) {
        const LevelNames& names = plan_.face.names[number];
        const auto child = static_cast<std::size_t>(failure.child);
        if (child < names.children.size()) {
            where = names.children[child];
            const auto port = static_cast<std::size_t>(std::max(failure.port, 0));
            if (failure.kind == Failure::Kind::not_finite && port < names.outputs[child].size())
                where += "." + names.outputs[child][port];
        }
    }
    const Clock& clock = plan_.root->level->state.clock;
    if (number < levels_.size() && levels_[number] && failure.child >= 0) {
        Simulator* simulator = levels_[number]->state.slots[failure.child].simulator;
        if (const auto* fmu = dynamic_cast<const Fmu*>(simulator)) {
            std::string said = fmu->problem();
            if (const std::string words = fmu->complaint(); !words.empty()) said += ": " + words;
            if (!said.empty()) what = said;
        }
    }
    what += ": `" + where + "`, " + call_words(failure.call) +
            " at t = " + written(clock.time(failure.tick)) + " s";
    if (failure.kind == Failure::Kind::not_finite || failure.kind == Failure::Kind::loop_not_converged)
        what += " (" + written(failure.value) + ")";
    return fail(std::move(what));
}

bool CoupledSystem::needs(Phase phase, const char* what) {
    if (phase_ == phase) return true;
    return fail(std::string(what) + " is not allowed now: it is " +
                (phase_ == Phase::instantiated   ? "instantiated"
                 : phase_ == Phase::initialising ? "in initialisation mode"
                                                 : "initialised"));
}

bool CoupledSystem::set_up(double t, bool stops, double stop) {
    if (!needs(Phase::instantiated, "setting the experiment up")) return false;
    const double begins = plan_.root->level->state.clock.time(0);
    if (t != begins)
        return fail("it starts at t = " + written(begins) + " s, not at " + written(t) +
                    " s: export it with that start");
    when_ = {t, stops, stop};
    return true;
}

bool CoupledSystem::enter_initialisation() {
    if (!needs(Phase::instantiated, "entering initialisation")) return false;
    phase_ = Phase::initialising;
    return true;
}

void CoupledSystem::set_parameters() {
    for (std::size_t number = 0; number < plan_.face.variables.size(); ++number) {
        const Variable& each = plan_.face.variables[number];
        if (each.kind != Variable::Kind::initial && each.kind != Variable::Kind::parameter) continue;
        Simulator* simulator = level(each.level).state.slots[each.child].simulator;
        const double value = initial_[number];
        if (each.kind == Variable::Kind::initial) {
            simulator->state()[each.port] = value;
        } else if (auto* fmu = dynamic_cast<Fmu*>(simulator); fmu && value != each.start) {
            FmuSetting setting;
            setting.type = static_cast<hocket::Type>(each.code);
            setting.references = {static_cast<fmi::Reference>(each.port)};
            if (setting.type == hocket::Type::int64 || setting.type == hocket::Type::uint64)
                setting.whole = {static_cast<std::int64_t>(value)};
            else
                setting.values = {value};
            fmu->more.push_back(std::move(setting));
        }
    }
}

bool CoupledSystem::start() {
    if (started_) return true;
    if (!fresh_) build();
    fresh_ = false;
    std::copy_n(inputs_.begin(), plan_.program.starts.size(), plan_.program.starts.begin());
    set_parameters();
    const StartReport report = hocket::start(*plan_.root->level, plan_.program, when_);
    if (report.failed()) return fail(report.failure);
    started_ = true;
    return true;
}

bool CoupledSystem::leave_initialisation() {
    if (!needs(Phase::initialising, "leaving initialisation") || !start()) return false;
    Level& root = *plan_.root->level;
    if (!root.take_first_instants()) return fail(root.state.failures.first());
    phase_ = Phase::stepping;
    inputs_changed_ = false;
    return true;
}

bool CoupledSystem::reset() {
    build();
    phase_ = Phase::instantiated;
    std::fill(inputs_.begin(), inputs_.end(), 0.0);
    for (std::size_t number = 0; number < plan_.face.variables.size(); ++number) {
        const Variable& each = plan_.face.variables[number];
        initial_[number] = each.start;
        if (each.kind == Variable::Kind::input) inputs_[static_cast<std::size_t>(each.port)] = each.start;
    }
    return true;
}

Variable* CoupledSystem::find(std::uint32_t reference, Variable::Type type) {
    if (reference < plan_.face.variables.size()) {
        Variable& found = plan_.face.variables[reference];
        if (found.type == type) return &found;
        fail("variable " + std::to_string(reference) + " is of another type");
        return nullptr;
    }
    fail("there is no variable " + std::to_string(reference));
    return nullptr;
}

bool CoupledSystem::set(std::uint32_t reference, Variable::Type type, double value) {
    const Variable* variable = find(reference, type);
    if (!variable) return false;
    if (!std::isfinite(value))
        return fail("variable " + std::to_string(reference) + " cannot be " + written(value));
    switch (variable->kind) {
        case Variable::Kind::input: {
            const int width = plan_.root->level->state.memory.inputs;
            for (std::size_t at = static_cast<std::size_t>(variable->port); at < inputs_.size();
                 at += static_cast<std::size_t>(width))
                inputs_[at] = 0.0;  // what it did before leads nowhere
            inputs_[static_cast<std::size_t>(variable->port)] = value;
            inputs_changed_ = true;
            break;
        }
        case Variable::Kind::initial:
        case Variable::Kind::parameter:
            if (phase_ == Phase::stepping)
                return fail("parameters and initial states cannot be set after initialisation");
            initial_[reference] = value;
            break;
        default: return fail("variable " + std::to_string(reference) + " cannot be set");
    }
    if (phase_ != Phase::stepping) started_ = false;
    return true;
}

bool CoupledSystem::set_derivative(std::uint32_t reference, int order, double value) {
    const Variable* variable = find(reference, Variable::Type::real);
    if (!variable) return false;
    const ExchangeMemory& memory = plan_.root->level->state.memory;
    if (variable->kind != Variable::Kind::input)
        return fail("variable " + std::to_string(reference) + " is no input: it has no derivatives");
    if (order < 1 || order > memory.degree)
        return fail("derivatives of order " + std::to_string(order) +
                    " are not taken, but those of order 1 to " + std::to_string(memory.degree));
    if (!std::isfinite(value)) return fail("a derivative cannot be " + written(value));
    double factorial = 1.0;
    for (int k = 2; k <= order; ++k) factorial *= k;
    inputs_[static_cast<std::size_t>(order * memory.inputs + variable->port)] = value / factorial;
    return true;
}

bool CoupledSystem::refresh() {
    if (!inputs_changed_) return true;
    inputs_changed_ = false;
    Level& root = *plan_.root->level;
    std::vector<double> outputs(root.outputs().size());
    return root.output(root.state.now, inputs_.data(), outputs.data()) || fail(root.state.failures.first());
}

bool CoupledSystem::get(std::uint32_t reference, Variable::Type type, double& value) {
    const Variable* variable = find(reference, type);
    if (!variable) return false;
    switch (variable->kind) {
        case Variable::Kind::time: value = time(); return true;
        case Variable::Kind::input: value = inputs_[static_cast<std::size_t>(variable->port)]; return true;
        case Variable::Kind::initial:
        case Variable::Kind::parameter: value = initial_[reference]; return true;
        case Variable::Kind::output:
        case Variable::Kind::seen: break;
    }
    if (phase_ == Phase::instantiated) {
        value = variable->start;
        return true;
    }
    if (!(phase_ == Phase::initialising ? start() : refresh())) return false;
    const Level& found = level(variable->level);
    value = variable->kind == Variable::Kind::seen
                ? found.input_value(variable->child, variable->port)
                : found.state.memory.y[found.state.slots[variable->child].y + variable->port];
    return true;
}

double CoupledSystem::time() const {
    const Level& root = *plan_.root->level;
    return root.state.clock.time(root.state.now);
}

bool CoupledSystem::step(double t, double h) {
    if (!needs(Phase::stepping, "a step")) return false;
    Level& root = *plan_.root->level;
    const Clock& clock = root.state.clock;
    const double now = time(), length = clock.span(plan_.face.step);
    if (!(std::fabs(t - now) <= 1e-6 * length))
        return fail("a step from t = " + written(t) + " s was asked for, it is at " + written(now) + " s");
    std::int64_t ticks = 0;
    if (plan_.face.adaptive) {  // to the tick next to its end: nothing adds up
        const double end = std::round((t + h - clock.time(0)) / clock.span(1));
        if (!(h > 0.0) || !(end > static_cast<double>(root.state.now)) || !(end < 0x1p52))
            return fail("a step of " + written(h) + " s is shorter than time can tell");
        ticks = static_cast<std::int64_t>(end) - root.state.now;
    } else {
        const double count = std::round(h / length);
        if (!(std::fabs(h - count * length) <= 1e-6 * length) || count < 1.0 || count > 0x1p52)
            return fail("a step of " + written(h) + " s is no whole number of steps of " + written(length) +
                        " s, which its outermost level makes");
        ticks = static_cast<std::int64_t>(count) * plan_.face.step;
    }
    // whether an importer has asked for outputs in between makes no difference
    if (!refresh()) return false;
    if (!root.step(Span::of(clock, root.state.now, ticks), inputs_.data()))
        return fail(root.state.failures.first());
    const auto width = static_cast<std::ptrdiff_t>(root.state.memory.inputs);
    if (inputs_.size() > static_cast<std::size_t>(width))
        std::fill(inputs_.begin() + width, inputs_.end(), 0.0);
    return true;
}

std::unique_ptr<CoupledSystem::State> CoupledSystem::save() {
    auto state = std::make_unique<State>();
    if (phase_ != Phase::stepping && !start()) return nullptr;
    Level& root = *plan_.root->level;
    state->snapshot.whole = true;
    if (!root.save(state->snapshot)) {
        fail(root.state.failures.first());
        return nullptr;
    }
    state->phase = phase_;
    state->inputs = inputs_;
    state->initial = initial_;
    state->inputs_changed = inputs_changed_;
    return state;
}

bool CoupledSystem::restore(State& state) {
    Level& root = *plan_.root->level;
    for (Level* each : levels_)
        if (each) each->state.failures.forget_all();
    if (!root.restore(state.snapshot)) return fail(root.state.failures.first());
    if (!state.snapshot.fits()) return fail("the state is not one of this system");
    watch_->go_on_again();
    phase_ = state.phase;
    inputs_ = state.inputs;
    initial_ = state.initial;
    inputs_changed_ = state.inputs_changed;
    fresh_ = false;
    started_ = true;
    return true;
}

// By way of where it is: only the tree itself can write its state down.
bool CoupledSystem::serialise(State& state) {
    if (!state.bytes.empty()) return true;
    const std::unique_ptr<State> here = save();
    if (!here || !restore(state)) return false;
    Snapshot portable;
    portable.whole = portable.portable = true;
    Level& root = *plan_.root->level;
    const bool saved = root.save(portable) || fail(root.state.failures.first());
    if (saved) {
        ByteWriter to(state.bytes);
        to.put(plan_.face.token);
        to.put(static_cast<std::uint8_t>(state.phase));
        to.put(static_cast<std::uint8_t>(state.inputs_changed));
        to.put(state.inputs);
        to.put(state.initial);
        put(to, portable);
    }
    return restore(*here) && saved;
}

std::unique_ptr<CoupledSystem::State> CoupledSystem::deserialise(const std::string& bytes) {
    auto state = std::make_unique<State>();
    ByteReader from(bytes);
    std::string token;
    std::uint8_t phase = 0;
    from.get(token);
    from.get(phase);
    state->phase = static_cast<Phase>(std::min<std::uint8_t>(phase, 2));
    from.get(state->inputs_changed);
    from.get(state->inputs);
    from.get(state->initial);
    const bool whole = hocket::get(from, state->snapshot) && from.finished();
    if (whole && token == plan_.face.token && state->inputs.size() == inputs_.size() &&
        state->initial.size() == initial_.size())
        return state;
    fail(token != plan_.face.token ? "the state is of another FMU" : "the state is damaged");
    return nullptr;
}

}  // namespace hocket
