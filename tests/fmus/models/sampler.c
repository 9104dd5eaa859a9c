/*
description = "x' = n y, with y = u sampled every `period`; a solver's step that ends with x above `limit` lets it fall by that"
interfaces = ["me"]
capabilities = ["state", "serialize"]
private = "double due;"

[variables]
u = { input = 0.0 }
n = { input = 1 }
x = { output = 0.0, derivative = "der_x", reinit = true, from = [] }
y = { output = 0.0, variability = "discrete", initial = "exact", from = [] }
ticks = { output = 0, initial = "exact", from = [] }
period = { parameter = 0.1, unit = "s" }
limit = { parameter = 1e9 }
*/
#include "table.h"

void start(Model *m) { m->due = m->time; }

void evaluate(Model *m) { m->der_x = m->n * m->y; }

double next_event(Model *m) { return m->due; }

bool completed(Model *m) { return m->x > m->limit; }

bool event(Model *m) {
    if (m->time >= m->due) {
        m->y = m->u;
        m->ticks++;
        m->due += m->period;
    }
    if (m->x <= m->limit)
        return false;
    m->x -= m->limit;
    return true;
}
