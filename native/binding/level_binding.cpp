// Levels as engine/native/engine.py builds them, by keyword.
// In:  what a level of the interpreter has after its start
// Out: a LevelBuilder
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "binding/arrays.hpp"
#include "binding/operation_caster.hpp"
#include "binding/python_simulator.hpp"
#include "engine/crash_guard.hpp"
#include "engine/level_builder.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

namespace {

void make_level(LevelBuilder* self, int number, Clock clock, std::int64_t length, int degree, int inputs,
                bool keeps) {
    new (self) LevelBuilder({number, clock, length, degree, inputs}, keeps);
}

// children

void add_state_space(LevelBuilder& self, std::shared_ptr<Linear> model, const AnyNumbers& z, double last_h,
                     std::shared_ptr<RowBuffer> micro, std::vector<int> ports) {
    self.add(StateSpacePart{std::move(model), to_vector(z), last_h, std::move(micro), std::move(ports)});
}

using HandedNumbers = std::vector<std::tuple<int, double, double>>;

std::vector<Sampled::Handed> to_handed(const HandedNumbers& numbers) {
    std::vector<Sampled::Handed> handed;
    for (const auto& [source, gain, offset] : numbers) handed.push_back({source, gain, offset});
    return handed;
}

void add_sampled(LevelBuilder& self, std::shared_ptr<Linear> model, const AnyNumbers& z, double last_h,
                 int number, std::int64_t length, bool follows, bool around, const HandedNumbers& taken,
                 const HandedNumbers& given, const AnyNumbers& offered, const AnyNumbers& used,
                 const AnyNumbers& values) {
    Sampled::Setup setup{.number = number,
                         .length = length,
                         .follows = follows,
                         .around = around,
                         .inputs = static_cast<int>(offered.size()),
                         .taken = to_handed(taken),
                         .given = to_handed(given),
                         .offered = to_vector(offered),
                         .used = to_vector(used),
                         .values = to_vector(values)};
    self.add(SampledPart{std::move(model), to_vector(z), last_h, std::move(setup)});
}

void add_projected(LevelBuilder& self, std::shared_ptr<Balance> balance, const AnyNumbers& z, double last_h,
                   const AnyNumbers& work, double brought, std::optional<Agreed> agreed) {
    self.add(ProjectedPart{std::move(balance), to_vector(z), last_h, to_vector(work), brought,
                           std::move(agreed).value_or(Agreed{})});
}

void add_python(LevelBuilder& self, nb::object simulator, nb::object micro, nb::object event_tick,
                bool observes, bool places, int rows, int inputs, int outputs) {
    auto child = std::make_shared<PythonSimulator>(std::move(simulator), rows, inputs, outputs,
                                                   self.level->state.clock, std::move(micro),
                                                   std::move(event_tick), observes, places);
    self.add(SimulatorPart{std::move(child), rows, inputs, outputs});
}

void add_native(LevelBuilder& self, std::shared_ptr<Simulator> simulator, int rows, int inputs, int outputs) {
    self.add(SimulatorPart{std::move(simulator), rows, inputs, outputs});
}

void add_level(LevelBuilder& self, LevelBuilder& level, int rows, int inputs, int outputs) {
    self.add(LevelPart{std::make_shared<LevelBuilder>(std::move(level)), rows, inputs, outputs});
}

// the exchange memory

template <class T, class Array> std::vector<T> copied(const Array& array) {
    return {array.data(), array.data() + array.size()};
}

void add_samples(LevelBuilder& self, int signal, int depth, bool sloped, const Integers64& ticks,
                 const Vector& values, const Vector& slopes) {
    self.add(SamplesPart{signal, depth, sloped, copied<std::int64_t>(ticks), copied<double>(values),
                         copied<double>(slopes)});
}

void set_memory(LevelBuilder& self, const Vector& u, const Vector& y, const Integers64& bases, OwnInputs used,
                OwnInputs offered) {
    self.add(MemoryPart{copied<double>(u), copied<double>(y), copied<std::int64_t>(bases), std::move(used),
                        std::move(offered)});
}

void set_messages(LevelBuilder& self, int signals, const std::vector<std::vector<int>>& links,
                  std::vector<MessageCounter::Member> members, std::vector<int> depths) {
    auto counter = std::make_unique<MessageCounter>();
    counter->versions.resize(signals);
    counter->samples.resize(signals);
    counter->depths = std::move(depths);
    for (const auto& link : links) counter->links.emplace_back(link);
    counter->members = std::move(members);
    self.level->messages = std::move(counter);
}

void bind_inputs(nb::module_& module) {
    using Kind = FittedInput::Kind;
    nb::enum_<Kind>(module, "InputKind")
        .value("hold", Kind::hold)
        .value("polynomial", Kind::polynomial)
        .value("hermite", Kind::hermite)
        .value("nepce", Kind::nepce)
        .value("passed", Kind::passed)
        .value("passed_hold", Kind::passed_hold)
        .value("latch", Kind::latch)
        .value("correction", Kind::correction);
    nb::class_<FittedInput>(module, "FittedInput")
        .def(
            "__init__",
            [](FittedInput* self, Kind kind, int child, int input, int source, int samples, double alpha,
               double gain, double offset, std::int64_t seen, double before, double after) {
                new (self) FittedInput{.kind = kind,
                                       .child = child,
                                       .input = input,
                                       .source = source,
                                       .samples = samples,
                                       .alpha = alpha,
                                       .gain = gain,
                                       .offset = offset,
                                       .filter = {seen, before, after}};
            },
            nb::kw_only(), "kind"_a, "child"_a, "input"_a, "source"_a, "samples"_a, "alpha"_a, "gain"_a,
            "offset"_a, "seen"_a = 0, "before"_a = 0.0, "after"_a = 0.0);
    nb::class_<OwnInputs>(module, "OwnInputs")
        .def(
            "__init__",
            [](OwnInputs* self, const Vector& coefficients, std::int64_t base) {
                new (self) OwnInputs{{coefficients.data(), coefficients.data() + coefficients.size()}, base};
            },
            nb::kw_only(), "coefficients"_a, "base"_a);
}

void bind_account(nb::module_& module) {
    nb::class_<AccountSetup>(module, "Account")
        .def(
            "__init__",
            [](AccountSetup* self, int child, int input, int signal, double factor, bool asked, bool anew,
               int inside, std::vector<double> state_shares, std::vector<double> input_shares,
               std::vector<double> feedthrough, double power, double energy, double from_y, double from_rest,
               std::int64_t since) {
                new (self) AccountSetup{child,
                                        input,
                                        signal,
                                        factor,
                                        asked,
                                        anew,
                                        inside,
                                        std::move(state_shares),
                                        std::move(input_shares),
                                        std::move(feedthrough),
                                        power,
                                        energy,
                                        from_y,
                                        from_rest,
                                        since};
            },
            nb::kw_only(), "child"_a, "input"_a, "signal"_a, "factor"_a, "asked"_a, "anew"_a, "inside"_a,
            "state_shares"_a, "input_shares"_a, "feedthrough"_a, "power"_a, "energy"_a, "from_y"_a,
            "from_rest"_a, "since"_a);
}

void bind_messages(nb::module_& module) {
    using Input = MessageCounter::Input;
    using Output = MessageCounter::Output;
    using Member = MessageCounter::Member;
    nb::class_<Input>(module, "LinkedInput")
        .def(
            "__init__",
            [](Input* self, int signal, int port, int link, int place) {
                new (self) Input{signal, link, place, 0, port};
            },
            nb::kw_only(), "signal"_a, "port"_a, "link"_a = -1, "place"_a = -1);
    nb::class_<Output>(module, "LinkedOutput")
        .def(nb::init<int, std::vector<int>>(), nb::kw_only(), "signal"_a, "reacts"_a);
    nb::class_<Member>(module, "Member")
        .def(
            "__init__",
            [](Member* self, std::vector<Input> inputs, std::vector<Output> outputs) {
                new (self) Member{std::move(inputs), std::move(outputs)};
            },
            nb::kw_only(), "inputs"_a, "outputs"_a);
}

void bind_rows(nb::module_& module) {
    nb::class_<RowBuffer>(module, "RowBuffer")
        .def(
            "__init__",
            [](RowBuffer* self, int width, std::int64_t interval) {
                new (self) RowBuffer{.width = width, .interval = interval, .data = {}};
            },
            nb::kw_only(), "width"_a, "interval"_a)
        .def("__len__", &RowBuffer::count)
        .def("append",
             [](RowBuffer& self, const std::vector<double>& row) {
                 if (static_cast<int>(row.size()) != self.width)
                     throw std::invalid_argument("a row of another width");
                 self.data.insert(self.data.end(), row.begin(), row.end());
             })
        // Rows, those taken included.
        .def_prop_ro("size", [](const RowBuffer& self) { return self.size() / self.width; })
        // The first so many rows stay, those taken included.
        .def("truncate",
             [](RowBuffer& self, std::int64_t count) {
                 const std::int64_t size = count * self.width - self.taken;
                 if (size < 0) throw std::invalid_argument("rows that were taken cannot be taken back");
                 if (size < static_cast<std::int64_t>(self.data.size()))
                     self.data.resize(static_cast<std::size_t>(size));
             })
        // How far it is: the values that were taken, the newest row, its instant, and those that wait.
        .def("dump",
             [](const RowBuffer& self) {
                 return nb::make_tuple(self.taken, self.newest, self.newest_n,
                                       nb::bytes(reinterpret_cast<const char*>(self.data.data()),
                                                 self.data.size() * sizeof(double)));
             })
        .def(
            "load",
            [](RowBuffer& self, std::int64_t taken, std::int64_t newest, std::int64_t newest_n,
               const nb::bytes& data) {
                const std::size_t count = data.size() / sizeof(double);
                const auto width = static_cast<std::size_t>(self.width);
                if (data.size() % sizeof(double) || count % width || taken < 0 || taken % self.width)
                    throw std::invalid_argument("rows of another table");
                self.data.resize(count);
                if (count > 0) std::memcpy(self.data.data(), data.c_str(), data.size());
                self.taken = taken;
                self.newest = newest;
                self.newest_n = newest_n;
                self.final = -1;
            },
            "taken"_a, "newest"_a, "newest_n"_a, "data"_a)
        // The first so many rows are final.
        .def("settle", [](RowBuffer& self, std::int64_t count) { self.final = count * self.width; })
        .def("take", [](RowBuffer& self) {
            const std::size_t width = static_cast<std::size_t>(self.width);
            const auto size =
                static_cast<std::size_t>((self.final < 0 ? self.size() : self.final) - self.taken);
            const std::size_t count = size / width;
            const auto end = self.data.begin() + static_cast<std::ptrdiff_t>(size);
            auto* data = new double[std::max<std::size_t>(size, 1)];
            std::copy(self.data.begin(), end, data);
            self.data.erase(self.data.begin(), end);
            self.taken += static_cast<std::int64_t>(size);
            self.final = -1;
            nb::capsule owner(data, [](void* raw) noexcept { delete[] static_cast<double*>(raw); });
            return nb::ndarray<nb::numpy, double>(data, {count, width}, owner);
        });
    module.def("guard_process", &guard_process, nb::kw_only(), "quiet"_a);
    nb::class_<RunGuard>(module, "RunGuard")
        .def(nb::init<std::string, std::string>(), nb::kw_only(), "folder"_a, "facts"_a)
        .def("set_facts", &RunGuard::set_facts, "before"_a, "after"_a)
        .def("set_tables", &RunGuard::set_tables, "tables"_a)
        .def("close", &RunGuard::close);
    using Kind = Column::Kind;
    nb::enum_<Kind>(module, "ColumnKind")
        .value("input", Kind::input)
        .value("output", Kind::output)
        .value("ledger", Kind::ledger);
    nb::class_<Column>(module, "Column")
        .def(nb::init<Kind, int, int, int>(), nb::kw_only(), "kind"_a, "child"_a, "port"_a, "event"_a = -1);
}

}  // namespace

void bind_levels(nb::module_& module) {
    nb::class_<Clock>(module, "Clock")
        .def(
            "__init__",
            [](Clock* self, std::int64_t tick, std::int64_t start, std::int64_t denominator,
               std::int64_t quantum, std::int64_t coarse) {
                Clock clock;
                clock.tick = tick;
                clock.start = start;
                clock.denominator = denominator;
                clock.quantum = quantum;
                clock.coarse = coarse;
                new (self) Clock(clock);
            },
            nb::kw_only(), "tick"_a, "start"_a, "denominator"_a, "quantum"_a = 1, "coarse"_a = 0)
        .def("event_tick", &Clock::event_tick, "seconds"_a, nb::kw_only(), "nearest"_a);
    bind_inputs(module);
    bind_account(module);
    bind_messages(module);
    bind_rows(module);
    nb::class_<LevelBuilder>(module, "Level")
        .def("__init__", &make_level, nb::kw_only(), "number"_a, "clock"_a, "length"_a, "degree"_a,
             "inputs"_a, "keeps"_a = false)
        .def("add_state_space", &add_state_space, nb::kw_only(), "model"_a, "z"_a, "last_h"_a,
             "micro"_a.none(), "ports"_a)
        .def("add_sampled", &add_sampled, nb::kw_only(), "model"_a, "z"_a, "last_h"_a, "number"_a, "length"_a,
             "follows"_a, "around"_a, "taken"_a, "given"_a, "offered"_a, "used"_a, "values"_a)
        .def("add_projected", &add_projected, nb::kw_only(), "balance"_a, "z"_a, "last_h"_a, "work"_a,
             "brought"_a, "agreed"_a.none())
        .def("add_python", &add_python, nb::kw_only(), "simulator"_a, "micro"_a.none(), "event_tick"_a.none(),
             "observes"_a, "places"_a, "rows"_a, "inputs"_a, "outputs"_a)
        .def("add_native", &add_native, nb::kw_only(), "simulator"_a, "rows"_a, "inputs"_a, "outputs"_a)
        .def("add_level", &add_level, nb::kw_only(), "level"_a, "rows"_a, "inputs"_a, "outputs"_a)
        .def(
            "add_input", [](LevelBuilder& self, const FittedInput& input) { self.add(input); }, "input"_a)
        .def(
            "add_text",
            [](LevelBuilder& self, int child, int output, int target, int input) {
                self.add(TextPart{child, output, target, input});
            },
            nb::kw_only(), "child"_a, "output"_a, "target"_a, "input"_a)
        .def(
            "add_text_ports",
            [](LevelBuilder& self, Level::TextPorts inputs, Level::TextPorts outputs) {
                self.add(TextPortsPart{std::move(inputs), std::move(outputs)});
            },
            nb::kw_only(), "inputs"_a, "outputs"_a)
        .def(
            "add_output",
            [](LevelBuilder& self, int source, double gain, double offset) {
                self.add(OutputPart{source, gain, offset});
            },
            nb::kw_only(), "source"_a, "gain"_a, "offset"_a)
        .def("add_samples", &add_samples, nb::kw_only(), "signal"_a, "depth"_a, "sloped"_a, "ticks"_a,
             "values"_a, "slopes"_a)
        .def("set_memory", &set_memory, nb::kw_only(), "u"_a, "y"_a, "bases"_a, "used"_a, "offered"_a)
        .def(
            "set_accounts",
            [](LevelBuilder& self, std::uint64_t bonds, std::vector<AccountSetup> accounts) {
                self.add(AccountsPart{bonds, std::move(accounts)});
            },
            nb::kw_only(), "bonds"_a, "accounts"_a)
        .def(
            "add_member",
            [](LevelBuilder& self, std::vector<int> sources, std::vector<std::uint8_t> event_inputs,
               std::vector<std::uint8_t> followed, std::vector<std::uint8_t> event_outputs, bool takes_part,
               bool level) {
                self.add(MemberPart{std::move(sources), std::move(event_inputs), std::move(followed),
                                    std::move(event_outputs), takes_part, level});
            },
            nb::kw_only(), "sources"_a, "event_inputs"_a, "followed"_a, "event_outputs"_a, "takes_part"_a,
            "level"_a)
        .def(
            "set_instants",
            [](LevelBuilder& self, std::vector<int> outputs, bool around, std::int64_t longest,
               bool ends_outside) {
                self.add(InstantsPart{std::move(outputs), around, longest, ends_outside});
            },
            nb::kw_only(), "outputs"_a, "around"_a, "longest"_a, "ends_outside"_a)
        .def("set_messages", &set_messages, nb::kw_only(), "signals"_a, "links"_a, "members"_a, "depths"_a)
        .def(
            "set_programs",
            [](LevelBuilder& self, Program step, Program output) {
                self.add(ProgramsPart{std::move(step), std::move(output)});
            },
            nb::kw_only(), "step"_a, "output"_a)
        .def(
            "record",
            [](LevelBuilder& self, std::shared_ptr<RowBuffer> rows, std::vector<Column> columns) {
                self.level->record(std::move(rows), std::move(columns));
            },
            nb::kw_only(), "rows"_a, "columns"_a);
}

}  // namespace hocket
