/*
description = "The chassis of a quarter truck, as displacements from rest: m v' = force"
interfaces = ["cs", "me"]

[variables]
force = { input = 0.0, unit = "N" }
velocity = { output = 0.0, unit = "m/s", derivative = "der_velocity", from = [] }
position = { output = 0.0, unit = "m", derivative = "der_position", from = [] }
m = { parameter = 400.0, unit = "kg", min = 0.0 }
*/
#include "table.h"

void evaluate(Model *m) {
    m->der_position = m->velocity;
    m->der_velocity = m->force / m->m;
}

/* A held force: exact. */
int step(Model *m, double h) {
    double a = m->force / m->m;
    m->position += h * (m->velocity + h / 2 * a);
    m->velocity += h * a;
    return OK;
}
