#include "fmu/model_exchange_calls.hpp"

namespace hocket {

using namespace fmi;

namespace {

// New references mean new states.
Events read_events(const EventInfo1& info) {
    return {info.converged == 0,          info.terminates != 0,
            info.references_changed != 0, info.states_changed != 0 || info.references_changed != 0,
            info.next_defined != 0,       info.next};
}

}  // namespace

ExchangeCalls::ExchangeCalls(const Library& library, int version) {
    if (version == 1) {
        library.need(set_time, "fmiSetTime");
        library.need(set_states, "fmiSetContinuousStates");
        library.need(get_states, "fmiGetContinuousStates");
        library.need(get_rates, "fmiGetDerivatives");
        library.need(get_indicators, "fmiGetEventIndicators");
        library.need(get_nominals, "fmiGetNominalContinuousStates");
        library.need(initialise1_, "fmiInitialize");
        library.need(update1_, "fmiEventUpdate");
        library.need(completed1_, "fmiCompletedIntegratorStep");
        return;
    }
    if (version == 2) {
        library.need(set_time, "fmi2SetTime");
        library.need(set_states, "fmi2SetContinuousStates");
        library.need(get_states, "fmi2GetContinuousStates");
        library.need(get_rates, "fmi2GetDerivatives");
        library.need(get_indicators, "fmi2GetEventIndicators");
        library.need(get_nominals, "fmi2GetNominalsOfContinuousStates");
        library.need(enter_events, "fmi2EnterEventMode");
        library.need(enter_continuous, "fmi2EnterContinuousTimeMode");
        library.need(update2_, "fmi2NewDiscreteStates");
        library.need(completed2_, "fmi2CompletedIntegratorStep");
        return;
    }
    library.need(set_time, "fmi3SetTime");
    library.need(set_states, "fmi3SetContinuousStates");
    library.need(get_states, "fmi3GetContinuousStates");
    library.need(get_rates, "fmi3GetContinuousStateDerivatives");
    library.need(get_indicators, "fmi3GetEventIndicators");
    library.need(get_nominals, "fmi3GetNominalsOfContinuousStates");
    library.need(enter_events, "fmi3EnterEventMode");
    library.need(enter_continuous, "fmi3EnterContinuousTimeMode");
    library.need(count_states, "fmi3GetNumberOfContinuousStates");
    library.need(count_indicators, "fmi3GetNumberOfEventIndicators");
    library.need(update3_, "fmi3UpdateDiscreteStates");
    library.need(completed3_, "fmi3CompletedIntegratorStep");
}

Status ExchangeCalls::initialise(Instance instance, bool tolerant, double tolerance, Events& events) const {
    EventInfo1 info{};
    const Status status = initialise1_(instance, tolerant, tolerance, &info);
    events = read_events(info);
    return status;
}

Status ExchangeCalls::update(Instance instance, Events& events) const {
    if (update1_) {
        EventInfo1 info{};
        const Status status = update1_(instance, 0, &info);
        events = read_events(info);
        return status;
    }
    if (update3_)
        return update3_(instance, &events.again, &events.terminates, &events.nominals_changed,
                        &events.states_changed, &events.defined, &events.next);
    EventInfo2 info{};
    const Status status = update2_(instance, &info);
    events = {info.again != 0,          info.terminates != 0,   info.nominals_changed != 0,
              info.states_changed != 0, info.next_defined != 0, info.next};
    return status;
}

Status ExchangeCalls::complete_step(Instance instance, bool no_return, bool& event, bool& terminates) const {
    if (completed1_) {
        Boolean1 wanted = 0;
        const Status status = completed1_(instance, &wanted);
        event = wanted != 0;
        return status;
    }
    if (completed3_) return completed3_(instance, no_return, &event, &terminates);
    int wanted = 0, ends = 0;
    const Status status = completed2_(instance, no_return, &wanted, &ends);
    event = wanted != 0;
    terminates = ends != 0;
    return status;
}

}  // namespace hocket
