/*
description = "y counts the steps of a stair, one each `tread`, and asks to end the simulation on step `top`"
versions = [2, 3]
interfaces = ["cs", "me"]

[names]
stair = { capabilities = ["state", "serialize", "variable step", "early return", "events"] }
landing = { capabilities = ["state", "serialize", "variable step"] }

[variables]
u = { input = 0.0 }
y = { output = 0.0, from = [] }
x = { output = 0.0, derivative = "der_x", from = [] }
top = { parameter = 3.0 }
tread = { parameter = 0.25, unit = "s" }
*/
#include "table.h"

#include <math.h>

static bool is(const char *name) { return !strcmp(TITLE, name); }

static const double close = 1e-9;

/* `landing` says so in a step, `stair` in event mode; without one both do in a step. */
static double end(Model *m) { return m->top * m->tread; }

static void climb(Model *m, double t) {
    m->y = (int)((t + close) / m->tread);
    m->ends = t >= end(m) - close;
}

void evaluate(Model *m) { m->der_x = 1.0; }

int step(Model *m, double h) {
    double until = m->time + h, begun = m->time;
    bool inside = until > end(m) + close;
#if FMI == 3
    inside = inside && m->host.early;
#endif
    if (inside)
        until = end(m);
    m->x += until - begun;
    if (m->host.events) {
        m->event = until >= end(m) - close;
        m->y = (int)((until + close) / m->tread);
    } else
        climb(m, until);
    if (inside || (FMI == 2 && m->ends)) {
        m->time = until;
        return DISCARD;
    }
    return OK;
}

double next_event(Model *m) { return is("stair") ? (floor(m->time / m->tread + close) + 1) * m->tread : INFINITY; }

bool event(Model *m) {
    climb(m, m->time);
    return false;
}

bool completed(Model *m) {
    if (is("landing"))
        climb(m, m->time);
    return false;
}
