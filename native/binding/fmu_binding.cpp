// FMUs as Python sees them; simulators/fmu/live.py is the only user.
// In:  an FmuSetup: what the model description says, as numbers
// Out: a live FMU, driven call by call or handed to a level
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "binding/arrays.hpp"
#include "engine/arithmetic_guard.hpp"
#include "fmu/model_exchange.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

void bind_exchange(nb::module_& module);

namespace {

// A string or binary variable.
struct TextVariable {
    fmi::Reference reference = 0;
    bool binary = false;
};

void make_setup(Setup* self, std::string name, std::string token, std::string resources, bool logging,
                bool events, bool feeds_through, bool variable, bool interpolates, int inputs, int outputs,
                std::vector<Group> set, std::vector<Group> get, std::vector<Group> sloped,
                std::vector<int> continuous, std::vector<int> discrete, std::vector<fmi::Reference> time,
                const std::vector<TextVariable>& texts_in, const std::vector<TextVariable>& texts_out,
                std::shared_ptr<ExchangeSetup> exchange, std::vector<ClockSetup> clocks,
                std::vector<std::vector<int>> clocked_in, std::vector<std::vector<int>> clocked_out,
                bool scheduled, std::vector<std::vector<int>> clocked_texts_in,
                std::vector<std::vector<int>> clocked_texts_out) {
    Setup& setup = *new (self) Setup;
    setup.name = std::move(name);
    setup.token = std::move(token);
    setup.resources = std::move(resources);
    setup.logging = logging;
    setup.events = events;
    setup.feeds_through = feeds_through;
    setup.variable = variable;
    setup.interpolates = interpolates;
    setup.inputs = inputs;
    setup.outputs = outputs;
    setup.set = std::move(set);
    setup.get = std::move(get);
    setup.sloped = std::move(sloped);
    setup.continuous = std::move(continuous);
    setup.discrete = std::move(discrete);
    setup.time = std::move(time);
    for (const auto& [reference, binary] : texts_in) {
        setup.texts_in.push_back(reference);
        setup.binary_in.push_back(binary);
    }
    for (const auto& [reference, binary] : texts_out) {
        setup.texts_out.push_back(reference);
        setup.binary_out.push_back(binary);
    }
    setup.exchange = std::move(exchange);
    setup.clocks = std::move(clocks);
    setup.clocked_in = std::move(clocked_in);
    setup.clocked_out = std::move(clocked_out);
    setup.scheduled = scheduled;
    setup.clocked_texts_in = std::move(clocked_texts_in);
    setup.clocked_texts_out = std::move(clocked_texts_out);
}

std::vector<TextVariable> texts(const std::vector<fmi::Reference>& references,
                                const std::vector<bool>& binary) {
    std::vector<TextVariable> result;
    for (std::size_t k = 0; k < references.size(); ++k) result.push_back({references[k], binary[k]});
    return result;
}

void bind_setup(nb::module_& module) {
    nb::class_<Group>(module, "VariableGroup")
        .def(
            "__init__",
            [](Group* self, int type, std::vector<fmi::Reference> references, std::vector<int> places,
               bool negated) {
                new (self) Group{static_cast<Type>(type), std::move(references), std::move(places), negated};
            },
            nb::kw_only(), "type"_a, "references"_a, "places"_a, "negated"_a = false)
        .def_prop_ro("type", [](const Group& self) { return static_cast<int>(self.type); })
        .def_ro("references", &Group::references)
        .def_ro("places", &Group::places);
    nb::class_<TextVariable>(module, "TextVariable")
        .def(
            "__init__",
            [](TextVariable* self, fmi::Reference reference, bool binary) {
                new (self) TextVariable{reference, binary};
            },
            nb::kw_only(), "reference"_a, "binary"_a)
        .def_ro("reference", &TextVariable::reference)
        .def_ro("binary", &TextVariable::binary);
    nb::class_<ClockSetup>(module, "ClockSetup")
        .def(
            "__init__",
            [](ClockSetup* self, fmi::Reference reference, int kind, int place, int priority, bool told,
               bool tunable, bool fractions, std::pair<std::int64_t, std::int64_t> interval,
               std::pair<std::int64_t, std::int64_t> shift, std::string name) {
                new (self) ClockSetup{reference,
                                      static_cast<ClockSetup::Kind>(kind),
                                      place,
                                      priority,
                                      told,
                                      tunable,
                                      fractions,
                                      {interval.first, interval.second},
                                      {shift.first, shift.second},
                                      std::move(name)};
            },
            nb::kw_only(), "reference"_a, "kind"_a, "place"_a, "priority"_a, "told"_a, "tunable"_a,
            "fractions"_a, "interval"_a, "shift"_a, "name"_a);
    nb::class_<FmuSetting>(module, "FmuSetting")
        .def(
            "__init__",
            [](FmuSetting* self, bool structural, int type, std::vector<fmi::Reference> references,
               std::vector<double> values, std::vector<std::int64_t> whole,
               const std::vector<nb::bytes>& texts) {
                std::vector<std::string> written;
                for (const nb::bytes& text : texts) written.emplace_back(text.c_str(), text.size());
                new (self) FmuSetting{structural,        static_cast<Type>(type), std::move(references),
                                      std::move(values), std::move(whole),        std::move(written)};
            },
            nb::kw_only(), "structural"_a, "type"_a, "references"_a, "values"_a = std::vector<double>{},
            "whole"_a = std::vector<std::int64_t>{}, "texts"_a = std::vector<nb::bytes>{});
    nb::class_<Setup>(module, "FmuSetup")
        .def("__init__", &make_setup, nb::kw_only(), "name"_a, "token"_a, "resources"_a, "logging"_a,
             "events"_a, "feeds_through"_a, "variable"_a, "interpolates"_a, "inputs"_a, "outputs"_a, "set"_a,
             "get"_a, "sloped"_a, "continuous"_a, "discrete"_a, "time"_a, "texts_in"_a, "texts_out"_a,
             "exchange"_a.none(), "clocks"_a = std::vector<ClockSetup>{},
             "clocked_in"_a = std::vector<std::vector<int>>{},
             "clocked_out"_a = std::vector<std::vector<int>>{}, "scheduled"_a = false,
             "clocked_texts_in"_a = std::vector<std::vector<int>>{},
             "clocked_texts_out"_a = std::vector<std::vector<int>>{})
        .def_ro("name", &Setup::name)
        .def_ro("token", &Setup::token)
        .def_ro("resources", &Setup::resources)
        .def_ro("logging", &Setup::logging)
        .def_ro("events", &Setup::events)
        .def_ro("early", &Setup::early)
        .def_ro("feeds_through", &Setup::feeds_through)
        .def_ro("variable", &Setup::variable)
        .def_ro("interpolates", &Setup::interpolates)
        .def_ro("inputs", &Setup::inputs)
        .def_ro("outputs", &Setup::outputs)
        .def_ro("set", &Setup::set)
        .def_ro("get", &Setup::get)
        .def_ro("continuous", &Setup::continuous)
        .def_ro("discrete", &Setup::discrete)
        .def_ro("time", &Setup::time)
        .def_prop_ro("texts_in", [](const Setup& self) { return texts(self.texts_in, self.binary_in); })
        .def_prop_ro("texts_out", [](const Setup& self) { return texts(self.texts_out, self.binary_out); });
}

std::shared_ptr<Fmu> load(int version, const std::string& library, const std::string& prefix, Setup setup,
                          std::string file, std::string crash_file) {
    setup.file = std::move(file);
    setup.crash_file = std::move(crash_file);
    guard_process();
    const Callee loading(setup.name.c_str(), setup.file.c_str(), setup.crash_file.c_str());
    ForeignCallScope scope("dlopen", setup.name.c_str());
    auto loaded = Library::load(library, prefix);
    if (version == 1) return make_fmu1(std::move(loaded), setup);
    if (version == 2) return make_fmu2(std::move(loaded), setup);
    return make_fmu3(std::move(loaded), setup);
}

void check(const Fmu& fmu, const Numbers& u) {
    if (static_cast<int>(u.shape(1)) != fmu.setup.inputs || u.shape(0) < 1)
        throw std::invalid_argument(std::to_string(u.shape(1)) + " inputs were given, it has " +
                                    std::to_string(fmu.setup.inputs));
}

}  // namespace

void bind_fmus(nb::module_& module) {
    nb::exception<MissingFunction>(module, "MissingFunctionError", PyExc_RuntimeError);
    bind_setup(module);
    bind_exchange(module);
    nb::class_<Saved>(module, "FmuState")
        // for another process; None: it failed
        .def("dump", [](const Saved& self) -> nb::object {
            std::string bytes;
            if (!self.fmu->dump(self, false, bytes)) return nb::none();
            return nb::bytes(bytes.data(), bytes.size());
        });
    nb::class_<Fmu, Simulator>(module, "Fmu")
        // these may take long: Python goes on meanwhile
        .def("instantiate", &Fmu::instantiate, nb::call_guard<ArithmeticGuard, nb::gil_scoped_release>())
        .def("put",
             [](Fmu& self, int type, const std::vector<fmi::Reference>& references,
                const std::vector<double>& values) {
                 return self.put(static_cast<Type>(type), references, values);
             })
        .def("put_whole",
             [](Fmu& self, int type, const std::vector<fmi::Reference>& references,
                const std::vector<std::int64_t>& values) {
                 return self.put_whole(static_cast<Type>(type), references, values);
             })
        .def("put_texts",
             [](Fmu& self, const std::vector<fmi::Reference>& references,
                const std::vector<nb::bytes>& values, bool binary) {
                 std::vector<std::string> texts;
                 for (const nb::bytes& value : values) texts.emplace_back(value.c_str(), value.size());
                 return self.put_texts(references, texts, binary);
             })
        .def("configure", &Fmu::configure)
        .def(
            "prepare",
            [](Fmu& self, double t, std::optional<double> stop, std::optional<double> tolerance) {
                const ArithmeticGuard guard;
                return self.prepare({t, stop.has_value(), stop.value_or(0.0), tolerance.has_value(),
                                     tolerance.value_or(0.0)});
            },
            "t"_a, "stop"_a.none(), "tolerance"_a.none())
        .def("begin", &Fmu::begin, nb::call_guard<ArithmeticGuard, nb::gil_scoped_release>())
        // None: it failed
        .def(
            "take",
            [](Fmu& self, int type, const std::vector<fmi::Reference>& references,
               int count) -> std::optional<std::vector<double>> {
                std::vector<double> values(static_cast<std::size_t>(count));
                if (!self.take(static_cast<Type>(type), references, values)) return std::nullopt;
                return values;
            },
            "type"_a, "references"_a, "count"_a)
        .def(
            "directional",
            [](Fmu& self, const std::vector<fmi::Reference>& unknowns,
               const std::vector<fmi::Reference>& knowns, const std::vector<double>& seed,
               std::size_t count) -> std::optional<std::vector<double>> {
                std::vector<double> result(count);
                if (!self.directional(unknowns, knowns, seed, result)) return std::nullopt;
                return result;
            },
            nb::call_guard<ArithmeticGuard>())
        .def_prop_ro("gives_directional", &Fmu::gives_directional)
        .def("ready", &Fmu::ready, nb::call_guard<ArithmeticGuard, nb::gil_scoped_release>())
        .def("close", &Fmu::close, nb::call_guard<ArithmeticGuard>())
        // 0: done, 1: it ended early, 2: it failed
        .def("step",
             [](Fmu& self, double t, double h, const Numbers& u) {
                 check(self, u);
                 const ArithmeticGuard guard;
                 self.set_rows(static_cast<int>(u.shape(0)));
                 if (self.step({0, 0, t, h}, u.data())) return 0;
                 return self.failure().kind == Failure::Kind::stopped_early ? 1 : 2;
             })
        // None: it failed
        .def("output",
             [](Fmu& self, const Numbers& u) -> nb::object {
                 check(self, u);
                 const ArithmeticGuard guard;
                 bool good = true;
                 nb::object y = numbers(self.setup.outputs, [&](double* data) {
                     good = self.output(0, u.data(), data) || self.failure().kind == Failure::Kind::none;
                 });
                 return good ? y : nb::none();
             })
        .def("slope",
             [](Fmu& self, const Numbers& u) -> nb::object {
                 check(self, u);
                 bool good = true;
                 nb::object y =
                     numbers(self.setup.outputs, [&](double* data) { good = self.slope(0, u.data(), data); });
                 return good ? y : nb::none();
             })
        .def("due",
             [](const Fmu& self) -> std::optional<double> {
                 const double at = self.due_time();
                 return std::isfinite(at) ? std::optional(at) : std::nullopt;
             })
        // which outputs are present; None: it failed
        .def("react",
             [](Fmu& self, double t, int n, const Vector& u,
                const std::vector<bool>& present) -> std::optional<std::vector<bool>> {
                 std::vector<std::uint8_t> here(present.begin(), present.end()),
                     shown(static_cast<std::size_t>(self.setup.outputs), 0);
                 if (!self.react_at(t, n, u.data(), here.data(), shown.data())) return std::nullopt;
                 return std::vector<bool>(shown.begin(), shown.end());
             })
        // whether another instant must follow; -1: it failed
        .def("commit",
             [](Fmu& self) {
                 bool again = false;
                 return self.commit(again) ? static_cast<int>(again) : -1;
             })
        .def_prop_rw(
            "grid", [](const Fmu& self) { return self.setup.grid; },
            [](Fmu& self, double grid) { self.setup.grid = grid; })
        .def_prop_ro("can_save", &Fmu::can_save)
        // None: it failed
        .def("save",
             [](const std::shared_ptr<Fmu>& self) -> nb::object {
                 auto* saved = new Saved(self);
                 nb::object made = nb::cast(saved, nb::rv_policy::take_ownership);
                 return self->save(*saved) ? made : nb::none();
             })
        .def("restore", [](Fmu& self, Saved& saved) { return self.restore(saved); })
        // a state that another process has dumped
        .def("load",
             [](Fmu& self, const nb::bytes& state) { return self.load({state.c_str(), state.size()}); })
        .def("refuse_saving", &Fmu::refuse_saving)
        // None: nothing speaks against its state
        .def("doubts_saving",
             [](Fmu& self) -> std::optional<std::tuple<std::vector<double>, double, bool>> {
                 const auto doubt = self.doubts_saving();
                 if (!doubt) return std::nullopt;
                 return std::tuple(doubt->inputs, doubt->step, doubt->behind);
             })
        .def("trust_saving", &Fmu::trust_saving)
        // None: it has not made them yet; else time and step, outputs, inputs
        .def_prop_ro(
            "first_rows",
            [](const Fmu& self) -> std::optional<std::tuple<double, double, std::vector<std::vector<double>>,
                                                            std::vector<std::vector<double>>>> {
                const Fmu::FirstRows* rows = self.first_rows();
                if (!rows) return std::nullopt;
                return std::tuple(rows->t, rows->h, rows->y, rows->u);
            })
        .def("begins_smoothly", &Fmu::begins_smoothly)
        .def("text",
             [](Fmu& self, int port) -> nb::object {
                 std::string value;
                 return self.get_text(port, value) ? nb::object(nb::bytes(value.data(), value.size()))
                                                   : nb::none();
             })
        .def("set_text",
             [](Fmu& self, int port, const nb::bytes& value) {
                 return self.set_text(port, {value.c_str(), value.size()});
             })
        // for a plan file: what it needs where there is no Python
        .def(
            "set_origin",
            [](Fmu& self, int version, std::string folder, std::string library, std::string prefix,
               const std::vector<FmuSetting>& settings, bool tells_stop, std::optional<double> tolerance) {
                auto origin = std::make_shared<FmuOrigin>();
                *origin = {version,  std::move(folder), std::move(library),    std::move(prefix),
                           settings, tells_stop,        tolerance.has_value(), tolerance.value_or(0.0)};
                self.origin = std::move(origin);
            },
            nb::kw_only(), "version"_a, "folder"_a, "library"_a, "prefix"_a, "settings"_a, "tells_stop"_a,
            "tolerance"_a.none())
        .def_prop_ro("problem", &Fmu::problem)
        .def_prop_ro("remedy", &Fmu::remedy)
        .def_prop_ro("reached", &Fmu::reached_time)
        .def_prop_ro("ended", &Fmu::ended)
        .def_prop_ro("failed_by_end",
                     [](const Fmu& self) { return self.failure().kind == Failure::Kind::ended; })
        .def_prop_ro("complaint", &Fmu::complaint)
        .def_prop_rw(
            "early", [](const Fmu& self) { return self.setup.early; },
            [](Fmu& self, bool early) { self.setup.early = early; })
        .def_prop_ro("exchange", &Fmu::exchange, nb::rv_policy::reference_internal)
        .def_prop_ro("notes", &Fmu::notes)
        .def_prop_rw(
            "name", [](const Fmu& self) { return self.setup.name; },
            [](Fmu& self, std::string name) { self.setup.name = std::move(name); });
    module.def("fmu", &load, nb::kw_only(), "version"_a, "library"_a, "prefix"_a, "setup"_a, "file"_a,
               "crash_file"_a);
    module.def("take_log", [] {
        nb::list messages;
        for (const Message& m : take_log()) {
            const auto text = [](const std::string& raw) {
                return nb::steal(
                    PyUnicode_DecodeUTF8(raw.data(), static_cast<Py_ssize_t>(raw.size()), "replace"));
            };
            messages.append(nb::make_tuple(text(m.name), m.status, text(m.category), text(m.text)));
        }
        return messages;
    });
}

}  // namespace hocket
