"""hocket check --vary: for which values of one parameter, or of two, is the coupling stable?

In:  a study, and ranges such as `step=10ms:200ms` and `plant.k=1:100`
Out: intervals of one parameter, or a map over two: words, a table, a picture, JSON
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.cli.progress import count_progress
from hocket.cli.screen import print_out
from hocket.cli.tables import titled_table
from hocket.cli.typed import split_assignment
from hocket.clock import seconds
from hocket.engine.composite import Composite
from hocket.errors import ScenarioError, suggest_nearest
from hocket.files.study import Experiment
from hocket.parameters import leaves

if TYPE_CHECKING:
    from hocket.analysis.intervals import Intervals
    from hocket.analysis.maps import StabilityMap

OPTION = "--vary"
MAP_COLUMNS, MAP_ROWS = 41, 31
"""Points of a map, unless they are given."""
WIDE = 100.0
"""From this ratio of its ends on, a range is looked at on a logarithmic scale."""


@dataclass(frozen=True)
class VariedRange:
    """What varies, from where to where."""

    name: str
    low: float
    high: float
    count: int | None

    @property
    def logarithmic(self) -> bool:
        """Whether its ends are far apart."""
        return self.low > 0.0 and self.high >= WIDE * self.low

    def points(self, count: int) -> list[float]:
        """Return the values to look at."""
        places = np.geomspace if self.logarithmic else np.linspace
        return [float(value) for value in places(self.low, self.high, self.count or count)]


def parse_ranges(composite: Composite, written: Sequence[str]) -> list[VariedRange]:
    """Return what was typed; each fault says what is wrong with it."""
    from hocket.analysis.energy import balanced_leaves

    if len(written) > 2:
        raise ScenarioError(f"{len(written)} things vary", OPTION, "one, or two for a map")
    for path in balanced_leaves(composite)[:1]:
        what = f"`{path}` cannot be judged: its bonds are balanced, by a law that is not linear"
        hint = "`hocket check` without --vary, which tries them; `hocket sweep` runs it for each value"
        raise ScenarioError(what, OPTION, "bonds without `balance`", hint)
    found = [_parse_range(composite, text) for text in written]
    if len(found) == 2 and found[0].name == found[1].name:
        raise ScenarioError(f"`{found[0].name}` varies twice", OPTION, "two different names")
    return found


def _parse_range(composite: Composite, text: str) -> VariedRange:
    from hocket.analysis.varied import is_step

    if "=" not in text:
        raise ScenarioError(f"`{text}` says not from where to where", OPTION, "name=low:high, as k=1:100")
    name, values = split_assignment(text, OPTION)
    where = f"{OPTION} {text}"
    step = is_step(composite, name)
    expected = "low:high, as step=10ms:200ms" if step else "low:high, as k=1:100"
    parts = values.split(":")
    count = parts[2].strip() if len(parts) == 3 else ""
    if len(parts) not in (2, 3) or (count and not count.isdecimal()):
        raise ScenarioError(f"`{values}` is no range", where, f"{expected}; of a map also low:high:points")
    if count and not 2 <= int(count) <= 1000:
        raise ScenarioError(f"{count} points make no map", where, "2 to 1000 points")
    try:
        low, high = (float(seconds(part.strip())) if step else float(part) for part in parts[:2])
    except ValueError as error:
        what = str(error) if step else f"`{values}` is no range of numbers"
        raise ScenarioError(what, where, expected) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        same = "begins where it ends" if low == high else "has its lower end last, or no end"
        raise ScenarioError(f"the range {values} of `{name}` {same}", where, "the lower value first")
    if step and low <= 0.0:
        raise ScenarioError("a step must be above zero", where, expected)
    _check_varied_name(composite, name, low, where)
    return VariedRange(name, low, high, int(count) if count else None)


def _check_varied_name(composite: Composite, name: str, value: float, where: str) -> None:
    """Refuse what cannot vary; near misses of steps and filters are offered."""
    from hocket.analysis.varied import variable_names, with_values

    try:
        with_values(composite, {name: value}, where)
    except ScenarioError as error:
        models = [path for path, _ in leaves(composite)]
        if len(models) > 1 and not any(name.startswith(f"{path}.") for path in models):
            expected = "a step, or a parameter of a model"
            raise ScenarioError(
                f"there is no `{name}`",
                where,
                expected,
                suggest_nearest(name, [*variable_names(composite), *models]),
            ) from None
        raise error from None


def map_stability(study: Experiment, over: Sequence[VariedRange], quiet: bool) -> Intervals | StabilityMap:
    """Return the intervals of one parameter, or the map over two."""
    from hocket.analysis.intervals import intervals_below
    from hocket.analysis.maps import map_radius
    from hocket.analysis.varied import VariedRadius

    rho = VariedRadius(study.composite, [each.name for each in over], study.start, OPTION)
    with count_progress(study.name or "check", "values", quiet) as told:
        if len(over) == 1:
            (only,) = over
            return intervals_below(rho, only.low, only.high, only.logarithmic, only.name, told=told)
        x, y = over
        scales = x.logarithmic, y.logarithmic
        return map_radius(rho, x.points(MAP_COLUMNS), y.points(MAP_ROWS), (x.name, y.name), scales, told)


def print_stability(found: Intervals | StabilityMap, picture: bool, most: int | None) -> None:
    """Print what was found."""
    from hocket.analysis.maps import StabilityMap

    if isinstance(found, StabilityMap):
        known = np.isfinite(found.rho)
        stable = int((found.rho[known] < 1.0).sum())
        print_out(f"stable at {stable:,} of {found.rho.size:,} points of the map")
        if (~known).any():
            print_out(f"not judged, or without a solution: {int((~known).sum()):,} points")
        if not picture:
            print_out(f"{OPTION} ... --plot map.png draws it, with the boundary; --json writes it")
        return
    if not found.intervals:
        print_out(f"stable for no `{found.name}` from {found.low:.4g} to {found.high:.4g}")
        return
    spans = "; ".join(f"{each.low:.6g} to {each.high:.6g}" for each in found.intervals)
    print_out(f"stable for `{found.name}` from {spans}")
    print_out(*titled_table("where it is stable", found.rows(), most))


def stability_facts(found: Intervals | StabilityMap) -> dict[str, Any]:
    """Return everything, for JSON."""
    from hocket.analysis.maps import StabilityMap

    if isinstance(found, StabilityMap):
        return {"names": found.names, "points": found.rows(), "boundary": found.boundary}
    looked = [
        {found.name: v, "rho": r} for v, r in zip(found.values.tolist(), found.rho.tolist(), strict=True)
    ]
    return {"names": [found.name], "intervals": found.rows(), "points": looked}
