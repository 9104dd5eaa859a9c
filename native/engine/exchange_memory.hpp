// The exchange memory of a level: samples of outputs, and the polynomials made of them. The twin of
// engine/memory.py.
// In:  outputs as they are read; polynomials of the level's own inputs
// Out: the newest outputs and the coefficients of inputs, all children in one array each
#pragma once

#include <cstdint>
#include <vector>

#include "engine/snapshot.hpp"

namespace hocket {

// Samples of one output, as far back as its extrapolators look.
struct Ring {
    int depth = 1;
    int count = 0;
    int newest = -1;
    bool sloped = false;
    std::vector<std::int64_t> ticks;
    std::vector<double> values;
    std::vector<double> slopes;

    explicit Ring(int depth = 1, bool sloped = false)
        : depth(depth), sloped(sloped), ticks(depth), values(depth), slopes(depth) {}
    void push(std::int64_t tick, double value, double slope) {
        while (count > 0 && ticks[newest] > tick) {  // samples of a later time are void
            newest = back(1);
            --count;
        }
        if (count == 0 || ticks[newest] != tick) {
            newest = (newest + 1) % depth;
            if (count < depth) ++count;
        }
        ticks[newest] = tick;
        values[newest] = value;
        if (sloped) slopes[newest] = slope;
    }
    int back(int steps) const { return (newest - steps + depth) % depth; }
};

// Outputs whose values, and those whose slopes, a loop or an iteration solves for.
struct Unknowns {
    std::vector<int> values, slopes;
    std::size_t size() const { return values.size() + slopes.size(); }
};

// Polynomials of the level's own inputs, a row per power of time, from a tick on.
struct OwnInputs {
    std::vector<double> coefficients;
    std::int64_t base = 0;
};

struct ExchangeMemory {
    ExchangeMemory(int degree, int inputs);

    std::vector<double> u, y;  // coefficients of inputs; newest outputs
    std::vector<int> ring_of;  // per output: its ring, or -1
    std::vector<Ring> rings;
    int degree, inputs;       // of the level itself
    OwnInputs used, offered;  // those of the step under way; those that the level around offers

    void add_child(std::size_t coefficients, std::size_t outputs);
    void add_ring(int signal, int depth, bool sloped);
    Ring& ring(int signal) { return rings[ring_of[signal]]; }
    const Ring& ring(int signal) const { return rings[ring_of[signal]]; }

    void offer(std::int64_t tick, const double* polynomials);
    void admit();
    // Slopes count as changes over a step of this length in seconds, so that all unknowns are of a size.
    void read(const Unknowns& unknowns, double length, double* to) const;
    void write(const Unknowns& unknowns, double length, const double* from);

    void save(Snapshot& to) const;
    void restore(Snapshot& from);
};

}  // namespace hocket
