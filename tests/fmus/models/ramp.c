/*
description = "y' = u, exact if u is a cubic polynomial between two communication points"
interfaces = ["cs", "me"]
capabilities = ["state", "serialize", "variable step", "interpolated inputs", "output derivatives"]

[variables]
u = { input = 0.0, intermediate = true }
y = { output = 0.0, derivative = "der_y", from = [] }
y0 = { parameter = 0.0 }
*/
#include "table.h"

void start(Model *m) { m->y = m->y0; }

void evaluate(Model *m) { m->der_y = m->u; }

/* Gauss' formula with two points. */
int step(Model *m, double h) {
    double t = m->time, offset = h * 0.28867513459481287 /* sqrt(3) / 6 */, sum;
    input_at(m, t + h / 2 - offset);
    sum = m->u;
    input_at(m, t + h / 2 + offset);
    sum += m->u;
    input_at(m, t + h);
    m->y += h / 2 * sum;
    return OK;
}
