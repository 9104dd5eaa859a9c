// FMI 1.0: no initialisation mode, no state to save. A binary is for co-simulation or for model exchange.
#include "fmu/fmu_classic.hpp"
#include "fmu/model_exchange.hpp"

namespace hocket {

namespace {

using namespace fmi;

class Fmu1 final : public Classic<Boolean1> {
  public:
    Fmu1(std::shared_ptr<Library> library, Setup given) : Classic(std::move(library), std::move(given)) {
        const Library& lib = *library_;
        if (setup.exchange) {
            lib.need(instantiate_exchange_, "fmiInstantiateModel");
            lib.need(terminate_, "fmiTerminate");
            lib.need(free_, "fmiFreeModelInstance");
            lib.need(set_time_, "fmiSetTime");
            integrate(1);
        } else {
            lib.need(instantiate_, "fmiInstantiateSlave");
            lib.need(initialise_, "fmiInitializeSlave");
            lib.need(terminate_, "fmiTerminateSlave");
            lib.need(free_, "fmiFreeSlaveInstance");
            lib.need(step_, "fmiDoStep");
        }
        lib.need(set_real_, "fmiSetReal");
        lib.need(get_real_, "fmiGetReal");
        lib.find(set_integer_, "fmiSetInteger");
        lib.find(get_integer_, "fmiGetInteger");
        lib.find(set_boolean_, "fmiSetBoolean");
        lib.find(get_boolean_, "fmiGetBoolean");
        lib.find(set_string_, "fmiSetString");
        lib.find(get_string_, "fmiGetString");
        lib.find(set_derivatives_, "fmiSetRealInputDerivatives");
        lib.find(get_derivatives_, "fmiGetRealOutputDerivatives");
        lib.find(real_status_, "fmiGetRealStatus");
        at_once_ = true;
    }
    ~Fmu1() override { close(); }

    bool can_save() const override { return false; }

  private:
    Instance create() override {
        if (setup.exchange) {
            const ExchangeCallbacks1 callbacks{log_variadic, std::calloc, std::free};
            return instantiate_exchange_(setup.name.c_str(), setup.token.c_str(), callbacks, setup.logging);
        }
        const Callbacks1 callbacks{log_variadic, std::calloc, std::free, nullptr};
        return instantiate_(setup.name.c_str(), setup.token.c_str(), setup.resources.c_str(),
                            "application/x-fmu-sharedlibrary", 0.0, 0, 0, callbacks, setup.logging);
    }
    void destroy() override { free_(instance_); }
    bool set_up() override { return !setup.exchange || call(set_time_, experiment_.t); }
    bool enter_initialisation() override { return true; }
    bool leave_initialisation() override {
        if (exchange_) return exchange_->initialise();
        return call(initialise_, experiment_.t, experiment_.stops, experiment_.stop);
    }
    void terminate() override { call(terminate_); }

    Reach advance(double t, double h, const double* u, double* reached) override {
        if (!set_derivatives(u)) return Reach::failed;
        const Status status = step_(instance_, t, h, 1);
        return status <= warning ? Reach::whole : (*reached = t, judge_end(status, step_.name, reached));
    }
    Status get_state(State*) override { return error; }
    Status set_state(State) override { return error; }
    Status free_state(State*) override { return ok; }

    Function<Instantiate1> instantiate_;
    Function<InstantiateExchange1> instantiate_exchange_;
    Function<SetTime> set_time_;
    Function<Initialise1> initialise_;
    Function<Simple> terminate_;
    Function<Free> free_;
    Function<Step1> step_;
};

}  // namespace

std::shared_ptr<Fmu> make_fmu1(std::shared_ptr<Library> library, Setup setup) {
    return std::make_shared<Fmu1>(std::move(library), std::move(setup));
}

}  // namespace hocket
