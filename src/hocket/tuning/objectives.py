"""What a coupling is worth: numbers that need no run, numbers of short runs, and numbers of one's own.

In:  a Composite, how long it runs, and the names of objectives
Out: a number for each; infinite where it has none
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.analysis.consistency import relative_consistency
from hocket.analysis.radius import stability_radius, structured_radius
from hocket.analysis.stability import spectral_radius
from hocket.arguments import is_number
from hocket.engine.composite import Composite
from hocket.errors import HocketError, ScenarioError, suggest_nearest
from hocket.parameters import leaves
from hocket.simulators.loading import load
from hocket.tuning.case import Case, units_of
from hocket.tuning.measured import measured_error, measured_seconds

__all__ = ["LARGER", "MEASURES", "WORDS", "Case", "Objective", "evaluate_objectives", "failure", "objectives"]


@dataclass(frozen=True)
class Objective:
    """A number to be made small, or large; `limit` is one that may not be passed."""

    name: str
    larger: bool = False
    limit: float | None = None

    def cost(self, value: float) -> float:
        """Return the number as one to be made small."""
        return -value if self.larger else value

    def within(self, value: float) -> bool:
        """Return whether a number is within the limit."""
        return self.limit is None or self.cost(value) <= self.cost(self.limit)

    @property
    def words(self) -> str:
        """What it is, for people."""
        return WORDS.get(self.name.partition(":")[0], self.name)


def _error(case: Case, *outputs: str) -> float:
    """The 2-norm of the largest errors of the outputs that count, in their units."""
    return float(np.sqrt(sum(port.largest**2 for port in case.errors(outputs))))


def _relative(case: Case, *outputs: str) -> float:
    """The largest of errors over the largest value of each output that counts."""
    return max(port.relative for port in case.errors(outputs))


def _radius(case: Case, *simulators: str) -> float:
    if not simulators:
        return stability_radius(case.reading).radius
    paths = [path for path, _ in leaves(case.composite)]
    wanted = []
    for name in simulators:
        found = [path for path in paths if path == name or path.endswith(f".{name}")]
        if len(found) != 1:
            what = f"`{name}` is {'no simulator' if not found else 'several simulators'}"
            raise ScenarioError(what, "objectives", "the path of one simulator", suggest_nearest(name, paths))
        wanted += found
    return structured_radius(case.reading, *wanted).radius


def _seconds(case: Case) -> float:
    """What simulators compute per simulated second: their steps, each as long as one was found to take."""
    if not case.times:
        raise ScenarioError("nothing is known of how long steps take", "objectives", "steps, or exchanges")
    each = sum(float(count) * case.seconds_of(path) for path, count in case.cost.steps.items())
    return each / float(case.composite.step)


def _messages(case: Case) -> float:
    cost = case.cost
    if not cost.links:
        what = "all simulators are on one host, and there are no messages"
        raise ScenarioError(what, "objectives", "exchanges, or `hosts` in the scenario")
    return sum(each.each.messages for each in cost.links) / float(cost.hosts_step)


def _relative_work(case: Case) -> float:
    """Work as a multiple of that of now: of exchanges or of simulator steps, whichever grew more."""
    if case.now is None:
        raise ScenarioError("what now costs is not known", "objectives", "exchanges, steps, or seconds")
    return max(_ratio(case.work.exchanges, case.now.exchanges), _ratio(case.work.steps, case.now.steps))


def _ratio(new: float, old: float) -> float:
    return new / old if old else (math.inf if new else 1.0)


MEASURES: dict[str, Callable[..., float]] = {
    "rho": lambda case: spectral_radius(case.reading),
    "delta": lambda case: relative_consistency(case.linear).delta,
    "error": _error,
    "relative": _relative,
    "radius": _radius,
    "work": _relative_work,
    "exchanges": lambda case: case.work.exchanges,
    "steps": lambda case: case.work.steps,
    "time": _seconds,
    "messages": _messages,
    "step": lambda case: float(case.composite.step),
    "measured": lambda case: measured_error(case.composite, case.stop, case.start),
    "seconds": lambda case: measured_seconds(case.composite, case.stop, case.start),
}
LARGER = ("radius", "step")
NARROWED = ("error", "relative", "radius")
"""Those that may be about some outputs, or simulators, only: `error:*.x,*.v`, `radius:one`."""
LONG = ("error", "relative", "measured", "seconds")
"""Those that are about a run, and take longer."""
WORDS = {
    "rho": "spectral radius of a step",
    "delta": "relative consistency",
    "error": "2-norm of the largest errors",
    "relative": "largest error over largest value",
    "radius": "stability radius",
    "work": "work, in that of now",
    "exchanges": "values exchanged per second",
    "steps": "simulator steps per second",
    "time": "seconds of simulator steps per second",
    "messages": "messages between hosts per second",
    "step": "outermost step [s]",
    "measured": "difference to half the steps, in a run",
    "seconds": "seconds of a run",
}


def objective_paths(name: str) -> tuple[str, ...]:
    """Return the outputs, or simulators, that an objective is about; none: all that count."""
    return tuple(each.strip() for each in name.partition(":")[2].split(",") if each.strip())


def mixed_units_note(objective: Objective, composite: Composite) -> str:
    """Return what is to be said of an error that adds up what cannot be compared; empty: it does not."""
    if objective.name.partition(":")[0] != "error":
        return ""
    units = units_of(composite, objective_paths(objective.name))
    if len(units) < 2:
        return ""
    listed = f"{', '.join(units[:-1])} and {units[-1]}"
    return (
        f"`{objective.name}` adds up {listed} as they are: "
        "`relative` compares each output with its own size, `error:*.NAME` takes some only"
    )


def objectives(names: Sequence[str], limits: Mapping[str, float] | None = None) -> tuple[Objective, ...]:
    """Return objectives by name: one of MEASURES, `error:*.x,*.v`, `radius:one,two`, or `file.py:function`.

    The error with names is that of these outputs; the radius, that of changes in these simulators. A function
    takes the composite; it is made small. A limit on something that is no objective is one all the same.
    Raises ScenarioError.
    """
    if not names:
        raise ScenarioError("there is no objective", "objectives", ", ".join(MEASURES))
    bounds = dict(limits or {})
    for name in dict.fromkeys((*names, *bounds)):
        _check(name, "objectives" if name in names else f"limits.{name}")
    for name, bound in bounds.items():
        if not is_number(bound):
            raise ScenarioError(f"the limit of `{name}` is {bound!r}", f"limits.{name}", "a finite number")
    wanted = {name: bounds.get(name) for name in (*names, *bounds)}
    return tuple(Objective(name, name.partition(":")[0] in LARGER, limit) for name, limit in wanted.items())


def _check(name: str, where: str) -> None:
    kind, colon, rest = name.partition(":")
    if kind in MEASURES:
        if colon and (kind not in NARROWED or not rest.strip(" ,")):
            expected = "such as error:*.x,*.v or radius:one"
            raise ScenarioError(f"`{name}` says nothing about what `{kind}` knows", where, expected)
        return
    if ":" in name and "." in kind:
        _load_measure(name)  # raises if it cannot be found
        return
    hint = suggest_nearest(kind, MEASURES)
    raise ScenarioError(f"there is no objective `{name}`", where, "a name, or file.py:function", hint)


def evaluate_objectives(case: Case, wanted: Sequence[Objective]) -> tuple[float, ...]:
    """Return the number of each objective; nan where there is none."""
    return tuple(_number(case, objective.name) for objective in wanted)


def failure(case: Case, objective: Objective) -> str:
    """Return why an objective has no number; empty: it has."""
    try:
        found = _measure(objective.name)(case)
    except (HocketError, np.linalg.LinAlgError, OverflowError) as error:
        return str(error) or type(error).__name__
    return "it is not a number" if math.isnan(found) else ""


def _number(case: Case, name: str) -> float:
    try:
        return float(_measure(name)(case))
    except (HocketError, np.linalg.LinAlgError, OverflowError):
        return math.nan


def _measure(name: str) -> Callable[[Case], float]:
    kind = name.partition(":")[0]
    if kind in MEASURES:
        return lambda case: MEASURES[kind](case, *objective_paths(name))
    return _load_measure(name)


def _load_measure(name: str) -> Callable[[Case], float]:
    function: Any = load(name, "")

    def measure(case: Case) -> float:
        try:
            return float(function(case.composite))
        except HocketError:
            raise
        except Exception as error:
            what = f"`{name}` failed with {type(error).__name__}: {error}"
            raise ScenarioError(what, "objectives", "a number for a composite") from error

    return measure
