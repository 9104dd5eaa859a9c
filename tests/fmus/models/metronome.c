/*
description = "Counts the ticks of two periodic clocks, those at one time, and those of a clock with changing intervals: 1/2, 0 and 1/4 s"
versions = [3]
interfaces = ["cs"]
capabilities = ["state", "serialize", "variable step", "events"]

[variables]
p = { input = false, type = "Clock", ticks = { intervalVariability = "constant", intervalDecimal = 0.1 } }
q = { input = false, type = "Clock", ticks = { intervalVariability = "constant", intervalDecimal = 0.3 } }
r = { input = false, type = "Clock", ticks = { intervalVariability = "changing", supportsFraction = true } }
u = { input = 0.0, variability = "discrete", clocks = ["p"] }
w = { output = 0.0, variability = "discrete", initial = "exact", clocks = ["p"], from = ["u"] }
n_p = { output = 0, initial = "exact", from = [] }
n_q = { output = 0, initial = "exact", from = [] }
n_r = { output = 0, initial = "exact", from = [] }
both = { output = 0, initial = "exact", from = [] }
every = { parameter = 0.25, unit = "s" }
slower = { parameter = 1.0 }
*/
#include "table.h"

/* A clocked output is there, and is computed, while its clock ticks. */
void evaluate(Model *m) {
    if (m->p)
        m->w = 2 * m->u;
}

bool event(Model *m) {
    m->n_p += m->p;
    m->n_q += m->q;
    m->n_r += m->r;
    m->both += m->p && m->q;
    m->p = m->q = m->r = false;
    return false;
}

Interval interval(Model *m, unsigned clock) {
    if (clock != REF_r)
        return (Interval){m->every * (m->n_p >= 4 ? m->slower : 1) * 1024, 1024}; /* slower from the fourth tick on */
    const Interval told[] = {{1, 2}, {0, 1}, {1, 4}, {0, 0}};
    return told[m->n_r < 3 ? m->n_r : 3];
}

int step(Model *, double) { return OK; }
