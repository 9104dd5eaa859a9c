// The door between Python and the native engine; engine/native.py is its only user.
// In:  arrays and live simulators
// Out: an Engine that runs a number of steps and hands out rows and failures
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "level.hpp"
#include "python_simulator.hpp"
#include "state_space.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace hocket;
using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;

std::vector<double> taken(const Numbers& array) { return {array.data(), array.data() + array.size()}; }

// Each (rows x columns) matrix of a stack, column by column.
std::vector<double> columns(const Numbers& array, std::size_t rows, std::size_t width) {
    std::vector<double> result;
    result.reserve(array.size());
    const std::size_t block = rows * width;
    for (std::size_t at = 0; block && at < array.size(); at += block)
        for (std::size_t j = 0; j < width; ++j)
            for (std::size_t i = 0; i < rows; ++i) result.push_back(array.data()[at + i * width + j]);
    return result;
}

Operation::Kind kind_of(const std::string& name) {
    using Kind = Operation::Kind;
    static const std::pair<const char*, Kind> names[] = {
        {"admit", Kind::admit}, {"feed", Kind::feed},   {"step", Kind::step},         {"read", Kind::read},
        {"solve", Kind::solve}, {"times", Kind::times}, {"record", Kind::record}, {"step_read", Kind::step_read}, {"together", Kind::together},
        {"save", Kind::save},   {"restore", Kind::restore}, {"repeat", Kind::repeat},
        {"adapt", Kind::adapt}, {"next", Kind::next}, {"open", Kind::open}, {"close", Kind::close}};
    for (const auto& [known, kind] : names)
        if (name == known) return kind;
    throw std::invalid_argument("unknown operation " + name);
}

std::shared_ptr<Pace> pace(const std::vector<double>& numbers);

// (kind, children, ticks or n, parallel, bodies, signals, slopes, number, until, accelerator, numbers, degrees, part)
std::vector<Operation> program(const nb::list& encoded) {
    std::vector<Operation> operations;
    for (nb::handle item : encoded) {
        const auto parts = nb::cast<nb::tuple>(item);
        Operation operation;
        operation.kind = kind_of(nb::cast<std::string>(parts[0]));
        operation.children = nb::cast<std::vector<int>>(parts[1]);
        operation.ticks = nb::cast<std::int64_t>(parts[2]);
        operation.n = static_cast<int>(operation.ticks);
        operation.parallel = nb::cast<bool>(parts[3]);
        for (nb::handle body : nb::cast<nb::list>(parts[4])) operation.bodies.push_back(program(nb::cast<nb::list>(body)));
        operation.signals = nb::cast<std::vector<int>>(parts[5]);
        operation.slopes = nb::cast<std::vector<int>>(parts[6]);
        operation.number = nb::cast<int>(parts[7]);
        operation.until = nb::cast<double>(parts[8]);
        if (operation.kind == Operation::Kind::repeat)
            operation.accelerator = accelerator(nb::cast<std::string>(parts[9]), nb::cast<std::vector<double>>(parts[10]));
        if (operation.kind == Operation::Kind::adapt) operation.pace = pace(nb::cast<std::vector<double>>(parts[10]));
        operation.degrees = nb::cast<std::vector<int>>(parts[11]);
        std::tie(operation.numerator, operation.denominator) = nb::cast<std::pair<std::int64_t, std::int64_t>>(parts[12]);
        operations.push_back(std::move(operation));
    }
    return operations;
}

// A level under construction; add_level and Engine take it over.
struct Builder {
    std::shared_ptr<Level> level;

    Builder(std::int64_t tick, std::int64_t start, std::int64_t denominator, std::int64_t length, int degree, int inputs)
        : level(std::make_shared<Level>(Clock{tick, start, denominator}, length, degree, inputs)) {}

    void add_state_space(const std::shared_ptr<Linear>& model, const Numbers& z, double last,
                         const std::shared_ptr<Rows>& rows, std::vector<int> ports) {
        std::unique_ptr<MicroRows> micro;
        if (rows) micro = std::make_unique<MicroRows>(rows, std::move(ports), &level->clock);
        level->models.insert(model);
        level->add_child(state_space(*model, taken(z), last, std::move(micro)), model->rows, model->inputs, model->outputs);
    }
    void add_python(nb::object simulator, nb::object micro, int rows, int inputs, int outputs) {
        level->add_child(std::make_unique<PythonSimulator>(std::move(simulator), rows, inputs, outputs, level->clock, std::move(micro)),
                         rows, inputs, outputs);
    }
    void add_native(std::shared_ptr<Simulator> simulator, int rows, int inputs, int outputs) {
        level->add_child(std::move(simulator), rows, inputs, outputs);
    }
    const Level* add_level(Builder& inner, int rows, int inputs, int outputs) {
        const Level* address = inner.level.get();
        level->add_child(std::move(inner.level), rows, inputs, outputs);
        return address;
    }
    // columns: kind, child, input, source, samples, plain, seen / alpha, gain, offset, before, after
    void add_drives(const Integers& whole, const Numbers& real) {
        const std::size_t count = whole.size() / 7;
        for (std::size_t k = 0; k < count; ++k) {
            const std::int64_t* w = whole.data() + 7 * k;
            const double* r = real.data() + 5 * k;
            Fit fit;
            fit.kind = static_cast<Fit::Kind>(w[0]);
            fit.child = static_cast<int>(w[1]);
            fit.input = static_cast<int>(w[2]);
            fit.source = static_cast<int>(w[3]);
            fit.samples = static_cast<int>(w[4]);
            fit.seen = w[6];
            fit.alpha = r[0];
            fit.gain = r[1];
            fit.offset = r[2];
            fit.converts = fit.gain != 1.0 || fit.offset != 0.0;
            fit.before = r[3];
            fit.after = r[4];
            level->add_drive(fit, w[5] != 0);
        }
    }
    void set_ring(int signal, int depth, bool sloped, const Integers& ticks, const Numbers& values, const Numbers& slopes) {
        level->set_ring(signal, depth, sloped);
        for (std::size_t k = 0; k < ticks.size(); ++k)
            level->rings.back().push(ticks.data()[k], values.data()[k], slopes.data()[k]);
    }
    void set_state(const Numbers& u, const Numbers& y, const Integers& base, const Numbers& used, std::int64_t used_base,
                   const Numbers& offered, std::int64_t offered_base) {
        const auto copy = [](const auto& from, auto& to) {
            if (from.size() != to.size()) throw std::invalid_argument("state of another size");
            std::copy(from.data(), from.data() + from.size(), to.begin());
        };
        copy(u, level->u);
        copy(y, level->y);
        copy(used, level->used);
        copy(offered, level->offered);
        if (base.size() != level->children.size()) throw std::invalid_argument("state of another size");
        for (std::size_t k = 0; k < base.size(); ++k) level->children[k].base = base.data()[k];
        level->used_base = used_base;
        level->offered_base = offered_base;
    }
    // slopes: of a linear model C A, C B and, where the output reacts at once, D; else empty
    void add_account(int child, int signal, int input, double factor, bool asked, const std::vector<double>& slopes, int states,
                     bool reacts, const std::vector<double>& now, std::int64_t since) {
        Account account;
        account.child = child;
        account.signal = signal;
        account.input = input;
        account.factor = factor;
        account.asked = asked;
        account.reacts = reacts;
        account.states = states;
        if (!slopes.empty()) {
            std::vector<double>& all = level->account_slopes;
            const auto place = std::search(all.begin(), all.end(), slopes.begin(), slopes.end());  // equal models share them
            account.slopes = static_cast<int>(place - all.begin());
            if (place == all.end()) all.insert(all.end(), slopes.begin(), slopes.end());
        }
        account.power = now.at(0);
        account.energy = now.at(1);
        account.from_y = now.at(2);
        account.from_rest = now.at(3);
        account.since = since;
        level->accounts.push_back(account);
    }
    void record(std::shared_ptr<Rows> rows, const std::vector<int>& children, const std::vector<int>& ports,
                const std::vector<bool>& are_inputs) {
        std::vector<Column> columns;
        for (std::size_t k = 0; k < children.size(); ++k) columns.push_back({children[k], ports[k], are_inputs[k]});
        level->record(std::move(rows), std::move(columns));
    }
};

class Engine {
  public:
    Engine(Builder& outermost, std::vector<std::shared_ptr<Rows>> rows, int threads, bool always)
        : level_(std::move(outermost.level)), rows_(std::move(rows)) {
        if (threads > 1) {
            pool_ = std::make_unique<Pool>(threads);
            level_->share(pool_.get(), always, level_->needs_python());
        }
    }

    // Runs up to `steps` steps; returns earlier when rows wait, or when `seconds` have passed.
    std::int64_t run(std::int64_t steps, double seconds, std::size_t most_values) {
        if (level_->needs_python()) return go(steps, seconds, most_values);
        nb::gil_scoped_release release;
        return go(steps, seconds, most_values);
    }

    nb::object failure() const {
        const Failure& f = level_->first_failure;
        if (f.kind == Failure::Kind::none) return nb::none();
        static const char* kinds[] = {"none",     "raised",        "stopped_early", "not_finite",
                                      "internal", "loop_singular", "loop_stuck",    "reported", "no_agreement",
                                      "not_met"};
        nb::object error = nb::none();
        const auto* level = static_cast<const Level*>(f.level);
        if (f.kind == Failure::Kind::raised)
            if (auto* simulator = dynamic_cast<PythonSimulator*>(level->children[f.child].simulator.get()))
                error = simulator->take_error();
        return nb::make_tuple(kinds[static_cast<int>(f.kind)], reinterpret_cast<std::uintptr_t>(level), f.child, f.port,
                              static_cast<int>(f.call), f.tick, f.ticks, f.value, error);
    }

    std::int64_t now() const { return level_->now; }

    void keep_last_rows() { level_->keep_last_row(); }

    // Of each level: its address, and how often its steps were made again.
    nb::list sweeps() const {
        nb::list found;
        add_sweeps(*level_, found);
        return found;
    }

    // Of each level with power bonds: its address, and what flowed and moved through them, given and taken in turn.
    nb::list energies() const {
        nb::list found;
        add_energies(*level_, found);
        return found;
    }

    // The numbers of a simulator's state, by the address of its level.
    std::vector<double> state(std::uintptr_t address, int child) const {
        Snapshot found;
        find_state(*level_, address, child, found);
        return found.numbers();
    }

    // Of the iteration that failed.
    std::vector<double> residuals() const {
        const auto* level = static_cast<const Level*>(level_->first_failure.level);
        return level ? level->residuals : std::vector<double>{};
    }

  private:
    static void add_sweeps(const Level& level, nb::list& found) {
        const Sweeps& s = level.sweeps;
        found.append(nb::make_tuple(reinterpret_cast<std::uintptr_t>(&level), s.repeats, s.total, s.most, level.steps.accepted,
                                    level.steps.rejected, level.steps.shortest, level.steps.longest));
        for (const Child& child : level.children)
            if (const auto* inner = dynamic_cast<const Level*>(child.simulator.get())) add_sweeps(*inner, found);
    }

    static void find_state(const Level& level, std::uintptr_t address, int child, Snapshot& found) {
        if (reinterpret_cast<std::uintptr_t>(&level) == address) level.children.at(child).simulator->keep(found);
        for (const Child& each : level.children)
            if (const auto* inner = dynamic_cast<const Level*>(each.simulator.get())) find_state(*inner, address, child, found);
    }

    static void add_energies(const Level& level, nb::list& found) {
        std::vector<std::pair<double, double>> flowed;
        for (const Account& account : level.accounts) flowed.emplace_back(account.energy, account.moved);
        if (!flowed.empty()) found.append(nb::make_tuple(reinterpret_cast<std::uintptr_t>(&level), flowed));
        for (const Child& child : level.children)
            if (const auto* inner = dynamic_cast<const Level*>(child.simulator.get())) add_energies(*inner, found);
    }

    std::int64_t go(std::int64_t steps, double seconds, std::size_t most_values) {
        const auto begin = std::chrono::steady_clock::now();
        std::int64_t done = 0, look = 1, next_look = 1;
        while (done < steps) {
            if (!level_->run_outermost(1)) return -1 - done;
            if (++done < next_look) continue;
            for (const auto& rows : rows_)
                if (rows->data.size() >= most_values) return done;
            const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            if (took >= seconds) return done;
            // look at the clock about a thousand times per round, not at every step
            look = std::max<std::int64_t>(1, std::min<std::int64_t>(look * 2, static_cast<std::int64_t>(
                                                  seconds / 1000.0 / std::max(took / static_cast<double>(done), 1e-9))));
            next_look = done + look;
        }
        return done;
    }

    std::shared_ptr<Level> level_;
    std::vector<std::shared_ptr<Rows>> rows_;
    std::unique_ptr<Pool> pool_;
};

std::shared_ptr<Linear> linear(int rows, bool multistep, const Numbers& A, const Numbers& B, const Numbers& C, const Numbers& D,
                               int size, int inputs, int outputs) {
    auto model = std::make_shared<Linear>();
    model->rows = rows;
    model->size = size;
    model->inputs = inputs;
    model->outputs = outputs;
    model->multistep = multistep;
    model->states = multistep ? 2 * size : size;
    const auto s = static_cast<std::size_t>(size);
    const auto m = static_cast<std::size_t>(inputs), p = static_cast<std::size_t>(outputs);
    model->A = columns(A, s, s);
    model->B = columns(B, s, m);
    model->C = columns(C, p, s);
    model->D = columns(D, p, m);
    model->feeds_through = std::any_of(model->D.begin(), model->D.end(), [](double d) { return d != 0.0; });
    return model;
}

void add_length(Linear& model, std::int64_t ticks, double h, int count, double length, const Numbers& Phi, const Numbers& Gamma,
                const Numbers& first_Phi, const Numbers& first_Gamma) {
    const auto n = static_cast<std::size_t>(model.states), m = static_cast<std::size_t>(model.inputs);
    auto added = std::make_unique<Length>();
    added->ticks = ticks;
    added->h = h;
    added->count = count;
    added->length = length;
    added->maps = {columns(Phi, n, n), columns(Gamma, n, m)};
    added->first = {columns(first_Phi, n, n), columns(first_Gamma, n, m)};
    model.lengths.push_back(std::move(added));
}

std::shared_ptr<Pace> pace(const std::vector<double>& n) {
    auto made = std::make_shared<Pace>();
    const auto whole = [&](int k) { return static_cast<std::int64_t>(n.at(k)); };
    made->tolerance = n.at(0);
    made->estimate = static_cast<Pace::Estimate>(whole(1));
    made->per_unit = n.at(2) != 0.0;
    for (int k = 0; k < 3; ++k) made->gains[k] = n.at(3 + k);
    made->quantum = whole(6);
    made->wanted = whole(7);
    made->largest = whole(8);
    made->rejects = n.at(9) != 0.0;
    made->safety = n.at(10);
    made->most = n.at(11);
    made->least = n.at(12);
    made->power = n.at(13);
    return made;
}

}  // namespace

namespace hocket {
void bind_fmus(nb::module_& module);
void bind_isolated(nb::module_& module);
}

NB_MODULE(_native, module) {
    nb::class_<Simulator>(module, "Simulator");
    hocket::bind_fmus(module);
    hocket::bind_isolated(module);
    nb::class_<Linear>(module, "Linear")
        .def("add", &add_length)
        .def("ask", [](Linear& self, nb::object asked) {
            self.ask = [&self, asked](std::int64_t ticks) {
                const auto found = nb::cast<nb::tuple>(asked(ticks));
                add_length(self, ticks, nb::cast<double>(found[0]), nb::cast<int>(found[1]), nb::cast<double>(found[2]),
                           nb::cast<Numbers>(found[3]), nb::cast<Numbers>(found[4]), nb::cast<Numbers>(found[5]),
                           nb::cast<Numbers>(found[6]));
            };
        });
    module.def("linear", &linear);
    nb::class_<Rows>(module, "Rows")
        .def("__init__", [](Rows* rows, int width, std::int64_t interval) { new (rows) Rows{.width = width, .interval = interval}; })
        .def("__len__", &Rows::count)
        .def("taken", [](Rows& rows) {
            const std::size_t count = rows.count();
            auto* data = new double[rows.data.size()];
            std::copy(rows.data.begin(), rows.data.end(), data);
            rows.data.clear();
            nb::capsule owner(data, [](void* raw) noexcept { delete[] static_cast<double*>(raw); });
            return nb::ndarray<nb::numpy, double>(data, {count, static_cast<std::size_t>(rows.width)}, owner);
        });
    nb::class_<Builder>(module, "Level")
        .def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int>())
        .def("add_state_space", &Builder::add_state_space, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg())
        .def("add_python", &Builder::add_python, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg())
        .def("add_native", &Builder::add_native)
        .def("add_text", [](Builder& self, int from, int source, int to, int target) {
            self.level->add_text(from, source, to, target);
        })
        .def("add_level",
             [](Builder& self, Builder& inner, int rows, int inputs, int outputs) {
                 return reinterpret_cast<std::uintptr_t>(self.add_level(inner, rows, inputs, outputs));
             })
        .def("address", [](const Builder& self) { return reinterpret_cast<std::uintptr_t>(self.level.get()); })
        .def("add_drives", &Builder::add_drives)
        .def("add_output", [](Builder& self, int source, double gain, double offset) {
            self.level->add_output(source, gain, offset);
        })
        .def("set_ring", &Builder::set_ring)
        .def("set_state", &Builder::set_state)
        .def("set_programs", [](Builder& self, const nb::list& step, const nb::list& output) {
            self.level->set_programs(program(step), program(output));
        })
        .def("add_account", &Builder::add_account)
        .def("record", &Builder::record);
    nb::class_<Engine>(module, "Engine")
        .def(nb::init<Builder&, std::vector<std::shared_ptr<Rows>>, int, bool>())
        .def("run", &Engine::run)
        .def("failure", &Engine::failure)
        .def("energies", &Engine::energies)
        .def("state", &Engine::state)
        .def("sweeps", &Engine::sweeps)
        .def("residuals", &Engine::residuals)
        .def("keep_last_rows", &Engine::keep_last_rows)
        .def_prop_ro("now", &Engine::now);
}
