// The functions that model exchange adds; FMI 2 and 3 differ in their names and in how they answer.
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
    Function<fmi::Simple> enter_events, enter_continuous;
    Function<fmi::GetCount> count_states, count_indicators;  // FMI 3 only

    fmi::Status update(fmi::Instance instance, Events& events) const;
    fmi::Status complete_step(fmi::Instance instance, bool no_return, bool& event, bool& terminates) const;
    // How the unknowns change along the seed, a number for each value of the knowns.
    fmi::Status directional(fmi::Instance instance, const std::vector<fmi::Reference>& unknowns,
                            const std::vector<fmi::Reference>& knowns, const std::vector<double>& seed,
                            std::vector<double>& result) const;
    const char* update_name() const { return update3_ ? update3_.name : update2_.name; }
    const char* complete_step_name() const { return completed3_ ? completed3_.name : completed2_.name; }
    const char* directional_name() const { return directional3_ ? directional3_.name : directional2_.name; }
    bool has_directional() const { return directional2_ || directional3_; }

  private:
    Function<fmi::NewDiscreteStates2> update2_;
    Function<fmi::UpdateDiscrete3> update3_;
    Function<fmi::CompletedStep2> completed2_;
    Function<fmi::CompletedStep3> completed3_;
    Function<fmi::Directional2> directional2_;
    Function<fmi::Directional3> directional3_;
};

}  // namespace hocket
