"""What kind of co-simulation it is, in the terms of the field (Hafner 2021, chapter 5; Busch 2012).

In:  a Composite
Out: a Classification: what can be told from the scenario and its plans; the rest only its author knows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hocket.analysis import classification as terms
from hocket.analysis.posedness import hidden_ports, posedness
from hocket.model.clock import format_duration
from hocket.model.composite import Composite, algorithm_layers, traits_of
from hocket.model.protocols import step_of
from hocket.orchestrators.multirate import group_by_rate
from hocket.plan import Adapt, Body, Repeat, Restore, Solve, tries, walk
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import StateSpace
from hocket.simulators.wrappers.balanced import Balanced
from hocket.simulators.wrappers.emulation import innermost_model

_ESTIMATES = {
    "defect": "by the defect of the inputs",
    "orders": "by two orders of extrapolation, before the step",
    "richardson": "by two half steps",
    "energy": "by what its bonds gained or lost",
}


def sequence(level: PlanTree) -> str:
    """Return whether simulators step at once or one after the other."""
    return _describe_sequence(level.composite.orchestrator)


def _describe_sequence(orchestrator: Any) -> str:
    return traits_of(orchestrator).words or type(orchestrator).__name__


def iterations(levels: list[PlanTree]) -> str:
    """Return whether steps are made again: predictor and corrector are no iteration (Hafner, 5.7.3.2)."""
    repeats = [found for level in levels for found in instructions_of_kind(level.plan.step, Repeat)]
    if any(not _is_corrector(each) for each in repeats):
        return "iterative"
    solves = any(has_instruction(level.plan.step, Solve) for level in levels)
    return "predictor-corrector" if repeats else "none (loops only)" if solves else "none"


def _is_corrector(repeat: Repeat) -> bool:
    return repeat.until is None and repeat.at_most == 2


def macro_step(level: PlanTree) -> str:
    """Return whether the step of a level is fixed, adaptive (how) or no common one."""
    length, orchestrator = format_duration(level.composite.step), level.composite.orchestrator
    for adapt in instructions_of_kind(level.plan.step, Adapt):
        control = adapt.control
        rejects = "with rejection" if control.rejects else "without rejection"
        return f"{length} at most, adaptive {_ESTIMATES[control.estimate]}, {rejects}"
    apart = traits_of(_innermost_orchestrator(orchestrator)).schedule == "asynchronous"
    if apart and len(_simulator_steps(level)) > 1:
        return f"none in common; all meet every {length}"
    return f"{length}, " + ("shortened at events" if tries(level.plan.step) else "fixed")


def rates(levels: list[PlanTree]) -> set[Fraction]:
    """Return the steps with which anything moves: of levels, of simulators within one, of solvers."""
    own = {
        step
        for level in levels
        for child, model in enumerate(level.wiring.models)
        if child not in level.inner and (step := step_of(model)) is not None
    }
    return own.union(*(_simulator_steps(level) for level in levels))


def _simulator_steps(level: PlanTree) -> set[Fraction]:
    """Return the steps that the simulators of a level are asked to make."""
    composite = level.composite
    rates = traits_of(_innermost_orchestrator(composite.orchestrator)).rates
    if rates is None:
        return {composite.step}
    return {composite.step / group.rate for group in group_by_rate(composite.scenario, rates, nested=False)}


def turns_within_levels(levels: list[PlanTree]) -> tuple[str, ...]:
    """Return how simulators of different rates in one level take turns, for each level that has some."""
    return tuple(
        f"{level.path or 'outermost'}: {_describe_sequence(made).removeprefix('sequential, ')}"
        for level in levels
        if traits_of(made := _innermost_orchestrator(level.composite.orchestrator)).rates is not None
        and len(_simulator_steps(level)) > 1
    )


def scheme(levels: list[PlanTree]) -> str:
    """Return the kind of coupling and its algorithms; semi-implicit: steps are taken back without iterating.

    The word is used so beyond the two methods that Busch names (Hafner 2021, section 5.7.3.2).
    """
    again = iterations(levels)
    kind = "implicit" if again == "iterative" else "semi-implicit" if _uses_rollback(levels) else "explicit"
    kinds = {type(_innermost_orchestrator(level.composite.orchestrator)).__name__ for level in levels}
    return f"{kind}: {', '.join(sorted(kinds))}"


def _uses_rollback(levels: list[PlanTree]) -> bool:
    return any(
        has_instruction(level.plan.step, Repeat)
        or has_instruction(level.plan.step, Restore)
        or any(adapt.control.rejects for adapt in instructions_of_kind(level.plan.step, Adapt))
        for level in levels
    )


def _innermost_orchestrator(orchestrator: Any) -> Any:
    *_, innermost = algorithm_layers(orchestrator)
    return innermost


def has_instruction(body: Body, kind: type) -> bool:
    """Return whether a body has such an instruction at any depth."""
    return next(instructions_of_kind(body, kind), None) is not None


def instructions_of_kind(body: Body, kind: type) -> Iterator[Any]:
    """Yield the instructions of one kind in a body, at any depth."""
    return (each for _, each in walk(body) if isinstance(each, kind))


UNKNOWN = (
    "how it came about: integrate and collaborate (models put together) or divide and conquer (one apart)",
    "the field of application, and hardware or people in the loop",
    "of mechanical systems: where they are cut (force and force, force and displacement, constraint)",
)
_SOLVERS = {
    "euler": "one step, explicit, order 1",
    "implicit-euler": "one step, implicit, order 1",
    "heun": "one step, explicit, order 2",
    "rk4": "one step, explicit, order 4",
    "trapezoid": "one step, implicit, order 2",
    "ab2": "multistep, explicit, order 2",
    "exact": "exact",
    "adaptive": "one step, explicit, adaptive",
    "cvode": "multistep, implicit, adaptive",
}


@dataclass(frozen=True)
class Classification:
    """One record, as the field files them."""

    simulators: int
    levels: int
    descriptions: tuple[tuple[str, int], ...]
    """What the simulators are, and how many of each."""
    solvers: tuple[tuple[str, int], ...]
    hybrid: bool
    """Something is sampled, discrete, or stops at events."""
    coordination: str
    interface: str
    sequence: tuple[tuple[str, str], ...]
    """Per level: parallel, or the order."""
    iterations: str
    steps: tuple[tuple[str, str], ...]
    """Per level."""
    rates: tuple[str, ...]
    """The steps with which anything moves, the longest first: more than one is multirate."""
    within: tuple[str, ...]
    """Per level whose simulators have steps of their own: who goes first."""
    busch: str
    standards: tuple[str, ...]
    unknown: tuple[str, ...] = UNKNOWN

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each term."""
        facts = {
            "subsystems": str(self.simulators),
            "hierarchy": f"{self.levels} levels" if self.levels > 1 else "none",
            "model descriptions": _format_counts(self.descriptions),
            "subsystem solvers": _format_counts(self.solvers),
            "hybrid": "yes" if self.hybrid else "no",
            "coordination": self.coordination,
            "interface": self.interface,
            "sequence": "; ".join(f"{name}: {how}" for name, how in self.sequence),
            "iterations": self.iterations,
            "macro step": "; ".join(f"{name}: {step}" for name, step in self.steps),
            "multirate": _describe_rates(self.rates, self.within),
            "scheme (Busch)": self.busch,
            "standards": ", ".join(self.standards) or "none",
        }
        return [{"term": term, "here": here} for term, here in facts.items()]


def classify(composite: Composite) -> Classification:
    """Return what can be told of a scenario without its author."""
    root = plan_tree(composite)
    levels = list(root.levels())
    models = tuple(map(_innermost_model, root.leaves.wiring.models))
    posed = posedness(composite)
    solves = any(terms.has_instruction(level.plan.step, Solve) for level in levels)
    strong = bool(posed.loops) and posed.solved
    return Classification(
        simulators=len(models),
        levels=len(levels),
        descriptions=_count_kinds(_model_description(model) for model in models),
        solvers=_count_kinds(_solver_description(model) for model in models),
        hybrid=any(_has_jumps(level) for level in levels),
        coordination="orchestrator, " + ("which solves equations" if solves else "at the interfaces only"),
        interface="strong: algebraic loops are solved" if strong else "loose",
        sequence=tuple((level.path or "outermost", terms.sequence(level)) for level in levels),
        iterations=terms.iterations(levels),
        steps=tuple((level.path or "outermost", terms.macro_step(level)) for level in levels),
        rates=tuple(format_duration(rate) for rate in sorted(terms.rates(levels), reverse=True)),
        within=terms.turns_within_levels(levels),
        busch=terms.scheme(levels),
        standards=_fmi_standards(models),
    )


def _describe_rates(rates: tuple[str, ...], within: tuple[str, ...]) -> str:
    if len(rates) < 2:
        return "no"
    return "; ".join((f"{len(rates)} rates: {', '.join(rates)}", *within))


def _format_counts(found: tuple[tuple[str, int], ...]) -> str:
    return "; ".join(f"{count} {what}" for what, count in found)


def _count_kinds(found: Iterator[str]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for each in found:
        counts[each] = counts.get(each, 0) + 1
    return tuple(counts.items())


def _innermost_model(model: Any) -> Any:
    return innermost_model(model.model if isinstance(model, Balanced) else model)


def _model_description(model: Any) -> str:
    match model:
        case StateSpace():
            return "linear ODE" if model.A else "algebraic"
        case Ode():
            return "ODE"
        case Fmu():
            return "FMU for model exchange" if model.exchange else "FMU for co-simulation"
        case Python():
            return "program"
        case Table() | Csv() | Function():
            return "source"
    return type(model).__name__


def _solver_description(model: Any) -> str:
    if isinstance(model, (StateSpace, Ode)) or (isinstance(model, Fmu) and model.exchange):
        return _SOLVERS.get(model.method, model.method) if not _is_stateless(model) else "none"
    return "its own" if isinstance(model, (Fmu, Python)) else "none"


def _is_stateless(model: Any) -> bool:
    return isinstance(model, StateSpace) and not model.A


def _has_jumps(level: PlanTree) -> bool:
    if level.composite.sampled or tries(level.plan.step):
        return True
    return any(
        port.discrete and port.name not in hidden_ports(level, child)
        for child, model in enumerate(level.wiring.models)
        for port in (*model.inputs, *model.outputs)
    )


def _fmi_standards(models: tuple[Any, ...]) -> tuple[str, ...]:
    versions = {model.description.version for model in models if isinstance(model, Fmu)}
    return tuple(f"FMI {version}" for version in sorted(versions))
