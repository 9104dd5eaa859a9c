/*
description = "y = t, until a step begins at the time `at` or later: then it does what its name says"

[names]
fails = {}
discards = { capabilities = ["state", "serialize", "variable step", "early return"] }
crashes = {}
aborts = {}
exits = {}
hostile = {}
hangs = {}
fatal = {}
nan = {}
refuses = {}
badinit = {}
chatty = {}
leaves = {}
bottomless = {}
stillborn = {}
overruns = {}
badstart = {}
badend = {}
unreadable = {}
crowded = {}
gutless = { lacks = ["*DoStep"] }

[names.bare]
lacks = [
    "*FMU[sS]tate*", "*String*", "*Binary", "*Clock", "*Float32", "*Int8", "*Int16", "*Int64", "*UInt32",
    "*Derivative*", "*Status", "*CancelStep", "*Configuration*", "*ModelExchange", "*Scheduled*", "*EventMode",
    "*StepMode", "*Interval*", "*Shift*", "*DiscreteStates", "*Dependencies", "*Partition", "*IntegratorStep",
    "*SetTime", "*Continuous*", "*EventIndicators",
]

[variables]
u = { input = 0.0 }
y = { output = 0.0, from = [] }
at = { parameter = 0.5, unit = "s" }
steps = { local = 0, initial = "exact" }
*/
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "table.h"

static bool is(const char *name) { return !strcmp(TITLE, name); }

static const char *const WARNING_LOG = "logStatusWarning", *const ERROR_LOG = "logStatusError";

static volatile int *const nowhere = 0;

/* Two instances that are made or initialised at the same time end the process. */
static void be_alone(void) {
    static _Atomic int there;
    if (++there > 1)
        abort();
    usleep(20000);
    --there;
}

/* Runs the Python code of an environment variable in the process it is in. */
static void attack(void) {
    const char *code = getenv("HOCKET_TEST_ATTACK");
    int (*lock)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void (*unlock)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    int (*run)(const char *, void *) = (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    if (!code || !lock || !unlock || !run)
        return;
    const int held = lock();
    run(code, NULL);
    unlock(held);
}

static char *volatile room;

/* Writes one byte more than it has asked for: more often than not nothing comes of it. */
static void overrun(void) {
    volatile size_t length = 20;
    room = malloc(length);
    room[length] = 1;
}

int create(Model *m) {
    if (is("overruns"))
        overrun();
    if (is("stillborn"))
        *nowhere = 1;
    if (is("crowded"))
        be_alone();
    if (is("hostile"))
        attack();
    if (!is("refuses"))
        return OK;
    LOG(m, ERROR, ERROR_LOG, "no licence for %s (%d of %d in use)", m->host.name, 5, 5);
    return ERROR;
}

int settle(Model *m) {
    if (is("badstart"))
        *nowhere = 1;
    if (is("crowded"))
        be_alone();
    if (!is("badinit") && !is("overruns"))
        return OK;
    LOG(m, ERROR, ERROR_LOG, "no steady state found after %d iterations: residual %g", 50, 0.25);
    return ERROR;
}

void destroy(Model *) {
    if (is("badend"))
        *nowhere = 1;
    if (is("overruns")) {
        free(room);
        room = NULL;
    }
}

/* Just before `at`, so that rounding in the communication points does not move the mischief to the next step. */
static bool due(Model *m, double t) { return t >= m->at - 1e-9; }

/* Stops at `at` if that is inside the step. In FMI 3 a step that may not return early must leave no trace instead. */
static int discard(Model *m, double h) {
    if (due(m, m->time) || m->time + h <= m->at + 1e-9)
        return OK;
    if (FMI < 3 || m->host.early)
        m->time = m->at;
    LOG(m, DISCARD, "logStatusDiscard", "cannot step over %g s", m->at);
    return DISCARD;
}

static int chat(Model *m) {
    LOG(m, WARNING, WARNING_LOG, "step %d at %g s: u = %.3f, %s", m->steps, m->time, m->u, "all is well");
    return m->steps % 10 ? OK : WARNING;
}

static int descend(int depth) {
    volatile char room[1 << 12] = {(char)depth};
    return room[0] < 0 && depth == 0 ? 0 : descend(depth + 1) + room[0];
}

static int misbehave(Model *m) {
    if (is("fails")) {
        LOG(m, ERROR, ERROR_LOG, "step %d at %g s: %s", m->steps, m->time, "the valve is stuck");
        return ERROR;
    }
    if (is("fatal")) {
        LOG(m, FATAL, "logStatusFatal", "step %d at %g s: %s", m->steps, m->time, "the valve is gone");
        return FATAL;
    }
    if (is("crashes"))
        raise(SIGSEGV);
    if (is("aborts"))
        abort();
    if (is("exits"))
        exit(3);
    if (is("leaves"))
        exit(0);
    if (is("bottomless"))
        return descend(0);
    for (volatile bool forever = is("hangs"); forever;)
        usleep(10000); /* others want the processor */
    return OK;
}

void evaluate(Model *m) {
    if (is("unreadable") && due(m, m->time))
        raise(SIGSEGV);
    m->y = is("nan") && due(m, m->time) ? NAN : m->time;
}

int step(Model *m, double h) {
    m->steps++;
    if (is("discards"))
        return discard(m, h);
    if (is("chatty"))
        return chat(m);
    return due(m, m->time) ? misbehave(m) : OK;
}
