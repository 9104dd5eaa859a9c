// Blocks as simulators/block.py makes them.
// In:  programs: numbers given, constants, operations, results
// Out: simulators that a level steps without Python
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "engine/formulas.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

void bind_formulas(nb::module_& module) {
    nb::class_<Formulas>(module, "Program")
        .def(nb::init<int, const std::vector<double>&, const std::vector<std::array<int, 4>>&,
                      std::vector<int>>(),
             nb::kw_only(), "given"_a, "constants"_a, "operations"_a, "results"_a)
        .def("evaluate", [](Formulas& self, const std::vector<double>& given) {
            std::copy(given.begin(), given.end(), self.given());
            std::vector<double> results(static_cast<std::size_t>(self.count()));
            self.run(results.data());
            return results;
        });
    nb::class_<Block, Simulator>(module, "Block")
        .def(
            "__init__",
            [](Block* self, int inputs, int outputs, int degree, double longest, bool instants,
               bool takes_part, const Formulas* advance, const Formulas& show, const Formulas* next,
               const Formulas* react, std::vector<double> state) {
                Block::Setup setup;
                setup.inputs = inputs;
                setup.outputs = outputs;
                setup.degree = degree;
                setup.longest = longest;
                setup.instants = instants;
                setup.takes_part = takes_part;
                setup.moves = advance != nullptr;
                if (advance) setup.advance = *advance;
                setup.show = show;
                if (next) setup.next = *next;
                if (react) setup.react = *react;
                setup.state = std::move(state);
                new (self) Block(std::move(setup));
            },
            nb::kw_only(), "inputs"_a, "outputs"_a, "degree"_a, "longest"_a, "instants"_a, "takes_part"_a,
            "advance"_a.none(), "show"_a, "next"_a.none(), "react"_a.none(), "state"_a);
}

}  // namespace hocket
