/* FMI 1.0 around a model: for model exchange if MODEL_EXCHANGE is defined, else for co-simulation. build.py puts the
   name of the model before that of each function. */
#include "frame.h"

typedef struct {
    void (*logger)(void *component, const char *name, int status, const char *category, const char *message, ...);
    void *(*allocate)(size_t count, size_t size);
    void (*release)(void *memory);
#ifndef MODEL_EXCHANGE
    void (*step_finished)(void *component, int status);
#endif
} Callbacks;

EXPORT const char *fmiGetVersion(void) { return "1.0"; }

EXPORT int fmiSetDebugLogging(Model *m, char on) {
    CALL(m, "on=%d", on);
    return OK;
}

EXPORT int fmiGetReal(Model *m, References references, size_t n, double values[]) {
    int status = get_float64(m, references, n, values);
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    return status;
}

EXPORT int fmiSetReal(Model *m, References references, size_t n, const double values[]) {
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    return set_float64(m, references, n, values);
}

#define ACCESS(Name, kind, stored, type, format, PUT)                                                    \
    EXPORT int fmiGet##Name(Model *m, References references, size_t n, type values[]) {                  \
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
    EXPORT int fmiSet##Name(Model *m, References references, size_t n, type const values[]) {            \
        CALL_VALUES(m, references, n, format, values[k]);                                                \
        for (size_t k = 0; k < n; k++)                                                                   \
            if (outside(references[k], TABLE.kind) || PUT(AT(m, kind, stored)[references[k]], values[k]))\
                return complain(m, __func__, "no such variable, or too long a value", references[k]);    \
        m->fresh = m->base;                                                                              \
        return OK;                                                                                       \
    }

ACCESS(Integer, int32, int, int, "%d", ASSIGN)
ACCESS(Boolean, boolean, char, char, "%d", ASSIGN)
ACCESS(String, string, Text, const char *, "%s", set_text)

#ifdef MODEL_EXCHANGE

EXPORT const char *fmiGetModelTypesPlatform(void) { return "standard32"; }

typedef struct {
    char converged, references_changed, values_changed, terminate, next_defined;
    double next;
} EventInfo;

EXPORT Model *fmiInstantiateModel(const char *name, const char *guid, Callbacks callbacks, char) {
    Model *m = instantiate((Host){.log = callbacks.logger}, name, guid);
    if (m)
        m->host.environment = m;
    CALL(m);
    return m;
}

EXPORT void fmiFreeModelInstance(Model *m) {
    CALL(m);
    if (m)
        release(m);
}

/* With `intermediate` one round of event iteration, else all of them. */
static int update(Model *m, bool intermediate, EventInfo *info) {
    *info = (EventInfo){0};
#ifdef ALWAYS_INTERMEDIATE
    intermediate = true; /* as FMUs do that leave the iteration to the environment */
#endif
    do {
        info->values_changed |= event(m);
        info->converged = !unsettled(m);
        info->terminate = ends(m);
        m->fresh = m->base;
    } while (!info->converged && !info->terminate && !intermediate);
    info->next = next_event(m);
    info->next_defined = isfinite(info->next);
    return OK;
}

EXPORT int fmiInitialize(Model *m, char tolerant, double tolerance, EventInfo *info) {
    CALL(m, "tolerance=%.17g", tolerant ? tolerance : 0);
#ifdef RESETS_AT_INITIALISATION
    double t = m->time;
    reset(m);
    m->time = t;
#endif
    int status = settled(m);
    return status < DISCARD ? update(m, false, info) : status;
}

EXPORT int fmiEventUpdate(Model *m, char intermediate, EventInfo *info) {
    CALL(m, "intermediate=%d", intermediate);
    return update(m, intermediate, info);
}

EXPORT int fmiCompletedIntegratorStep(Model *m, char *event_wanted) {
    CALL(m);
    *event_wanted = completed(m);
    return OK;
}

EXPORT int fmiTerminate(Model *m) {
    CALL(m);
    return OK;
}

EXPORT int fmiSetTime(Model *m, double t) {
    CALL(m, "t=%.17g", t);
    m->time = t;
    m->fresh = m->base;
    return OK;
}

EXPORT int fmiSetContinuousStates(Model *m, const double x[], size_t n) {
    CALL(m, "n=%zu", n);
    return n == TABLE.states ? set_float64(m, TABLE.state, n, x) : ERROR;
}

EXPORT int fmiGetContinuousStates(Model *m, double x[], size_t n) {
    CALL(m, "n=%zu", n);
    return n == TABLE.states ? get_float64(m, TABLE.state, n, x) : ERROR;
}

EXPORT int fmiGetDerivatives(Model *m, double dx[], size_t n) {
    CALL(m, "n=%zu", n);
    return n == TABLE.states ? get_float64(m, TABLE.derivative, n, dx) : ERROR;
}

EXPORT int fmiGetEventIndicators(Model *m, double z[], size_t n) {
    CALL(m, "n=%zu", n);
    return n == TABLE.indicators ? get_float64(m, TABLE.indicator, n, z) : ERROR;
}

EXPORT int fmiGetNominalContinuousStates(Model *m, double nominals[], size_t n) {
    CALL(m, "n=%zu", n);
    for (size_t i = 0; i < n; i++)
        nominals[i] = 1;
    return OK;
}

EXPORT int fmiGetStateValueReferences(Model *m, unsigned references[], size_t n) {
    CALL(m, "n=%zu", n);
    for (size_t i = 0; i < n; i++)
        references[i] = TABLE.state[i];
    return OK;
}

#else

EXPORT const char *fmiGetTypesPlatform(void) { return "standard32"; }

enum { LAST_SUCCESSFUL_TIME = 2 };

EXPORT Model *fmiInstantiateSlave(const char *name, const char *guid, const char *, const char *, double, char, char,
                                     Callbacks callbacks, char) {
    Model *m = instantiate((Host){.log = callbacks.logger}, name, guid);
    if (m)
        m->host.environment = m;
    CALL(m);
    return m;
}

EXPORT int fmiInitializeSlave(Model *m, double t, char stop_defined, double stop) {
    CALL(m, "start=%.17g stop=%.17g", t, stop_defined ? stop : 0);
#ifdef RESETS_AT_INITIALISATION
    reset(m);
#endif
    m->time = t;
    m->host.stop = stop_defined ? stop : 1e300;
    return settled(m);
}

EXPORT int fmiTerminateSlave(Model *m) {
    CALL(m);
    return OK;
}

EXPORT int fmiResetSlave(Model *m) {
    CALL(m);
    return reset(m);
}

EXPORT void fmiFreeSlaveInstance(Model *m) {
    CALL(m);
    if (m)
        release(m);
}

EXPORT int fmiDoStep(Model *m, double t, double h, char new_step) {
    CALL(m, "t=%.17g h=%.17g new=%d", t, h, new_step);
#ifdef ENDS_AT_STOP
    if (t + h > m->host.stop) {
        m->time = t;
        return DISCARD;
    }
#endif
    begin_step(m, t);
    int status = step(m, h);
    if (status < DISCARD)
        m->time = t + h;
    end_step(m);
    return status;
}

EXPORT int fmiCancelStep(Model *m) {
    CALL(m);
    return ERROR;
}

EXPORT int fmiSetRealInputDerivatives(Model *m, References references, size_t n, const int orders[],
                                         const double values[]) {
    CALL_VALUES(m, references, n, "%.17g", values[k]);
#ifdef REFUSES_DERIVATIVES
    return complain(m, __func__, "not implemented, not even for", references[0]);
#endif
    return set_rates(m, references, n, orders, values);
}

EXPORT int fmiGetRealOutputDerivatives(Model *m, References references, size_t n, const int orders[], double values[]) {
    int status = output_derivatives(m, references, n, orders, values);
    CALL_VALUES(m, references, n, "%.17g", values[k]);
    return status;
}

EXPORT int fmiGetStatus(Model *m, int kind, int *) {
    CALL(m, "kind=%d", kind);
    return DISCARD;
}

EXPORT int fmiGetRealStatus(Model *m, int kind, double *value) {
    CALL(m, "kind=%d", kind);
    *value = m->time;
    return kind == LAST_SUCCESSFUL_TIME ? OK : DISCARD;
}

EXPORT int fmiGetIntegerStatus(Model *m, int kind, int *) {
    CALL(m, "kind=%d", kind);
    return DISCARD;
}

EXPORT int fmiGetBooleanStatus(Model *m, int kind, char *) {
    CALL(m, "kind=%d", kind);
    return DISCARD;
}

EXPORT int fmiGetStringStatus(Model *m, int kind, const char **) {
    CALL(m, "kind=%d", kind);
    return DISCARD;
}

#endif
