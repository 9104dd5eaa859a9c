// Operations as engine/native/program.py builds them, by keyword.
// In:  children and signals by their numbers, bodies as lists of operations
// Out: one class for each kind of operation, with the accelerators and the step size controller they own
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "binding/operation_caster.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

namespace {

using Integers = std::vector<int>;

// Those that name children and nothing else.
template <class T> nb::class_<T> bind_on_children(nb::module_& module, const char* name) {
    return nb::class_<T>(module, name)
        .def(
            "__init__",
            [](T* self, Integers children) {
                T operation;
                operation.children = std::move(children);
                new (self) T(std::move(operation));
            },
            nb::kw_only(), "children"_a)
        .def_ro("children", &T::children);
}

// Those that name ports of one child.
template <class T> void bind_on_ports(nb::module_& module, const char* name) {
    nb::class_<T>(module, name)
        .def(
            "__init__",
            [](T* self, int child, Integers ports) {
                T operation;
                operation.child = child;
                operation.ports = std::move(ports);
                new (self) T(std::move(operation));
            },
            nb::kw_only(), "child"_a, "ports"_a)
        .def_ro("child", &T::child)
        .def_ro("ports", &T::ports);
}

template <class T> void bind_step(nb::module_& module, const char* name) {
    nb::class_<T>(module, name)
        .def(
            "__init__",
            [](T* self, Integers children, std::int64_t ticks, Fraction fraction, bool parallel) {
                T operation;
                operation.children = std::move(children);
                operation.ticks = ticks;
                operation.fraction = fraction;
                operation.workload.parallel = parallel;
                new (self) T(std::move(operation));
            },
            nb::kw_only(), "children"_a, "ticks"_a, "fraction"_a, "parallel"_a = false)
        .def_ro("children", &T::children)
        .def_ro("ticks", &T::ticks)
        .def_ro("fraction", &T::fraction)
        .def_prop_ro("parallel", [](const T& self) { return self.workload.parallel; });
}

void bind_accelerators(nb::module_& module) {
    nb::class_<Accelerator>(module, "Accelerator");
    nb::class_<FixedPoint, Accelerator>(module, "FixedPoint").def(nb::init<>());
    nb::class_<Relaxation, Accelerator>(module, "Relaxation")
        .def(nb::init<double>(), nb::kw_only(), "factor"_a);
    nb::class_<Aitken, Accelerator>(module, "Aitken").def(nb::init<double>(), nb::kw_only(), "first"_a);
    nb::class_<IqnIls, Accelerator>(module, "IqnIls")
        .def(nb::init<std::int64_t, double>(), nb::kw_only(), "reuse"_a, "filter"_a);
    nb::class_<Newton, Accelerator>(module, "Newton")
        .def(nb::init<double, const std::vector<std::vector<double>>&>(), nb::kw_only(), "falls"_a,
             "jacobian"_a);
}

void bind_step_size_controller(nb::module_& module) {
    using Estimate = StepSizeController::Estimate;
    nb::enum_<Estimate>(module, "Estimate")
        .value("defect", Estimate::defect)
        .value("orders", Estimate::orders)
        .value("richardson", Estimate::richardson)
        .value("energy", Estimate::energy);
    nb::class_<StepSizeController>(module, "StepSizeController")
        .def(
            "__init__",
            [](StepSizeController* self, double tolerance, Estimate estimate, bool per_unit,
               std::array<double, 3> gains, std::int64_t quantum, std::int64_t largest, std::int64_t wanted,
               bool rejects, int passes, double safety, double most, double least, double power,
               std::int64_t first) {
                new (self) StepSizeController{.tolerance = tolerance,
                                              .estimate = estimate,
                                              .per_unit = per_unit,
                                              .gains = gains,
                                              .quantum = quantum,
                                              .largest = largest,
                                              .wanted = wanted,
                                              .first = first,
                                              .rejects = rejects,
                                              .passes = passes,
                                              .safety = safety,
                                              .most = most,
                                              .least = least,
                                              .power = power,
                                              .start = {}};
            },
            nb::kw_only(), "tolerance"_a, "estimate"_a, "per_unit"_a, "gains"_a, "quantum"_a, "largest"_a,
            "wanted"_a, "rejects"_a, "passes"_a, "safety"_a, "most"_a, "least"_a, "power"_a, "first"_a);
}

void bind_loops(nb::module_& module) {
    nb::class_<SolveOperation>(module, "SolveOperation")
        .def(
            "__init__",
            [](SolveOperation* self, Integers children, int number, Integers values) {
                SolveOperation operation;
                operation.children = std::move(children);
                operation.number = number;
                operation.unknowns.values = std::move(values);
                new (self) SolveOperation(std::move(operation));
            },
            nb::kw_only(), "children"_a, "number"_a, "values"_a);
    nb::class_<RepeatOperation>(module, "RepeatOperation")
        .def(
            "__init__",
            [](RepeatOperation* self, Program body, int number, int at_most, std::optional<double> until,
               Integers values, Integers slopes, Integers samples, std::shared_ptr<Accelerator> accelerator) {
                if (!samples.empty() && samples.size() != values.size())
                    throw std::invalid_argument("a number of samples for each value");
                new (self) RepeatOperation{std::move(body),
                                           number,
                                           at_most,
                                           until.value_or(-1.0),
                                           {std::move(values), std::move(slopes)},
                                           std::move(samples),
                                           std::move(accelerator)};
            },
            nb::kw_only(), "body"_a, "number"_a, "at_most"_a, "until"_a.none(), "values"_a, "slopes"_a,
            "samples"_a, "accelerator"_a);
    nb::class_<AdaptOperation>(module, "AdaptOperation")
        .def(
            "__init__",
            [](AdaptOperation* self, Program body, int number, Integers signals, Integers degrees,
               std::shared_ptr<StepSizeController> controller) {
                if (signals.size() != degrees.size()) throw std::invalid_argument("a degree for each signal");
                new (self) AdaptOperation{std::move(body), number, std::move(signals), std::move(degrees),
                                          std::move(controller)};
            },
            nb::kw_only(), "body"_a, "number"_a, "signals"_a, "degrees"_a, "controller"_a);
}

void bind_bodies(nb::module_& module) {
    nb::class_<NextOperation>(module, "NextOperation")
        .def(
            "__init__",
            [](NextOperation* self, std::vector<Program> bodies) {
                new (self) NextOperation{std::move(bodies)};
            },
            nb::kw_only(), "bodies"_a);
    nb::class_<TimesOperation>(module, "TimesOperation")
        .def(
            "__init__",
            [](TimesOperation* self, Program body, int count) {
                new (self) TimesOperation{std::move(body), count};
            },
            nb::kw_only(), "body"_a, "count"_a);
    nb::class_<TogetherOperation>(module, "TogetherOperation")
        .def(
            "__init__",
            [](TogetherOperation* self, std::vector<Program> bodies) {
                TogetherOperation operation;
                operation.bodies = std::move(bodies);
                operation.workload.parallel = true;
                new (self) TogetherOperation(std::move(operation));
            },
            nb::kw_only(), "bodies"_a);
}

void bind_instants(nb::module_& module) {
    nb::class_<TryOperation>(module, "TryOperation")
        .def(
            "__init__",
            [](TryOperation* self, Program body, std::optional<Program> rest, bool found, bool announced,
               std::int64_t scaled, int last) {
                TryOperation operation;
                operation.body = std::move(body);
                operation.lone = rest.has_value();
                if (rest) operation.rest = std::move(*rest);
                operation.found = found;
                operation.announced = announced;
                operation.scaled = scaled;
                operation.last = last;
                new (self) TryOperation(std::move(operation));
            },
            nb::kw_only(), "body"_a, "rest"_a.none(), "found"_a, "announced"_a, "scaled"_a, "last"_a);
    nb::class_<InstantOperation>(module, "InstantOperation")
        .def(
            "__init__",
            [](InstantOperation* self, Program body, Program reacts, Program commits, int at_most,
               bool continues) {
                new (self) InstantOperation{std::move(body), at_most, std::move(reacts), std::move(commits),
                                            continues};
            },
            nb::kw_only(), "body"_a, "reacts"_a, "commits"_a, "at_most"_a, "continues"_a);
    bind_on_children<ReactOperation>(module, "ReactOperation");
    bind_on_children<CommitOperation>(module, "CommitOperation");
}

void bind_accounts(nb::module_& module) {
    nb::class_<OpenAccountsOperation>(module, "OpenAccountsOperation")
        .def(
            "__init__",
            [](OpenAccountsOperation* self, Integers held, Integers moving) {
                new (self) OpenAccountsOperation{std::move(held), std::move(moving)};
            },
            nb::kw_only(), "held"_a, "moving"_a);
    nb::class_<CloseAccountsOperation>(module, "CloseAccountsOperation")
        .def(
            "__init__",
            [](CloseAccountsOperation* self, Integers held, Integers moving, std::int64_t ticks,
               Fraction fraction, bool reopens, bool fed) {
                new (self) CloseAccountsOperation{
                    std::move(held), std::move(moving), ticks, fraction, reopens, fed, {}, {}};
            },
            nb::kw_only(), "held"_a, "moving"_a, "ticks"_a, "fraction"_a, "reopens"_a, "fed"_a);
}

// The union of all kinds, for annotations.
template <class... T> nb::object union_of(std::variant<T...>*) {
    nb::object all = nb::none();
    ((all = all.is_none() ? nb::borrow(nb::type<T>()) : nb::object(all | nb::type<T>())), ...);
    return all;
}

}  // namespace

void bind_operations(nb::module_& module) {
    nb::class_<Fraction>(module, "Fraction")
        .def(nb::init<std::int64_t, std::int64_t>(), nb::kw_only(), "numerator"_a, "denominator"_a)
        .def_ro("numerator", &Fraction::numerator)
        .def_ro("denominator", &Fraction::denominator);
    bind_accelerators(module);
    bind_step_size_controller(module);
    nb::class_<AdmitOperation>(module, "AdmitOperation").def(nb::init<>());
    nb::class_<RecordOperation>(module, "RecordOperation").def(nb::init<>());
    bind_on_children<FeedOperation>(module, "FeedOperation");
    bind_on_children<ReadOperation>(module, "ReadOperation");
    bind_on_children<SaveOperation>(module, "SaveOperation");
    bind_on_children<RestoreOperation>(module, "RestoreOperation");
    bind_on_ports<FeedPortsOperation>(module, "FeedPortsOperation");
    bind_on_ports<ReadPortsOperation>(module, "ReadPortsOperation");
    bind_step<StepOperation>(module, "StepOperation");
    bind_step<StepReadOperation>(module, "StepReadOperation");
    bind_loops(module);
    bind_bodies(module);
    bind_accounts(module);
    bind_instants(module);
    module.attr("Operation") = union_of(static_cast<AnyOperation*>(nullptr));
}

}  // namespace hocket
