// Linear models as engine/native/matrices.py computes them.
// In:  matrices, row by row
// Out: the same, column by column, for the simulators that share a model
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "binding/arrays.hpp"
#include "engine/projected.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

namespace {

constexpr std::size_t asked_lengths = 256;  // that are kept: events make steps of all lengths

// A step of a length as Python has it; `first`: the first micro step of a multistep method.
struct StepMaps {
    std::int64_t ticks;
    double h;
    std::int64_t count;
    double micro_h;
    AnyNumbers Phi, Gamma;
    std::optional<AnyNumbers> first_Phi, first_Gamma, works;
};

// Each (rows x columns) matrix of a stack, column by column.
std::vector<double> columns(const std::optional<AnyNumbers>& array, std::size_t rows, std::size_t width) {
    std::vector<double> result;
    if (!array) return result;
    result.reserve(array->size());
    const std::size_t block = rows * width;
    for (std::size_t at = 0; block && at < array->size(); at += block)
        for (std::size_t j = 0; j < width; ++j)
            for (std::size_t i = 0; i < rows; ++i) result.push_back(array->data()[at + i * width + j]);
    return result;
}

void add_length(Linear& model, const StepMaps& maps) {
    const auto n = static_cast<std::size_t>(model.states), m = static_cast<std::size_t>(model.inputs);
    auto added = std::make_unique<Length>();
    added->ticks = maps.ticks;
    added->h = maps.h;
    added->count = maps.count;
    added->length = maps.micro_h;
    added->maps = {columns(maps.Phi, n, n), columns(maps.Gamma, n, m)};
    added->first = {columns(maps.first_Phi, n, n), columns(maps.first_Gamma, n, m)};
    const std::size_t width = n + m * static_cast<std::size_t>(model.rows);
    if (maps.works && maps.works->size())
        added->works = columns(maps.works, maps.works->size() / width, width);
    model.lengths.push_back(std::move(added));
}

void make_model(Linear* self, int rows, bool multistep, int size, int inputs, int outputs,
                const AnyNumbers& A, const AnyNumbers& B, const AnyNumbers& C, const AnyNumbers& D) {
    Linear& model = *new (self) Linear;
    model.rows = rows;
    model.size = size;
    model.inputs = inputs;
    model.outputs = outputs;
    model.multistep = multistep;
    model.states = multistep ? 2 * size : size;
    const auto s = static_cast<std::size_t>(size);
    const auto m = static_cast<std::size_t>(inputs), p = static_cast<std::size_t>(outputs);
    model.A = columns(A, s, s);
    model.B = columns(B, s, m);
    model.C = columns(C, p, s);
    model.D = columns(D, p, m);
    model.feeds_through = std::any_of(model.D.begin(), model.D.end(), [](double d) { return d != 0.0; });
}

void make_balance(Balance* self, std::shared_ptr<Linear> linear, int inputs, std::vector<Seat> seats,
                  const AnyNumbers& Q, const std::optional<AnyNumbers>& held, double whole, bool straight) {
    Balance& balance = *new (self) Balance;
    const auto size = static_cast<std::size_t>(linear->size);
    balance.linear = std::move(linear);
    balance.inputs = inputs;
    balance.seats = std::move(seats);
    balance.Q = columns(Q, size, size);
    balance.held = columns(held, size, size);
    balance.whole = whole;
    balance.straight = straight;
}

}  // namespace

void bind_linear_models(nb::module_& module) {
    nb::class_<StepMaps>(module, "StepMaps")
        .def(nb::init<std::int64_t, double, std::int64_t, double, AnyNumbers, AnyNumbers,
                      std::optional<AnyNumbers>, std::optional<AnyNumbers>, std::optional<AnyNumbers>>(),
             nb::kw_only(), "ticks"_a, "h"_a, "count"_a, "micro_h"_a, "Phi"_a, "Gamma"_a,
             "first_Phi"_a = nb::none(), "first_Gamma"_a = nb::none(), "works"_a = nb::none());
    nb::class_<Linear>(module, "LinearModel")
        .def("__init__", &make_model, nb::kw_only(), "rows"_a, "multistep"_a, "size"_a, "inputs"_a,
             "outputs"_a, "A"_a, "B"_a, "C"_a, "D"_a)
        .def("add", &add_length, "maps"_a)
        // called for a length that is not there; the newest of them stay, in turn in the same places
        .def(
            "ask",
            [](Linear& self, nb::object maps) {
                self.ask = [&self, maps, known = self.lengths.size(),
                            next = std::size_t{0}](std::int64_t ticks) mutable {
                    add_length(self, nb::cast<const StepMaps&>(maps(ticks)));
                    if (self.lengths.size() <= known + asked_lengths) return;
                    *self.lengths[known + next] = std::move(*self.lengths.back());
                    self.lengths.pop_back();
                    next = (next + 1) % asked_lengths;
                };
            },
            "maps"_a);
    nb::class_<View>(module, "View")
        .def(nb::init<int, int, int, double, int>(), nb::kw_only(), "output"_a, "input"_a, "share"_a,
             "sign"_a, "bonds"_a);
    nb::class_<Seat>(module, "Seat")
        .def(
            "__init__",
            [](Seat* self, int output, int input, int told, int share, std::optional<int> booked, double sign,
               std::vector<View> beyond) {
                new (self) Seat{output, input, told, share, booked.value_or(-1), sign, std::move(beyond)};
            },
            nb::kw_only(), "output"_a, "input"_a, "told"_a, "share"_a, "booked"_a.none(), "sign"_a,
            "beyond"_a);
    nb::class_<Balance>(module, "Balance")
        .def("__init__", &make_balance, nb::kw_only(), "linear"_a, "inputs"_a, "seats"_a, "Q"_a,
             "held"_a.none(), "whole"_a, "straight"_a);
    nb::class_<Agreed>(module, "Agreed")
        .def(nb::init<double, std::vector<double>, std::vector<double>, std::vector<double>>(), nb::kw_only(),
             "t"_a, "parts"_a, "paid"_a, "work"_a);
}

}  // namespace hocket
