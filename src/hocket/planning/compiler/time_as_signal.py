"""Simulators that are told the time: what they and their level must be, for time to become a signal.

In:  a level
Out: what stands in the way
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hocket.coupling.feedthrough import feedthrough_graph
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import scenario_faults
from hocket.errors import Fault
from hocket.model.clock import common_tick
from hocket.model.composite import algorithm_layers, as_level, levels, traits_of
from hocket.model.extrapolators import Hold, Polynomial
from hocket.model.protocols import Model, period_of, text_ports
from hocket.model.scenario import Connection, Scenario
from hocket.orchestrators.adaptive import Adaptive
from hocket.orchestrators.jacobi import Jacobi
from hocket.planning.compiler.contract import unsolved_loops
from hocket.planning.compiler.sublevels import show_outputs
from hocket.planning.parameters import change_levels
from hocket.simulators.wrappers.timed import reserved_inputs

if TYPE_CHECKING:
    from hocket.model.composite import Composite


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


def has_told_levels(level: Composite) -> bool:
    """Return whether a level has others in it whose simulators are told the time themselves."""
    inner = map(as_level, level.scenario.models.values())
    return any(each is not None and is_told_inside(each, level.step) for each in inner)


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
    return bool(level.orchestrator == Jacobi())


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
    ready = {name: _with_quantum(scenario.models[name], quantum) for name in shown}
    return level.with_changes(scenario=scenario.with_models({**scenario.models, **ready}))


def _with_quantum(level: Any, quantum: Fraction) -> Composite:
    """Return a level, and those inside it, ready for any step that is a multiple of the quantum."""

    def control(each: Composite) -> Composite:
        now, part = each.orchestrator, quantum / each.step
        if traits_of(now).adaptive:
            adaptive: Any = now
            return each.with_changes(orchestrator=replace(adaptive, quantum=part))
        made = Adaptive(now, tolerance=ANY, quantum=part, first=Fraction(1), rejects=False)
        return each.with_changes(orchestrator=made)

    return change_levels(level, control)


def _show_all_outputs(level: Any) -> Any:
    """Return a level with an output for each of those of the simulators in it."""
    scenario: Scenario = level.scenario
    every = {
        f"{name}.{port.name}": port
        for name, model in scenario.models.items()
        for port in (_show_all_outputs(model) if as_level(model) else model).outputs
    }
    new = {path: port for path, port in every.items() if path not in scenario.output_names}
    return level.with_changes(scenario=show_outputs(scenario, new))


def obstacles(level: Any, rolls_back: bool, hint: str) -> Iterator[Fault]:
    """Yield why the time cannot be told to all in a level; `hint` is for those that cannot roll back."""
    scenario = with_level_ports(level.scenario)
    wrong = list(_constraint_obstacles(scenario, "")) or scenario_faults(scenario)
    if wrong:
        yield from wrong
        return
    if scenario.inputs:
        what = f"the level has an input of its own, `{scenario.inputs[0].name}`"
        yield Fault(what, "inputs", "a whole scenario, driven by nothing outside", "a source in the scenario")
    for loop in unsolved_loops(level):
        told, before = " -> ".join(loop), "the pass `loops` before this one"
        yield Fault(f"the algebraic loop {told}", "connections", "no loops", before)
    yield from _orchestrator_obstacles(level)
    yield from _extrapolation_obstacles(level) if is_plain_jacobi(level) else ()
    for prefix, each in levels(level):
        yield from _level_obstacles(each, prefix[:-1])
    for path, model in told_models(level.scenario, level.step):
        yield from _leaf_obstacles(path, model, rolls_back, hint)


def _level_obstacles(level: Composite, path: str) -> Iterator[Fault]:
    scenario, place = level.scenario, f"models.{path}" if path else ""
    yield from _constraint_obstacles(scenario, place)
    if scenario.bonds:
        name = next(iter(scenario.bonds))
        what = f"the power bond `{name}` counts energy over steps of equal length"
        yield Fault(what, place or "bonds", "no bonds", 'leave it out, or orchestrator "adaptive"')
    sampled = [name for name, model in scenario.models.items() if period_of(model)]
    if level.sampled or sampled:
        told = ".".join(filter(None, [path, *sampled[:1]]))
        what = f"`{told}` has a period of its own, which steps of any length do not meet"
        yield Fault(what, f"models.{told}", "no sampled models")


def _orchestrator_obstacles(level: Any) -> Iterator[Fault]:
    if traits_of(level.orchestrator).adaptive:
        what = "the algorithm of the level controls its steps already"
        yield Fault(what, "orchestrator", "one with fixed steps, such as its `inner`")
    elif _leaves_stale(level.orchestrator):
        what = "outputs are not evaluated again after the exchange"
        yield Fault(what, "orchestrator", 'outputs = "consistent", inputs = "clean"')


def _constraint_obstacles(scenario: Scenario, place: str) -> Iterator[Fault]:
    for name in scenario.constraints:
        what = f"the constraint `{name}` is not an assignment"
        hint = "the pass `modularity` before this one"
        yield Fault(what, place or f"constraints.{name}", "connections only", hint)


def _extrapolation_obstacles(level: Any) -> Iterator[Fault]:
    """Yield extrapolations that the told cannot do themselves; into levels they hold."""
    inside = has_told_levels(level)
    known = (Hold,) if inside else (Hold, Polynomial)
    every = [(c.extrapolation, f"connections.{c.target}") for c in level.scenario.connections]
    for extrapolation, where in [(level.extrapolation, "extrapolation"), *every]:
        if extrapolation is not None and not isinstance(extrapolation, known):
            what = f"inputs are extrapolated by {extrapolation!r:.40}"
            expected = (
                '"hold", where levels are inside' if inside else '"hold", or a polynomial such as "linear"'
            )
            yield Fault(what, where, expected)


def _leaf_obstacles(path: str, model: Model, rolls_back: bool, hint: str) -> Iterator[Fault]:
    able, where = model.capabilities, f"models.{path}"
    level: Any = as_level(model)
    if level is not None and _leaves_stale(level.orchestrator):
        what = f"outputs of the level `{path}` are not evaluated again after the exchange"
        yield Fault(what, where, 'outputs = "consistent"')
    if level is None and not able.variable_step:
        hint_step = '`Substepped(model, "1 ms")` around it, `substep = "1 ms"` in a file'
        yield Fault(f"`{path}` accepts only its own step", where, "a variable step", hint_step)
    if rolls_back and not able.rollback:
        yield Fault(f"`{path}` cannot roll back", where, "save() and restore()", hint)
    if able.stops_early:
        what = f"`{path}` may stop inside a step, at an event"
        yield Fault(
            what, where, "steps that reach their end", 'orchestrator "adaptive", or early_return=False'
        )
    if not able.reevaluates and any(port.feedthrough for port in model.outputs):
        what = f"outputs of `{path}` do not follow its inputs between steps"
        yield Fault(what, where, "outputs that can be evaluated again")
    if any(text_ports(model)):
        yield Fault(f"`{path}` exchanges texts, which are not handed on", where, "numbers only")
    if taken := reserved_inputs(model.inputs):
        yield Fault(f"`{path}` has an input named `{taken[0]}`", where, "a name that is not taken")


def _leaves_stale(orchestrator: Any) -> bool:
    """Return whether an algorithm, or the one it makes use of, leaves outputs as they were."""
    return any(traits_of(each).is_delayed for each in algorithm_layers(orchestrator))


def mutual_feedthrough(scenario: Scenario) -> list[tuple[str, str]]:
    """Return neighbours whose outputs react at once to each other's.

    Where they are not evaluated again after a step, Richardson's estimate is unreliable there (Arnold, Clauss
    and Schierz 2013; Hafner 2021, section 3.2); levels that tell the time always evaluate again.
    """
    graph = feedthrough_graph(with_level_ports(scenario), at_start=True)
    names, reacts = graph.wiring.names, graph.reactions
    return [(names[a], names[b]) for a, b in sorted(reacts) if a < b and (b, a) in reacts]
