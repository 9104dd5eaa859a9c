// What the start of a tree of levels needs to know beside the levels themselves: plain data, written down in
// Python once (engine/native/start_program.py) and read by the start (engine/start.hpp), with no Python left.
// In:  the leaves of the tree, which are its simulators that are no levels; what drives what at the start
// Out: nothing of its own
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/state_space.hpp"

namespace hocket {

// All lists of leaves are in the order of `leaves`, which is that of planning/tree.py: every level has its
// own simulators in one row, and levels inside come after the level around them.
struct StartProgram {
    // What drives an input of a leaf in the end, through all levels between the two.
    struct Drive {
        enum class Kind : int {
            none,      // nothing: the input has its start value
            constant,  // a number: `offset`
            own,       // an input of the outermost level, which has its start value
            output     // an output of a leaf
        };
        Kind kind = Kind::none;
        int leaf = -1;  // whose output it is
        int port = 0;   // its number there, or that of the input of the outermost level
        double gain = 1.0, offset = 0.0;
        double start = 0.0;      // of the input that is driven: its start value,
        bool has_start = false;  // if it has one: what it is until the source was read once
    };

    struct Leaf {
        int level = 0, child = 0;           // where it lives: Level::state.number, and its number there
        int first_input = 0, inputs = 0;    // its part of `drives`
        int first_output = 0, outputs = 0;  // its part of all outputs, one array, and of `drives_others`
        int highest = -1;                   // degree of the input polynomials it takes; -1: any
        bool once = false;                  // it is initialised once, with the inputs of its first evaluation
        bool settles = false;  // its initial state may depend on its inputs, declared or not: asked again
        bool waits = false;    // it leaves its initialisation on request: Simulator::ready
        bool frozen = false;   // in a sampled level: it does not move within the start window
    };

    // Leaves that are fed together, then read; or a loop.
    struct Round {
        std::vector<int> leaves;
        std::vector<int> loop;  // places among all outputs that are solved for together; empty: no loop
    };

    // A start window: samples around the start, `degree` steps of so many ticks apart, and one step more.
    struct Window {
        std::int64_t ticks = 1;
        int degree = 1;
        // Per leaf: which of `models` runs ahead in its place, as its own has no matrices for such steps
        // under such inputs; -1: it runs ahead itself, and goes back.
        std::vector<int> models;
    };

    // Of a level: where its extrapolators have their past from.
    struct Past {
        int window = -1;        // which of `windows`; -1: there is no past, all begin cold
        std::int64_t back = 0;  // ticks between its samples
        int feeds = 1;          // how often inputs are fitted: slopes pass one simulator at a time
    };

    std::vector<Leaf> leaves;
    std::vector<Drive> drives;                // of all inputs of all leaves
    std::vector<std::uint8_t> drives_others;  // per output: whether it drives an input
    std::vector<int> by_name;                 // leaves by their paths: whom to call first
    std::vector<int> first_reads;             // leaves to read before anything is fed, in this order
    std::vector<Round> rounds;                // then these, in feedthrough order
    std::vector<double> starts;               // of the inputs of the outermost level
    std::vector<Window> windows;
    std::vector<Past> levels;  // by their numbers
    std::vector<std::shared_ptr<const Linear>> models;

    int outputs() const { return static_cast<int>(drives_others.size()); }
};

}  // namespace hocket
