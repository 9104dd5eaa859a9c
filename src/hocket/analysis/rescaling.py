"""The radius of a coupling under other steps, without building anything anew: the same tree, another clock.

In:  a Reading, and a factor for all steps
Out: the eigenvalues of one period then, and the largest of them

Steps are counted in ticks, and a plan steps by parts of its level's step: with ticks of another length the
very plan that was read is the plan of the other steps. What a simulator integrates with keeps its own step,
or the next shorter one that divides the level's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hocket.analysis.exact_solution import exact_solution
from hocket.analysis.linear_models import IdentifiedModel
from hocket.analysis.linear_reading import Reading, advance_ticks, live_columns, read_period
from hocket.analysis.stability import EDGE, spectrum
from hocket.engine.initialise import levels_of
from hocket.engine.reference.level import Level
from hocket.errors import ConvergenceError, ScenarioError, SimulatorError
from hocket.model.clock import Clock, format_duration
from hocket.planning.parameters import FINE
from hocket.planning.planner import plan_tree


def check_scalable(reading: Reading) -> None:
    """Refuse what has a step that cannot change."""
    for level in plan_tree(reading.composite).levels():
        if level.composite.sampled:
            what = f"`{level.path}` is sampled every {format_duration(level.composite.step)}"
            raise ScenarioError(
                f"{what}, and the steps around it must fit its period", expected="steps that scale"
            )
        for name, model in zip(level.wiring.names, level.wiring.models, strict=True):
            if isinstance(model, IdentifiedModel):
                path = f"{level.path}.{name}" if level.path else name
                what = f"`{path}` was identified for steps of {format_duration(model.h)} only"
                hint = "`--vary step=LOW:HIGH`, which identifies it anew for each step"
                raise ScenarioError(what, "", "models that know other steps", hint)


@contextmanager
def scaled_clock(root: Level, factor: Fraction) -> Iterator[None]:
    """Let a live tree run with all steps of levels times a factor; afterwards it stands where it stood."""
    saved, before = root.save(), root.clock
    _set_clock(root, Clock(before.tick * factor, before.start))
    try:
        yield
    finally:
        _set_clock(root, before)
        root.restore(saved)


def _set_clock(root: Level, clock: Clock) -> None:
    for level in levels_of(root):
        level.clock = level.memory.clock = clock


def eigenvalues_at(reading: Reading, factor: Fraction) -> NDArray[np.complex128]:
    """Return the eigenvalues of one period with all steps of levels times a factor."""
    root, ticks = reading.root, reading.root.clock.ticks(reading.period)
    with scaled_clock(root, factor), np.errstate(over="ignore", invalid="ignore"):
        if any(cell.kind == "history" for cell in reading.cells):
            advance_ticks(root, ticks)  # a multistep method begins anew
        Phi, _ = read_period(root, ticks)
    kept = live_columns(Phi)
    if not np.isfinite(Phi).all():
        return np.array([np.inf], dtype=complex)
    return np.asarray(spectrum(Phi[np.ix_(kept, kept)], 1, vectors=False)[0], dtype=complex)


def radius_at_step(reading: Reading, step: float, still: int) -> float:
    """Return the radius at another outermost step, without motions that stand still.

    It is infinite where a loop has no solution, or numbers grow beyond all bounds.
    """
    try:
        factor = Fraction(step).limit_denominator(FINE) / reading.composite.step
        return largest_modulus(eigenvalues_at(reading, factor), still)
    except (ConvergenceError, SimulatorError):
        return math.inf


def count_still_motions(reading: Reading) -> int:
    """Return how many motions of the exact coupled system stand still: their eigenvalues are always one."""
    return int((np.abs(exact_eigenvalues(reading)) <= EDGE).sum())


def exact_eigenvalues(reading: Reading) -> NDArray[np.complex128]:
    """Return the eigenvalues of the exact coupled system, per period."""
    A = exact_solution(reading.composite).A
    return np.asarray(np.linalg.eigvals(A) * float(reading.period) if len(A) else [], dtype=complex)


def largest_modulus(values: NDArray[np.complex128], still: int = 0) -> float:
    """Return the radius without as many eigenvalues of one as motions stand still."""
    if still:
        order = np.argsort(np.abs(values - 1.0))
        values = np.delete(values, [place for place in order[:still] if abs(values[place] - 1.0) <= EDGE])
    return float(np.abs(values).max(initial=0.0))
