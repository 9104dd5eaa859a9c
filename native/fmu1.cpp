// FMI 1.0, co-simulation: no initialisation mode, no state to save.
#include "fmu_log.hpp"
#include "fmu_values.hpp"

namespace hocket {

namespace {

using namespace fmi;

class Fmu1 final : public Fmu {
  public:
    Fmu1(std::shared_ptr<Library> library, Setup setup) : Fmu(std::move(library), std::move(setup)) {
        const Library& lib = *library_;
        instantiate_ = lib.need<Instantiate1>("fmiInstantiateSlave");
        initialise_ = lib.need<Initialise1>("fmiInitializeSlave");
        terminate_ = lib.need<Simple>("fmiTerminateSlave");
        free_ = lib.need<Free>("fmiFreeSlaveInstance");
        step_ = lib.need<Step1>("fmiDoStep");
        set_real_ = lib.need<Set<double>>("fmiSetReal");
        get_real_ = lib.need<Get<double>>("fmiGetReal");
        set_integer_ = lib.find<Set<int>>("fmiSetInteger");
        get_integer_ = lib.find<Get<int>>("fmiGetInteger");
        set_boolean_ = lib.find<Set<Boolean1>>("fmiSetBoolean");
        get_boolean_ = lib.find<Get<Boolean1>>("fmiGetBoolean");
        set_string_ = lib.find<Set<Text>>("fmiSetString");
        get_string_ = lib.find<Get<Text>>("fmiGetString");
        set_derivatives_ = lib.find<SetDerivatives>("fmiSetRealInputDerivatives");
        get_derivatives_ = lib.find<GetDerivatives>("fmiGetRealOutputDerivatives");
        real_status_ = lib.find<GetRealStatus>("fmiGetRealStatus");
        at_once_ = true;
    }
    ~Fmu1() override { close(); }

    bool can_save() const override { return false; }

  private:
    Instance create() override {
        const Callbacks1 callbacks{log_variadic, std::calloc, std::free, nullptr};
        return instantiate_(setup.name.c_str(), setup.token.c_str(), setup.resources.c_str(), "application/x-fmu-sharedlibrary", 0.0,
                            0, 0, callbacks, setup.logging);
    }
    void destroy() override { free_(instance_); }
    bool enter_initialisation(double t, bool stops, double stop, bool, double) override {
        start_ = t;
        stops_ = stops;
        stop_ = stop;
        return true;
    }
    bool leave_initialisation() override { return good(initialise_(instance_, start_, stops_, stop_), "fmiInitializeSlave"); }
    void terminate() override {
        if (phase_ == Phase::stepping) good(terminate_(instance_), "fmiTerminateSlave");
    }

    Reach advance(double t, double h, const double* u, double* reached) override {
        if (rows_ > 1 && setup.interpolates && !set_derivatives(u)) return Reach::failed;
        const Status status = step_(instance_, t, h, 1);
        if (status <= warning) return Reach::whole;
        if (status == pending) return wrong("fmiDoStep works in the background (Pending), which hocket does not use"), Reach::failed;
        if (status != discard) return good(status, "fmiDoStep"), Reach::failed;
        *reached = t;
        if (real_status_) real_status_(instance_, last_successful_time, reached);
        return Reach::early;
    }
    bool set_derivatives(const double* u) {
        if (!set_derivatives_) return true;
        for (const Group& group : setup.set) {
            if (group.type != Type::real) continue;
            double factorial = 1.0;
            for (int power = 1; power < rows_; ++power) {
                factorial *= power;
                room_.clear();
                for (int place : group.places) room_.push_back(factorial * u[power * setup.inputs + place]);
                orders_.assign(group.references.size(), power);
                const auto& r = group.references;
                if (!good(set_derivatives_(instance_, r.data(), r.size(), orders_.data(), room_.data()), "fmiSetRealInputDerivatives"))
                    return false;
            }
        }
        return true;
    }

    template <class T, class F> bool set_as(F* set, const char* name, const Group& group, const double* values, std::vector<T>& room) {
        if (!set) return wrong(std::string("its binary has no function ") + name);
        return packed(group, values, room) && good(set(instance_, group.references.data(), group.references.size(), room.data()), name);
    }
    template <class T, class F> bool get_as(F* get, const char* name, const Group& group, double* values, std::vector<T>& room) {
        if (!get) return wrong(std::string("its binary has no function ") + name);
        room.resize(group.references.size());
        return good(get(instance_, group.references.data(), group.references.size(), room.data()), name) && unpacked(group, room, values);
    }
    bool set_group(const Group& group, const double* values) override {
        if (group.type == Type::real) return set_as(set_real_, "fmiSetReal", group, values, reals_);
        if (group.type == Type::boolean) return set_as(set_boolean_, "fmiSetBoolean", group, values, truths_);
        return set_as(set_integer_, "fmiSetInteger", group, values, whole_);
    }
    bool get_group(const Group& group, double* values) override {
        if (group.type == Type::real) return get_as(get_real_, "fmiGetReal", group, values, reals_);
        if (group.type == Type::boolean) return get_as(get_boolean_, "fmiGetBoolean", group, values, truths_);
        return get_as(get_integer_, "fmiGetInteger", group, values, whole_);
    }
    bool set_whole(Type type, const std::vector<Reference>& references, const std::vector<std::int64_t>& values) override {
        return put(type, references, {values.begin(), values.end()});
    }
    bool write_texts(const Reference* references, std::size_t count, const std::string* values, bool) override {
        if (!set_string_) return wrong("its binary has no function fmiSetString");
        std::vector<Text> texts;
        for (std::size_t k = 0; k < count; ++k) texts.push_back(values[k].c_str());
        return good(set_string_(instance_, references, count, texts.data()), "fmiSetString");
    }
    bool read_text(Reference reference, bool, std::string& value) override {
        Text text = nullptr;
        if (!get_string_) return wrong("its binary has no function fmiGetString");
        if (!good(get_string_(instance_, &reference, 1, &text), "fmiGetString")) return false;
        value = text ? text : "";
        return true;
    }
    bool get_slopes(const Reference* references, std::size_t count, double* values) override {
        if (!get_derivatives_) return wrong("its binary has no function fmiGetRealOutputDerivatives");
        orders_.assign(count, 1);
        return good(get_derivatives_(instance_, references, count, orders_.data(), values), "fmiGetRealOutputDerivatives");
    }
    Status get_state(State*) override { return error; }
    Status set_state(State) override { return error; }
    Status free_state(State*) override { return ok; }

    Instantiate1* instantiate_;
    Initialise1* initialise_;
    Simple* terminate_;
    Free* free_;
    Step1* step_;
    Set<double>* set_real_;
    Get<double>* get_real_;
    Set<int>* set_integer_;
    Get<int>* get_integer_;
    Set<Boolean1>* set_boolean_;
    Get<Boolean1>* get_boolean_;
    Set<Text>* set_string_;
    Get<Text>* get_string_;
    SetDerivatives* set_derivatives_;
    GetDerivatives* get_derivatives_;
    GetRealStatus* real_status_;
    double start_ = 0.0, stop_ = 0.0;
    bool stops_ = false;
    std::vector<double> reals_;
    std::vector<int> whole_, orders_;
    std::vector<Boolean1> truths_;
};

}  // namespace

std::shared_ptr<Fmu> make_fmu1(std::shared_ptr<Library> library, Setup setup) {
    return std::make_shared<Fmu1>(std::move(library), std::move(setup));
}

}  // namespace hocket
