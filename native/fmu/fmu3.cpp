// FMI 3.0; for co-simulation event mode, early return and intermediate update.
#include <algorithm>
#include <optional>

#include "fmu/fmu_log.hpp"
#include "fmu/fmu_values.hpp"

namespace hocket {

namespace {

using namespace fmi;

constexpr int rounds = 1000;  // of an event iteration, and of early returns at one time

template <class T> struct Access {
    Function<Set3<T>> set;
    Function<Get3<T>> get;
    Access(const Library& library, const char* set_name, const char* get_name) {
        library.find(set, set_name);
        library.find(get, get_name);
    }
};

// A byte stands for bool, which has no vector with addresses.
static_assert(sizeof(bool) == sizeof(std::uint8_t));

struct Accesses {
    explicit Accesses(const Library& library) : lib(library) {}
    const Library& lib;
    Access<double> real{lib, "fmi3SetFloat64", "fmi3GetFloat64"};
    Access<float> float32{lib, "fmi3SetFloat32", "fmi3GetFloat32"};
    Access<std::int8_t> int8{lib, "fmi3SetInt8", "fmi3GetInt8"};
    Access<std::uint8_t> uint8{lib, "fmi3SetUInt8", "fmi3GetUInt8"};
    Access<std::int16_t> int16{lib, "fmi3SetInt16", "fmi3GetInt16"};
    Access<std::uint16_t> uint16{lib, "fmi3SetUInt16", "fmi3GetUInt16"};
    Access<std::int32_t> int32{lib, "fmi3SetInt32", "fmi3GetInt32"};
    Access<std::uint32_t> uint32{lib, "fmi3SetUInt32", "fmi3GetUInt32"};
    Access<std::int64_t> int64{lib, "fmi3SetInt64", "fmi3GetInt64"};
    Access<std::uint64_t> uint64{lib, "fmi3SetUInt64", "fmi3GetUInt64"};
    Access<std::uint8_t> boolean{lib, "fmi3SetBoolean", "fmi3GetBoolean"};
    Access<Text> text{lib, "fmi3SetString", "fmi3GetString"};
};

class Fmu3 final : public Fmu {
  public:
    Fmu3(std::shared_ptr<Library> library, Setup given)
        : Fmu(std::move(library), std::move(given)), values_(*library_) {
        const Library& lib = *library_;
        lib.need(free_, "fmi3FreeInstance");
        lib.need(enter_, "fmi3EnterInitializationMode");
        lib.need(exit_, "fmi3ExitInitializationMode");
        lib.need(terminate_, "fmi3Terminate");
        lib.need(values_.real.set, "fmi3SetFloat64");
        lib.need(values_.real.get, "fmi3GetFloat64");
        lib.find(enter_configuration_, "fmi3EnterConfigurationMode");
        lib.find(exit_configuration_, "fmi3ExitConfigurationMode");
        lib.find(enter_events_, "fmi3EnterEventMode");
        lib.find(enter_steps_, "fmi3EnterStepMode");
        lib.find(update_, "fmi3UpdateDiscreteStates");
        lib.find(get_derivatives_, "fmi3GetOutputDerivatives");
        lib.find(get_state_, "fmi3GetFMUState");
        lib.find(set_state_, "fmi3SetFMUState");
        lib.find(free_state_, "fmi3FreeFMUState");
        lib.find(state_size_, "fmi3SerializedFMUStateSize");
        lib.find(serialise_, "fmi3SerializeFMUState");
        lib.find(deserialise_, "fmi3DeserializeFMUState");
        lib.find(set_binary_, "fmi3SetBinary");
        lib.find(get_binary_, "fmi3GetBinary");
        lib.find(set_clock_, "fmi3SetClock");
        lib.find(get_clock_, "fmi3GetClock");
        lib.find(get_interval_, "fmi3GetIntervalDecimal");
        lib.find(get_interval_fraction_, "fmi3GetIntervalFraction");
        lib.find(get_shift_, "fmi3GetShiftDecimal");
        lib.find(get_shift_fraction_, "fmi3GetShiftFraction");
        directional_ = DirectionalCalls(lib, 3);
        if (setup.scheduled) {
            lib.need(instantiate_scheduled_, "fmi3InstantiateScheduledExecution");
            lib.need(activate_, "fmi3ActivateModelPartition");
        } else if (setup.exchange) {
            lib.need(instantiate_exchange_, "fmi3InstantiateModelExchange");
            integrate(3);
        } else {
            lib.need(instantiate_, "fmi3InstantiateCoSimulation");
            lib.need(step_, "fmi3DoStep");
        }
        setup.events = setup.events && enter_events_ && enter_steps_ && update_;
        find_intermediate();
        texts_.resize(setup.texts_in.size());
    }
    ~Fmu3() override { close(); }

    bool can_save() const override { return get_state_ && set_state_ && free_state_; }

    StepOutput step_output() const override {
        if (!plain() || (setup.events && !setup.discrete.empty())) return Fmu::step_output();
        return [](Simulator& self, const Span& span, const double* u, double* y) {
            return static_cast<Fmu3&>(self).both(span, u, y);
        };
    }

    bool configure(bool enter) override { return call(enter ? enter_configuration_ : exit_configuration_); }

  private:
    // Inputs that follow their polynomials during a step; arrays have more values than references and do not.
    void find_intermediate() {
        for (const Group& group : setup.set)
            for (std::size_t k = 0; k < group.references.size(); ++k) {
                const bool wanted =
                    std::count(setup.continuous.begin(), setup.continuous.end(), group.places[k]) > 0;
                if (!wanted || group.type != Type::real || group.references.size() != group.places.size())
                    continue;
                intermediate_.push_back(group.references[k]);
                intermediate_places_.push_back(group.places[k]);
            }
    }

    bool both(const Span& span, const double* u, double* y) {
        if (phase_ != Phase::stepping || trial() || pending_ || in_events_ || !settled() || rests())
            [[unlikely]]
            return Fmu::step(span, u) && Fmu::output(span.tick + span.ticks, u, y);
        if (setup.inputs > 0) {
            const Group& in = setup.set[0];
            if (!call(values_.real.set, in.references.data(), in.references.size(), u, in.places.size()))
                [[unlikely]]
                return report_failure(Call::step, span.tick, span.ticks);
            if (setup.feeds_through) std::copy(u, u + setup.inputs, known_.begin());
        }
        double reached = span.t;
        const Reach reach = advance(span.t, within_stop(span.t, span.h), u, &reached);
        if (reach != Reach::whole) [[unlikely]] {
            if (reach == Reach::early) note_stop(reached);
            return report_failure(Call::step, span.tick, span.ticks);
        }
        const Group& out = setup.get[0];
        if (!call(values_.real.get, out.references.data(), out.references.size(), y, out.places.size()))
            [[unlikely]]
            return report_failure(Call::output, span.tick + span.ticks);
        return finite(y);
    }

    Instance create() override {
        const Logger3 logger = [](void* self, Status status, Text category, Text message) {
            const auto& name = static_cast<Fmu3*>(self)->setup.name;
            log({name, status, category ? category : "", message ? message : ""});
        };
        if (setup.scheduled)
            return instantiate_scheduled_(
                setup.name.c_str(), setup.token.c_str(), setup.resources.c_str(), false, setup.logging, this,
                logger, [](void*) {}, [] {}, [] {});
        if (setup.exchange)
            return instantiate_exchange_(setup.name.c_str(), setup.token.c_str(), setup.resources.c_str(),
                                         false, setup.logging, this, logger);
        const bool curves = !intermediate_.empty();
        const auto instantiate = [&] {
            return instantiate_(setup.name.c_str(), setup.token.c_str(), setup.resources.c_str(), false,
                                setup.logging, setup.events, setup.events || setup.early,
                                curves ? intermediate_.data() : nullptr, intermediate_.size(), this, logger,
                                curves ? update : nullptr);
        };
        const Instance made = instantiate();
        if (made || !setup.events) return made;
        setup.events = false;
        const Instance without = instantiate();
        setup.events = !without;
        if (without)
            notes_.push_back(
                "it declares event mode and cannot be instantiated with it: it is run without, and handles "
                "its events inside its steps");
        return without;
    }
    void destroy() override { free_(instance_); }
    bool enter_initialisation() override {
        const Experiment& run = experiment_;
        return call(enter_, run.tolerant, run.tolerance, run.t, run.stops, run.stop);
    }
    bool leave_initialisation() override {
        if (!call(exit_)) return false;
        if (!clocks_.empty()) return start_clocks();
        return !setup.events || leave_events();
    }
    void terminate() override { call(terminate_); }
    void forget() override { texts_.assign(texts_.size(), std::nullopt); }

    // events

    bool enter_events() { return call(enter_events_); }
    bool settle() {
        bool again = true;
        for (int round = 0; again; ++round) {
            if (round > rounds)
                return wrong("its events do not settle: fmi3UpdateDiscreteStates asked for 1000 rounds");
            if (!update_now(again)) return false;
        }
        return true;
    }
    bool leave_events() { return settle() && call(enter_steps_); }
    // What happened at the time reached and was not handled, or not left, before anything else.
    bool leave_instants() override {
        if (!pending_ && !in_events_) return true;
        const bool here = in_events_, unsettled = pending_ || stale_;
        pending_ = in_events_ = false;
        owed_.reset();
        clocks_.end_time();
        if (setup.scheduled) return true;
        if (!here) return enter_events() && leave_events();
        return unsettled ? leave_events() : call(enter_steps_);
    }
    bool react_now(double t, const double* u, const std::uint8_t* present, std::uint8_t* shown) override {
        if (!in_events_ && !setup.scheduled && !enter_events()) return false;
        in_events_ = true;
        owed_.reset();
        return clocks_.empty() ? put_now(u) : tick_clocks(t, u, present, shown);
    }
    bool tick_clocks(double t, const double* u, const std::uint8_t* present, std::uint8_t* shown) override {
        clocks_.activate(t, setup.grid, present);
        open_ports();
        if (setup.scheduled) return set_groups(u) && set_ticked_texts() && activate_parts(t, shown);
        if (!set_active_clocks()) return false;
        stale_ = true;  // what is clocked is present, the same value or not
        return set_groups(u) && set_ticked_texts() && show_clocks(shown);
    }
    bool update_now(bool& again) override {
        bool terminates = false, nominals = false, states = false, defined = false;
        double next = 0.0;
        again = false;
        if (setup.scheduled) {
            pending_ = stale_ = false;
            return end_ticks();
        }
        if (!call(update_, &again, &terminates, &nominals, &states, &defined, &next)) return false;
        pending_ = stale_ = false;
        next_event_ = defined && !terminates ? next : never;
        if (terminates) {
            set_ended(true);
            again = false;
        }
        return clocks_.empty() || end_ticks();
    }

    // clocks

    bool start_clocks() {
        const auto count = [](std::size_t size) { return std::vector<std::uint8_t>(size, 0); };
        closed_in_ = count(setup.clocked_in.size());
        closed_out_ = count(setup.clocked_out.size());
        activated_.assign(clocks_.setup.size(), 0);
        texts_in_.assign(setup.clocked_texts_in.size(), std::nullopt);
        texts_out_.assign(setup.clocked_texts_out.size(), "");
        for (std::size_t k = 0; k < clocks_.setup.size(); ++k)
            if (clocks_.setup[k].told && !ask_shift(static_cast<int>(k))) return false;
        clocks_.start(experiment_.t);
        fresh_ = true;
        for (std::size_t k = 0; k < clocks_.setup.size(); ++k)
            if (clocks_.setup[k].told && !ask_interval(static_cast<int>(k))) return false;
        if (!has_ticks()) return false;
        if (setup.grid == 0.0) {  // nothing ticks: a trial
            open_ports();
            return exchange_ || !setup.events || leave_events();
        }
        std::vector<double> first(static_cast<std::size_t>(setup.outputs));
        if (!get_groups(first.data())) return false;
        open_ports();
        in_events_ = pending_ = true;  // event mode directly follows initialisation
        return true;
    }
    bool refuse_interval(int k) {
        const std::string clock = "the interval of its clock `" + clocks_.setup[k].name + "` is ";
        if (!told_.fits) return wrong(clock + told_text_ + ", which is not a fraction in 64 bits");
        return wrong(clock + told_text_ + ": that of a periodic clock must be above zero, none below");
    }
    bool ask_interval(int k) {
        const ClockSetup& clock = clocks_.setup[k];
        constexpr std::size_t one = 1;
        Qualifier3 qualifier = changed;
        if (clock.fractions && get_interval_fraction_) {
            std::uint64_t counter = 0, resolution = 1;
            if (!call(get_interval_fraction_, &clock.reference, one, &counter, &resolution, &qualifier))
                return false;
            if (resolution == 0) resolution = 1;
            told_ = Ratio::reduce(counter, resolution);
            told_text_ = std::to_string(counter) + "/" + std::to_string(resolution) + " s";
        } else {
            double seconds = 0.0;
            if (!call(get_interval_, &clock.reference, one, &seconds, &qualifier)) return false;
            told_text_ = written(seconds) + " s";
            told_ = std::isfinite(seconds) ? Ratio::of(seconds) : Ratio{-1, 1};
        }
        if (qualifier != changed && !(clock.kind == ClockSetup::Kind::periodic && fresh_)) return true;
        return clocks_.set_interval(k, told_) || refuse_interval(k);
    }
    bool ask_shift(int k) {
        ClockSetup& clock = clocks_.setup[k];
        constexpr std::size_t one = 1;
        if (clock.kind != ClockSetup::Kind::periodic) return true;
        if (clock.fractions && get_shift_fraction_) {
            std::uint64_t counter = 0, resolution = 1;
            if (!call(get_shift_fraction_, &clock.reference, one, &counter, &resolution)) return false;
            clock.shift = Ratio::reduce(counter, resolution ? resolution : 1);
            told_text_ = std::to_string(counter) + "/" + std::to_string(resolution) + " s";
        } else if (get_shift_) {
            double seconds = 0.0;
            if (!call(get_shift_, &clock.reference, one, &seconds)) return false;
            clock.shift = std::isfinite(seconds) ? Ratio::of(seconds) : Ratio{-1, 1};
            told_text_ = written(seconds) + " s";
        }
        if (clock.shift.fits && clock.shift.n >= 0) return true;
        return wrong(
            "the shift of its clock `" + clock.name + "` is " + told_text_ +
            (clock.shift.fits ? ": it must not be below zero" : ", which is not a fraction in 64 bits"));
    }
    // Clocked variables have values while a clock of theirs ticks.
    void open_ports() {
        const auto open = [&](const std::vector<std::vector<int>>& clocks,
                              std::vector<std::uint8_t>& closed) {
            for (std::size_t k = 0; k < clocks.size(); ++k)
                closed[k] =
                    !clocks[k].empty() && std::none_of(clocks[k].begin(), clocks[k].end(),
                                                       [&](int c) { return clocks_.state[c].active; });
        };
        open(setup.clocked_in, closed_in_);
        open(setup.clocked_out, closed_out_);
        for (const ClockSetup& clock : clocks_.setup)  // what triggers a clock is no value
            if (clock.kind == ClockSetup::Kind::triggered && clock.place >= 0) closed_in_[clock.place] = 1;
    }
    bool set_active_clocks() {
        references_.clear();
        for (int k : clocks_.order)
            if (clocks_.state[k].active) references_.push_back(clocks_.setup[k].reference);
        const std::vector<std::uint8_t> on(references_.size(), 1);
        return references_.empty() || call(set_clock_, references_.data(), references_.size(),
                                           reinterpret_cast<const bool*>(on.data()));
    }
    bool ticks(const std::vector<int>& clocks) const {
        return std::any_of(clocks.begin(), clocks.end(), [&](int k) { return clocks_.state[k].active; });
    }
    // Texts that wait for the clocks that tick now.
    bool set_ticked_texts() {
        for (std::size_t k = 0; k < setup.clocked_texts_in.size(); ++k)
            if (texts_in_[k] && ticks(setup.clocked_texts_in[k]) &&
                !Fmu::put_text(static_cast<int>(k), *texts_in_[k]))
                return false;
        return true;
    }
    bool get_ticked_texts() {
        for (std::size_t k = 0; k < setup.clocked_texts_out.size(); ++k)
            if (ticks(setup.clocked_texts_out[k]) &&
                !read_text(setup.texts_out[k], setup.binary_out[k], texts_out_[k]))
                return false;
        return true;
    }
    // Which outputs are present: clocks that tick, and what is clocked by them.
    bool show_clocks(std::uint8_t* shown) {
        for (std::size_t k = 0; k < clocks_.setup.size(); ++k) {
            const ClockSetup& clock = clocks_.setup[k];
            if (clock.is_timed() && clock.place >= 0) shown[clock.place] = clocks_.state[k].active;
            if (clock.kind != ClockSetup::Kind::output) continue;
            bool ticks = false;
            constexpr std::size_t one = 1;
            if (!call(get_clock_, &clock.reference, one, &ticks)) return false;
            clocks_.state[k].active = clocks_.state[k].active || ticks;
            if (clock.place >= 0) shown[clock.place] = clocks_.state[k].active;
        }
        open_ports();
        for (std::size_t k = 0; k < setup.clocked_out.size(); ++k)
            if (!setup.clocked_out[k].empty()) shown[k] = !closed_out_[k];
        return get_ticked_texts();
    }
    // Scheduled execution: one part of the model after the other, none interrupts another.
    bool activate_parts(double t, std::uint8_t* shown) {
        for (int k : clocks_.order) {
            if (!clocks_.state[k].active || activated_[k]) continue;
            activated_[k] = 1;
            if (!call(activate_, clocks_.setup[k].reference, t) || !show_clocks(shown)) return false;
        }
        return show_clocks(shown);
    }
    // The ticks of an instant are over: what is next is known only now.
    bool end_ticks() override {
        const std::vector<ClockState> before = clocks_.state;
        clocks_.end_instant();
        activated_.assign(activated_.size(), 0);
        open_ports();
        for (std::size_t k = 0; k < clocks_.setup.size(); ++k) {
            const ClockSetup& clock = clocks_.setup[k];
            const bool wanted = (clock.kind == ClockSetup::Kind::changing && (before[k].active || fresh_)) ||
                                clock.kind == ClockSetup::Kind::countdown ||
                                (clock.kind == ClockSetup::Kind::periodic && clock.tunable);
            if (wanted && !ask_interval(static_cast<int>(k))) return false;
        }
        fresh_ = false;
        return has_ticks();
    }
    bool has_ticks() {
        const std::string fault = clocks_.find_fault();
        return fault.empty() || wrong(fault, "intervals that are whole multiples of one tick, such as 1 ns");
    }
    // Inputs in event mode.
    bool put_now(const double* u) {
        if (std::equal(known_.begin(), known_.end(), u)) return true;
        stale_ = true;
        return set_groups(u);
    }
    // Inputs before an event that is pending: those that may change only there stay.
    bool put_before(const double* u) {
        if (!setup.feeds_through || std::equal(known_.begin(), known_.end(), u)) return true;
        if (!jumps(u)) return set_groups(u);
        before_.assign(u, u + setup.inputs);
        for (int k : setup.discrete) before_[k] = known_[k];
        return set_groups(before_.data());
    }
    // A step ended at an event and may be made again, to there: the event must come again.
    struct OwedEvent {
        double t, at, h;
        std::vector<double> u;
    };
    bool is_gone(double end) {
        if (!owed_ || end < owed_->at + 1e-3 * owed_->h) return false;
        wrong("it stopped at t = " + written(owed_->at) +
                  " s for an event, its state was restored, and when the step was made again the event was "
                  "gone: its saved state lacks what tells events",
              otherwise);
        owed_.reset();
        return true;
    }
    void owe_event(double t, double at, double h, const double* u) {
        owed_ = OwedEvent{t, at, h, {u, u + static_cast<std::size_t>(rows_) * setup.inputs}};
    }
    // Under other inputs, or from further back, the event may be another.
    void compare_owed(double t, double h, const double* u) {
        if (!owed_) return;
        const double least = 1e-9 * std::max(std::fabs(t), h);
        const auto count = static_cast<std::size_t>(rows_) * setup.inputs;
        const bool alike = owed_->u.size() == count && std::equal(owed_->u.begin(), owed_->u.end(), u);
        if (!alike || t < owed_->t - least) owed_.reset();
    }
    bool jumps(const double* u) const {
        return std::any_of(setup.discrete.begin(), setup.discrete.end(),
                           [&](int k) { return known_[k] != u[k]; });
    }
    bool set_inputs(const double* u) override {
        if (!leave_instants()) return false;
        if (setup.inputs == 0) return true;
        if (phase_ != Phase::stepping || !setup.events || !jumps(u)) return set_groups(u);
        return enter_events() && set_groups(u) && leave_events();
    }
    // In event mode outputs may be got after inputs were set; in step mode FMI 3 leaves that to the FMU.
    bool evaluate(const double* u, double* y) override {
        if (in_events_) return put_now(u) && get_groups(y);
        if (setup.grid > 0.0 && pending_) return put_before(u) && get_groups(y);
        if (!leave_instants()) return false;
        if (!setup.feeds_through || std::equal(known_.begin(), known_.end(), u)) return get_groups(y);
        if (!setup.events) return set_groups(u) && get_groups(y);
        return enter_events() && set_groups(u) && settle() && get_groups(y) && call(enter_steps_);
    }
    bool put_text(int port, const std::string& value) override {
        if (is_clocked(setup.clocked_texts_in, port)) {
            if (static_cast<std::size_t>(port) < texts_in_.size()) texts_in_[port] = value;
            return true;
        }
        if (phase_ != Phase::stepping || !setup.events) return Fmu::put_text(port, value);
        if (texts_[port] == value) return true;
        texts_[port] = value;
        if (in_events_) return stale_ = true, Fmu::put_text(port, value);
        return enter_events() && Fmu::put_text(port, value) && leave_events();
    }

    // In one call, if nothing happens on the way; an event that it has told of is a place to stop at.
    Reach advance(double t, double h, const double* u, double* reached) override {
        if (setup.scheduled) return Reach::whole;  // only clocks move it
        const double end = t + h, least = 1e-12 * std::max(std::fabs(end), h);
        const double margin = std::max(least, slack(t, h));  // an event so near is at the end
        double from = std::isnan(own_) ? t : own_;
        own_ = std::nan("");
        u_ = u;
        began_ = t;
        compare_owed(t, h, u);
        for (int still = 0;;) {
            const bool ahead = setup.variable && next_event_ > from + least;
            const bool told = ahead && next_event_ < end - margin;
            const bool last = ahead && !told && next_event_ <= end + setup.grid && setup.grid > 0.0;
            const double to = told || last ? next_event_ : end;
            const double length = from == t && to == end ? h : to - from;
            bool events = false, terminates = false, early = false;
            double at = to;
            const Status status =
                step_(instance_, from, length, is_final(from, h), &events, &terminates, &early, &at);
            if (status > warning) [[unlikely]] {
                *reached = from;
                if (status == discard && terminates) return end_at(t, h, from);
                return status == discard ? Reach::early : (good(status, step_.name), Reach::failed);
            }
            if (at != to && !early) [[unlikely]]
                note_time(at, to, h);
            if (!(events || terminates || early) && next_event_ > end + std::max(least, setup.grid))
                [[likely]]
                return owed_ && is_gone(end) ? Reach::failed : Reach::whole;
            if (events) owed_.reset();
            const bool short_of = early && at < to - margin;
            *reached = short_of ? at : to;
            if (terminates) return end_at(t, h, *reached);
            if (short_of && setup.early && at > t + least) {  // an event at t itself is handled here
                pending_ = events && setup.events;
                if (pending_) owe_event(t, at, h, u);
                if (setup.grid > 0.0) own_ = at;
                return Reach::early;
            }
            const bool due = events || next_event_ <= *reached + std::max(least, setup.grid);
            if (setup.grid > 0.0 && due && setup.events && !short_of && !told) {
                pending_ = true;  // for the instants of its level
                own_ = early ? at : to;
                return Reach::whole;
            }
            if (due && setup.events && !(enter_events() && leave_events())) return Reach::failed;
            if (ended_) return *reached >= end - least ? Reach::whole : (end_inside(*reached), Reach::failed);
            if (!short_of && !told) return Reach::whole;
            still = *reached > from ? 0 : still + 1;
            if (still > rounds)
                return wrong("it returns early again and again without moving on"), Reach::failed;
            from = *reached;
            if (!follow(from)) return Reach::failed;
        }
    }
    // It has stepped as it was asked to, and tells another time: whether it got there only it knows.
    void note_time(double at, double to, double h) {
        if (time_noted_ || std::fabs(at - to) <= 1e-6 * h) return;
        time_noted_ = true;
        notes_.push_back("it tells " + written(at) + " s as its time after a step to t = " + written(to) +
                         " s (lastSuccessfulTime), and not that it returned early: the step is taken for "
                         "whole, and its outputs for those at its end");
    }
    // The inputs as they are at a time inside the step.
    bool follow(double t) {
        if (rows_ == 1 || intermediate_.empty()) return true;
        room_.resize(intermediate_.size());
        for (std::size_t k = 0; k < room_.size(); ++k) {
            double value = 0.0;
            for (int power = rows_ - 1; power >= 0; --power)
                value = value * (t - began_) + u_[power * setup.inputs + intermediate_places_[k]];
            room_[k] = value;
        }
        return call(values_.real.set, intermediate_.data(), intermediate_.size(), room_.data(), room_.size());
    }
    static void update(void* self, double t, bool may_set, bool, bool, bool, bool* stop, double*) {
        if (stop) *stop = false;
        if (may_set) static_cast<Fmu3*>(self)->follow(t);
    }

    // values

    template <class Use> bool with_access(Type type, Use use) {
        switch (type) {
            case Type::real: return use(values_.real);
            case Type::float32: return use(values_.float32);
            case Type::int8: return use(values_.int8);
            case Type::uint8: return use(values_.uint8);
            case Type::int16: return use(values_.int16);
            case Type::uint16: return use(values_.uint16);
            case Type::int32: return use(values_.int32);
            case Type::uint32: return use(values_.uint32);
            case Type::int64: return use(values_.int64);
            case Type::uint64: return use(values_.uint64);
            case Type::boolean: return use(values_.boolean);
            default: return wrong("a port that is no number");
        }
    }
    bool set_group(const Group& group, const double* values) override {
        const auto& r = group.references;
        if (straight_in_ && &group == setup.set.data())
            return call(values_.real.set, r.data(), r.size(), values, group.places.size());
        return with_access(group.type, [&]<class T>(const Access<T>& access) {
            static thread_local std::vector<T> room;
            return pack(group, values, room) &&
                   call(access.set, r.data(), r.size(), room.data(), room.size());
        });
    }
    bool get_group(const Group& group, double* values) override {
        const auto& r = group.references;
        if (straight_out_ && &group == setup.get.data())
            return call(values_.real.get, r.data(), r.size(), values, group.places.size());
        return with_access(group.type, [&]<class T>(const Access<T>& access) {
            static thread_local std::vector<T> room;
            room.resize(group.places.size());
            return call(access.get, r.data(), r.size(), room.data(), room.size()) &&
                   unpack(group, room, values);
        });
    }
    bool set_whole(Type type, const std::vector<Reference>& references,
                   const std::vector<std::int64_t>& values) override {
        return with_access(type, [&]<class T>(const Access<T>& access) {
            std::vector<T> room;
            for (std::int64_t value : values)
                room.push_back(static_cast<T>(value));  // ranges were checked by Python
            return call(access.set, references.data(), references.size(), room.data(), room.size());
        });
    }
    bool write_texts(const Reference* references, std::size_t count, const std::string* values,
                     bool binary) override {
        std::vector<std::size_t> sizes;
        std::vector<Binary> data;
        std::vector<Text> texts;
        for (std::size_t k = 0; k < count; ++k) {
            sizes.push_back(values[k].size());
            data.push_back(reinterpret_cast<Binary>(values[k].data()));
            texts.push_back(values[k].c_str());
        }
        return binary ? call(set_binary_, references, count, sizes.data(), data.data(), count)
                      : call(values_.text.set, references, count, texts.data(), count);
    }
    bool read_text(Reference reference, bool binary, std::string& value) override {
        constexpr std::size_t one = 1;
        std::size_t size = 0;
        Binary data = nullptr;
        Text text = nullptr;
        if (!(binary ? call(get_binary_, &reference, one, &size, &data, one)
                     : call(values_.text.get, &reference, one, &text, one)))
            return false;
        value = text ? text : data ? std::string(reinterpret_cast<const char*>(data), size) : "";
        return true;
    }
    bool get_slopes(const Group& group, double* values) override {
        orders_.assign(group.references.size(), 1);
        return call(get_derivatives_, group.references.data(), group.references.size(), orders_.data(),
                    values, group.places.size());
    }
    Status get_state(State* state) override { return get_state_(instance_, state); }
    Status set_state(State state) override { return set_state_(instance_, state); }
    Status free_state(State* state) override { return free_state_(instance_, state); }

    Accesses values_;
    Function<InstantiateCs3> instantiate_;
    Function<InstantiateMe3> instantiate_exchange_;
    Function<Free> free_;
    Function<Enter3> enter_;
    Function<Simple> exit_, terminate_, enter_configuration_, exit_configuration_, enter_events_,
        enter_steps_;
    Function<Step3> step_;
    Function<UpdateDiscrete3> update_;
    Function<GetDerivatives3> get_derivatives_;
    Function<GetState> get_state_, free_state_;
    Function<SetState> set_state_;
    Function<SetBinary> set_binary_;
    Function<GetBinary> get_binary_;
    std::vector<Reference> intermediate_;
    std::vector<int> intermediate_places_;
    std::vector<std::int32_t> orders_;
    std::vector<double> before_;
    Function<InstantiateSe3> instantiate_scheduled_;
    Function<ActivatePartition3> activate_;
    Function<SetClock3> set_clock_;
    Function<GetClock3> get_clock_;
    Function<GetInterval3> get_interval_;
    Function<GetIntervalFraction3> get_interval_fraction_;
    Function<GetShift3> get_shift_;
    Function<GetShiftFraction3> get_shift_fraction_;
    std::vector<Reference> references_;
    std::vector<std::uint8_t> activated_;
    Ratio told_;
    std::string told_text_;                          // as the FMU told it
    bool fresh_ = false;                             // nothing has ticked yet
    std::vector<std::optional<std::string>> texts_;  // that it has
    const double* u_ = nullptr;
    double began_ = 0.0;
    std::optional<OwedEvent> owed_;
    bool time_noted_ = false;
};

}  // namespace

std::shared_ptr<Fmu> make_fmu3(std::shared_ptr<Library> library, Setup setup) {
    return std::make_shared<Fmu3>(std::move(library), std::move(setup));
}

}  // namespace hocket
