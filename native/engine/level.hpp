// A level: the life of its step. The twin of engine/reference/level.py; its collaborators do the parts.
// In:  children, wires and a program, handed over by engine/native/engine.py with the state after the start
// Out: children moved on, rows recorded
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/algebraic_loop.hpp"
#include "engine/energy_ledger.hpp"
#include "engine/input_fitting.hpp"
#include "engine/instants.hpp"
#include "engine/iteration.hpp"
#include "engine/level_state.hpp"
#include "engine/message_counter.hpp"
#include "engine/operations.hpp"
#include "engine/overrides.hpp"
#include "engine/parallel.hpp"
#include "engine/rollback.hpp"
#include "engine/row_buffer.hpp"
#include "engine/step_control.hpp"
#include "engine/stepping.hpp"
#include "engine/watch.hpp"

namespace hocket {

class Level final : public Simulator, private ProgramRunner {
  public:
    Level(int number, Clock clock, std::int64_t length, int degree, int inputs);

    // building
    void add_child(std::shared_ptr<Simulator> simulator, int rows, int inputs, int outputs);
    void add_input(const FittedInput& input) { fitting_.add(input); }
    void add_text(int from, int source, int to, int target);
    using TextPorts = std::vector<std::pair<int, int>>;  // of children: which child, and which of its texts
    void add_text_ports(TextPorts inputs, TextPorts outputs);
    void add_output(int source, double gain, double offset);
    void set_programs(Program step, Program output);
    void record(std::shared_ptr<RowBuffer> rows, std::vector<Column> columns);
    // `locked`: the calling thread holds the interpreter lock
    void share(ThreadPool* pool, bool always, bool locked);

    // running
    bool run_step();       // of the outermost level
    void add_last_rows();  // of this level and those inside, also when none is due
    bool step(const Span& span, const double* u) override;
    bool output(std::int64_t tick, const double* u, double* y) override;
    bool slope(std::int64_t tick, const double* u, double* dy) override;
    std::int64_t shown_at(std::int64_t tick) const override { return std::min(tick, state.now); }
    bool newest(std::int64_t tick, const double* u, double* y) override;
    bool takes_part() const override { return instants.active(); }
    bool due(std::int64_t& tick) override;
    bool react(std::int64_t tick, int n, const double* u, const std::uint8_t* present,
               std::uint8_t* shown) override;
    bool commit(bool& again) override;
    void forget_past() override;
    bool save(Snapshot& to) override;
    bool restore(Snapshot& from) override;
    void settle_rows(const Snapshot* restorable, bool inside) override;
    void set_watch(Watch* watch) override;
    bool needs_python() const override { return python_; }
    bool foreign() const override { return foreign_; }
    bool checks_itself() const override { return true; }
    bool uses_seconds() const override { return false; }
    Failure failure() const override { return state.failures.first(); }
    bool forget_failure() override;
    bool get_text(int port, std::string& value) override;
    bool set_text(int port, const std::string& value) override;
    const Accounts* accounts() const override { return &ledger.accounts; }

    // the start (engine/start.hpp)
    struct Output {
        int source;
        double gain, offset;
        bool converts;
    };
    const std::vector<Output>& outputs() const { return outputs_; }
    void begin_start();  // all stand at tick 0, and nothing is remembered
    bool feed_at_start(int child);
    bool slope_at_start(int child);
    bool take_first_instants();  // those that follow initialisation

    // by hand, between steps
    double input_value(int child, int port) const;
    void set_own_input(int port, double value);
    void set_input(int child, int port, double value);
    void release_input(int child, int port);
    void set_output(int child, int port, double value);
    // `evaluate`: what it shows itself is asked for; else its memory is going to be restored
    bool release_output(int child, int port, bool evaluate);

    const IterationCounts& iterations() const { return iteration_.counts(); }
    const std::vector<double>& residuals() const {
        return iteration_.residuals();
    }  // of the newest iteration
    const StepCounts& steps() const { return control_.counts(); }
    std::vector<Level*> levels_inside() const;

    LevelState state;
    EnergyLedger ledger;
    std::unique_ptr<MessageCounter> messages;  // none: all children run on one host
    Instants instants;
    void add_member(Member member);
    void set_ends_outside(bool ends) { control_.ends_outside = ends; }
    std::set<std::shared_ptr<const void>> models;  // what children share and must outlive them

  private:
    void newest_outputs(double* values);
    void list_lasting(SnapshotLine line);
    void refresh(Program& program);
    void refresh_all();
    void prepare(Program& program);
    void prepare(FeedOperation& operation) { operation.inputs = fitting_.collect(operation.children); }
    void prepare(FeedPortsOperation& operation) {
        operation.inputs = fitting_.collect(operation.child, operation.ports);
    }
    void prepare(ReadPortsOperation&) { stepping_.prepare_single_ports(); }
    void prepare(SolveOperation& operation);
    void prepare(StepReadOperation& operation);
    void prepare(RepeatOperation& operation) { iteration_.add(operation.accelerator); }
    void prepare(AdaptOperation& operation) { control_.add(operation.controller); }
    void prepare(TogetherOperation& operation);
    void prepare(TryOperation& operation) { last_ = std::max(last_, operation.last); }
    void prepare(CloseAccountsOperation& operation) { ledger.sort(operation); }
    template <class Other> void prepare(Other&) {}

    bool go_on() const { return !state.watch || state.watch->go_on(); }
    bool run(Program& body) override;  // a part of a step, after a look whether to go on
    bool execute(Program& program);
    // one for each kind: a kind without one does not compile
    bool execute(AdmitOperation& operation);
    bool execute(FeedOperation& operation);
    bool execute(StepOperation& operation);
    bool execute(ReadOperation& operation);
    bool execute(StepReadOperation& operation);
    bool execute(SolveOperation& operation);
    bool execute(TryOperation& operation) { return control_.attempt(operation); }
    bool execute(ReactOperation& operation);
    bool execute(CommitOperation& operation) { return instants.commit(operation.children); }
    bool execute(InstantOperation& operation);
    bool execute(FeedPortsOperation& operation);
    bool execute(ReadPortsOperation& operation);
    bool execute(RecordOperation& operation);
    bool execute(SaveOperation& operation) {
        return (!messages || messages->flush()) && rollback_.save(operation.children);
    }
    bool execute(RestoreOperation& operation) { return rollback_.restore(operation.children); }
    bool execute(RepeatOperation& operation) { return iteration_.repeat(operation); }
    bool execute(AdaptOperation& operation) { return control_.adapt(operation); }
    bool execute(NextOperation& operation);
    bool execute(TimesOperation& operation);
    bool execute(TogetherOperation& operation);
    bool execute(OpenAccountsOperation& operation) { return ledger.open(operation); }
    bool execute(CloseAccountsOperation& operation) { return ledger.close(operation); }

    bool own_step(std::int64_t tick, std::int64_t ticks);
    bool step_freely(std::int64_t tick, std::int64_t end, const double* polynomials);
    bool step_sampled(std::int64_t tick, std::int64_t end, const double* polynomials);
    bool feed(int child, const FedInputs& inputs) override;
    void prepare(InstantOperation& operation) {
        instants.reacts = &operation.reacts;
        instants.commits = &operation.commits;
        instants.continues = operation.continues;
    }
    bool stays_here(int child) const;

    InputFitting fitting_;
    Stepping stepping_;
    RowRecorder recorder_;
    AlgebraicLoop loop_;
    Rollback rollback_;
    Iteration iteration_;
    StepControl control_;
    ParallelExecution parallel_;
    Overrides overrides_;
    Program step_program_, output_program_;
    std::vector<Output> outputs_;
    TextPorts texts_in_, texts_out_;
    std::vector<std::pair<std::int64_t, int>> behind_;  // room: who stands where, and whose turn it is
    int last_ = -1;  // the child that cannot roll back: it steps when the others know where the step ends
    bool python_ = false, foreign_ = false, locked_ = false;
};

}  // namespace hocket
