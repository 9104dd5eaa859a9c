"""The start: outputs of all levels that agree with each other, and a past for the extrapolators.

In:  a freshly opened tree of levels
Out: the same tree with consistent samples in every exchange memory, at time t
"""

from __future__ import annotations

from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np

from hocket.coupling.feedthrough import Feedthrough, Round
from hocket.coupling.wiring import CONSTANT, OWN, Wiring
from hocket.engine.algebraic_loops import fixed_point
from hocket.engine.host_exchange import HostExchange, SamplePlaces, ValuePlaces
from hocket.engine.message_counter import level_post
from hocket.engine.reference.level import Level
from hocket.engine.reference.rollback import normalise_ticks
from hocket.engine.simulator_calls import blame, not_finite, output_array
from hocket.engine.start_window import Curves, StartWindow, exchanged_curves, window_curves
from hocket.errors import ConvergenceError
from hocket.model.extrapolators import shift_origin, value_at
from hocket.model.protocols import (
    Array,
    EndingSimulator,
    InitialisationSimulator,
    RunEndSimulator,
    Simulator,
    provides,
    settles_at_start,
)
from hocket.plan import first_part
from hocket.plan.messages import Post
from hocket.planning.cost import distributed_level, start_post
from hocket.planning.tree import Leaves, PlanTree, window_degree, window_obstacles

SETTLED = 1e-9
"""The relative change of an output that no longer counts."""
SETTLING = 100


def initialise(
    root: Level, t: float, stop: float | None = None, exchange: HostExchange | None = None
) -> list[str]:
    """Start every simulator of the tree at t and make all levels consistent; return what is not.

    `stop` is when the run will end, for simulators with a `stop_time`; `exchange` carries what passes to
    other hosts, where some of the tree live.
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
    if traffic is not None and exchange is not None:
        exchange.attach(traffic)
        traffic.remote = frozenset(
            leaf for leaf, (path, child) in enumerate(leaves.places) if child in levels[path].remote
        )
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
            found[own] = flat
            if own[1] and not window_obstacles(leaves):
                ticks = own[0] / root.clock.tick
                window = StartWindow(leaves, simulators, frozen, root.clock, ticks, own[1], root.starts)
                found[own] = exchanged_curves(window, y, traffic) if traffic else window_curves(window, y)
        _store_past(levels[each.path], dict(zip(leaves.places, found[told], strict=True)))
    inputs = np.zeros((root.degree + 1, len(root.starts)))
    inputs[0] = root.starts
    _feed_level(root, inputs)
    if apart and traffic:
        traffic.flush()
        level = levels[apart.path]
        level.traffic = level_post(level, traffic)
        if exchange is not None:
            exchange.attach(level.traffic, SamplePlaces(level.memory.rings))
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
    if post is not None and isinstance(post.carrier, HostExchange):
        post.carrier.places = ValuePlaces(start.y)
    start.settle()
    if post is not None:
        post.flush()
    for leaf, outputs in enumerate(start.y):
        name, model = start.wiring.names[leaf], start.wiring.models[leaf]
        if leaf in start.remote:
            continue
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
        self.remote = frozenset[int]() if post is None else post.remote
        self.apart = post is not None and post.carrier is not None
        """Whether some leaves live on other hosts."""
        self.graph = Feedthrough(wiring, at_start=True)
        self.rounds = self.graph.rounds()
        self.by_name = sorted(range(len(simulators)), key=wiring.names.__getitem__)
        self.y = [np.zeros(len(model.outputs)) for model in wiring.models]
        self.known: set[int] = set()
        """The leaves that were read."""
        self.once = [model.capabilities.initial_inputs == "once" for model in wiring.models]
        self.initialised: dict[int, Array] = {}
        """Per leaf that is initialised once: with which inputs."""
        self.settles = [bool(model.inputs) for model in wiring.models]
        """Per leaf: whether its initial state may depend on its inputs."""
        self.waits = [provides(each, InitialisationSimulator) for each in simulators]
        """Per leaf: whether it leaves its initialisation when all agree."""
        for leaf, simulator in enumerate(simulators):
            self.settles[leaf] &= settles_at_start(simulator)

    def settle(self) -> None:
        """Evaluate all outputs until nothing changes any more, and end the initialisations there."""
        names = self.wiring.names
        for leaf in sorted(self.graph.first_reads, key=lambda leaf: (self.once[leaf], names[leaf])):
            if self.post is not None and self.apart and self.once[leaf]:
                self.post.feed_all([leaf])  # initialised with what is known of others, which may be elsewhere
            self._read(leaf)
        self._evaluate()
        waiting = [leaf for leaf in self.by_name if self.waits[leaf]]
        left: set[int] = set()
        for _ in range(SETTLING):
            unsettled, left = self._update_states(left), set()
            if unsettled:
                self._evaluate()
                continue
            if not (any(self.post.agree([bool(waiting)])) if self.post is not None else waiting):
                return
            for leaf in waiting:  # all agree: initialisation is left together
                simulator = self.simulators[leaf]
                if provides(simulator, InitialisationSimulator):
                    with blame(self.wiring.names[leaf], "start", self.t):
                        simulator.ready()
            left, waiting = set(waiting), []
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
        if leaf in self.remote:
            return  # its values come in messages
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
        if self.post is not None and self.apart:
            self.post.feed_all(turn.children)
            if turn.children[0] in self.remote:
                for leaf in turn.children:
                    self._read(leaf)
                self.post.solve(turn.children, turn.loop)
                return

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
        asked = [
            leaf for leaf in self.by_name if leaf not in self.known or leaf in left or self.settles[leaf]
        ]
        if self.post is not None:
            self.post.flush()
        unsettled = []
        for leaf in asked:
            if leaf in self.remote:
                self._read(leaf)
                continue
            before, driving = self.y[leaf], self.graph.driving_outputs[leaf]
            self._read(leaf)
            now = self.y[leaf]
            apart = np.abs(now - before) > SETTLED * np.maximum(1.0, np.abs(before))
            if not apart[driving].any():
                now[driving] = before[driving]
            unsettled += [(leaf, port) for port in driving if apart[port]]
        if self.post is not None:
            every = [(leaf, port) for leaf in self.by_name for port in self.graph.driving_outputs[leaf]]
            found = self.post.agree([node in unsettled for node in every])
            unsettled = [node for node, moved in zip(every, found, strict=True) if moved]
            self.post.renew(unsettled)
        return [self.graph.name(node) for node in unsettled]


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
            if level.memory.sloped[child] and child not in level.remote:
                values = np.array([ring[-1][1] for ring in level.memory.rings[child]])
                level.memory.store(child, 0, values, level.slopes_of(child, 0, level.memory.u[child]))
