// The functions that model exchange adds; FMI 2 and 3 differ in their names and in how they answer.
// In:  the library of an FMU, and its version
// Out: the functions, with the names that errors tell
#pragma once

#include <vector>

#include "fmi.hpp"
#include "library.hpp"

namespace hocket {

template <class F> struct Function {
    F* call = nullptr;
    const char* name = "";
};

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
    fmi::Status completed(fmi::Instance instance, bool no_return, bool& event, bool& terminates) const;
    // How the unknowns change along the seed, a number for each value of the knowns.
    fmi::Status directional(fmi::Instance instance, const std::vector<fmi::Reference>& unknowns,
                            const std::vector<fmi::Reference>& knowns, const std::vector<double>& seed,
                            std::vector<double>& result) const;
    const char *update_name, *completed_name, *directional_name;
    bool has_directional() const { return directional2_ || directional3_; }

  private:
    fmi::NewDiscreteStates2* update2_ = nullptr;
    fmi::UpdateDiscrete3* update3_ = nullptr;
    fmi::CompletedStep2* completed2_ = nullptr;
    fmi::CompletedStep3* completed3_ = nullptr;
    fmi::Directional2* directional2_ = nullptr;
    fmi::Directional3* directional3_ = nullptr;
};

}  // namespace hocket
