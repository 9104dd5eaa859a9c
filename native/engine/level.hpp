// A level: its exchange memory and the plan it executes. The twin of interpreter.py and memory.py.
// In:  children, wires and a program, handed over by engine/native.py with the state after the start
// Out: children moved on, rows kept
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "engine/accelerators.hpp"
#include "engine/energy_ledger.hpp"
#include "engine/message_counter.hpp"
#include "engine/polynomial.hpp"
#include "engine/simulator.hpp"
#include "engine/step_control.hpp"
#include "engine/thread_pool.hpp"

namespace hocket {

// Samples of one output, as far back as its extrapolators look.
struct Ring {
    int depth = 1;
    int count = 0;
    int newest = -1;
    bool sloped = false;
    std::vector<std::int64_t> ticks;
    std::vector<double> values;
    std::vector<double> slopes;
    void push(std::int64_t tick, double value, double slope);
    int back(int steps) const { return (newest - steps + depth) % depth; }
};

// One driven input that is more than a copied value.
struct Fit {
    enum class Kind : int { hold, polynomial, hermite, nepce, passed, passed_hold, latch, correction };
    Kind kind = Kind::hold;
    int child = 0;
    int input = 0;
    int source = 0;  // an output of a sibling, or an input of the level
    int samples = 1;
    double alpha = 0.0;
    double gain = 1.0;
    double offset = 0.0;
    bool converts = false;
    std::int64_t seen = 0;
    double before = 0.0;
    double after = 0.0;
};

// A held input without conversion: one number copied.
struct Copy {
    int from;
    int to;
};

// A text handed from an output to an input.
struct TextCopy {
    int from, source, target;
};

// What stepping and reading a child touches: two of them in a cache line.
struct alignas(32) Slot {
    Simulator::StepOutput quick = nullptr;  // step and read in one call; none: there is more to do than that
    Simulator* simulator = nullptr;
    int u = 0, y = 0;  // where its inputs and outputs begin
    std::int64_t tick = 0;
};

// The rest of what is known of it.
struct Child {
    std::shared_ptr<Simulator> simulator;
    int rows = 1, inputs = 0, outputs = 0;
    std::int64_t base = 0;        // the tick its polynomials begin at
    std::vector<int> fits;        // its inputs: fitted,
    std::vector<Copy> copies;     // copied,
    std::vector<TextCopy> texts;  // and texts
    std::vector<int> accounts;    // of power bonds
    std::vector<int> rings;       // outputs that keep samples,
    bool sloped = false;          // with slopes
    bool unchecked = false;       // its outputs must be looked at: NaN and infinity are errors
    int seen = 0, slopes = 0;     // where its room is
    bool curved() const { return rows > 1; }
    int coefficients() const { return rows * inputs; }
};

struct Operation {
    enum class Kind {
        admit,
        feed,
        step,
        read,
        step_read,
        solve,
        times,
        together,
        record,
        save,
        restore,
        repeat,
        adapt,
        next,
        open,
        close
    };
    Kind kind = Kind::record;
    std::vector<int> children;
    int begin = -1, end = -1;  // children that are neighbours; -1: they are not
    bool fetches = false;      // what they touch, ahead of time
    std::int64_t ticks = 0;
    std::int64_t numerator = 1, denominator = 1;  // step: its part of the level's step
    int n = 0;
    int number = 0;                            // solve, repeat: which one of the plan
    double until = -1.0;                       // repeat: the residual that ends it; below zero: none does
    std::shared_ptr<Accelerator> accelerator;  // repeat
    std::shared_ptr<Pace> pace;                // adapt
    std::vector<int> degrees;                  // adapt: of the extrapolation of each signal
    bool parallel = false;
    std::vector<Copy> copies;  // feed
    std::vector<int> fits;     // feed
    std::vector<int> based;    // feed: children whose polynomials have a degree
    std::vector<int> texted;   // feed: children that get texts
    std::vector<int> signals;  // open, close: accounts, held ones in slopes; solve, repeat: outputs,
    std::vector<int> slopes;   // and those whose slopes must
    std::vector<int> lines,
        curves;                // close: those whose inputs are lines, or of a higher degree, of linear models
    std::vector<double> room;  // solve: values, residuals, matrix
    std::vector<std::vector<Operation>> bodies;

    // how long each child (or body) takes, to decide whether threads pay
    int measured = 0;
    std::vector<double> seconds;
    double in_a_row = 1e9, shared_out = 1e9;
    std::vector<std::vector<int>> shares;  // per thread
};

// Where a child was saved within a step.
struct Kept {
    Snapshot state;
    std::int64_t tick = 0, shown = 0;
    std::vector<double> y;
    std::vector<Ring> rings;
    struct Filter {
        std::int64_t seen;
        double before, after;
    };
    std::vector<Filter> fits;
};

// How often steps were made again.
struct Sweeps {
    std::int64_t repeats = 0, total = 0, most = 0;
    void add(std::int64_t sweeps) {
        ++repeats;
        total += sweeps;
        most = std::max(most, sweeps);
    }
};

struct Column {
    int child;
    int port;
    bool is_input;
};

class Level final : public Simulator {
  public:
    Level(Clock clock, std::int64_t length, int degree, int inputs);

    // building
    void add_child(std::shared_ptr<Simulator> simulator, int rows, int inputs, int outputs);
    void add_drive(const Fit& fit, bool plain);
    void add_text(int from, int source, int to, int target);
    void add_output(int source, double gain, double offset);
    void set_ring(int signal, int depth, bool sloped);
    void set_programs(std::vector<Operation> step, std::vector<Operation> output);
    void record(std::shared_ptr<Rows> rows, std::vector<Column> columns);
    void share(Pool* pool, bool always, bool locked);

    // running
    bool run_outermost(std::int64_t steps);
    void keep_last_row();  // of this level and those inside, also when none is due
    bool step(const Span& span, const double* u) override;
    bool output(std::int64_t tick, const double* u, double* y) override;
    bool slope(std::int64_t tick, const double* u, double* dy) override;
    std::int64_t shown_at(std::int64_t tick) const override { return std::min(tick, now); }
    bool keep(Snapshot& to) override;
    bool go_back(Snapshot& from) override;
    bool needs_python() const override { return python_; }
    bool foreign() const override { return foreign_; }
    bool checks_itself() const override { return true; }
    bool timed() const override { return false; }
    Failure failure() const override { return first_failure; }

    Clock clock;
    std::int64_t length;
    std::int64_t now = 0;
    int degree;
    int own_inputs;
    std::set<std::shared_ptr<const void>> models;  // what children share and must outlive them
    std::vector<Child> children;
    std::vector<double> u, y;  // coefficients; newest outputs
    std::vector<int> ring_of;  // per output: its ring, or -1
    std::vector<Ring> rings;
    std::vector<Fit> fits;
    Accounts accounts;                  // of power bonds: given and taken, in turn
    std::vector<double> used, offered;  // polynomials of the level's own inputs
    std::int64_t used_base = 0, offered_base = 0;
    Failure first_failure;
    Sweeps sweeps;
    Steps steps;
    std::vector<double> residuals;  // of the newest iteration
    std::unique_ptr<Post> post;     // counts what passes from host to host; none: all run on one

  private:
    struct Output {
        int source;
        double gain, offset;
        bool converts;
    };
    void prepare(std::vector<Operation>& program);
    void widen_loop(Operation& operation) const;
    bool run(std::vector<Operation>& program);
    bool execute(Operation& operation);
    void note(const Operation& operation);
    bool own_step(std::int64_t tick, std::int64_t ticks);
    bool adapt(Operation& operation);
    bool take_turns(Operation& operation);
    bool tried(Operation& operation, std::int64_t start, std::int64_t span, double& ratio);
    bool made(Operation& operation, std::int64_t start, std::int64_t span);
    bool doubled(Operation& operation, std::int64_t start, std::int64_t span, double& error);
    bool scale(std::vector<Operation>& body, std::int64_t span);
    bool forget_failure();
    double missed(const Operation& operation) const;
    double outlook(const Operation& operation, double h) const;
    void place_accounts();
    double rest_of(const Account& account) const;
    double bend_of(const Account& account, const double* c, double rest, double s, double h) const;
    std::vector<double> seen_now(int child) const;
    bool ask_slope(std::size_t number, double& slope);
    bool ask_start(std::size_t number, double& value);
    void sort_accounts(Operation& operation) const;
    void copy_accounts(const Operation& operation, const Standing& from, Standing& to) const;
    bool open_accounts(const Operation& operation);
    bool close_accounts(const Operation& operation);
    bool close_moving(int number, bool again, Lengths& step, Lengths& age);
    void close_held(int number, bool again, Lengths& step);
    void close_alike(const std::vector<int>& numbers, double h);
    void close_lines(const std::vector<int>& numbers, double h);
    void close_curves(const std::vector<int>& numbers, double h);
    template <int known> void close_curve(int number, double h);
    double ledger_column(int number) const;
    double gained_since(const std::vector<double>& before) const;
    std::vector<double> gained() const;
    bool solve(Operation& operation);
    bool save(const Operation& operation);
    bool restore(const Operation& operation);
    bool repeat(Operation& operation);
    bool repeated(Operation& operation);
    void newest(const Operation& operation, double* to) const;
    void put(const Operation& operation, const double* numbers);
    bool no_agreement(const Operation& operation);
    bool around(Operation& operation, const double* guess, double* found);
    bool loop_failed(Operation& operation, Failure::Kind kind, double residual);
    bool feed(const Operation& operation);
    bool hand_on(int child);
    void fit(Fit& fit);
    Span span(const Slot& slot, std::int64_t ticks) const;
    bool step_child(Slot& slot, std::int64_t ticks);
    bool read_child(Slot& slot);
    bool both(Slot& slot, std::int64_t ticks);
    bool both_slowly(Slot& slot, std::int64_t ticks);
    bool finish_read(Slot& slot, const Child& child, const double* u);
    bool apply(Operation::Kind kind, Slot& slot, std::int64_t ticks);
    bool each(Operation& operation, int index);
    bool spread(Operation& operation, int count);
    bool one_by_one(Operation& operation, int count);
    bool in_parallel(Operation& operation);
    void share_out(Operation& operation, int count);
    bool failed(Slot& slot, Call call = Call::step);
    int number(const Slot& slot) const { return static_cast<int>(&slot - slots_.data()); }
    void keep_row(bool due);

    std::vector<Operation> step_program_, output_program_;
    std::vector<Slot> slots_;       // per child
    std::vector<const void*> hot_;  // per child: what to fetch ahead of time
    std::vector<Output> outputs_;
    std::vector<std::shared_ptr<Accelerator>> accelerators_;
    std::shared_ptr<Pace> pace_;  // of an adaptive level
    int repeating_ = 0;           // in a Repeat the newest samples stay when children go back
    std::vector<std::pair<std::int64_t, int>> behind_;  // room: who stands where, and whose turn it is
    std::vector<Kept> kept_;                            // per child that is saved
    std::vector<double> saved_y_;        // per account: the output when the child was last saved,
    Standing saved_accounts_;            // and where the account stood
    std::vector<double> seen_, slopes_;  // room: polynomials seen from another time; slopes of outputs
    std::shared_ptr<Rows> rows_;
    std::vector<Column> columns_;
    std::mutex failing_;
    std::int64_t reached_ = 0;  // the tick that rows are kept for
    Span own_;                  // the step under way, as long as the level's own
    bool timed_ = false;        // a child looks at seconds
    Pool* pool_ = nullptr;
    bool always_parallel_ = false;
    bool python_ = false, foreign_ = false;
    bool locked_ = false;  // the calling thread holds the interpreter lock
};

}  // namespace hocket
