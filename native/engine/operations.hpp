// What a level executes: an instruction of a plan, or several of them at once. The twin of
// plan/instructions.py.
// In:  what engine/native/program.py says of a plan, and what the level adds when it is prepared
// Out: a variant, so that a kind that somebody forgets does not compile
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <variant>
#include <vector>

#include "engine/accelerators.hpp"
#include "engine/level_state.hpp"
#include "engine/parallel.hpp"
#include "engine/step_size_controller.hpp"

namespace hocket {

struct Operation;
using Program = std::vector<Operation>;

// The part of its level's step that a child's step is.
struct Fraction {
    std::int64_t numerator = 1, denominator = 1;
    std::int64_t of(std::int64_t span) const { return span * numerator / denominator; }
};

// Admits the inputs that the level around offers.
struct AdmitOperation {};

// What a Feed does to the inputs of its children, found when it is prepared.
struct FedInputs {
    std::vector<Copy> copies;
    std::vector<int> fits;
    std::vector<int> based;   // children whose polynomials have a degree
    std::vector<int> texted;  // children that get texts
};

struct FeedOperation {
    std::vector<int> children;
    FedInputs inputs;
};

// Some inputs of a child; the others stay the curves they are.
struct FeedPortsOperation {
    int child = 0;
    std::vector<int> ports;
    FedInputs inputs;
};

struct StepOperation {
    std::vector<int> children;
    std::int64_t ticks = 0;
    Fraction fraction;
    Workload workload;
};

struct ReadOperation {
    std::vector<int> children;
};

// Some outputs of a child; the others stay the samples they are.
struct ReadPortsOperation {
    int child = 0;
    std::vector<int> ports;
};

// A step whose outputs are read at once, under the same inputs.
struct StepReadOperation {
    std::vector<int> children;
    std::int64_t ticks = 0;
    Fraction fraction;
    Workload workload;
    int begin = -1, end = -1;  // children that are neighbours; -1: they are not
    bool prefetches = false;   // what they touch, ahead of time
    std::vector<Run> runs;     // the same neighbours, where enough of one kind stand in a row
};

// An algebraic loop.
struct SolveOperation {
    std::vector<int> children;
    int number = 0;  // which one of the plan
    Unknowns unknowns;
    FedInputs inputs;
    std::vector<double> room;  // values, residuals, matrix
};

struct RecordOperation {};

struct SaveOperation {
    std::vector<int> children;
};

struct RestoreOperation {
    std::vector<int> children;
};

// A body that is iterated until it agrees with itself.
struct RepeatOperation {
    Program body;
    int number = 0;  // which one of the plan
    int at_most = 1;
    double until = -1.0;  // the residual that ends it; below zero: none does
    Unknowns unknowns;
    std::vector<int> samples;  // per value, how many predict it; none: a fixed number of iterations is plain
    std::shared_ptr<Accelerator> accelerator;
};

// A body whose steps are as long as their error allows.
struct AdaptOperation {
    Program body;
    int number = 0;            // which one of the plan
    std::vector<int> signals;  // outputs whose error is estimated,
    std::vector<int> degrees;  // and the degrees of their extrapolation
    std::shared_ptr<StepSizeController> controller;
};

// Bodies of one child each: the one furthest behind goes next.
struct NextOperation {
    std::vector<Program> bodies;
};

struct TimesOperation {
    Program body;
    int count = 0;
};

// A body that is done to the end of the step in as many parts as there are events on the way.
struct TryOperation {
    Program body;
    Program rest;        // what follows the step of a child that has no partner and goes on where it stopped
    bool found = false;  // an event that is found within a step ends it: all roll back
    bool announced = false;    // a part ends at the next event that is announced
    bool lone = false;         // there is such a rest
    std::int64_t scaled = -1;  // the span that the steps of the body are parts of
    int last = -1;             // the child that cannot roll back, and steps when the end is known
    std::shared_ptr<Snapshot> start = std::make_shared<Snapshot>();
};

// One child at an instant.
struct ReactOperation {
    std::vector<int> children;
};

struct CommitOperation {
    std::vector<int> children;
};

// A body at the instants of one time.
struct InstantOperation {
    Program body;
    int at_most = 1;
    Program reacts, commits;  // its two parts, for a level inside another
    bool continues = false;   // where events pile up, on with fewer of them
};

// Bodies that do not depend on each other.
struct TogetherOperation {
    std::vector<Program> bodies;
    Workload workload;
};

// Accounts of power bonds, by their numbers: those of held inputs, and those of inputs that move.
struct OpenAccountsOperation {
    std::vector<int> held, moving;
};

struct CloseAccountsOperation {
    std::vector<int> held, moving;
    std::int64_t ticks = 0;  // of the steps, if all are of one length; 0: they are not
    Fraction fraction;
    bool reopens = false;  // nothing happens between a read and the next step: each is opened as it is closed
    bool fed = false;      // their inputs were fed right before the step
    std::vector<int> lines, curves;  // of linear models: inputs are lines, or of a higher degree
};

using AnyOperation =
    std::variant<AdmitOperation, FeedOperation, StepOperation, ReadOperation, StepReadOperation,
                 SolveOperation, RecordOperation, SaveOperation, RestoreOperation, RepeatOperation,
                 AdaptOperation, NextOperation, TimesOperation, TogetherOperation, OpenAccountsOperation,
                 CloseAccountsOperation, FeedPortsOperation, ReadPortsOperation, TryOperation, ReactOperation,
                 CommitOperation, InstantOperation>;

struct Operation : AnyOperation {
    using AnyOperation::AnyOperation;
};

// Calls `visit` with each body inside an operation.
template <class Kind, class Visit> void for_each_body(Kind& operation, Visit visit) {
    if constexpr (requires { operation.body; }) visit(operation.body);
    if constexpr (requires { operation.bodies; })
        for (Program& body : operation.bodies) visit(body);
    if constexpr (requires { operation.rest; }) visit(operation.rest);
    if constexpr (requires { operation.reacts; }) {
        visit(operation.reacts);
        visit(operation.commits);
    }
}

// Runs a body on the children of a level.
class ProgramRunner {
  public:
    virtual ~ProgramRunner() = default;
    virtual bool run(Program& program) = 0;
    virtual bool feed(int child, const FedInputs& inputs) = 0;
};

}  // namespace hocket
