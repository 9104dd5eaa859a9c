"""Step control: any algorithm, in steps as long as their error allows.

In:  a Scenario and the algorithm of one step
Out: a Plan: adapt: what the algorithm does, and a row after each step

The step of the level is the longest one, and where it meets the level around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias, get_args

from hocket.coupling.power_accounts import energy_unit
from hocket.errors import Fault, ScenarioError
from hocket.model.arguments import choice_faults, is_flag, is_one_of, is_positive, set_fields
from hocket.model.clock import seconds
from hocket.model.composite import (
    CapabilityRequest,
    Orchestrator,
    OrchestratorTraits,
    traits_of,
)
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import WrappingOrchestrator, require_rollback
from hocket.orchestrators.gauss_seidel import GaussSeidel
from hocket.orchestrators.jacobi import Jacobi
from hocket.plan import Adapt, Control, Estimate, Plan
from hocket.plan.plan import Note, NoteKind

Controller: TypeAlias = Literal["I", "PI", "PID"]
Per: TypeAlias = Literal["unit", "step"]
PER: tuple[str, ...] = get_args(Per)
OnJump: TypeAlias = Literal["pass", "stop"]
PASSES = 16
"""The smallest steps in a row that may have too large an error: after a jump extrapolations err for some."""
GAINS: dict[str, tuple[float, float, float]] = {
    "I": (1.0, 0.0, 0.0),
    "PI": (0.7, 0.4, 0.0),
    "PID": (0.58, 0.21, 0.10),
}
"""Powers of the error now, of the one before, and of that before it (Gustafsson 1991; Söderlind 2002)."""


@dataclass(frozen=True)
class Adaptive(WrappingOrchestrator):
    """The steps of `inner`, as long as the estimated error stays within the tolerance.

    `estimate`: "defect", how far outputs are from where the samples before led (with Iterate: what was
    predicted against what was corrected); "orders", how far an extrapolation of one degree more would be,
    known before the step, so that nothing rolls back; "energy", what the level's power bonds gained or lost
    in the step, in sum and in their unit (Sadjina 2017); "richardson", against two half steps, of outputs:
    what hides in states and shows later is missed (a force seen as a position). The error counts `per` "unit"
    of time or per "step". Steps are multiples of `quantum`, a part of the level's step such as "1/1024", and
    begin with `first` of it. `rejects`: whether steps are taken back (None: where all can). `on_jump`: an
    error that the smallest step does not meet is passed and noted, unless it stays; "stop": ends the run.
    """

    inner: Annotated[
        Orchestrator, "the algorithm of one step; left out: by energy Gauss-Seidel, else Jacobi"
    ] = None  # type: ignore[assignment]  # filled in, as `first` is
    tolerance: Annotated[float, "the error that is allowed"] = 1e-4
    estimate: Annotated[Estimate, "how the error is found"] = "defect"
    controller: Annotated[Controller, "how the next step follows from the errors"] = "PI"
    per: Annotated[
        Per | None,
        "whether the error counts per second or per step; left out: energy per step, others per second",
    ] = None
    quantum: Annotated[Fraction, "steps are multiples of this part of the level's step"] = Fraction(1, 2**20)
    first: Annotated[
        Fraction, "the part of the level's step that a run begins with; left out: 1/64, by energy 1/1024"
    ] = None  # type: ignore[assignment]
    rejects: Annotated[bool | None, "whether steps are taken back; left out: where all can"] = None
    on_jump: Annotated[OnJump, "what is done where no step is short enough"] = "pass"
    adaptive = True

    def __post_init__(self) -> None:
        self._fill_in()
        faults = [*self._option_faults(), *self._number_faults()]
        if faults:
            raise ScenarioError(faults)
        set_fields(self, tolerance=float(self.tolerance))
        for name in ("quantum", "first"):
            object.__setattr__(self, name, _as_fraction(getattr(self, name)))

    def _fill_in(self) -> None:
        """Choose what was left out and depends on the estimate.

        Held values make the energy residual of a step a total derivative in Gauss-Seidel, not in Jacobi
        (theory, section 8.1). From rest power is nothing, however long the first step: so it is short.
        """
        energy = is_one_of(self.estimate, ("energy",))
        if self.inner is None:
            set_fields(self, inner=GaussSeidel() if energy else Jacobi())
        if self.first is None:
            first, quantum = Fraction(1, 1024 if energy else 64), _as_fraction(self.quantum)
            divides = not energy or not quantum or (first / quantum).denominator == 1
            set_fields(self, first=first if divides else quantum)

    def _option_faults(self) -> Iterator[Fault]:
        faults = [*self._inner_faults()]
        yield from faults
        if not faults and traits_of(self.inner).adaptive:
            yield Fault("a step control of a step control", "inner", "the algorithm of one step")
        yield from choice_faults("estimate", self.estimate, get_args(Estimate))
        yield from choice_faults("controller", self.controller, tuple(GAINS))
        if self.per is not None:
            yield from choice_faults("per", self.per, PER)
        yield from choice_faults("on_jump", self.on_jump, get_args(OnJump))
        if self.rejects is not None and not is_flag(self.rejects):
            yield Fault(f"`rejects` cannot be {self.rejects!r:.60}", "rejects", "True, False or None")
        elif self.rejects and self.estimate == "orders":
            yield Fault(
                '"orders" knows the error before the step: nothing is rejected', "rejects", "False, or None"
            )
        if self.rejects is False and self.estimate == "richardson":
            what = '"richardson" makes every step twice and rolls back in between: it takes steps back too'
            yield Fault(what, "rejects", "True, or None", 'estimate="defect", which needs no rollback')

    def _number_faults(self) -> Iterator[Fault]:
        if not is_positive(self.tolerance):
            yield Fault(f"a tolerance of {self.tolerance!r} is never met", "tolerance", "a number above 0")
        quantum, first = _as_fraction(self.quantum), _as_fraction(self.first)
        if quantum is None or not 0 < quantum <= 1 or (1 / quantum).denominator != 1:
            told = self.quantum if quantum is None else quantum
            yield Fault(f"a quantum of {told} of the step", "quantum", "the step divided by a whole number")
        elif (
            first is None
            or not quantum <= first <= 1
            or (first / quantum).denominator != 1
            or (1 / first).denominator != 1
        ):
            expected = f"one divided by a whole number, and a multiple of the quantum {quantum}"
            told = self.first if first is None else first
            yield Fault(f"a first step of {told} of the level's", "first", expected)

    @property
    def _is_per_unit(self) -> bool:
        """Whether the error is that of a second of steps.

        A given number of steps gains least where each gains the same (theory, section 8.1), so energy counts
        per step.
        """
        return self.per == "unit" if self.per is not None else self.estimate != "energy"

    @property
    def traits(self) -> OrchestratorTraits:
        """The steps of the one inside, of any length."""
        return self._describe("", adaptive=True, first=self.first)

    def needs(self, scenario: Scenario) -> Iterator[CapabilityRequest]:
        """Yield steps of any length, and rollback as far as steps are taken back."""
        everybody = tuple(scenario.models)
        why = "steps are as long as their error allows"
        yield CapabilityRequest("variable step", everybody, why, "", self.quantum, True)
        again = "steps with too large an error are taken back"
        if self.estimate == "richardson":
            yield CapabilityRequest("rollback", everybody, "each step is made twice, whole and in halves")
        elif self.estimate != "orders" and self.rejects:
            yield CapabilityRequest("rollback", everybody, again)
        elif self.estimate != "orders" and self.rejects is None:
            loses = "a step with too large an error stays, the next is shorter"
            yield CapabilityRequest("rollback", everybody, again, loses)
        yield from super().needs(scenario)

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        unit = self._tolerance_unit(scenario) if self.estimate == "energy" else ""
        made: Plan = self.inner.plan(scenario)
        stuck = sorted(name for name, model in scenario.models.items() if not model.capabilities.rollback)
        rejects = self._may_reject(scenario, stuck)
        how = self.estimate, self._is_per_unit, GAINS[self.controller]
        passes = PASSES if self.on_jump == "pass" else 0
        steps = self.quantum, self.first, Fraction(1)
        control = Control(self.tolerance, *how, *steps, rejects, unit=unit, passes=passes)
        notes = list(made.notes)
        if stuck and not rejects and self.estimate != "orders":
            text = f"`{stuck[0]}` cannot roll back: a step with too large an error stays, the next is shorter"
            notes.append(Note(text, NoteKind.ROLLBACK, stuck[0]))
        return replace(made, step=(Adapt(made.step, control),), notes=tuple(notes))

    def _tolerance_unit(self, scenario: Scenario) -> str:
        """Return the unit of what bonds gain or lose; raises ScenarioError where they have none in common."""
        units = sorted({bond.unit for bond in scenario.bonds.values()})
        hint = 'estimate="defect", which needs none'
        if not units:
            expected = "power bonds: `bonds={...}`, [bonds.name] in a file"
            raise ScenarioError('estimate="energy" in a level without bonds', "orchestrator", expected, hint)
        if len(units) > 1:
            what = f'estimate="energy" adds up what bonds gain, and they count in `{"`, `".join(units)}`'
            raise ScenarioError(what, "orchestrator", "one `unit` for all bonds of the level", hint)
        return units[0] if self._is_per_unit else energy_unit(units[0])

    def _may_reject(self, scenario: Scenario, stuck: list[str]) -> bool:
        if self.estimate == "orders":
            return False
        if self.rejects or self.estimate == "richardson":
            why = "steps are made twice" if self.estimate == "richardson" else "steps are taken back"
            hint = 'estimate="orders", or rejects=False with "defect"; `Replay`, replay = true in a file'
            require_rollback(scenario, stuck, why, hint)
        return not stuck if self.rejects is None else self.rejects


def _as_fraction(value: object) -> Fraction | None:
    """Return a part of the step as a fraction: 0.1 is a tenth, "1/64" is one; None: it is neither."""
    try:
        return Fraction(value) if isinstance(value, str) else seconds(value)  # type: ignore[arg-type]
    except (ValueError, ZeroDivisionError):
        return None
