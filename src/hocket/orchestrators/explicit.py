"""What algorithms share: how values pass between the steps, and what one around another takes from it.

In:  a Wiring and the steps of an algorithm; or an orchestrator inside
Out: the Plan around these steps; modes of exchange and needs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, get_args

from hocket.coupling.feedthrough import Feedthrough, Round
from hocket.coupling.wiring import Wiring
from hocket.errors import Fault, ScenarioError, list_names
from hocket.model.arguments import choice_faults
from hocket.model.composite import (
    CapabilityRequest,
    DemandingOrchestrator,
    InputsMode,
    Orchestrator,
    OrchestratorTraits,
    OutputsMode,
    Schedule,
    is_orchestrator,
    traits_of,
)
from hocket.model.protocols import ProbedModel, provides
from hocket.model.scenario import Scenario
from hocket.plan import Admit, Body, Feed, Instruction, Plan, Read, Record, Solve, Step, Together
from hocket.plan.instructions import WHOLE
from hocket.plan.plan import Note, NoteKind


@dataclass(frozen=True, kw_only=True)
class ExplicitOrchestrator:
    """How values pass between the steps.

    `outputs`: "consistent" exchanges inputs and evaluates outputs again in feedthrough order, with
    algebraic loops solved; "stale" evaluates them with the inputs of the step just made.
    `inputs`: "clean" lets a new input from outside act from the first inner step on, "delayed" one inner
    step late (as in the tables of Hafner's thesis).
    """

    outputs: Annotated[OutputsMode, "whether outputs are evaluated again after the exchange"] = "consistent"
    inputs: Annotated[InputsMode, "when a new input from outside begins to act"] = "clean"

    def __post_init__(self) -> None:
        faults = [
            *choice_faults("outputs", self.outputs, get_args(OutputsMode)),
            *choice_faults("inputs", self.inputs, get_args(InputsMode)),
        ]
        if faults:
            raise ScenarioError(faults)

    def _describe(self, schedule: Schedule, words: str, **more: Any) -> OrchestratorTraits:
        """Return the traits of such an algorithm."""
        return OrchestratorTraits(schedule, words, outputs=self.outputs, inputs=self.inputs, **more)

    def _plan_around(self, scenario: Scenario, wiring: Wiring, steps: Body) -> Plan:
        """Return the plan that admits, steps, evaluates again where asked for, and records."""
        graph = Feedthrough(wiring)
        consistent = self.outputs == "consistent"
        again = graph.rounds() if consistent else []
        asked = graph.rounds(only_from_outside=True) if consistent and self.inputs == "clean" else []
        admit: Body = (Admit(),) if scenario.inputs else ()
        clean = self.inputs == "clean"
        step: Body = (
            *(admit if clean else ()),
            *steps,
            *evaluation_body(graph, again),
            *(_refresh_slopes(wiring) if consistent else ()),
            *(() if clean else admit),
            Record(),
        )
        return Plan(
            step=step,
            output=(*admit, *evaluation_body(graph, asked), Record()) if asked else (),
            outputs=self.outputs,
            notes=(_loop_note(graph, consistent),) if graph.loops else (),
        )


def evaluation_body(graph: Feedthrough, rounds: list[Round]) -> Body:
    """Return rounds of evaluation as instructions."""
    names = graph.wiring.names
    body: list[Instruction] = []
    for turn in rounds:
        if turn.loop:
            ports = tuple(graph.name(node) for node in turn.loop)
            body.append(Solve(tuple(names[child] for child in turn.children), ports))
        else:
            body += in_parallel(Feed(names[child]) for child in turn.children)
            body += in_parallel(Read(names[child]) for child in turn.children)
    return tuple(body)


def in_parallel(alike: Iterable[Instruction]) -> Body:
    """Return instructions that may run side by side as at most one."""
    bodies: tuple[Body, ...] = tuple((instruction,) for instruction in alike)
    return (Together(bodies),) if len(bodies) > 1 else bodies[0] if bodies else ()


def step_body(scenario: Scenario, sims: Iterable[str], part: Fraction = WHOLE, read: bool = True) -> Body:
    """Return the step of simulators side by side: all are fed, step, and are read unless that comes later."""
    listed = list(sims)
    fed = in_parallel(Feed(sim) for sim in listed if scenario.models[sim].inputs)
    stepped = in_parallel(Step(sim, part) for sim in listed)
    return (*fed, *stepped, *(read_body(scenario, listed) if read else ()))


def read_body(scenario: Scenario, sims: Iterable[str]) -> Body:
    """Return how the outputs of simulators are read; those without any need not."""
    return in_parallel(Read(sim) for sim in sims if scenario.models[sim].outputs)


def _refresh_slopes(wiring: Wiring) -> Body:
    """Let slopes follow the values just exchanged: all that tell slopes are fed and read again."""
    told = {
        drive.child
        for drives in wiring.drives
        for drive in drives
        if drive is not None
        and drive.child >= 0
        and drive.extrapolation is not None
        and drive.extrapolation.slopes
    }
    names = [wiring.names[child] for child in sorted(told) if wiring.models[child].inputs]
    return (*in_parallel(Feed(name) for name in names), *in_parallel(Read(name) for name in names))


def loop_note(loops: str, outcome: str, kind: NoteKind) -> Note:
    """Return what becomes of algebraic loops."""
    return Note(f"the algebraic loop {loops} is {outcome}", kind, loops)


def _loop_note(graph: Feedthrough, solved: bool) -> Note:
    loop = " -> ".join(graph.name(node) for node in graph.loops[0])
    more = f" and {len(graph.loops) - 1} more" if len(graph.loops) > 1 else ""
    if solved:
        return loop_note(f"{loop}{more}", "solved in every step", NoteKind.SOLVED_LOOP)
    outcome = "broken by a delay of one step: it grows if its gain is above one"
    return loop_note(f"{loop}{more}", outcome, NoteKind.BROKEN_LOOP)


class WrappingOrchestrator:
    """An algorithm that does what another one does, again or in other steps."""

    inner: Orchestrator

    def _describe(self, words: str, **more: Any) -> OrchestratorTraits:
        """Return the traits of such an algorithm: values pass as in the one inside."""
        inner = traits_of(self.inner)
        name = f"{inner.words or type(self.inner).__name__}{words}"
        return OrchestratorTraits(
            words=name, inner=self.inner, outputs=inner.outputs, inputs=inner.inputs, **more
        )

    def needs(self, scenario: Scenario) -> Iterator[CapabilityRequest]:
        """Yield what the algorithm inside asks for."""
        if isinstance(self.inner, DemandingOrchestrator):
            yield from self.inner.needs(scenario)

    def _inner_faults(self) -> Iterator[Fault]:
        """Yield why the algorithm inside cannot be one."""
        if not is_orchestrator(self.inner):
            yield Fault(f"`{self.inner!r:.60}` is not an orchestrator", "inner", "an object: `Jacobi()`")


def require_rollback(scenario: Scenario, sims: Iterable[str], why: str, hint: str) -> None:
    """Raise ScenarioError where simulators whose steps are made again cannot roll back."""
    stuck = sorted(sim for sim in sims if not scenario.models[sim].capabilities.rollback)
    if stuck:
        expected = "simulators with save() and restore(), FMUs with canGetAndSetFMUstate"
        what = f"{why}, and {list_names(stuck, 6)} cannot roll back{_refutations(scenario, stuck)}"
        raise ScenarioError(what, "orchestrator", expected, hint)


def _refutations(scenario: Scenario, stuck: Iterable[str]) -> str:
    """Return what trials found of those which declare that they can roll back."""
    found = [
        f"`{sim}` declares it, but a trial found: {model.refuted['rollback']}"
        for sim in stuck
        if provides(model := scenario.models[sim], ProbedModel) and "rollback" in model.refuted
    ]
    again = " (after a change of the FMU, or of what it needs here, probe it again)" if found else ""
    return "".join(f"; {each}" for each in found) + again
