"""What algorithms, extrapolations and passes of a scenario need of its simulators, and who does not have it.

In:  a level, with levels inside
Out: needs: by whom, of whom, why; whether it is refused without, or what is lost
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hocket.errors import ScenarioError, suggest_nearest
from hocket.model import Model, Scenario, as_level
from hocket.passes.abilities import feedthrough_origin, walk_models
from hocket.passes.asking import (
    PASSES,
    Ask,
    concerned_models,
    event_asks,
    exchange_asks,
    extrapolation_asks,
    name_of,
    needs_past,
    orchestrator_asks,
)
from hocket.passing import with_level_ports
from hocket.simulators.emulating import emulation_layers, innermost_model
from hocket.wiring import wire_unchecked

if TYPE_CHECKING:
    from hocket.engine.composite import Composite


@dataclass(frozen=True)
class Need:
    """Something on a level asks for an ability of some of its simulators."""

    by: str
    """`iterate`, `extrapolation hermite`, `the start`, `pass accuracy`."""
    level: str
    """The path of the level; empty: the outermost."""
    ability: str
    why: str
    loses: str = ""
    """What is lost without it; empty: without it the scenario is refused."""
    of: tuple[str, ...] = ()
    """The paths of those it is asked of; of levels those inside."""
    unmet: tuple[str, ...] = ()
    """Those who cannot."""
    emulated: tuple[str, ...] = ()
    """Those who can by an emulation."""
    part: Fraction = Fraction(1)
    """Of any step: the shortest that will be asked for, as a part of the level's."""

    @property
    def is_required(self) -> bool:
        """Whether the scenario is refused without it."""
        return not self.loses

    @property
    def is_met(self) -> bool:
        """Whether all can."""
        return not self.unmet


def needs(level: Composite, passes: Iterable[str] = ()) -> list[Need]:
    """Return what is needed on a level and on all inside it; nothing is opened.

    Passes are asked where the scenario has something for them, and those named here in any case.
    """
    named = tuple(passes)
    for name in named:
        if name not in PASSES:
            raise ScenarioError(f"there is no pass `{name}`", "passes", "", suggest_nearest(name, PASSES))
    prepared: Any = level.with_scenario(with_level_ports(level.scenario))
    return [*_level_needs(prepared, ""), *_start_needs(prepared), *_pass_needs(prepared, named)]


def _pass_needs(level: Any, named: Sequence[str]) -> Iterator[Need]:
    """Yield what passes need of the outermost level and of those inside."""
    for path, each in _levels_by_path(level):
        scenario: Scenario = each.scenario
        due = {"modularity": bool(scenario.constraints), "distribution": scenario.hosts is not None}
        for name, asks in PASSES.items():
            if not (due.get(name, False) or (name in named and not path)):
                continue
            sims = concerned_models(name, scenario)
            for ability, why, loses in asks if sims else ():
                need = Need(f"pass {name}", path, ability, why, loses)
                yield _answer_need(need, each, [f"{path}.{sim}" if path else sim for sim in sims], path)


def _level_needs(level: Any, path: str) -> Iterator[Need]:
    scenario: Scenario = level.scenario
    wiring = wire_unchecked(scenario)
    name = name_of(level.orchestrator)
    for ask in orchestrator_asks(level.orchestrator, scenario):
        yield _need_from_ask(ask, name, level, path)
    for ask in event_asks(scenario):
        yield _need_from_ask(ask, "events", level, path)
    for extrapolation, ask in extrapolation_asks(level, wiring):
        yield _need_from_ask(ask, f"extrapolation {name_of(extrapolation)}", level, path)
    for ask in exchange_asks(level, wiring):
        yield _need_from_ask(ask, name, level, path)
    for bond_name, bond in scenario.bonds.items():
        if bond.balance == "energy":
            need = Need(
                f"bond {bond_name}", path, "energy", "power is balanced by the energy that each stores"
            )
            yield _answer_need(need, level, _simulators_of_ports(level, path, (bond.effort, bond.flow)), path)
    for child, model in scenario.models.items():
        if as_level(model) is not None:
            yield from _level_needs(model, f"{path}.{child}" if path else child)


def _simulators_of_ports(level: Any, path: str, ports: Iterable[str]) -> list[str]:
    """Return the paths of the simulators that have these ports."""
    known = [here for here, model in walk_models(level, path) if as_level(model) is None]
    inside = f"{path}." if path else ""
    return [here for here in known if any(f"{inside}{port}".startswith(f"{here}.") for port in ports)]


def _start_needs(level: Any) -> Iterator[Need]:
    """Yield what a past for the extrapolators asks of all simulators of the tree."""
    looking = [path for path, each in _levels_by_path(level) if each.start == "window" and needs_past(each)]
    if looking:
        everybody = [path for path, model in walk_models(level) if as_level(model) is None]
        for ability in ("rewind", "variable step"):
            why = "extrapolators get a past from a window of steps that is taken back"
            loses = "the start is cold, and the order is capped at 2, or 3 with slopes"
            yield _answer_need(Need("the start", looking[0], ability, why, loses), level, everybody)


def _levels_by_path(level: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, level
    for here, model in walk_models(level, path):
        if as_level(model) is not None:
            yield here, model


# who can


def _need_from_ask(ask: Ask, by: str, level: Any, path: str) -> Need:
    """Return a need with the answers of those it is asked of."""
    need = Need(by, path, ask.ability, ask.why, ask.loses, part=ask.part)
    known = level.scenario.models
    sims = [sim for sim in ask.sims if sim in known]
    if ask.ability == "variable step":
        return _answer_step_need(need, level, sims, ask.divides)
    return _answer_need(need, level, [f"{path}.{sim}" if path else sim for sim in sims], path)


def _answer_need(need: Need, level: Any, paths: Sequence[str], inside: str = "") -> Need:
    """Return the need with who cannot, and who can by an emulation; levels answer by those in them."""
    models = dict(walk_models(level, inside))
    leaves = list(_simulators_inside(models, paths))
    unmet = tuple(path for path in leaves if not has_ability(models[path], need.ability))
    emulated = tuple(
        path
        for path in leaves
        if any(layer.emulates == need.ability for layer in emulation_layers(models[path]))
    )
    return replace(need, of=tuple(leaves), unmet=unmet, emulated=emulated)


def _simulators_inside(models: dict[str, Model], paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        level = as_level(models[path])
        if level is None:
            yield path
        else:
            yield from _simulators_inside(models, (f"{path}.{name}" for name in level.scenario.models))


def _answer_step_need(need: Need, level: Any, sims: Sequence[str], divides: bool) -> Need:
    """Return the need of steps other than the level's; a level inside can where its own step fits."""
    unmet, emulated, inside = [], [], f"{need.level}." if need.level else ""
    for sim in sims:
        model = level.scenario.models[sim]
        own = getattr(model, "period", None) or (model.step if as_level(model) is not None else None)
        fits = (
            model.abilities.variable_step
            if own is None
            else _step_fits(model, level.step * need.part / own, divides)
        )
        if not fits:
            unmet.append(f"{inside}{sim}")
        elif any(layer.emulates == "variable step" for layer in emulation_layers(model)):
            emulated.append(f"{inside}{sim}")
    of = tuple(f"{inside}{sim}" for sim in sims)
    return replace(need, of=of, unmet=tuple(unmet), emulated=tuple(emulated))


def _step_fits(model: Any, ratio: Fraction, divides: bool) -> bool:
    if getattr(model, "period", None) is None and model.abilities.variable_step:
        return True
    return ratio.denominator == 1 or (ratio.numerator == 1 and not divides)


def has_ability(model: Any, ability: str) -> bool:
    """Return whether a simulator has an ability, by itself or by an emulation."""
    can = model.abilities
    match ability:
        case "rewind":
            return bool(can.rewind)
        case "variable step":
            return bool(can.variable_step)
        case "slopes":
            return bool(can.slopes)
        case "re-evaluation":
            return bool(can.reevaluates)
        case "input degree":
            return can.input_degree is None
        case "feedthrough":
            return not feedthrough_origin(model).startswith("assumed")
        case "energy":
            return getattr(innermost_model(model), "energy", None) is not None
    return False
