/*
description = "The first of two masses: moved by the motion of the second, it gives the force of the coupling"
interfaces = ["cs", "me"]

[variables]
x = { input = 0.0, unit = "m" }
v = { input = 0.0, unit = "m/s" }
force = { output = 0.0, unit = "N", from = ["x", "v", "position", "speed"] }
position = { local = 0.1, unit = "m", derivative = "der_position" }
speed = { local = 0.1, unit = "m/s", derivative = "der_speed" }
m = { parameter = 10.0, unit = "kg", min = 0.0 }
c = { parameter = 1.0, unit = "N/m" }
d = { parameter = 1.0, unit = "N.s/m" }
c_coupling = { parameter = 1.0, unit = "N/m" }
d_coupling = { parameter = 2.0, unit = "N.s/m" }
x0 = { parameter = 0.1, unit = "m" }
v0 = { parameter = 0.1, unit = "m/s" }
substeps = { parameter = 1, min = 1 }
*/
#include "table.h"

void start(Model *m) {
    m->position = m->x0;
    m->speed = m->v0;
}

void evaluate(Model *m) {
    m->force = m->c_coupling * (m->position - m->x) + m->d_coupling * (m->speed - m->v);
    m->der_position = m->speed;
    m->der_speed = (-m->c * m->position - m->d * m->speed - m->force) / m->m;
}

int step(Model *m, double h) {
    rk4(m, h, m->substeps);
    return OK;
}
