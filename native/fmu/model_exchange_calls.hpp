// The functions that model exchange adds; the versions differ in their names and in how they answer.
// In:  the library of an FMU, and its version
// Out: the functions, with the names that errors tell
#pragma once

#include <vector>

#include "fmu/fmi.hpp"
#include "fmu/library.hpp"

namespace hocket {

// What an FMU says when its discrete states are updated.
struct Events {
    bool again = false, terminates = false, nominals_changed = false, states_changed = false, defined = false;
    double next = 0.0;  // the time of the next time event, if defined
};

class ExchangeCalls {
  public:
    ExchangeCalls(const Library& library, int version);

    Function<fmi::SetTime> set_time;
    Function<fmi::SetNumbers> set_states;
    Function<fmi::GetNumbers> get_states, get_rates, get_indicators, get_nominals;
    Function<fmi::Simple> enter_events, enter_continuous;    // FMI 1 has no modes
    Function<fmi::GetCount> count_states, count_indicators;  // FMI 3 only

    // FMI 1: initialisation ends, and tells what an event tells.
    fmi::Status initialise(fmi::Instance instance, bool tolerant, double tolerance, Events& events) const;
    fmi::Status update(fmi::Instance instance, Events& events) const;
    fmi::Status complete_step(fmi::Instance instance, bool no_return, bool& event, bool& terminates) const;
    const char* initialise_name() const { return initialise1_.name; }
    const char* update_name() const { return name_of(update1_, update2_, update3_); }
    const char* complete_step_name() const { return name_of(completed1_, completed2_, completed3_); }

  private:
    template <class F1, class F2, class F3>
    static const char* name_of(const Function<F1>& one, const Function<F2>& two, const Function<F3>& three) {
        return one ? one.name : two ? two.name : three.name;
    }
    Function<fmi::InitialiseExchange1> initialise1_;
    Function<fmi::EventUpdate1> update1_;
    Function<fmi::NewDiscreteStates2> update2_;
    Function<fmi::UpdateDiscrete3> update3_;
    Function<fmi::CompletedStep1> completed1_;
    Function<fmi::CompletedStep2> completed2_;
    Function<fmi::CompletedStep3> completed3_;
};

}  // namespace hocket
