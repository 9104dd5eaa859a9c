"""Tangents of co-simulation FMUs, from the directional derivatives that they give at a communication point.

In:  where a co-simulation FMU stands
Out: its tangent, and how far its answers to small pulses are from the tangent's; None: pulses must do

Its own solver is not in its derivatives. So the tangent counts where a few pulses are answered as it tells;
else the FMU is identified from pulses alone, with its solver.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hocket.analysis.linear_models import Tangent
from hocket.analysis.pulse_responses import BlackBoxBench, OperatingPoint, RefusedError, relative_error
from hocket.simulators.fmu.directional import look_at_point
from hocket.simulators.fmu.live import CoSimulation
from hocket.simulators.fmu.recipe import Fmu

ALIKE = 1e-6
"""How far answers to pulses may be from those of the tangent."""
PUSHED, STEPS = 1e-4, 6
"""The size of pulses in units of the inputs, and for how many steps there is one."""


def tangent_of_cosimulation(place: OperatingPoint) -> tuple[Tangent, float] | None:
    """Return the tangent of a co-simulation FMU and its fit; None: none that pulses confirm."""
    model, live = place.model, place.simulator
    if not (isinstance(model, Fmu) and isinstance(live, CoSimulation)) or model.exchange or model.ticks:
        return None
    if any(port.held for port in (*model.inputs, *model.outputs)) or not model.inputs:
        return None
    if place.started and not model.capabilities.rollback:
        return None
    live.ready()
    y = np.array(live.output(float(place.t), place.u[np.newaxis]), dtype=float).reshape(-1)
    found = look_at_point(live)
    if found is None:
        return None
    x, n, slopes = found.x, len(found.x), found.slopes
    matrices = slopes[:n, :n], slopes[:n, n:], slopes[n:, :n], slopes[n:, n:]
    A, B, C, D = matrices
    tangent = Tangent(model, *matrices, x, found.rates - A @ x - B @ place.u, y - C @ x - D @ place.u)
    try:
        fit = _compare_answers(tangent, place)
    except RefusedError:
        return None
    return (tangent, fit) if fit <= ALIKE else None


def _compare_answers(tangent: Tangent, place: OperatingPoint) -> float:
    """Return how far the answers of the FMU to pulses are from those of its tangent, relative to these.

    Pulses go up and down, so that what is only curved cancels.
    """
    rng, h = np.random.default_rng(6), float(place.h)
    sizes = PUSHED * np.maximum(np.abs(place.u), 1.0)
    powers = h ** -np.arange(float(place.powers))[:, None]
    pushes = [sizes * powers * rng.uniform(0.5, 1.0, (place.powers, len(sizes))) for _ in range(STEPS)]
    bench = BlackBoxBench(place)
    try:
        up, down = (bench.run([sign * each for each in pushes]) for sign in (1.0, -1.0))
    finally:
        bench.restore_simulator()
    made = BlackBoxBench(_on_tangent(tangent, place))
    told = np.subtract(*(made.run([sign * each for each in pushes]) for sign in (1.0, -1.0)))
    return relative_error(up - down, told, np.abs(up).max(axis=0))


def _on_tangent(tangent: Tangent, place: OperatingPoint) -> OperatingPoint:
    """Return the place of a tangent in the level of its FMU."""
    model: Any = tangent
    live: Any = tangent.open()
    live.start(float(place.t))
    return OperatingPoint(model, live, place.t, place.h, place.u, place.powers, place.sloped, False)


def describe_source(fit: float) -> str:
    """Return the note of a tangent from directional derivatives."""
    return f"from its directional derivatives; its answers to pulses differ by {fit:.1g}"
