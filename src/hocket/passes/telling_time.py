"""Who can be told the time: what a level and its simulators must be and do, for time to become a signal.

In:  a level
Out: what stands in the way
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from hocket.errors import Fault
from hocket.model import Model, Scenario, as_level
from hocket.passes.triviality import algebraic_loops, solves_loops
from hocket.passes.whole_levels import is_plain_jacobi, is_told_inside, told_models
from hocket.passing import with_level_ports
from hocket.signals import Hold, Polynomial
from hocket.simulators.timed import reserved_inputs
from hocket.wiring import Wiring, scenario_faults, wire_unchecked


def obstacles(level: Any, goes_back: bool, hint: str) -> Iterator[Fault]:
    """Yield why the time cannot be told to all in a level; `hint` is for those who cannot go back."""
    scenario = with_level_ports(level.scenario)
    wrong = list(_constraint_obstacles(scenario, "")) or scenario_faults(scenario)
    if wrong:
        yield from wrong
        return
    if scenario.inputs:
        what = f"the level has an input of its own, `{scenario.inputs[0].name}`"
        yield Fault(what, "inputs", "a whole scenario, driven by nothing outside", "a source in the scenario")
    for loop in () if solves_loops(level) else algebraic_loops(level):
        told, before = " -> ".join(loop), "the pass `loops` before this one"
        yield Fault(f"the algebraic loop {told}", "connections", "no loops", before)
    yield from _level_obstacles(level, level.step, "")
    for path, model in told_models(level.scenario, level.step):
        yield from _leaf_obstacles(path, model, goes_back, hint)


def _level_obstacles(level: Any, step: Fraction, path: str) -> Iterator[Fault]:
    scenario, place = level.scenario, f"models.{path}" if path else ""
    yield from _constraint_obstacles(scenario, place)
    if scenario.bonds:
        name = next(iter(scenario.bonds))
        what = f"the power bond `{name}` counts energy over steps of equal length"
        yield Fault(what, place or "bonds", "no bonds", 'leave it out, or orchestrator "adaptive"')
    sampled = [name for name, model in scenario.models.items() if getattr(model, "period", None)]
    if level.sampled or sampled:
        told = ".".join(filter(None, [path, *sampled[:1]]))
        what = f"`{told}` has a period of its own, which steps of any length do not meet"
        yield Fault(what, f"models.{told}", "no sampled models")
    if not path:
        yield from _orchestrator_obstacles(level)
        yield from _extrapolation_obstacles(level) if is_plain_jacobi(level) else ()
    for name, model in scenario.models.items():
        inner = as_level(model)
        if inner is not None:
            yield from _level_obstacles(inner, step, f"{path}.{name}" if path else name)


def _orchestrator_obstacles(level: Any) -> Iterator[Fault]:
    if getattr(level.orchestrator, "adaptive", False):
        what = "the algorithm of the level controls its steps already"
        yield Fault(what, "orchestrator", "one with fixed steps, such as its `inner`")
    elif _leaves_stale(level.orchestrator):
        what = "outputs are not evaluated again after the exchange"
        yield Fault(what, "orchestrator", 'outputs = "consistent", inputs = "clean"')


def _constraint_obstacles(scenario: Scenario, place: str) -> Iterator[Fault]:
    for name in scenario.constraints:
        what = f"the constraint `{name}` is no assignment"
        hint = "the pass `modularity` before this one"
        yield Fault(what, place or f"constraints.{name}", "connections only", hint)


def _extrapolation_obstacles(level: Any) -> Iterator[Fault]:
    """Yield extrapolations that the told cannot do themselves; into levels they hold."""
    inside = any(
        each is not None and is_told_inside(each, level.step)
        for each in map(as_level, level.scenario.models.values())
    )
    known = (Hold,) if inside else (Hold, Polynomial)
    every = [(c.extrapolation, f"connections.{c.target}") for c in level.scenario.connections]
    for extrapolation, where in [(level.extrapolation, "extrapolation"), *every]:
        if extrapolation is not None and not isinstance(extrapolation, known):
            what = f"inputs are extrapolated by {extrapolation!r:.40}"
            expected = (
                '"hold", where levels are inside' if inside else '"hold", or a polynomial such as "linear"'
            )
            yield Fault(what, where, expected)


def _leaf_obstacles(path: str, model: Model, goes_back: bool, hint: str) -> Iterator[Fault]:
    able, where = model.abilities, f"models.{path}"
    level: Any = as_level(model)
    if level is not None and _leaves_stale(level.orchestrator):
        what = f"outputs of the level `{path}` are not evaluated again after the exchange"
        yield Fault(what, where, 'outputs = "consistent"')
    if level is None and not able.variable_step:
        hint_step = '`Substepped(model, "1 ms")` around it, `substep = "1 ms"` in a file'
        yield Fault(f"`{path}` accepts no step but its own", where, "a variable step", hint_step)
    if goes_back and not able.rewind:
        yield Fault(f"`{path}` cannot go back", where, "save() and restore()", hint)
    if able.stops_early:
        what = f"`{path}` may stop inside a step, at an event"
        yield Fault(
            what, where, "steps that reach their end", 'orchestrator "adaptive", or early_return=False'
        )
    if not able.reevaluates and any(port.feedthrough for port in model.outputs):
        what = f"outputs of `{path}` do not follow its inputs between steps"
        yield Fault(what, where, "outputs that can be evaluated again")
    if any(getattr(model, "texts", ((), ()))):
        yield Fault(f"`{path}` exchanges texts, which are not handed on", where, "numbers only")
    if taken := reserved_inputs(model.inputs):
        yield Fault(f"`{path}` has an input named `{taken[0]}`", where, "a name that is not taken")


def _leaves_stale(orchestrator: Any) -> bool:
    """Return whether an algorithm, or the one it makes use of, leaves outputs as they were."""
    inner = getattr(orchestrator, "inner", None)
    words = getattr(orchestrator, "outputs", ""), getattr(orchestrator, "inputs", "")
    return "stale" in words or "delayed" in words or (inner is not None and _leaves_stale(inner))


def mutual_feedthrough(scenario: Scenario) -> list[tuple[str, str]]:
    """Return neighbours whose outputs react at once to each other's.

    Where they are not evaluated again after a step, Richardson's estimate is unreliable there (Arnold, Clauss
    and Schierz 2013; Hafner 2021, section 3.2); levels that tell the time always evaluate again.
    """
    wiring = wire_unchecked(with_level_ports(scenario))
    reacts = set(_reactions(wiring))
    pairs = [(one, other) for one, other in sorted(reacts) if one < other and (other, one) in reacts]
    return [(wiring.names[one], wiring.names[other]) for one, other in pairs]


def _reactions(wiring: Wiring) -> Iterator[tuple[int, int]]:
    """Yield who reacts at once to whom."""
    for child, model in enumerate(wiring.models):
        at_once = {name for port in model.outputs for name in port.feedthrough}
        for port, drive in zip(model.inputs, wiring.drives[child], strict=True):
            if port.name in at_once and drive is not None and drive.child >= 0:
                yield child, drive.child
