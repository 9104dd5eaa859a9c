"""What kind of co-simulation it is, in the terms of the field (Hafner 2021, chapter 5; Busch 2012).

In:  a Composite
Out: a Classification: what can be told from the scenario and its plans; the rest only its author knows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hocket.analysis import terms
from hocket.analysis.hidden import hidden_ports
from hocket.analysis.posedness import posedness
from hocket.clock import format_duration
from hocket.engine.blueprint import PlanTree
from hocket.engine.composite import Composite
from hocket.plan import Solve, tries
from hocket.simulators.balanced import Balanced
from hocket.simulators.emulating import innermost_model
from hocket.simulators.fmu import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import StateSpace

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
    root = composite.blueprint
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
