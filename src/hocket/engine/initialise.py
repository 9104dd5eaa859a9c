"""The start: outputs of all levels that agree with each other, and a past for the extrapolators.

In:  a freshly opened tree of levels
Out: the same tree with consistent samples in every exchange memory, at time t
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from hocket.engine.attempts import normalise_ticks
from hocket.engine.blueprint import Leaves, PlanTree, window_degree, window_obstacles
from hocket.engine.calls import not_finite, output_array, simulator_error
from hocket.engine.interpreter import Level
from hocket.engine.loops import fixed_point
from hocket.engine.traffic import distributed_level, level_post, start_post
from hocket.engine.window import Curves, window_curves
from hocket.errors import ConvergenceError
from hocket.feedthrough import Feedthrough, Round
from hocket.model import Array, Simulator
from hocket.plan import first_part
from hocket.plan.post import Post
from hocket.signals import shift_origin, value_at
from hocket.wiring import CONSTANT, OWN

SETTLED = 1e-9
"""The relative change of an output that no longer counts."""
SETTLING = 100


def initialise(root: Level, t: float, stop: float | None = None) -> None:
    """Start every simulator of the tree at t and make all levels consistent.

    `stop` is when the run will end, for those who want to know (`stop_time`).
    """
    design: PlanTree = root.blueprint
    leaves = design.leaves
    levels = {level.path: level for level in levels_of(root)}
    simulators = [levels[path].children[child] for path, child in leaves.places]
    for name, simulator in zip(leaves.wiring.names, simulators, strict=True):
        if hasattr(simulator, "stop_time"):
            simulator.stop_time = stop
        try:
            simulator.start(t)
        except Exception as error:
            raise simulator_error(name, "start", t, error) from error
    apart = distributed_level(design)
    traffic = start_post(design, apart) if apart else None
    y = consistent_outputs(leaves, simulators, t, root.starts, traffic)
    for level in levels.values():
        level.memory.clear()
        level.ticks = [0] * len(level.children)
        level.now = level.reached = 0
    sampled = {level.path: level.composite.sampled for level in design.levels()}
    frozen = [sampled[path] for path, _ in leaves.places]
    flat: Curves = [[[value] for value in outputs] for outputs in y]
    found: dict[tuple[Fraction, int], Curves] = {}
    for each in design.levels():
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


def levels_of(level: Level) -> list[Level]:
    """Return a level and all levels inside it."""
    return [
        level,
        *(deeper for child in level.children if isinstance(child, Level) for deeper in levels_of(child)),
    ]


def consistent_outputs(
    leaves: Leaves,
    simulators: list[Simulator],
    t: float,
    starts: tuple[float, ...],
    post: Post | None = None,
) -> list[Array]:
    """Return the outputs y of all leaves with y = g(x0, L y); loops are solved."""
    wiring = leaves.wiring
    y = [np.zeros(len(model.outputs)) for model in wiring.models]
    known: set[int] = set()

    def read_leaf(leaf: int) -> None:
        if post is not None:
            post.read(leaf)
        u = np.zeros((1, len(wiring.models[leaf].inputs)))
        for index, (port, drive) in enumerate(
            zip(wiring.models[leaf].inputs, wiring.drives[leaf], strict=True)
        ):
            if drive is None or (drive.child >= 0 and drive.child not in known and port.start is not None):
                u[0, index] = port.start or 0.0
            elif drive.child == CONSTANT:
                u[0, index] = drive.offset
            else:
                value = starts[drive.port] if drive.child == OWN else y[drive.child][drive.port]
                u[0, index] = (
                    value if drive.gain == 1.0 and drive.offset == 0.0 else drive.gain * value + drive.offset
                )
        known.add(leaf)
        try:
            y[leaf] = output_array(simulators[leaf].output(t, u), len(wiring.models[leaf].outputs))
        except Exception as error:
            raise simulator_error(wiring.names[leaf], "output", t, error) from error

    for leaf, model in enumerate(wiring.models):
        if any(not port.feedthrough for port in model.outputs):
            read_leaf(leaf)
    graph = Feedthrough(wiring, at_start=True)
    rounds = graph.rounds()

    def evaluate() -> None:
        for turn in rounds:
            if not turn.loop:
                if post is not None:
                    post.feed_all(turn.feed)
                for leaf in turn.read:
                    read_leaf(leaf)
                continue

            def evaluate_loop(values: list[float], turn: Round = turn) -> list[float]:
                for (leaf, port), value in zip(turn.loop, values, strict=True):
                    y[leaf][port] = value
                found = {}
                for leaf in turn.read:
                    before = y[leaf]
                    read_leaf(leaf)
                    found[leaf], y[leaf] = y[leaf], before
                return [float(found[leaf][port]) for leaf, port in turn.loop]

            guess = [float(y[leaf][port]) for leaf, port in turn.loop]
            solution = fixed_point(evaluate_loop, guess, [graph.name(node) for node in turn.loop], t)
            evaluate_loop(solution)
            if post is not None:
                post.solve(turn.read, turn.loop)

    def update_states() -> list[str]:
        """Give the final inputs to those whose initial state may depend on them; name what that changes."""
        names = []
        for leaf, simulator in enumerate(simulators):
            if not (wiring.models[leaf].inputs and getattr(simulator, "settles", False)):
                continue
            before = y[leaf]
            read_leaf(leaf)
            apart = np.abs(y[leaf] - before) > SETTLED * np.maximum(1.0, np.abs(before))
            if not apart.any():
                y[leaf] = before
            names += [graph.name((leaf, int(port))) for port in np.flatnonzero(apart)]
        return names

    evaluate()
    waiting = [leaf for leaf, simulator in enumerate(simulators) if hasattr(simulator, "ready")]
    for _ in range(SETTLING):
        unsettled = update_states()
        if unsettled:
            evaluate()
            continue
        if not waiting:
            break
        for leaf in waiting:  # everyone agrees: initialisation is left together
            try:
                simulators[leaf].ready()  # type: ignore[attr-defined]
            except Exception as error:
                raise simulator_error(wiring.names[leaf], "start", t, error) from error
        waiting = []
    else:
        raise ConvergenceError(
            f"the start does not settle: {', '.join(f'`{name}`' for name in unsettled[:4])} goes on changing",
            where=f"initialisation at t = {t!r} s",
            hint="these outputs react at once to inputs without saying so: declare the dependency in the FMU",
        )
    for name, model, outputs in zip(wiring.names, wiring.models, y, strict=True):
        for port, value in enumerate(outputs):
            if not np.isfinite(value):
                raise not_finite(name, model, port, float(value), t)
    return y


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
