"""How far time goes: an artificial simulator that tells all others from where to step, and by how much.

In:  the outputs whose error matters, as inputs
Out: the time t and the step h as outputs, over a variable s that counts

S_H of Gomes 2016, section 3.1. The time depends on what was seen before, the step on what is seen now, and
nobody's outputs depend on the step: no algebraic loop arises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from hocket.clock import Duration
from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model import Capabilities, Port, PortLike, Simulator, parse_ports
from hocket.simulators.attempts import Attempts
from hocket.simulators.recipes import positive_duration
from hocket.simulators.timed import time_in_seconds

ErrorSource: TypeAlias = Literal["richardson", "copy", "defect"]
SOURCES: tuple[str, ...] = get_args(ErrorSource)
COPY = "copy"
"""What the names of inputs begin with that are the copy's."""


@dataclass(frozen=True, init=False)
class StepController:
    """Steps as long as the error that they make in the `watched` signals is within the tolerance.

    `estimate`: "richardson" makes a step, goes back, makes two of half its length and compares; "copy" has
    two scenarios run side by side, one with the step and one with half of it, and nobody goes back; "defect"
    asks how far the signals are from where they were held. The error of signal i counts in parts of
    tolerance[i] + relative * |y_i|, `per` "step" or "unit" of time. The next step is that one times
    safety * e^-a/k * e'^b/k * e''^-c/k with (a, b, c) = `gains` and the errors e now, e' before, e'' before
    that (Gustafsson 1991; Soderlind 2002); k is `order` + 1 per step, `order` per unit.
    """

    watched: tuple[Port, ...]
    stop: Fraction
    tolerance: tuple[float, ...]
    relative: float
    estimate: ErrorSource
    per: Literal["step", "unit"]
    rejects: bool
    begin: Fraction
    first: Fraction
    smallest: Fraction
    largest: Fraction
    gains: tuple[float, ...]
    order: int
    safety: float
    most: float
    least: float
    quantum: Fraction | None
    """Where given, half steps are multiples of it."""

    def __init__(
        self,
        watched: Iterable[PortLike],
        stop: Duration,
        tolerance: Sequence[float] | float = 1e-4,
        relative: float = 0.0,
        estimate: ErrorSource = "richardson",
        per: Literal["step", "unit"] = "step",
        rejects: bool = True,
        begin: Duration = Fraction(0),
        first: Duration = Fraction(1, 100),
        smallest: Duration = Fraction(1, 10**9),
        largest: Duration = Fraction(1),
        gains: Sequence[float] = (0.7, 0.4, 0.0),
        order: int = 1,
        safety: float = 0.9,
        most: float = 5.0,
        least: float = 0.2,
        quantum: Duration | None = None,
    ):
        seen = parse_ports(watched)
        each = (float(tolerance),) * len(seen) if isinstance(tolerance, int | float) else tuple(tolerance)
        facts = {
            "watched": seen,
            "stop": time_in_seconds(stop),
            "tolerance": each,
            "relative": float(relative),
            "estimate": estimate,
            "per": per,
            "rejects": rejects and estimate != "copy",
            "begin": time_in_seconds(begin),
            "first": positive_duration(first, "first"),
            "smallest": positive_duration(smallest, "smallest"),
            "largest": positive_duration(largest, "largest"),
            "gains": tuple(float(gain) for gain in gains),
            "order": order,
            "safety": float(safety),
            "most": float(most),
            "least": float(least),
            "quantum": None if quantum is None else positive_duration(quantum, "quantum"),
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)
        if faults := list(self._faults()):
            raise ScenarioError(faults)

    def _faults(self) -> Iterator[Fault]:
        for name, known in (("estimate", SOURCES), ("per", ("step", "unit"))):
            value = getattr(self, name)
            if value not in known:
                words = " or ".join(f'"{word}"' for word in known)
                yield Fault(f"`{name}` cannot be {value!r}", name, words, suggest_nearest(str(value), known))
        if not self.watched:
            yield Fault("no signal is watched", "watched", "at least one")
        if len(self.tolerance) != len(self.watched):
            what = f"{len(self.tolerance)} tolerances for {len(self.watched)} signals"
            yield Fault(what, "tolerance", "one for each")
        for value in {*self.tolerance} if self.relative >= 0.0 else {self.relative}:
            if not 0.0 < value < math.inf:
                yield Fault(f"a tolerance of {value!r} is never met", "tolerance", "a number above 0")
        if self.stop <= self.begin:
            yield Fault("it stops before it begins", "stop", "`stop` after `begin`")
        if self.quantum and ((self.stop - self.begin) / (2 * self.quantum)).denominator != 1:
            yield Fault(
                "the stop is not on the grid of half steps", "quantum", "a part of the time that passes"
            )
        if not self.smallest <= self.first <= self.largest:
            yield Fault("the first step is out of bounds", "first", "smallest <= first <= largest")
        if len(self.gains) != 3:
            yield Fault(f"{len(self.gains)} gains", "gains", "three: now, before, before that")

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """The signals, and those of the copy after them."""
        if self.estimate != "copy":
            return self.watched
        return (*self.watched, *(replace(port, name=f"{COPY}.{port.name}") for port in self.watched))

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """Time, step, where a step may go back to; whether t is accepted; the error, in tolerances."""
        reacts = tuple(port.name for port in self.inputs)
        copied = (Port("copy_t", "s"), Port("copy_h", "s", None, reacts))
        return (
            Port("t", "s"),
            Port("h", "s", None, reacts),
            Port("back", "s", None, reacts),
            Port("accepted", "", None, reacts, "boolean"),
            Port("error", "", None, reacts),
            *(copied if self.estimate == "copy" else ()),
        )

    @property
    def abilities(self) -> Capabilities:
        """It can go back; its steps are those of s."""
        return Capabilities(rewind=True, variable_step=False, input_degree=0)

    def open(self) -> Simulator:
        """Make a live simulator."""
        return Attempts(self)

    @property
    def power(self) -> int:
        """How the error falls with the step."""
        return self.order if self.per == "unit" else self.order + 1
