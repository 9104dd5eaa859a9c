// Model exchange: hocket integrates, the FMU tells rates and handles events.
// In:  an FMU with continuous states, input polynomials, a method
// Out: the FMU moved on; state events located, time events hit, all handled in event mode
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fmu/fmu.hpp"
#include "fmu/model_exchange_calls.hpp"

namespace hocket {

// A Runge-Kutta method whose stages are explicit or implicit in themselves only.
struct Method {
    std::vector<double> a, b, c;  // a row by row; nothing: steps are made by a solver elsewhere
    bool multistep = false;       // Adams and Bashforth's of two steps; the tableau begins it
    double longest = 0.0;         // micro step, in seconds; 0: one per step
    double atol = 1e-9;           // of implicit stages
};

// An output that is wrong if it is computed at completed steps only, and the inputs that it follows at once.
struct Doubted {
    int output = 0;
    std::vector<int> inputs;
    bool reacts = false;  // one of them has moved just now
};

struct ExchangeSetup {
    int states = 0, indicators = 0;  // FMI 3 tells them itself
    bool completed_step = true;      // it wants to be told of every completed step
    bool all_move = true;            // every input may change between events, and none is clocked
    std::vector<Group> moving;       // those that may
    std::vector<Doubted> doubted;
    Method method;
};

class Exchange {
  public:
    Exchange(Fmu& fmu, const Library& library, int version);

    // FMI 1: initialisation ends; what it tells of events is settled by begin()
    bool initialise();
    // after initialisation: events settled, continuous-time mode
    bool begin();
    // the outputs under these inputs, which may be others than those of the last step
    bool evaluate(const double* u, double* y);
    // a step with the method of the setup
    bool advance(double t, double h, const double* u, double* reached);
    // an instant: the inputs are set in event mode; then discrete states change
    bool react(double t, const double* u, const std::uint8_t* present, std::uint8_t* shown);
    bool commit(bool& again);
    bool leave_instants();  // those of the time reached are over
    double next_event() const { return defined_ ? next_ : never; }
    // Whether an event s seconds into a step of h is left to the instants of its level: at the end of the
    // step, or where steps may end early; then the step ends there.
    enum class Postponed : int { no, within, at_end };
    Postponed postpone(double s, double h);
    double lag() const { return lag_; }
    // a string or binary input: only at an event
    bool set_text(int port, const std::string& value);

    // what is to be saved beside the FMU's own state
    void keep(std::vector<double>& numbers) const;
    void recall(const std::vector<double>& numbers);
    // the same for another process: what was found out of the FMU, too, and which outputs are in doubt
    struct Findings {
        std::vector<double> numbers;
        std::vector<int> doubted;
    };
    Findings findings() const;
    void take(const Findings& findings);

    // A step made by a solver elsewhere; s: seconds since it began. The polynomials are copied.
    bool enter(double t, int rows, const double* u);  // a communication point: inputs may jump
    bool rates(double s, const double* x, double* dx);
    bool watch(double s, double ds);  // which side of zero the indicators are on, over the next ds seconds
    bool detect_crossing(double s, const double* x, bool& crossed);
    bool accept(double s, const double* x, bool& event);  // the solution goes on from there
    bool event();                                         // at the point accepted
    void leave();
    double due(double end) const;  // when a time event is due, if not after the end; else infinity

    // outputs and rates at the present time, none of them stale; the inputs stay as they are set
    bool probe(const double* x, const double* u, double* dx, double* y);
    bool nominals(double* values);

    const std::vector<double>& x() const { return x_; }
    const std::vector<double>& inputs() const;
    int indicators() const { return indicators_; }
    bool was_discarded() const { return last_ == fmi::discard; }

  private:
    // what happens at an instant
    bool succeeds(fmi::Status status, const char* function);
    template <class F, class... Arguments>
    bool succeeds(const Function<F>& function, Arguments... arguments) {
        return succeeds(function(fmu_.instance_, arguments...), function.name);
    }
    bool settle();
    bool update(Events& events);
    bool resume();
    bool enter_events();
    bool jump(const double* u);  // an event that sets the inputs
    double at(double s) const;
    double resolution() const;
    bool put_time(double time);
    bool put_inputs(const double* u);
    bool put_states(const double* x);
    bool put_solution();
    bool is_set(const std::vector<double>& values, const double* u) const;
    bool is_closed(std::size_t input) const;
    bool put_now(const double* u);
    bool place(const double* x, const double* u);
    bool read_outputs(double* y);
    bool read_fresh(double* y);
    bool complete(bool& event, bool& terminates);
    bool complete_here(double* y);
    void note_steps();
    bool know_outputs();
    bool judge_outputs();
    bool follows(const double* y) const;
    bool stand(double s, const double* x);
    bool indicate(std::vector<double>& z);
    bool beyond(const std::vector<double>& z) const;

    // the fixed-step methods (model_exchange_steps.cpp)
    bool cover(double begin, double end, double dt, double h, Postponed& postponed);
    bool over(double from, double ds, double& stop, bool& event);
    bool locate(double from, double ds, double& stop);
    bool micro(double s, double ds);
    bool stage(double s, const double* guess, double own, double* rate);

    Fmu& fmu_;
    const ExchangeSetup& setup_;
    ExchangeCalls calls_;
    fmi::Status last_ = fmi::ok;

    int states_ = 0, indicators_ = 0;
    int rows_ = 1;
    double t_ = 0.0;               // when the step began, and
    double lag_ = 0.0;             // how much later that is than its level thinks
    std::vector<double> u_;        // its polynomials
    double time_ = 0.0;            // what the FMU was told, and
    std::vector<double> placed_;   // the states it was told
    std::vector<double> settled_;  // the inputs of the solution, while output() may try others
    std::vector<double> x_;
    double floor_ = 0.0;  // the last event: time does not go back behind it
    bool defined_ = false;
    double next_ = 0.0;           // the next time event
    bool changed_ = false;        // states have jumped in this event mode
    std::optional<Events> told_;  // by initialisation (FMI 1): the first round of event iteration

    bool sided_ = false;  // the sides are known
    std::vector<char> above_;
    std::vector<double> z_, first_z_;  // now, and where the micro step began

    std::vector<double> past_, rate_;  // of Adams and Bashforth's method: the rate one step ago, and now
    double past_length_ = 0.0;         // 0: there is none
    bool rated_ = false;               // rate_ is that of the present state
    std::vector<double> next_x_, far_x_, stage_, rates_, matrix_, right_, moved_, tried_;
    enum class Read { nothing, rates, outputs } read_ = Read::nothing;  // since states were set
    bool turn_to(Read kind);
    bool with_rates_ = false;  // outputs are computed where rates are read
    int looks_ = 0;            // until it is known whether they are
    // Outputs that react to inputs: whether they are computed at completed steps only. That is looked for
    // until each of those in doubt has moved in another way.
    bool at_steps_ = false;
    std::vector<Doubted> doubted_;
    bool outputs_known_ = false;  // `completed_` are those since the last completed step or event
    std::vector<double> completed_;
    std::vector<double> ahead_;    // outputs before a step is completed
    int trials_ = 0, judged_ = 0;  // how often that is still looked for, between steps and in them
    bool wanted_ = false;          // a step that was completed between two steps asked for an event
    std::vector<double> room_, low_z_, high_z_, outputs_, beside_;
    std::vector<std::optional<std::string>> texts_;
};

}  // namespace hocket
