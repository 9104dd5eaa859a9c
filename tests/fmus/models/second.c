/*
description = "The second of two masses: moved by the force of the coupling, it gives its motion"
interfaces = ["cs", "me"]

[variables]
force = { input = 0.0, unit = "N" }
x = { output = 0.2, unit = "m", derivative = "der_x", from = [] }
v = { output = 0.1, unit = "m/s", derivative = "der_v", from = [] }
m = { parameter = 10.0, unit = "kg", min = 0.0 }
c = { parameter = 1.0, unit = "N/m" }
d = { parameter = 2.0, unit = "N.s/m" }
x0 = { parameter = 0.2, unit = "m" }
v0 = { parameter = 0.1, unit = "m/s" }
substeps = { parameter = 1, min = 1 }
*/
#include "table.h"

void start(Model *m) {
    m->x = m->x0;
    m->v = m->v0;
}

void evaluate(Model *m) {
    m->der_x = m->v;
    m->der_v = (m->force - m->c * m->x - m->d * m->v) / m->m;
}

int step(Model *m, double h) {
    rk4(m, h, m->substeps);
    return OK;
}
