// What a plan file lists of each part, once for writing and for reading.
// In:  a part, and a line that is called with its fields in turn: `line(field, field ...)`
// Out: the same fields in the same order
#pragma once

#include "engine/formulas.hpp"
#include "engine/level_builder.hpp"
#include "engine/start_program.hpp"
#include "fmu/model_exchange.hpp"

namespace hocket {

template <class Line> void list(Line& line, Clock& it) {
    line(it.tick, it.start, it.denominator, it.quantum, it.coarse);
}
template <class Line> void list(Line& line, LevelHead& it) {
    line(it.number, it.clock, it.length, it.degree, it.inputs);
}
template <class Line> void list(Line& line, Maps& it) { line(it.Phi, it.Gamma); }
template <class Line> void list(Line& line, Length& it) {
    line(it.ticks, it.count, it.h, it.length, it.maps, it.first, it.works);
}
template <class Line> void list(Line& line, Linear& it) {
    line(it.states, it.size, it.inputs, it.outputs, it.rows, it.multistep, it.feeds_through);
    line(it.A, it.B, it.C, it.D, it.lengths);
}
template <class Line> void list(Line& line, StateSpacePart& it) { line(it.model, it.z, it.last_h); }
template <class Line> void list(Line& line, Formulas::Operation& it) { line(it.code, it.places); }
template <class Line> void list(Line& line, Formulas& it) { it.list(line); }
template <class Line> void list(Line& line, Block::Setup& it) {
    line(it.inputs, it.outputs, it.degree, it.longest, it.instants, it.takes_part, it.moves);
    line(it.advance, it.show, it.next, it.react, it.state);
}

// FMUs

template <class Line> void list(Line& line, Group& it) {
    line(it.type, it.references, it.places, it.negated);
}
template <class Line> void list(Line& line, Ratio& it) { line(it.n, it.d, it.fits, it.measured); }
template <class Line> void list(Line& line, ClockSetup& it) {
    line(it.reference, it.kind, it.place, it.priority, it.told, it.tunable, it.fractions);
    line(it.interval, it.shift, it.name);
}
template <class Line> void list(Line& line, Method& it) {
    line(it.a, it.b, it.c, it.multistep, it.longest, it.atol);
}
template <class Line> void list(Line& line, Doubted& it) { line(it.output, it.inputs); }
template <class Line> void list(Line& line, ExchangeSetup& it) {
    line(it.states, it.indicators, it.completed_step, it.all_move, it.moving, it.doubted, it.method);
}
// Its files are where the origin says.
template <class Line> void list(Line& line, Setup& it) {
    line(it.name, it.token, it.logging, it.events, it.early, it.grid, it.feeds_through, it.variable);
    line(it.interpolates, it.inputs, it.outputs, it.set, it.get, it.sloped, it.continuous, it.discrete);
    line(it.time, it.texts_in, it.texts_out, it.binary_in, it.binary_out, it.clocks, it.clocked_in);
    line(it.clocked_out, it.clocked_texts_in, it.clocked_texts_out, it.scheduled, it.exchange);
}
template <class Line> void list(Line& line, FmuSetting& it) {
    line(it.structural, it.type, it.references, it.values, it.whole, it.texts);
}
template <class Line> void list(Line& line, FmuOrigin& it) {
    line(it.version, it.folder, it.library, it.prefix, it.settings);
    line(it.tells_stop, it.tolerant, it.tolerance);
}

// wires

template <class Line> void list(Line& line, FittedInput& it) {
    line(it.kind, it.child, it.input, it.source, it.samples, it.alpha, it.gain, it.offset);
    line(it.filter.seen, it.filter.before, it.filter.after, it.filter.fresh);
}
template <class Line> void list(Line& line, TextPart& it) { line(it.child, it.output, it.target, it.input); }
template <class Line> void list(Line& line, TextPortsPart& it) { line(it.inputs, it.outputs); }
template <class Line> void list(Line& line, OutputPart& it) { line(it.source, it.gain, it.offset); }

// the exchange memory

template <class Line> void list(Line& line, SamplesPart& it) {
    line(it.signal, it.depth, it.sloped, it.ticks, it.values, it.slopes);
}
template <class Line> void list(Line& line, OwnInputs& it) { line(it.coefficients, it.base); }
template <class Line> void list(Line& line, MemoryPart& it) {
    line(it.u, it.y, it.bases, it.used, it.offered);
}
template <class Line> void list(Line& line, AccountSetup& it) {
    line(it.child, it.input, it.signal, it.factor, it.asked, it.anew, it.inside);
    line(it.state_shares, it.input_shares, it.feedthrough);
    line(it.power, it.energy, it.from_y, it.from_rest, it.since);
}
template <class Line> void list(Line& line, AccountsPart& it) { line(it.bonds, it.accounts); }
template <class Line> void list(Line& line, MemberPart& it) {
    line(it.sources, it.event_inputs, it.followed, it.event_outputs, it.takes_part, it.level);
}
template <class Line> void list(Line& line, InstantsPart& it) {
    line(it.outputs, it.around, it.longest, it.ends_outside);
}

// programs, as they are before a level prepares them

template <class Line> void list(Line& line, ProgramsPart& it) { line(it.step, it.output); }
template <class Line> void list(Line& line, Fraction& it) { line(it.numerator, it.denominator); }
template <class Line> void list(Line& line, Unknowns& it) { line(it.values, it.slopes); }
template <class Line> void list(Line&, AdmitOperation&) {}
template <class Line> void list(Line&, RecordOperation&) {}
template <class Line> void list(Line& line, FeedOperation& it) { line(it.children); }
template <class Line> void list(Line& line, FeedPortsOperation& it) { line(it.child, it.ports); }
template <class Line> void list(Line& line, StepOperation& it) {
    line(it.children, it.ticks, it.fraction, it.workload.parallel);
}
template <class Line> void list(Line& line, ReadOperation& it) { line(it.children); }
template <class Line> void list(Line& line, ReadPortsOperation& it) { line(it.child, it.ports); }
template <class Line> void list(Line& line, StepReadOperation& it) {
    line(it.children, it.ticks, it.fraction, it.workload.parallel);
}
template <class Line> void list(Line& line, SolveOperation& it) { line(it.children, it.number, it.unknowns); }
template <class Line> void list(Line& line, SaveOperation& it) { line(it.children); }
template <class Line> void list(Line& line, RestoreOperation& it) { line(it.children); }
template <class Line> void list(Line& line, AcceleratorSetup& it) {
    line(it.kind, it.number, it.reuse, it.jacobian);
}
template <class Line> void list(Line& line, RepeatOperation& it) {
    line(it.body, it.number, it.at_most, it.until, it.unknowns, it.samples, it.accelerator);
}
template <class Line> void list(Line& line, StepSizeController& it) {
    line(it.tolerance, it.estimate, it.per_unit, it.gains, it.quantum, it.largest, it.wanted, it.first);
    line(it.rejects, it.passes, it.safety, it.most, it.least, it.power, it.before, it.earlier);
    line(it.in_a_row, it.scaled);
}
template <class Line> void list(Line& line, AdaptOperation& it) {
    line(it.body, it.number, it.signals, it.degrees, it.controller);
}
template <class Line> void list(Line& line, NextOperation& it) { line(it.bodies); }
template <class Line> void list(Line& line, TimesOperation& it) { line(it.body, it.count); }
template <class Line> void list(Line& line, TryOperation& it) {
    line(it.body, it.rest, it.found, it.announced, it.lone, it.scaled, it.last);
}
template <class Line> void list(Line& line, ReactOperation& it) { line(it.children); }
template <class Line> void list(Line& line, CommitOperation& it) { line(it.children); }
template <class Line> void list(Line& line, InstantOperation& it) {
    line(it.body, it.at_most, it.reacts, it.commits, it.continues);
}
template <class Line> void list(Line& line, TogetherOperation& it) { line(it.bodies, it.workload.parallel); }
template <class Line> void list(Line& line, OpenAccountsOperation& it) { line(it.held, it.moving); }
template <class Line> void list(Line& line, CloseAccountsOperation& it) {
    line(it.held, it.moving, it.ticks, it.fraction, it.reopens, it.fed, it.lines, it.curves);
}

// the start

template <class Line> void list(Line& line, StartProgram::Drive& it) {
    line(it.kind, it.leaf, it.port, it.gain, it.offset, it.start, it.has_start);
}
template <class Line> void list(Line& line, StartProgram::Leaf& it) {
    line(it.level, it.child, it.first_input, it.inputs, it.first_output, it.outputs, it.highest);
    line(it.once, it.settles, it.waits, it.frozen);
}
template <class Line> void list(Line& line, StartProgram::Round& it) { line(it.leaves, it.loop); }
template <class Line> void list(Line& line, StartProgram::Window& it) {
    line(it.ticks, it.degree, it.models);
}
template <class Line> void list(Line& line, StartProgram::Past& it) { line(it.window, it.back, it.feeds); }
template <class Line> void list(Line& line, StartProgram& it) {
    line(it.leaves, it.drives, it.drives_others, it.by_name, it.first_reads, it.rounds, it.starts);
    line(it.windows, it.levels, it.models);
}

}  // namespace hocket
