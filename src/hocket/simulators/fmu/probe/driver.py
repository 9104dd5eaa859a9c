"""The bench that checks are made on, and what they find.

In:  an Fmu, driven over a grid of steps
Out: outputs, how long steps took, and words for differences; findings: verdicts, each with a sentence
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from hocket.errors import HocketError, SimulatorError, count, list_names
from hocket.model.extrapolators import shift_origin
from hocket.model.ports import Port
from hocket.model.protocols import Array
from hocket.simulators.fmu.binaries import exported_functions
from hocket.simulators.fmu.log_messages import deliver
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import FmuVariable, array_of

Verdict: TypeAlias = Literal["true", "false", "not declared", "untried"]
Found: TypeAlias = tuple[Verdict, str]


def judge_claim(good: bool, what: str) -> Found:
    return "true" if good else "false", what


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one capability."""

    name: str
    verdict: Verdict
    what: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found of an FMU; `probe["rollback"]` is one finding."""

    file: str
    findings: tuple[Finding, ...]

    def __getitem__(self, name: str) -> Finding:
        return {finding.name: finding for finding in self.findings}[name]

    def __str__(self) -> str:
        width = max(len(finding.name) for finding in self.findings)
        lines = (f"{found.name:{width}}  {found.verdict:12}  {found.what}" for found in self.findings)
        return "\n".join((*lines, self.summary))

    @property
    def failed_checks(self) -> tuple[str, ...]:
        """The names of what is not as it should be."""
        return tuple(finding.name for finding in self.findings if finding.verdict == "false")

    @property
    def summary(self) -> str:
        """One line: whether it can be trusted."""
        if self.failed_checks:
            return f"not to be trusted: {', '.join(self.failed_checks)}"
        return "all that it declares is true"


def quote_messages(said: Sequence[str]) -> str:
    """Return what an FMU has said, to be appended."""
    return f"; it said {count(len(said), 'message')}, the first {said[0][:200]!r}" if said else ""


def format_seconds(value: float) -> str:
    """Return a duration in s, ms or µs."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def step_grid(model: Fmu) -> tuple[float, float, int, float | None]:
    """Return where steps begin, how long and how many they are, and where they end if that is declared."""
    description, fixed = model.description, model.interface_used.fixed_step
    start = description.start or 0.0
    stop = description.stop if description.stop is not None and description.stop > start else None
    h = description.step or (0.01 if stop is None else (stop - start) / 100)
    if fixed and not model.interface_used.variable_step:
        h = fixed * max(1, round(h / fixed))
    fits = 0 if stop is None else math.floor((stop - start) / h + 1e-6)
    return (start, h, min(fits, 1000), stop) if fits >= 10 else (start, h, 10, None)


def alternative_value(port: Port, variable: FmuVariable) -> float:
    """Return a value of an input other than its start value, within its limits."""
    start = port.start or 0.0
    low = -math.inf if variable.minimum is None else float(variable.minimum)
    high = math.inf if variable.maximum is None else float(variable.maximum)
    if port.type == "boolean":
        return 1.0 - start
    if port.type == "enumeration":
        return next((float(item) for item in variable.items.values() if item != start), start)
    if port.type == "integer":
        return start + 1 if start + 1 <= high else max(start - 1, low)
    nudge = 0.1 * max(abs(start), variable.nominal or 1.0)
    if high - low < math.inf:
        nudge = min(nudge, 0.25 * (high - low))
    return start + nudge if start + nudge <= high else max(start - nudge, low)


def port_variable(model: Fmu, port: Port) -> FmuVariable:
    """Return the variable of a port; of an element, its array."""
    known = model.description.by_name
    return known[port.name if port.name in known else array_of(port.name)]


def input_values(model: Fmu) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the start values of the inputs, and others within their limits."""
    starts = tuple(float(port.start or 0.0) for port in model.inputs)
    return starts, tuple(alternative_value(port, port_variable(model, port)) for port in model.inputs)


def describe_freeze(model: Fmu, free: Array, saved: Array) -> str:
    """Return which output stands still in the rows with a saved state, and not without; empty: none."""
    still = np.all(saved == saved[0], axis=0) & np.any(free != free[0], axis=0)
    if not np.any(still):
        return ""
    column = int(np.argmax(still))
    moved = (
        f"`{model.outputs[column].name}` stays at {saved[-1, column]:.9g}, and goes to {free[-1, column]:.9g}"
    )
    return f"it stands still once its state was saved: in {count(len(free) - 1, 'step')} {moved} without that"


Inputs: TypeAlias = Callable[[int], Array]

ROUNDING = 1e-9
"""What may differ after a rollback, for numbers of the size of one; the engine allows as much."""


class ShortStep(SimulatorError):  # noqa: N818 - what happened is not an error
    """A step ended before its time."""

    def __init__(self, t: float, end: float, reached: float):
        self.reached = reached
        super().__init__(f"the step from {t:.6g} s to {end:.6g} s ended at {reached:.6g} s")


@dataclass
class Course:
    """The first run, that others are compared with: a row per step, why it ended before its time."""

    rows: Array
    lasted: list[float]
    ended: str = ""
    short: bool = False


class ProbeBench:
    """An FMU, a grid of steps, and inputs that change."""

    def __init__(self, model: Fmu, note: Callable[[str], None] = lambda _: None):
        self.model, self.note = model, note
        self.used, self.major = model.interface_used, model.description.major
        self.limit = float(model.time_limit)
        self.said: list[str] = []
        self.lasted = 0.0  # seconds, of the newest step
        self.rollbacks = True  # as far as is known
        self.t0, self.h, self.count, self.stop = step_grid(model)
        self.names = [port.name for port in model.outputs]
        self.real = np.array([port.type == "real" for port in model.inputs], dtype=bool)
        starts, others = input_values(model)
        self.base: Array = np.array(starts, dtype=float)
        self.other: Array = np.array(others, dtype=float)

    def variable(self, port: Port) -> FmuVariable:
        return port_variable(self.model, port)

    def u(self, n: int, tune: float = 0.0) -> Array:
        """Return the inputs of step n, somewhere between the start values and the others."""
        phase = n + 1.3 * np.arange(len(self.base)) + tune
        weight = np.where(self.real, 0.5 + 0.5 * np.sin(phase), np.floor(phase) % 3 == 1)
        values: Array = self.base + weight * (self.other - self.base)
        return values.reshape(1, -1)

    def time(self, n: float) -> float:
        return self.t0 + n * self.h

    @contextmanager
    def simulator(self, model: Fmu | None = None, early: bool = False) -> Iterator[Any]:
        """Give a started simulator whose outputs were got once; close it afterwards."""
        self.note("loading it")
        simulator: Any = (model or self.model).open()
        try:
            simulator.stop_time = self.stop
            if early:
                simulator.early = True
            self.note("its start")
            simulator.start(self.t0)
            self.note("getting the first outputs")
            simulator.output(self.t0, self.u(0))
            yield simulator
        finally:
            self.note("closing it")
            simulator.close()
            deliver()

    def step(self, simulator: Any, t: float, h: float, u: Array) -> Array:
        """Make a step; return the outputs at its end."""
        self.note(f"a step from {t:.6g} s to {t + h:.6g} s")
        clock = time.perf_counter()
        reached = simulator.step(t, h, u)
        self.lasted = time.perf_counter() - clock
        if reached < t + h - 1e-9 * h:
            raise ShortStep(t, t + h, reached)
        return np.array(simulator.output(t + h, np.array(shift_origin(u, h))), dtype=float)

    def walk(
        self, simulator: Any, count: int, first: int = 0, parts: int = 1, u: Inputs | None = None
    ) -> Array:
        """Make steps, each in so many parts; return the outputs after each part."""
        rows = []
        for n in range(first, first + count):
            inputs = (u or self.u)(n)
            for part in range(parts):
                rows.append(self.step(simulator, self.time(n + part / parts), self.h / parts, inputs))
        return np.array(rows).reshape(len(rows), len(self.names))

    def save(self, simulator: Any) -> Any:
        self.note("saving its state")
        return simulator.save()

    def restore(self, simulator: Any, state: Any) -> None:
        """Roll back; raises SimulatorError where hocket itself finds that the next step is not the same."""
        self.note("restoring its state")
        simulator.restore(state)

    @cached_property
    def course(self) -> Course:
        """The first run: over the default experiment, as far as it goes and time allows.

        What fails there when it is told the stop time, and goes further untold, is not told from then on.
        """
        course = self._run_course()
        if course.ended and not course.short and self.stop is not None and self.model.stop_time:
            self.stop, told = None, self.stop
            untold = self._run_course()
            if len(untold.rows) > len(course.rows):
                return untold
            self.stop = told
        return course

    def _run_course(self) -> Course:
        course = Course(np.zeros((0, len(self.names))), [])
        rows: list[Array] = []
        begun = time.monotonic()
        with self.simulator() as simulator:
            for n in range(self.count):
                try:
                    row = self.step(simulator, self.time(n), self.h, self.u(n))
                except SimulatorError as error:
                    course.ended, course.short = error_sentence(error), isinstance(error, ShortStep)
                    break
                course.lasted.append(self.lasted)
                if not np.all(np.isfinite(row)):
                    wrong = int(np.argmin(np.isfinite(row)))
                    course.ended = f"`{self.names[wrong]}` is {row[wrong]} at {self.time(n + 1):.6g} s"
                    break
                rows.append(row)
                if time.monotonic() - begun > self.limit / 4:
                    break
        course.rows = np.array(rows).reshape(len(rows), len(self.names))
        return course

    @cached_property
    def repeatable_steps(self) -> int:
        """How many steps a check may make several times; never more than went well."""
        return max(1, min(len(self.course.rows), 100, self.affordable(1 / 40)))

    def affordable(self, share: float) -> int:
        """Return how many steps can be made in that share of the time limit."""
        return int(share * self.limit / max(float(np.mean(self.course.lasted or [0.0])), 1e-9))

    def missing_functions(self, *functions: str) -> list[str]:
        """Return which functions the binary does not have."""
        there = exported_functions(self.model.binary, self.model.description, self.used, functions)
        return [name for name in functions if name not in there]

    def refute_claim(self, claim: str, *functions: str) -> Found | None:
        """Return what is to be said where the binary lacks functions that a claim needs."""
        lacking = self.missing_functions(*functions)
        told = f"it says that {claim}, but its binary lacks {list_names(lacking, 4)}"
        return ("false", told) if lacking else None

    def gap(self, ones: Array, others: Array) -> tuple[float, str]:
        """Return the largest difference for numbers of the size of one, and words for it."""
        apart = relative_differences(ones, others)
        if not apart.size or not np.any(apart):
            return 0.0, "the same to the bit"
        row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
        name, one, other = self.names[column], ones[row, column], others[row, column]
        if apart[row, column] <= ROUNDING:
            return float(apart[row, column]), f"the same up to {abs(one - other):.2g}"
        return float(apart[row, column]), f"`{name}` is {other:.9g} instead of {one:.9g}"


def relative_differences(ones: Array, others: Array) -> Array:
    """Return the differences, in proportion to numbers above one."""
    apart = np.abs(ones - others) / np.maximum(1.0, np.maximum(np.abs(ones), np.abs(others)))
    return np.where(np.isnan(ones) & np.isnan(others), 0.0, np.nan_to_num(apart, nan=math.inf))


def error_sentence(error: HocketError) -> str:
    return error.faults[0].what
