"""What can be tightened in a coupling, one thing at a time: macro steps of levels, solvers of simulators.

In:  a Composite
Out: the same Composite with one level or one solver tightened, all else as it was; and what cannot be
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias, cast

from hocket.analysis.linear_models import named_leaves
from hocket.model.composite import Composite
from hocket.model.protocols import IntegratedModel, Model, method_of, provides, step_of
from hocket.orchestrators.adaptive import Adaptive
from hocket.planning.parameters import change_level, is_fmu, leaves, makes_fixed_steps, with_leaves
from hocket.simulators.methods import ORDERS
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.wrappers.emulation import is_emulation

DIVIDED = 4
"""By what micro steps are divided where a solver is made exact enough for a level to be looked at."""
SHARPENED = 1000.0
"""By what tolerances of solvers are divided: what is left of their error is small beside it."""
TIGHTEST = 1e-12
"""The smallest tolerance that a solver is given."""


@dataclass(frozen=True)
class LevelKnob:
    """The macro step of a level, or its tolerance where it controls its steps."""

    path: str
    step: Fraction
    tolerance: float | None
    """Of step control; None: its steps are fixed."""


@dataclass(frozen=True)
class SolverKnob:
    """The solver of a simulator: fixed micro steps, or tolerances."""

    path: str
    method: str
    step: Fraction
    """Its micro step; of solvers with tolerances, the longest one."""
    is_own: bool
    """Whether the step is its own; False: it makes one micro step in each macro step."""
    rtol: float | None
    """None: its steps are fixed."""

    @property
    def order(self) -> int | None:
        """The order of its method; None: it keeps a tolerance."""
        return ORDERS.get(self.method)


Knob: TypeAlias = LevelKnob | SolverKnob


def find_knobs(composite: Composite) -> tuple[list[LevelKnob], list[SolverKnob]]:
    """Return the levels and the solvers that can be tightened, in the order of the scenario."""
    levels = list(_find_levels(composite, ""))
    solvers = []
    for path, model in leaves(composite):
        plain = _unwrap(model)
        if not _has_solver(plain):
            continue
        macro = _level_step(composite, path)
        own = step_of(plain)
        fixed = method_of(plain) in ORDERS
        micro = macro / math.ceil(macro / own) if own is not None and own < macro else macro
        is_own = own is not None and own < macro
        rtol = None if fixed else float(cast("Any", plain).rtol)
        solvers.append(SolverKnob(path, method_of(plain) or "", micro, is_own, rtol))
    return levels, solvers


def find_unjudged(composite: Composite) -> list[str]:
    """Return the simulators of which it is not known how they integrate: nothing in them can be tightened."""
    inserted = {path for path, _ in leaves(composite)}
    return [
        path
        for path, model in named_leaves(composite)
        if path in inserted and not _is_exact(_unwrap(model)) and not _has_solver(_unwrap(model))
    ]


def _find_levels(composite: Composite, path: str) -> Iterator[LevelKnob]:
    if not composite.sampled:
        how = composite.orchestrator
        tolerance = how.tolerance if isinstance(how, Adaptive) else None
        yield LevelKnob(path, composite.step, tolerance)
    for name, model in composite.scenario.models.items():
        if isinstance(model, Composite):
            yield from _find_levels(model, f"{path}.{name}" if path else name)


def _level_step(composite: Composite, path: str) -> Fraction:
    level: Any = composite
    for name in path.split(".")[:-1]:
        level = level.scenario.models[name]
    return level.step  # type: ignore[no-any-return]


def _unwrap(model: Model) -> Model:
    while is_emulation(model):
        model = cast("Any", model).model
    return model


def _is_exact(model: Model) -> bool:
    stateless = provides(model, IntegratedModel) and not len(model.x0)
    return stateless or method_of(model) == "exact" or isinstance(model, (Table, Csv, Function))


def _has_solver(model: Model) -> bool:
    if _is_exact(model):
        return False
    if is_fmu(model):
        return model.exchange
    return makes_fixed_steps(model) or (
        provides(model, IntegratedModel) and method_of(model) in ("adaptive", "cvode")
    )


def tighten_solver(composite: Composite, knob: SolverKnob, part: int) -> Composite:
    """Return the composite with the micro steps of one simulator divided, and its tolerances sharpened."""
    models = dict(leaves(composite))
    return with_leaves(composite, {knob.path: _tighten_model(models[knob.path], knob, part)})


def _tighten_model(model: Model, knob: SolverKnob, part: int) -> Model:
    if is_emulation(model):
        wrapper: Any = model
        return replace(wrapper, model=_tighten_model(wrapper.model, knob, part))  # type: ignore[no-any-return]
    options: dict[str, Any] = {"step": knob.step / part}
    if knob.rtol is not None:
        solver: Any = model
        options |= {"rtol": sharpen(solver.rtol), "atol": sharpen(solver.atol)}
    if is_fmu(model):
        from hocket.simulators.fmu.recipe import remake_fmu

        return remake_fmu(model, **options)
    made: Any = copy.copy(model)
    for name, value in options.items():
        object.__setattr__(made, name, value)
    return made  # type: ignore[no-any-return]


def sharpen(tolerance: float) -> float:
    """Return a tolerance that leaves little of the error."""
    return max(min(TIGHTEST, tolerance), tolerance / SHARPENED)


def tighten_solvers(composite: Composite, knobs: list[SolverKnob]) -> Composite:
    """Return the composite with all solvers tightened: micro steps that divide a quarter of a macro step."""
    for knob in knobs:
        composite = tighten_solver(composite, knob, DIVIDED)
    return composite


def tighten_level(composite: Composite, path: str, part: int) -> Composite:
    """Return the composite with the macro steps of one level divided, and its tolerance by the square.

    Levels inside keep the steps they have: these must divide the shorter one.
    """
    return change_level(composite, path, lambda level: _shorten_level(level, part))


def tighten_inner_levels(composite: Composite, path: str, part: int) -> Composite:
    """Return the composite with the steps of all levels inside one divided: so that its own can be."""
    for level in _find_levels(composite, ""):
        inside = level.path != path and (not path or level.path.startswith(f"{path}."))
        if inside:
            composite = tighten_level(composite, level.path, part)
    return composite


def _shorten_level(level: Composite, part: int) -> Composite:
    how = level.orchestrator
    kept = {
        name: model.with_changes(step=model.step) if isinstance(model, Composite) else model
        for name, model in level.scenario.models.items()
    }
    shorter = level.with_changes(scenario=level.scenario.with_models(kept), step=level.step / part)
    if isinstance(how, Adaptive):
        return shorter.with_changes(orchestrator=replace(how, tolerance=how.tolerance / part**2))
    return shorter
