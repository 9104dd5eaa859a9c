// A level under construction, and what it is built from, as data.
// In:  parts: children, inputs, samples, accounts and programs, one after the other
// Out: the Level; the parts, where they are kept to be written to a file
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/level.hpp"
#include "engine/projected.hpp"
#include "engine/sampled.hpp"
#include "engine/state_space.hpp"

namespace hocket {

struct LevelBuilder;

struct LevelHead {
    int number = 0;
    Clock clock;
    std::int64_t length = 1;
    int degree = 0, inputs = 0;
};

// children

struct StateSpacePart {
    std::shared_ptr<Linear> model;
    std::vector<double> z;
    double last_h = 0.0;
    std::shared_ptr<RowBuffer> micro;  // none: the rows of its micro steps are not kept
    std::vector<int> ports;
};

struct SampledPart {
    std::shared_ptr<Linear> model;
    std::vector<double> z;
    double last_h = 0.0;
    Sampled::Setup setup;
};

struct ProjectedPart {
    std::shared_ptr<Balance> balance;
    std::vector<double> z;
    double last_h = 0.0;
    std::vector<double> work;
    double brought = 0.0;
    Agreed agreed;
};

// Made elsewhere: a block, an FMU, a simulator written in Python.
struct SimulatorPart {
    std::shared_ptr<Simulator> simulator;
    int rows = 1, inputs = 0, outputs = 0;
};

struct LevelPart {
    std::shared_ptr<LevelBuilder> builder;
    int rows = 1, inputs = 0, outputs = 0;
};

// wires

struct TextPart {
    int child = 0, output = 0, target = 0, input = 0;
};

struct TextPortsPart {
    Level::TextPorts inputs, outputs;
};

struct OutputPart {
    int source = 0;
    double gain = 1.0, offset = 0.0;
};

// the exchange memory

struct SamplesPart {
    int signal = 0, depth = 1;
    bool sloped = false;
    std::vector<std::int64_t> ticks;
    std::vector<double> values, slopes;
};

struct MemoryPart {
    std::vector<double> u, y;
    std::vector<std::int64_t> bases;
    OwnInputs used, offered;
};

// The first accounts are those of the bonds, two for each.
struct AccountsPart {
    std::uint64_t bonds = 0;
    std::vector<AccountSetup> accounts;
};

struct MemberPart {
    std::vector<int> sources;
    std::vector<std::uint8_t> event_inputs, followed, event_outputs;
    bool takes_part = false, level = false;
};

struct InstantsPart {
    std::vector<int> outputs;
    bool around = false;
    std::int64_t longest = 0;
    bool ends_outside = false;
};

struct ProgramsPart {
    Program step, output;
};

using LevelPartKind = std::variant<StateSpacePart, SampledPart, ProjectedPart, SimulatorPart, LevelPart,
                                   FittedInput, TextPart, TextPortsPart, OutputPart, SamplesPart, MemoryPart,
                                   AccountsPart, MemberPart, InstantsPart, ProgramsPart>;

// Each raises std::invalid_argument for what does not fit the level.
void build(Level& level, StateSpacePart part);
void build(Level& level, SampledPart part);
void build(Level& level, ProjectedPart part);
void build(Level& level, SimulatorPart part);
void build(Level& level, LevelPart part);
void build(Level& level, const FittedInput& part);
void build(Level& level, const TextPart& part);
void build(Level& level, TextPortsPart part);
void build(Level& level, const OutputPart& part);
void build(Level& level, const SamplesPart& part);
void build(Level& level, MemoryPart part);
void build(Level& level, const AccountsPart& part);
void build(Level& level, MemberPart part);
void build(Level& level, InstantsPart part);
void build(Level& level, ProgramsPart part);

// Level.add_level and Engine take the level over.
struct LevelBuilder {
    LevelBuilder(const LevelHead& head, bool keeps)
        : head(head),
          keeps(keeps),
          level(std::make_shared<Level>(head.number, head.clock, head.length, head.degree, head.inputs)) {}

    template <class Part> void add(Part part) {
        if (keeps) parts.emplace_back(part);
        build(*level, std::move(part));
    }

    LevelHead head;
    bool keeps;  // what it was built from
    std::vector<LevelPartKind> parts;
    std::shared_ptr<Level> level;
};

}  // namespace hocket
