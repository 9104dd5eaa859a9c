/*
description = "Counts the ticks of a triggered clock"
versions = [3]
capabilities = ["variable step", "events"]

[variables]
tick = { input = false, type = "Clock" }
y = { output = 0, initial = "exact", from = [] }
*/
#include "table.h"

bool event(Model *m) {
    m->y += m->tick;
    m->tick = false;
    return false;
}

int step(Model *, double) { return OK; }
