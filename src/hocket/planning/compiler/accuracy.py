"""Accuracy: a step controller among the simulators tells all others the time, so that errors stay small.

In:  a level with a fixed step
Out: the same level over a variable s with step 1, in which time is a signal

Gomes 2016, section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

import numpy as np

from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import wire
from hocket.errors import Fault, ScenarioError, raise_faults, suggest_nearest
from hocket.model.arguments import choice_faults, free_name, set_fields
from hocket.model.clock import Duration, format_duration
from hocket.model.composite import as_level, levels, traits_of
from hocket.model.extrapolators import Hold
from hocket.model.ports import Port, matches
from hocket.model.protocols import Array, Model
from hocket.model.scenario import Connection, Insertion, Scenario
from hocket.orchestrators.adaptive import GAINS, PER, Controller, Per
from hocket.orchestrators.jacobi import Jacobi
from hocket.planning.compiler.contract import unsolved_loops
from hocket.planning.compiler.time_as_signal import (
    WHOLE,
    enclose_level,
    grid,
    has_told_levels,
    is_plain_jacobi,
    is_told_inside,
    mutual_feedthrough,
    obstacles,
    told_models,
    with_variable_steps,
)
from hocket.simulators.constraint import Coupler
from hocket.simulators.recipes import parse_seconds, positive_duration
from hocket.simulators.step_controller import COPY, SOURCES, ErrorSource, StepController
from hocket.simulators.wrappers.timed import BACK, STEP, TIME, Timed, followed_degree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hocket.model.composite import Composite


PORTS = ("t", "h", "accepted", "error")


class RunLike(Protocol):
    """A Run, as far as it is looked at here."""

    @property
    def ports(self) -> tuple[str, ...]:
        """Everything that was recorded."""

    def __getitem__(self, port: str) -> Any:
        """Return the series of a port."""


@dataclass(frozen=True)
class AcceptedSteps:
    """The accepted points of a run over s, by time."""

    t: Array
    values: Mapping[str, Array]
    error: Array
    """Of the step that led there, in tolerances, as it was estimated."""
    rejected: int
    """Steps that were rolled back."""
    finished: bool
    """Whether the stop of the controller was reached; else there were too few steps of s."""

    def __getitem__(self, port: str) -> Array:
        return self.values[port]

    @property
    def steps(self) -> int:
        """How many steps were accepted."""
        return len(self.t) - 1

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each accepted time."""
        return [
            {"t": float(t), **{port: float(values[row]) for port, values in self.values.items()}}
            for row, t in enumerate(self.t)
        ]

    def faults(self) -> list[Fault]:
        """Return what the run promised and did not keep."""
        faults = []
        worst = int(np.argmax(self.error))
        if self.error[worst] > 1.0:
            what = f"the error is {self.error[worst]:.3g} times the tolerance"
            hint = "a smaller `first`" if worst <= 1 else "an estimate that rolls back: richardson, defect"
            faults.append(Fault(what, f"step to t = {self.t[worst]:.6g} s", "at most 1", hint))
        if not self.finished:
            where = f"t = {self.t[-1]:.6g} s"
            faults.append(
                Fault("the run ended before its time was up", where, "more steps of s", "a later stop")
            )
        return faults

    def plot(self, *ports: str, path: Path | str | None = None) -> Figure:
        """Draw ports (none given: all) over time; `path` also saves the picture."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(layout="constrained")
        for port in ports or self.values:
            axes.plot(self.t, self.values[port], label=port)
        axes.set_xlabel("t [s]")
        axes.legend()
        if path is not None:
            figure.savefig(path)
        return figure


def accepted_steps(run: RunLike, clock: str = "clock", ports: Iterable[str] | None = None) -> AcceptedSteps:
    """Return the accepted rows of a run over s; `ports`: which columns (None: all but the controller's)."""
    missing = [port for port in PORTS if f"{clock}.{port}" not in run.ports]
    if missing:
        hint = f'record=["{clock}.*", ...]'
        what = f"`{clock}.{missing[0]}` was not recorded"
        raise ScenarioError(what, "run", "a run over s, with the columns of its step controller", hint)
    t, h, taken, error = (np.array(run[f"{clock}.{port}"].values) for port in PORTS)
    kept = taken > 0.5
    names = [port for port in run.ports if not port.startswith(f"{clock}.")] if ports is None else list(ports)
    return AcceptedSteps(
        t[kept],
        {port: np.array(run[port].values)[kept] for port in names},
        error[kept],
        int(np.count_nonzero((error > 1.0) & ~kept)),
        bool(h[kept][-1] == 0.0),
    )


CLOCK = "clock"
TOLD = ("t", "h", "back")
TOLD_COPY = ("copy_t", "copy_h", "copy_t")


@dataclass(frozen=True)
class Accuracy:
    """Steps as long as the error allows, up to `stop`, by a step controller and nothing else.

    The error that `estimate` finds in a step (see StepController) must stay below `tolerance` plus `relative`
    times the value, in every real output that `watch` names; `tolerances` gives some of them their own. It
    counts `per` "step" or "unit" of time. Steps begin with `first` (left out: a hundredth of the largest),
    are at most `largest` (the step of the level) and at least `smallest` (a millionth of the largest).
    `rejects`: whether steps are rolled back (None: where all can roll back; "copy" never does).
    """

    stop: Annotated[Duration, "the time at which it stands still"]
    tolerance: float = 1e-4
    relative: float = 0.0
    estimate: ErrorSource = "richardson"
    controller: Controller = "PI"
    per: Per = "step"
    rejects: bool | None = None
    begin: Duration = 0
    first: Duration | None = None
    smallest: Duration | None = None
    largest: Duration | None = None
    watch: tuple[str, ...] = ("*",)
    tolerances: Mapping[str, float] = field(default_factory=dict, hash=False)
    name: ClassVar[str] = "accuracy"

    def __post_init__(self) -> None:
        raise_faults(self._faults())
        lengths = {"first": self.first, "smallest": self.smallest, "largest": self.largest}
        set_fields(
            self,
            stop=parse_seconds(self.stop, "stop"),
            begin=parse_seconds(self.begin, "begin"),
            **{name: positive_duration(each, name) for name, each in lengths.items() if each is not None},
            watch=(self.watch,) if isinstance(self.watch, str) else tuple(self.watch),
        )

    def _faults(self) -> Iterator[Fault]:
        yield from choice_faults("estimate", self.estimate, SOURCES)
        yield from choice_faults("controller", self.controller, tuple(GAINS))
        yield from choice_faults("per", self.per, PER)
        for number in (self.tolerance, *self.tolerances.values()):
            if not isinstance(number, Real) or not 0.0 < number < math.inf:
                yield Fault(f"a tolerance of {number!r} is never met", "tolerance", "a number above 0")
        if self.rejects and self.estimate == "copy":
            yield Fault('"copy" goes on whatever the error was', "rejects", "False, or None")

    def reasons(self, level: Composite) -> list[str]:
        """Return why steps need control; nothing where they have it."""
        if traits_of(level.orchestrator).adaptive or clock_of(level.scenario):
            return []
        return [f"its step of {format_duration(level.step)} is fixed, whatever the error is"]

    def check_preconditions(self, level: Composite) -> list[Fault]:
        """Return what stands in the way."""
        if clock_of(level.scenario):
            return [Fault("its time is told by a step controller already", "models", "a level over t")]
        rolls_back = self.estimate == "richardson" or bool(self.rejects)
        hint = (
            '`Replay(...)` around it, `replay = true` in a file; or estimate="copy", which needs no rollback'
        )
        faults = list(obstacles(level, rolls_back, hint))
        if faults:
            return faults
        signals = [name for _, name, _ in self._prepare_level(level)[1]]
        for pattern in (*self.watch, *self.tolerances):
            if not any(matches(name, pattern) for name in signals):
                hint = suggest_nearest(pattern, signals)
                faults.append(Fault(f"no output matches `{pattern}`", "watch", "a real output", hint))
        return faults

    def apply(self, level: Composite) -> Composite:
        """Return the level over s; raises ScenarioError with all that stands in the way."""
        raise_faults(self.check_preconditions(level))
        level = level.with_scenario(with_level_ports(level.scenario))
        degrees = _extrapolation_degrees(level)
        order = _coupling_order(level, degrees)
        degrees, before = (degrees if is_plain_jacobi(level) else {}), level
        level, every, quantum = self._prepare_level(level)
        scenario = level.scenario
        clock = free_name(CLOCK, scenario.models)
        named = [each for each in every if self._watches(each[1], before)]
        signals = {path: port for path, _, port in named}
        own = self._tolerances(name for _, name, _ in named)
        told = self._timed_scenario(
            level, degrees, f"steps from the time that `{clock}` tells, as far as it tells"
        )
        models = {clock: self._clock(level, signals, own, order, quantum), **told.models}
        paths = [path for path, _ in told_models(scenario, level.step)]
        made = _time_connections(paths, clock, TOLD)
        made += [Connection(path, f"{clock}.{path}") for path in signals]
        reasons = {
            clock: f"chooses t and h so that the error {self._tolerance_words()}{self._doubt(scenario)}"
        }
        if not is_plain_jacobi(before):
            what = f"is all that was, stepped as a whole by {type(before.orchestrator).__name__}"
            reasons[WHOLE] = f"{what}, from the time that `{clock}` tells"
        if self.estimate == "copy":
            copy = free_name(COPY, scenario.models)
            inside = [each for each in told.connections if each.target not in told.output_names]
            models[copy] = _level_over_s(level, told.with_changes(connections=inside, outputs=(), record=()))
            made += _time_connections([f"{copy}.{path}" for path in paths], clock, TOLD_COPY)
            made += [Connection(f"{copy}.{path}", f"{clock}.{COPY}.{path}") for path in signals]
            reasons[copy] = (
                "the same again, in one step where the others make two: their difference is the error"
            )
        reasons |= {each.target: f"`{clock}` tells and watches all" for each in made}
        new = told.with_changes(
            models=models,
            connections=(*told.connections, *made),
            record=scenario.record if "*" in scenario.record else (*scenario.record, f"{clock}.*"),
            inserted={**told.inserted, **_insertion_notes(reasons)},
        )
        return _level_over_s(level, new)

    def check_postconditions(self, level: Composite) -> list[Fault]:
        """Return what a level over s must be, and this one is not."""
        clock = clock_of(level.scenario)
        if not clock:
            return [Fault("there is no step controller", "models", "one that tells all others the time")]
        faults = []
        if level.step != 1:
            faults.append(Fault(f"the step is {format_duration(level.step)}", "step", "1, of s"))
        if level.orchestrator != Jacobi():
            faults.append(Fault(f"{level.orchestrator!r:.60}", "orchestrator", "Jacobi()"))
        drives = {each.target: each.source for each in level.scenario.connections}
        for path, model in told_models(level.scenario, Fraction(1)):
            if path == clock:
                continue
            source = drives.get(f"{path}.{TIME}", "")
            if not isinstance(model, Timed):
                faults.append(Fault(f"`{path}` is not told the time", f"models.{path}", "Timed(...)"))
            elif source not in (f"{clock}.t", f"{clock}.copy_t"):
                faults.append(
                    Fault(f"`{clock}` does not tell `{path}` the time", f"connections.{path}.{TIME}")
                )
        for loop in unsolved_loops(level):
            faults.append(Fault(f"the algebraic loop {' -> '.join(loop)}", "connections", "no loops"))
        return faults

    def _prepare_level(
        self, level: Composite
    ) -> tuple[Composite, list[tuple[str, str, Port]], Fraction | None]:
        """Return the level with those in it ready to be told, and their outputs: path, name before, port."""
        around = "" if is_plain_jacobi(level) else f"{WHOLE}."
        level = enclose_level(level) if around else level
        quantum = grid(level, Fraction(self.begin), Fraction(self.stop))
        level = level if quantum is None else with_variable_steps(level, quantum)
        every = [
            (f"{path}.{port.name}", f"{path}.{port.name}".removeprefix(around), port)
            for path, model in told_models(level.scenario, level.step)
            for port in model.outputs
            if not port.discrete
        ]
        return level, every, quantum

    def _watches(self, path: str, level: Composite) -> bool:
        """Return whether the error of an output counts.

        What Couplers find is held over a step: halves of it differ by the first power of h, whatever the
        order of all others. It counts where a pattern of its own names it.
        """
        every = "*" in self.watch and path not in _coupler_outputs(level)
        return every or any(matches(path, pattern) for pattern in self.watch if pattern != "*")

    def _tolerance_words(self) -> str:
        mixed = f" + {self.relative:g} |y|" if self.relative else ""
        return f"per {self.per} is at most {self.tolerance:g}{mixed}, as `{self.estimate}` finds it"

    def _doubt(self, scenario: Scenario) -> str:
        """Return what makes an estimate by half steps doubtful, in words."""
        pairs = [] if self.estimate == "defect" else mutual_feedthrough(scenario)
        if not pairs:
            return ""
        a, b = pairs[0]
        return (
            f"; with care: outputs of `{a}` and `{b}` have direct feedthrough to each other, and the estimate"
            " holds only as long as they are evaluated again after each step (Arnold 2013)"
        )

    def _tolerances(self, paths: Iterable[str]) -> tuple[float, ...]:
        return tuple(
            next((value for at, value in self.tolerances.items() if matches(path, at)), self.tolerance)
            for path in paths
        )

    def _clock(
        self,
        level: Composite,
        signals: Mapping[str, Port],
        tolerances: tuple[float, ...],
        order: int,
        quantum: Fraction | None,
    ) -> StepController:
        largest = Fraction(self.largest or level.step)
        smallest = Fraction(self.smallest or min(largest / 10**6, Fraction(self.first or 1)))
        able = all(model.capabilities.rollback for _, model in told_models(level.scenario, level.step))
        return StepController(
            tuple(Port(path, port.unit) for path, port in signals.items()),
            Fraction(self.stop),
            tolerances,
            self.relative,
            self.estimate,
            self.per,
            able if self.rejects is None else self.rejects,
            Fraction(self.begin),
            Fraction(self.first or max(largest / 100, smallest)),
            smallest,
            largest,
            GAINS[self.controller],
            order,
            quantum=quantum,
        )

    def _timed_scenario(self, level: Any, degrees: Mapping[str, tuple[int, ...]], reason: str) -> Scenario:
        """Return a scenario whose simulators are told the time, at all levels."""
        models: dict[str, Model] = {}
        for name, model in level.scenario.models.items():
            inner = as_level(model)
            if inner is None or not is_told_inside(inner, level.step):
                models[name] = Timed(model, self.begin, degrees.get(name, ()))  # type: ignore[arg-type]
            else:
                models[name] = _level_over_s(inner, self._timed_scenario(inner, {}, reason))
        scenario: Scenario = level.scenario
        held = [replace(each, extrapolation=None) for each in scenario.connections]
        inserted = {**scenario.inserted, **_insertion_notes(dict.fromkeys(models, reason))}
        return scenario.with_changes(models=models, connections=held, inserted=inserted)


def clock_of(scenario: Scenario) -> str:
    """Return the name of the step controller; empty if there is none."""
    return next((name for name, model in scenario.models.items() if isinstance(model, StepController)), "")


def _extrapolation_degrees(level: Composite) -> dict[str, tuple[int, ...]]:
    """Return the degrees of the extrapolations of a flat level, by simulator and input."""
    if has_told_levels(level):
        return {}
    wiring = wire(level.scenario, level.extrapolation)
    return {
        name: tuple(0 if drive is None else (drive.extrapolation or Hold()).degree for drive in drives)
        for name, drives in zip(wiring.names, wiring.drives, strict=True)
    }


def _coupling_order(level: Composite, degrees: Mapping[str, tuple[int, ...]]) -> int:
    """Return the order of the coupling: one more than the lowest degree (Hafner 2021, theorem 6.9).

    Inputs that nothing drives keep their value, which is exact.
    """
    models = level.scenario.models
    driven = {connection.target for connection in level.scenario.connections}
    found = [
        followed_degree(models[name], degree)
        for name, each in degrees.items()
        for port, degree in zip(models[name].inputs, each, strict=True)
        if not port.discrete and f"{name}.{port.name}" in driven
    ]
    return 1 + min(found, default=0)


def _coupler_outputs(level: Composite) -> set[str]:
    """Return what Couplers find, at all levels, and what equations are short of."""
    return {
        f"{prefix}{name}.{port.name}"
        for prefix, each in levels(level)
        for name, model in each.scenario.models.items()
        if isinstance(model, Coupler)
        for port in model.outputs
    }


def _level_over_s(level: Composite, scenario: Scenario) -> Composite:
    return level.with_changes(
        scenario=scenario, step=1, orchestrator=Jacobi(), extrapolation=Hold(), start="cold"
    )


def _time_connections(paths: Iterable[str], clock: str, told: tuple[str, ...]) -> list[Connection]:
    return [
        Connection(f"{clock}.{source}", f"{path}.{target}")
        for path in paths
        for source, target in zip(told, (TIME, STEP, BACK), strict=True)
    ]


def _insertion_notes(reasons: Mapping[str, str]) -> dict[str, Insertion]:
    return {at: Insertion(Accuracy.name, reason) for at, reason in reasons.items()}
