/*
description = "y counts time events, one each `every`; between them it does not change"
versions = [2, 3]
interfaces = ["cs", "me"]
capabilities = ["state", "serialize", "variable step", "events"]
private = "double due;"

[variables]
y = { output = 0, initial = "exact", from = [] }
x = { output = 0.0, derivative = "der_x", from = [] }
every = { parameter = 1.0, unit = "s" }
*/
#include <math.h>

#include "table.h"

void start(Model *m) { m->due = m->time + m->every; }

void evaluate(Model *m) { m->der_x = m->y; }

double next_event(Model *m) { return m->due; }

bool event(Model *m) {
    if (m->time < m->due)
        return false;
    m->y++;
    m->due = m->every * (m->y + 1);
    return false;
}

int step(Model *m, double h) {
    m->x += h * m->y;
    if (m->host.events)
        return OK;
    double begun = m->time;
    m->time += h;
    event(m);
    m->time = begun;
    return OK;
}
