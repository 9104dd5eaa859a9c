"""Why to choose a coupling: what it gains over that of now, and what it costs, in a sentence.

In:  objectives, their numbers for a coupling and for that of now
Out: words: 20 times less error than now at the same work
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hocket.tuning.objectives import Objective

EVEN, EXACT = 1.02, 1.0005
"""Times that still count as the same; of `rho`, which counts anew in every step."""
NOUNS = {
    "measured": "measured error",
    "relative": "relative error",
    "radius": "stability radius",
    "seconds": "time to run",
    "time": "computing time",
    "work": "work",
}

SIZES = ("rho", "delta", "step", "stability radius", "relative error")
"""What is large or small, rather than much or little."""


def reason(wanted: Sequence[Objective], new: Sequence[float], old: Sequence[float]) -> str:
    """Return what a coupling gains over that of now: what is better, what stays, and the price."""
    better: list[str] = []
    same: list[str] = []
    worse: list[str] = []
    other: list[str] = []
    for objective, after, before in zip(wanted, new, old, strict=True):
        noun = NOUNS.get(objective.name.partition(":")[0], objective.name)
        if not math.isfinite(before):
            other.append(f"{noun} {after:.3g}, where now has none")
        elif after == before:
            same.append(noun)
        elif before == 0.0 or after == 0.0 or (before < 0.0) != (after < 0.0):
            other.append(f"{noun} {after:.3g} instead of {before:.3g}")
        else:
            times = abs(after / before)
            if max(times, 1.0 / times) <= (EXACT if noun == "rho" else EVEN):
                same.append(noun)
            else:
                gains = objective.cost(after) < objective.cost(before)
                (better if gains else worse).append(_factor_words(noun, times))
    return _sentence(better, same, worse, other)


def _factor_words(noun: str, times: float) -> str:
    if noun in SIZES:
        word = "larger" if times > 1.0 else "smaller"
        return f"a {_round(times)} times {word} {noun}"
    return f"{_round(times)} times {'more' if times > 1.0 else 'less'} {noun}"


def _round(times: float) -> str:
    many = max(times, 1.0 / times)
    return (
        f"{many:.4g}"
        if many < 1.1
        else f"{many:,.0f}"
        if 20.0 <= many < 1e6
        else f"{many:.2g}"
        if many >= 2.0
        else f"{many:.3g}"
    )


def _sentence(better: list[str], same: list[str], worse: list[str], other: list[str]) -> str:
    parts = list(_gain_clauses(better, same, worse))
    return "; ".join([*([" ".join(parts)] if parts else []), *other])


def _gain_clauses(better: list[str], same: list[str], worse: list[str]) -> Iterator[str]:
    if better:
        yield f"{_and(better)} than now"
    if same:
        yield f"at the same {_and(same)}" if better or worse else f"the same {_and(same)} as now"
    if worse:
        yield f"{'but ' if better else ''}{_and(worse)}" + ("" if better else " than now")


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
