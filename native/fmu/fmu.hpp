// An FMU as a simulator: what all versions of FMI share. fmu1.cpp, fmu2.cpp and fmu3.cpp know the functions.
// In:  a library, and from the model description which variables are ports
// Out: instantiated, initialised, stepped, rewound and freed in the order that FMI prescribes
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/simulator.hpp"
#include "fmu/clocks.hpp"
#include "fmu/directional.hpp"
#include "fmu/fmi.hpp"
#include "fmu/library.hpp"
#include "fmu/log.hpp"

namespace hocket {

enum class Type : int {
    real,
    float32,
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    boolean,
    text,
    binary
};

// Variables of one type that are set or got in one call.
struct Group {
    Type type = Type::real;
    std::vector<fmi::Reference> references;
    std::vector<int> places;  // per value: the number of its port
    bool negated = false;     // FMI 1: the ports have the opposite sign, and the opposite truth

    double turn(double value) const {
        return !negated ? value : type == Type::boolean ? 1.0 - value : -value;
    }
};

constexpr double never = std::numeric_limits<double>::infinity();

struct ExchangeSetup;
class Exchange;

struct Setup {
    std::string name, token, resources, file;
    std::string crash_file;  // where it is written down that it has ended the process; empty: nowhere
    bool logging = false;
    bool events = false;         // FMI 3: event mode is used
    bool early = false;          // its level handles steps that end early
    double grid = 0.0;           // seconds between places for events, where its level takes instants; else 0
    bool feeds_through = false;  // outputs follow inputs between steps
    bool variable = false;       // steps may have any length
    bool interpolates = false;   // FMI 1, 2: input derivatives are accepted
    int inputs = 0, outputs = 0;
    std::vector<Group> set, get;
    std::vector<Group> sloped;         // of those that are got, what has derivatives
    std::vector<int> continuous;       // inputs that may be set while it steps (FMI 3)
    std::vector<int> discrete;         // inputs that may change at events only
    std::vector<fmi::Reference> time;  // the independent variable, where there is one
    std::vector<fmi::Reference> texts_in, texts_out;
    std::vector<bool> binary_in, binary_out;
    std::vector<ClockSetup> clocks;  // FMI 3
    std::vector<std::vector<int>> clocked_in,
        clocked_out;  // per port: the clocks at whose ticks it has values
    std::vector<std::vector<int>> clocked_texts_in, clocked_texts_out;  // the same for texts
    bool scheduled = false;                         // FMI 3: clocks activate parts of the model
    std::shared_ptr<const ExchangeSetup> exchange;  // model exchange: how hocket integrates it
};

// Values of one type, set before initialisation.
struct FmuSetting {
    bool structural = false;  // in configuration mode
    Type type = Type::real;
    std::vector<fmi::Reference> references;
    std::vector<double> values;       // or
    std::vector<std::int64_t> whole;  // those of 64 bits, or
    std::vector<std::string> texts;
};

// What an FMU needs that is started without Python: where it lies, and how it begins.
struct FmuOrigin {
    int version = 2;
    std::string folder, library, prefix;  // the folder it is unpacked in, and the binary there
    std::vector<FmuSetting> settings;
    bool tells_stop = false, tolerant = false;
    double tolerance = 0.0;
};

// Who goes on from where: the FMU's own state, and what hocket knows beside it.
class Saved;

// The first step from a state: its inputs, the outputs before and after it.
struct TrialStep {
    bool made = false;
    int rows = 1;
    double t = 0.0, h = 0.0;
    std::vector<double> u, before, after;
    bool moved() const { return after != before; }
};

class Fmu : public Simulator {
  public:
    ~Fmu() override;
    Fmu(const Fmu&) = delete;
    Fmu& operator=(const Fmu&) = delete;

    // the life of an instance; false: `problem` says why
    bool instantiate();
    bool put(Type type, const std::vector<fmi::Reference>& references, const std::vector<double>& values);
    bool put_whole(Type type, const std::vector<fmi::Reference>& references,
                   const std::vector<std::int64_t>& values);
    bool put_texts(const std::vector<fmi::Reference>& references, const std::vector<std::string>& values,
                   bool binary);
    virtual bool configure(bool enter);  // FMI 3: structural parameters are set in between
    // Reads values of any variable that is no port: as many as `values` has room for.
    bool take(Type type, const std::vector<fmi::Reference>& references, std::vector<double>& values);
    // How the unknowns change along the seed of the knowns, where it stands, if it gives that.
    bool gives_directional() const { return static_cast<bool>(directional_); }
    bool directional(const std::vector<fmi::Reference>& unknowns, const std::vector<fmi::Reference>& knowns,
                     const std::vector<double>& seed, std::vector<double>& result);
    // What the run will be, told before anything is set: some FMUs reset what was set earlier.
    struct Experiment {
        double t = 0.0;
        bool stops = false;
        double stop = 0.0;
        bool tolerant = false;
        double tolerance = 0.0;
    };
    bool prepare(const Experiment& experiment);
    // All of this up to initialisation, as `origin` and `more` say (fmu_start.cpp).
    bool start(const StartTime& when) override;
    std::shared_ptr<const FmuOrigin> origin;
    std::vector<FmuSetting> more;
    bool begin();           // enters initialisation
    bool ready() override;  // leaves initialisation, if that is still to do
    void close();

    bool step(const Span& span, const double* u) override;
    bool output(std::int64_t tick, const double* u, double* y) override;
    bool slope(std::int64_t tick, const double* u, double* dy) override;
    bool checks_itself() const override { return true; }
    bool foreign() const override { return true; }
    const void* hot() const override { return &hot_; }
    Failure failure() const override { return failure_; }
    void set_rows(int rows) override { rows_ = rows; }

    // Instants (EventSimulator in model/protocols.py), where its level takes them. An event is pending until
    // it is committed, and till then outputs are those before it.
    bool takes_part() const override { return setup.grid > 0.0; }
    void set_clock(const Clock& clock) override { clock_ = clock; }
    bool due(std::int64_t& tick) override;
    bool react(std::int64_t tick, int n, const double* u, const std::uint8_t* present,
               std::uint8_t* shown) override;
    bool commit(bool& again) override;
    // The time of its next event, in seconds; infinity: it announces none.
    double due_time() const;
    bool react_at(double t, int n, const double* u, const std::uint8_t* present, std::uint8_t* shown);

    bool save(Snapshot& to) override;
    bool restore(Snapshot& from) override;

    // state; the memory of freed states is used again
    bool save(Saved& saved);
    bool restore(Saved& saved);
    void release(Saved& saved);
    // Outside this process (fmu_state.cpp): as bytes that another instance of the same FMU goes on from.
    // `now`: the state is that of the time reached, whose outputs are written down, too, and compared.
    bool dump(const Saved& saved, bool now, std::string& to);
    bool load(const std::string& from);
    bool can_serialise() const { return can_save() && state_size_ && serialise_ && deserialise_; }
    void refuse_saving(std::string why) { unsaved_ = std::move(why); }  // from now on
    virtual bool can_save() const = 0;

    // the slow lane
    bool set_text(int port, const std::string& value) override;
    bool get_text(int port, std::string& value) override;

    const std::string& problem() const { return problem_; }
    const std::string& remedy() const { return remedy_; }  // of the problem, where one is known
    // What it said itself, if the last failure was its own.
    std::string complaint() const { return spoke_ ? complaints(setup.name) : ""; }
    double reached_time() const { return failure_.value; }
    // What it could not do as it declares, and what was done instead.
    const std::vector<std::string>& notes() const { return notes_; }
    // What speaks for it that it stands still because its state was saved; told again after four times as
    // many steps only.
    struct Doubt {
        std::vector<double> inputs;  // the last ones
        double step = 0.0;
        bool behind = false;  // only behind a state that may still be restored
    };
    std::optional<Doubt> doubts_saving();
    void trust_saving() { rest_.trusted = true; }  // that was looked into
    // The outputs and inputs before its first step and after each of the first ones.
    struct FirstRows {
        double t = 0.0, h = 0.0;
        std::vector<std::vector<double>> y, u;
    };
    static constexpr int first_steps = 3;
    const FirstRows* first_rows() const { return settled() && !first_.y.empty() ? &first_ : nullptr; }
    // Whether its first steps are made, and no output moves so much more in the first than in the second.
    bool begins_smoothly(double ratio) const;
    bool ended() const { return ended_; }  // it has asked to end the simulation
    Exchange* exchange() const { return exchange_.get(); }
    Setup setup;

  protected:
    friend class Exchange;
    Fmu(std::shared_ptr<Library> library, Setup setup);
    enum class Phase { none, instantiated, initialising, stepping, terminated, lost };
    enum class Reach { whole, early, failed };
    Experiment experiment_;

    // what each version does in its own way
    virtual fmi::Instance create() = 0;
    virtual void destroy() = 0;
    virtual bool set_up() { return true; }  // FMI 2: fmi2SetupExperiment
    virtual bool enter_initialisation() = 0;
    virtual bool leave_initialisation() = 0;
    virtual void terminate() = 0;
    virtual Reach advance(double t, double h, const double* u, double* reached) = 0;
    virtual bool set_group(const Group& group, const double* values) = 0;
    virtual bool get_group(const Group& group, double* values) = 0;
    virtual bool set_whole(Type type, const std::vector<fmi::Reference>& references,
                           const std::vector<std::int64_t>& values) = 0;
    virtual bool write_texts(const fmi::Reference* references, std::size_t count, const std::string* values,
                             bool binary) = 0;
    virtual bool read_text(fmi::Reference reference, bool binary, std::string& value) = 0;
    virtual bool get_slopes(const Group& group, double* values) = 0;
    virtual fmi::Status get_state(fmi::State* state) = 0;
    virtual fmi::Status set_state(fmi::State state) = 0;
    virtual fmi::Status free_state(fmi::State* state) = 0;
    // Inputs at a communication point; FMI 3 may enter event mode for them.
    virtual bool set_inputs(const double* u);
    virtual bool evaluate(const double* u, double* y);
    virtual bool put_text(int port, const std::string& value);
    // One instant: what is present is set, and what is there can be got; then discrete states change.
    virtual bool react_now(double t, const double* u, const std::uint8_t* present, std::uint8_t* shown);
    virtual bool update_now(bool& again);
    // Clocks at an instant: those that tick are set, and what is clocked with them; then their ticks are
    // over.
    virtual bool tick_clocks(double, const double*, const std::uint8_t*, std::uint8_t*) { return true; }
    virtual bool end_ticks() { return true; }
    virtual bool leave_instants() { return true; }
    virtual void forget() {}  // what was set before: it went back
    virtual double last_time() { return std::numeric_limits<double>::quiet_NaN(); }  // as it tells itself
    // Whether its first steps are seen.
    bool settled() const { return watched_ > first_steps; }
    // Whether a state was saved, and it is not known yet that it moves nevertheless.
    bool rests() const {
        return rest_.watched && !rest_.trusted && (!rest_.moved || (!rest_.moved_behind && !lent_.empty()));
    }

    bool good(fmi::Status status, const char* function);
    bool wrong(std::string what, std::string remedy = "");
    static const char* const otherwise;  // the remedy where its state cannot be restored
    static std::string written(double value);
    bool report_failure(Call call, std::int64_t tick, std::int64_t ticks = 0);
    template <class F, class... Arguments> bool call(const Function<F>& function, Arguments... arguments) {
        if (!function) [[unlikely]]
            return wrong(std::string("its binary has no function ") + function.name);
        return good(function(instance_, arguments...), function.name);
    }
    Reach end_at(double t, double h, double reached);
    void note_stop(double reached);  // the step ended there
    // The length of a step, such that one to the stop time that the FMU was told ends there to the last bit.
    double within_stop(double t, double h) const;
    // An end that differs from the one asked for by rounding only is that end.
    static Reach judge_reach(Reach reach, double reached, double t, double h);
    // How far before its end an event is at the end of a step, for those whose level takes instants: all that
    // engine/reference/level.py takes for whole is.
    double slack(double t, double h) const;
    void set_ended(bool ended);       // it asks to end the simulation, from where it is now
    bool end_inside(double reached);  // it asks to do so before its step is whole: it fails
    bool trial() const { return newest_ != nullptr; }
    // noSetFMUStatePriorToCurrentPoint for a step from t: no state of an earlier time is kept.
    bool is_final(double t, double h);
    bool set_groups(const double* u);
    bool get_groups(double* y);
    bool finite(const double* y);
    template <class T> bool pack(const Group& group, const double* values, std::vector<T>& room);
    template <class T> bool unpack(const Group& group, const std::vector<T>& room, double* values);
    // A step under held inputs and its outputs, when every port is a real in one call each.
    bool plain() const {
        return straight_in_ && straight_out_ && setup.outputs > 0 && rows_ == 1 && !exchange_ &&
               setup.clocks.empty() && !setup.scheduled;
    }

    void integrate(int version);  // if it is for model exchange

    // All that a step of plain reals touches, in one cache line: a ring of many FMUs lives on this.
    struct alignas(64) Hot {
        bool feeds = false;  // outputs may be asked for again: it must be known what is set
        Stage stage{0};      // of these three, the one that was called last
        std::uint16_t inputs = 0, outputs = 0;
        fmi::Instance instance = nullptr;
        void (*const* calls)() = nullptr;  // set, doStep, get
        const fmi::Reference *in = nullptr, *out = nullptr;
        // Steps that reach it go the long way: all, unless it is stepping and there is nothing to note beside
        // set, doStep and get.
        double stop = -never;
        fmi::Reference kept[4] = {};
    };
    static_assert(sizeof(Hot) == 64);
    Hot hot_;
    void warm_up();  // after a step the long way: is the short way open?

    std::shared_ptr<Library> library_;
    DirectionalCalls directional_;
    Function<fmi::StateSize> state_size_;
    Function<fmi::SerialiseState> serialise_;
    Function<fmi::DeserialiseState> deserialise_;
    Callee callee_;  // for the last words, should it end the process
    fmi::Instance instance_ = nullptr;
    Phase phase_ = Phase::none;
    bool at_once_ = false;  // FMI 1: no initialisation mode, outputs come after it only
    bool straight_in_ = false, straight_out_ = false;  // one group of reals in the order of the ports
    int rows_ = 1;
    std::vector<double> known_;  // the inputs that are set
    double next_event_ = never;  // that it has told of (FMI 3)
    bool pending_ = false;       // an event at the time reached is to be handled, before anything else
    bool in_events_ = false;     // it is in event mode, between the instants of one time
    bool reacting_ = false;      // it is in an instant that is not committed, or asks for another
    bool stale_ = false;         // inputs were set there since its discrete states were updated
    // where it stands itself, at an event between two places of the clock; not a number: where its level does
    double own_ = std::numeric_limits<double>::quiet_NaN();
    Clock clock_;
    Clocks clocks_;
    std::vector<std::uint8_t> closed_in_,
        closed_out_;            // per port: its clocks do not tick; empty: none has any
    std::vector<double> last_;  // outputs as they were got last
    // Clocked texts: those that wait for a tick, and those that were got at the last one.
    std::vector<std::optional<std::string>> texts_in_;
    std::vector<std::string> texts_out_;
    Group part_;  // room
    static bool is_clocked(const std::vector<std::vector<int>>& clocks, int port) {
        return port < static_cast<int>(clocks.size()) && !clocks[port].empty();
    }
    const Group& open_part(const Group& group, const std::vector<std::uint8_t>& closed);
    Failure failure_;
    std::string problem_, remedy_;
    bool spoke_ = false;  // the problem is a status that it returned
    std::vector<std::string> notes_;
    bool ended_ = false;
    std::vector<double> room_;
    std::vector<Saved*> lent_;  // states in use: it may have to go back to any of them
    std::unique_ptr<Exchange> exchange_;

  private:
    bool try_step(double t, double h, const double* u);
    bool watch(const double* u, const double* y);
    bool watch_rest(const double* u, const double* y);
    double own_time();
    bool recall(Saved& saved);
    bool repeat(TrialStep& step, const std::vector<double>& last);
    Reach move(double t, double h, const double* u, double* reached);
    Saved* newest_ = nullptr;                         // whose next step is still to be noted
    std::int64_t restores_ = 0, check_at_ = 1;        // the number of the rewind that is tried out next
    bool proven_ = false;                             // a rewind was tried out after something had moved
    std::string unsaved_;                             // why its state must not be saved
    int life_ = 0;                                    // counts the instances: a state is of one of them
    std::vector<fmi::State> spare_;                   // states to be used again
    std::vector<std::unique_ptr<TrialStep>> trials_;  // the same for those
    int watched_ = first_steps + 1;        // how many of its first steps it has made; more: all are seen
    double ended_at_ = 0.0, least_ = 0.0;  // where the newest of them ended, and how exact that is
    FirstRows first_;
    // Since its state was first saved: whether anything moves, and whether it does in steps behind a state
    // that may still be restored.
    struct Rest {
        bool watched = false, trusted = false, moved = false, moved_behind = false;
        bool stepped = false, behind = false;  // the last step
        int still = 0, still_behind = 0, doubt_at = first_steps;
        double h = 0.0;
        std::vector<double> y, u, last, tried;
    } rest_;
};

// A state, and the first step made from it. Rewinds are not believed: that step is made again and must end
// alike, in the first rewind, in the first after outputs moved, and in every one that doubles their number.
class Saved {
  public:
    explicit Saved(std::shared_ptr<Fmu> fmu) : fmu(std::move(fmu)) {}
    ~Saved() { fmu->release(*this); }
    Saved(const Saved&) = delete;
    Saved& operator=(const Saved&) = delete;
    std::shared_ptr<Fmu> fmu;
    fmi::State state = nullptr;
    int life = 0;  // the instance it is of
    std::vector<double> known;
    double next_event = never, own = std::numeric_limits<double>::quiet_NaN();
    bool ended = false, pending = false, in_events = false, stale = false;
    std::vector<ClockState> clocks;
    std::vector<std::uint8_t> closed_in, closed_out;
    std::vector<double> last;
    std::vector<std::optional<std::string>> texts_in;
    std::vector<std::string> texts_out;
    std::vector<double> solution;                            // model exchange: where the integration stands
    double time = std::numeric_limits<double>::quiet_NaN();  // of the state: where the next step begins
    std::unique_ptr<TrialStep> trial;                        // where the rewind may be tried out
};

std::shared_ptr<Fmu> make_fmu1(std::shared_ptr<Library> library, Setup setup);
std::shared_ptr<Fmu> make_fmu2(std::shared_ptr<Library> library, Setup setup);
std::shared_ptr<Fmu> make_fmu3(std::shared_ptr<Library> library, Setup setup);

}  // namespace hocket
