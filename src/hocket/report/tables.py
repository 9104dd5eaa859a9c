"""The tables behind the verdict: those of `hocket check`, and the estimates after the run.

In:  a Story
Out: a section of tables, each with its title
"""

from __future__ import annotations

from collections.abc import Iterator

from hocket.analysis.checking import Check
from hocket.analysis.consistency import Consistency
from hocket.files.estimate import Trust
from hocket.files.flows import KEEPS, flows
from hocket.files.run import Run
from hocket.report.gathering import Story
from hocket.report.markup import esc, number, prose, table

REMEDIES = (
    "Gained or lost in a trial run, over what flowed; infinite: it fails. Stored energy: the largest "
    "difference from an iteration at the same step, over the largest there. Steps: in those of now."
)
MOST = 12
"""Rows of a table that are seen at once."""
Rows = list[dict[str, object]]


def tables(story: Story) -> str:
    """Return the section; empty if nothing was judged."""
    pieces: list[str] = []
    if story.trust:
        pieces += _estimated(story.trust)
    pieces += _energies(story.run)
    if story.check:
        pieces += _checked(story.check)
    if not pieces:
        return ""
    grid = f'<div class="tables">{"".join(pieces)}</div>'
    return f'<section id="tables"><h2>What the verdict rests on</h2>{grid}</section>'


def _estimated(trust: Trust) -> Iterator[str]:
    yield _titled("estimated errors of this run", trust.rows())
    yield _titled("inputs against the outputs that drive them", trust.gap_rows())


def _energies(run: Run) -> Iterator[str]:
    found = flows(run)
    if found.bonds:
        note = f"A bond keeps energy if it gains or loses at most {100.0 * KEEPS:g} % of what flowed."
        yield _titled("energy through power bonds", found.rows(), *found.verdict(), note)
    if len(found.bonds) > 1:
        yield _titled("energy through power bonds, per level", found.level_rows())
    yield _titled("stored energy", found.stored_rows())


def _checked(found: Check) -> Iterator[str]:
    if found.stability:
        yield _titled("what lasts longest", found.stability.rows())
        alone: Rows = [
            {"level": path or "the outermost level", "factor per step": rho}
            for path, rho in found.stability.levels
        ]
        yield _titled("each level by itself, its inputs held", alone)
    if found.prediction:
        order = f"order: {found.prediction.order.words}"
        yield _titled("errors expected before the run", found.prediction.rows(), order)
    yield _titled("what would change it", _changes(found))
    if found.bonds:
        yield _titled("what the bonds would do", found.bonds.rows(), REMEDIES, *found.bonds.failures)
    if found.largest:
        yield _titled("steps that are stable", found.largest.rows())
    nearest = [row for each in found.robustness for row in each.rows()]
    yield _titled("how much a simulator's step may change before it grows", nearest)
    if found.consistency:
        yield _consistency(found.consistency)
    yield _titled("inputs that are extrapolated", found.posedness.rows(), *_loops(found))
    if found.zero:
        yield _titled("do outputs that react at once settle", found.zero.rows())
    yield _titled("what is not linear", _models(found))


def _consistency(found: Consistency) -> str:
    """Return the part of each input as rows; delta and what it is good for as a sentence."""
    parts: Rows = [{"input": row["what"], "part": row["value"]} for row in found.rows()[1:]]
    said = f"delta = {number(found.delta)} (k = {found.k}, norm {found.norm})"
    title = "relative consistency (Glumac and Kovacic)"
    return _titled(title, parts, f"{said}: {found.note}" if found.note else said)


def _changes(found: Check) -> Rows:
    return [
        {"change": each.words, "factor per step": each.rho, "largest error": each.error, "steps": each.steps}
        for each in found.advice
    ]


def _loops(found: Check) -> Iterator[str]:
    how = "solved in every step" if found.posedness.solved else "broken by a delay of one step"
    for loop in found.posedness.loops:
        yield f"algebraic loop: {' → '.join(loop)}, {how}"


def _models(found: Check) -> Rows:
    return [
        {
            "simulator": leaf.path,
            "linear model": leaf.how,
            "fit": leaf.fit,
            "why": "; ".join(filter(None, (leaf.refused, *leaf.notes))),
        }
        for leaf in found.leaves
        if leaf.how != "exact"
    ]


def _titled(title: str, rows: Rows, *notes: str) -> str:
    if not rows and not notes:
        return ""
    said = "".join(f'<p class="note">{prose(note)}</p>' for note in notes)
    return f"<figure><figcaption>{esc(title)}</figcaption>{table(rows, MOST)}{said}</figure>"
