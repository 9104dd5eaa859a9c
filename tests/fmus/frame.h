/* What the three frames share: the defaults of the hooks, the life of an instance, saved states, the trace. */
#ifndef FRAME_H
#define FRAME_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef ABORTS_SECOND_INSTANCE
#include <unistd.h>
#endif
#ifdef ROUNDS_UP
#include <fenv.h>
#endif

#include "model.h"

struct Model {
    HEAD
};

typedef const unsigned *References;

/* The array of one type. */
#define AT(m, kind, type) ((type *)((char *)(m) + TABLE.kind.where))

#define EXPORT __attribute__((visibility("default")))
#define HOOK __attribute__((weak))

HOOK int create(Model *) { return OK; }
HOOK void start(Model *) {}
HOOK int settle(Model *) { return OK; }
HOOK void evaluate(Model *) {}
HOOK int step(Model *m, double h) { return rk4(m, h, 1), OK; }
HOOK bool event(Model *) { return false; }
HOOK double next_event(Model *) { return INFINITY; }
HOOK bool unsettled(Model *) { return false; }
HOOK bool ends(Model *) { return false; }
HOOK bool completed(Model *) { return false; }
HOOK void configure(Model *) {}
HOOK double partial(Model *, unsigned, unsigned) { return 0; }
HOOK double *place(Model *, unsigned, size_t *) { return NULL; }
HOOK void destroy(Model *) {}
HOOK int activate(Model *, unsigned) { return ERROR; }
HOOK Interval interval(Model *, unsigned) { return (Interval){0, 0}; }

void rk4(Model *m, double h, int steps) {
    const unsigned n = TABLE.states, *state = TABLE.state, *derivative = TABLE.derivative;
    double t = m->time, *real = m->float64, x[n], k1[n], k2[n], k3[n];
    h /= steps;
    for (int k = 0; k < steps; k++) {
        m->time = t + k * h;
        evaluate(m);
        for (unsigned i = 0; i < n; i++) {
            x[i] = real[state[i]];
            k1[i] = real[derivative[i]];
            real[state[i]] = x[i] + h / 2 * k1[i];
        }
        m->time = t + (k + 0.5) * h;
        evaluate(m);
        for (unsigned i = 0; i < n; i++) {
            k2[i] = real[derivative[i]];
            real[state[i]] = x[i] + h / 2 * k2[i];
        }
        evaluate(m);
        for (unsigned i = 0; i < n; i++) {
            k3[i] = real[derivative[i]];
            real[state[i]] = x[i] + h * k3[i];
        }
        m->time = t + (k + 1) * h;
        evaluate(m);
        for (unsigned i = 0; i < n; i++)
            real[state[i]] = x[i] + h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + real[derivative[i]]);
    }
    m->time = t;
}

#ifdef TRACE
enum { TRACING = 1 };
#else
enum { TRACING = 0 };
#endif

/* Opens the file named by HOCKET_TEST_TRACE, if any, and begins a line. */
__attribute__((cold, noinline))
static FILE *begin_line(const Model *m, const char *function) {
    const char *path = getenv("HOCKET_TEST_TRACE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file)
        fprintf(file, "%s %s", m && m->host.name ? m->host.name : "-", function);
    return file;
}

static void end_line(FILE *file) {
    fputc('\n', file);
    fclose(file);
}

__attribute__((format(printf, 3, 4)))
static void trace(const Model *m, const char *function, const char *format, ...) {
    FILE *file = begin_line(m, function);
    if (!file)
        return;
    va_list arguments;
    va_start(arguments, format);
    if (strcmp(format, " "))
        vfprintf(file, format, arguments);
    va_end(arguments);
    end_line(file);
}

/* One line for a call: CALL(m), or CALL(m, format, arguments...). */
#define CALL(m, ...)                                                                                     \
    do {                                                                                                 \
        if (TRACING)                                                                                     \
            trace(m, __func__, " " __VA_ARGS__);                                                         \
    } while (0)

/* One line with n references and their values; `value` is an expression in k. */
#define CALL_VALUES(m, references, n, format, value)                                                     \
    do {                                                                                                 \
        FILE *file_ = TRACING ? begin_line(m, __func__) : NULL;                                          \
        if (file_) {                                                                                     \
            for (size_t k = 0; k < n; k++)                                                               \
                fprintf(file_, " %u=" format, references[k], value);                                     \
            end_line(file_);                                                                             \
        }                                                                                                \
    } while (0)

__attribute__((cold, noinline))
static int complain(Model *m, const char *function, const char *what, unsigned reference) {
    LOG(m, ERROR, "logStatusError", "%s: %s %u", function, what, reference);
    return ERROR;
}

/* `fresh` counts the leading reals that can be read as they are. Before the first step that may be none of them, later
   at least the stored ones (time, inputs, parameters, states), and right after `evaluate` all of them. */
__attribute__((noinline))
static void refresh(Model *m) {
    if (!m->base)
        start(m);
    evaluate(m);
    m->fresh = TABLE.float64.count;
}

/* How other tools remember what they have computed, as seen in model exchange:
   RATES_ALONE       reading rates (or indicators) computes these alone, and all else counts as fresh
   OUTPUTS_ALONE     reading anything else leaves the rates as they were, and they count as fresh
   OUTPUTS_WITH_RATES  outputs are computed where rates are read, and at events
   OUTPUTS_AT_STEPS  outputs are computed at completed steps and at events
   SETS_COMPARE      what is set to the value that it has makes nothing stale
   STATES_RENEW      only states that are set make anything stale */
#if defined RATES_ALONE || defined OUTPUTS_ALONE || defined OUTPUTS_AT_STEPS
__attribute__((unused))
static void refresh_part(Model *m, bool rates) {
    unsigned count = TABLE.float64.count - TABLE.stored;
    double *computed = m->float64 + TABLE.stored, before[count + 1];
    bool chosen[count + 1];
    memcpy(before, computed, count * sizeof *before);
    memset(chosen, !rates, sizeof chosen);
    for (unsigned i = 0; i < TABLE.states; i++)
        chosen[TABLE.derivative[i] - TABLE.stored] = rates;
    for (unsigned i = 0; i < TABLE.indicators; i++)
        if (TABLE.indicator[i] >= TABLE.stored)
            chosen[TABLE.indicator[i] - TABLE.stored] = rates;
    refresh(m);
    for (unsigned i = 0; i < count; i++)
        if (!chosen[i])
            computed[i] = before[i];
}
#endif

/* What is read is brought up to date first. */
__attribute__((noinline))
static void refresh_outputs(Model *m) {
#if defined OUTPUTS_WITH_RATES || defined OUTPUTS_AT_STEPS
    if (m->base)
        return;
#endif
#ifdef OUTPUTS_ALONE
    if (m->base) {
        refresh_part(m, false);
        return;
    }
#endif
    refresh(m);
}

static inline int get_float64(Model *m, References references, size_t n, double *values) {
    for (size_t k = 0; k < n; k++) {
        if (references[k] >= m->fresh) {
            refresh_outputs(m);
            if (references[k] >= TABLE.float64.count)
                return complain(m, __func__, "there is no variable", references[k]);
        }
        values[k] = m->float64[references[k]];
#if defined OUTPUTS_FROM_STEPS || defined OUTPUTS_AFTER_INITIALISATION
        if (!m->host.stepped && references[k] >= TABLE.stored)
            values[k] = 0;
#endif
    }
    return OK;
}

/* Rates and indicators of model exchange. */
__attribute__((unused))
static int get_rates(Model *m, References references, size_t n, double *values) {
    if (m->fresh != TABLE.float64.count) {
#if defined RATES_ALONE || defined OUTPUTS_AT_STEPS
        refresh_part(m, true);
#else
        refresh(m);
#endif
    }
    for (size_t k = 0; k < n; k++)
        values[k] = m->float64[references[k]];
    return OK;
}

static inline int set_float64(Model *m, References references, size_t n, const double *values) {
    bool changed = false;
    for (size_t k = 0; k < n; k++) {
        if (references[k] >= TABLE.float64.count)
            return complain(m, __func__, "there is no variable", references[k]);
        changed = changed || m->float64[references[k]] != values[k];
        m->float64[references[k]] = values[k];
    }
    (void)changed;
#ifdef SETS_COMPARE
    if (m->base && !changed)
        return OK;
#endif
#ifdef STATES_RENEW
    if (m->base)
        return OK;
#endif
    m->fresh = m->base;
    return OK;
}

__attribute__((unused))
static int set_states(Model *m, const double *x) {
    int status = set_float64(m, TABLE.state, TABLE.states, x);
#ifdef STATES_RENEW
    m->fresh = m->base;
#endif
    return status;
}

__attribute__((unused))
static int set_time(Model *m, double t) {
    bool changed = m->time != t;
    m->time = t;
#ifdef SETS_COMPARE
    if (!changed)
        return OK;
#endif
#ifndef STATES_RENEW
    m->fresh = m->base;
#endif
    (void)changed;
    return OK;
}

/* Events end, and steps of a solver are completed. */
__attribute__((unused))
static void renew(Model *m, bool event) {
    if (event)
        m->fresh = m->base;
#if defined OUTPUTS_WITH_RATES || defined OUTPUTS_AT_STEPS
    refresh(m);
#endif
}

static inline bool outside(unsigned reference, Kind kind) { return reference - kind.offset >= kind.count; }

#define ASSIGN(target, value) ((target) = (value), OK)

static inline int set_text(char *target, const char *value) {
    size_t size = strlen(value) + 1;
    if (size > LENGTH)
        return ERROR;
    memcpy(target, value, size);
    return OK;
}

static Model *instantiate(Host host, const char *name, const char *token) {
#ifdef ABORTS_SECOND_INSTANCE
    static const char mark[] = "HOCKET_TEST_INSTANCE"; /* in the environment: static data goes when it is unloaded */
    char process[20];
    snprintf(process, sizeof process, "%d", (int)getpid());
    if (getenv(mark) && !strcmp(getenv(mark), process))
        abort();
    setenv(mark, process, 1);
#endif
#ifdef ROUNDS_UP
    fesetround(FE_UPWARD);
#endif
#ifdef PRINTS
    printf("%s says hello\n", name);
#endif
#ifdef SHARES_STATE
    static Model *shared; /* never freed */
    Model *m = shared = shared ? shared : malloc(TABLE.size);
#else
    Model *m = malloc(TABLE.size);
#endif
    memcpy(m, TABLE.defaults, TABLE.size);
    m->host = host;
    m->host.name = strdup(name);
    if (!token || strcmp(token, TABLE.token))
        LOG(m, ERROR, "logStatusError", "the token is %s, not %s", token ? token : "missing", TABLE.token);
    else if (create(m) == OK)
        return m;
    free(m->host.name);
    free(m);
    return NULL;
}

static void release(Model *m) {
    destroy(m);
    free(m->host.name);
#ifdef SHARES_STATE
    m->host.name = NULL; /* others have it, too */
#else
    free(m);
#endif
}

__attribute__((unused))
static int reset(Model *m) {
    Host host = m->host;
    destroy(m);
    memcpy(m, TABLE.defaults, TABLE.size);
    m->host = host;
    return create(m);
}

static int settled(Model *m) {
    refresh(m);
    m->base = TABLE.stored;
    return settle(m);
}

__attribute__((unused))
static int save(Model *m, Model **state) {
    m->host.saved = true;
#ifdef NULL_STATE
    return OK;
#endif
    if (!*state)
        *state = malloc(TABLE.size);
    memcpy(*state, m, TABLE.size);
    memset(&(*state)->host, 0, sizeof(Host));
    return OK;
}

__attribute__((unused))
static int restore(Model *m, const Model *state) {
#ifdef RESTORE_DOES_NOTHING
    return OK;
#elif defined FORGETS_LATE
    if (m->time > 0.55)
        return OK;
#endif
    Host host = m->host;
    memcpy(m, state, TABLE.size);
    m->host = host;
    return OK;
}

/* Whether a step does nothing: once a state was saved, always or only if that may still be restored. */
static inline bool stands_still(const Model *m, bool final) {
#if defined FREEZES_AFTER_SAVE
    return (void)final, m->host.saved;
#elif defined FREEZES_WHILE_SAVED
    return m->host.saved && !final;
#else
    return (void)m, (void)final, false;
#endif
}

/* The derivative of an output that is a state; the only order known is the first. */
__attribute__((unused))
static int output_derivatives(Model *m, References references, size_t n, const int32_t *orders, double *values) {
    for (size_t k = 0; k < n; k++) {
        unsigned i = 0;
        while (i < TABLE.states && TABLE.state[i] != references[k])
            i++;
        if (i == TABLE.states || orders[k] != 1)
            return complain(m, __func__, "no such derivative of", references[k]);
        get_float64(m, &TABLE.derivative[i], 1, &values[k]);
    }
    return OK;
}

/* The inputs' polynomials of FMI 1 and 2: for each leading real its value and derivatives when the step began. */
#if FMI < 3
static inline double (*rates(Model *m))[4] { return (double (*)[4])((char *)m + TABLE.rates_at); }

__attribute__((unused))
static int set_rates(Model *m, References references, size_t n, const int32_t *orders, const double *values) {
    for (size_t k = 0; k < n; k++) {
        if (references[k] >= TABLE.rates || orders[k] < 1 || orders[k] > 3)
            return complain(m, __func__, "no such derivative of", references[k]);
        rates(m)[references[k]][orders[k]] = values[k];
    }
    return OK;
}

static inline void begin_step(Model *m, double t) {
    m->time = m->began = t;
    m->host.stepped = true;
    for (unsigned i = 0; i < TABLE.rates; i++)
        rates(m)[i][0] = m->float64[i];
}

/* After a step the derivatives are forgotten, and the inputs stay at the values they had reached. */
static inline void end_step(Model *m) {
    m->fresh = TABLE.stored;
    if (TABLE.rates)
        memset(rates(m), 0, TABLE.rates * sizeof *rates(m));
}

void input_at(Model *m, double t) {
    double s = t - m->began;
    for (unsigned i = 1; i < TABLE.rates; i++) {
        const double *c = rates(m)[i];
        m->float64[i] = c[0] + s * (c[1] + s / 2 * (c[2] + s / 3 * c[3]));
    }
}
#endif

#ifdef CRASHES_AT_UNLOAD
#include <signal.h>
__attribute__((destructor, used)) static void crash_at_unload(void) { raise(SIGSEGV); }
#endif

#endif
