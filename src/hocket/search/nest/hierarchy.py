"""Levels made of a flat scenario: which simulators share one, how often they exchange, and the composite.

In:  a flat Composite and a tree of groups
Out: the same simulators and connections with levels inside, each with its reason
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeAlias

from hocket.errors import ScenarioError
from hocket.model.composite import Composite
from hocket.model.scenario import Insertion, Scenario
from hocket.planning.compiler.sublevels import redirect_record

PASS = "nesting"
LONG = 40
"""Signs of a name that a level may get from its members."""


@dataclass(frozen=True)
class LevelGroup:
    """Simulators that share a level; it makes `ratio` steps in one of the level around it."""

    members: tuple[str | LevelGroup, ...]
    ratio: int = 1

    def names(self) -> Iterator[str]:
        """Yield all simulators in it, at any depth."""
        for member in self.members:
            yield from member.names() if isinstance(member, LevelGroup) else (member,)

    def rates(self, around: int = 1) -> Iterator[tuple[LevelGroup, int]]:
        """Yield the groups inside it, at any depth, with the steps that each makes in one of this level."""
        for member in self.members:
            if isinstance(member, LevelGroup):
                yield member, around * member.ratio
                yield from member.rates(around * member.ratio)

    def groups(self) -> Iterator[LevelGroup]:
        """Yield the groups inside it, at any depth."""
        return (group for group, _ in self.rates())

    def places(self) -> dict[str, int]:
        """Return the number of the member that each simulator is in."""
        return {
            name: number
            for number, member in enumerate(self.members)
            for name in (member.names() if isinstance(member, LevelGroup) else (member,))
        }

    @property
    def flat(self) -> bool:
        """Whether there is no level inside."""
        return not any(isinstance(member, LevelGroup) for member in self.members)

    @property
    def words(self) -> str:
        """The tree in braces, `{first, {second, third}}`, many in a row as `m1 to m9`; or `flat`."""
        return "flat" if self.flat else self._braces()

    def _braces(self) -> str:
        parts: list[str] = []
        for single, run in groupby(self.members, key=lambda member: isinstance(member, str)):
            members = [member if isinstance(member, str) else member._braces() for member in run]
            parts += [f"{members[0]} to {members[-1]}"] if single and len(members) > 3 else members
        return "{" + ", ".join(parts) + "}"

    def with_ratios(self, ratios: Mapping[frozenset[str], int]) -> LevelGroup:
        """Return the same tree with other ratios, by the simulators in a group; those not named get 1."""
        members = tuple(m.with_ratios(ratios) if isinstance(m, LevelGroup) else m for m in self.members)
        return LevelGroup(members, ratios.get(frozenset(self.names()), 1))

    def ratios(self) -> dict[frozenset[str], int]:
        """Return the ratios of the groups inside, by the simulators in them."""
        return {frozenset(group.names()): group.ratio for group in self.groups()}


LevelRecipe: TypeAlias = Callable[[LevelGroup, tuple[str, ...]], Mapping[str, Any]]
"""From a group and the names of the models of its level to orchestrator and extrapolation."""


def build_hierarchy(
    composite: Composite,
    tree: LevelGroup,
    step: Fraction,
    how: LevelRecipe,
    reasons: Mapping[LevelGroup, str] | None = None,
) -> Composite:
    """Return the composite with a level for each group inside the tree; ports are made when it is opened.

    Every connection goes to the lowest level that has both of its ends, so that it is exchanged at that
    level's rate. `record` follows the simulators to where they are.
    """
    maker = _HierarchyBuilder(composite, how, reasons or {}, _level_names(composite.scenario, tree))
    return maker.level(tree, step, outermost=True)


@dataclass(frozen=True)
class _HierarchyBuilder:
    composite: Composite
    how: LevelRecipe
    reasons: Mapping[LevelGroup, str]
    names: Mapping[LevelGroup, str]

    def level(self, group: LevelGroup, step: Fraction, outermost: bool = False) -> Composite:
        scenario = self.composite.scenario
        paths = dict(self.paths(group))
        models: dict[str, Any] = {}
        inserted = {name: note for name, note in scenario.inserted.items() if name in group.members}
        for member in group.members:
            if isinstance(member, LevelGroup):
                models[self.names[member]] = self.level(member, step / member.ratio)
                inserted[self.names[member]] = Insertion(PASS, self.reasons.get(member, "they talk often"))
            else:
                models[member] = scenario.models[member]
        kept = [
            each for each in scenario.connections if self._belongs(group, outermost, each.source, each.target)
        ]
        bonds = {
            name: replace(
                bond, effort=_relocate_path(bond.effort, paths), flow=_relocate_path(bond.flow, paths)
            )
            for name, bond in scenario.bonds.items()
            if self._belongs(group, outermost, bond.effort, bond.flow)
        }
        notes = scenario.inserted
        inserted |= {_relocate_path(c.target, paths): notes[c.target] for c in kept if c.target in notes}
        moved = [
            replace(
                each, source=_relocate_path(each.source, paths), target=_relocate_path(each.target, paths)
            )
            for each in kept
        ]
        homes = {name: path.rpartition(".")[0] for name, path in paths.items()}
        made = Scenario(
            models, moved, scenario.inputs if outermost else (), scenario.outputs if outermost else (),
            redirect_record(scenario.record, homes) if outermost else ("*",), bonds, inserted=inserted,
        )  # fmt: skip
        return self.composite.with_changes(scenario=made, step=step, **self.how(group, tuple(models)))

    def paths(self, group: LevelGroup, before: str = "") -> Iterator[tuple[str, str]]:
        """Yield simulators with their paths as seen from a level."""
        for member in group.members:
            if isinstance(member, LevelGroup):
                yield from self.paths(member, f"{before}{self.names[member]}.")
            else:
                yield member, before + member

    @staticmethod
    def _belongs(group: LevelGroup, outermost: bool, *ends: str) -> bool:
        """Return whether a level is the lowest one with both ends of a connection."""
        if any("." not in end for end in ends):
            return outermost  # a port of the scenario itself
        owners, places = {end.partition(".")[0] for end in ends}, group.places()
        if not owners <= places.keys():
            return False
        inside = {group.members[places[owner]] for owner in owners}
        return len(inside) > 1 or isinstance(inside.pop(), str)


def _relocate_path(path: str, paths: Mapping[str, str]) -> str:
    owner, dot, port = path.partition(".")
    return f"{paths.get(owner, owner)}{dot}{port}"


def _level_names(scenario: Scenario, tree: LevelGroup) -> dict[LevelGroup, str]:
    """Return a name for each level: its members if they are few, else its first and last one."""
    taken = {*scenario.models, *scenario.bonds, *scenario.input_names, *scenario.output_names}
    found: dict[LevelGroup, str] = {}
    for number, group in enumerate(tree.groups(), 1):
        members = list(group.names())
        name = "_".join(members) if len(members) <= 3 else f"{members[0]}_to_{members[-1]}"
        if len(name) > LONG:
            name = f"cluster_{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        found[group] = name
    return found


_PARTS = re.compile(r"[{}]|[^\s{},]+")


def parse_hierarchy(text: str, models: tuple[str, ...], where: str) -> LevelGroup:
    """Return the tree that a text describes; raises ScenarioError if it is none of these models."""
    if text == "flat":
        return LevelGroup(models)
    stack: list[list[str | LevelGroup]] = [[]]
    for part in _PARTS.findall(text):
        if part == "{":
            stack.append([])
        elif part == "}" and len(stack) > 1:
            group = LevelGroup(tuple(stack.pop()))
            stack[-1].append(group)
        elif part == "}":
            break
        else:
            stack[-1].append(part)
    outermost = stack[0][0] if len(stack) == 1 and len(stack[0]) == 1 else None
    if not isinstance(outermost, LevelGroup) or sorted(outermost.names()) != sorted(models):
        expected = f"`flat`, or all of {', '.join(models)} once, in braces: {{one, {{two, three}}}}"
        raise ScenarioError(f"`{text}` is not a hierarchy of the models", where, expected)
    return outermost
