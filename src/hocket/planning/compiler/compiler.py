"""The compiler: passes in their order, each with its conditions before and after, and the story of it.

In:  a level, and the passes that are asked for
Out: Compiled: a trivial level, and what each pass inserted and why; or the condition that is not met
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hocket.errors import Fault, ScenarioError, collect_faults
from hocket.model.arguments import expect_flags
from hocket.model.composite import as_level, levels
from hocket.model.scenario import Insertion
from hocket.planning.compiler.contract import Pass, insertions, triviality_faults
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.compiler.loop_pass import Loops
from hocket.planning.compiler.modularity import Modularity
from hocket.planning.parameters import leaves
from hocket.planning.planner import plan_tree
from hocket.simulators.wrappers.timed import Timed

if TYPE_CHECKING:
    from hocket.model.composite import Composite


ORDER = ("modularity", "loops", "distribution", "accuracy")
"""Equations may make loops, loops decide what can be put on hosts, hosts fix what a step acts on
(Gomes 2016, section 5)."""


@dataclass(frozen=True)
class PassRecord:
    """What one pass did: why it was wanted, and what it inserted, by path."""

    by: str
    why: tuple[str, ...]
    inserted: tuple[tuple[str, str], ...]
    gone: tuple[str, ...]
    """Connections and equations that are not there any more."""
    moved: tuple[tuple[str, str], ...] = ()
    """Simulators that stand elsewhere, from where to where."""


@dataclass(frozen=True)
class Compilation:
    """A level made trivial, beside the one it was made from."""

    level: Composite
    original: Composite
    chapters: tuple[PassRecord, ...]
    idle: tuple[str, ...] = ()
    """Passes that had nothing to do."""

    def rows(self) -> list[dict[str, object]]:
        """Return everything inserted: its path, by which pass, and why."""
        return [
            {"inserted": path, "pass": chapter.by, "reason": reason}
            for chapter in self.chapters
            for path, reason in chapter.inserted
        ]

    def story(self) -> list[str]:
        """Return what was done, in words."""
        lines: list[str] = []
        for number, chapter in enumerate(self.chapters, 1):
            lines += [f"{number}. {chapter.by}", *(f"   because {why}" for why in chapter.why)]
            lines += [f"   inserted {path}: {reason}" for path, reason in chapter.inserted]
            lines += [f"   moved {old} to {new}" for old, new in chapter.moved]
            lines += [f"   no longer there: {path}" for path in chapter.gone]
        lines += [f"{name}: nothing to do" for name in self.idle]
        made, before = (sum(1 for _ in leaves(each)) for each in (self.level, self.original))
        lines.append(
            f"{before} simulators before, {made} after; every input has one source, nothing depends on itself"
        )
        return lines


def compile_level(
    level: Composite, passes: Sequence[Pass] | None = None, *, in_order: bool = True
) -> Compilation:
    """Return a trivial level that does what this one should, with every change told.

    Without `passes` those are run that are needed: constraints and loops, and hosts where the scenario has
    some. `in_order=False` runs them as they are given. Raises ScenarioError with the condition that is not
    met, if the level cannot be made trivial.
    """
    _check_arguments(level, passes)
    expect_flags(in_order=in_order)
    needed: list[Pass] = [Modularity(), Loops(), *([Distribution()] if level.scenario.hosts else [])]
    chosen = needed if passes is None else list(passes)
    if in_order:
        chosen.sort(key=lambda each: ORDER.index(each.name) if each.name in ORDER else len(ORDER))
    _refuse(list(_host_faults(level)), "hosts do not fit the models")
    now, chapters, idle = level, [], []
    for number, each in enumerate(chosen):
        why = each.reasons(now)
        if not why:
            idle.append(each.name)
            continue
        _refuse(each.check_preconditions(now), f"the pass `{each.name}` cannot be run")
        after = each.apply(now)
        for earlier in chosen[: number + 1]:
            late = "" if earlier is each else f" after `{each.name}`"
            _refuse(earlier.check_postconditions(after), f"what `{earlier.name}` is for does not hold{late}")
        chapters.append(_record_pass(each.name, why, now, after))
        now = after
    _refuse(triviality_faults(now), "the scenario is not trivial")
    _refuse(_plan_faults(now) if chapters else (), "the compiled scenario would not run")
    return Compilation(now, level, tuple(chapters), tuple(idle))


def _check_arguments(level: Any, passes: Any) -> None:
    """Refuse what is not a level, and what are not passes."""
    if as_level(level) is None:
        hint = 'hk.read("car.toml").composite, or Composite(scenario, step)'
        raise ScenarioError(f"`{level!r:.60}` is not a level", "compile", "a Composite", hint)
    given = passes if passes is None or isinstance(passes, (list, tuple)) else [passes]
    wrong = [each for each in given or () if isinstance(each, type) or not isinstance(each, Pass)]
    if wrong or given is not passes:
        hint = "from hocket.planning.compiler.modularity import Modularity"
        what = f"`{wrong[0]!r:.60}` is not a pass" if wrong else "one pass, and no list of them"
        raise ScenarioError(what, "passes", "a list such as [Modularity(), Loops()]", hint)


def _host_faults(level: Composite) -> Iterator[Fault]:
    for path, each in levels(level):
        for fault in each.scenario.hosts.faults(each.scenario.models) if each.scenario.hosts else ():
            yield fault.within(path)


def _plan_faults(level: Composite) -> tuple[Fault, ...]:
    """Return what keeps a level, and those that are told the time, from being planned.

    Steps may not fit, capabilities may be missing.
    """
    faults: list[Fault] = []
    told = [
        (f"{path}{name}.", model.model)
        for path, each in levels(level)
        for name, model in each.scenario.models.items()
        if isinstance(model, Timed) and as_level(model.model)
    ]
    each: Any
    for path, each in [("", level), *told]:
        with collect_faults(faults, path):
            plan_tree(each)
    return tuple(faults)


def _refuse(faults: Sequence[Fault], what: str) -> None:
    if faults:
        raise ScenarioError([replace(fault, what=f"{what}: {fault.what}") for fault in faults])


def _record_pass(name: str, why: Sequence[str], before: Composite, after: Composite) -> PassRecord:
    had: dict[str, Insertion] = insertions(before)
    new = {
        path: note.reason
        for path, note in insertions(after).items()
        if note.by == name and not (path in had and had[path] == note)
    }
    there = set(_elements(after))
    gone = [path for path in _elements(before) if path not in there]
    now = [path for path, _ in leaves(after) if path not in new]
    places = {old: [path for path in now if _is_deeper_path(old, path)] for old in gone}
    moved = {old: found[0] for old, found in places.items() if len(found) == 1}
    wires = [path.split(" -> ") for path in there if " -> " in path]
    left = tuple(path for path in gone if path not in moved and not _is_still_connected(path, wires))
    return PassRecord(name, tuple(why), tuple(new.items()), left, tuple(moved.items()))


def _is_deeper_path(old: str, new: str) -> bool:
    """Return whether a path is another with more levels on its way."""
    rest = iter(new.split("."))
    return all(part in rest for part in old.split(".")) and next(rest, None) is None


def _is_still_connected(old: str, wires: Sequence[Sequence[str]]) -> bool:
    """Return whether a connection is there still, from and to where its ends are now."""
    source, arrow, target = old.partition(" -> ")
    return bool(arrow) and any(
        _is_deeper_path(source, one) and _is_deeper_path(target, other) for one, other in wires
    )


def _elements(level: Composite) -> Iterator[str]:
    yield from (path for path, _ in leaves(level))
    for path, each in levels(level):
        yield from (f"{path}{c.source} -> {path}{c.target}" for c in each.scenario.connections)
        yield from (f"{path}{name}" for name in each.scenario.constraints)
