/*
description = "x'' = u - w^2 x"
interfaces = ["cs", "me"]

[variables]
u = { input = 0.0 }
x = { output = 1.0, derivative = "der_x", from = [] }
v = { output = 0.0, derivative = "der_v", from = [] }
w = { parameter = 2.0 }
*/
#include "table.h"

void evaluate(Model *m) {
    m->der_x = m->v;
    m->der_v = m->u - m->w * m->w * m->x;
}
