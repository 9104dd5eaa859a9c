// A co-simulation in the hands of an importer: what both versions of FMI share.
// In:  a plan file; values by value reference, steps in seconds
// Out: the values after each step; false where something is wrong, and `problem` says what
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/watch.hpp"
#include "export/plan_file.hpp"

namespace hocket {

class CoupledSystem {
  public:
    enum class Phase { instantiated, initialising, stepping };

    // Raises std::runtime_error, with a reason, for a plan that cannot be read.
    CoupledSystem(std::string name, const std::string& resources);

    const std::string name;
    const std::string& token() const { return plan_.face.token; }
    const std::string& problem() const { return problem_; }
    bool refuse(std::string what) { return fail(std::move(what)); }

    bool set_up(double t, bool stops, double stop);
    bool enter_initialisation();
    bool leave_initialisation();
    bool reset();  // as after instantiation

    // Values of any type as numbers.
    bool set(std::uint32_t reference, Variable::Type type, double value);
    bool get(std::uint32_t reference, Variable::Type type, double& value);
    bool set_derivative(std::uint32_t reference, int order, double value);

    // A step of the importer: some whole steps of the outermost level.
    bool step(double t, double h);
    double time() const;

    // The state of the whole tree.
    struct State {
        Snapshot snapshot;
        Phase phase = Phase::stepping;
        std::vector<double> inputs, initial;
        bool inputs_changed = false;
        std::string bytes;  // once it was asked for them
    };
    std::unique_ptr<State> save();
    bool restore(State& state);
    bool serialise(State& state);  // fills its bytes
    std::unique_ptr<State> deserialise(const std::string& bytes);

  private:
    void build();
    bool start();  // unless nothing has changed since
    bool fail(std::string what);
    bool fail(const Failure& failure);
    void set_parameters();
    bool refresh();  // outputs that follow inputs at once
    bool needs(Phase phase, const char* what);
    Variable* find(std::uint32_t reference, Variable::Type type);
    Level& level(int number) const { return *levels_[static_cast<std::size_t>(number)]; }

    std::string resources_, bytes_, problem_;
    CoupledPlan plan_;
    std::vector<Level*> levels_;
    std::unique_ptr<Watch> watch_;
    Phase phase_ = Phase::instantiated;
    StartTime when_;
    bool fresh_ = true;     // built, and not started
    bool started_ = false;  // with the values that are set
    bool inputs_changed_ = false;
    std::vector<double> inputs_;   // polynomials, a row per power of time
    std::vector<double> initial_;  // per variable: its value, where it is of an initial state
};

}  // namespace hocket
