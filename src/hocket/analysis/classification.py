"""What kind of co-simulation it is, in the terms of the field (Hafner 2021, chapter 5; Busch 2012).

In:  a Composite
Out: a Classification: what can be told from the scenario and its plans; the rest only its author knows
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hocket.analysis.posedness import hidden_ports, posedness
from hocket.model.clock import format_duration
from hocket.model.composite import Composite, algorithm_layers, traits_of
from hocket.model.protocols import step_of
from hocket.orchestrators.multirate import group_by_rate
from hocket.plan import Adapt, Repeat, Restore, Solve, tries, walk
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


def _sequence(orchestrator: Any) -> str:
    """Return whether simulators step at once or one after the other."""
    return traits_of(orchestrator).words or type(orchestrator).__name__


def _iterations(root: PlanTree) -> str:
    """Return whether steps are made again: predictor and corrector are not an iteration (Hafner, 5.7.3.2)."""
    loops = [loop for _, loop in root.instructions(Repeat)]
    if any(loop.until is not None or loop.at_most != 2 for loop in loops):
        return "iterative"
    solves = any(root.instructions(Solve))
    return "predictor-corrector" if loops else "none (loops only)" if solves else "none"


def _macro_step(level: PlanTree) -> str:
    """Return whether the step of a level is fixed, adaptive (how) or no common one."""
    length = format_duration(level.composite.step)
    for _, each in walk(level.plan.step):
        if isinstance(each, Adapt):
            rejects = "with rejection" if each.control.rejects else "without rejection"
            return f"{length} at most, adaptive {_ESTIMATES[each.control.estimate]}, {rejects}"
    if traits_of(_innermost(level)).schedule == "asynchronous" and len(_simulator_steps(level)) > 1:
        return f"none in common; all meet every {length}"
    return f"{length}, " + ("shortened at events" if tries(level.plan.step) else "fixed")


def _rates(levels: list[PlanTree]) -> set[Fraction]:
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
    composite, rates = level.composite, traits_of(_innermost(level)).rates
    if rates is None:
        return {composite.step}
    return {composite.step / group.rate for group in group_by_rate(composite.scenario, rates, nested=False)}


def _turns_within(levels: list[PlanTree]) -> tuple[str, ...]:
    """Return how simulators of different rates in one level take turns, for each level that has some."""
    return tuple(
        f"{level.path or 'outermost'}: {_sequence(_innermost(level)).removeprefix('sequential, ')}"
        for level in levels
        if traits_of(_innermost(level)).rates is not None and len(_simulator_steps(level)) > 1
    )


def _scheme(root: PlanTree) -> str:
    """Return the kind of coupling and its algorithms; semi-implicit: steps are taken back without iterating.

    The word is used so beyond the two methods that Busch names (Hafner 2021, section 5.7.3.2).
    """
    rollback = any(root.instructions(Repeat)) or any(root.instructions(Restore))
    rollback = rollback or any(adapt.control.rejects for _, adapt in root.instructions(Adapt))
    kind = "implicit" if _iterations(root) == "iterative" else "semi-implicit" if rollback else "explicit"
    return f"{kind}: {', '.join(sorted({type(_innermost(level)).__name__ for level in root.levels()}))}"


def _innermost(level: PlanTree) -> Any:
    """Return the algorithm of one step of a level."""
    *_, innermost = algorithm_layers(level.composite.orchestrator)
    return innermost


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
        rates = f"{len(self.rates)} rates: {', '.join(self.rates)}"
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
            "multirate": "; ".join((rates, *self.within)) if len(self.rates) > 1 else "no",
            "scheme (Busch)": self.busch,
            "standards": ", ".join(self.standards) or "none",
        }
        return [{"term": term, "here": here} for term, here in facts.items()]


def classify(composite: Composite) -> Classification:
    """Return what can be told of a scenario without its author."""
    root = plan_tree(composite)
    levels = list(root.levels())
    models = tuple(
        innermost_model(model.model if isinstance(model, Balanced) else model)
        for model in root.leaves.wiring.models
    )
    posed = posedness(composite)
    solves = any(root.instructions(Solve))
    named = [(level.path or "outermost", level) for level in levels]
    versions = {model.description.version for model in models if isinstance(model, Fmu)}
    return Classification(
        simulators=len(models),
        levels=len(levels),
        descriptions=tuple(Counter(map(_model_description, models)).items()),
        solvers=tuple(Counter(map(_solver_description, models)).items()),
        hybrid=any(_has_jumps(level) for level in levels),
        coordination="orchestrator, " + ("which solves equations" if solves else "at the interfaces only"),
        interface="strong: algebraic loops are solved" if posed.loops and posed.solved else "loose",
        sequence=tuple((name, _sequence(level.composite.orchestrator)) for name, level in named),
        iterations=_iterations(root),
        steps=tuple((name, _macro_step(level)) for name, level in named),
        rates=tuple(format_duration(rate) for rate in sorted(_rates(levels), reverse=True)),
        within=_turns_within(levels),
        busch=_scheme(root),
        standards=tuple(f"FMI {version}" for version in sorted(versions)),
    )


def _format_counts(found: tuple[tuple[str, int], ...]) -> str:
    return "; ".join(f"{count} {what}" for what, count in found)


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
    stateless = isinstance(model, StateSpace) and not model.A
    if isinstance(model, (StateSpace, Ode)) or (isinstance(model, Fmu) and model.exchange):
        return "none" if stateless else _SOLVERS.get(model.method, model.method)
    return "its own" if isinstance(model, (Fmu, Python)) else "none"


def _has_jumps(level: PlanTree) -> bool:
    return (
        level.composite.sampled
        or tries(level.plan.step)
        or any(
            port.discrete and port.name not in hidden_ports(level, child)
            for child, model in enumerate(level.wiring.models)
            for port in (*model.inputs, *model.outputs)
        )
    )
