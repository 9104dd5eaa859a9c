// A co-simulation as an FMU of FMI 3.0: the functions of the standard, each a few calls of CoupledSystem.
// In:  calls of an importer, as the standard orders them
// Out: values and statuses; a call out of order is an error with words
#include "export/instance.hpp"

namespace hocket::face {

namespace {

using fmi::Binary;
using fmi::Boolean3;
using fmi::Instance;
using fmi::Reference;
using fmi::Status;
using fmi::Text;
using Type = Variable::Type;

class Speaker3 final : public Speaker {
  public:
    Speaker3(fmi::Logger3 logger, void* environment) : logger_(logger), environment_(environment) {}
    void say(Status status, const char* category, const std::string& text) override {
        if (logger_) logger_(environment_, status, category, text.c_str());
    }

  private:
    fmi::Logger3 logger_;
    void* environment_;
};

// All variables are scalars: there are as many values as references.
template <class T>
Status set_values(Instance it, const char* function, Type type, const Reference* references,
                  std::size_t count, const T* values, std::size_t size) {
    return attempt(it, function, [&](FaceInstance& instance) {
        if (count != size) return instance.system->refuse("as many values as variables are expected");
        for (std::size_t k = 0; k < count; ++k)
            if (!instance.system->set(references[k], type, static_cast<double>(values[k]))) return false;
        return true;
    });
}

template <class T>
Status get_values(Instance it, const char* function, Type type, const Reference* references,
                  std::size_t count, T* values, std::size_t size) {
    return attempt(it, function, [&](FaceInstance& instance) {
        if (count != size) return instance.system->refuse("as many values as variables are expected");
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

Status none_of(Instance it, const char* function, std::size_t count) {
    return count == 0 ? fmi::ok : refuse(it, std::string(function) + ": it has no variables of this type");
}

}  // namespace

}  // namespace hocket::face

using namespace hocket;
using namespace hocket::face;

HOCKET_EXPORTED const char* fmi3GetVersion() { return "3.0"; }

HOCKET_EXPORTED Status fmi3SetDebugLogging(Instance it, Boolean3 on, std::size_t, const Text*) {
    return attempt(it, "fmi3SetDebugLogging", [&](FaceInstance& instance) {
        instance.logging = on;
        return true;
    });
}

HOCKET_EXPORTED Instance fmi3InstantiateCoSimulation(Text name, Text token, Text resources, Boolean3,
                                                     Boolean3 logging, Boolean3 events, Boolean3,
                                                     const Reference*, std::size_t intermediate,
                                                     void* environment, fmi::Logger3 logger, fmi::Update3) {
    auto speaker = std::make_unique<Speaker3>(logger, environment);
    if (events || intermediate > 0) {
        speaker->say(fmi::error, "logStatusError",
                     events ? "it has no event mode" : "it sets no variables within a step");
        return nullptr;
    }
    return make_instance(name, token, folder_of(resources), std::move(speaker), logging);
}
HOCKET_EXPORTED Instance fmi3InstantiateModelExchange(Text, Text, Text, Boolean3, Boolean3, void* environment,
                                                      fmi::Logger3 logger) {
    Speaker3(logger, environment).say(fmi::error, "logStatusError", "it is for co-simulation only");
    return nullptr;
}
HOCKET_EXPORTED Instance fmi3InstantiateScheduledExecution(Text, Text, Text, Boolean3, Boolean3,
                                                           void* environment, fmi::Logger3 logger,
                                                           void (*)(void*), void (*)(), void (*)()) {
    Speaker3(logger, environment).say(fmi::error, "logStatusError", "it is for co-simulation only");
    return nullptr;
}
HOCKET_EXPORTED void fmi3FreeInstance(Instance it) { delete static_cast<FaceInstance*>(it); }

HOCKET_EXPORTED Status fmi3EnterInitializationMode(Instance it, Boolean3, double, double start,
                                                   Boolean3 stops, double stop) {
    return attempt(it, "fmi3EnterInitializationMode", [&](FaceInstance& instance) {
        return instance.system->set_up(start, stops, stop) && instance.system->enter_initialisation();
    });
}
HOCKET_EXPORTED Status fmi3ExitInitializationMode(Instance it) {
    return attempt(it, "fmi3ExitInitializationMode",
                   [](FaceInstance& instance) { return instance.system->leave_initialisation(); });
}
HOCKET_EXPORTED Status fmi3EnterEventMode(Instance it) {
    return refuse(it, "fmi3EnterEventMode: it has no event mode");
}
HOCKET_EXPORTED Status fmi3EnterStepMode(Instance it) {
    return refuse(it, "fmi3EnterStepMode: it has no event mode");
}
HOCKET_EXPORTED Status fmi3Terminate(Instance it) {
    return attempt(it, "fmi3Terminate", [](FaceInstance&) { return true; });
}
HOCKET_EXPORTED Status fmi3Reset(Instance it) {
    return attempt(it, "fmi3Reset", [](FaceInstance& instance) { return instance.system->reset(); });
}

// values

HOCKET_EXPORTED Status fmi3GetFloat64(Instance it, const Reference* references, std::size_t count,
                                      double* values, std::size_t size) {
    return get_values(it, "fmi3GetFloat64", Type::real, references, count, values, size);
}
HOCKET_EXPORTED Status fmi3GetInt32(Instance it, const Reference* references, std::size_t count,
                                    std::int32_t* values, std::size_t size) {
    return get_values(it, "fmi3GetInt32", Type::integer, references, count, values, size);
}
HOCKET_EXPORTED Status fmi3GetBoolean(Instance it, const Reference* references, std::size_t count,
                                      Boolean3* values, std::size_t size) {
    return get_values(it, "fmi3GetBoolean", Type::boolean, references, count, values, size);
}
HOCKET_EXPORTED Status fmi3SetFloat64(Instance it, const Reference* references, std::size_t count,
                                      const double* values, std::size_t size) {
    return set_values(it, "fmi3SetFloat64", Type::real, references, count, values, size);
}
HOCKET_EXPORTED Status fmi3SetInt32(Instance it, const Reference* references, std::size_t count,
                                    const std::int32_t* values, std::size_t size) {
    return set_values(it, "fmi3SetInt32", Type::integer, references, count, values, size);
}
HOCKET_EXPORTED Status fmi3SetBoolean(Instance it, const Reference* references, std::size_t count,
                                      const Boolean3* values, std::size_t size) {
    return set_values(it, "fmi3SetBoolean", Type::boolean, references, count, values, size);
}

// of types that no variable has
#define HOCKET_NO_VALUES(NAME, TYPE)                                                                    \
    HOCKET_EXPORTED Status fmi3Get##NAME(Instance it, const Reference*, std::size_t count, TYPE*,       \
                                         std::size_t) {                                                 \
        return none_of(it, "fmi3Get" #NAME, count);                                                     \
    }                                                                                                   \
    HOCKET_EXPORTED Status fmi3Set##NAME(Instance it, const Reference*, std::size_t count, const TYPE*, \
                                         std::size_t) {                                                 \
        return none_of(it, "fmi3Set" #NAME, count);                                                     \
    }
HOCKET_NO_VALUES(Float32, float)
HOCKET_NO_VALUES(Int8, std::int8_t)
HOCKET_NO_VALUES(UInt8, std::uint8_t)
HOCKET_NO_VALUES(Int16, std::int16_t)
HOCKET_NO_VALUES(UInt16, std::uint16_t)
HOCKET_NO_VALUES(UInt32, std::uint32_t)
HOCKET_NO_VALUES(Int64, std::int64_t)
HOCKET_NO_VALUES(UInt64, std::uint64_t)
HOCKET_NO_VALUES(String, Text)
#undef HOCKET_NO_VALUES

HOCKET_EXPORTED Status fmi3GetBinary(Instance it, const Reference*, std::size_t count, std::size_t*, Binary*,
                                     std::size_t) {
    return none_of(it, "fmi3GetBinary", count);
}
HOCKET_EXPORTED Status fmi3SetBinary(Instance it, const Reference*, std::size_t count, const std::size_t*,
                                     const Binary*, std::size_t) {
    return none_of(it, "fmi3SetBinary", count);
}
HOCKET_EXPORTED Status fmi3GetClock(Instance it, const Reference*, std::size_t count, Boolean3*) {
    return none_of(it, "fmi3GetClock", count);
}
HOCKET_EXPORTED Status fmi3SetClock(Instance it, const Reference*, std::size_t count, const Boolean3*) {
    return none_of(it, "fmi3SetClock", count);
}
HOCKET_EXPORTED Status fmi3GetIntervalDecimal(Instance it, const Reference*, std::size_t count, double*,
                                              fmi::Qualifier3*) {
    return none_of(it, "fmi3GetIntervalDecimal", count);
}
HOCKET_EXPORTED Status fmi3GetIntervalFraction(Instance it, const Reference*, std::size_t count,
                                               std::uint64_t*, std::uint64_t*, fmi::Qualifier3*) {
    return none_of(it, "fmi3GetIntervalFraction", count);
}
HOCKET_EXPORTED Status fmi3GetShiftDecimal(Instance it, const Reference*, std::size_t count, double*) {
    return none_of(it, "fmi3GetShiftDecimal", count);
}
HOCKET_EXPORTED Status fmi3GetShiftFraction(Instance it, const Reference*, std::size_t count, std::uint64_t*,
                                            std::uint64_t*) {
    return none_of(it, "fmi3GetShiftFraction", count);
}
HOCKET_EXPORTED Status fmi3SetIntervalDecimal(Instance it, const Reference*, std::size_t count,
                                              const double*) {
    return none_of(it, "fmi3SetIntervalDecimal", count);
}
HOCKET_EXPORTED Status fmi3SetIntervalFraction(Instance it, const Reference*, std::size_t count,
                                               const std::uint64_t*, const std::uint64_t*) {
    return none_of(it, "fmi3SetIntervalFraction", count);
}
HOCKET_EXPORTED Status fmi3SetShiftDecimal(Instance it, const Reference*, std::size_t count, const double*) {
    return none_of(it, "fmi3SetShiftDecimal", count);
}
HOCKET_EXPORTED Status fmi3SetShiftFraction(Instance it, const Reference*, std::size_t count,
                                            const std::uint64_t*, const std::uint64_t*) {
    return none_of(it, "fmi3SetShiftFraction", count);
}
HOCKET_EXPORTED Status fmi3EvaluateDiscreteStates(Instance it) {
    return refuse(it, "fmi3EvaluateDiscreteStates: it has no event mode");
}
HOCKET_EXPORTED Status fmi3UpdateDiscreteStates(Instance it, Boolean3*, Boolean3*, Boolean3*, Boolean3*,
                                                Boolean3*, double*) {
    return refuse(it, "fmi3UpdateDiscreteStates: it has no event mode");
}

HOCKET_EXPORTED Status fmi3GetNumberOfVariableDependencies(Instance it, Reference, std::size_t*) {
    return refuse(it, "fmi3GetNumberOfVariableDependencies: its dependencies are those of its description");
}
HOCKET_EXPORTED Status fmi3GetVariableDependencies(Instance it, Reference, std::size_t*, Reference*,
                                                   std::size_t*, int*, std::size_t) {
    return refuse(it, "fmi3GetVariableDependencies: its dependencies are those of its description");
}
HOCKET_EXPORTED Status fmi3EnterConfigurationMode(Instance it) {
    return refuse(it, "fmi3EnterConfigurationMode: it has no structural parameters");
}
HOCKET_EXPORTED Status fmi3ExitConfigurationMode(Instance it) {
    return refuse(it, "fmi3ExitConfigurationMode: it has no structural parameters");
}

// states

HOCKET_EXPORTED Status fmi3GetFMUState(Instance it, fmi::State* state) { return get_state(it, state); }
HOCKET_EXPORTED Status fmi3SetFMUState(Instance it, fmi::State state) { return set_state(it, state); }
HOCKET_EXPORTED Status fmi3FreeFMUState(Instance, fmi::State* state) { return free_state(state); }
HOCKET_EXPORTED Status fmi3SerializedFMUStateSize(Instance it, fmi::State state, std::size_t* size) {
    return state_size(it, state, size);
}
HOCKET_EXPORTED Status fmi3SerializeFMUState(Instance it, fmi::State state, std::uint8_t* bytes,
                                             std::size_t size) {
    return write_state(it, state, reinterpret_cast<char*>(bytes), size);
}
HOCKET_EXPORTED Status fmi3DeserializeFMUState(Instance it, const std::uint8_t* bytes, std::size_t size,
                                               fmi::State* state) {
    return read_state(it, reinterpret_cast<const char*>(bytes), size, state);
}

// steps

HOCKET_EXPORTED Status fmi3GetOutputDerivatives(Instance it, const Reference*, std::size_t count,
                                                const std::int32_t*, double*, std::size_t) {
    return none_of(it, "fmi3GetOutputDerivatives", count);
}
HOCKET_EXPORTED Status fmi3GetDirectionalDerivative(Instance it, const Reference*, std::size_t,
                                                    const Reference*, std::size_t, const double*, std::size_t,
                                                    double*, std::size_t) {
    return refuse(it, "fmi3GetDirectionalDerivative: it gives none");
}
HOCKET_EXPORTED Status fmi3GetAdjointDerivative(Instance it, const Reference*, std::size_t, const Reference*,
                                                std::size_t, const double*, std::size_t, double*,
                                                std::size_t) {
    return refuse(it, "fmi3GetAdjointDerivative: it gives none");
}
HOCKET_EXPORTED Status fmi3DoStep(Instance it, double t, double h, Boolean3, Boolean3* events,
                                  Boolean3* terminates, Boolean3* early, double* reached) {
    if (events) *events = false;
    if (terminates) *terminates = false;
    if (early) *early = false;
    const Status status =
        attempt(it, "fmi3DoStep", [&](FaceInstance& instance) { return instance.system->step(t, h); });
    if (reached && it) *reached = static_cast<FaceInstance*>(it)->system->time();
    return status;
}
HOCKET_EXPORTED Status fmi3ActivateModelPartition(Instance it, Reference, double) {
    return refuse(it, "fmi3ActivateModelPartition: it is for co-simulation only");
}

// of model exchange: importers load all functions, whichever they call
#define HOCKET_NOT_HERE(NAME, ...)                                              \
    HOCKET_EXPORTED Status fmi3##NAME(Instance it __VA_OPT__(, ) __VA_ARGS__) { \
        return refuse(it, "fmi3" #NAME ": it is for co-simulation only");       \
    }
HOCKET_NOT_HERE(EnterContinuousTimeMode)
HOCKET_NOT_HERE(CompletedIntegratorStep, Boolean3, Boolean3*, Boolean3*)
HOCKET_NOT_HERE(SetTime, double)
HOCKET_NOT_HERE(SetContinuousStates, const double*, std::size_t)
HOCKET_NOT_HERE(GetContinuousStateDerivatives, double*, std::size_t)
HOCKET_NOT_HERE(GetEventIndicators, double*, std::size_t)
HOCKET_NOT_HERE(GetContinuousStates, double*, std::size_t)
HOCKET_NOT_HERE(GetNominalsOfContinuousStates, double*, std::size_t)
HOCKET_NOT_HERE(GetNumberOfEventIndicators, std::size_t*)
HOCKET_NOT_HERE(GetNumberOfContinuousStates, std::size_t*)
#undef HOCKET_NOT_HERE
