"""Prediction and reality of one coupling: it is run, and compared with the exact solution.

In:  a Composite, how long it runs
Out: the error that was predicted, and that of the run, in the same norm
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from hocket.analysis.driven import driven_solution
from hocket.analysis.exact import exact_solution
from hocket.analysis.played import played_sources, with_sources
from hocket.analysis.variants import scale_steps
from hocket.engine.composite import Composite
from hocket.errors import HocketError
from hocket.model import Array
from hocket.parameters import leaves
from hocket.running import run
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import StateSpace
from hocket.tuning.case import Case

FINER = (16, 12, 10, 8, 6, 5, 4, 3, 2)
"""Times that steps are shorter in the run that stands for the truth where none is known exactly."""

Truth: TypeAlias = Callable[[str, Array], Array]
"""From an output and times from the start to its values."""


@dataclass(frozen=True)
class PredictionCheck:
    """The 2-norm of the largest errors of the outputs that are recorded, and what the coupling costs."""

    predicted: float
    """nan: it cannot be told before a run."""
    found: float
    ports: int
    steps: float
    exchanges: float
    against: str = "the exact solution"

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        return {
            "predicted error": self.predicted,
            "error of the run": self.found,
            "outputs": self.ports,
            "simulator steps [1/s]": self.steps,
            "exchanges [1/s]": self.exchanges,
            "against": self.against,
        }


def check_prediction(composite: Composite, stop: Fraction, start: Fraction = Fraction(0)) -> PredictionCheck:
    """Return what was predicted for a coupling, and what its run shows.

    Systems of linear models and sources have an exact solution. Others are compared with a run of steps that
    are up to 16 times shorter.
    """
    case = Case(composite, stop, start)
    made = run(composite, start + stop, start=start, record=["*"])
    try:
        ports = [port for port in case.errors() if port.port in made]  # sampled models tell as levels
        predicted = float(np.sqrt(sum(port.largest**2 for port in ports)))
        names = [port.port for port in ports]
    except HocketError:
        predicted = math.nan
        kept = [
            name for name in made.ports if any(fnmatchcase(name, each) for each in composite.scenario.record)
        ]
        names = kept or list(made.ports)
    truth, against = _truth(case)
    largest = [_largest(made[name].t - float(start), made[name].values, name, truth) for name in names]
    try:
        steps, exchanges = case.work.steps, case.work.exchanges
    except HocketError:
        steps = exchanges = math.nan
    return PredictionCheck(predicted, float(np.linalg.norm(largest)), len(names), steps, exchanges, against)


def _truth(case: Case) -> tuple[Truth, str]:
    assert case.stop is not None
    known = (StateSpace, Table, Csv, Function)
    if all(isinstance(model, known) for _, model in leaves(case.composite)):
        played = with_sources(case.linear, case.stop, case.start)
        jumps = any(level.composite.sampled for level in played.blueprint.levels())
        solution = (
            driven_solution(played, case.stop, case.start)
            if played_sources(played) or jumps
            else exact_solution(played)
        )
        return lambda name, t: solution.outputs(t)[:, solution.ports.index(name)], "the exact solution"
    finer, part = _finer(case.composite)
    made = run(finer, case.start + case.stop, start=case.start, record=["*"])
    begin = float(case.start)
    return lambda name, t: np.interp(
        t, made[name].t - begin, made[name].values
    ), f"{part} times shorter steps"


def _finer(composite: Composite) -> tuple[Composite, int]:
    """Return the composite with steps as much shorter as what has a step of its own allows."""
    for part in FINER[:-1]:
        made = scale_steps(composite, Fraction(1, part))
        try:
            _ = made.blueprint
        except HocketError:
            continue
        return made, part
    return scale_steps(composite, Fraction(1, FINER[-1])), FINER[-1]


def _largest(t: Array, values: Array, name: str, truth: Truth) -> float:
    return float(np.max(np.abs(values - truth(name, t)), initial=0.0))
