/*
description = "x' = 1; at `at` an event of several rounds, of which the first lets x jump by 1 and each counts; it ends at `end`"
interfaces = ["me"]
capabilities = ["state", "serialize"]
private = "int left; bool passed;"

[variables]
x = { output = 0.0, derivative = "der_x", reinit = true, from = [] }
n = { output = 0, initial = "exact", from = [] }
rounds = { parameter = 5 }
at = { parameter = 0.25, unit = "s" }
end = { parameter = 1e9, unit = "s" }
*/
#include <math.h>

#include "table.h"

void evaluate(Model *m) { m->der_x = 1; }

double next_event(Model *m) { return m->passed ? m->end : m->at; }

bool event(Model *m) {
    if (m->left) {
        m->left--;
        m->n++;
        return false;
    }
    if (m->passed || m->time < m->at)
        return false;
    m->passed = true;
    m->left = m->rounds - 1;
    m->n++;
    m->x += 1;
    return true;
}

bool unsettled(Model *m) { return m->left > 0; }

bool ends(Model *m) { return m->time >= m->end; }
