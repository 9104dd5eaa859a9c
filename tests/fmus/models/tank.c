/*
description = "A water tank whose step ends where the level meets a limit: it fills through an open valve and drains by itself"
versions = [2, 3]
capabilities = ["state", "serialize", "variable step", "early return"]

[variables]
valve = { input = 0.0 }
level = { output = 0.0, unit = "m", from = [] }
inflow = { parameter = 0.5, unit = "m/s" }
outflow = { parameter = 0.2, unit = "m/s" }
low = { parameter = 1.0, unit = "m" }
high = { parameter = 2.0, unit = "m" }
level0 = { parameter = 1.5, unit = "m" }
*/
#include "table.h"

void start(Model *m) { m->level = m->level0; }

/* Across a limit the step is not made beyond it: what drives the valve must see it there. */
int step(Model *m, double h) {
    double rate = (m->valve > 0.5 ? m->inflow : 0) - m->outflow;
    double limit = rate > 0 ? m->high : m->low;
    double left = (limit - m->level) / rate;
    if (left > 1e-12 && left < h - 1e-12) {
        m->level = limit;
        m->time += left;
        return DISCARD;
    }
    m->level += rate * h;
    return OK;
}
