"""What was judged, as data that a page's script draws: numbers, choices, and the lines that change.

In:  a TuningResult, and the Study it is about
Out: plain lists, short enough for a page of 20,000 points
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hocket.files.study import Experiment
from hocket.report.changed import changed_lines
from hocket.tuning.tuned import TuningResult

MOST = 20_000
"""Points on a page."""
DIGITS = 6


def shown_points(tuned: TuningResult) -> list[int]:
    """Return the points that a page holds: those with numbers; of too many, the front and an even choice."""
    finite = [k for k, row in enumerate(tuned.numbers) if all(map(math.isfinite, row))]
    if len(finite) <= MOST:
        return finite
    every = math.ceil(len(finite) / MOST)
    return sorted({*finite[::every], *tuned.front})


@dataclass(frozen=True, eq=False)
class _ChangedLines:
    """The changed lines of many points, each line kept once."""

    texts: list[tuple[str, str]]
    """Table and line, with its sign."""
    of: list[list[int] | None]


def candidate_data(tuned: TuningResult, study: Experiment, shown: Sequence[int]) -> dict[str, Any]:
    """Return what the script draws: numbers and choices by column, lines once."""
    place = {k: number for number, k in enumerate(shown)}
    lines = _index_lines(tuned, study, shown)
    return {
        "objectives": [
            {"name": each.name, "words": each.words, "goal": number < tuned.goals, "limit": each.limit}
            for number, each in enumerate(tuned.wanted)
        ],
        "variables": [
            {"name": each.name, "words": each.words, "values": _numeric_values(each.values)}
            for each in tuned.space.variables
        ],
        "numbers": [[_round_finite(tuned.numbers[k][n]) for k in shown] for n in range(len(tuned.wanted))],
        "choices": [[tuned.points[k][n] for k in shown] for n in range(len(tuned.space.variables))],
        "outside": [number for number, k in enumerate(shown) if not math.isfinite(tuned.costs[k][0])],
        "front": [place[k] for k in tuned.front],
        "proposed": place[tuned.front[tuned.knee]] if tuned.front else None,
        "now": [_round_finite(value) for value in tuned.now],
        "lines": lines.texts,
        "changes": lines.of,
    }


def _numeric_values(values: Sequence[Any]) -> list[float] | None:
    plain = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
    return [float(f"{each:.{DIGITS}g}") for each in values] if plain else None


def _round_finite(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _index_lines(tuned: TuningResult, study: Experiment, shown: Sequence[int]) -> _ChangedLines:
    known: dict[tuple[str, str], int] = {}
    of: list[list[int] | None] = []
    for found in changed_lines(tuned, study, shown):
        lines = (
            None if found is None else [(each.table, line) for each in found for line in each.diff_lines()]
        )
        of.append(None if lines is None else [known.setdefault(line, len(known)) for line in lines])
    return _ChangedLines(list(known), of)
