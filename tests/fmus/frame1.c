/* FMI 1.0 for co-simulation around a model. build.py puts the name of the model before that of each function. */
#include "frame.h"

typedef struct {
    void (*logger)(void *component, const char *name, int status, const char *category, const char *message, ...);
    void *(*allocate)(size_t count, size_t size);
    void (*release)(void *memory);
    void (*step_finished)(void *component, int status);
} Callbacks;

enum { LAST_SUCCESSFUL_TIME = 2 };

EXPORT const char *fmiGetVersion(void) { return "1.0"; }
EXPORT const char *fmiGetTypesPlatform(void) { return "standard32"; }

EXPORT int fmiSetDebugLogging(Model *m, char on) {
    CALL(m, "on=%d", on);
    return OK;
}

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

EXPORT int fmiDoStep(Model *m, double t, double h, char new_step) {
    CALL(m, "t=%.17g h=%.17g new=%d", t, h, new_step);
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
