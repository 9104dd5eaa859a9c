/*
description = "A ball whose saved state lacks its event indicator: once it is restored at a bounce the bounce is gone"
versions = [3]
capabilities = ["state", "variable step", "events", "early return"]
private = "bool *above;"

[variables]
h = { output = 1.0, unit = "m", initial = "exact", from = [] }
v = { output = 0.0, unit = "m/s", initial = "exact", from = [] }
e = { parameter = 0.7 }
g = { parameter = 9.81, unit = "m/s2" }
*/
#include <math.h>
#include <stdlib.h>

#include "table.h"

int create(Model *m) {
    m->above = malloc(sizeof *m->above);
    *m->above = true;
    return OK;
}

void destroy(Model *m) { free(m->above); }

bool event(Model *m) {
    if (*m->above || m->v >= 0)
        return false;
    m->h = 0;
    m->v *= -m->e;
    *m->above = true;
    return true;
}

/* Looks for the ground every millisecond, and returns there. */
int step(Model *m, double h) {
    double begin = m->time;
    int parts = (int)fmax(1, rint(h / 1e-3));
    for (int k = 1; k <= parts; k++) {
        m->h += h / parts * (m->v - h / parts / 2 * m->g);
        m->v -= h / parts * m->g;
        if (m->h <= 0 && *m->above) {
            *m->above = false;
            m->event = true;
            if (k < parts && m->host.early) {
                m->time = begin + k * (h / parts);
                return DISCARD;
            }
        }
    }
    return OK;
}
