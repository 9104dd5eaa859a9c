"""The lines of a scenario that change at each of many points, without writing each of them out.

In:  a Tuned, the Study it is about, the numbers of points
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
from hocket.files.study import Study
from hocket.files.toml.changes import Change, changes, table_of
from hocket.tuning.settings import applied
from hocket.tuning.space import Point
from hocket.tuning.tuned import Tuned

Group: TypeAlias = tuple[int, ...]
"""Numbers of variables."""
Found: TypeAlias = tuple[Change, ...] | None

SEEN = 40
"""Points that are written out to see that choices do not meddle with each other."""
_RANK = {"step": 0, "orchestrator": 1, "extrapolation": 2}


def changed_lines(tuned: Tuned, study: Study, shown: Sequence[int]) -> list[Found]:
    """Return what changes at each of some points."""
    before = table_of(study)
    variables = tuned.space.variables

    @cache
    def of(group: Group, values: Point) -> Found:
        """Return what some choices change by themselves."""
        named = {variables[n].name: variables[n].values[k] for n, k in zip(group, values, strict=True)}
        try:
            made = applied(tuned.composite, named)
        except HocketError:
            return None
        return tuple(changes(before, table_of(replace(study, composite=made))))

    whole = tuple(range(len(variables)))
    groups = _groups(tuned, of, len(shown))
    sample = list(dict.fromkeys((*tuned.front[:SEEN], *shown[:: max(1, len(shown) // SEEN)])))
    apart = groups is not None and all(
        _joined(of, groups, tuned.points[k]) == _sorted(of(whole, tuned.points[k])) for k in sample
    )
    return [
        _joined(of, groups, tuned.points[k]) if apart and groups else _sorted(of(whole, tuned.points[k]))
        for k in shown
    ]


def _groups(tuned: Tuned, of: Callable[[Group, Point], Found], points: int) -> list[Group] | None:
    """Return variables that share no lines with those of other groups; None: that is not worth it."""
    sizes = [len(each) for each in tuned.space.variables]
    groups: list[tuple[Group, set[tuple[str, str]]]] = []
    for number, size in enumerate(sizes):
        found = [of((number,), (k,)) for k in range(size)]
        keys = {(each.table, each.key) for some in found for each in some or ()}
        mine: Group = (number,)
        for other, theirs in [each for each in groups if each[1] & keys]:
            groups.remove((other, theirs))
            mine, keys = (*other, *mine), keys | theirs
        groups.append((mine, keys))
    made = [group for group, _ in groups]
    work = sum(math.prod(sizes[n] for n in group) for group in made)
    return made if work < points else None


def _joined(of: Callable[[Group, Point], Found], groups: Sequence[Group], point: Point) -> Found:
    found: list[Change] = []
    for group in groups:
        some = of(group, tuple(point[n] for n in group))
        if some is None:
            return None
        found += some
    return _sorted(tuple(found))


def _sorted(found: Found) -> Found:
    """Return changes in one order: the outermost table first, in it steps, algorithms, extrapolations."""
    return (
        None if found is None else tuple(sorted(found, key=lambda each: (each.table, _RANK.get(each.key, 3))))
    )
