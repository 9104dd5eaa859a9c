/*
description = "Looks at its inputs in event mode only: at once at u and s, at c every `period`, in time events that it tells of"
versions = [3]
interfaces = ["cs"]
private = "double due;"

[names]
sampled = { capabilities = ["state", "serialize", "variable step", "events"] }
rigid = { capabilities = ["state", "serialize", "events"] }

[variables]
u = { input = 0.0, variability = "discrete" }
c = { input = 0.0 }
s = { input = "" }
w = { output = 0.0, variability = "discrete", initial = "exact", from = ["u"] }
y = { output = 0.0, variability = "discrete", initial = "exact", from = [] }
when = { output = 0.0, unit = "s", variability = "discrete", initial = "exact", from = [] }
said = { output = "", initial = "exact", from = [] }
period = { parameter = 0.25, unit = "s" }
*/
#include "table.h"

void start(Model *m) { m->due = m->time; }

int step(Model *, double) { return OK; }

double next_event(Model *m) { return m->due; }

bool event(Model *m) {
    m->w = m->u;
    strcpy(m->said, m->s);
    if (m->time < m->due - 1e-12)
        return false;
    m->y = m->c;
    m->when = m->time;
    m->due += m->period * (1 + (int)((m->time - m->due + 1e-12) / m->period));
    return false;
}
