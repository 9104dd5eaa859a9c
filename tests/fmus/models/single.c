/*
description = "Keeps its state in a static variable, and so allows one instance in a process"
capabilities = ["variable step", "only once"]

[variables]
u = { input = 0.0 }
y = { output = 0.0, from = [] }
at = { parameter = 0.5, unit = "s" }
*/
#include "table.h"

static bool taken;
static double state;

int create(Model *m) {
    if (taken) {
        LOG(m, ERROR, "logStatusError", "%s is instantiated already", "single");
        return ERROR;
    }
    taken = true;
    return OK;
}

void destroy(Model *) { taken = false; }

void start(Model *m) { state = m->time; }

void evaluate(Model *m) { m->y = state; }

int step(Model *, double h) {
    state += h;
    return OK;
}
