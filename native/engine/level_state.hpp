// What the collaborators of a level share: its children, its exchange memory, and where in time they are.
// In:  children
// Out: nothing of its own; the first failure among them
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/exchange_memory.hpp"
#include "engine/polynomial.hpp"
#include "engine/simulator.hpp"

namespace hocket {

// A held input without conversion: one number copied.
struct Copy {
    int from;
    int to;
};

// A text passed from an output to an input.
struct TextCopy {
    int from, source, target;
};

// What stepping and reading a child touches: two of them in a cache line.
struct alignas(32) Slot {
    Simulator::StepOutput quick = nullptr;  // step and read in one call; none: there is more to do than that
    Simulator* simulator = nullptr;
    int u = 0, y = 0;  // where its inputs and outputs begin
    std::int64_t tick = 0;
};

// Neighbours of one kind, which a function of that kind steps; none: one by one.
struct Run {
    int begin, end;
    Simulator::StepRun step;
};

// The rest of what is known of it.
struct Child {
    std::shared_ptr<Simulator> simulator;
    int rows = 1, inputs = 0, outputs = 0;
    std::int64_t base = 0;               // the tick its polynomials begin at
    std::int64_t restored = 0;           // how often it was
    std::vector<int> fits;               // its inputs: fitted,
    std::vector<Copy> copies;            // copied,
    std::vector<TextCopy> texts;         // and texts
    std::vector<int> accounts;           // of power bonds
    std::vector<int> rings;              // outputs that keep samples,
    std::vector<int> events;             // outputs that are absent between instants,
    std::vector<double> last_events;     // and their values when they were present last
    bool sloped = false;                 // with slopes
    bool unchecked = false;              // its outputs must be looked at: NaN and infinity are errors
    int input_room = 0, slope_room = 0;  // where that of Stepping begins
    bool is_curved() const { return rows > 1; }
    int coefficients() const { return rows * inputs; }
};

struct LevelState {
    LevelState(int number, Clock clock, std::int64_t length, int degree, int inputs)
        : number(number),
          clock(clock),
          length(length),
          step(Span::of(clock, 0, length)),
          memory(degree, inputs) {}
    LevelState(const LevelState&) = delete;
    LevelState& operator=(const LevelState&) = delete;

    const int number;  // among the levels of a run
    const Clock clock;
    const std::int64_t length;  // ticks of the level's own step
    std::int64_t now = 0;
    std::int64_t reached = 0;    // the tick that rows are recorded for
    Span step;                   // the one under way
    std::int64_t steps = 0;      // odd within a step, and another number in each
    std::int64_t reactions = 0;  // of children at instants, counted
    Watch* watch = nullptr;      // looked at by every body
    bool timed = false;          // a child looks at seconds
    int iterating = 0;           // in a Repeat the newest samples stay when children are restored
    std::vector<Slot> slots;     // per child
    std::vector<Child> children;
    std::vector<const void*> hot;  // per child: what to fetch ahead of time
    ExchangeMemory memory;
    FailureLog failures;

    void add_child(std::shared_ptr<Simulator> simulator, int rows, int inputs, int outputs);
    void add_ring(int signal, int depth, bool sloped);
    int index(const Slot& slot) const { return static_cast<int>(&slot - slots.data()); }
    bool under_way() const { return steps % 2 != 0; }  // a step has not ended, or never will
    double step_seconds() const { return clock.span(length); }
    // Sets the step under way; its seconds, where nobody looks at them or they are known, are not divided
    // anew.
    void begin_span(std::int64_t tick, std::int64_t ticks) {
        if (timed && step.tick != tick) step.t = clock.time(tick);
        if (step.ticks != ticks) step.h = clock.span(ticks);
        step.tick = tick;
        step.ticks = ticks;
    }

    // Keeps the first failure: what the simulator says, or else an output that is not a number; returns
    // false.
    bool fail(const Slot& slot, Call call = Call::step);
    bool fail(Failure failure);

    // The polynomials of a child in powers of the time since its tick; `room` holds them where they move.
    const double* inputs_now(int number, double* room) const {
        const Slot& slot = slots[number];
        const Child& child = children[number];
        const double* polynomials = memory.u.data() + slot.u;
        if (!child.is_curved() || child.base == slot.tick) return polynomials;
        std::copy(polynomials, polynomials + child.coefficients(), room);  // not memcpy: both may be null
        const double ds = clock.span(slot.tick - child.base);
        for (int j = 0; j < child.inputs; ++j) shift(room + j, child.rows, child.inputs, ds);
        return room;
    }
    // Lets the polynomials of a child count from its tick.
    void move_inputs(int number) {
        const Slot& slot = slots[number];
        Child& child = children[number];
        if (!child.is_curved() || child.base == slot.tick) return;
        double* polynomials = memory.u.data() + slot.u;
        const double ds = clock.span(slot.tick - child.base);
        for (int j = 0; j < child.inputs; ++j) shift(polynomials + j, child.rows, child.inputs, ds);
        child.base = slot.tick;
    }
};

}  // namespace hocket
