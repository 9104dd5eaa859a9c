/*
description = "Claims that its state can be saved, but the number of steps it has made is not part of what it saves"
capabilities = ["state", "variable step"]
private = "int *hidden;"

[variables]
u = { input = 0.0 }
y = { output = 0.0, initial = "exact", from = [] }
at = { parameter = 0.5, unit = "s" }
*/
#include <stdlib.h>

#include "table.h"

int create(Model *m) {
    m->hidden = calloc(1, sizeof *m->hidden);
    return OK;
}

void destroy(Model *m) { free(m->hidden); }

int step(Model *m, double h) {
    m->y += h * (m->u + *m->hidden);
    *m->hidden += 1;
    return OK;
}
