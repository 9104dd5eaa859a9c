// A co-simulation as an FMU of FMI 2.0: the functions of the standard, each a few calls of CoupledSystem.
// In:  calls of an importer, as the standard orders them
// Out: values and statuses; a call out of order is an error with words
#include "export/instance.hpp"

namespace hocket::face {

namespace {

using fmi::Boolean2;
using fmi::Instance;
using fmi::Reference;
using fmi::Status;
using fmi::Text;
using Type = Variable::Type;

class Speaker2 final : public Speaker {
  public:
    Speaker2(const fmi::Callbacks2& callbacks, std::string name)
        : logger_(callbacks.logger), environment_(callbacks.environment), name_(std::move(name)) {}
    void say(Status status, const char* category, const std::string& text) override {
        if (logger_) logger_(environment_, name_.c_str(), status, category, "%s", text.c_str());
    }

  private:
    fmi::Logger2 logger_;
    void* environment_;
    std::string name_;
};

template <class T>
Status set_values(Instance it, const char* function, Type type, const Reference* references,
                  std::size_t count, const T* values) {
    return attempt(it, function, [&](FaceInstance& instance) {
        for (std::size_t k = 0; k < count; ++k)
            if (!instance.system->set(references[k], type, static_cast<double>(values[k]))) return false;
        return true;
    });
}

template <class T>
Status get_values(Instance it, const char* function, Type type, const Reference* references,
                  std::size_t count, T* values) {
    return attempt(it, function, [&](FaceInstance& instance) {
        for (std::size_t k = 0; k < count; ++k) {
            double value = 0.0;
            if (!instance.system->get(references[k], type, value)) return false;
            if (type == Type::integer && !(value >= -0x1p31 && value < 0x1p31))
                return instance.system->refuse("a whole number has more than 32 bits");
            values[k] = static_cast<T>(value);
        }
        return true;
    });
}

Status refuse(Instance it, const std::string& what) {
    return it ? complain(*static_cast<FaceInstance*>(it), what) : fmi::error;
}

}  // namespace

}  // namespace hocket::face

using namespace hocket;
using namespace hocket::face;

HOCKET_EXPORTED const char* fmi2GetTypesPlatform() { return "default"; }
HOCKET_EXPORTED const char* fmi2GetVersion() { return "2.0"; }

HOCKET_EXPORTED Status fmi2SetDebugLogging(Instance it, Boolean2 on, std::size_t, const Text*) {
    return attempt(it, "fmi2SetDebugLogging", [&](FaceInstance& instance) {
        instance.logging = on != 0;
        return true;
    });
}

HOCKET_EXPORTED Instance fmi2Instantiate(Text name, fmi::Kind2 kind, Text token, Text resources,
                                         const fmi::Callbacks2* callbacks, Boolean2, Boolean2 logging) {
    if (!callbacks) return nullptr;
    auto speaker = std::make_unique<Speaker2>(*callbacks, name ? name : "");
    if (kind != fmi::co_simulation2) {
        speaker->say(fmi::error, "logStatusError", "it is for co-simulation only");
        return nullptr;
    }
    return make_instance(name, token, folder_of(resources), std::move(speaker), logging != 0);
}

HOCKET_EXPORTED void fmi2FreeInstance(Instance it) { delete static_cast<FaceInstance*>(it); }

HOCKET_EXPORTED Status fmi2SetupExperiment(Instance it, Boolean2, double, double start, Boolean2 stops,
                                           double stop) {
    return attempt(it, "fmi2SetupExperiment",
                   [&](FaceInstance& instance) { return instance.system->set_up(start, stops != 0, stop); });
}
HOCKET_EXPORTED Status fmi2EnterInitializationMode(Instance it) {
    return attempt(it, "fmi2EnterInitializationMode",
                   [](FaceInstance& instance) { return instance.system->enter_initialisation(); });
}
HOCKET_EXPORTED Status fmi2ExitInitializationMode(Instance it) {
    return attempt(it, "fmi2ExitInitializationMode",
                   [](FaceInstance& instance) { return instance.system->leave_initialisation(); });
}
HOCKET_EXPORTED Status fmi2Terminate(Instance it) {
    return attempt(it, "fmi2Terminate", [](FaceInstance&) { return true; });
}
HOCKET_EXPORTED Status fmi2Reset(Instance it) {
    return attempt(it, "fmi2Reset", [](FaceInstance& instance) { return instance.system->reset(); });
}

// values

HOCKET_EXPORTED Status fmi2GetReal(Instance it, const Reference* references, std::size_t count,
                                   double* values) {
    return get_values(it, "fmi2GetReal", Type::real, references, count, values);
}
HOCKET_EXPORTED Status fmi2GetInteger(Instance it, const Reference* references, std::size_t count,
                                      int* values) {
    return get_values(it, "fmi2GetInteger", Type::integer, references, count, values);
}
HOCKET_EXPORTED Status fmi2GetBoolean(Instance it, const Reference* references, std::size_t count,
                                      Boolean2* values) {
    return get_values(it, "fmi2GetBoolean", Type::boolean, references, count, values);
}
HOCKET_EXPORTED Status fmi2GetString(Instance it, const Reference*, std::size_t count, Text*) {
    return count == 0 ? fmi::ok : refuse(it, "fmi2GetString: it has no strings");
}
HOCKET_EXPORTED Status fmi2SetReal(Instance it, const Reference* references, std::size_t count,
                                   const double* values) {
    return set_values(it, "fmi2SetReal", Type::real, references, count, values);
}
HOCKET_EXPORTED Status fmi2SetInteger(Instance it, const Reference* references, std::size_t count,
                                      const int* values) {
    return set_values(it, "fmi2SetInteger", Type::integer, references, count, values);
}
HOCKET_EXPORTED Status fmi2SetBoolean(Instance it, const Reference* references, std::size_t count,
                                      const Boolean2* values) {
    return set_values(it, "fmi2SetBoolean", Type::boolean, references, count, values);
}
HOCKET_EXPORTED Status fmi2SetString(Instance it, const Reference*, std::size_t count, const Text*) {
    return count == 0 ? fmi::ok : refuse(it, "fmi2SetString: it has no strings");
}

// states

HOCKET_EXPORTED Status fmi2GetFMUstate(Instance it, fmi::State* state) { return get_state(it, state); }
HOCKET_EXPORTED Status fmi2SetFMUstate(Instance it, fmi::State state) { return set_state(it, state); }
HOCKET_EXPORTED Status fmi2FreeFMUstate(Instance, fmi::State* state) { return free_state(state); }
HOCKET_EXPORTED Status fmi2SerializedFMUstateSize(Instance it, fmi::State state, std::size_t* size) {
    return state_size(it, state, size);
}
HOCKET_EXPORTED Status fmi2SerializeFMUstate(Instance it, fmi::State state, char* bytes, std::size_t size) {
    return write_state(it, state, bytes, size);
}
HOCKET_EXPORTED Status fmi2DeSerializeFMUstate(Instance it, const char* bytes, std::size_t size,
                                               fmi::State* state) {
    return read_state(it, bytes, size, state);
}

// steps

HOCKET_EXPORTED Status fmi2SetRealInputDerivatives(Instance it, const Reference* references,
                                                   std::size_t count, const int* orders,
                                                   const double* values) {
    return attempt(it, "fmi2SetRealInputDerivatives", [&](FaceInstance& instance) {
        for (std::size_t k = 0; k < count; ++k)
            if (!instance.system->set_derivative(references[k], orders[k], values[k])) return false;
        return true;
    });
}
HOCKET_EXPORTED Status fmi2GetRealOutputDerivatives(Instance it, const Reference*, std::size_t count,
                                                    const int*, double*) {
    return count == 0 ? fmi::ok : refuse(it, "fmi2GetRealOutputDerivatives: it gives none");
}
HOCKET_EXPORTED Status fmi2GetDirectionalDerivative(Instance it, const Reference*, std::size_t,
                                                    const Reference*, std::size_t, const double*, double*) {
    return refuse(it, "fmi2GetDirectionalDerivative: it gives none");
}
HOCKET_EXPORTED Status fmi2DoStep(Instance it, double t, double h, Boolean2) {
    return attempt(it, "fmi2DoStep", [&](FaceInstance& instance) { return instance.system->step(t, h); });
}
HOCKET_EXPORTED Status fmi2CancelStep(Instance it) {
    return refuse(it, "fmi2CancelStep: no step is pending");
}

HOCKET_EXPORTED Status fmi2GetStatus(Instance it, fmi::StatusKind, Status*) {
    return refuse(it, "fmi2GetStatus: no step is pending");
}
HOCKET_EXPORTED Status fmi2GetRealStatus(Instance it, fmi::StatusKind kind, double* value) {
    if (kind != fmi::last_successful_time) return refuse(it, "fmi2GetRealStatus: there is no such status");
    return attempt(it, "fmi2GetRealStatus", [&](FaceInstance& instance) {
        *value = instance.system->time();
        return true;
    });
}
HOCKET_EXPORTED Status fmi2GetIntegerStatus(Instance it, fmi::StatusKind, int*) {
    return refuse(it, "fmi2GetIntegerStatus: there is no such status");
}
HOCKET_EXPORTED Status fmi2GetBooleanStatus(Instance it, fmi::StatusKind kind, Boolean2* value) {
    if (kind != fmi::terminated) return refuse(it, "fmi2GetBooleanStatus: there is no such status");
    *value = 0;
    return fmi::ok;
}
HOCKET_EXPORTED Status fmi2GetStringStatus(Instance it, fmi::StatusKind, Text*) {
    return refuse(it, "fmi2GetStringStatus: there is no such status");
}
