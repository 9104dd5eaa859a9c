/*
description = "An oscillator driven by a lag, cubic and quadratic where `b`, `e` and `a` are not zero; outputs are computed"
versions = [2, 3]
interfaces = ["cs", "me"]

[names]
plant = {}
follower = { versions = [2], interfaces = ["cs"], capabilities = ["state", "serialize", "variable step", "interpolated inputs"] }

[variables]
u = { input = 0.0 }
w = { input = 0.0 }
y = { output = 0.0, from = ["x", "v"] }
s = { output = 0.0, from = ["u", "x"] }
q = { output = 0.0, from = ["w", "z"] }
x = { local = 0.0, derivative = "der_x" }
v = { local = 0.0, derivative = "der_v" }
z = { local = 0.0, derivative = "der_z" }
a = { parameter = 0.0 }
b = { parameter = 0.0 }
c = { parameter = 4.0 }
d = { parameter = 0.5 }
e = { parameter = 0.0 }
k = { parameter = 1.0 }
p = { parameter = 0.0 }
T = { parameter = 0.5, unit = "s" }
x0 = { parameter = 0.0 }
v0 = { parameter = 0.0 }
z0 = { parameter = 0.0 }
*/
#include <math.h>

#include "table.h"

void start(Model *m) {
    m->x = m->x0;
    m->v = m->v0;
    m->z = m->z0;
}

void evaluate(Model *m) {
    double pull = m->c * m->x + m->b * m->x * m->x * m->x + m->d * m->v;
    m->y = pull + m->a * m->x * m->v;
    m->s = m->x + m->p * m->u;
    m->q = sin(m->z) + m->p * m->w * m->z;
    m->der_x = m->v;
    m->der_v = m->u + m->k * m->z - pull;
    m->der_z = (m->w - m->z - m->e * m->z * m->z) / m->T;
}

int step(Model *m, double h) {
    double t = m->time;
    for (int k = 0; k < 4; k++) {
        m->time = t + k * (h / 4);
#if FMI < 3
        input_at(m, m->time); /* a `follower` looks at its inputs four times, and once more at the end */
#endif
        rk4(m, h / 4, 1);
    }
#if FMI < 3
    input_at(m, t + h);
#endif
    m->time = t;
    return OK;
}

double partial(Model *m, unsigned unknown, unsigned known) {
    double slope = m->c + 3 * m->b * m->x * m->x;
    if (unknown == known || (unknown == REF_der_x && known == REF_v) || (unknown == REF_der_v && known == REF_u) ||
        (unknown == REF_s && known == REF_x))
        return 1;
    if (known == REF_x)
        return unknown == REF_der_v ? -slope : unknown == REF_y ? slope + m->a * m->v : 0;
    if (known == REF_v)
        return unknown == REF_der_v ? -m->d : unknown == REF_y ? m->d + m->a * m->x : 0;
    if (known == REF_z) {
        if (unknown == REF_der_v)
            return m->k;
        if (unknown == REF_der_z)
            return -(1 + 2 * m->e * m->z) / m->T;
        return unknown == REF_q ? cos(m->z) + m->p * m->w : 0;
    }
    if (known == REF_u)
        return unknown == REF_s ? m->p : 0;
    if (known == REF_w)
        return unknown == REF_der_z ? 1 / m->T : unknown == REF_q ? m->p * m->z : 0;
    return 0;
}
