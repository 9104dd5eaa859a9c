/*
description = "A CAN bus between two nodes: one frame after the other, the smallest id first, each takes (44 + 4) bits at `rate` bits per second; then the other node gets it, and its sender a confirmation, by two equal countdowns"
versions = [3]
interfaces = ["cs"]
capabilities = ["state", "serialize", "variable step", "events"]
private = "Bytes queue[16]; int from[16], waiting, told; bool busy;"

[variables]
rx1 = { input = "", type = "Binary", clocks = ["rx1_clock"] }
rx1_clock = { input = false, type = "Clock" }
tx1 = { output = "", type = "Binary", initial = "exact", clocks = ["tx1_clock"], from = [] }
tx1_clock = { input = false, type = "Clock", ticks = { intervalVariability = "countdown", supportsFraction = true } }
rx2 = { input = "", type = "Binary", clocks = ["rx2_clock"] }
rx2_clock = { input = false, type = "Clock" }
tx2 = { output = "", type = "Binary", initial = "exact", clocks = ["tx2_clock"], from = [] }
tx2_clock = { input = false, type = "Clock", ticks = { intervalVariability = "countdown" } }
carried = { output = 0, initial = "exact", from = [] }
apart = { output = 0, initial = "exact", from = [] }
rate = { parameter = 100000 }
*/
#include "table.h"

static void enqueue(Model *m, const Bytes *frame, int from) {
    m->queue[m->waiting] = *frame;
    m->from[m->waiting++] = from;
}

/* The frame with the smallest id, at the end of the queue. */
static void arbitrate(Model *m) {
    int last = m->waiting - 1;
    for (int k = 0; k < last; k++)
        if (m->queue[k].bytes[0] < m->queue[last].bytes[0]) {
            Bytes frame = m->queue[k];
            m->queue[k] = m->queue[last];
            m->queue[last] = frame;
            int from = m->from[k];
            m->from[k] = m->from[last];
            m->from[last] = from;
        }
}

bool event(Model *m) {
    if (m->rx1_clock)
        enqueue(m, &m->rx1, 1);
    if (m->rx2_clock)
        enqueue(m, &m->rx2, 2);
    m->apart += m->tx1_clock != m->tx2_clock; /* which must not be */
    if (m->tx1_clock && m->tx2_clock) {
        m->busy = false;
        m->carried++;
    }
    m->rx1_clock = m->rx2_clock = m->tx1_clock = m->tx2_clock = false;
    if (m->busy || !m->waiting)
        return false;
    arbitrate(m);
    Bytes frame = m->queue[--m->waiting], confirmation = {2, {0, frame.bytes[1]}};
    m->tx1 = m->from[m->waiting] == 1 ? confirmation : frame;
    m->tx2 = m->from[m->waiting] == 2 ? confirmation : frame;
    m->busy = true;
    m->told = 0;
    return false;
}

/* Both are told once, when the frame begins. */
Interval interval(Model *m, unsigned clock) {
    int bit = clock == REF_tx1_clock ? 1 : 2;
    if (!m->busy || m->told & bit)
        return (Interval){0, 0};
    m->told |= bit;
    return (Interval){44 + 4, (uint64_t)m->rate};
}

int step(Model *, double) { return OK; }
