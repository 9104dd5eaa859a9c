"""Step control: any algorithm, in steps as long as their error allows.

In:  a Scenario and the algorithm of one step
Out: a Plan: adapt: what the algorithm does, and a row after each step

The step of the level is the longest one, and where it meets the level around it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from hocket.errors import Fault, ScenarioError, nearest
from hocket.model import Orchestrator, Scenario
from hocket.orchestrators.exchange import InputsMode
from hocket.orchestrators.jacobi import Jacobi
from hocket.plan import Adapt, Body, Control, Estimate, OutputsMode, Plan, Try

Controller: TypeAlias = Literal["I", "PI", "PID"]
GAINS: dict[str, tuple[float, float, float]] = {
    "I": (1.0, 0.0, 0.0),
    "PI": (0.7, 0.4, 0.0),
    "PID": (0.58, 0.21, 0.10),
}
"""Powers of the error now, of the one before, and of that before it (Gustafsson 1991; Söderlind 2002)."""


@dataclass(frozen=True)
class Adaptive:
    """The steps of `inner`, as long as the estimated error stays within the tolerance.

    `estimate`: "defect", how far outputs are from where the samples before led (with Iterate: what was
    predicted against what was corrected); "orders", how far an extrapolation of one degree more would be,
    known before the step, so that nobody goes back; "richardson", against two half steps. The error counts
    `per` "unit" of time or per "step". Steps are multiples of `quantum`, a part of the level's step, and
    begin with `first` of it. `rejects`: whether steps are taken back (None: where all can).
    """

    inner: Orchestrator = Jacobi()  # noqa: RUF009 - it is frozen
    tolerance: float = 1e-4
    estimate: Estimate = "defect"
    controller: Controller = "PI"
    per: Literal["unit", "step"] = "unit"
    quantum: Fraction = Fraction(1, 2**20)
    first: Fraction = Fraction(1, 64)
    rejects: bool | None = None
    adaptive = True

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise ScenarioError(faults)
        for name in ("quantum", "first"):
            object.__setattr__(self, name, Fraction(getattr(self, name)))

    def _faults(self) -> Any:
        if isinstance(self.inner, (str, type)) or not hasattr(self.inner, "plan"):
            yield Fault(f"`{self.inner!r:.60}` is no orchestrator", "inner", "an object: `Jacobi()`")
        elif isinstance(self.inner, Adaptive):
            yield Fault("a step control of a step control", "inner", "the algorithm of one step")
        if not self.tolerance > 0.0:
            yield Fault(f"a tolerance of {self.tolerance!r} is never met", "tolerance", "a number above 0")
        for name, known in (
            ("estimate", get_args(Estimate)),
            ("controller", tuple(GAINS)),
            ("per", ("unit", "step")),
        ):
            value = getattr(self, name)
            if value not in known:
                hint = nearest(str(value), known)
                yield Fault(
                    f"`{name}` cannot be {value!r}", name, " or ".join(f'"{word}"' for word in known), hint
                )
        quantum, first = Fraction(self.quantum), Fraction(self.first)
        if not 0 < quantum <= 1 or (1 / quantum).denominator != 1:
            yield Fault(
                f"a quantum of {quantum} of the step", "quantum", "the step divided by a whole number"
            )
        elif not quantum <= first <= 1 or (first / quantum).denominator != 1 or (1 / first).denominator != 1:
            expected = f"one divided by a whole number, and a multiple of the quantum {quantum}"
            yield Fault(f"a first step of {first} of the level's", "first", expected)
        if self.rejects and self.estimate == "orders":
            yield Fault(
                '"orders" knows the error before the step: nothing is rejected', "rejects", "False, or None"
            )

    @property
    def outputs(self) -> OutputsMode:
        """As of the algorithm inside."""
        return getattr(self.inner, "outputs", "consistent")

    @property
    def inputs(self) -> InputsMode:
        """As of the algorithm inside."""
        return getattr(self.inner, "inputs", "clean")

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        made: Plan = self.inner.plan(scenario)
        body: Body = made.step[0].body if isinstance(made.step[0], Try) else made.step
        stuck = [name for name, model in scenario.models.items() if not model.abilities.rewind]
        rejects = self._rejects(stuck)
        how = self.estimate, self.per == "unit", GAINS[self.controller]
        control = Control(self.tolerance, *how, self.quantum, self.first, Fraction(1), rejects)
        notes = list(made.notes)
        if stuck and not rejects and self.estimate != "orders":
            notes.append(
                f"`{stuck[0]}` cannot go back: a step with too large an error stays, the next is shorter"
            )
        return replace(made, step=(Adapt(body, control),), notes=tuple(notes))

    def _rejects(self, stuck: list[str]) -> bool:
        if self.estimate == "orders":
            return False
        if stuck and (self.rejects or self.estimate == "richardson"):
            what = "steps are made twice" if self.estimate == "richardson" else "steps are taken back"
            raise ScenarioError(
                f"{what}, and `{stuck[0]}` cannot go back",
                where="orchestrator",
                expected="simulators with save() and restore(), FMUs with canGetAndSetFMUstate",
                hint='estimate="orders", which needs neither, or rejects=False with estimate="defect"',
            )
        return not stuck if self.rejects is None else self.rejects
