/*
description = "A digital controller: u is sampled at the ticks of a periodic clock, and w = -gain u follows at those of another one; where both tick it is that of the sample before, or `at_once` that of this one"
versions = [3]
interfaces = ["cs"]
capabilities = ["state", "serialize", "variable step", "events"]
private = "double held;"

[variables]
sample = { input = false, type = "Clock", ticks = { intervalVariability = "constant", intervalDecimal = 0.1 } }
send = { input = false, type = "Clock", ticks = { intervalVariability = "constant", intervalDecimal = 0.1, shiftDecimal = 0.025 } }
u = { input = 0.0, variability = "discrete", clocks = ["sample"] }
w = { output = 0.0, variability = "discrete", initial = "exact", clocks = ["send"], from = [] }
samples = { output = 0, initial = "exact", from = [] }
gain = { parameter = 1.0 }
at_once = { parameter = false }
*/
#include "table.h"

int step(Model *, double) { return OK; }

/* A clocked output is there, and is computed, while its clock ticks. */
void evaluate(Model *m) {
    if (m->send)
        m->w = -m->gain * (m->sample && m->at_once ? m->u : m->held);
}

bool event(Model *m) {
    if (m->sample) {
        m->held = m->u;
        m->samples++;
    }
    m->sample = m->send = false;
    return false;
}
