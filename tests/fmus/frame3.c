/* FMI 3.0 around a model: co-simulation and model exchange. References of other types than Float64 have an offset. */
#include "frame.h"

#define ABSENT(name, ...)                                                                                \
    EXPORT int name(Model *m, __VA_ARGS__) {                                                             \
        CALL(m);                                                                                         \
        LOG(m, ERROR, "logStatusError", "%s is not among the capabilities of this FMU", __func__);          \
        return ERROR;                                                                                    \
    }

/* Between communication points only the environment knows the inputs. */
void input_at(Model *m, double t) {
    bool return_requested = false;
    double return_time = t;
    if (m->host.intermediate)
        m->host.intermediate(m->host.environment, t, true, false, false, false, &return_requested, &return_time);
}

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT int fmi3SetDebugLogging(Model *m, bool on, size_t n, const char *const *) {
    CALL(m, "on=%d categories=%zu", on, n);
    return OK;
}

EXPORT Model *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *, bool, bool, bool events,
                                          bool early, References, size_t required, void *environment, void *log,
                                          void *intermediate) {
    Host host = {.environment = environment, .log = log, .intermediate = intermediate};
    host.events = events;
    host.early = early;
#ifdef REFUSES_EVENT_MODE
    if (events) {
        log ? ((void (*)(void *, int, const char *, const char *))log)(environment, ERROR, "logStatusError",
                                                                       "event mode is not implemented") : (void)0;
        return NULL;
    }
#endif
    Model *m = instantiate(host, name, token);
    CALL(m, "events=%d early=%d intermediate=%zu", events, early, required);
    return m;
}

EXPORT Model *fmi3InstantiateModelExchange(const char *name, const char *token, const char *, bool, bool,
                                           void *environment, void *log) {
    Model *m = instantiate((Host){.environment = environment, .log = log, .events = true}, name, token);
    CALL(m);
    return m;
}

EXPORT Model *fmi3InstantiateScheduledExecution(const char *name, const char *token, const char *, bool, bool,
                                                void *environment, void *log, void *, void *, void *) {
    Model *m = instantiate((Host){.environment = environment, .log = log, .events = true}, name, token);
    CALL(m);
    return m;
}

EXPORT void fmi3FreeInstance(Model *m) {
    CALL(m);
    if (m)
        release(m);
}

EXPORT int fmi3EnterInitializationMode(Model *m, bool has_tolerance, double tolerance, double t, bool has_stop,
                                       double stop) {
    CALL(m, "tolerance=%.17g start=%.17g stop=%.17g", has_tolerance ? tolerance : 0, t, has_stop ? stop : 0);
#ifdef RESETS_AT_INITIALISATION
    reset(m);
#endif
    m->time = t;
    m->host.stop = has_stop ? stop : 1e300;
    return OK;
}

EXPORT int fmi3ExitInitializationMode(Model *m) {
    CALL(m);
#ifdef OUTPUTS_AFTER_INITIALISATION
    m->host.stepped = true;
#endif
    return settled(m);
}

EXPORT int fmi3Terminate(Model *m) {
    CALL(m);
    return OK;
}

EXPORT int fmi3Reset(Model *m) {
    CALL(m);
    return reset(m);
}

EXPORT int fmi3DoStep(Model *m, double t, double h, bool no_set_state, bool *event_needed, bool *terminate, bool *early,
                      double *last) {
    CALL(m, "t=%.17g h=%.17g final=%d", t, h, no_set_state);
    *event_needed = *terminate = *early = false;
    *last = t + h;
    if (stands_still(m, no_set_state))
        return OK;
    m->time = t;
    m->host.stepped = true;
#ifdef ENDS_AT_STOP
    if (t + h > m->host.stop) {
        *event_needed = *early = false;
        *terminate = true;
        *last = t;
        return OK;
    }
#endif
    int status = step(m, h);
    if (status < DISCARD)
        m->time = t + h;
    m->fresh = TABLE.stored;
    *event_needed = m->event;
    *terminate = m->ends;
    *early = status == DISCARD && m->host.early;
    *last = m->time;
#ifdef TELLS_HALF
    *last = t + h / 2;
#endif
    return *early ? OK : status;
}

/* A model with arrays: every variable has a place and a size. */
static int move(Model *m, References references, size_t n, double *values, size_t count, bool get) {
    for (size_t k = 0, size; k < n; k++, values += size, count -= size) {
        double *here = place(m, references[k], &size);
        if (!here || size > count)
            return complain(m, __func__, "no such variable, or a wrong number of values, at", references[k]);
        memcpy(get ? values : here, get ? here : values, size * sizeof *values);
    }
    return count ? ERROR : OK;
}

EXPORT int fmi3GetFloat64(Model *m, References references, size_t n, double values[], size_t count) {
    if (TABLE.arrays)
        refresh(m);
    int status = TABLE.arrays ? move(m, references, n, values, count, true) : get_float64(m, references, n, values);
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    return status;
}

EXPORT int fmi3SetFloat64(Model *m, References references, size_t n, const double values[], size_t count) {
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    if (!TABLE.arrays)
        return set_float64(m, references, n, values);
    m->fresh = m->base;
    return move(m, references, n, (double *)values, count, false);
}

#define ACCESS(Name, kind, stored, type, format, cast, PUT)                                              \
    EXPORT int fmi3Get##Name(Model *m, References references, size_t n, type values[], size_t) {         \
        if (m->fresh != TABLE.float64.count)                                                             \
            refresh(m);                                                                                  \
        for (size_t k = 0; k < n; k++) {                                                                 \
            if (outside(references[k], TABLE.kind))                                                      \
                return complain(m, __func__, "there is no variable", references[k]);                     \
            values[k] = AT(m, kind, stored)[references[k] - TABLE.kind.offset];                          \
        }                                                                                                \
        CALL_VALUES(m, references, n, format, (cast)values[k]);                                          \
        return OK;                                                                                       \
    }                                                                                                    \
    EXPORT int fmi3Set##Name(Model *m, References references, size_t n, type const values[], size_t) {   \
        CALL_VALUES(m, references, n, format, (cast)values[k]);                                          \
        for (size_t k = 0; k < n; k++)                                                                   \
            if (outside(references[k], TABLE.kind) ||                                                    \
                PUT(AT(m, kind, stored)[references[k] - TABLE.kind.offset], values[k]))                  \
                return complain(m, __func__, "no such variable, or too long a value", references[k]);    \
        m->fresh = m->base;                                                                              \
        return OK;                                                                                       \
    }

ACCESS(Int32, int32, int32_t, int32_t, "%d", int, ASSIGN)
ACCESS(Boolean, boolean, bool, bool, "%d", int, ASSIGN)
ACCESS(Float32, float32, float, float, "%.9g", double, ASSIGN)
ACCESS(Int8, int8, int8_t, int8_t, "%d", int, ASSIGN)
ACCESS(UInt8, uint8, uint8_t, uint8_t, "%u", unsigned, ASSIGN)
ACCESS(Int16, int16, int16_t, int16_t, "%d", int, ASSIGN)
ACCESS(UInt16, uint16, uint16_t, uint16_t, "%u", unsigned, ASSIGN)
ACCESS(UInt32, uint32, uint32_t, uint32_t, "%u", unsigned, ASSIGN)
ACCESS(Int64, int64, int64_t, int64_t, "%lld", long long, ASSIGN)
ACCESS(UInt64, uint64, uint64_t, uint64_t, "%llu", unsigned long long, ASSIGN)
ACCESS(String, string, Text, const char *, "%s", const char *, set_text)

EXPORT int fmi3GetBinary(Model *m, References references, size_t n, size_t sizes[], const uint8_t *values[], size_t) {
    for (size_t k = 0; k < n; k++) {
        if (outside(references[k], TABLE.binary))
            return complain(m, __func__, "there is no variable", references[k]);
        sizes[k] = AT(m, binary, Bytes)[references[k] - TABLE.binary.offset].size;
        values[k] = AT(m, binary, Bytes)[references[k] - TABLE.binary.offset].bytes;
    }
    CALL_VALUES(m, references, n, "%zu bytes", sizes[k]);
    return OK;
}

EXPORT int fmi3SetBinary(Model *m, References references, size_t n, const size_t sizes[],
                         const uint8_t *const values[], size_t) {
    CALL_VALUES(m, references, n, "%zu bytes", sizes[k]);
    for (size_t k = 0; k < n; k++) {
        if (outside(references[k], TABLE.binary) || sizes[k] > LENGTH)
            return complain(m, __func__, "no such variable, or too long a value", references[k]);
        Bytes *target = &AT(m, binary, Bytes)[references[k] - TABLE.binary.offset];
        target->size = sizes[k];
        memcpy(target->bytes, values[k], sizes[k]);
    }
    m->fresh = m->base;
    return OK;
}

EXPORT int fmi3GetClock(Model *m, References references, size_t n, bool values[]) {
    evaluate(m);
    for (size_t k = 0; k < n; k++) {
        if (outside(references[k], TABLE.clock))
            return complain(m, __func__, "there is no clock", references[k]);
        values[k] = AT(m, clock, bool)[references[k] - TABLE.clock.offset];
    }
    CALL_VALUES(m, references, n, "%d", values[k]);
    return OK;
}

EXPORT int fmi3SetClock(Model *m, References references, size_t n, const bool values[]) {
    CALL_VALUES(m, references, n, "%d", values[k]);
    for (size_t k = 0; k < n; k++) {
        if (outside(references[k], TABLE.clock))
            return complain(m, __func__, "there is no clock", references[k]);
        AT(m, clock, bool)[references[k] - TABLE.clock.offset] = values[k];
    }
    m->fresh = m->base;
    return OK;
}

EXPORT int fmi3GetFMUState(Model *m, Model **state) {
    CALL(m);
    return save(m, state);
}

EXPORT int fmi3SetFMUState(Model *m, Model *state) {
    CALL(m);
    return restore(m, state);
}

EXPORT int fmi3FreeFMUState(Model *m, Model **state) {
    CALL(m);
    free(*state);
    *state = NULL;
    return OK;
}

EXPORT int fmi3SerializedFMUStateSize(Model *m, Model *, size_t *size) {
    CALL(m);
    *size = TABLE.size;
    return OK;
}

EXPORT int fmi3SerializeFMUState(Model *m, Model *state, uint8_t bytes[], size_t size) {
    CALL(m, "size=%zu", size);
    if (size < TABLE.size)
        return ERROR;
    memcpy(bytes, state, TABLE.size);
    return OK;
}

EXPORT int fmi3DeserializeFMUState(Model *m, const uint8_t bytes[], size_t size, Model **state) {
    CALL(m, "size=%zu", size);
    if (size != TABLE.size)
        return ERROR;
    save(m, state);
    memcpy(*state, bytes, size);
    return OK;
}

EXPORT int fmi3GetDirectionalDerivative(Model *m, References unknowns, size_t rows, References knowns, size_t columns,
                                        const double seed[], size_t, double sensitivity[], size_t) {
    CALL(m, "unknowns=%zu knowns=%zu", rows, columns);
#ifdef NO_DIRECTIONAL
    return ERROR; /* whatever its description says */
#endif
    for (size_t i = 0; i < rows; i++) {
        sensitivity[i] = 0;
        for (size_t j = 0; j < columns; j++)
            sensitivity[i] += partial(m, unknowns[i], knowns[j]) * seed[j];
#ifdef WRONG_DIRECTIONAL
        sensitivity[i] *= 0.75;
#endif
    }
    return OK;
}

EXPORT int fmi3GetAdjointDerivative(Model *m, References unknowns, size_t rows, References knowns, size_t columns,
                                    const double seed[], size_t, double sensitivity[], size_t) {
    CALL(m, "unknowns=%zu knowns=%zu", rows, columns);
    for (size_t j = 0; j < columns; j++) {
        sensitivity[j] = 0;
        for (size_t i = 0; i < rows; i++)
            sensitivity[j] += partial(m, unknowns[i], knowns[j]) * seed[i];
    }
    return OK;
}

EXPORT int fmi3GetOutputDerivatives(Model *m, References references, size_t n, const int32_t orders[], double values[],
                                    size_t) {
    int status = output_derivatives(m, references, n, orders, values);
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    return status;
}

EXPORT int fmi3EnterConfigurationMode(Model *m) {
    CALL(m);
    return OK;
}

EXPORT int fmi3ExitConfigurationMode(Model *m) {
    CALL(m);
    configure(m);
    m->fresh = m->base;
    return OK;
}

EXPORT int fmi3EnterEventMode(Model *m) {
    CALL(m);
    return OK;
}

EXPORT int fmi3EvaluateDiscreteStates(Model *m) {
    CALL(m);
    return OK;
}

EXPORT int fmi3UpdateDiscreteStates(Model *m, bool *needed, bool *terminate, bool *nominals_changed,
                                    bool *values_changed, bool *next_defined, double *next) {
    CALL(m);
    *nominals_changed = false;
    *values_changed = event(m);
    *needed = unsettled(m);
    *terminate = ends(m) || m->ends;
    *next = next_event(m);
    *next_defined = isfinite(*next);
    m->event = false;
    renew(m, true);
    return OK;
}

EXPORT int fmi3EnterStepMode(Model *m) {
    CALL(m);
    return OK;
}

EXPORT int fmi3EnterContinuousTimeMode(Model *m) {
    CALL(m);
    return OK;
}

EXPORT int fmi3CompletedIntegratorStep(Model *m, bool no_set_state, bool *enter_event_mode, bool *terminate) {
    CALL(m, "final=%d", no_set_state);
    *enter_event_mode = completed(m);
    renew(m, false);
    *terminate = m->ends;
    return OK;
}

EXPORT int fmi3SetTime(Model *m, double t) {
    CALL(m, "t=%.17g", t);
    return set_time(m, t);
}

EXPORT int fmi3SetContinuousStates(Model *m, const double x[], size_t n) {
    CALL(m, "n=%zu", n);
    return n == TABLE.states ? set_states(m, x) : ERROR;
}

EXPORT int fmi3GetContinuousStateDerivatives(Model *m, double dx[], size_t n) {
    CALL(m, "n=%zu", n);
    return n == TABLE.states ? get_rates(m, TABLE.derivative, n, dx) : ERROR;
}

EXPORT int fmi3GetEventIndicators(Model *m, double z[], size_t n) {
    CALL(m, "n=%zu", n);
    return n == TABLE.indicators ? get_rates(m, TABLE.indicator, n, z) : ERROR;
}

EXPORT int fmi3GetContinuousStates(Model *m, double x[], size_t n) {
    CALL(m, "n=%zu", n);
    return n == TABLE.states ? get_float64(m, TABLE.state, n, x) : ERROR;
}

EXPORT int fmi3GetNominalsOfContinuousStates(Model *m, double nominals[], size_t n) {
    CALL(m, "n=%zu", n);
    for (size_t i = 0; i < n; i++)
        nominals[i] = 1;
    return OK;
}

EXPORT int fmi3GetNumberOfEventIndicators(Model *m, size_t *n) {
    CALL(m);
    *n = TABLE.indicators;
    return OK;
}

EXPORT int fmi3GetNumberOfContinuousStates(Model *m, size_t *n) {
    CALL(m);
    *n = TABLE.states;
    return OK;
}

ABSENT(fmi3GetNumberOfVariableDependencies, unsigned, size_t *)
ABSENT(fmi3GetVariableDependencies, unsigned, size_t *, unsigned *, size_t *, int *, size_t)
ABSENT(fmi3SetIntervalDecimal, const unsigned *, size_t, const double *)
ABSENT(fmi3SetIntervalFraction, const unsigned *, size_t, const uint64_t *, const uint64_t *)
ABSENT(fmi3SetShiftDecimal, const unsigned *, size_t, const double *)
ABSENT(fmi3SetShiftFraction, const unsigned *, size_t, const uint64_t *, const uint64_t *)

EXPORT int fmi3ActivateModelPartition(Model *m, unsigned clock, double t) {
    CALL(m, "clock=%u t=%.17g", clock, t);
    m->time = t;
    m->fresh = m->base;
    return activate(m, clock);
}

/* An interval is counter / resolution seconds; no resolution: it is not yet known. */
EXPORT int fmi3GetIntervalDecimal(Model *m, References references, size_t n, double intervals[], int qualifiers[]) {
    for (size_t k = 0; k < n; k++) {
        Interval found = interval(m, references[k]);
        qualifiers[k] = found.resolution ? 2 : 0;
        intervals[k] = found.resolution ? found.counter / (double)found.resolution : 0;
    }
    CALL_VALUES(m, references, n, "%.17g", intervals[k]);
    return OK;
}

EXPORT int fmi3GetIntervalFraction(Model *m, References references, size_t n, uint64_t counters[],
                                   uint64_t resolutions[], int qualifiers[]) {
    for (size_t k = 0; k < n; k++) {
        Interval found = interval(m, references[k]);
        qualifiers[k] = found.resolution ? 2 : 0;
        counters[k] = (uint64_t)found.counter;
        resolutions[k] = found.resolution ? found.resolution : 1;
    }
    CALL_VALUES(m, references, n, "%llu", (unsigned long long)counters[k]);
    return OK;
}

EXPORT int fmi3GetShiftDecimal(Model *m, References references, size_t n, double shifts[]) {
    for (size_t k = 0; k < n; k++)
        shifts[k] = 0;
    CALL_VALUES(m, references, n, "%.17g", shifts[k]);
    return OK;
}

EXPORT int fmi3GetShiftFraction(Model *m, References references, size_t n, uint64_t counters[], uint64_t resolutions[]) {
    for (size_t k = 0; k < n; k++) {
        counters[k] = 0;
        resolutions[k] = 1;
    }
    CALL_VALUES(m, references, n, "%llu", (unsigned long long)counters[k]);
    return OK;
}
