"""What a coupling is worth: numbers that need no run, numbers of short runs, and numbers of one's own.

In:  a Composite, how long it runs, and the names of objectives
Out: a number for each; infinite where it has none
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hocket.analysis.consistency import relative_consistency
from hocket.analysis.error_prediction import PortError
from hocket.analysis.exact_solution import exact_solution
from hocket.analysis.stability import EDGE, spectral_radius
from hocket.analysis.stability_radius import stability_radius, structured_radius
from hocket.errors import HocketError, ScenarioError, join_names, suggest_nearest
from hocket.execution.run import run
from hocket.files.run_folder import Run
from hocket.model.arguments import is_number
from hocket.model.composite import Composite, traits_of
from hocket.model.extrapolators import Hold, Nepce
from hocket.model.ports import matches
from hocket.model.protocols import Array, Model
from hocket.planning.cost import Cost, Work
from hocket.planning.parameters import leaves, scale_steps
from hocket.planning.planner import plan_tree
from hocket.search.case import Case
from hocket.simulators.recipes import load


def counted_outputs(composite: Composite, ports: Sequence[str], patterns: tuple[str, ...]) -> list[str]:
    """Return which of the outputs count: those that are named, or else those that the scenario records."""
    if patterns:
        every = [*patterns, *(f"*.{text}" for text in patterns)]
        kept = [port for port in ports if matches(port, *every)]
        if not kept:
            hint = suggest_nearest(patterns[0], ports)
            raise ScenarioError(f"no output is `{', '.join(patterns)}`", "objectives", "", hint)
        return kept
    record = composite.scenario.record
    return [port for port in ports if matches(port, *record)] or list(ports)


def units_of(composite: Composite, patterns: tuple[str, ...]) -> list[str]:
    """Return the units of the outputs that count, each once; outputs without a unit fit to all."""
    wiring = plan_tree(composite).leaves.wiring
    units = {
        f"{name}.{port.name}": port.unit
        for name, model in zip(wiring.names, wiring.models, strict=True)
        for port in model.outputs
    }
    return list(
        dict.fromkeys(
            filter(None, (units[port] for port in counted_outputs(composite, tuple(units), patterns)))
        )
    )


PARTS = (2, 3, 4, 5)
"""Of the steps of a run, in the run that it is compared with."""
SMALL = 1e-3
STEPS = 9
"""Steps of which the time of one is the median."""


def measured_error(composite: Composite, stop: Fraction | None, start: Fraction = Fraction(0)) -> float:
    """Return the largest difference to a run with half the steps, of each port over its largest value.

    That is the smaller one of both runs at the times they share: where one of them blows up, its size is no
    measure. Where simulators have steps of their own that halves do not fit, shorter ones are tried. What
    stays below a thousandth of the largest value of all ports, as what should be zero does, is compared with
    that.
    """
    coarse = _run(composite, stop, start)
    fine = _run(with_shorter_steps(composite, PARTS)[0], stop, start)
    gaps, sizes = [], []
    for port in coarse.ports:
        here, better = coarse[port], fine[port]
        there = np.interp(here.t, better.t, better.values)
        gaps.append(_largest(here.values - there))
        sizes.append(min(_largest(here.values), _largest(there)))
    if any(map(math.isnan, gaps)):
        return math.inf
    least = SMALL * max(sizes, default=0.0)
    return max(
        (_relative_gap(gap, max(size, least)) for gap, size in zip(gaps, sizes, strict=True)), default=0.0
    )


def _largest(values: Array) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _relative_gap(gap: float, size: float) -> float:
    return gap / size if size > 0.0 else math.inf if gap > 0.0 else 0.0


def with_shorter_steps(composite: Composite, parts: Sequence[int]) -> tuple[Composite, int]:
    """Return the composite with steps that are the first of these parts which its own steps allow."""
    for part in parts:
        made = scale_steps(composite, Fraction(1, part))
        try:
            _ = plan_tree(made)
        except HocketError:
            continue
        return made, part
    return made, part


def measured_seconds(composite: Composite, stop: Fraction | None, start: Fraction = Fraction(0)) -> float:
    """Return how long the steps of a run take."""
    return float(_run(composite, stop, start).info["timings"]["phases"]["steps"])


def step_seconds(composite: Composite, start: Fraction = Fraction(0)) -> dict[str, float]:
    """Return how long a step of each simulator takes, by itself, with its inputs at their start values."""
    found: dict[str, float] = {}
    for level in plan_tree(composite).levels():
        for child, model in enumerate(level.wiring.models):
            if child not in level.inner:
                found[level.name(child)] = _step_seconds(model, float(start), float(level.composite.step))
    return found


def _step_seconds(model: Model, t: float, h: float) -> float:
    u = np.array([[float(port.start or 0.0) for port in model.inputs]])
    simulator, spent = model.open(), []
    try:
        simulator.start(t)
        for number in range(STEPS):
            before = perf_counter()
            simulator.step(t + number * h, h, u)
            spent.append(perf_counter() - before)
            simulator.output(t + (number + 1) * h, u)
    finally:
        simulator.close()
    return median(spent)


def _run(composite: Composite, stop: Fraction | None, start: Fraction) -> Run:
    if stop is None:
        raise ScenarioError("nothing says how long to run", "objectives", "a stop time", "--stop 10")
    return run(composite, start + stop, start=start)


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
        known = MEASURES.get(self.name.partition(":")[0])
        return known.words if known else self.name


def recorded_errors(case: Case, patterns: tuple[str, ...] = ()) -> list[PortError]:
    """Return the errors of some outputs: named, or else those that the scenario records.

    Names are paths with wildcards; the levels around a simulator may be left out.
    """
    known = {each.port: each for each in case.prediction.ports}
    return [known[name] for name in counted_outputs(case.composite, tuple(known), patterns)]


def _error(case: Case, *outputs: str) -> float:
    """Return the 2-norm of the largest errors of the outputs that count, in their units."""
    return float(np.sqrt(sum(port.largest**2 for port in recorded_errors(case, outputs))))


def _relative(case: Case, *outputs: str) -> float:
    """Return the largest of errors over the largest value of each output that counts."""
    return max(port.relative for port in recorded_errors(case, outputs))


def _radius(case: Case, *simulators: str) -> float:
    if not simulators:
        return stability_radius(case.reading).radius
    paths = [path for path, _ in leaves(case.composite)]
    wanted = []
    for name in simulators:
        found = [path for path in paths if path == name or path.endswith(f".{name}")]
        if len(found) != 1:
            what = f"`{name}` is {'not a simulator' if not found else 'several simulators'}"
            raise ScenarioError(what, "objectives", "the path of one simulator", suggest_nearest(name, paths))
        wanted += found
    return structured_radius(case.reading, *wanted).radius


def _seconds(case: Case) -> float:
    """Return what simulators compute per simulated second: steps, each as long as one was found to take."""
    if not case.times:
        raise ScenarioError("nothing is known of how long steps take", "objectives", "steps, or exchanges")
    each = sum(float(count) * _seconds_of(case.times, path) for path, count in case.cost.steps.items())
    return each / float(case.composite.step)


def _seconds_of(times: Mapping[str, float], path: str) -> float:
    """Return the seconds that a step of a simulator takes; it may have got levels around it since."""
    own = [key for key in times if f".{path}".endswith(f".{key}") or f".{key}".endswith(f".{path}")]
    return times[max(own, key=len)] if own else sum(times.values()) / len(times)


def _distributed_cost(case: Case) -> Cost:
    if not case.cost.links:
        what = "all simulators are on one host, and there are no messages"
        raise ScenarioError(what, "objectives", "exchanges, or `hosts` in the scenario")
    return case.cost


def _messages(case: Case) -> float:
    cost = _distributed_cost(case)
    return sum(each.each.messages for each in cost.links) / float(cost.hosts_step)


def _bytes(case: Case) -> float:
    cost = _distributed_cost(case)
    return sum(each.bytes(each.each) for each in cost.links) / float(cost.hosts_step)


def _relative_work(case: Case) -> float:
    """Return work as a multiple of that of now: of exchanges or of simulator steps, whichever grew more."""
    if case.now is None:
        raise ScenarioError("what now costs is not known", "objectives", "exchanges, steps, or seconds")
    return max(_ratio(case.work.exchanges, case.now.exchanges), _ratio(case.work.steps, case.now.steps))


def _ratio(new: float, old: float) -> float:
    return new / old if old else (math.inf if new else 1.0)


class Measure(NamedTuple):
    """What objectives are about: what it is in words, and its number for a Case."""

    words: str
    number: Callable[..., float]
    larger: bool = False
    """Whether it is made large."""
    narrows: bool = False
    """Whether it may be about some outputs, or simulators, only: `error:*.x,*.v`, `radius:one`."""
    long: bool = False
    """Whether it is about a run, and takes longer."""
    rotates: bool = False
    """Whether it is the same for orders that are rotations of each other, with holds."""


MEASURES = {
    "rho": Measure("spectral radius of a step", lambda case: spectral_radius(case.reading), rotates=True),
    "delta": Measure("relative consistency", lambda case: relative_consistency(case.linear).delta),
    "error": Measure("2-norm of the largest errors", _error, narrows=True, long=True),
    "relative": Measure("largest error over largest value", _relative, narrows=True, long=True),
    "radius": Measure("stability radius", _radius, larger=True, narrows=True),
    "work": Measure("work, in that of now", _relative_work, rotates=True),
    "exchanges": Measure("values exchanged per second", lambda case: case.work.exchanges, rotates=True),
    "steps": Measure("simulator steps per second", lambda case: case.work.steps, rotates=True),
    "time": Measure("seconds of simulator steps per second", _seconds, rotates=True),
    "messages": Measure("messages between hosts per second", _messages),
    "bytes": Measure("bytes between hosts per second", _bytes),
    "latency": Measure("seconds on links per second", lambda case: _distributed_cost(case).link_time),
    "step": Measure("outermost step [s]", lambda case: float(case.composite.step), larger=True, rotates=True),
    "measured": Measure(
        "difference to half the steps, in a run",
        lambda case: measured_error(case.composite, case.stop, case.start),
        long=True,
    ),
    "seconds": Measure(
        "seconds of a run", lambda case: measured_seconds(case.composite, case.stop, case.start), long=True
    ),
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
    return (
        f"`{objective.name}` adds up {join_names(units, '')} as they are: "
        "`relative` compares each output with its own size, `error:*.NAME` takes some only"
    )


def objectives(names: Sequence[str], limits: Mapping[str, float] | None = None) -> tuple[Objective, ...]:
    """Return objectives by name: one of MEASURES, `error:*.x,*.v`, `radius:one,two`, or `file.py:function`.

    The error with names is that of these outputs; the radius, that of changes in these simulators. A function
    takes the composite; it is made small. A limit on something that is not an objective is one all the same.
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
    return tuple(
        Objective(name, kind in MEASURES and MEASURES[kind].larger, limit)
        for name, limit in wanted.items()
        for kind in [name.partition(":")[0]]
    )


def _check(name: str, where: str) -> None:
    kind, colon, rest = name.partition(":")
    if kind in MEASURES:
        if colon and (not MEASURES[kind].narrows or not rest.strip(" ,")):
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
    found = (_evaluate(case, objective.name) for objective in wanted)
    return tuple(math.nan if isinstance(each, str) else each for each in found)


def failure(case: Case, objective: Objective) -> str:
    """Return why an objective has no number; empty: it has."""
    found = _evaluate(case, objective.name)
    return found if isinstance(found, str) else "it is not a number" if math.isnan(found) else ""


def _evaluate(case: Case, name: str) -> float | str:
    """Return the number of an objective, or why there is none."""
    try:
        return float(_measure(name)(case))
    except (HocketError, np.linalg.LinAlgError, OverflowError) as error:
        return str(error) or type(error).__name__


def _measure(name: str) -> Callable[[Case], float]:
    kind = name.partition(":")[0]
    if kind in MEASURES:
        return lambda case: MEASURES[kind].number(case, *objective_paths(name))
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


def choose_objectives(
    composite: Composite,
    goals: Sequence[str] | None,
    limits: Mapping[str, float] | None,
    stop: Fraction | None,
    start: Fraction,
) -> tuple[int, tuple[Objective, ...]]:
    """Return how many objectives there are, and these with what has limits only.

    Without goals, error and work count where the scenario has linear models or those can be found, and what
    runs show where not; what grows by the coupling alone is out.
    """
    if goals:
        names = tuple(dict.fromkeys(goals))
        return len(names), objectives(names, limits)
    known = work_now(composite) is not None
    if stop is None:
        names = ("rho", "work") if known else ("rho", "step")
        return len(names), objectives(names, limits)
    case, bounds = Case(composite, stop, start), dict(limits or {})
    foreseen = not math.isnan(evaluate_objectives(case, objectives(["error"]))[0])
    if foreseen and _rests(case):
        bounds.setdefault("rho", 1.0 + EDGE)
    names = ("error" if foreseen else "measured", "work" if known else "seconds")
    return len(names), objectives(names, bounds)


def _rests(case: Case) -> bool:
    """Return whether the system without coupling errors does not grow."""
    try:
        A = exact_solution(case.linear).A
    except HocketError:
        return False
    rates = np.linalg.eigvals(A).real if len(A) else np.zeros(1)
    return bool(rates.max() <= EDGE * max(1.0, float(np.abs(A).max(initial=0.0))))


def work_now(composite: Composite) -> Work | None:
    """Return the work of now; None where it is not known before a run."""
    try:
        return Case(composite, None).work
    except HocketError:
        return None


def rotations_equivalent(
    composite: Composite, wanted: Sequence[Objective], over: Mapping[str, str] | None
) -> bool:
    """Return whether orders that are rotations of each other are worth the same.

    That is so for the spectral radius with holds and filtered holds (theory, section 1), while outputs are
    not evaluated again at the end.
    """
    now: Any = composite.orchestrator
    others = [name for name in over or {} if name.rpartition(".")[2] not in ("order", "step", "alpha")]
    held = all(
        isinstance(each.extrapolation or composite.extrapolation, (Hold, Nepce))
        for each in composite.scenario.connections
    )
    plain = (
        traits_of(now).schedule == "sequential" and now.outputs == "stale" and over is not None and not others
    )
    return plain and held and all(each.name in MEASURES and MEASURES[each.name].rotates for each in wanted)
