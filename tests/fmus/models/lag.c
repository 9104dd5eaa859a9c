/*
description = "T y' = u - y, one explicit Euler step for each communication step"
interfaces = ["cs", "me"]

[variables]
u = { input = 0.0 }
y = { output = 0.0, derivative = "der_y", from = [] }
T = { parameter = 1.0, unit = "s", min = 1e-6 }
y0 = { parameter = 0.0 }
*/
#include "table.h"

void start(Model *m) { m->y = m->y0; }

void evaluate(Model *m) { m->der_y = (m->u - m->y) / m->T; }

int step(Model *m, double h) {
    m->y += h * (m->u - m->y) / m->T;
    return OK;
}
