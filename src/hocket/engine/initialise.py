"""The start: outputs of all levels that agree with each other, and a past for the extrapolators.

In:  a freshly opened tree of levels
Out: the same tree with consistent samples in every exchange memory, at time t
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from numbers import Real
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from hocket.coupling.feedthrough import Feedthrough, Round
from hocket.coupling.wiring import CONSTANT, OWN, Wiring
from hocket.engine.algebraic_loops import fixed_point
from hocket.engine.message_counter import level_post
from hocket.engine.reference.level import Level
from hocket.engine.reference.rollback import normalise_ticks
from hocket.engine.simulator_calls import blame, not_finite, output_array
from hocket.errors import ConvergenceError
from hocket.model.extrapolators import interpolate_samples, shift_origin, value_at
from hocket.model.protocols import (
    Array,
    EndingSimulator,
    EventSimulator,
    InitialisationSimulator,
    RunEndSimulator,
    Sample,
    Simulator,
    provides,
    settles_at_start,
)
from hocket.plan import first_part
from hocket.plan.messages import Post
from hocket.planning.cost import distributed_level, start_post
from hocket.planning.tree import Leaves, PlanTree, window_degree, window_obstacles, window_order

Curves: TypeAlias = list[list[list[Any]]]
"""Per leaf and output: coefficients in powers of the time since the start."""

SWEEPS = 40
TRUSTED = 0.25
"""How far the next sample may be from where the curve leads, as a part of the range of the samples."""


def window_curves(
    leaves: Leaves,
    simulators: list[Simulator],
    frozen: Sequence[bool],
    t: float,
    delta: float,
    degree: int,
    y0: list[Array],
    starts: tuple[float, ...],
    traffic: Post | None = None,
    held: frozenset[tuple[int, int]] = frozenset(),
) -> Curves:
    """Return polynomials of this degree through `degree` steps of delta, around the start.

    Between hosts there are `degree` sweeps, no more and no fewer, for each costs messages; then those that
    react to others come after them and see what they have found, so that each sweep gains an order.

    An output whose next sample is not where its curve leads (a jump, a motion too fast for these steps)
    keeps a curve of degree 0: it has no past worth telling. So have all if the sweeps do not settle. What it
    drives is looked at anew, with that output `held` (leaf and output): under the polynomial through a jump
    it would move before the jump. Between hosts that would cost messages, and is left out.
    `frozen` leaves do not move: they are sampled, at steps of their own. Nor do those that announce an event
    within the window: others would take the polynomial through its jump for their past, and act before it.
    """
    names = leaves.wiring.names
    end = t + (degree + 1) * delta
    frozen = [
        still or _is_due(simulator, name, t, end)
        for still, simulator, name in zip(frozen, simulators, names, strict=True)
    ]
    saving: Any = simulators
    saved = []
    for leaf, name in zip(saving, names, strict=True):
        with blame(name, "save", t):
            saved.append(leaf.save())

    def restore(leaf: int) -> None:
        with blame(names[leaf], "restore", t):
            saving[leaf].restore(saved[leaf])

    cold: Curves = [[[value] for value in outputs] for outputs in y0]
    curves, best = cold, np.inf
    samples: list[Array] = [np.zeros(0)] * len(names)
    seen: list[Array | None] = [None] * len(names)
    if traffic:
        traffic.flush()
        traffic.mark_all_known()
    try:
        for sweep in range(degree if traffic else SWEEPS):
            fresh = list(curves)
            for leaf in window_order(leaves) if traffic else range(len(names)):
                simulator = saving[leaf]
                # on one host all leaves see the curves of the sweep before: their order must not matter
                u = _leaf_inputs(leaves, leaf, fresh if traffic else curves, degree, starts)
                before, seen[leaf] = seen[leaf], u
                if not traffic and before is not None and np.array_equal(u, before):
                    continue  # the same inputs from the same state: the same samples
                restore(leaf)
                if traffic:
                    traffic.feed(leaf, degree + 1)
                steps = 0 if frozen[leaf] else degree + 1
                samples[leaf] = _sample_outputs(simulator, names[leaf], t, delta, steps, u)
                if not np.isfinite(samples[leaf]).all():
                    return cold
                if traffic:
                    traffic.step(leaf)
                    traffic.read(leaf)
                fresh[leaf] = [
                    _fit_curve(column[: 1 if (leaf, port) in held else degree + 1], delta)
                    for port, column in enumerate(samples[leaf].T)
                ]
            change = max(
                _curve_change(new, old, degree * delta)
                for ours, theirs in zip(fresh, curves, strict=True)
                for new, old in zip(ours, theirs, strict=True)
            )
            curves = fresh
            if traffic:
                continue
            if change <= 1e-14:
                break
            if sweep > degree + 2 and change >= 0.9 * best:
                if change > 1e-8:
                    return cold
                break
            best = min(best, change)
        if traffic:
            traffic.flush(degree + 1)
            traffic.mark_all_known()
    finally:
        for leaf in range(len(names)):
            restore(leaf)
    doubtful = _doubtful_outputs(curves, samples, delta) - held
    driving = {(drive.child, drive.port) for drives in leaves.wiring.drives for drive in drives if drive}
    if doubtful & driving and not traffic:
        held |= doubtful
        return window_curves(leaves, simulators, frozen, t, delta, degree, y0, starts, held=held)
    return [
        [
            [column[0]] if (leaf, port) in doubtful else curve
            for port, (curve, column) in enumerate(zip(ours, each.T, strict=True))
        ]
        for leaf, (ours, each) in enumerate(zip(curves, samples, strict=True))
    ]


def _doubtful_outputs(curves: Curves, samples: list[Array], delta: float) -> set[tuple[int, int]]:
    """Return the outputs whose next sample is not where the curve leads: leaf and output."""
    return {
        (leaf, port)
        for leaf, (ours, each) in enumerate(zip(curves, samples, strict=True))
        for port, (curve, column) in enumerate(zip(ours, each.T, strict=True))
        if not _predicts_last(curve, column, delta)
    }


def _is_due(simulator: Simulator, name: str, t: float, end: float) -> bool:
    """Return whether a simulator announces an event until `end`."""
    if not provides(simulator, EventSimulator):
        return False
    with blame(name, "due", t):
        due = simulator.due()
    return isinstance(due, Real) and due <= end  # what is not a time is refused where it is used


def _fit_curve(column: Array, delta: float) -> list[Any]:
    return interpolate_samples([Sample(k * delta, value) for k, value in enumerate(column)])


def _predicts_last(curve: list[Any], column: Array, delta: float) -> bool:
    """Return whether a curve through all samples but the last one leads there."""
    missed = abs(value_at(curve, (len(column) - 1) * delta) - column[-1])
    return bool(missed <= TRUSTED * np.ptp(column) + 1e-12 * np.abs(column).max())


def _leaf_inputs(leaves: Leaves, leaf: int, curves: Curves, degree: int, starts: tuple[float, ...]) -> Array:
    model = leaves.wiring.models[leaf]
    honoured = model.capabilities.input_degree
    u = np.zeros((1 + (degree if honoured is None else min(degree, honoured)), len(model.inputs)))
    for index, (port, drive) in enumerate(zip(model.inputs, leaves.wiring.drives[leaf], strict=True)):
        if drive is None:
            u[0, index] = port.start or 0.0
        elif drive.child == CONSTANT:
            u[0, index] = drive.offset
        elif drive.child == OWN:
            u[0, index] = drive.gain * starts[drive.port] + drive.offset
        else:
            for power, coefficient in enumerate(curves[drive.child][drive.port][: len(u)]):
                u[power, index] = drive.gain * coefficient
            u[0, index] += drive.offset
    return u


def _sample_outputs(simulator: Simulator, name: str, t: float, delta: float, steps: int, u: Array) -> Array:
    """Return the outputs at the start and after each step, a row each."""

    def outputs(s: float) -> Array:
        returned = np.asarray(simulator.output(t + s, np.array(shift_origin(list(u), s))), dtype=float)
        return returned.reshape(-1).copy()

    with blame(name, "step", t):
        samples = [outputs(0.0)]
        for k in range(steps):
            simulator.step(t + k * delta, delta, np.array(shift_origin(list(u), k * delta)))
            samples.append(outputs((k + 1) * delta))
    return np.array(samples)


def _curve_change(fresh: list[Any], old: list[Any], span: float) -> float:
    """Return the largest change over the window, relative to the values."""
    padded = [*old, *[0.0] * (len(fresh) - len(old))]
    scale = max(1.0, abs(fresh[0]))
    moved = sum(abs(a - b) * span**k for k, (a, b) in enumerate(zip(fresh, padded, strict=True)))
    return float(moved / scale)


SETTLED = 1e-9
"""The relative change of an output that no longer counts."""
SETTLING = 100


def initialise(root: Level, t: float, stop: float | None = None) -> list[str]:
    """Start every simulator of the tree at t and make all levels consistent; return what is not.

    `stop` is when the run will end, for simulators with a `stop_time`.
    """
    design: PlanTree = root.tree
    leaves = design.leaves
    levels = {level.path: level for level in levels_of(root)}
    simulators = [levels[path].children[child] for path, child in leaves.places]
    for name, simulator in sorted(zip(leaves.wiring.names, simulators, strict=True), key=itemgetter(0)):
        if provides(simulator, RunEndSimulator):
            simulator.stop_time = stop
        with blame(name, "start", t):
            simulator.start(t)
    apart = distributed_level(design)
    traffic = start_post(design, apart) if apart else None
    y, notes = consistent_outputs(leaves, simulators, t, root.starts, traffic)
    for level in levels.values():
        level.memory.clear()
        level.ticks = [0] * len(level.children)
        level.now = level.reached = 0
    sampled = {level.path: level.composite.sampled for level in design.levels()}
    frozen = [sampled[path] for path, _ in leaves.places]
    flat: Curves = [[[value] for value in outputs] for outputs in y]
    found: dict[tuple[Fraction, int], Curves] = {}
    for each in sorted(design.levels(), key=lambda level: level.path):
        own = each.composite.step * first_part(each.plan.step), window_degree(each)
        told = next((key for key in found if key[1] >= own[1] > 0), own) if traffic else own
        if told not in found:
            past = bool(own[1]) and not window_obstacles(leaves)
            found[own] = (
                window_curves(leaves, simulators, frozen, t, float(own[0]), own[1], y, root.starts, traffic)
                if past
                else flat
            )
        own = told
        _store_past(levels[each.path], dict(zip(leaves.places, found[own], strict=True)))
    inputs = np.zeros((root.degree + 1, len(root.starts)))
    inputs[0] = root.starts
    _feed_level(root, inputs)
    if apart and traffic:
        traffic.flush()
        levels[apart.path].traffic = level_post(levels[apart.path], traffic)
    return notes


def levels_of(level: Level) -> list[Level]:
    """Return a level and all levels inside it."""
    return [
        level,
        *(deeper for child in level.children if isinstance(child, Level) for deeper in levels_of(child)),
    ]


def ended_simulator(root: Level) -> str:
    """Return the path of a simulator that has asked to end the simulation; empty: none has."""
    for level in levels_of(root):
        for child, simulator in enumerate(level.children):
            if provides(simulator, EndingSimulator) and simulator.ended:
                return level.name(child)
    return ""


def consistent_outputs(
    leaves: Leaves,
    simulators: list[Simulator],
    t: float,
    starts: tuple[float, ...],
    post: Post | None = None,
) -> tuple[list[Array], list[str]]:
    """Return the outputs y of all leaves with y = g(x0, L y); loops are solved.

    And notes of those that are initialised once, and were so with other inputs.
    """
    start = _ConsistentStart(leaves.wiring, simulators, t, starts, post)
    start.settle()
    for name, model, outputs in zip(start.wiring.names, start.wiring.models, start.y, strict=True):
        for port, value in enumerate(outputs):
            if not np.isfinite(value):
                raise not_finite(name, model, port, float(value), t)
    return start.y, start.notes()


class _ConsistentStart:
    """The outputs of all leaves at the start, evaluated until they agree."""

    def __init__(
        self,
        wiring: Wiring,
        simulators: list[Simulator],
        t: float,
        starts: tuple[float, ...],
        post: Post | None,
    ) -> None:
        self.wiring, self.simulators, self.t, self.starts, self.post = wiring, simulators, t, starts, post
        self.graph = Feedthrough(wiring, at_start=True)
        self.rounds = self.graph.rounds()
        self.by_name = sorted(range(len(simulators)), key=wiring.names.__getitem__)
        self.y = [np.zeros(len(model.outputs)) for model in wiring.models]
        self.known: set[int] = set()
        """The leaves that were read."""
        self.once = [model.capabilities.initial_inputs == "once" for model in wiring.models]
        self.initialised: dict[int, Array] = {}
        """Per leaf that is initialised once: with which inputs."""

    def settle(self) -> None:
        """Evaluate all outputs until nothing changes any more, and end the initialisations there."""
        names = self.wiring.names
        for leaf in sorted(self.graph.first_reads, key=lambda leaf: (self.once[leaf], names[leaf])):
            self._read(leaf)
        self._evaluate()
        waiting = [
            (leaf, each)
            for leaf, each in ((leaf, self.simulators[leaf]) for leaf in self.by_name)
            if provides(each, InitialisationSimulator)
        ]
        left: set[int] = set()
        for _ in range(SETTLING):
            unsettled, left = self._update_states(left), set()
            if unsettled:
                self._evaluate()
                continue
            if not waiting:
                return
            for leaf, simulator in waiting:  # all agree: initialisation is left together
                with blame(self.wiring.names[leaf], "start", self.t):
                    simulator.ready()
            left = {leaf for leaf, _ in waiting}
            waiting = []
        changing = ", ".join(f"`{name}`" for name in unsettled[:4])
        raise ConvergenceError(
            f"the initialisation does not converge: {changing} keeps changing",
            where=f"initialisation at t = {self.t!r} s",
            hint="these outputs have direct feedthrough that the FMU does not declare: declare it there",
        )

    def notes(self) -> list[str]:
        """Return which leaves were initialised with other inputs than they have now."""
        return [
            f"`{self.wiring.names[leaf]}` is initialised once, before what drives it around a cycle: "
            f"`{port.name}` is {used:g} there, its start value, and {now:g} afterwards"
            for leaf, u in sorted(self.initialised.items())
            for port, used, now in zip(
                self.wiring.models[leaf].inputs, u[0], self._inputs(leaf)[0], strict=True
            )
            if abs(used - now) > SETTLED * max(1.0, abs(now))
        ]

    def _inputs(self, leaf: int) -> Array:
        inputs = self.wiring.models[leaf].inputs
        u = np.zeros((1, len(inputs)))
        for index, (port, drive) in enumerate(zip(inputs, self.wiring.drives[leaf], strict=True)):
            unread = drive is not None and drive.child >= 0 and drive.child not in self.known
            if drive is None or (unread and port.start is not None):
                u[0, index] = port.start or 0.0
            elif drive.child == CONSTANT:
                u[0, index] = drive.offset
            else:
                value = self.starts[drive.port] if drive.child == OWN else self.y[drive.child][drive.port]
                plain = drive.gain == 1.0 and drive.offset == 0.0
                u[0, index] = value if plain else drive.gain * value + drive.offset
        return u

    def _read(self, leaf: int, u: Array | None = None) -> None:
        u = self._inputs(leaf) if u is None else u
        if self.post is not None:
            self.post.read(leaf)
        self.known.add(leaf)
        if self.once[leaf]:
            self.initialised.setdefault(leaf, u.copy())
        with blame(self.wiring.names[leaf], "output", self.t):
            found = self.simulators[leaf].output(self.t, u)
            self.y[leaf] = output_array(found, len(self.wiring.models[leaf].outputs))

    def _evaluate(self) -> None:
        for turn in self.rounds:
            if turn.loop:
                self._solve_loop(turn)
                continue
            if self.post is not None:
                self.post.feed_all(turn.children)
            fed = [self._inputs(leaf) for leaf in turn.children]  # all before any is read
            for leaf, u in zip(turn.children, fed, strict=True):
                self._read(leaf, u)

    def _solve_loop(self, turn: Round) -> None:
        y = self.y

        def evaluate(values: list[float]) -> list[float]:
            for (leaf, port), value in zip(turn.loop, values, strict=True):
                y[leaf][port] = value
            found = {}
            for leaf in turn.children:
                before = y[leaf]
                self._read(leaf)
                found[leaf], y[leaf] = y[leaf], before
            return [float(found[leaf][port]) for leaf, port in turn.loop]

        guess = [float(y[leaf][port]) for leaf, port in turn.loop]
        names = [self.graph.name(node) for node in turn.loop]
        evaluate(fixed_point(evaluate, guess, names, self.t))
        if self.post is not None:
            self.post.solve(turn.children, turn.loop)

    def _update_states(self, left: set[int]) -> list[str]:
        """Give the final inputs to those whose initial state may depend on them; name what that changes.

        Those that have `left` initialisation just now are read too: some FMUs compute outputs only then.
        Only what drives others counts: what is merely observed must not change how often all are evaluated.
        """
        names = []
        for leaf in self.by_name:
            settles = self.wiring.models[leaf].inputs and settles_at_start(self.simulators[leaf])
            if leaf in self.known and leaf not in left and not settles:
                continue
            before, driving = self.y[leaf], self.graph.driving_outputs[leaf]
            self._read(leaf)
            now = self.y[leaf]
            apart = np.abs(now - before) > SETTLED * np.maximum(1.0, np.abs(before))
            if not apart[driving].any():
                now[driving] = before[driving]
            names += [self.graph.name((leaf, port)) for port in driving if apart[port]]
        return names


def _store_past(level: Level, curves: dict[tuple[str, int], list[list[Any]]]) -> None:
    """Store samples of the start in a level, and of a past where the curves tell one."""
    length = normalise_ticks(level.length * first_part(level.plan.step))
    for child in range(len(level.children)):
        own = _child_curves(level, child, curves)
        for port, (curve, depth) in enumerate(zip(own, level.memory.depths[child], strict=True)):
            for back in range(depth - 1 if len(curve) > 1 else 0, -1, -1):
                s = -level.clock.span(back * length)
                slope = shift_origin([*curve, 0.0], s)[1] if level.memory.sloped[child] else None
                level.memory.put_sample(child, port, -back * length, value_at(curve, s), slope)


def _child_curves(
    level: Level, child: int, curves: dict[tuple[str, int], list[list[Any]]]
) -> list[list[Any]]:
    """Return the curves of the outputs of a child, which may be a level itself."""
    simulator = level.children[child]
    if not isinstance(simulator, Level):
        return curves[(level.path, child)]
    outputs = []
    for drive in simulator.wiring.outputs:
        curve = _child_curves(simulator, drive.child, curves)[drive.port]
        if drive.gain != 1.0 or drive.offset != 0.0:
            curve = [drive.gain * c for c in curve]
            curve[0] = curve[0] + drive.offset
        outputs.append(curve)
    return outputs


def _feed_level(level: Level, inputs: Array) -> None:
    """Fit every input once, so that what is in use at the start is known; find the slopes under it."""
    level.inputs = level.offered = (0, inputs)
    sloped = any(level.memory.sloped)
    # slopes pass through feedthrough one simulator at a time
    for _ in range(1 + len(Feedthrough(level.wiring).rounds()) if sloped else 1):
        for child, simulator in enumerate(level.children):
            level.feed(child)
            if isinstance(simulator, Level):
                _feed_level(simulator, level.memory.u[child].copy())
        for child in range(len(level.children)):
            if level.memory.sloped[child]:
                values = np.array([ring[-1][1] for ring in level.memory.rings[child]])
                level.memory.store(child, 0, values, level.slopes_of(child, 0, level.memory.u[child]))
