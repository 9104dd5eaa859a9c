// A co-simulation as one file: the parts of its levels, the program of its start, and its variables.
// In:  levels that were built with their parts kept; or the bytes of such a file
// Out: bytes; or the same levels, built anew and not started
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/level_builder.hpp"
#include "engine/start_program.hpp"

namespace hocket {

// What an importer sees; its number in `variables` is its value reference.
struct Variable {
    enum class Kind : int {
        time,
        input,     // `port` of the outermost level
        output,    // of a child: the newest value,
        seen,      // or one of its inputs, at the time reached
        initial,   // of a linear model: number `port` of its initial state
        parameter  // of an FMU: its variable `port`, of type `code`
    };
    enum class Type : int { real, integer, boolean };
    Kind kind = Kind::time;
    Type type = Type::real;
    int level = 0, child = 0, port = 0;
    double start = 0.0;
    int code = 0;
};

// What messages call the children of a level and their outputs.
struct LevelNames {
    std::vector<std::string> children;
    std::vector<std::vector<std::string>> outputs;  // per child
};

struct PlanFace {
    std::string name, token;
    std::vector<Variable> variables;
    std::vector<LevelNames> names;  // of the levels, by their numbers
    std::int64_t step = 1;          // ticks of a step of the outermost level
    bool adaptive = false;          // it takes steps of any number of ticks
};

struct CoupledPlan {
    PlanFace face;
    StartProgram program;
    std::shared_ptr<LevelBuilder> root;  // its level is there to be run, once
};

// Of the bytes themselves; a file of another version is refused.
inline constexpr std::uint32_t plan_version = 1;

// Raises std::invalid_argument for simulators that cannot be written down.
std::string write_plan(const CoupledPlan& plan);
// Where the FMUs inside lie, and what the names of their instances begin with.
struct Surroundings {
    std::string resources, name;
};

// Raises std::invalid_argument for bytes that are no plan, or a damaged one; std::runtime_error for an FMU
// inside that cannot be loaded.
CoupledPlan read_plan(const std::string& bytes, const Surroundings& around);

}  // namespace hocket
