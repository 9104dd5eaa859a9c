"""The start: outputs of all levels that agree with each other, and a past for the extrapolators.

In:  a freshly opened tree of levels
Out: the same tree with consistent samples in every exchange memory, at time t
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hocket.engine.blueprint import Blueprint, Leaves, stuck, window_degree
from hocket.engine.interpreter import Level, blame, not_finite, numbers
from hocket.engine.loops import fixed_point
from hocket.engine.window import Curves, window
from hocket.feedthrough import Feedthrough, Round
from hocket.model import Array, Simulator
from hocket.signals import shifted, value_at
from hocket.wiring import OWN


def initialise(root: Level, t: float) -> None:
    """Start every simulator of the tree at t and make all levels consistent."""
    design: Blueprint = root.blueprint
    leaves = design.leaves
    levels = {level.path: level for level in levels_of(root)}
    simulators = [levels[path].children[child] for path, child in leaves.places]
    for name, simulator in zip(leaves.wiring.names, simulators, strict=True):
        try:
            simulator.start(t)
        except Exception as error:
            raise blame(name, "start", t, error) from error
    y = consistent(leaves, simulators, t, root.starts)
    curves: Curves = [[[value] for value in outputs] for outputs in y]
    degree = window_degree(design)
    if degree and not stuck(leaves):
        delta = min(level.composite.step for level in design.levels())
        found = window(leaves, simulators, t, float(delta), degree, curves, root.starts)
        curves = found or curves
    for level in levels.values():
        level.memory.clear()
        level.ticks = [0] * len(level.children)
        level.now = 0
    _store(root, dict(zip(leaves.places, curves, strict=True)))
    inputs = np.zeros((root.degree + 1, len(root.starts)))
    inputs[0] = root.starts
    _feed(root, inputs)


def levels_of(level: Level) -> list[Level]:
    """Return a level and all levels inside it."""
    return [
        level,
        *(deeper for child in level.children if isinstance(child, Level) for deeper in levels_of(child)),
    ]


def consistent(
    leaves: Leaves, simulators: list[Simulator], t: float, starts: tuple[float, ...]
) -> list[Array]:
    """Return the outputs y of all leaves with y = g(x0, L y); loops are solved."""
    wiring = leaves.wiring
    y = [np.zeros(len(model.outputs)) for model in wiring.models]

    def read(leaf: int) -> None:
        u = np.zeros((1, len(wiring.models[leaf].inputs)))
        for index, (port, drive) in enumerate(
            zip(wiring.models[leaf].inputs, wiring.drives[leaf], strict=True)
        ):
            if drive is None:
                u[0, index] = port.start or 0.0
            else:
                value = starts[drive.port] if drive.child == OWN else y[drive.child][drive.port]
                u[0, index] = (
                    value if drive.gain == 1.0 and drive.offset == 0.0 else drive.gain * value + drive.offset
                )
        try:
            y[leaf] = numbers(simulators[leaf].output(t, u), len(wiring.models[leaf].outputs))
        except Exception as error:
            raise blame(wiring.names[leaf], "output", t, error) from error

    for leaf, model in enumerate(wiring.models):
        if any(not port.feedthrough for port in model.outputs):
            read(leaf)
    graph = Feedthrough(wiring)
    for turn in graph.rounds():
        if not turn.loop:
            for leaf in turn.read:
                read(leaf)
            continue

        def around(values: list[float], turn: Round = turn) -> list[float]:
            for (leaf, port), value in zip(turn.loop, values, strict=True):
                y[leaf][port] = value
            found = {}
            for leaf in turn.read:
                before = y[leaf]
                read(leaf)
                found[leaf], y[leaf] = y[leaf], before
            return [float(found[leaf][port]) for leaf, port in turn.loop]

        guess = [float(y[leaf][port]) for leaf, port in turn.loop]
        solution = fixed_point(around, guess, [graph.name(node) for node in turn.loop], t)
        around(solution)
    for name, model, outputs in zip(wiring.names, wiring.models, y, strict=True):
        for port, value in zip(model.outputs, outputs, strict=True):
            if not np.isfinite(value):
                raise not_finite(name, port.name, float(value), t)
    return y


def _store(level: Level, curves: dict[tuple[str, int], list[list[Any]]]) -> list[list[Any]]:
    """Store samples of the past and the start, here and inside; return the curves of the level's outputs."""
    warm = level.blueprint.composite.start == "window"
    own: list[list[list[Any]]] = []
    for child, simulator in enumerate(level.children):
        own.append(_store(simulator, curves) if isinstance(simulator, Level) else curves[(level.path, child)])
        depth = max(level.memory.depths[child], default=1) if warm and any(len(c) > 1 for c in own[-1]) else 1
        for back in range(depth - 1, -1, -1):
            s = -level.clock.span(back * level.length)
            slopes = None
            if level.memory.sloped[child]:
                tangents = [shifted(curve, s) for curve in own[-1]]
                slopes = np.array([tangent[1] if len(tangent) > 1 else 0.0 for tangent in tangents])
            values = np.array([value_at(curve, s) for curve in own[-1]])
            level.memory.store(child, -back * level.length, values, slopes)
    outputs = []
    for drive in level.wiring.outputs:
        curve = [drive.gain * c for c in own[drive.child][drive.port]]
        curve[0] = curve[0] + drive.offset
        outputs.append(curve if drive.gain != 1.0 or drive.offset != 0.0 else own[drive.child][drive.port])
    return outputs


def _feed(level: Level, inputs: Array) -> None:
    """Fit every input once, so that what is in use at the start is known; find the slopes under it."""
    level.inputs = level.offered = (0, inputs)
    for child, simulator in enumerate(level.children):
        level.feed(child)
        if isinstance(simulator, Level):
            _feed(simulator, level.memory.u[child].copy())
    for child in range(len(level.children)):
        if level.memory.sloped[child]:
            values = np.array([ring[-1][1] for ring in level.memory.rings[child]])
            level.memory.store(child, 0, values, level._slopes_of(child, 0, level.memory.u[child]))
