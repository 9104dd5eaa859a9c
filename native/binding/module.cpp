// The door between Python and the native engine; engine/native/engine.py is its only user.
// In:  a LevelBuilder with its level
// Out: an Engine that runs a number of steps and hands out rows, counts and failures
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>

#include "binding/python_simulator.hpp"
#include "engine/arithmetic_guard.hpp"
#include "engine/byte_stream.hpp"
#include "engine/level_builder.hpp"
#include "engine/start.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

void bind_fmus(nb::module_& module);
void bind_isolated(nb::module_& module);
void bind_formulas(nb::module_& module);
void bind_levels(nb::module_& module);
void bind_linear_models(nb::module_& module);
void bind_operations(nb::module_& module);
void bind_plans(nb::module_& module);
void bind_start(nb::module_& module);

namespace {

// What was sent over a link between hosts.
struct LinkLoad {
    std::int64_t messages, values;
};

// What went through one side of a power bond: in sum, and whichever way.
struct BondFlow {
    double energy, moved;
};

// What a level counted.
struct LevelReport {
    IterationCounts iterations;
    StepCounts steps;
    std::vector<double> residuals;  // of the newest iteration
    std::vector<BondFlow> bonds;    // given and taken, in turn
    std::vector<LinkLoad> links;
};

// A state of the whole tree; it keeps the tree alive, whose simulators know what it means.
struct SavedState {
    std::shared_ptr<Level> level;
    Snapshot snapshot;
};

class Engine {
  public:
    Engine(LevelBuilder& outermost, std::vector<std::shared_ptr<RowBuffer>> rows, int threads, bool always)
        : level_(std::move(outermost.level)), rows_(std::move(rows)) {
        gather(*level_);
        if (threads > 1) {
            pool_ = std::make_unique<ThreadPool>(threads);
            level_->share(pool_.get(), always, level_->needs_python());
        }
        watch_ = std::make_unique<Watch>(pool_.get());
        if (pool_) pool_->watch = watch_.get();
        level_->set_watch(watch_.get());
    }

    // Runs up to `steps` steps; returns earlier when rows wait, when `seconds` have passed, or when a
    // simulator of this process has asked to end its simulation, which may be another one. `attend` is called
    // within a step that lasts longer, also while the answer of an isolated simulator is waited for, and says
    // whether the run goes on.
    std::int64_t run(std::int64_t steps, double seconds, std::size_t most_values, const nb::object& attend) {
        std::exception_ptr raised;
        watch_->begin(seconds, [&](bool still) {
            nb::gil_scoped_acquire acquire;
            try {
                if (PyErr_CheckSignals() != 0) throw nb::python_error();
                return attend.is_none() || nb::cast<bool>(attend(still));
            } catch (...) {
                raised = std::current_exception();
                return false;
            }
        });
        const LookWhileWaiting looks([this] { return watch_->go_on(); });
        const ArithmeticGuard guard;
        std::int64_t done = 0;
        if (level_->needs_python()) {
            done = run_unlocked(steps, seconds, most_values);
        } else {
            nb::gil_scoped_release release;
            done = run_unlocked(steps, seconds, most_values);
        }
        if (raised) std::rethrow_exception(raised);
        return done;
    }

    // By hand: makes so many steps; returns how many it made, or -1 minus that number where there is more to
    // know: a failure, an order to stop, or a simulator that has asked to end the simulation.
    std::int64_t advance(std::int64_t steps) {
        watch_->begin(interval, [this](bool) {
            nb::gil_scoped_acquire acquire;
            if (PyErr_CheckSignals() == 0) return true;
            raised_ = std::make_exception_ptr(nb::python_error());
            return false;
        });
        const LookWhileWaiting looks([this] { return watch_->go_on(); });
        const ArithmeticGuard guard;
        const std::uint64_t ends = end_requests.ever.load(std::memory_order_relaxed);
        std::int64_t done = 0;
        const auto advance = [&] {
            while (done < steps && level_->run_step()) {
                ++done;
                if (end_requests.ever.load(std::memory_order_relaxed) != ends) break;
                if (watch_->due() && !watch_->go_on()) break;
            }
        };
        if (level_->needs_python()) {
            advance();
        } else {
            nb::gil_scoped_release release;
            advance();
        }
        if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
        const bool ended = end_requests.ever.load(std::memory_order_relaxed) != ends;
        return done == steps && !ended ? done : -1 - done;
    }

    // Starts the tree anew, as engine/initialise.py does; its simulators are where `started` says they are.
    StartReport start(const StartProgram& program, double t, std::optional<double> stop, bool started) {
        return hocket::start(*level_, program, {t, stop.has_value(), stop.value_or(0.0)}, started);
    }
    bool take_first_instants() { return level_->take_first_instants(); }

    // The newest output, or the input, of a child at the time reached.
    double value(int level, int number, int port, bool is_input) const {
        const Level& found = find(level);
        return is_input ? found.input_value(number, port)
                        : found.state.memory.y[found.state.slots[number].y + port];
    }
    void set_own_input(int port, double value) { level_->set_own_input(port, value); }
    void set_input(int level, int child, int port, double value) {
        find(level).set_input(child, port, value);
    }
    void release_input(int level, int child, int port) { find(level).release_input(child, port); }
    void set_output(int level, int child, int port, double value) {
        find(level).set_output(child, port, value);
    }
    bool release_output(int level, int child, int port, bool evaluate) {
        return find(level).release_output(child, port, evaluate);
    }

    // The state of the whole tree; none: `failure` says why.
    std::shared_ptr<SavedState> save() {
        auto saved = std::make_shared<SavedState>();
        saved->level = level_;
        saved->snapshot.whole = true;
        return level_->save(saved->snapshot) ? saved : nullptr;
    }
    bool restore(SavedState& saved) {
        if (saved.level != level_) throw std::invalid_argument("a state of another engine");
        forget_failures();
        if (!level_->restore(saved.snapshot)) return false;
        watch_->go_on_again();
        return true;
    }
    // The same for a file: numbers as bytes, and the states of simulators in Python; None: `failure` says
    // why.
    nb::object dump() {
        Snapshot found;
        found.whole = found.portable = true;
        if (!level_->save(found)) return nb::none();
        std::string bytes;
        ByteWriter to(bytes);
        put(to, found);
        nb::list states;
        for_each_state(*level_, found, [&](State& state) {
            states.append(state.state);
            return true;
        });
        return nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), states);
    }
    // None: `failure` says why; false: it is not of this tree, whose state is worth nothing any more.
    nb::object load(const nb::bytes& bytes, const nb::list& states) {
        Snapshot found;
        const std::string copied(bytes.c_str(), bytes.size());
        ByteReader from(copied);
        if (!get(from, found) || !from.finished()) return nb::bool_(false);
        std::size_t next = 0;
        const bool enough = for_each_state(*level_, found, [&](State& state) {
            if (next == states.size()) return false;
            state.state = states[next++];
            return true;
        });
        if (!enough || next != states.size()) return nb::bool_(false);
        forget_failures();
        if (!level_->restore(found)) return nb::none();
        watch_->go_on_again();
        return nb::bool_(found.fits());
    }
    void forget_failures() { forget_inside(*level_); }

    // Whether `attend` has said that the run does not go on.
    bool stopped() const { return watch_->stopped(); }

    // Whether the run was stopped, or failed, within a step.
    bool within_step() const { return level_->state.under_way(); }

    // Finds out which rows are final.
    void settle_rows() { level_->settle_rows(nullptr, false); }

    std::optional<Failure> failure() const {
        const Failure& first = level_->state.failures.first();
        return first.kind == Failure::Kind::none ? std::nullopt : std::optional(first);
    }

    // What the simulator raised that failed; None: nothing.
    nb::object take_error() const {
        const Failure& f = level_->state.failures.first();
        if (f.kind != Failure::Kind::raised) return nb::none();
        const std::shared_ptr<Simulator>& failed = child(f.level, f.child);
        const std::shared_ptr<Simulator>* itself = failed->itself();
        auto* simulator = dynamic_cast<PythonSimulator*>((itself ? *itself : failed).get());
        return simulator ? simulator->take_error() : nb::none();
    }

    std::int64_t now() const { return level_->state.now; }

    void add_last_rows() { level_->add_last_rows(); }

    LevelReport report(int number) const {
        const Level& level = find(number);
        LevelReport report{level.iterations(), level.steps(), level.residuals(), {}, {}};
        const Accounts& accounts = level.ledger.accounts;
        for (std::size_t k = 0; k < 2 * accounts.bonds; ++k)
            report.bonds.push_back({accounts.energy[k], accounts.moved[k]});
        if (level.messages)
            for (const MessageCounter::Link& link : level.messages->links)
                report.links.push_back({link.messages, link.values});
        return report;
    }

    // The numbers of a simulator's state.
    std::vector<double> state(int level, int number) const {
        Snapshot found;
        child(level, number)->save(found);
        return found.numbers();
    }

  private:
    static constexpr double interval = 0.1;  // seconds between two looks at signals

    // What simulators in Python have saved, in the order of the tree; false: `visit` has said so.
    template <class Visit> static bool for_each_state(Level& level, Snapshot& snapshot, const Visit& visit) {
        for (std::size_t number = 0; number < level.state.children.size(); ++number) {
            const std::shared_ptr<Simulator>& given = level.state.children[number].simulator;
            const std::shared_ptr<Simulator>* itself = given->itself();
            Simulator* simulator = (itself ? *itself : given).get();
            Snapshot& part = snapshot.part(number);
            if (auto* inner = dynamic_cast<Level*>(simulator)) {
                if (!for_each_state(*inner, part, visit)) return false;
            } else if (dynamic_cast<PythonSimulator*>(simulator)) {
                if (!part.of_its_own) part.of_its_own = std::make_shared<State>();
                if (!visit(*static_cast<State*>(part.of_its_own.get()))) return false;
            }
        }
        return true;
    }
    static void forget_inside(Level& level) {
        level.state.failures.forget_all();
        for (Level* inner : level.levels_inside()) forget_inside(*inner);
    }
    void gather(Level& level) {
        const auto number = static_cast<std::size_t>(level.state.number);
        if (levels_.size() <= number) levels_.resize(number + 1);
        levels_[number] = &level;
        for (Level* inner : level.levels_inside()) gather(*inner);
    }
    Level& find(int number) const {
        const auto at = static_cast<std::size_t>(number);
        if (at < levels_.size() && levels_[at]) return *levels_[at];
        throw std::out_of_range("there is no such level");
    }
    const std::shared_ptr<Simulator>& child(int level, int number) const {
        return find(level).state.children.at(number).simulator;
    }

    std::int64_t run_unlocked(std::int64_t steps, double seconds, std::size_t most_values) {
        const auto begin = std::chrono::steady_clock::now();
        const std::uint64_t ends = end_requests.ever.load(std::memory_order_relaxed);
        std::int64_t done = 0, look = 1, next_look = 1;
        while (done < steps) {
            if (!level_->run_step()) return failure() ? -1 - done : done;  // none: it was stopped
            ++done;
            if (end_requests.ever.load(std::memory_order_relaxed) != ends) [[unlikely]]
                return done;
            if (done < next_look && !watch_->due()) continue;
            for (const auto& rows : rows_)
                if (rows->data.size() >= most_values) return done;
            const double took =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            if (took >= seconds || watch_->due()) return done;
            // look at the clock about a thousand times per round, not at every step
            const double wanted = seconds / 1000.0 / std::max(took / static_cast<double>(done), 1e-9);
            look = std::max<std::int64_t>(
                1, std::min<std::int64_t>(look * 2, static_cast<std::int64_t>(wanted)));
            next_look = done + look;
        }
        return done;
    }

    std::shared_ptr<Level> level_;
    std::vector<std::shared_ptr<RowBuffer>> rows_;
    std::unique_ptr<ThreadPool> pool_;
    std::unique_ptr<Watch> watch_;
    std::exception_ptr raised_;
    std::vector<Level*> levels_;  // by their numbers; none: it is condensed
};

void bind_failure(nb::module_& module) {
    using Kind = Failure::Kind;
    nb::enum_<Kind>(module, "FailureKind")
        .value("none", Kind::none)
        .value("raised", Kind::raised)
        .value("stopped_early", Kind::stopped_early)
        .value("not_finite", Kind::not_finite)
        .value("internal", Kind::internal)
        .value("loop_singular", Kind::loop_singular)
        .value("loop_not_converged", Kind::loop_not_converged)
        .value("reported", Kind::reported)
        .value("not_converged", Kind::not_converged)
        .value("tolerance_not_met", Kind::tolerance_not_met)
        .value("no_energy", Kind::no_energy)
        .value("endless_instants", Kind::endless_instants)
        .value("past_event", Kind::past_event)
        .value("zeno", Kind::zeno)
        .value("chattering", Kind::chattering)
        .value("never_whole", Kind::never_whole)
        .value("ended", Kind::ended)
        .value("not_settled", Kind::not_settled);
    nb::enum_<Call>(module, "Call")
        .value("step", Call::step)
        .value("output", Call::output)
        .value("slope", Call::slope)
        .value("save", Call::save)
        .value("restore", Call::restore)
        .value("due", Call::due)
        .value("react", Call::react)
        .value("commit", Call::commit)
        .value("space_events", Call::space_events)
        .value("start", Call::start);
    nb::class_<Failure>(module, "Failure")
        .def_ro("kind", &Failure::kind)
        .def_ro("level", &Failure::level)
        .def_ro("child", &Failure::child)
        .def_ro("port", &Failure::port)
        .def_ro("call", &Failure::call)
        .def_ro("tick", &Failure::tick)
        .def_ro("ticks", &Failure::ticks)
        .def_ro("value", &Failure::value);
}

void bind_report(nb::module_& module) {
    nb::class_<IterationCounts>(module, "IterationCounts")
        .def_ro("repeats", &IterationCounts::repeats)
        .def_ro("total", &IterationCounts::total)
        .def_ro("most", &IterationCounts::most);
    nb::class_<StepCounts>(module, "StepCounts")
        .def_ro("accepted", &StepCounts::accepted)
        .def_ro("rejected", &StepCounts::rejected)
        .def_ro("shortest", &StepCounts::shortest)
        .def_ro("longest", &StepCounts::longest)
        .def_ro("passed", &StepCounts::passed)
        .def_ro("passed_at", &StepCounts::passed_at)
        .def_ro("worst", &StepCounts::worst)
        .def_ro("seen", &StepCounts::seen);
    nb::class_<BondFlow>(module, "BondFlow")
        .def_ro("energy", &BondFlow::energy)
        .def_ro("moved", &BondFlow::moved);
    nb::class_<LinkLoad>(module, "LinkLoad")
        .def_ro("messages", &LinkLoad::messages)
        .def_ro("values", &LinkLoad::values);
    nb::class_<LevelReport>(module, "LevelReport")
        .def_ro("iterations", &LevelReport::iterations)
        .def_ro("steps", &LevelReport::steps)
        .def_ro("residuals", &LevelReport::residuals)
        .def_ro("bonds", &LevelReport::bonds)
        .def_ro("links", &LevelReport::links);
}

}  // namespace

}  // namespace hocket

NB_MODULE(_native, module) {
    using namespace hocket;
    nb::class_<Simulator>(module, "Simulator");
    bind_fmus(module);
    bind_isolated(module);
    bind_formulas(module);
    bind_operations(module);
    bind_linear_models(module);
    bind_levels(module);
    bind_failure(module);
    bind_start(module);
    bind_plans(module);
    bind_report(module);
    // how many simulators of this process have asked to end their simulation so far
    module.def("count_end_requests", [] { return end_requests.ever.load(); });
    // whether an FMU has changed how this thread computes with floating-point numbers
    module.def("changes_arithmetic", [usual = read_arithmetic()] {
        return arithmetic_was_changed.load() || read_arithmetic() != usual;
    });
    nb::class_<SavedState>(module, "SavedState");
    nb::class_<Engine>(module, "Engine")
        .def(nb::init<LevelBuilder&, std::vector<std::shared_ptr<RowBuffer>>, int, bool>(), nb::kw_only(),
             "level"_a, "rows"_a, "threads"_a, "always"_a)
        .def("start", &Engine::start, "program"_a, "t"_a, "stop"_a.none(), "started"_a)
        .def("take_first_instants", &Engine::take_first_instants)
        .def("run", &Engine::run, "steps"_a, "seconds"_a, "most_values"_a, "attend"_a.none())
        .def("advance", &Engine::advance, "steps"_a)
        .def("value", &Engine::value, "level"_a, "child"_a, "port"_a, "is_input"_a)
        .def("set_own_input", &Engine::set_own_input, "port"_a, "value"_a)
        .def("set_input", &Engine::set_input, "level"_a, "child"_a, "port"_a, "value"_a)
        .def("release_input", &Engine::release_input, "level"_a, "child"_a, "port"_a)
        .def("set_output", &Engine::set_output, "level"_a, "child"_a, "port"_a, "value"_a)
        .def("release_output", &Engine::release_output, "level"_a, "child"_a, "port"_a, "evaluate"_a)
        .def("save", &Engine::save)
        .def("restore", &Engine::restore, "state"_a)
        .def("dump", &Engine::dump)
        .def("load", &Engine::load, "numbers"_a, "states"_a)
        .def("forget_failures", &Engine::forget_failures)
        .def("settle_rows", &Engine::settle_rows)
        .def_prop_ro("stopped", &Engine::stopped)
        .def_prop_ro("within_step", &Engine::within_step)
        .def("failure", &Engine::failure)
        .def("take_error", &Engine::take_error)
        .def("report", &Engine::report, "level"_a)
        .def("state", &Engine::state, "level"_a, "child"_a)
        .def("add_last_rows", &Engine::add_last_rows)
        .def_prop_ro("now", &Engine::now);
}
