"""Levels that are stepped as a whole: told how far, they get there by their own algorithm.

In:  a level with levels in it whose simulators cannot be told the time one by one
Out: the same, with levels that accept any step on a grid, and show all that is inside
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hocket.clock import common_tick
from hocket.model import Connection, Model, Port, Scenario, as_level
from hocket.orchestrators.adaptive import Adaptive
from hocket.orchestrators.jacobi import Jacobi
from hocket.passing import with_level_ports
from hocket.signals import Hold

if TYPE_CHECKING:
    from hocket.engine.composite import Composite

WHOLE = "whole"
"""The name of a level in which all is that was."""
GRID = 2**20
"""Parts of the longest step that all share."""
ANY = 1e300
"""The tolerance of a level whose own step control has nothing to say."""


def is_told_inside(level: Any, step: Fraction) -> bool:
    """Return whether the simulators of a level are told the time themselves: it exchanges as those around."""
    curved = [level.extrapolation, *(each.extrapolation for each in level.scenario.connections)]
    inner = [as_level(model) for model in level.scenario.models.values()]
    return (
        level.step == step
        and is_plain_jacobi(level)
        and not level.sampled
        and all(each is None or isinstance(each, Hold) for each in curved)
        and all(each is None or is_told_inside(each, step) for each in inner)
    )


def told_models(scenario: Scenario, step: Fraction, inside: str = "") -> Iterator[tuple[str, Model]]:
    """Yield those that are told the time, each with its path: simulators, and levels as a whole."""
    for name, model in scenario.models.items():
        level = as_level(model)
        if level is not None and is_told_inside(level, step):
            yield from told_models(level.scenario, step, f"{inside}{name}.")
        else:
            yield f"{inside}{name}", model


def is_plain_jacobi(level: Any) -> bool:
    """Return whether a level is run as simply as can be: Jacobi, with consistent outputs."""
    return type(level.orchestrator) is Jacobi and level.orchestrator == Jacobi()


def enclose_level(level: Composite) -> Composite:
    """Return a plain level around another that is stepped as a whole."""
    outputs = [Connection(f"{WHOLE}.{port.name}", port.name) for port in level.scenario.outputs]
    around = Scenario({WHOLE: level}, outputs, outputs=level.scenario.outputs, hosts=level.scenario.hosts)
    return level.with_changes(scenario=around, orchestrator=Jacobi(), extrapolation=Hold())


def levels_as_wholes(level: Composite) -> dict[str, Any]:
    """Return the levels that are stepped as a whole."""
    found = {name: as_level(model) for name, model in level.scenario.models.items()}
    return {
        name: each
        for name, each in found.items()
        if each is not None and not is_told_inside(each, level.step)
    }


def grid(level: Composite, *times: Fraction) -> Fraction | None:
    """Return the time of which all steps must be whole multiples; None: any will do."""
    steps = [each.step for each in levels_as_wholes(level).values()]
    return common_tick([*steps, level.step, *(time for time in times if time)]) / GRID if steps else None


def with_variable_steps(level: Composite, quantum: Fraction) -> Composite:
    """Return the level with those in it ready for any step that is a multiple of the quantum."""
    shown = {name: _show_all_outputs(each) for name, each in levels_as_wholes(level).items()}
    scenario = with_level_ports(level.scenario.with_models({**level.scenario.models, **shown}))
    ready: dict[str, Any] = {}
    for name in shown:
        ready[name] = _with_quantum(scenario.models[name], quantum)
    return level.with_changes(scenario=scenario.with_models({**scenario.models, **ready}))


def _with_quantum(level: Any, quantum: Fraction) -> Any:
    """Return a level, and those inside it, ready for any step that is a multiple of the quantum."""
    inner = {name: model for name, model in level.scenario.models.items() if as_level(model)}
    ready = {name: _with_quantum(model, quantum) for name, model in inner.items()}
    return level.with_changes(
        scenario=level.scenario.with_models({**level.scenario.models, **ready}),
        orchestrator=_adaptive_orchestrator(level.orchestrator, quantum / level.step),
    )


def _adaptive_orchestrator(orchestrator: Any, part: Fraction) -> Adaptive:
    if isinstance(orchestrator, Adaptive):
        return replace(orchestrator, quantum=part)
    return Adaptive(orchestrator, tolerance=ANY, quantum=part, first=Fraction(1), rejects=False)


def _show_all_outputs(level: Any) -> Any:
    """Return a level with an output for each of those of the simulators in it."""
    scenario: Scenario = level.scenario
    every = [
        (f"{name}.{port.name}", port)
        for name, model in scenario.models.items()
        for port in (_show_all_outputs(model) if as_level(model) else model).outputs
    ]
    new = [(path, port) for path, port in every if path not in scenario.output_names]
    return level.with_changes(
        scenario=scenario.with_changes(
            connections=(*scenario.connections, *(Connection(path, path) for path, _ in new)),
            outputs=(
                *scenario.outputs,
                *(Port(path, port.unit, type=port.type, held=port.held) for path, port in new),
            ),
        )
    )
