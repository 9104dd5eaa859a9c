/*
description = "A node of a CAN bus: sends a frame at `at` and every `every` after it, and counts what it gets: frames and confirmations"
versions = [3]
interfaces = ["cs"]
capabilities = ["state", "serialize", "variable step", "events"]

[variables]
rx = { input = "", type = "Binary", clocks = ["rx_clock"] }
rx_clock = { input = false, type = "Clock" }
tx = { output = "", type = "Binary", initial = "exact", clocks = ["tx_clock"], from = [] }
tx_clock = { output = false, type = "Clock", from = [] }
sent = { output = 0, initial = "exact", from = [] }
received = { output = 0, initial = "exact", from = [] }
confirmed = { output = 0, initial = "exact", from = [] }
payload = { output = 0, initial = "exact", from = [] }
received_at = { output = -1.0, variability = "discrete", initial = "exact", from = [] }
confirmed_at = { output = -1.0, variability = "discrete", initial = "exact", from = [] }
id = { parameter = 1 }
at = { parameter = 0.3, unit = "s" }
every = { parameter = 1e9, unit = "s" }
*/
#include "table.h"

/* A frame is its id and a byte of payload; id 0 confirms the last frame that was sent. */
double next_event(Model *m) { return m->at + m->sent * m->every; }

void evaluate(Model *m) {
    m->tx_clock = m->time >= next_event(m) - 1e-9;
    if (m->tx_clock)
        m->tx = (Bytes){2, {(uint8_t)m->id, (uint8_t)(16 * m->id + m->sent)}};
}

bool event(Model *m) {
    evaluate(m);
    m->sent += m->tx_clock;
    if (m->rx_clock && m->rx.size == 2 && m->rx.bytes[0] == 0) {
        m->confirmed++;
        m->confirmed_at = m->time;
    } else if (m->rx_clock && m->rx.size == 2) {
        m->received++;
        m->received_at = m->time;
        m->payload = m->rx.bytes[1];
    }
    m->rx_clock = m->tx_clock = false;
    return false;
}

int step(Model *, double) { return OK; }
