#include "exchange_calls.hpp"

namespace hocket {

using namespace fmi;

namespace {

template <class F> void need(const Library& library, Function<F>& function, const char* name) {
    function = {library.need<F>(name), name};
}

}  // namespace

ExchangeCalls::ExchangeCalls(const Library& library, int version) {
    if (version == 2) {
        need(library, set_time, "fmi2SetTime");
        need(library, set_states, "fmi2SetContinuousStates");
        need(library, get_states, "fmi2GetContinuousStates");
        need(library, get_rates, "fmi2GetDerivatives");
        need(library, get_indicators, "fmi2GetEventIndicators");
        need(library, get_nominals, "fmi2GetNominalsOfContinuousStates");
        need(library, enter_events, "fmi2EnterEventMode");
        need(library, enter_continuous, "fmi2EnterContinuousTimeMode");
        update2_ = library.need<NewDiscreteStates2>(update_name = "fmi2NewDiscreteStates");
        completed2_ = library.need<CompletedStep2>(completed_name = "fmi2CompletedIntegratorStep");
        directional2_ = library.find<Directional2>(directional_name = "fmi2GetDirectionalDerivative");
        return;
    }
    need(library, set_time, "fmi3SetTime");
    need(library, set_states, "fmi3SetContinuousStates");
    need(library, get_states, "fmi3GetContinuousStates");
    need(library, get_rates, "fmi3GetContinuousStateDerivatives");
    need(library, get_indicators, "fmi3GetEventIndicators");
    need(library, get_nominals, "fmi3GetNominalsOfContinuousStates");
    need(library, enter_events, "fmi3EnterEventMode");
    need(library, enter_continuous, "fmi3EnterContinuousTimeMode");
    need(library, count_states, "fmi3GetNumberOfContinuousStates");
    need(library, count_indicators, "fmi3GetNumberOfEventIndicators");
    update3_ = library.need<UpdateDiscrete3>(update_name = "fmi3UpdateDiscreteStates");
    completed3_ = library.need<CompletedStep3>(completed_name = "fmi3CompletedIntegratorStep");
    directional3_ = library.find<Directional3>(directional_name = "fmi3GetDirectionalDerivative");
}

Status ExchangeCalls::update(Instance instance, Events& events) const {
    if (update3_)
        return update3_(instance, &events.again, &events.terminates, &events.nominals_changed, &events.states_changed,
                        &events.defined, &events.next);
    EventInfo2 info{};
    const Status status = update2_(instance, &info);
    events = {info.again != 0,          info.terminates != 0,   info.nominals_changed != 0,
              info.states_changed != 0, info.next_defined != 0, info.next};
    return status;
}

Status ExchangeCalls::completed(Instance instance, bool no_return, bool& event, bool& terminates) const {
    if (completed3_) return completed3_(instance, no_return, &event, &terminates);
    int wanted = 0, ends = 0;
    const Status status = completed2_(instance, no_return, &wanted, &ends);
    event = wanted != 0;
    terminates = ends != 0;
    return status;
}

Status ExchangeCalls::directional(Instance instance, const std::vector<Reference>& unknowns,
                                  const std::vector<Reference>& knowns, const std::vector<double>& seed,
                                  std::vector<double>& result) const {
    if (directional3_)
        return directional3_(instance, unknowns.data(), unknowns.size(), knowns.data(), knowns.size(), seed.data(), seed.size(),
                             result.data(), result.size());
    return directional2_(instance, unknowns.data(), unknowns.size(), knowns.data(), knowns.size(), seed.data(), result.data());
}

}  // namespace hocket
