// The start of a tree, as engine/native/start_program.py writes it down.
// In:  leaves, drives, rounds and windows, one after the other
// Out: a StartProgram; what a start has to say
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "engine/start.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

void bind_start(nb::module_& module) {
    using Drive = StartProgram::Drive;
    using Late = StartReport::Late;
    nb::enum_<Drive::Kind>(module, "DriveKind")
        .value("none", Drive::Kind::none)
        .value("constant", Drive::Kind::constant)
        .value("own", Drive::Kind::own)
        .value("output", Drive::Kind::output);
    nb::class_<StartProgram>(module, "StartProgram")
        .def(nb::init<>())
        .def(
            "add_leaf",
            [](StartProgram& self, int level, int child, int inputs, int outputs, int highest, bool once,
               bool settles, bool waits, bool frozen) {
                StartProgram::Leaf leaf;
                leaf.level = level;
                leaf.child = child;
                if (!self.leaves.empty()) {
                    const StartProgram::Leaf& before = self.leaves.back();
                    leaf.first_input = before.first_input + before.inputs;
                    leaf.first_output = before.first_output + before.outputs;
                }
                leaf.inputs = inputs;
                leaf.outputs = outputs;
                leaf.highest = highest;
                leaf.once = once;
                leaf.settles = settles;
                leaf.waits = waits;
                leaf.frozen = frozen;
                self.leaves.push_back(leaf);
            },
            nb::kw_only(), "level"_a, "child"_a, "inputs"_a, "outputs"_a, "highest"_a, "once"_a, "settles"_a,
            "waits"_a, "frozen"_a)
        .def(
            "add_drive",
            [](StartProgram& self, Drive::Kind kind, int leaf, int port, double gain, double offset,
               std::optional<double> start) {
                self.drives.push_back(
                    {kind, leaf, port, gain, offset, start.value_or(0.0), start.has_value()});
            },
            nb::kw_only(), "kind"_a, "leaf"_a, "port"_a, "gain"_a, "offset"_a, "start"_a.none())
        .def(
            "set_order",
            [](StartProgram& self, std::vector<int> by_name, std::vector<int> first_reads,
               const std::vector<bool>& drives_others, std::vector<double> starts) {
                self.by_name = std::move(by_name);
                self.first_reads = std::move(first_reads);
                self.drives_others.assign(drives_others.begin(), drives_others.end());
                self.starts = std::move(starts);
            },
            nb::kw_only(), "by_name"_a, "first_reads"_a, "drives_others"_a, "starts"_a)
        .def(
            "add_round",
            [](StartProgram& self, std::vector<int> leaves, std::vector<int> loop) {
                self.rounds.push_back({std::move(leaves), std::move(loop)});
            },
            nb::kw_only(), "leaves"_a, "loop"_a)
        .def(
            "add_window",
            [](StartProgram& self, std::int64_t ticks, int degree, std::vector<int> models) {
                self.windows.push_back({ticks, degree, std::move(models)});
            },
            nb::kw_only(), "ticks"_a, "degree"_a, "models"_a)
        .def(
            "add_level",
            [](StartProgram& self, int window, std::int64_t back, int feeds) {
                self.levels.push_back({window, back, feeds});
            },
            nb::kw_only(), "window"_a, "back"_a, "feeds"_a)
        // Returns the number that a window has for it.
        .def(
            "add_model",
            [](StartProgram& self, std::shared_ptr<Linear> model) {
                self.models.push_back(std::move(model));
                return static_cast<int>(self.models.size()) - 1;
            },
            "model"_a);
    nb::class_<Late>(module, "LateInput")
        .def_ro("leaf", &Late::leaf)
        .def_ro("input", &Late::input)
        .def_ro("used", &Late::used)
        .def_ro("now", &Late::now);
    nb::class_<StartReport>(module, "StartReport")
        .def_ro("failure", &StartReport::failure)
        .def_ro("unsettled", &StartReport::unsettled)
        .def_ro("late", &StartReport::late)
        .def_prop_ro("failed", &StartReport::failed);
}

}  // namespace hocket
