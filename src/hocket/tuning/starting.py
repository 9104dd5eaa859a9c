"""Where a search begins: at the coupling of now, and at what differs from it in one choice.

In:  a Composite and a Space
Out: points
"""

from __future__ import annotations

from hocket.engine.composite import Composite
from hocket.errors import HocketError
from hocket.tuning.settings import apply_choices
from hocket.tuning.space import DesignVariable, Point, Space


def point_of_now(composite: Composite, space: Space) -> Point | None:
    """Return the point that the composite itself is; None: one of its values is not in the space."""
    places = [_place(composite, variable) for variable in space.variables]
    found = tuple(place for place in places if place is not None)
    return space.canonical_point(found) if len(found) == len(places) else None


def near_now(composite: Composite, space: Space, most: int = 2) -> list[Point]:
    """Return the point of now and those that differ from it in one value, the nearest values first.

    What now has no value for starts in the middle.
    """
    places = [_place(composite, variable) for variable in space.variables]
    sizes = [len(each) for each in space.variables]
    middle = tuple(size // 2 if place is None else place for place, size in zip(places, sizes, strict=True))
    found = [middle]
    for far in range(1, max(sizes)):
        for number, size in enumerate(sizes):
            for k in (middle[number] + far, middle[number] - far):
                if 0 <= k < size and far <= (most if size > 2 * most else size):
                    found.append((*middle[:number], k, *middle[number + 1 :]))
    return list(dict.fromkeys(space.canonical_point(point) for point in found))


def _place(composite: Composite, variable: DesignVariable) -> int | None:
    """Return the number of the value that the composite has."""
    for number, value in enumerate(variable.values):
        try:
            if apply_choices(composite, {variable.name: value}) == composite:
                return number
        except HocketError:
            continue
    return None
