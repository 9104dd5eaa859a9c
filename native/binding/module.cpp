// The door between Python and the native engine; engine/native.py is its only user.
// In:  a Builder with its level
// Out: an Engine that runs a number of steps and hands out rows and failures
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "binding/level_builder.hpp"

using namespace nanobind::literals;

namespace hocket {

void bind_fmus(nb::module_& module);
void bind_isolated(nb::module_& module);
void bind_levels(nb::module_& module);

namespace {

class Engine {
  public:
    Engine(Builder& outermost, std::vector<std::shared_ptr<RowBuffer>> rows, int threads, bool always)
        : level_(std::move(outermost.level)), rows_(std::move(rows)) {
        if (threads > 1) {
            pool_ = std::make_unique<ThreadPool>(threads);
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
        const Failure& f = level_->state.failures.first();
        if (f.kind == Failure::Kind::none) return nb::none();
        static const char* kinds[] = {"none",
                                      "raised",
                                      "stopped_early",
                                      "not_finite",
                                      "internal",
                                      "loop_singular",
                                      "loop_not_converged",
                                      "reported",
                                      "not_converged",
                                      "tolerance_not_met",
                                      "no_energy"};
        nb::object error = nb::none();
        const Level* level = find(*level_, f.level);
        if (f.kind == Failure::Kind::raised)
            if (auto* simulator =
                    dynamic_cast<PythonSimulator*>(level->state.children[f.child].simulator.get()))
                error = simulator->take_error();
        return nb::make_tuple(kinds[static_cast<int>(f.kind)], f.level, f.child, f.port,
                              static_cast<int>(f.call), f.tick, f.ticks, f.value, error);
    }

    std::int64_t now() const { return level_->state.now; }

    void keep_last_rows() { level_->add_last_rows(); }

    // Of each level: its address, and how often its steps were made again.
    nb::list sweeps() const {
        nb::list found;
        add_sweeps(*level_, found);
        return found;
    }

    // Of the level whose children are on several hosts: its address, and messages and values per link.
    nb::list messages() const {
        nb::list found;
        add_messages(*level_, found);
        return found;
    }

    // Of each level with power bonds: its address, and what flowed and moved through them, given and taken in
    // turn.
    nb::list energies() const {
        nb::list found;
        add_energies(*level_, found);
        return found;
    }

    // The numbers of a simulator's state, by the address of its level.
    std::vector<double> state(int number, int child) const {
        Snapshot found;
        find_state(*level_, number, child, found);
        return found.numbers();
    }

    // Of the iteration that failed.
    std::vector<double> residuals() const {
        const Level* level = find(*level_, level_->state.failures.first().level);
        return level ? level->residuals() : std::vector<double>{};
    }

  private:
    static const Level* find(const Level& level, int number) {
        if (level.state.number == number) return &level;
        for (const Level* inner : level.levels_inside())
            if (const Level* found = find(*inner, number)) return found;
        return nullptr;
    }

    static void add_sweeps(const Level& level, nb::list& found) {
        const IterationCounts& s = level.iterations();
        found.append(nb::make_tuple(level.state.number, s.repeats, s.total, s.most, level.steps().accepted,
                                    level.steps().rejected, level.steps().shortest, level.steps().longest));
        for (const Level* inner : level.levels_inside()) add_sweeps(*inner, found);
    }

    static void add_messages(const Level& level, nb::list& found) {
        if (level.messages) {
            nb::list links;
            for (const MessageCounter::Link& link : level.messages->links)
                links.append(nb::make_tuple(link.messages, link.values));
            found.append(nb::make_tuple(level.state.number, links));
        }
        for (const Level* inner : level.levels_inside()) add_messages(*inner, found);
    }

    static void find_state(const Level& level, int number, int child, Snapshot& found) {
        if (level.state.number == number) level.state.children.at(child).simulator->save(found);
        for (const Level* inner : level.levels_inside()) find_state(*inner, number, child, found);
    }

    static void add_energies(const Level& level, nb::list& found) {
        std::vector<std::pair<double, double>> flowed;
        for (std::size_t k = 0; k < 2 * level.ledger.accounts.bonds; ++k)
            flowed.emplace_back(level.ledger.accounts.energy[k], level.ledger.accounts.moved[k]);
        if (!flowed.empty()) found.append(nb::make_tuple(level.state.number, flowed));
        for (const Level* inner : level.levels_inside()) add_energies(*inner, found);
    }

    std::int64_t go(std::int64_t steps, double seconds, std::size_t most_values) {
        const auto begin = std::chrono::steady_clock::now();
        std::int64_t done = 0, look = 1, next_look = 1;
        while (done < steps) {
            if (!level_->run_step()) return -1 - done;
            if (++done < next_look) continue;
            for (const auto& rows : rows_)
                if (rows->data.size() >= most_values) return done;
            const double took =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            if (took >= seconds) return done;
            // look at the clock about a thousand times per round, not at every step
            look = std::max<std::int64_t>(
                1, std::min<std::int64_t>(
                       look * 2, static_cast<std::int64_t>(
                                     seconds / 1000.0 / std::max(took / static_cast<double>(done), 1e-9))));
            next_look = done + look;
        }
        return done;
    }

    std::shared_ptr<Level> level_;
    std::vector<std::shared_ptr<RowBuffer>> rows_;
    std::unique_ptr<ThreadPool> pool_;
};

}  // namespace

}  // namespace hocket

NB_MODULE(_native, module) {
    using namespace hocket;
    nb::class_<Simulator>(module, "Simulator");
    bind_fmus(module);
    bind_isolated(module);
    nb::class_<RowBuffer>(module, "Rows")
        .def("__init__",
             [](RowBuffer* rows, int width, std::int64_t interval) {
                 new (rows) RowBuffer{.width = width, .interval = interval};
             })
        .def("__len__", &RowBuffer::count)
        .def("taken", [](RowBuffer& rows) {
            const std::size_t count = rows.count();
            auto* data = new double[rows.data.size()];
            std::copy(rows.data.begin(), rows.data.end(), data);
            rows.data.clear();
            nb::capsule owner(data, [](void* raw) noexcept { delete[] static_cast<double*>(raw); });
            return nb::ndarray<nb::numpy, double>(data, {count, static_cast<std::size_t>(rows.width)}, owner);
        });
    bind_levels(module);
    nb::class_<Engine>(module, "Engine")
        .def(nb::init<Builder&, std::vector<std::shared_ptr<RowBuffer>>, int, bool>())
        .def("run", &Engine::run)
        .def("failure", &Engine::failure)
        .def("energies", &Engine::energies)
        .def("state", &Engine::state)
        .def("sweeps", &Engine::sweeps)
        .def("messages", &Engine::messages)
        .def("residuals", &Engine::residuals)
        .def("keep_last_rows", &Engine::keep_last_rows)
        .def_prop_ro("now", &Engine::now);
}
