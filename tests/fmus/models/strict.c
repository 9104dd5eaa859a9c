/*
description = "y' = k u; the frame refuses every call out of order, and notes it in the file HOCKET_TEST_TRACE"
versions = [2]
defines = ["STRICT"]

[variables]
u = { input = 0.0 }
y = { output = 0.0, derivative = "der_y", from = [] }
k = { parameter = 1.0, variability = "tunable" }
y0 = { parameter = 0.0 }
pi = { local = 3.14, variability = "constant", initial = "exact" }
count = { parameter = 1 }
*/
#include "table.h"

void start(Model *m) { m->y = m->y0; }

void evaluate(Model *m) { m->der_y = m->k * m->u; }
