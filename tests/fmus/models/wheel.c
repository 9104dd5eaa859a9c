/*
description = "The wheel of a quarter truck on a step of the road, with the suspension: moved by the chassis, it gives the force on it"
interfaces = ["cs", "me"]

[variables]
velocity = { input = 0.0, unit = "m/s" }
force = { output = 0.0, unit = "N", from = ["velocity", "place", "position", "speed"] }
position = { output = 0.0, unit = "m", derivative = "der_position", from = [] }
speed = { output = 0.0, unit = "m/s", derivative = "der_speed", from = [] }
place = { local = 0.0, unit = "m", derivative = "der_place" }
m = { parameter = 40.0, unit = "kg", min = 0.0 }
kc = { parameter = 15e3, unit = "N/m" }
dc = { parameter = 1e3, unit = "N.s/m" }
kw = { parameter = 150e3, unit = "N/m" }
road = { parameter = 0.1, unit = "m" }
substeps = { parameter = 8, min = 1 }
*/
#include "table.h"

void evaluate(Model *m) {
    m->force = m->kc * (m->position - m->place) + m->dc * (m->speed - m->velocity);
    m->der_place = m->velocity;
    m->der_position = m->speed;
    m->der_speed = (m->kw * (m->road - m->position) - m->force) / m->m;
}

int step(Model *m, double h) {
    rk4(m, h, m->substeps);
    return OK;
}
