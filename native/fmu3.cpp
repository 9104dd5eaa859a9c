// FMI 3.0; for co-simulation event mode, early return and intermediate update.
#include <algorithm>

#include "fmu_log.hpp"
#include "fmu_values.hpp"

namespace hocket {

namespace {

using namespace fmi;

template <class T> struct Access {
    Set3<T>* set;
    Get3<T>* get;
    const char *set_name, *get_name;
};

template <class T> Access<T> access(const Library& lib, const char* set, const char* get) {
    return {lib.find<Set3<T>>(set), lib.find<Get3<T>>(get), set, get};
}

class Fmu3 final : public Fmu {
  public:
    Fmu3(std::shared_ptr<Library> library, Setup setup) : Fmu(std::move(library), std::move(setup)) {
        const Library& lib = *library_;
        if (this->setup.exchange) {
            instantiate_exchange_ = lib.need<InstantiateMe3>("fmi3InstantiateModelExchange");
        } else {
            instantiate_ = lib.need<InstantiateCs3>("fmi3InstantiateCoSimulation");
            step_ = lib.need<Step3>("fmi3DoStep");
        }
        free_ = lib.need<Free>("fmi3FreeInstance");
        enter_ = lib.need<Enter3>("fmi3EnterInitializationMode");
        exit_ = lib.need<Simple>("fmi3ExitInitializationMode");
        terminate_ = lib.need<Simple>("fmi3Terminate");
        set_real_ = lib.need<Set3<double>>("fmi3SetFloat64");
        get_real_ = lib.need<Get3<double>>("fmi3GetFloat64");
        enter_configuration_ = lib.find<Simple>("fmi3EnterConfigurationMode");
        exit_configuration_ = lib.find<Simple>("fmi3ExitConfigurationMode");
        enter_events_ = lib.find<Simple>("fmi3EnterEventMode");
        enter_steps_ = lib.find<Simple>("fmi3EnterStepMode");
        update_ = lib.find<UpdateDiscrete3>("fmi3UpdateDiscreteStates");
        get_derivatives_ = lib.find<GetDerivatives3>("fmi3GetOutputDerivatives");
        get_state_ = lib.find<GetState>("fmi3GetFMUState");
        set_state_ = lib.find<SetState>("fmi3SetFMUState");
        free_state_ = lib.find<GetState>("fmi3FreeFMUState");
        set_binary_ = lib.find<SetBinary>("fmi3SetBinary");
        get_binary_ = lib.find<GetBinary>("fmi3GetBinary");
        if (this->setup.events && !(enter_events_ && enter_steps_ && update_)) this->setup.events = false;
        for (const Group& group : this->setup.set)
            if (group.type == Type::real)
                for (std::size_t k = 0; k < group.references.size(); ++k) {
                    // arrays have more values than references: they are set between steps only
                    const bool wanted = std::count(this->setup.continuous.begin(), this->setup.continuous.end(), group.places[k]) > 0;
                    if (wanted && group.references.size() == group.places.size()) {
                        intermediate_.push_back(group.references[k]);
                        intermediate_places_.push_back(group.places[k]);
                    }
                }
        for (const Group& group : this->setup.set) discrete_ = discrete_ || (group.type != Type::real && group.type != Type::float32);
        integrate(3);
    }
    ~Fmu3() override { close(); }

    bool can_save() const override { return get_state_ && set_state_ && free_state_; }

    StepOutput step_output() const override {
        if (!plain()) return Fmu::step_output();
        return [](Simulator& self, const Span& span, const double* u, double* y) {
            return static_cast<Fmu3&>(self).both(span, u, y);
        };
    }

    bool configure(bool enter) override {
        Simple* function = enter ? enter_configuration_ : exit_configuration_;
        const char* name = enter ? "fmi3EnterConfigurationMode" : "fmi3ExitConfigurationMode";
        if (!function) return wrong(std::string("its binary has no function ") + name);
        return good(function(instance_), name);
    }

  private:
    bool both(const Span& span, const double* u, double* y) {
        if (phase_ != Phase::stepping || trial()) [[unlikely]]
            return Fmu::step(span, u) && Fmu::output(span.tick + span.ticks, u, y);
        if (setup.inputs > 0) {
            const Group& in = setup.set[0];
            const Status set = set_real_(instance_, in.references.data(), in.references.size(), u, in.places.size());
            if (set > warning) [[unlikely]]
                return failed(good(set, "fmi3SetFloat64"), Call::step, span);
            if (setup.feeds_through) std::copy(u, u + setup.inputs, known_.begin());
        }
        double reached = span.t;
        const Reach reach = advance(span.t, span.h, u, &reached);
        if (reach != Reach::whole) [[unlikely]] {
            if (reach == Reach::early) stopped(reached);
            return failed(false, Call::step, span);
        }
        const Group& out = setup.get[0];
        const Status got = get_real_(instance_, out.references.data(), out.references.size(), y, out.places.size());
        if (got > warning) [[unlikely]]
            return failed(good(got, "fmi3GetFloat64"), Call::output, span);
        return finite(y);
    }
    bool failed(bool, Call call, const Span& span) {
        failure_.call = call;
        failure_.tick = call == Call::output ? span.tick + span.ticks : span.tick;
        failure_.ticks = span.ticks;
        return false;
    }

    Instance create() override {
        const Logger3 logger = [](void* self, Status status, Text category, Text message) {
            const auto& name = static_cast<Fmu3*>(self)->setup.name;
            log({name, status, category ? category : "", message ? message : ""});
        };
        if (setup.exchange)
            return instantiate_exchange_(setup.name.c_str(), setup.token.c_str(), setup.resources.c_str(), false, setup.logging,
                                         this, logger);
        const bool curves = !intermediate_.empty();
        return instantiate_(setup.name.c_str(), setup.token.c_str(), setup.resources.c_str(), false, setup.logging, setup.events,
                            setup.events || setup.early, curves ? intermediate_.data() : nullptr, intermediate_.size(), this,
                            logger, curves ? update : nullptr);
    }
    void destroy() override { free_(instance_); }
    bool enter_initialisation(double t, bool stops, double stop, bool tolerant, double tolerance) override {
        return good(enter_(instance_, tolerant, tolerance, t, stops, stop), "fmi3EnterInitializationMode");
    }
    bool leave_initialisation() override {
        return good(exit_(instance_), "fmi3ExitInitializationMode") && (!setup.events || leave_events());
    }
    void terminate() override { good(terminate_(instance_), "fmi3Terminate"); }

    // events

    bool enter_events() { return good(enter_events_(instance_), "fmi3EnterEventMode"); }
    bool leave_events() {
        bool again = true;
        for (int round = 0; again; ++round) {
            bool terminates = false, nominals = false, states = false, defined = false;
            double next = 0.0;
            again = false;
            if (!good(update_(instance_, &again, &terminates, &nominals, &states, &defined, &next), "fmi3UpdateDiscreteStates"))
                return false;
            if (terminates) return wrong("it asks to end the simulation");
            if (round == 1000) return wrong("its events do not settle: fmi3UpdateDiscreteStates asked for 1000 rounds");
        }
        return good(enter_steps_(instance_), "fmi3EnterStepMode");
    }
    bool set_inputs(const double* u) override {
        if (setup.inputs == 0) return true;
        if (phase_ != Phase::stepping || !setup.events || !discrete_ || std::equal(known_.begin(), known_.end(), u))
            return set_groups(u);
        return enter_events() && set_groups(u) && leave_events();
    }
    // In event mode outputs may be got after inputs were set; in step mode FMI 3 leaves that to the FMU.
    bool evaluate(const double* u, double* y) override {
        if (!setup.feeds_through || std::equal(known_.begin(), known_.end(), u)) return get_groups(y);
        if (!setup.events) return set_groups(u) && get_groups(y);
        return enter_events() && set_groups(u) && get_groups(y) && leave_events();
    }

    Reach advance(double t, double h, const double* u, double* reached) override {
        const double end = t + h;
        u_ = u;
        began_ = t;
        for (double from = t;;) {
            bool events = false, terminates = false, early = false;
            double at = end;
            const Status status = step_(instance_, from, from == t ? h : end - from, lent_.empty(), &events, &terminates, &early, &at);
            if (status > warning) [[unlikely]] {
                *reached = from;
                return status == discard ? Reach::early : (good(status, "fmi3DoStep"), Reach::failed);
            }
            if (!(events || terminates || early)) [[likely]]
                return Reach::whole;
            if (terminates) return wrong("it asks to end the simulation"), Reach::failed;
            *reached = at;
            const double least = 1e-12 * std::max(std::fabs(end), h);
            const bool short_of = early && at < end - least;
            if (short_of && setup.early && at > t + least) return Reach::early;  // an event at t itself is handled here
            if (events && setup.events && !(enter_events() && leave_events())) return Reach::failed;
            if (!short_of) return Reach::whole;
            stuck_ = at > from ? 0 : stuck_ + 1;
            if (stuck_ > 100) return wrong("it returns early again and again without moving on"), Reach::failed;
            from = at;
            if (!follow(at)) return Reach::failed;
        }
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
        return good(set_real_(instance_, intermediate_.data(), intermediate_.size(), room_.data(), room_.size()), "fmi3SetFloat64");
    }
    static void update(void* self, double t, bool may_set, bool, bool, bool, bool* stop, double*) {
        if (stop) *stop = false;
        if (may_set) static_cast<Fmu3*>(self)->follow(t);
    }

    // values

    template <class T> bool set_as(const Access<T>& access, const Group& group, const double* values) {
        static thread_local std::vector<T> room;
        if (!access.set) return wrong(std::string("its binary has no function ") + access.set_name);
        return packed(group, values, room) &&
               good(access.set(instance_, group.references.data(), group.references.size(), room.data(), room.size()), access.set_name);
    }
    template <class T> bool get_as(const Access<T>& access, const Group& group, double* values) {
        static thread_local std::vector<T> room;
        if (!access.get) return wrong(std::string("its binary has no function ") + access.get_name);
        room.resize(group.places.size());
        return good(access.get(instance_, group.references.data(), group.references.size(), room.data(), room.size()), access.get_name) &&
               unpacked(group, room, values);
    }
    // bool has no vector with addresses; a byte has the same size
    static_assert(sizeof(bool) == sizeof(std::uint8_t));

    template <class Use> bool typed(Type type, Use use) {
        const Library& lib = *library_;
        switch (type) {
            case Type::real: return use(access<double>(lib, "fmi3SetFloat64", "fmi3GetFloat64"));
            case Type::float32: return use(access<float>(lib, "fmi3SetFloat32", "fmi3GetFloat32"));
            case Type::int8: return use(access<std::int8_t>(lib, "fmi3SetInt8", "fmi3GetInt8"));
            case Type::uint8: return use(access<std::uint8_t>(lib, "fmi3SetUInt8", "fmi3GetUInt8"));
            case Type::int16: return use(access<std::int16_t>(lib, "fmi3SetInt16", "fmi3GetInt16"));
            case Type::uint16: return use(access<std::uint16_t>(lib, "fmi3SetUInt16", "fmi3GetUInt16"));
            case Type::int32: return use(access<std::int32_t>(lib, "fmi3SetInt32", "fmi3GetInt32"));
            case Type::uint32: return use(access<std::uint32_t>(lib, "fmi3SetUInt32", "fmi3GetUInt32"));
            case Type::int64: return use(access<std::int64_t>(lib, "fmi3SetInt64", "fmi3GetInt64"));
            case Type::uint64: return use(access<std::uint64_t>(lib, "fmi3SetUInt64", "fmi3GetUInt64"));
            case Type::boolean: return use(access<std::uint8_t>(lib, "fmi3SetBoolean", "fmi3GetBoolean"));
            default: return wrong("a port that is no number");
        }
    }
    bool set_group(const Group& group, const double* values) override {
        if (group.type == Type::real && straight_in_ && &group == setup.set.data())
            return good(set_real_(instance_, group.references.data(), group.references.size(), values, group.places.size()),
                        "fmi3SetFloat64");
        return typed(group.type, [&](const auto& access) { return set_as(access, group, values); });
    }
    bool get_group(const Group& group, double* values) override {
        if (straight_out_)
            return good(get_real_(instance_, group.references.data(), group.references.size(), values, group.places.size()),
                        "fmi3GetFloat64");
        return typed(group.type, [&](const auto& access) { return get_as(access, group, values); });
    }
    bool set_whole(Type type, const std::vector<Reference>& references, const std::vector<std::int64_t>& values) override {
        return typed(type, [&](const auto& access) { return set_exactly(access, references, values); });
    }
    template <class T>
    bool set_exactly(const Access<T>& access, const std::vector<Reference>& references, const std::vector<std::int64_t>& values) {
        if (!access.set) return wrong(std::string("its binary has no function ") + access.set_name);
        std::vector<T> room;
        for (std::int64_t value : values) room.push_back(static_cast<T>(value));  // ranges were checked by Python
        return good(access.set(instance_, references.data(), references.size(), room.data(), room.size()), access.set_name);
    }
    bool write_texts(const Reference* references, std::size_t count, const std::string* values, bool binary) override {
        if (binary) {
            if (!set_binary_) return wrong("its binary has no function fmi3SetBinary");
            std::vector<std::size_t> sizes;
            std::vector<Binary> data;
            for (std::size_t k = 0; k < count; ++k) {
                sizes.push_back(values[k].size());
                data.push_back(reinterpret_cast<Binary>(values[k].data()));
            }
            return good(set_binary_(instance_, references, count, sizes.data(), data.data(), count), "fmi3SetBinary");
        }
        const auto strings = access<Text>(*library_, "fmi3SetString", "fmi3GetString");
        if (!strings.set) return wrong("its binary has no function fmi3SetString");
        std::vector<Text> texts;
        for (std::size_t k = 0; k < count; ++k) texts.push_back(values[k].c_str());
        return good(strings.set(instance_, references, count, texts.data(), count), "fmi3SetString");
    }
    bool read_text(Reference reference, bool binary, std::string& value) override {
        if (binary) {
            std::size_t size = 0;
            Binary data = nullptr;
            if (!get_binary_) return wrong("its binary has no function fmi3GetBinary");
            if (!good(get_binary_(instance_, &reference, 1, &size, &data, 1), "fmi3GetBinary")) return false;
            value.assign(reinterpret_cast<const char*>(data), data ? size : 0);
            return true;
        }
        const auto strings = access<Text>(*library_, "fmi3SetString", "fmi3GetString");
        if (!strings.get) return wrong("its binary has no function fmi3GetString");
        Text text = nullptr;
        if (!good(strings.get(instance_, &reference, 1, &text, 1), "fmi3GetString")) return false;
        value = text ? text : "";
        return true;
    }
    bool get_slopes(const Reference* references, std::size_t count, double* values) override {
        if (!get_derivatives_) return wrong("its binary has no function fmi3GetOutputDerivatives");
        orders_.assign(count, 1);
        return good(get_derivatives_(instance_, references, count, orders_.data(), values, setup.get[0].places.size()),
                    "fmi3GetOutputDerivatives");
    }
    Status get_state(State* state) override { return get_state_(instance_, state); }
    Status set_state(State state) override { return set_state_(instance_, state); }
    Status free_state(State* state) override { return free_state_(instance_, state); }

    InstantiateCs3* instantiate_ = nullptr;
    InstantiateMe3* instantiate_exchange_ = nullptr;
    Free* free_;
    Enter3* enter_;
    Simple *exit_, *terminate_, *enter_configuration_, *exit_configuration_, *enter_events_, *enter_steps_;
    Set3<double>* set_real_;
    Get3<double>* get_real_;
    Step3* step_ = nullptr;
    UpdateDiscrete3* update_;
    GetDerivatives3* get_derivatives_;
    GetState* get_state_;
    SetState* set_state_;
    GetState* free_state_;
    SetBinary* set_binary_;
    GetBinary* get_binary_;
    std::vector<Reference> intermediate_;
    std::vector<int> intermediate_places_;
    std::vector<std::int32_t> orders_;
    bool discrete_ = false;
    const double* u_ = nullptr;
    double began_ = 0.0;
    int stuck_ = 0;
};

}  // namespace

std::shared_ptr<Fmu> make_fmu3(std::shared_ptr<Library> library, Setup setup) {
    return std::make_shared<Fmu3>(std::move(library), std::move(setup));
}

}  // namespace hocket
