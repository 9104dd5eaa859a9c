/*
description = "The oscillator of van der Pol: x'' = mu (1 - x^2) x' - x"
interfaces = ["cs", "me"]
capabilities = ["state", "serialize", "variable step", "directional derivatives"]

[variables]
x = { output = 2.0, derivative = "der_x", from = [] }
v = { output = 0.0, derivative = "der_v", from = [] }
mu = { parameter = 1.0 }
x0 = { parameter = 2.0 }
v0 = { parameter = 0.0 }
substeps = { parameter = 1, min = 1 }
*/
#include "table.h"

void start(Model *m) {
    m->x = m->x0;
    m->v = m->v0;
}

void evaluate(Model *m) {
    m->der_x = m->v;
    m->der_v = m->mu * (1 - m->x * m->x) * m->v - m->x;
}

int step(Model *m, double h) {
    rk4(m, h, m->substeps);
    return OK;
}

double partial(Model *m, unsigned unknown, unsigned known) {
    if (unknown == known || (unknown == REF_der_x && known == REF_v))
        return 1;
    if (unknown == REF_der_v && known == REF_x)
        return -2 * m->mu * m->x * m->v - 1;
    if (unknown == REF_der_v && known == REF_v)
        return m->mu * (1 - m->x * m->x);
    return 0;
}
