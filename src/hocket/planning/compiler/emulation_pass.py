"""Capabilities that are missing, emulated where that is possible: models are put into wrappers that say so.

In:  a level and what is needed there
Out: the level with wrappers, what was done and at what price, and what nothing can emulate
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hocket.errors import HocketError
from hocket.model.clock import format_duration
from hocket.model.composite import as_level, traits_of
from hocket.model.protocols import Model, period_of, step_of
from hocket.planning.compiler.capabilities import Need, needs
from hocket.planning.parameters import walk_models, with_leaves
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.wrappers.derivatives import Sloped
from hocket.simulators.wrappers.emulation import emulation_layers, innermost_model
from hocket.simulators.wrappers.feedthrough_probe import Reacting, probe_feedthrough
from hocket.simulators.wrappers.replay import Replay
from hocket.simulators.wrappers.substeps import Substepped

if TYPE_CHECKING:
    from hocket.model.composite import Composite


SHORT = Fraction(1, 1000)
"""The length of a trial step, as a part of the level's."""
ROUNDS = 4
"""Slopes by trial steps want what an earlier round brings."""


@dataclass(frozen=True)
class Emulation:
    """One capability of one simulator that is emulated."""

    path: str
    capability: str
    how: str
    price: str
    why: str


@dataclass(frozen=True)
class EmulationResult:
    """A level in which what can be emulated is."""

    level: Composite
    done: tuple[Emulation, ...]
    left: tuple[Need, ...]
    """What is refused without, and nothing can emulate."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each emulation."""
        return [{"simulator": e.path, "emulated": e.how, "price": e.price, "for": e.why} for e in self.done]


def emulate_missing(
    level: Composite, *, wanted: bool = False, probe: bool = False, passes: Sequence[str] = ()
) -> EmulationResult:
    """Return the level with a wrapper for each capability that is needed and missing.

    `wanted`: also for what is only lost without. `probe`: feedthrough that is not declared is tried out; only
    then are models opened.
    """
    done: dict[tuple[str, str], Emulation] = {}
    for _ in range(ROUNDS):
        made: dict[str, Model] = {}
        for need in needs(level, passes):
            asked = need.is_required or wanted or (probe and need.capability == "feedthrough")
            for path in need.unmet if asked else ():
                if path in made:
                    continue  # one wrapper at a time: the next round sees what it brings
                wrapped = wrap_for_need(level, path, need, probe)
                if wrapped is not None:
                    made[path] = wrapped
                    layer = _emulating_layer(wrapped, need.capability)
                    done[path, need.capability] = Emulation(
                        path, need.capability, layer.emulation, layer.price, f"{need.by}: {need.why}"
                    )
        if not made:
            break
        level = with_leaves(level, made)
    left = tuple(need for need in needs(level, passes) if need.is_required and need.unmet)
    return EmulationResult(level, tuple(done.values()), left)


def wrap_for_need(level: Any, path: str, need: Need, probe: bool = False) -> Model | None:
    """Return the model at a path with a wrapper for what is needed; None: there is none for it."""
    model = dict(walk_models(level)).get(path)
    if model is None or as_level(model) is not None:
        return None
    own = _level_around(level, path)
    match need.capability:
        case "rollback":
            return _add_wrapper(model, Replay)
        case "variable step" if not model.capabilities.stops_early and period_of(model) is None:
            return _add_wrapper(model, Substepped, choose_substep(own, model, need))
        case "slopes":
            real = model.capabilities.rollback and not any(
                isinstance(each, Replay) for each in emulation_layers(model)
            )
            short = real and model.capabilities.variable_step
            return _add_wrapper(model, Sloped, own.step * SHORT if short else None)
        case "feedthrough" if probe and model.capabilities.reevaluates:
            return _wrap_with_probe(model, float(own.step))
    return None


def remedy(level: Any, path: str, need: Need) -> str:
    """Return what would emulate a capability, in the words of a file; empty: nothing does."""
    if need.capability == "feedthrough":
        return "probing: --probe"
    made: Any = wrap_for_need(level, path, need)
    if made is None:
        return ""
    ((key, value),) = _emulating_layer(made, need.capability).file_keys.items()
    return f"{key} = {json.dumps(value)}"


def _emulating_layer(model: Any, capability: str) -> Any:
    return next(each for each in emulation_layers(model) if each.emulates == capability)


def other_remedy(level: Any, path: str, need: Need) -> str:
    """Return what helps where no wrapper does; empty: nothing is known to."""
    model: Any = dict(walk_models(level)).get(path)
    if need.capability == "variable step" and model is not None:
        own, around = period_of(model) or step_of(model), _level_around(level, path)
        if own is not None and traits_of(around.orchestrator).adaptive:
            part = own / around.step
            if part <= 1 and (1 / part).denominator == 1:
                return f'quantum = "{part}" (and `first` a multiple): then all steps are multiples of its own'
        if own is not None:
            return f"a step around it that is a multiple of {format_duration(own)}"
    if need.capability == "input degree":
        shorter = format_duration(_level_around(level, path).step / 8)
        return f'substep = "{shorter}": inputs are taken anew in each sub-step'
    return ""


def choose_substep(level: Any, model: Model, need: Need) -> Fraction:
    """Return the sub-step for a simulator: its own if it tells one, else the one that will be asked for.

    Step control asks for any; its first step is taken.
    """
    bare = innermost_model(model)
    if isinstance(bare, Fmu) and not bare.exchange:
        told = bare.interface_used.fixed_step or bare.description.step
        if told is not None and told > 0.0:
            own = Fraction(str(told))
            if own <= level.step:
                return own
    control = traits_of(level.orchestrator)
    part = control.first if control.adaptive else need.part
    return Fraction(level.step * part)


def _level_around(level: Any, path: str) -> Any:
    """Return the level that a model is in."""
    above = path.rpartition(".")[0]
    return dict(walk_models(level))[above] if above else level


def _add_wrapper(model: Any, kind: Any, *arguments: Any) -> Model:
    """Return the model with one more wrapper, which stands in its place among those it has."""
    outer = []
    while layered := next(emulation_layers(model), None):
        if layered.rank <= kind.rank:
            break
        outer.append(layered)
        model = layered.model
    made = kind(model, *arguments)
    for layer in reversed(outer):
        made = replace(layer, model=made)
    found: Model = made
    return found


def _wrap_with_probe(model: Any, h: float) -> Model | None:
    """Return the model with the reactions that show; None: it cannot be tried."""
    try:
        seen = probe_feedthrough(innermost_model(model), h)
    except (HocketError, ArithmeticError, ValueError, TypeError):
        return None
    return _add_wrapper(model, Reacting, seen, True)
