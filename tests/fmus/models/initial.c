/*
description = "Its initial state is its input, whatever it declares: x' = u - x, x(0) = u; `lazy` is one that computes when asked"

[names]
initial = {}
lazy = {}

[variables]
u = { input = 0.25 }
y = { output = 0.0, from = [] }
x = { local = 0.0, derivative = "der_x" }
twice = { local = 0.0 }
evaluations = { local = 0 }
*/
#include <string.h>

#include "table.h"

void start(Model *m) {
    if (strcmp(TITLE, "lazy"))
        m->x = m->u;
}

/* `lazy` goes half the way to its input whenever it is evaluated: its numbers tell how often, and with which inputs. */
void evaluate(Model *m) {
    m->evaluations++;
    if (!strcmp(TITLE, "lazy"))
        m->x += 0.5 * (m->u - m->x);
    m->der_x = m->u - m->x;
    m->y = m->x;
    m->twice = 2 * m->x;
}

int step(Model *m, double h) {
    m->x += h * (m->u - m->x);
    return OK;
}
