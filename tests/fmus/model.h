/* What a model and a frame know of each other. `table.h`, which completes the struct Model and defines the TABLE, is
   generated from the comment that opens a model's source; a frame is compiled without it, once for all models. */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { OK, WARNING, DISCARD, ERROR, FATAL };

enum { LENGTH = 256 };
typedef char Text[LENGTH];
typedef struct {
    size_t size;
    uint8_t bytes[LENGTH];
} Bytes;

#if FMI == 1
typedef char Boolean;
#elif FMI == 2
typedef int Boolean;
#else
typedef bool Boolean;
#endif

/* What belongs to the instance and its environment: not part of a saved state. */
typedef struct {
    char *name;
    void *environment;
#if FMI < 3
    void (*log)(void *environment, const char *name, int status, const char *category, const char *message, ...);
#else
    void (*log)(void *environment, int status, const char *category, const char *message);
    void (*intermediate)(void *environment, double time, bool set, bool get, bool finished, bool can_return,
                         bool *return_requested, double *return_time);
#endif
    bool events; /* the environment handles events in event mode */
    bool early;  /* a step may return early */
    int phase;   /* kept by frame2.c for the model `strict` */
    double stop;
    bool ended; /* the stop time was passed */
    bool saved; /* a state was saved: where a define says so, it stands still from then on */
    bool stepped; /* where OUTPUTS_FROM_STEPS is defined, outputs are zero until then */
} Host;

typedef struct Model Model;

/* Counter / resolution seconds; without a resolution it is not yet known. */
typedef struct {
    double counter;
    uint64_t resolution;
} Interval;

#define HEAD                                                                                             \
    Host host;                                                                                           \
    unsigned fresh, base; /* see refresh() in frame.h */                                                 \
    bool event;           /* event mode is needed */                                                     \
    bool ends;            /* it asks to end the simulation */                                                     \
    bool touched;         /* something was set since the last step */                                    \
    double began;         /* the time at which the step began */                                         \
    union {                                                                                              \
        double time; /* the first of the reals */                                                        \
        double float64[0];                                                                               \
    };

/* The variables of one type: where the first is in a Model, their number, what is added to their references. */
typedef struct {
    size_t where;
    unsigned count, offset;
    const char *settable; /* a letter for each: i(nput), t(unable), p(arameter), or - */
} Kind;

typedef struct {
    const char *title, *token;
    size_t size;
    const Model *defaults;
    unsigned stored, states, indicators, rates;
    const unsigned *state, *derivative, *indicator;
    size_t rates_at;
    bool arrays;
    Kind float64, float32, int8, uint8, int16, uint16, int32, uint32, int64, uint64, boolean, string, binary, clock;
} Table;

extern const Table TABLE;

/* The hooks. A model defines those it needs; frame.h has a default for each. */
int create(Model *m);                  /* instantiation; anything but OK refuses */
void start(Model *m);                  /* states from parameters; may be called many times before the first step */
int settle(Model *m);                  /* initialization ends */
void evaluate(Model *m);               /* derivatives, outputs and indicators from time, inputs and states */
int step(Model *m, double h);          /* from m->time on; by default one Runge-Kutta step. One that stops early sets
                                          m->time to where it stopped and returns DISCARD */
bool event(Model *m);                  /* event mode; tells whether states jumped */
double next_event(Model *m);           /* model exchange: the time of the next time event, or INFINITY */
bool unsettled(Model *m);              /* event mode wants another round */
bool ends(Model *m);                   /* model exchange: the simulation is to end */
bool completed(Model *m);              /* model exchange: after a step of the solver; tells whether event mode is wanted */
void configure(Model *m);              /* configuration mode ends: the sizes of arrays may have changed */
double partial(Model *m, unsigned unknown, unsigned known);
double *place(Model *m, unsigned reference, size_t *size); /* arrays: where the values are, and how many */
void destroy(Model *m);
int activate(Model *m, unsigned clock);        /* scheduled execution: the part of the model that a clock activates */
Interval interval(Model *m, unsigned clock);   /* of a clock whose interval the description does not tell */

/* What a frame gives to a model. */
void input_at(Model *m, double t);     /* sets the inputs to their values at a time within the step */
void rk4(Model *m, double h, int steps); /* classical Runge-Kutta steps that together make h */

/* FMI 1 and 2 leave the formatting to the environment, FMI 3 wants it done. */
#if FMI < 3
#define LOG(m, status, category, ...)                                                                    \
    do {                                                                                                 \
        if ((m)->host.log)                                                                               \
            (m)->host.log((m)->host.environment, (m)->host.name, status, category, __VA_ARGS__);         \
    } while (0)
#else
#define LOG(m, status, category, ...)                                                                    \
    do {                                                                                                 \
        char text_[512];                                                                                 \
        snprintf(text_, sizeof text_, __VA_ARGS__);                                                      \
        if ((m)->host.log)                                                                               \
            (m)->host.log((m)->host.environment, status, category, text_);                               \
    } while (0)
#endif

#endif
