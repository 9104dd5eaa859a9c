"""What kind of co-simulation it is, in the terms of the field (Hafner 2021, chapter 5; Busch 2012).

In:  a Composite
Out: what can be told from the scenario and its plans, term by term; the rest only its author knows
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
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
from hocket.simulators.constraint import Coupler
from hocket.simulators.dae import Dae
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


def _multirate(levels: list[PlanTree]) -> str:
    """Return the rates, the slowest first, and how simulators of different rates in one level take turns."""
    rates = [format_duration(rate) for rate in sorted(_rates(levels), reverse=True)]
    mixed = [
        level
        for level in levels
        if traits_of(_innermost(level)).rates is not None and len(_simulator_steps(level)) > 1
    ]
    turns = _per_level(mixed, lambda level: _sequence(_innermost(level)).removeprefix("sequential, "))
    told = filter(None, (f"{len(rates)} rates: {', '.join(rates)}", turns))
    return "; ".join(told) if len(rates) > 1 else "no"


def _scheme(root: PlanTree) -> str:
    """Return the kind of coupling and its algorithms; semi-implicit: steps are taken back without iterating.

    The word is used so beyond the two methods that Busch names (Hafner 2021, section 5.7.3.2).
    """
    rollback = any(root.instructions(Repeat)) or any(root.instructions(Restore))
    rollback = rollback or any(adapt.control.rejects for _, adapt in root.instructions(Adapt))
    kind = "implicit" if _iterations(root) == "iterative" else "semi-implicit" if rollback else "explicit"
    return f"{kind}: {', '.join(sorted({type(_innermost(level)).__name__ for level in root.levels()}))}"


def _interface(root: PlanTree, levels: list[PlanTree], composite: Composite) -> str:
    """Return strong where all make the same steps and iterate in each (Hafner 2021, definition 2.9)."""
    if _iterations(root) == "iterative" and len(_rates(levels)) == 1:
        return "strong: the same steps, iterated"
    posed = posedness(composite)
    return "loose; algebraic loops are solved" if posed.loops and posed.solved else "loose"


def _multirate_factor(level: PlanTree) -> str:
    """Return H/h: the step of a level over the shortest step in it (Hafner 2021, section 2.4)."""
    steps = _rates([level])
    return f"{float(level.composite.step / min(steps)):g}"


def _tools_and_integrators(models: list[Any]) -> str:
    """Return how many tools and integrators there are: co-simulation has several (Geimer et al. 2006).

    An FMU for co-simulation and a program of one's own bring their own; hocket is the tool of all others.
    """
    moving = [model for model in models if _solver_description(model) != "none"]
    foreign = [model for model in moving if _solver_description(model) == "its own"]
    tools = len(foreign) + (len(moving) > len(foreign))
    count = f"{_count_words(tools, 'tool')}, {_count_words(len(moving), 'integrator')}"
    if tools > 1:
        return f"{count}: co-simulation of several tools"
    return f"{count}: " + ("distributed integration in one tool" if len(moving) > 1 else "one simulation")


def _count_words(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


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


def classify(composite: Composite) -> dict[str, str]:
    """Return what can be told of a scenario without its author, by term, as the field files them."""
    root = plan_tree(composite)
    levels = list(root.levels())
    models = [
        innermost_model(model.model if isinstance(model, Balanced) else model)
        for model in root.leaves.wiring.models
    ]
    solves = any(root.instructions(Solve)) or any(isinstance(model, Coupler) for model in models)
    versions = {model.description.version for model in models if isinstance(model, Fmu)}
    return {
        "subsystems": str(len(models)),
        "hierarchy": f"{len(levels)} levels" if len(levels) > 1 else "none",
        "model descriptions": _count_kinds(map(_model_description, models)),
        "subsystem solvers": _count_kinds(map(_solver_description, models)),
        "hybrid": "yes" if any(map(_has_jumps, levels)) else "no",
        "coordination": "orchestrator, " + ("which solves equations" if solves else "at the interfaces only"),
        "interface": _interface(root, levels, composite),
        "sequence": _per_level(levels, lambda level: _sequence(level.composite.orchestrator)),
        "iterations": _iterations(root),
        "macro step": _per_level(levels, _macro_step),
        "multirate": _multirate(levels),
        "multirate factor": _per_level(levels, _multirate_factor),
        "scheme (Busch)": _scheme(root),
        "tools and integrators (Geimer)": _tools_and_integrators(models),
        "standards": ", ".join(f"FMI {version}" for version in sorted(versions)) or "none",
    }


def _per_level(levels: list[PlanTree], describe: Callable[[PlanTree], str]) -> str:
    return "; ".join(f"{level.path or 'outermost'}: {describe(level)}" for level in levels)


def _count_kinds(kinds: Iterable[str]) -> str:
    return "; ".join(f"{count} {kind}" for kind, count in Counter(kinds).items())


def _model_description(model: Any) -> str:
    match model:
        case StateSpace():
            return "linear ODE" if model.A else "algebraic"
        case Ode():
            return "ODE"
        case Dae():
            return "DAE of index 1"
        case Fmu():
            return "FMU for model exchange" if model.exchange else "FMU for co-simulation"
        case Python():
            return "program"
        case Table() | Csv() | Function():
            return "source"
    return type(model).__name__


def _solver_description(model: Any) -> str:
    if isinstance(model, Dae):
        return _SOLVERS["cvode"]
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
