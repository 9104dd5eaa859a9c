// FMI 2.0.
#include "fmu_log.hpp"
#include "fmu_values.hpp"

namespace hocket {

namespace {

using namespace fmi;

struct Functions {
    Instantiate2* instantiate;
    Free* free;
    Setup2* setup;
    Simple *enter, *exit, *terminate;
    Set<double>* set_real;
    Get<double>* get_real;
    Set<int>*set_integer, *set_boolean;
    Get<int>*get_integer, *get_boolean;
    Set<Text>* set_string;
    Get<Text>* get_string;
    SetDerivatives* set_derivatives;
    GetDerivatives* get_derivatives;
    GetState* get_state;
    SetState* set_state;
    GetState* free_state;
    Step2* step;
    GetRealStatus* real_status;
    GetBooleanStatus2* boolean_status;
};

class Fmu2 final : public Fmu {
  public:
    Fmu2(std::shared_ptr<Library> library, Setup setup) : Fmu(std::move(library), std::move(setup)) {
        const Library& lib = *library_;
        f_ = {lib.need<Instantiate2>("fmi2Instantiate"), lib.need<Free>("fmi2FreeInstance"),
              lib.need<Setup2>("fmi2SetupExperiment"), lib.need<Simple>("fmi2EnterInitializationMode"),
              lib.need<Simple>("fmi2ExitInitializationMode"), lib.need<Simple>("fmi2Terminate"),
              lib.need<Set<double>>("fmi2SetReal"), lib.need<Get<double>>("fmi2GetReal"),
              lib.find<Set<int>>("fmi2SetInteger"), lib.find<Set<int>>("fmi2SetBoolean"),
              lib.find<Get<int>>("fmi2GetInteger"), lib.find<Get<int>>("fmi2GetBoolean"),
              lib.find<Set<Text>>("fmi2SetString"), lib.find<Get<Text>>("fmi2GetString"),
              lib.find<SetDerivatives>("fmi2SetRealInputDerivatives"), lib.find<GetDerivatives>("fmi2GetRealOutputDerivatives"),
              lib.find<GetState>("fmi2GetFMUstate"), lib.find<SetState>("fmi2SetFMUstate"),
              lib.find<GetState>("fmi2FreeFMUstate"), lib.find<Step2>("fmi2DoStep"),
              lib.find<GetRealStatus>("fmi2GetRealStatus"), lib.find<GetBooleanStatus2>("fmi2GetBooleanStatus")};
        if (!this->setup.exchange) lib.need<Step2>("fmi2DoStep");
        integrate(2);
        library_->calls[0] = reinterpret_cast<void (*)()>(f_.set_real);
        library_->calls[1] = reinterpret_cast<void (*)()>(f_.step);
        library_->calls[2] = reinterpret_cast<void (*)()>(f_.get_real);
        callbacks_ = {log_variadic, std::calloc, std::free, nullptr, nullptr};
    }
    ~Fmu2() override { close(); }

    bool can_save() const override { return f_.get_state && f_.set_state && f_.free_state; }

    StepOutput step_output() const override {
        if (!plain()) return Fmu::step_output();
        return [](Simulator& self, const Span& span, const double* u, double* y) {
            return static_cast<Fmu2&>(self).both(span, u, y);
        };
    }

  private:
    bool both(const Span& span, const double* u, double* y) {
        const Hot& hot = hot_;
        if (!hot.quick) [[unlikely]] {
            if (!Fmu::step(span, u) || !Fmu::output(span.tick + span.ticks, u, y)) return false;
            warm_up();
            return true;
        }
        if (hot.inputs > 0) {
            const Status set = reinterpret_cast<Set<double>*>(hot.calls[0])(hot.instance, hot.in, hot.inputs, u);
            if (set > warning) [[unlikely]]
                return failed(set, "fmi2SetReal", Call::step, span);
            if (hot.feeds) std::copy(u, u + hot.inputs, known_.begin());
        }
        const Status stepped = reinterpret_cast<Step2*>(hot.calls[1])(hot.instance, span.t, span.h, 1);
        if (stepped > warning) [[unlikely]]
            return late(stepped, span);
        const Status got = reinterpret_cast<Get<double>*>(hot.calls[2])(hot.instance, hot.out, hot.outputs, y);
        if (got > warning) [[unlikely]]
            return failed(got, "fmi2GetReal", Call::output, span);
        double sum = y[0] - y[0];
        for (int k = 1; k < hot.outputs; ++k) sum += y[k] - y[k];
        if (sum == 0.0) [[likely]]
            return true;
        return finite(y);
    }
    bool failed(Status status, const char* function, Call call, const Span& span) {
        good(status, function);
        failure_.call = call;
        failure_.tick = call == Call::output ? span.tick + span.ticks : span.tick;
        failure_.ticks = span.ticks;
        return false;
    }
    bool late(Status status, const Span& span) {
        double reached = span.t;
        if (ended(status, &reached) == Reach::early) stopped(reached);
        failure_.call = Call::step;
        failure_.tick = span.tick;
        failure_.ticks = span.ticks;
        return false;
    }

    Instance create() override {
        return f_.instantiate(setup.name.c_str(), setup.exchange ? model_exchange2 : co_simulation2, setup.token.c_str(),
                              setup.resources.c_str(), &callbacks_, 0, setup.logging);
    }
    void destroy() override { f_.free(instance_); }
    bool enter_initialisation(double t, bool stops, double stop, bool tolerant, double tolerance) override {
        return good(f_.setup(instance_, tolerant, tolerance, t, stops, stop), "fmi2SetupExperiment") &&
               good(f_.enter(instance_), "fmi2EnterInitializationMode");
    }
    bool leave_initialisation() override { return good(f_.exit(instance_), "fmi2ExitInitializationMode"); }
    void terminate() override { good(f_.terminate(instance_), "fmi2Terminate"); }

    Reach advance(double t, double h, const double* u, double* reached) override {
        if (rows_ > 1 && setup.interpolates && !set_derivatives(u)) return Reach::failed;
        const Status status = f_.step(instance_, t, h, lent_.empty());
        return status <= warning ? Reach::whole : (*reached = t, ended(status, reached));
    }
    Reach ended(Status status, double* reached) {
        if (status == pending) return wrong("fmi2DoStep works in the background (Pending), which hocket does not use"), Reach::failed;
        if (status != discard) return good(status, "fmi2DoStep"), Reach::failed;
        int terminated = 0;
        if (f_.boolean_status && f_.boolean_status(instance_, fmi::terminated, &terminated) == ok && terminated)
            return wrong("it asks to end the simulation"), Reach::failed;
        if (f_.real_status) f_.real_status(instance_, last_successful_time, reached);
        return Reach::early;
    }
    bool set_derivatives(const double* u) {
        if (!f_.set_derivatives) return true;
        for (const Group& group : setup.set) {
            if (group.type != Type::real) continue;
            references_.clear();
            orders_.clear();
            room_.clear();
            double factorial = 1.0;
            for (int power = 1; power < rows_; ++power) {
                factorial *= power;
                for (std::size_t k = 0; k < group.references.size(); ++k) {
                    references_.push_back(group.references[k]);
                    orders_.push_back(power);
                    room_.push_back(factorial * u[power * setup.inputs + group.places[k]]);
                }
            }
            if (!good(f_.set_derivatives(instance_, references_.data(), references_.size(), orders_.data(), room_.data()),
                      "fmi2SetRealInputDerivatives"))
                return false;
        }
        return true;
    }

    bool set_group(const Group& group, const double* values) override {
        const auto& r = group.references;
        if (group.type == Type::real) {
            if (straight_in_ && &group == setup.set.data())
                return good(f_.set_real(instance_, r.data(), r.size(), values), "fmi2SetReal");
            return packed(group, values, reals_) && good(f_.set_real(instance_, r.data(), r.size(), reals_.data()), "fmi2SetReal");
        }
        const bool boolean = group.type == Type::boolean;
        auto* set = boolean ? f_.set_boolean : f_.set_integer;
        const char* name = boolean ? "fmi2SetBoolean" : "fmi2SetInteger";
        if (!set) return wrong(std::string("its binary has no function ") + name);
        return packed(group, values, whole_) && good(set(instance_, r.data(), r.size(), whole_.data()), name);
    }
    bool get_group(const Group& group, double* values) override {
        const auto& r = group.references;
        if (group.type == Type::real) {
            if (straight_out_) return good(f_.get_real(instance_, r.data(), r.size(), values), "fmi2GetReal");
            reals_.resize(r.size());
            return good(f_.get_real(instance_, r.data(), r.size(), reals_.data()), "fmi2GetReal") && unpacked(group, reals_, values);
        }
        const bool boolean = group.type == Type::boolean;
        auto* get = boolean ? f_.get_boolean : f_.get_integer;
        const char* name = boolean ? "fmi2GetBoolean" : "fmi2GetInteger";
        if (!get) return wrong(std::string("its binary has no function ") + name);
        whole_.resize(r.size());
        return good(get(instance_, r.data(), r.size(), whole_.data()), name) && unpacked(group, whole_, values);
    }
    bool set_whole(Type type, const std::vector<Reference>& references, const std::vector<std::int64_t>& values) override {
        const std::vector<double> reals(values.begin(), values.end());
        return put(type, references, reals);
    }
    bool write_texts(const Reference* references, std::size_t count, const std::string* values, bool) override {
        if (!f_.set_string) return wrong("its binary has no function fmi2SetString");
        std::vector<Text> texts;
        for (std::size_t k = 0; k < count; ++k) texts.push_back(values[k].c_str());
        return good(f_.set_string(instance_, references, count, texts.data()), "fmi2SetString");
    }
    bool read_text(Reference reference, bool, std::string& value) override {
        if (!f_.get_string) return wrong("its binary has no function fmi2GetString");
        Text text = nullptr;
        if (!good(f_.get_string(instance_, &reference, 1, &text), "fmi2GetString")) return false;
        value = text ? text : "";
        return true;
    }
    bool get_slopes(const Reference* references, std::size_t count, double* values) override {
        if (!f_.get_derivatives) return wrong("its binary has no function fmi2GetRealOutputDerivatives");
        orders_.assign(count, 1);
        return good(f_.get_derivatives(instance_, references, count, orders_.data(), values), "fmi2GetRealOutputDerivatives");
    }
    Status get_state(State* state) override { return f_.get_state(instance_, state); }
    Status set_state(State state) override { return f_.set_state(instance_, state); }
    Status free_state(State* state) override { return f_.free_state(instance_, state); }

    Functions f_;
    Callbacks2 callbacks_;
    std::vector<Reference> references_;
    std::vector<int> orders_, whole_;
    std::vector<double> reals_;
};

}  // namespace

std::shared_ptr<Fmu> make_fmu2(std::shared_ptr<Library> library, Setup setup) {
    return std::make_shared<Fmu2>(std::move(library), std::move(setup));
}

}  // namespace hocket
