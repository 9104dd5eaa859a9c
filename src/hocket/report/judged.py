"""What was judged, as data that a page's script draws: numbers, choices, and the lines that change.

In:  a Tuned, and the Study it is about
Out: plain lists, short enough for a page of 20,000 points
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hocket.files.study import Study
from hocket.report.changed import changed_lines
from hocket.tuning.tuned import Tuned

MOST = 20_000
"""Points on a page."""
DIGITS = 6


def shown_points(tuned: Tuned) -> list[int]:
    """Return the points that a page holds: those with numbers; of too many, the front and an even choice."""
    finite = [k for k, row in enumerate(tuned.numbers) if all(map(math.isfinite, row))]
    if len(finite) <= MOST:
        return finite
    every = math.ceil(len(finite) / MOST)
    return sorted({*finite[::every], *tuned.front})


@dataclass(frozen=True, eq=False)
class _Lines:
    """The changed lines of many points, each line kept once."""

    texts: list[tuple[str, str]]
    """Table and line, with its sign."""
    of: list[list[int] | None]


def judged_data(tuned: Tuned, study: Study, shown: Sequence[int]) -> dict[str, Any]:
    """Return what the script draws: numbers and choices by column, lines once."""
    place = {k: number for number, k in enumerate(shown)}
    lines = _lines(tuned, study, shown)
    return {
        "objectives": [
            {"name": each.name, "words": each.words, "goal": number < tuned.goals, "limit": each.limit}
            for number, each in enumerate(tuned.wanted)
        ],
        "variables": [
            {"name": each.name, "words": each.words, "values": _numeric(each.values)}
            for each in tuned.space.variables
        ],
        "numbers": [[_digits(tuned.numbers[k][n]) for k in shown] for n in range(len(tuned.wanted))],
        "choices": [[tuned.points[k][n] for k in shown] for n in range(len(tuned.space.variables))],
        "outside": [number for number, k in enumerate(shown) if not math.isfinite(tuned.costs[k][0])],
        "front": [place[k] for k in tuned.front],
        "proposed": place[tuned.front[tuned.knee]] if tuned.front else None,
        "now": [_digits(value) for value in tuned.now],
        "lines": lines.texts,
        "changes": lines.of,
    }


def _numeric(values: Sequence[Any]) -> list[float] | None:
    plain = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
    return [float(f"{each:.{DIGITS}g}") for each in values] if plain else None


def _digits(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _lines(tuned: Tuned, study: Study, shown: Sequence[int]) -> _Lines:
    known: dict[tuple[str, str], int] = {}
    of: list[list[int] | None] = []
    for found in changed_lines(tuned, study, shown):
        lines = None if found is None else [(each.table, line) for each in found for line in each.rows()]
        of.append(None if lines is None else [known.setdefault(line, len(known)) for line in lines])
    return _Lines(list(known), of)
