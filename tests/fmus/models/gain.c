/*
description = "y = k u"
interfaces = ["cs", "me"]

[variables]
u = { input = 0.0 }
y = { output = 0.0, from = ["u"] }
k = { parameter = 2.0, variability = "tunable", min = -100.0, max = 100.0 }
*/
#include "table.h"

void evaluate(Model *m) { m->y = m->k * m->u; }

int step(Model *, double) { return OK; }
