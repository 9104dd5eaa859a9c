"""Outputs that depend on themselves at once: those of a loop become one simulator that solves it.

In:  a level with algebraic loops
Out: a level whose loops are inside levels that iterate; the rest stays as it was
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

from hocket.coupling.feedthrough import feedthrough_graph
from hocket.coupling.level_ports import with_level_ports
from hocket.errors import Fault, ScenarioError, join_names, suggest_nearest
from hocket.model.arguments import free_name
from hocket.model.composite import as_level, levels, traits_of
from hocket.model.ports import matches
from hocket.model.protocols import Capabilities, Model
from hocket.model.scenario import Insertion, Scenario
from hocket.orchestrators import Iterate, Jacobi
from hocket.plan.accelerators import Accelerator
from hocket.planning.compiler.contract import SOLVER, algebraic_loops, unsolved_loops
from hocket.planning.compiler.sublevels import allows_grouping, gather_models, show_outputs

if TYPE_CHECKING:
    from hocket.model.composite import Composite


How: TypeAlias = Literal["outputs", "steps", "delay"]


@dataclass(frozen=True)
class Loops:
    """The simulators of each algebraic loop become one that solves it (Gomes 2016, 3.2).

    `how`: "outputs" evaluates the outputs of a loop again at each exchange until they agree; "steps" makes
    the whole steps again, which every simulator of the loop must be able to; "delay" breaks the loop, for
    comparison: each sees what the others had a step ago. Left out: "outputs", and "steps" for those that
    cannot evaluate again. `tolerance`, `at_most` and `accelerate` are those of the steps: see `Iterate`.
    """

    how: How | None = None
    tolerance: float = 1e-8
    at_most: int = 50
    accelerate: Accelerator | str = "quasi-newton"
    name: ClassVar[str] = "loops"

    def __post_init__(self) -> None:
        if self.how not in (None, *get_args(How)):
            words = ", ".join(f'"{word}"' for word in get_args(How))
            hint = suggest_nearest(str(self.how), get_args(How))
            raise ScenarioError(f"loops cannot be solved by {self.how!r}", "how", words, hint)

    def reasons(self, level: Composite) -> list[str]:
        """Return the loops of levels that do not iterate."""
        return [
            f"{join_names([f'{path}{each}' for each in loop])} depend on each other at once"
            if len(loop) > 1
            else f"`{path}{loop[0]}` depends on itself at once"
            for path, inner in levels(level)
            for loop in unsolved_loops(inner)
        ]

    def check_preconditions(self, level: Composite) -> list[Fault]:
        """Return the simulators that cannot do what solving their loop takes."""
        faults: list[Fault] = []
        for path, each in levels(level):
            for group in _groups(each):
                how = self._choose_method(each, group)
                faults += [*_loop_rate_faults(each, group, path), *_loop_host_faults(each, group, path)]
                for member in group:
                    able = each.scenario.models[member].capabilities
                    faults += _capability_faults(able, how, f"{path}{member}")
        return faults

    def apply(self, level: Composite) -> Composite:
        """Return the level with a level for each group of loops that share simulators."""
        level = self._apply_inside(level)
        for group in _groups(level):
            level = self._lift_group(level, group)
        return level

    def check_postconditions(self, level: Composite) -> list[Fault]:
        """Return loops that no level solves by itself."""
        return [
            Fault(f"a loop was left over: {why}", "", "loops inside levels that iterate")
            for why in self.reasons(level)
        ]

    def _apply_inside(self, level: Composite) -> Composite:
        """Return the level with the loops of levels in it lifted; paths that lead into these still do."""
        models: dict[str, Any] = dict(with_level_ports(level.scenario).models)
        deep = [name for name, model in models.items() if as_level(model) and self.reasons(model)]
        if not deep:
            return level
        scenario = level.scenario.with_models(models | {name: self.apply(models[name]) for name in deep})
        return level.with_changes(scenario=scenario.with_changes(record=_lifted_record(scenario)))

    def _lift_group(self, level: Composite, group: tuple[str, ...]) -> Composite:
        how = self._choose_method(level, group)
        paths = [path for loop in algebraic_loops(level) for path in loop if path.partition(".")[0] in group]
        listed = ", ".join(f"`{path}`" for path in paths)
        told = {
            "outputs": "evaluates again until they agree",
            "steps": "makes the steps again until they agree on",
            "delay": "hands on a step late",
        }[how]
        why = Insertion(self.name, f"{told}: {listed}, which depend on each other at once")
        inner = self._inner(level, how)
        scenario = level.scenario
        if set(group) == set(scenario.models) or not allows_grouping(level.orchestrator):
            return level.with_changes(
                scenario=scenario.with_changes(inserted={**scenario.inserted, SOLVER: why}),
                orchestrator=inner,
            )
        name = free_name("_".join(group), scenario.models)
        around = gather_models(level, scenario, group, name, inner, why)
        made: Any = around.scenario.models[name]
        inside = made.scenario.with_changes(inserted={**made.scenario.inserted, SOLVER: why})
        if how == "outputs":
            inside = _show_reacting_outputs(inside, around.scenario, name)
        solver = made.with_changes(scenario=inside)
        return around.with_changes(
            scenario=around.scenario.with_models({**around.scenario.models, name: solver}),
            orchestrator=_without_rates(around.orchestrator, group),
        )

    def _inner(self, level: Composite, how: How) -> Any:
        """Return the algorithm of those in a loop."""
        inputs = traits_of(level.orchestrator).inputs or "clean"
        if how == "outputs":
            return Jacobi(outputs="consistent", inputs=inputs)
        late = Jacobi(outputs="stale", inputs=inputs)  # the iteration itself makes outputs agree
        return late if how == "delay" else Iterate(late, self.tolerance, self.at_most, self.accelerate)

    def _choose_method(self, level: Composite, group: tuple[str, ...]) -> How:
        able = all(level.scenario.models[member].capabilities.reevaluates for member in group)
        return self.how or ("outputs" if able else "steps")


def _groups(level: Composite) -> list[tuple[str, ...]]:
    """Return the simulators of the loops that are not solved, those together whose loops share one."""
    groups: list[set[str]] = []
    for loop in unsolved_loops(level):
        group = {path.partition(".")[0] for path in loop}
        for other in [each for each in groups if each & group]:
            groups.remove(other)
            group |= other
        groups.append(group)
    return [tuple(name for name in level.scenario.models if name in group) for group in groups]


def _show_reacting_outputs(inside: Scenario, around: Scenario, name: str) -> Scenario:
    """Return the scenario of a level with all that reacts to its inputs among its outputs.

    Only what a level shows is evaluated again when its inputs change: else simulators that it drives inside,
    and the run, would see it a step late.
    """
    ported: Any = with_level_ports(around).models[name]
    graph = feedthrough_graph(ported.scenario)
    read = {child for turn in graph.rounds(only_from_outside=True) for child in turn.children}
    shown = {
        graph.name(node): graph.wiring.models[node[0]].outputs[node[1]]
        for node in graph.reacting
        if node[0] in read
    }
    why = Insertion(Loops.name, f"is shown, so as to be evaluated again when an input of `{name}` changes")
    return show_outputs(inside, shown).with_changes(inserted={**inside.inserted, **dict.fromkeys(shown, why)})


def _lifted_record(scenario: Scenario) -> tuple[str, ...]:
    """Return what is recorded of levels inside; what was lifted there is named where it is now."""
    ports = [
        (f"{old}.{port.name}", f"{new}.{port.name}", seen)
        for old, new, model in _lifted_simulators(scenario)
        for seen, each in ((True, model.outputs), (False, model.inputs))
        for port in each
    ]
    found: list[str] = []
    for pattern in scenario.record:
        meant = [(old, new) for old, new, seen in ports if old == pattern or (seen and matches(old, pattern))]
        moved = [new for old, new in meant if not (old == new or matches(new, pattern))]
        if not moved or len(moved) < len(meant):
            found.append(pattern)
        found += moved
    return tuple(found)


def _lifted_simulators(scenario: Scenario, old: str = "", new: str = "") -> Iterator[tuple[str, str, Model]]:
    """Yield all simulators inside: the path without the levels of this pass, the path, the model."""
    for name, model in scenario.models.items():
        inner, note = as_level(model), scenario.inserted.get(name)
        if inner is None:
            yield f"{old}{name}", f"{new}{name}", model
        else:
            lifted = note is not None and note.by == Loops.name
            yield from _lifted_simulators(inner.scenario, old if lifted else f"{old}{name}.", f"{new}{name}.")


def _loop_rate_faults(level: Composite, group: tuple[str, ...], path: str) -> Iterator[Fault]:
    """Yield simulators of a loop that step more often than the others."""
    rates = dict(traits_of(level.orchestrator).rates or ())
    for member in group:
        if rates.get(member, 1) != 1:
            what = f"it makes {rates[member]} steps in a step of the level, and is in a loop"
            hint = "put those of the loop into a level with a shorter step"
            yield Fault(what, f"{path}{member}", "one step for all of a loop", hint)


def _loop_host_faults(level: Composite, group: tuple[str, ...], path: str) -> Iterator[Fault]:
    """Yield that those of a loop cannot be one level, as they are on different hosts."""
    hosts = level.scenario.hosts
    placed = {} if hosts is None else hosts.host_by_model()
    there = list(dict.fromkeys(placed[member] for member in group if member in placed))
    if len(there) > 1 and set(group) != set(level.scenario.models):
        members = join_names([f"{path}{member}" for member in group])
        what = f"{members} depend on each other at once, and are on {join_names(there)}"
        yield Fault(what, f"{path}hosts", "one host for all of a loop", "move them together")


def _without_rates(orchestrator: Any, group: tuple[str, ...]) -> Any:
    """Return the algorithm of those around a new level, without the rates of those in it, which are one."""
    rates = dict(traits_of(orchestrator).rates or ())
    if not rates.keys() & set(group):
        return orchestrator
    return replace(orchestrator, rates={name: rate for name, rate in rates.items() if name not in group})


def _capability_faults(capabilities: Capabilities, how: How, where: str) -> Iterator[Fault]:
    """Yield what a simulator of a loop cannot do that solving it takes."""
    if how == "outputs" and not capabilities.reevaluates:
        what = "it cannot evaluate its outputs again between steps"
        yield Fault(what, where, "output() that follows new inputs", 'how="steps"')
    if how == "steps" and not capabilities.rollback:
        hint = "`Replay(model)`: replay = true in a file"
        yield Fault("it cannot make a step again", where, "save() and restore()", hint)
