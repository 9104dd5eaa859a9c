// Model exchange as Python sees it; simulators/fmu/exchange.py is the only user.
// In:  the description's facts; the calls of a solver in Python
// Out: an FMU that tells rates, and handles its events
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding/arrays.hpp"
#include "fmu/model_exchange.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

namespace {

void make_exchange_setup(ExchangeSetup* self, int states, int indicators, bool completed_step, bool all_move,
                         std::vector<Group> moving,
                         const std::vector<std::pair<int, std::vector<int>>>& doubted, std::vector<double> a,
                         std::vector<double> b, std::vector<double> c, bool multistep, double longest,
                         double atol) {
    Method method{std::move(a), std::move(b), std::move(c), multistep, longest, atol};
    std::vector<Doubted> outputs;
    for (const auto& [output, inputs] : doubted) outputs.push_back({output, inputs, false});
    new (self) ExchangeSetup{states,           indicators,        completed_step,
                             all_move,         std::move(moving), std::move(outputs),
                             std::move(method)};
}

}  // namespace

// None, -1 and false: it failed
void bind_exchange(nb::module_& module) {
    nb::class_<ExchangeSetup>(module, "ExchangeSetup")
        .def("__init__", &make_exchange_setup, nb::kw_only(), "states"_a, "indicators"_a, "completed_step"_a,
             "all_move"_a, "moving"_a, "doubted"_a, "a"_a, "b"_a, "c"_a, "multistep"_a, "longest"_a,
             "atol"_a);
    nb::class_<Exchange>(module, "Exchange")
        .def("enter", [](Exchange& self, double t,
                         const Numbers& u) { return self.enter(t, static_cast<int>(u.shape(0)), u.data()); })
        .def("rates",
             [](Exchange& self, double s, const Vector& x) -> nb::object {
                 bool good = true;
                 nb::object dx =
                     numbers(x.shape(0), [&](double* data) { good = self.rates(s, x.data(), data); });
                 return good ? dx : nb::none();
             })
        .def("watch", &Exchange::watch)
        .def("crossed",
             [](Exchange& self, double s, const Vector& x) {
                 bool crossed = false;
                 return self.detect_crossing(s, x.data(), crossed) ? static_cast<int>(crossed) : -1;
             })
        .def("accept",
             [](Exchange& self, double s, const Vector& x) {
                 bool event = false;
                 return self.accept(s, x.data(), event) ? static_cast<int>(event) : -1;
             })
        .def("event", &Exchange::event)
        // 0: it is not, 1: the step ends there, 2: that is its end
        .def("postpone",
             [](Exchange& self, double s, double h) { return static_cast<int>(self.postpone(s, h)); })
        .def_prop_ro("lag", &Exchange::lag)
        .def("leave", &Exchange::leave)
        .def("due", &Exchange::due)
        .def("probe",
             [](Exchange& self, const Vector& x, const Vector& u, std::size_t outputs) -> nb::object {
                 std::vector<double> y(outputs);
                 bool good = true;
                 nb::object dx = numbers(x.shape(0), [&](double* data) {
                     good = self.probe(x.data(), u.data(), data, y.data());
                 });
                 if (!good) return nb::none();
                 return nb::make_tuple(
                     dx, numbers(outputs, [&](double* data) { std::copy(y.begin(), y.end(), data); }));
             })
        .def("nominals",
             [](Exchange& self) -> nb::object {
                 bool good = true;
                 nb::object values =
                     numbers(self.x().size(), [&](double* data) { good = self.nominals(data); });
                 return good ? values : nb::none();
             })
        .def_prop_ro("x",
                     [](const Exchange& self) {
                         return numbers(self.x().size(), [&](double* data) {
                             std::copy(self.x().begin(), self.x().end(), data);
                         });
                     })
        .def_prop_ro("inputs",
                     [](const Exchange& self) {
                         const auto& u = self.inputs();
                         return numbers(u.size(), [&](double* data) { std::copy(u.begin(), u.end(), data); });
                     })
        .def_prop_ro("indicators", &Exchange::indicators)
        .def_prop_ro("discarded", &Exchange::was_discarded);
}

}  // namespace hocket
