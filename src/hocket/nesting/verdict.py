"""The verdict on a nesting in plain words.

In:  a Nesting
Out: lines, the answer first
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hocket.nesting.clusters import partition_tree
from hocket.nesting.comparing import NEAR, WORTH
from hocket.nesting.judging import Candidate
from hocket.nesting.ways import AS_IT_IS

if TYPE_CHECKING:
    from hocket.nesting.nest import Nesting

FEW = 3
"""Simulators up to which clusters need no words of their own."""


def nesting_verdict(found: Nesting) -> list[str]:
    """Return what was found, the most important first."""
    lines = _nested_lines(found) if found.is_nested else _flat_lines(found)
    lines += _tolerance(found)
    lines += [_strongest(found)]
    if len(list(found.now.tree.names())) > FEW and max(map(len, found.clusters)) > 1:
        lines.append(
            f"who hangs together most: {partition_tree(tuple(found.now.tree.names()), found.clusters).words}"
        )
    return [*lines, *found.notes]


def _nested_lines(found: Nesting) -> list[str]:
    chosen = found.chosen
    assert chosen is not None
    flat = ""
    if found.equal is not None:
        flat = f", where flat has {_error(found.equal)} for {_exchanges(found.equal)}"
    first = f"nesting helps: {_candidate_text(chosen)}: {_error(chosen)} for {_exchanges(chosen)}{flat}"
    return [first, *_now(found)]


def _flat_lines(found: Nesting) -> list[str]:
    chosen = found.chosen
    lines = [_why_not_nested(found)]
    if chosen is None:
        return [*lines, "nothing that was tried is better than the scenario as it is", *_now(found)]
    lines.append(f"what helps: {_candidate_text(chosen)}: {_error(chosen)} for {_exchanges(chosen)}")
    return [*lines, *_now(found)]


def _why_not_nested(found: Nesting) -> str:
    """Return why no hierarchy is proposed: the best of them, and flat at equal work."""
    if not found.proposals:
        return "nesting does not help: no steps fit the levels that strengths suggest"
    best, flat = found.proposals[0], found.equal
    versus = f", and flat has {_error(flat)} for {_exchanges(flat)}" if flat is not None else ""
    less = flat is not None and best.stable and (not flat.stable or best.error < WORTH * flat.error)
    word = "nesting helps less than another algorithm" if less else "nesting does not help"
    return f"{word}: {_candidate_text(best)}: {_error(best)} for {_exchanges(best)}{versus}"


def _now(found: Nesting) -> list[str]:
    return [f"as it is: {_error(found.now)} for {_exchanges(found.now)}"]


def _candidate_text(each: Candidate) -> str:
    tree = "flat" if each.tree.flat else each.tree.words
    way = "" if each.way == AS_IT_IS else f", {each.way.words}"
    return f"{tree} at {_distinct_steps(each)}{way}"


def _distinct_steps(each: Candidate) -> str:
    """Return the steps, each once: of many levels most are alike."""
    return ", ".join(dict.fromkeys(each.steps.split(", ")))


def _error(each: Candidate) -> str:
    size = f"an error of {each.error:.2g}" if math.isfinite(each.error) and each.error < 1e3 else "no answer"
    return size if each.stable else f"{size}, unstable,"


def _exchanges(each: Candidate) -> str:
    return f"{each.work.exchanges:.4g} exchanges per second"


def _tolerance(found: Nesting) -> list[str]:
    if found.tolerance is None:
        return []
    best = found.chosen or found.now
    if best.stable and best.error <= found.tolerance:
        return [f"the tolerance {found.tolerance:g} is kept with {best.times:.3g} times the exchanges of now"]
    reached = ""
    if found.floor is not None:
        reached = (
            f": with the shortest steps an error of {found.floor:.2g} stays, whatever the coupling does; "
            f"what comes within {NEAR - 1.0:.0%} of that was looked for instead"
        )
    return [f"nothing that was tried keeps the tolerance {found.tolerance:g}{reached}"]


def _strongest(found: Nesting) -> str:
    """Return which connections matter most, between whom."""
    pairs: dict[frozenset[str], float] = {}
    for each in found.strengths.connections:
        key = frozenset(each.ends)
        pairs[key] = pairs.get(key, 0.0) + each.error
    whole = sum(pairs.values()) or 1.0
    ranked = sorted(pairs.items(), key=lambda item: -item[1])[:3]
    order = {name: place for place, name in enumerate(found.now.tree.names())}
    shares = [
        f"{share / whole:.0%} between " + " and ".join(f"`{n}`" for n in sorted(pair, key=order.__getitem__))
        for pair, share in ranked
    ]
    return f"what the connections do wrong: {', '.join(shares)}"
