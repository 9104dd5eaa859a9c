"""The lines of a scenario that change at each of many points, without writing each of them out.

In:  a TuningResult, the Study it is about, the numbers of points
Out: changes per point; None where a point is no coupling

Choices that touch different lines are looked at one by one, those that share lines together; some points are
written out to see that this is right, and all of them where it is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from hocket.errors import HocketError
from hocket.files.study import Experiment
from hocket.files.toml.changes import LineChange, line_changes, scenario_tables
from hocket.tuning.settings import apply_choices
from hocket.tuning.space import Point
from hocket.tuning.tuned import TuningResult

VariableGroup: TypeAlias = tuple[int, ...]
"""Numbers of variables."""
PointChanges: TypeAlias = tuple[LineChange, ...] | None

SEEN = 40
"""Points that are written out to see that choices do not meddle with each other."""
_RANK = {"step": 0, "orchestrator": 1, "extrapolation": 2}


def changed_lines(tuned: TuningResult, study: Experiment, shown: Sequence[int]) -> list[PointChanges]:
    """Return what changes at each of some points."""
    before = scenario_tables(study)
    variables = tuned.space.variables

    @cache
    def changes_for(group: VariableGroup, values: Point) -> PointChanges:
        """Return what some choices change by themselves."""
        named = {variables[n].name: variables[n].values[k] for n, k in zip(group, values, strict=True)}
        try:
            made = apply_choices(tuned.composite, named)
        except HocketError:
            return None
        return tuple(line_changes(before, scenario_tables(replace(study, composite=made))))

    whole = tuple(range(len(variables)))
    groups = _independent_groups(tuned, changes_for, len(shown))
    sample = list(dict.fromkeys((*tuned.front[:SEEN], *shown[:: max(1, len(shown) // SEEN)])))
    apart = groups is not None and all(
        _join_changes(changes_for, groups, tuned.points[k])
        == _sort_changes(changes_for(whole, tuned.points[k]))
        for k in sample
    )
    return [
        _join_changes(changes_for, groups, tuned.points[k])
        if apart and groups
        else _sort_changes(changes_for(whole, tuned.points[k]))
        for k in shown
    ]


def _independent_groups(
    tuned: TuningResult, of: Callable[[VariableGroup, Point], PointChanges], points: int
) -> list[VariableGroup] | None:
    """Return variables that share no lines with those of other groups; None: that is not worth it."""
    sizes = [len(each) for each in tuned.space.variables]
    groups: list[tuple[VariableGroup, set[tuple[str, str]]]] = []
    for number, size in enumerate(sizes):
        found = [of((number,), (k,)) for k in range(size)]
        keys = {(each.table, each.key) for some in found for each in some or ()}
        mine: VariableGroup = (number,)
        for other, theirs in [each for each in groups if each[1] & keys]:
            groups.remove((other, theirs))
            mine, keys = (*other, *mine), keys | theirs
        groups.append((mine, keys))
    made = [group for group, _ in groups]
    work = sum(math.prod(sizes[n] for n in group) for group in made)
    return made if work < points else None


def _join_changes(
    of: Callable[[VariableGroup, Point], PointChanges], groups: Sequence[VariableGroup], point: Point
) -> PointChanges:
    found: list[LineChange] = []
    for group in groups:
        some = of(group, tuple(point[n] for n in group))
        if some is None:
            return None
        found += some
    return _sort_changes(tuple(found))


def _sort_changes(found: PointChanges) -> PointChanges:
    """Return changes in one order: the outermost table first, in it steps, algorithms, extrapolations."""
    return (
        None if found is None else tuple(sorted(found, key=lambda each: (each.table, _RANK.get(each.key, 3))))
    )
