/*
description = "y = A u with a square matrix of any size up to eight"
versions = [3]

[variables]
n = { structuralParameter = 3, type = "UInt64", min = 1, max = 8 }
u = { input = [0.0, 0.0, 0.0], dimensions = ["n"] }
A = { parameter = [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0], dimensions = ["n", "n"] }
y = { output = [0.0, 0.0, 0.0], dimensions = ["n"], from = ["u"] }
*/
#include "table.h"

double *place(Model *m, unsigned reference, size_t *size) {
    *size = reference == REF_time ? 1 : reference == REF_A ? m->n * m->n : m->n;
    return reference == REF_time ? &m->time : reference == REF_A ? m->A : reference == REF_u ? m->u : m->y;
}

/* Another size brings back the default: twice the identity, and no input. */
void configure(Model *m) {
    if (m->n > 8)
        m->n = 8;
    for (size_t i = 0; i < m->n; i++) {
        m->u[i] = 0;
        for (size_t j = 0; j < m->n; j++)
            m->A[i * m->n + j] = i == j ? 2 : 0;
    }
}

void evaluate(Model *m) {
    for (size_t i = 0; i < m->n; i++) {
        m->y[i] = 0;
        for (size_t j = 0; j < m->n; j++)
            m->y[i] += m->A[i * m->n + j] * m->u[j];
    }
}

int step(Model *, double) { return OK; }
