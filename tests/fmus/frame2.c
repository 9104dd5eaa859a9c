/* FMI 2.0 around a model: co-simulation and model exchange. */
#include "frame.h"

typedef struct {
    void (*logger)(void *environment, const char *name, int status, const char *category, const char *message, ...);
    void *(*allocate)(size_t count, size_t size);
    void (*release)(void *memory);
    void (*step_finished)(void *environment, int status);
    void *environment;
} Callbacks;

typedef struct {
    int discrete_needed, terminate, nominals_changed, values_changed, next_defined;
    double next;
} EventInfo;

enum { CO_SIMULATION = 1, LAST_SUCCESSFUL_TIME = 2, TERMINATED_STATUS = 3 };

/* The phases that the model `strict` insists on. */
enum { BORN = 1, SET_UP = 2, INITIALIZING = 4, STEPPING = 8, TERMINATED = 16, ANY = 31, NEVER = 0 };

#ifdef STRICT
enum { STRICTLY = 1 };
#else
enum { STRICTLY = 0 };
#endif

/* Tells the logger and the trace about a wrong call. */
static int violation(Model *m, const char *function, const char *what) {
    LOG(m, ERROR, "logStatusError", "%s: %s", function, what);
    trace(m, "!", " %s: %s", function, what);
    return ERROR;
}

static int allowed(Model *m, int phases, const char *function) {
    if (m->host.phase & phases)
        return OK;
    bool missing = m->host.phase == BORN && phases == SET_UP;
    return violation(m, function, missing ? "fmi2SetupExperiment is missing" : "out of order");
}

#define STRICT_RULE(condition, what)                                                                     \
    do {                                                                                                 \
        if (STRICTLY && !(condition))                                                                    \
            return violation(m, __func__, what);                                                         \
    } while (0)

#define ENTER(phases, ...)                                                                               \
    do {                                                                                                 \
        CALL(m, __VA_ARGS__);                                                                            \
        if (STRICTLY && allowed(m, phases, __func__))                                                    \
            return ERROR;                                                                                \
    } while (0)

/* Letters of the variables that may be set: i(nput), t(unable), p(arameter); others are '-'. */
static int may_set(Model *m, const char *letters, References references, size_t n) {
    for (size_t k = 0; k < n && references[k] < strlen(letters); k++)
        if (!strchr(m->host.phase == STEPPING ? "it" : "itp", letters[references[k]]))
            return 0;
    return 1;
}

#define MAY_SET(kind)                                                                                    \
    do {                                                                                                 \
        if (STRICTLY && allowed(m, BORN | SET_UP | INITIALIZING | STEPPING, __func__))                   \
            return ERROR;                                                                                \
        STRICT_RULE(may_set(m, TABLE.kind.settable, references, n), "the variable cannot be set now");   \
        if (STRICTLY)                                                                                    \
            m->touched = true;                                                                           \
    } while (0)

#define MAY_GET()                                                                                        \
    do {                                                                                                 \
        if (STRICTLY && allowed(m, INITIALIZING | STEPPING | TERMINATED, __func__))                      \
            return ERROR;                                                                                \
        STRICT_RULE(m->host.phase != STEPPING || !m->touched, "called after a set without a step between");\
    } while (0)

EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT int fmi2SetDebugLogging(Model *m, int on, size_t n, const char *const *) {
    ENTER(ANY, "on=%d categories=%zu", on, n);
    return OK;
}

EXPORT Model *fmi2Instantiate(const char *name, int type, const char *guid, const char *, const Callbacks *callbacks,
                              int, int) {
    Host host = {.environment = callbacks->environment, .log = callbacks->logger, .phase = BORN};
    Model *m = instantiate(host, name, guid);
    CALL(m, "type=%s", type == CO_SIMULATION ? "cs" : "me");
    return m;
}

EXPORT void fmi2FreeInstance(Model *m) {
    CALL(m);
    if (m && STRICTLY && m->host.phase == STEPPING)
        violation(m, __func__, "fmi2Terminate is missing");
    if (m)
        release(m);
}

EXPORT int fmi2SetupExperiment(Model *m, int has_tolerance, double tolerance, double t, int has_stop, double stop) {
    ENTER(BORN, "tolerance=%.17g start=%.17g stop=%.17g", has_tolerance ? tolerance : 0, t, has_stop ? stop : 0);
    m->time = t;
#ifdef RESETS_AT_SETUP
    reset(m); /* as the FMUs of a widespread tool do: what was set before is gone */
#endif
    m->time = t;
    m->host.stop = has_stop ? stop : 1e300;
    m->host.phase = SET_UP;
    return OK;
}

EXPORT int fmi2EnterInitializationMode(Model *m) {
    ENTER(SET_UP);
#ifdef RESETS_AT_INITIALISATION
    reset(m);
#endif
    m->host.phase = INITIALIZING;
    return OK;
}

EXPORT int fmi2ExitInitializationMode(Model *m) {
    ENTER(INITIALIZING);
    m->host.phase = STEPPING;
    m->touched = false;
#ifdef OUTPUTS_AFTER_INITIALISATION
    m->host.stepped = true;
#endif
    return settled(m);
}

EXPORT int fmi2Terminate(Model *m) {
    ENTER(STEPPING);
    m->host.phase = TERMINATED;
    return OK;
}

EXPORT int fmi2Reset(Model *m) {
    ENTER(ANY);
    m->host.phase = BORN;
    return reset(m);
}

EXPORT int fmi2GetReal(Model *m, References references, size_t n, double values[]) {
    MAY_GET();
    int status = get_float64(m, references, n, values);
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    return status;
}

EXPORT int fmi2SetReal(Model *m, References references, size_t n, const double values[]) {
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    MAY_SET(float64);
    return set_float64(m, references, n, values);
}

#define ACCESS(Name, kind, stored, type, format, PUT)                                                    \
    EXPORT int fmi2Get##Name(Model *m, References references, size_t n, type values[]) {                 \
        MAY_GET();                                                                                       \
        if (m->fresh != TABLE.float64.count)                                                             \
            refresh(m);                                                                                  \
        for (size_t k = 0; k < n; k++) {                                                                 \
            if (outside(references[k], TABLE.kind))                                                      \
                return complain(m, __func__, "there is no variable", references[k]);                     \
            values[k] = AT(m, kind, stored)[references[k]];                                              \
        }                                                                                                \
        CALL_VALUES(m, references, n, format, values[k]);                                                \
        return OK;                                                                                       \
    }                                                                                                    \
    EXPORT int fmi2Set##Name(Model *m, References references, size_t n, type const values[]) {           \
        CALL_VALUES(m, references, n, format, values[k]);                                                \
        MAY_SET(kind);                                                                                   \
        for (size_t k = 0; k < n; k++)                                                                   \
            if (outside(references[k], TABLE.kind) || PUT(AT(m, kind, stored)[references[k]], values[k]))\
                return complain(m, __func__, "no such variable, or too long a value", references[k]);    \
        m->fresh = m->base;                                                                              \
        return OK;                                                                                       \
    }

ACCESS(Integer, int32, int, int, "%d", ASSIGN)
ACCESS(Boolean, boolean, int, int, "%d", ASSIGN)
ACCESS(String, string, Text, const char *, "%s", set_text)

EXPORT int fmi2DoStep(Model *m, double t, double h, int no_set_state) {
    ENTER(STEPPING, "t=%.17g h=%.17g final=%d", t, h, no_set_state);
    STRICT_RULE(t - m->time < 1e-9 && m->time - t < 1e-9, "the time is not where the last step ended");
    STRICT_RULE(h > 0, "the step must be positive");
    STRICT_RULE(t + h < m->host.stop + 1e-9, "the step ends after the stop time");
    m->touched = false;
    if (stands_still(m, no_set_state))
        return OK;
#ifdef RUNS_TO_STOP
    if (m->time >= m->host.stop) /* it is there already */
        return OK;
    if (m->host.stop < 1e300)
        h = m->host.stop - t;
#endif
#ifdef ENDS_AT_STOP
    m->host.ended = t + h > m->host.stop;
    if (m->host.ended)
        return DISCARD;
#endif
    begin_step(m, t);
    int status = step(m, h);
    if (status < DISCARD)
        m->time = t + h;
    end_step(m);
    return status;
}

EXPORT int fmi2CancelStep(Model *m) {
    ENTER(NEVER);
    return ERROR;
}

EXPORT int fmi2SetRealInputDerivatives(Model *m, References references, size_t n, const int orders[],
                                       const double values[]) {
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    STRICT_RULE(TABLE.rates, "not among the capabilities of this FMU");
#ifdef REFUSES_DERIVATIVES
    return complain(m, __func__, "not implemented, not even for", references[0]);
#endif
    return set_rates(m, references, n, orders, values);
}

EXPORT int fmi2GetRealOutputDerivatives(Model *m, References references, size_t n, const int orders[],
                                        double values[]) {
    MAY_GET();
    int status = output_derivatives(m, references, n, orders, values);
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    return status;
}

EXPORT int fmi2GetStatus(Model *m, int kind, int *) {
    ENTER(STEPPING, "kind=%d", kind);
    return DISCARD;
}

EXPORT int fmi2GetRealStatus(Model *m, int kind, double *value) {
    ENTER(STEPPING, "kind=%d", kind);
    *value = m->time;
    return kind == LAST_SUCCESSFUL_TIME ? OK : DISCARD;
}

EXPORT int fmi2GetIntegerStatus(Model *m, int kind, int *) {
    ENTER(STEPPING, "kind=%d", kind);
    return DISCARD;
}

EXPORT int fmi2GetBooleanStatus(Model *m, int kind, int *value) {
    ENTER(STEPPING, "kind=%d", kind);
    *value = kind == TERMINATED_STATUS && (m->ends || m->host.ended);
    return OK;
}

EXPORT int fmi2GetStringStatus(Model *m, int kind, const char **) {
    ENTER(STEPPING, "kind=%d", kind);
    return DISCARD;
}

EXPORT int fmi2GetFMUstate(Model *m, Model **state) {
    ENTER(ANY);
    return save(m, state);
}

EXPORT int fmi2SetFMUstate(Model *m, Model *state) {
    ENTER(ANY);
    return restore(m, state);
}

EXPORT int fmi2FreeFMUstate(Model *m, Model **state) {
    ENTER(ANY);
    free(*state);
    *state = NULL;
    return OK;
}

EXPORT int fmi2SerializedFMUstateSize(Model *m, Model *, size_t *size) {
    ENTER(ANY);
    *size = TABLE.size;
    return OK;
}

EXPORT int fmi2SerializeFMUstate(Model *m, Model *state, char bytes[], size_t size) {
    ENTER(ANY, "size=%zu", size);
    if (size < TABLE.size)
        return ERROR;
    memcpy(bytes, state, TABLE.size);
    return OK;
}

EXPORT int fmi2DeSerializeFMUstate(Model *m, const char bytes[], size_t size, Model **state) {
    ENTER(ANY, "size=%zu", size);
    if (size != TABLE.size)
        return ERROR;
    save(m, state);
    memcpy(*state, bytes, size);
    return OK;
}

EXPORT int fmi2GetDirectionalDerivative(Model *m, References unknowns, size_t rows, References knowns, size_t columns,
                                        const double seed[], double sensitivity[]) {
    ENTER(INITIALIZING | STEPPING, "unknowns=%zu knowns=%zu", rows, columns);
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

EXPORT int fmi2EnterEventMode(Model *m) {
    ENTER(NEVER);
    return OK;
}

EXPORT int fmi2NewDiscreteStates(Model *m, EventInfo *info) {
    ENTER(NEVER);
    *info = (EventInfo){.values_changed = event(m)};
    info->discrete_needed = unsettled(m);
    info->terminate = ends(m) || m->ends;
    info->next = next_event(m);
    info->next_defined = isfinite(info->next);
    renew(m, true);
    return OK;
}

EXPORT int fmi2EnterContinuousTimeMode(Model *m) {
    ENTER(NEVER);
    return OK;
}

EXPORT int fmi2CompletedIntegratorStep(Model *m, int no_set_state, int *enter_event_mode, int *terminate) {
    ENTER(NEVER, "final=%d", no_set_state);
    *enter_event_mode = completed(m);
    renew(m, false);
    *terminate = m->ends;
    return OK;
}

EXPORT int fmi2SetTime(Model *m, double t) {
    ENTER(NEVER, "t=%.17g", t);
    return set_time(m, t);
}

EXPORT int fmi2SetContinuousStates(Model *m, const double x[], size_t n) {
    ENTER(NEVER, "n=%zu", n);
    return n == TABLE.states ? set_states(m, x) : ERROR;
}

EXPORT int fmi2GetDerivatives(Model *m, double dx[], size_t n) {
    ENTER(NEVER, "n=%zu", n);
    return n == TABLE.states ? get_rates(m, TABLE.derivative, n, dx) : ERROR;
}

EXPORT int fmi2GetEventIndicators(Model *m, double z[], size_t n) {
    ENTER(NEVER, "n=%zu", n);
    return n == TABLE.indicators ? get_rates(m, TABLE.indicator, n, z) : ERROR;
}

EXPORT int fmi2GetContinuousStates(Model *m, double x[], size_t n) {
    ENTER(NEVER, "n=%zu", n);
    return n == TABLE.states ? get_float64(m, TABLE.state, n, x) : ERROR;
}

EXPORT int fmi2GetNominalsOfContinuousStates(Model *m, double nominals[], size_t n) {
    ENTER(NEVER, "n=%zu", n);
    for (size_t i = 0; i < n; i++)
        nominals[i] = 1;
    return OK;
}
