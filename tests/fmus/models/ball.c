/*
description = "A ball that bounces; between the bounces it is computed exactly"
interfaces = ["cs", "me"]
capabilities = ["state", "serialize", "variable step", "events", "early return"]

[variables]
h = { output = 1.0, unit = "m", derivative = "der_h", reinit = true, from = [] }
v = { output = 0.0, unit = "m/s", derivative = "der_v", reinit = true, from = [] }
bounces = { output = 0, initial = "exact", from = [] }
resting = { local = false, initial = "exact" }
z = { local = 1.0, indicator = true }
h0 = { parameter = 1.0, unit = "m", min = 0.0 }
v0 = { parameter = 0.0, unit = "m/s" }
e = { parameter = 0.7, min = 0.0, max = 1.0 }
g = { parameter = 9.81, unit = "m/s2" }
*/
#include <math.h>

#include "table.h"

void start(Model *m) {
    m->h = m->h0;
    m->v = m->v0;
}

void evaluate(Model *m) {
    m->der_h = m->resting ? 0 : m->v;
    m->der_v = m->resting ? 0 : -m->g;
    m->z = m->resting ? 1 : m->h;
}

/* A model exchange solver stops near the ground, not on it. */
bool event(Model *m) {
    if (m->resting || m->h > 1e-9 || m->v >= 0)
        return false;
    m->h = 0;
    m->v *= -m->e;
    m->bounces++;
    if (m->v < 1e-3) {
        m->resting = true;
        m->v = 0;
    }
    return true;
}

static void fly(Model *m, double s) {
    m->h += s * (m->v - s / 2 * m->g);
    m->v -= s * m->g;
}

int step(Model *m, double h) {
    double left = h;
    while (!m->resting) {
        double s = (m->v + sqrt(m->v * m->v + 2 * m->g * m->h)) / m->g; /* until it is on the ground */
        if (s > left)
            break;
        fly(m, s);
        m->h = 0;
        left -= s;
        if (m->host.events) {
            m->event = true;
            if (m->host.early) {
                m->time += h - left;
                return DISCARD;
            }
        }
        event(m);
    }
    if (!m->resting)
        fly(m, left);
    return OK;
}
