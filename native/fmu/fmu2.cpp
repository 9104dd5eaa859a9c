// FMI 2.0.
#include "engine/level_state.hpp"
#include "fmu/fmu_classic.hpp"

namespace hocket {

namespace {

using namespace fmi;

class Fmu2 final : public Classic<Boolean2> {
  public:
    Fmu2(std::shared_ptr<Library> library, Setup given) : Classic(std::move(library), std::move(given)) {
        const Library& lib = *library_;
        lib.need(instantiate_, "fmi2Instantiate");
        lib.need(free_, "fmi2FreeInstance");
        lib.need(setup_, "fmi2SetupExperiment");
        lib.need(enter_, "fmi2EnterInitializationMode");
        lib.need(exit_, "fmi2ExitInitializationMode");
        lib.need(terminate_, "fmi2Terminate");
        lib.need(set_real_, "fmi2SetReal");
        lib.need(get_real_, "fmi2GetReal");
        lib.find(set_integer_, "fmi2SetInteger");
        lib.find(get_integer_, "fmi2GetInteger");
        lib.find(set_boolean_, "fmi2SetBoolean");
        lib.find(get_boolean_, "fmi2GetBoolean");
        lib.find(set_string_, "fmi2SetString");
        lib.find(get_string_, "fmi2GetString");
        lib.find(set_derivatives_, "fmi2SetRealInputDerivatives");
        lib.find(get_derivatives_, "fmi2GetRealOutputDerivatives");
        lib.find(get_state_, "fmi2GetFMUstate");
        lib.find(set_state_, "fmi2SetFMUstate");
        lib.find(free_state_, "fmi2FreeFMUstate");
        lib.find(state_size_, "fmi2SerializedFMUstateSize");
        lib.find(serialise_, "fmi2SerializeFMUstate");
        lib.find(deserialise_, "fmi2DeSerializeFMUstate");
        lib.find(real_status_, "fmi2GetRealStatus");
        lib.find(boolean_status_, "fmi2GetBooleanStatus");
        directional_ = DirectionalCalls(lib, 2);
        if (setup.exchange)
            integrate(2);
        else {
            lib.need(step_, "fmi2DoStep");
            library_->share_calls({reinterpret_cast<void (*)()>(set_real_.call),
                                   reinterpret_cast<void (*)()>(step_.call),
                                   reinterpret_cast<void (*)()>(get_real_.call)});
        }
        callbacks_ = {log_variadic, std::calloc, std::free, nullptr, nullptr};
    }
    ~Fmu2() override { close(); }

    bool can_save() const override { return get_state_ && set_state_ && free_state_; }

    StepOutput step_output() const override {
        if (!plain()) return Fmu::step_output();
        return [](Simulator& self, const Span& span, const double* u, double* y) {
            return static_cast<Fmu2&>(self).both(span, u, y);
        };
    }

    // Most of the short way is what the FMUs do: in a run nothing is called beside them.
    StepRun step_run() const override {
        if (!plain()) return nullptr;
        return [](Slot* slot, Slot* last, const Span& span, const double* u, double* y) -> RunEnd {
            const std::int64_t tick = span.tick, after = span.tick + span.ticks;
            const double end = span.t + span.h;
            bool good = true;
            for (; slot != last && slot->tick == tick; ++slot) {
                if (last - slot > ahead) __builtin_prefetch(&static_cast<Fmu2*>(slot[ahead].simulator)->hot_);
                Fmu2& fmu = static_cast<Fmu2&>(*slot->simulator);
                if (end >= fmu.hot_.stop) [[unlikely]]
                    break;
                slot->tick = after;
                if (!fmu.both_the_short_way(span, u + slot->u, y + slot->y)) [[unlikely]] {
                    good = false;
                    break;
                }
            }
            foreign_call.stage = nullptr;
            return {slot, good};
        };
    }

  private:
    static constexpr int ahead = 4;  // how many FMUs ahead memory is fetched

    bool both(const Span& span, const double* u, double* y) {
        if (span.t + span.h >= hot_.stop) [[unlikely]]
            return both_the_long_way(span, u, y);
        const bool good = both_the_short_way(span, u, y);
        foreign_call.stage = nullptr;
        return good;
    }
    // Whoever calls it says afterwards that no stage is under way.
    [[gnu::always_inline]] bool both_the_short_way(const Span& span, const double* u, double* y) {
        Hot& hot = hot_;
        // by hand, in the cache line that is here anyway: a scope would take a nanosecond longer
        const auto enter = [&hot](unsigned char stage) { hot.stage.store(stage, std::memory_order_relaxed); };
        foreign_call.stage = &hot.stage;
        if (hot.inputs > 0) [[likely]] {
            enter(1);
            const Status set =
                reinterpret_cast<Set<double>*>(hot.calls[0])(hot.instance, hot.in, hot.inputs, u);
            if (set > warning) [[unlikely]]
                return fail_inputs(set, span);
            if (hot.feeds) std::copy(u, u + hot.inputs, known_.begin());
        }
        enter(2);
        const Status stepped = reinterpret_cast<Step2*>(hot.calls[1])(hot.instance, span.t, span.h, 1);
        if (stepped > warning) [[unlikely]]
            return end_early(stepped, span, u, y);
        enter(3);
        const Status got =
            reinterpret_cast<Get<double>*>(hot.calls[2])(hot.instance, hot.out, hot.outputs, y);
        if (got > warning) [[unlikely]]
            return fail_outputs(got, span);
        double sum = y[0] - y[0];
        for (int k = 1; k < hot.outputs; ++k) sum += y[k] - y[k];
        if (sum == 0.0) [[likely]]
            return true;
        return finite(y);
    }
    // What is rare stands apart, so that a step saves few registers.
    [[gnu::noinline, gnu::cold]] bool both_the_long_way(const Span& span, const double* u, double* y) {
        if (!Fmu::step(span, u) || !Fmu::output(span.tick + span.ticks, u, y)) return false;
        warm_up();
        return true;
    }
    [[gnu::noinline, gnu::cold]] bool fail_inputs(Status set, const Span& span) {
        foreign_call.stage = nullptr;
        return good(set, set_real_.name), report_failure(Call::step, span.tick, span.ticks);
    }
    [[gnu::noinline, gnu::cold]] bool end_early(Status stepped, const Span& span, const double* u,
                                                double* y) {
        foreign_call.stage = nullptr;
        return late(stepped, span) && Fmu::output(span.tick + span.ticks, u, y);
    }
    [[gnu::noinline, gnu::cold]] bool fail_outputs(Status got, const Span& span) {
        return good(got, get_real_.name), report_failure(Call::output, span.tick + span.ticks);
    }
    bool late(Status status, const Span& span) {
        double reached = span.t;
        const Reach reach = find_reach(status, span.t, span.h, &reached);
        if (reach == Reach::early) note_stop(reached);
        return reach == Reach::whole || report_failure(Call::step, span.tick, span.ticks);
    }

    Instance create() override {
        return instantiate_(setup.name.c_str(), setup.exchange ? model_exchange2 : co_simulation2,
                            setup.token.c_str(), setup.resources.c_str(), &callbacks_, 0, setup.logging);
    }
    void destroy() override { free_(instance_); }
    bool set_up() override {
        const Experiment& run = experiment_;
        return call(setup_, run.tolerant, run.tolerance, run.t, run.stops, run.stop);
    }
    bool enter_initialisation() override { return call(enter_); }
    bool leave_initialisation() override { return call(exit_); }
    void terminate() override { call(terminate_); }

    Reach advance(double t, double h, const double* u, double* reached) override {
        if (!set_derivatives(u)) return Reach::failed;
        const Status status = step_(instance_, t, h, is_final(t, h));
        return status <= warning ? Reach::whole : (*reached = t, find_reach(status, t, h, reached));
    }
    Reach find_reach(Status status, double t, double h, double* reached) {
        int terminated = 0;
        const bool ends = status == discard && boolean_status_ &&
                          boolean_status_(instance_, fmi::terminated, &terminated) == ok && terminated;
        const Reach reach = judge_end(status, step_.name, reached);
        return ends && reach == Reach::early ? end_at(t, h, *reached) : reach;
    }
    Status get_state(State* state) override { return get_state_(instance_, state); }
    Status set_state(State state) override { return set_state_(instance_, state); }
    Status free_state(State* state) override { return free_state_(instance_, state); }

    Function<Instantiate2> instantiate_;
    Function<Free> free_;
    Function<Setup2> setup_;
    Function<Simple> enter_, exit_, terminate_;
    Function<Step2> step_;
    Function<GetState> get_state_, free_state_;
    Function<SetState> set_state_;
    Function<GetBooleanStatus2> boolean_status_;
    Callbacks2 callbacks_;
};

}  // namespace

std::shared_ptr<Fmu> make_fmu2(std::shared_ptr<Library> library, Setup setup) {
    return std::make_shared<Fmu2>(std::move(library), std::move(setup));
}

}  // namespace hocket
