/*
description = "Counts the ticks of three clocks: a each second, b triggered, c once, by a countdown that the fifth tick of a begins"
versions = [3]
interfaces = ["cs", "se"]
capabilities = ["state", "serialize", "variable step", "events"]
private = "bool counting, scheduled;"

[variables]
a = { input = false, type = "Clock", ticks = { intervalVariability = "constant", intervalDecimal = 1.0, priority = 0 } }
b = { input = false, type = "Clock", ticks = { intervalVariability = "triggered", priority = 1 } }
c = { input = false, type = "Clock", ticks = { intervalVariability = "countdown", priority = 2 } }
out = { output = false, type = "Clock" }
n_a = { output = 0, initial = "exact", from = [] }
n_b = { output = 0, initial = "exact", from = [] }
n_c = { output = 0, initial = "exact", from = [] }
total = { output = 0, initial = "exact", from = [] }
*/
#include "table.h"

/* `out` ticks with every fifth of all ticks. In event mode that is asked before discrete states change. */
void evaluate(Model *m) {
    int now = m->a + m->b + m->c;
    if (!m->scheduled)
        m->out = now && (m->total + now) % 5 == 0;
}

static void count(Model *m) {
    m->n_a += m->a;
    m->n_b += m->b;
    m->n_c += m->c;
    m->total += m->a + m->b + m->c;
    m->counting = m->a && m->n_a == 5;
    m->a = m->b = m->c = false;
}

bool event(Model *m) {
    count(m);
    return false;
}

int activate(Model *m, unsigned clock) {
    m->scheduled = true;
    m->a = clock == REF_a;
    m->b = clock == REF_b;
    m->c = clock == REF_c;
    bool counting = m->counting;
    count(m);
    m->counting = m->counting || (counting && clock != REF_c);
    m->out = m->total % 5 == 0;
    return OK;
}

/* The countdown is told once. */
Interval interval(Model *m, unsigned clock) {
    if (clock != REF_c || !m->counting)
        return (Interval){0, 0};
    m->counting = false;
    return (Interval){0, 1};
}

int step(Model *, double) { return OK; }
