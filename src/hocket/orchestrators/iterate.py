"""Iteration: any algorithm, its step made again until what is exchanged agrees.

In:  a Scenario and the algorithm of one iteration
Out: a Plan: save; repeat: restore, and what the algorithm does; record

The first iteration extrapolates. From the second on the values at the end of the step are known from the one
before, so the same polynomials interpolate: waveform iteration, also called implicit or strong coupling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

from hocket.errors import Fault, Place, ScenarioError
from hocket.model import registry
from hocket.model.arguments import is_number, is_whole, set_fields
from hocket.model.composite import (
    CapabilityRequest,
    Orchestrator,
    OrchestratorTraits,
    traits_of,
)
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import WrappingOrchestrator, loop_note, require_rollback
from hocket.orchestrators.jacobi import Jacobi
from hocket.plan import Admit, Body, Plan, Record, Repeat, Restore, Save, Step, walk
from hocket.plan.accelerators import Accelerator, QuasiNewton
from hocket.plan.plan import NoteKind

DEFAULT = QuasiNewton()
"""How an iteration to a tolerance is accelerated if nobody says how; a fixed number is plain then."""


@dataclass(frozen=True)
class Iterate(WrappingOrchestrator):
    """The steps of `inner`, until the values handed on change by less than `tolerance` of their size.

    Values below one count as one. Without a tolerance there are always `at_most` iterations, plain, relaxed
    or by Newton's method; two of them predict and correct. `accelerate` is "plain", "relax", "aitken",
    "quasi-newton", "newton", or one of these with other numbers; left out, it is quasi-Newton to a tolerance,
    and plain without one. Every simulator must be able to roll back.
    """

    inner: Annotated[Orchestrator, "the algorithm of one iteration"] = Jacobi()  # noqa: RUF009 - it is frozen
    tolerance: Annotated[float | None, 'the relative change that ends it; "none": at_most iterations'] = 1e-8
    at_most: Annotated[int, "iterations in a step, at most"] = 50
    accelerate: Annotated[
        Accelerator | str | None, 'how iterations are accelerated; "plain": they are not'
    ] = DEFAULT

    def __post_init__(self) -> None:
        faults = [*self._inner_faults()]
        if not faults and traits_of(self.inner).iterates:
            faults.append(Fault("an iteration of an iteration", "inner", "the algorithm of one iteration"))
        elif not faults and traits_of(self.inner).adaptive:
            hint = "step control around it: `Adaptive(Iterate(...))`"
            faults.append(Fault("an iteration of steps of all lengths", "inner", "one step", hint))
        if self.tolerance is not None and not (is_number(self.tolerance) and self.tolerance > 0.0):
            what = f"a tolerance of {self.tolerance!r} is never met"
            faults.append(Fault(what, "tolerance", "a number above 0, or None for `at_most` iterations"))
        if not is_whole(self.at_most, 1) or self.at_most >= 2**31:
            faults.append(
                Fault(f"`at_most` is {self.at_most!r}", "at_most", "a whole number from 1 to 2^31 - 1")
            )
        led: Any = self.accelerate
        if isinstance(led, str):
            try:
                led = registry.look_up("accelerators", led)
            except ScenarioError as error:
                faults += [replace(fault, place=Place(key="accelerate")) for fault in error.faults]
        elif not isinstance(led, Accelerator | None):
            faults.append(
                Fault(f"`{led!r:.60}` is not an accelerator", "accelerate", "a word such as `aitken`")
            )
        if isinstance(led, Accelerator):
            faults += self._fixed_faults(led)
        if faults:
            raise ScenarioError(faults)
        if self.tolerance is None and led is DEFAULT:
            led = None  # plain: what it is must not hang on which object it was, or copies would be refused
        ends = None if self.tolerance is None else float(self.tolerance)
        set_fields(self, accelerate=led, tolerance=ends)

    @property
    def traits(self) -> OrchestratorTraits:
        """The steps of the one inside, again."""
        return self._describe(", iterated", iterates=True, settles=self.tolerance is not None)

    def needs(self, scenario: Scenario) -> Iterator[CapabilityRequest]:
        """Yield rollback of all."""
        why = "steps are made again until what is exchanged agrees"
        yield CapabilityRequest("rollback", tuple(scenario.models), why)
        yield from super().needs(scenario)

    @property
    def accelerator(self) -> Accelerator | None:
        """How the iteration is led; a fixed number of iterations is plain, or relaxed."""
        made: Any = self.accelerate
        return made if self.tolerance is not None or (made and made.leads_fixed_sweeps) else None

    def _fixed_faults(self, led: Accelerator) -> Iterator[Fault]:
        """Yield why a fixed number of iterations cannot be accelerated so."""
        if self.tolerance is not None or led is DEFAULT:
            return
        if not led.leads_fixed_sweeps:
            what = f"{led.title} leads an iteration to a tolerance, and there is none"
            hint = "a tolerance; or `newton`, which corrects what was predicted"
            yield Fault(what, "accelerate", "`plain`, `relax` or `newton`", hint)
        elif led.predicts and self.at_most == 1:
            what = f"{led.title} corrects what the first iteration predicts, and `at_most` is 1"
            yield Fault(what, "at_most", "2 or more")

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        made: Plan = self.inner.plan(scenario)
        before, sweep, after = _split_body(made.step)
        sims = tuple(dict.fromkeys(i.sim for _, i in walk(sweep) if isinstance(i, Step)))
        hint = "an explicit algorithm; `Replay(model)`, or replay = true in a file, for those cheap enough"
        require_rollback(scenario, sims, "an iteration makes steps again", hint)
        repeated = Repeat((Restore(sims), *sweep), self.tolerance, self.at_most, self.accelerator)
        step: Body = (*before, Save(sims), repeated, *after)
        notes = [
            loop_note(note.subject, self._loop_outcome(), NoteKind.SOLVED_LOOP)
            if note.kind is NoteKind.BROKEN_LOOP
            else note
            for note in made.notes
        ]
        return replace(made, step=step, notes=tuple(notes))

    def _loop_outcome(self) -> str:
        if self.tolerance is None:
            return f"gone around {self.at_most} times in every step"
        led = self.accelerator is not None
        return "solved by the iteration" + ("" if led else ", if its gain is below one")


def _split_body(body: Body) -> tuple[Body, Body, Body]:
    """Return what comes before the first step or feed, what is repeated, and what comes after it."""
    begin, end = 0, len(body)
    while begin < end and isinstance(body[begin], Admit):
        begin += 1
    while end > begin and isinstance(body[end - 1], (Admit, Record)):
        end -= 1
    return body[:begin], body[begin:end], body[end:]
