"""Algorithms of levels in the terms of the field (Hafner 2021, sections 5.7 and 5.8; Busch 2012).

In:  levels with their orchestrators and plans
Out: a few words each: sequence, iterations, macro step, rates, scheme
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from hocket.clock import format_duration
from hocket.engine.blueprint import PlanTree
from hocket.orchestrators import Asynchronous, GaussSeidel, Iterate, Jacobi, Multirate
from hocket.orchestrators.adaptive import Adaptive
from hocket.orchestrators.rates import group_by_rate
from hocket.plan import Adapt, Body, Repeat, Restore, Solve, tries, walk

_FIRST = {
    "slowest-first": "slowest first",
    "fastest-first": "fastest first",
    "compound": "mixed: a compound step",
}
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
    match orchestrator:
        case Adaptive():
            return _describe_sequence(orchestrator.inner)
        case Iterate():
            return f"{_describe_sequence(orchestrator.inner)}, iterated"
        case Jacobi():
            return "parallel"
        case GaussSeidel():
            return "sequential" + (", order found" if orchestrator.order == "auto" else ", order given")
        case Multirate():
            return f"sequential, {_FIRST[orchestrator.scheme]}"
        case Asynchronous():
            return "sequential, who is furthest behind"
    return type(orchestrator).__name__


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
    if isinstance(_innermost_orchestrator(orchestrator), Asynchronous) and len(_simulator_steps(level)) > 1:
        return f"none in common; all meet every {length}"
    return f"{length}, " + ("shortened at events" if tries(level.plan.step) else "fixed")


def rates(levels: list[PlanTree]) -> set[Fraction]:
    """Return the steps with which anything moves: of levels, of simulators within one, of solvers."""
    own = {
        step
        for level in levels
        for child, model in enumerate(level.wiring.models)
        if child not in level.inner and isinstance(step := getattr(model, "step", None), Fraction)
    }
    return own.union(*(_simulator_steps(level) for level in levels))


def _simulator_steps(level: PlanTree) -> set[Fraction]:
    """Return the steps that the simulators of a level are asked to make."""
    made, composite = _innermost_orchestrator(level.composite.orchestrator), level.composite
    if not isinstance(made, (Multirate, Asynchronous)):
        return {composite.step}
    return {
        composite.step / group.rate for group in group_by_rate(composite.scenario, made.rates, nested=False)
    }


def turns_within_levels(levels: list[PlanTree]) -> tuple[str, ...]:
    """Return how simulators of different rates in one level take turns, for each level that has some."""
    return tuple(
        f"{level.path or 'outermost'}: {_describe_sequence(made).removeprefix('sequential, ')}"
        for level in levels
        if isinstance(
            made := _innermost_orchestrator(level.composite.orchestrator), (Multirate, Asynchronous)
        )
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
    return (
        _innermost_orchestrator(orchestrator.inner)
        if isinstance(orchestrator, (Adaptive, Iterate))
        else orchestrator
    )


def has_instruction(body: Body, kind: type) -> bool:
    """Return whether a body has such an instruction at any depth."""
    return next(instructions_of_kind(body, kind), None) is not None


def instructions_of_kind(body: Body, kind: type) -> Iterator[Any]:
    """Yield the instructions of one kind in a body, at any depth."""
    return (each for _, each in walk(body) if isinstance(each, kind))
