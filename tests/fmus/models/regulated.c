/*
description = "x' = v, with v = -k x at the ticks of p; `out` ticks where x falls below `level`, which begins a countdown of 1/3 s to `late`, where x becomes `top`; `reset` makes it r"
versions = [3]
interfaces = ["me"]
capabilities = ["state", "serialize"]
private = "bool below, counting;"

[variables]
p = { input = false, type = "Clock", ticks = { intervalVariability = "constant", intervalDecimal = 0.25 } }
late = { input = false, type = "Clock", ticks = { intervalVariability = "countdown", supportsFraction = true } }
reset = { input = false, type = "Clock", ticks = { intervalVariability = "triggered" } }
out = { output = false, type = "Clock" }
r = { input = 0.0, variability = "discrete", clocks = ["reset"] }
d = { input = 0.0 }
x = { output = 1.0, derivative = "der_x", reinit = true, from = [] }
w = { output = 0.0, variability = "discrete", initial = "exact", clocks = ["p"], from = [] }
n_p = { output = 0, initial = "exact", from = [] }
n_out = { output = 0, initial = "exact", from = [] }
v = { local = 0.0, variability = "discrete" }
z = { local = 1.0, indicator = true }
k = { parameter = 1.5 }
level = { parameter = 0.5 }
top = { parameter = 2.0 }
*/
#include "table.h"

/* A clocked output is there, and is computed, while its clock ticks. */
void evaluate(Model *m) {
    m->der_x = m->v + m->d;
    m->z = m->x - m->level;
    m->out = m->z <= 0 && !m->below;
    if (m->p)
        m->w = -m->k * m->x;
}

bool event(Model *m) {
    bool jumps = m->late || m->reset;
    if (m->out) {
        m->n_out++;
        m->below = m->counting = true;
    }
    if (m->p) {
        m->v = -m->k * m->x;
        m->n_p++;
    }
    if (m->late)
        m->x = m->top;
    if (m->reset)
        m->x = m->r;
    m->below = m->x <= m->level;
    m->out = m->p = m->late = m->reset = false;
    return jumps;
}

/* The countdown is told once. */
Interval interval(Model *m, unsigned clock) {
    if (clock != REF_late || !m->counting)
        return (Interval){0, 0};
    m->counting = false;
    return (Interval){1, 3};
}
