"""What can be varied, by name: steps, filters, entries of matrices and the parameters of models.

In:  a Composite; names such as `step`, `axle.step`, `two.F.alpha`, `plant.A[2,1]`, `spring.k`
Out: the Composite with other values; the radius of its step as a function of them
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.leaps import merge_micro_steps
from hocket.analysis.linear import Reading, read_linear
from hocket.analysis.models import linearise
from hocket.analysis.rescaling import check_scalable, count_still_motions, eigenvalues_at, largest_modulus
from hocket.analysis.stability import spectrum
from hocket.analysis.variants import FINE, with_cold_starts, with_step
from hocket.engine.composite import Composite
from hocket.errors import ConvergenceError, HocketError, ScenarioError, SimulatorError
from hocket.model import Connection, Model
from hocket.parameters import with_parameters
from hocket.signals import Hold, Nepce

STEP = "step"
ALPHA = "alpha"


def is_step(composite: Composite, name: str) -> bool:
    """Return whether a name is that of a level's step, the outermost's or another."""
    return name == STEP or (
        name.endswith(f".{STEP}") and _find_inner_level(composite, name[: -len(STEP) - 1]) is not None
    )


def variable_names(composite: Composite) -> list[str]:
    """Return what can vary and is no parameter of a model: steps and filters, as they are typed."""
    inside = [level.path for level in composite.blueprint.levels() if level.path]
    targets = [connection.target for connection in composite.scenario.connections]
    return [STEP, *(f"{path}.{STEP}" for path in inside), ALPHA, *(f"{path}.{ALPHA}" for path in targets)]


def with_values(composite: Composite, values: Mapping[str, float], where: str = "parameters") -> Composite:
    """Return the composite with other values; raises ScenarioError for names and values that do not fit.

    Levels inside keep their ratios to `step`. A level's own step becomes the next shorter one that divides
    the step around it, or that is a multiple of it. `alpha` is that of a filtered hold: of the outermost
    level, or with the path of an input of the connection that drives it. Rows and columns count from one.
    """
    parameters: dict[str, float] = {}
    for name, value in values.items():
        if is_step(composite, name):
            continue
        if name == ALPHA or name.endswith(f".{ALPHA}"):
            filtered = _with_filter(composite, name.rpartition(".")[0], value, where)
            if filtered is not None:
                composite = filtered
                continue
        parameters[name] = value
    composite = with_parameters(composite, parameters, where)
    if STEP in values:
        composite = with_step(composite, values[STEP])
    for name, value in values.items():
        if name != STEP and is_step(composite, name):
            path = name[: -len(STEP) - 1]
            composite = _with_level_step(composite, path.split("."), Fraction(value).limit_denominator(FINE))
    return composite


def _find_inner_level(composite: Composite, path: str) -> Composite | None:
    found: Any = composite
    for name in path.split("."):
        found = found.scenario.models.get(name) if isinstance(found, Composite) else None
    return found if isinstance(found, Composite) else None


def _with_level_step(composite: Composite, path: Sequence[str], step: Fraction) -> Composite:
    inner = composite.scenario.models[path[0]]
    assert isinstance(inner, Composite)
    if len(path) > 1:
        changed = _with_level_step(inner, path[1:], step)
    else:
        around = composite.step
        fits = around / math.ceil(around / step) if step < around else around * math.floor(step / around)
        changed = with_step(inner, fits)
    models = {**composite.scenario.models, path[0]: changed}
    return composite.with_scenario(composite.scenario.with_models(models))


def _with_filter(composite: Composite, path: str, alpha: float, where: str) -> Composite | None:
    """Return the composite with another filter; None: the path is that of no driven input."""
    how = composite.step, composite.orchestrator
    start = composite.start, composite.sampled
    scenario = composite.scenario
    if not path:
        _check_filterable(composite.extrapolation, ALPHA, where)
        return Composite(scenario, *how, Nepce(alpha), *start)
    for number, connection in enumerate(scenario.connections):
        if connection.target == path:
            _check_filterable(connection.extrapolation or composite.extrapolation, f"{path}.{ALPHA}", where)
            others: list[Connection] = list(scenario.connections)
            others[number] = replace(connection, extrapolation=Nepce(alpha))
            return composite.with_scenario(scenario.with_changes(connections=others))
    name, _, rest = path.partition(".")
    inner: Model | None = scenario.models.get(name)
    found = _with_filter(inner, rest, alpha, where) if isinstance(inner, Composite) and rest else None
    if found is None:
        return None
    return composite.with_scenario(scenario.with_models({**scenario.models, name: found}))


def _check_filterable(extrapolation: Any, name: str, where: str) -> None:
    if not isinstance(extrapolation, (Hold, Nepce)):
        what = f"`{name}` cannot vary: the extrapolation is {extrapolation!r}"
        raise ScenarioError(what, where, 'a hold, or { type = "nepce", alpha = 0.5 }')


class VariedRadius:
    """The radius of a coupling as a function of some of its values, in the order of their names.

    What is not linear is linearised at the start for each of them. Where only the outermost step differs, the
    reading is used again. Motions that stand still by themselves, as free bodies do, are left out.
    """

    def __init__(
        self,
        composite: Composite,
        names: Sequence[str],
        start: Fraction = Fraction(0),
        where: str = "parameters",
    ):
        self.composite, self.names, self.start, self.where = composite, tuple(names), start, where
        levels = [name for name in names if name != STEP and is_step(composite, name)]
        self.rescales = STEP in names and not levels
        self.readings: dict[tuple[float, ...], tuple[Reading, int]] = {}

    def __call__(self, *values: float) -> float:
        """Return rho; infinite where a loop has no solution, or numbers grow beyond all bounds."""
        given = dict(zip(self.names, values, strict=True))
        try:
            return self._radius_by_rescaling(given) if self.rescales else self._radius_by_reading(given)
        except (ConvergenceError, SimulatorError):
            return math.inf

    def _radius_by_rescaling(self, values: Mapping[str, float]) -> float:
        others = {name: value for name, value in values.items() if name != STEP}
        key = tuple(others.values())
        if key not in self.readings:
            reading, still = self._read(others)
            try:
                check_scalable(reading)
            except ScenarioError:
                self.rescales = False
                return self._radius_by_reading(values)
            self.readings[key] = reading, still
        reading, still = self.readings[key]
        factor = Fraction(values[STEP]).limit_denominator(FINE) / reading.composite.step
        return largest_modulus(eigenvalues_at(reading, factor), still)

    def _radius_by_reading(self, values: Mapping[str, float]) -> float:
        reading, still = self._read(values)
        return largest_modulus(
            np.asarray(spectrum(reading.core, 1 + still, vectors=False)[0], complex), still
        )

    def _read(self, values: Mapping[str, float]) -> tuple[Reading, int]:
        made = with_values(self.composite, values, self.where)
        others = len(made.blueprint.leaves.places) > 1
        linear = linearise(made, still=others, start=self.start).composite
        reading = read_linear(with_cold_starts(merge_micro_steps(linear)))
        try:
            return reading, count_still_motions(reading)
        except HocketError:
            return reading, 0
