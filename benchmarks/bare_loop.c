/* The yardstick of loop.py: what a hand-written loop over a ring costs. */
#include <stddef.h>
#include <time.h>

typedef struct Simulator Simulator;
struct Simulator {
    void (*step)(Simulator *);
    double a, b, x, u;
};

/* volatile: the compiler must not know which function is called */
static void step(Simulator *s) { s->x = s->a * s->x + s->b * s->u; }
void (*volatile chosen)(Simulator *) = step;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void prepare(Simulator *s, const double *a, const double *b, const double *x, int n) {
    for (int i = 0; i < n; ++i) {
        s[i].step = chosen;
        s[i].a = a[i];
        s[i].b = b[i];
        s[i].x = x[i];
    }
}

size_t size(void) { return sizeof(Simulator); }

/* feed all; one indirect call per simulator; read all */
double indirect(Simulator *s, double *y, const int *source, int n, long steps) {
    const double begin = now();
    for (long k = 0; k < steps; ++k) {
        for (int i = 0; i < n; ++i) s[i].u = y[source[i]];
        for (int i = 0; i < n; ++i) s[i].step(&s[i]);
        for (int i = 0; i < n; ++i) y[i] = s[i].x;
    }
    return now() - begin;
}

/* for orientation: no simulators at all, one fused loop over arrays */
double fused(double *x, double *next, const double *a, const double *b, const int *source, int n, long steps) {
    const double begin = now();
    for (long k = 0; k < steps; ++k) {
        for (int i = 0; i < n; ++i) next[i] = a[i] * x[i] + b[i] * x[source[i]];
        double *swap = x;
        x = next;
        next = swap;
    }
    return now() - begin;
}

/* arithmetic that waits for itself, as a small system with many micro steps does */
double chain(long n) {
    double x = 1.0;
    for (long k = 0; k < n; ++k) x = x * 0.999999 + 1e-9;
    return x;
}
