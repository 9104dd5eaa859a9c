/*
description = "y is 1 while u lies above `limit`, else -1; it changes in event mode only, where each change is counted; x' = y"
interfaces = ["me"]
capabilities = ["state", "serialize"]

[variables]
u = { input = 0.0 }
x = { output = 0.0, derivative = "der_x", from = [] }
y = { output = -1.0, variability = "discrete", initial = "exact", from = ["u"] }
changes = { output = 0, initial = "exact", from = [] }
z = { local = -1.0, indicator = true }
limit = { parameter = 1.0 }
*/
#include "table.h"

void evaluate(Model *m) {
    m->der_x = m->y;
    m->z = m->u - m->limit;
}

bool event(Model *m) {
    double y = m->u > m->limit ? 1 : -1;
    m->changes += y != m->y;
    m->y = y;
    return false;
}
