/* The yardstick of peers.py: FMI 2 units coupled by a hand-written loop. For each unit and step one fmi2SetReal, one
   fmi2DoStep, one fmi2GetReal; the coupling copies doubles between two arrays.

   bare_fmus PLAN STEPS H METHOD START ROWS
     PLAN    a text: see read_plan()
     METHOD  jacobi | gauss-seidel (in the order of the plan)
     START   exchanged: outputs are handed on before the first step; blank: every input is 0 in the first step
     ROWS    a file for the outputs of every step, or - for none
   prints as JSON: seconds to load and to step, kB that loading took, the inputs and outputs at the end */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void *Component;
typedef int SetReal(Component, const unsigned[], size_t, const double[]);
typedef int GetReal(Component, const unsigned[], size_t, double[]);
typedef int DoStep(Component, double, double, int);
typedef int Simple(Component);
typedef struct {
    void (*logger)(void *, const char *, int, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*step_finished)(void *, int);
    void *environment;
} Callbacks;

typedef struct {
    Component component;
    SetReal *set;
    DoStep *step;
    GetReal *get;
    double *u, *y;
    unsigned *in, *out;
    size_t inputs, outputs;
    size_t first_wire, wires; /* those that drive it */
    void *library;
} Unit;

typedef struct {
    size_t from, to;
} Wire;

static Unit *units;
static Wire *wires;
static double *u, *y;
static size_t unit_count, wire_count, input_count, output_count;

static void die(const char *what, const char *which) {
    fprintf(stderr, "bare_fmus: %s: %s\n", what, which);
    exit(1);
}

static void say(void *environment, const char *name, int status, const char *category, const char *message, ...) {
    (void)environment, (void)category;
    va_list arguments;
    va_start(arguments, message);
    fprintf(stderr, "%s (%d): ", name, status);
    vfprintf(stderr, message, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static const Callbacks callbacks = {say, calloc, free, NULL, NULL};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long resident(void) { /* kB */
    long all, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) die("no function", name);
    return found;
}

static size_t number(FILE *file) {
    size_t n;
    if (fscanf(file, "%zu", &n) != 1) die("the plan", "a number is missing");
    return n;
}

static double real(FILE *file) {
    double x;
    if (fscanf(file, "%lf", &x) != 1) die("the plan", "a value is missing");
    return x;
}

static void references(FILE *file, size_t n, unsigned *to) {
    for (size_t k = 0; k < n; ++k) to[k] = (unsigned)number(file);
}

/* units inputs outputs wires; for each unit: library guid name, the numbers of parameters, inputs, outputs and wires,
   then parameters as reference and value, references of inputs, of outputs, wires as indices of an output (of all) and
   an input (of all) */
static void read_plan(const char *path, double stop) {
    FILE *file = fopen(path, "r");
    if (!file) die("no plan", path);
    unit_count = number(file), input_count = number(file), output_count = number(file), wire_count = number(file);
    units = calloc(unit_count, sizeof *units);
    wires = calloc(wire_count + 1, sizeof *wires);
    u = calloc(input_count + 1, sizeof *u);
    y = calloc(output_count + 1, sizeof *y);
    size_t inputs = 0, outputs = 0, driven = 0;
    for (Unit *unit = units; unit < units + unit_count; ++unit) {
        char library[4096], guid[256], name[256];
        if (fscanf(file, "%4095s %255s %255s", library, guid, name) != 3) die("the plan", "a unit is missing");
        unit->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!unit->library) die("dlopen", dlerror());
        unit->set = (SetReal *)symbol(unit->library, "fmi2SetReal");
        unit->get = (GetReal *)symbol(unit->library, "fmi2GetReal");
        unit->step = (DoStep *)symbol(unit->library, "fmi2DoStep");
        Component (*create)(const char *, int, const char *, const char *, const Callbacks *, int, int) =
            (Component(*)(const char *, int, const char *, const char *, const Callbacks *, int, int))symbol(unit->library, "fmi2Instantiate");
        int (*setup)(Component, int, double, double, int, double) =
            (int (*)(Component, int, double, double, int, double))symbol(unit->library, "fmi2SetupExperiment");
        unit->component = create(name, 1, guid, "file:///", &callbacks, 0, 0);
        if (!unit->component) die("fmi2Instantiate", name);
        const size_t parameters = number(file);
        unit->inputs = number(file), unit->outputs = number(file), unit->wires = number(file);
        for (size_t k = 0; k < parameters; ++k) {
            const unsigned reference = (unsigned)number(file);
            const double value = real(file);
            if (unit->set(unit->component, &reference, 1, &value)) die("fmi2SetReal", name);
        }
        unit->in = calloc(unit->inputs + unit->outputs + 1, sizeof(unsigned));
        unit->out = unit->in + unit->inputs;
        references(file, unit->inputs, unit->in);
        references(file, unit->outputs, unit->out);
        unit->u = u + inputs, unit->y = y + outputs, unit->first_wire = driven;
        inputs += unit->inputs, outputs += unit->outputs;
        for (size_t k = 0; k < unit->wires; ++k, ++driven) wires[driven].from = number(file), wires[driven].to = number(file);
        if (setup(unit->component, 0, 0.0, 0.0, 1, stop) ||
            ((Simple *)symbol(unit->library, "fmi2EnterInitializationMode"))(unit->component))
            die("initialisation", name);
    }
    fclose(file);
}

static void copy(const Wire *wire, size_t n) {
    for (const Wire *end = wire + n; wire < end; ++wire) u[wire->to] = y[wire->from];
}

static void initialise(int exchange) {
    for (int sweep = 0; exchange && sweep < 2; ++sweep) { /* enough for outputs that follow an input at once */
        for (size_t k = 0; k < unit_count; ++k) units[k].get(units[k].component, units[k].out, units[k].outputs, units[k].y);
        copy(wires, wire_count);
        for (size_t k = 0; k < unit_count; ++k) units[k].set(units[k].component, units[k].in, units[k].inputs, units[k].u);
    }
    for (size_t k = 0; k < unit_count; ++k) {
        if (((Simple *)symbol(units[k].library, "fmi2ExitInitializationMode"))(units[k].component)) die("initialisation", "exit");
        if (exchange) units[k].get(units[k].component, units[k].out, units[k].outputs, units[k].y);
    }
}

static inline int advance(const Unit *unit, double t, double h) {
    int status = unit->set(unit->component, unit->in, unit->inputs, unit->u);
    status |= unit->step(unit->component, t, h, 1);
    return status | unit->get(unit->component, unit->out, unit->outputs, unit->y);
}

static int jacobi(long steps, double h, FILE *rows) {
    int status = 0;
    for (long k = 0; k < steps; ++k) {
        const double t = (double)k * h;
        copy(wires, wire_count);
        for (const Unit *unit = units, *end = units + unit_count; unit < end; ++unit) status |= advance(unit, t, h);
        if (rows) fwrite(&t, sizeof t, 1, rows), fwrite(y, sizeof *y, output_count, rows);
    }
    return status;
}

static int gauss_seidel(long steps, double h, FILE *rows) {
    int status = 0;
    for (long k = 0; k < steps; ++k) {
        const double t = (double)k * h;
        for (const Unit *unit = units, *end = units + unit_count; unit < end; ++unit) {
            copy(wires + unit->first_wire, unit->wires);
            status |= advance(unit, t, h);
        }
        if (rows) fwrite(&t, sizeof t, 1, rows), fwrite(y, sizeof *y, output_count, rows);
    }
    return status;
}

static void list(const char *name, const double *values, size_t n) {
    printf(", \"%s\": [", name);
    for (size_t k = 0; k < n; ++k) printf("%s%.17g", k ? ", " : "", values[k]);
    printf("]");
}

int main(int count, char **words) {
    if (count != 7) die("six arguments are needed", "PLAN STEPS H METHOD START ROWS");
    const long steps = atol(words[2]), before = resident();
    const double h = atof(words[3]), begin = now();
    read_plan(words[1], (double)steps * h);
    initialise(strcmp(words[5], "blank") != 0);
    const double loaded = now();
    const long memory = resident() - before;
    FILE *rows = strcmp(words[6], "-") ? fopen(words[6], "wb") : NULL;
    const double ready = now();
    const int status = strcmp(words[4], "gauss-seidel") ? jacobi(steps, h, rows) : gauss_seidel(steps, h, rows);
    if (rows) fclose(rows);
    const double done = now();
    if (status) die("a call failed", "while stepping");
    printf("{\"load\": %.9f, \"steps\": %.9f, \"memory\": %ld", loaded - begin, done - ready, memory);
    list("inputs", u, input_count);
    list("outputs", y, output_count);
    puts("}");
    for (size_t k = 0; k < unit_count; ++k) {
        ((Simple *)symbol(units[k].library, "fmi2Terminate"))(units[k].component);
        ((void (*)(Component))symbol(units[k].library, "fmi2FreeInstance"))(units[k].component);
    }
    return 0;
}
