// A co-simulation as bytes of a file, as execution/fmu_export/exported_plan.py asks for it.
// In:  a level that was built with its parts kept, the program of its start, its variables
// Out: the bytes that the library of exported FMUs reads
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "export/plan_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

void bind_plans(nb::module_& module) {
    using Kind = Variable::Kind;
    using Type = Variable::Type;
    nb::enum_<Kind>(module, "VariableKind")
        .value("time", Kind::time)
        .value("input", Kind::input)
        .value("output", Kind::output)
        .value("seen", Kind::seen)
        .value("initial", Kind::initial)
        .value("parameter", Kind::parameter);
    nb::enum_<Type>(module, "VariableType")
        .value("real", Type::real)
        .value("integer", Type::integer)
        .value("boolean", Type::boolean);
    nb::class_<Variable>(module, "PlanVariable")
        .def(
            "__init__",
            [](Variable* self, Kind kind, Type type, int level, int child, int port, double start, int code) {
                new (self) Variable{kind, type, level, child, port, start, code};
            },
            nb::kw_only(), "kind"_a, "type"_a, "level"_a, "child"_a, "port"_a, "start"_a, "code"_a);
    using Names = std::vector<std::pair<std::vector<std::string>, std::vector<std::vector<std::string>>>>;
    // raises ValueError for what cannot be written down
    module.def(
        "write_plan",
        [](LevelBuilder& level, const StartProgram& program, std::string name, std::string token,
           std::vector<Variable> variables, const Names& names, std::int64_t step, bool adaptive) {
            CoupledPlan plan;
            plan.face = {std::move(name), std::move(token), std::move(variables), {}, step, adaptive};
            for (const auto& [children, outputs] : names) plan.face.names.push_back({children, outputs});
            plan.program = program;
            plan.root = std::shared_ptr<LevelBuilder>(&level, [](LevelBuilder*) {});
            const std::string bytes = write_plan(plan);
            return nb::bytes(bytes.data(), bytes.size());
        },
        nb::kw_only(), "level"_a, "program"_a, "name"_a, "token"_a, "variables"_a, "names"_a, "step"_a,
        "adaptive"_a);
}

}  // namespace hocket
