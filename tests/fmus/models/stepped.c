/*
description = "T y' = u - y by explicit Euler steps of a fixed length inside, at its own times; between them nothing moves"
private = "long done;"

[variables]
u = { input = 0.0 }
y = { output = 0.0, from = [] }
T = { parameter = 1.0, unit = "s" }
inside = { parameter = 0.01, unit = "s" }
y0 = { parameter = 0.0 }
x = { local = 0.0, initial = "exact" }
*/
#include "table.h"

void start(Model *m) { m->x = m->y0; }

void evaluate(Model *m) { m->y = m->x; }

int step(Model *m, double h) {
    double end = m->time + h;
    while ((m->done + 1) * m->inside <= end + 1e-9 * m->inside) {
        m->x += m->inside * (m->u - m->x) / m->T;
        m->done++;
    }
    return OK;
}
