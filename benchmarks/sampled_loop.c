/* The yardstick of events.py: plants under sampled controllers, each with a period of its own. */
#include <stddef.h>
#include <time.h>

typedef struct Simulator Simulator;
struct Simulator {
    void (*step)(Simulator *);
    double a, b, x, u;
    int period, left; /* in steps of the loop: of a controller, and until it ends its period */
};

/* volatile: the compiler must not know which function is called */
static void step(Simulator *s) { s->x = s->a * s->x + s->b * s->u; }
void (*volatile chosen)(Simulator *) = step;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* a busy machine must not count */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

size_t size(void) { return sizeof(Simulator); }

void prepare(Simulator *s, const double *a, const double *b, const double *x, const int *period, int n) {
    for (int i = 0; i < n; ++i)
        s[i] = (Simulator){chosen, a[i], b[i], x[i], 0.0, period[i], period[i]};
}

/* feed the plants, and the controllers whose period begins; one indirect call for each that moves; read */
double sampled(Simulator *plant, Simulator *controller, const double *c, double *y, double *command, int n,
               long steps) {
    const double begin = now();
    for (long k = 0; k < steps; ++k) {
        for (int i = 0; i < n; ++i) plant[i].u = command[i];
        for (int i = 0; i < n; ++i)
            if (controller[i].left == controller[i].period) controller[i].u = y[i];
        for (int i = 0; i < n; ++i) plant[i].step(&plant[i]);
        for (int i = 0; i < n; ++i)
            if (--controller[i].left == 0) {
                controller[i].step(&controller[i]);
                controller[i].left = controller[i].period;
                command[i] = c[i] * controller[i].x;
            }
        for (int i = 0; i < n; ++i) y[i] = plant[i].x;
    }
    return now() - begin;
}
