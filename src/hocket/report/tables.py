"""The tables behind the verdict: those of `hocket check`, and the estimates after the run.

In:  a Story
Out: a section of tables, each with its title
"""

from __future__ import annotations

from collections.abc import Iterator

from hocket.analysis.checking import Check
from hocket.analysis.consistency import Consistency
from hocket.files.estimate import ErrorEstimate
from hocket.files.flows import KEEPS, read_bond_flows
from hocket.files.run import Run
from hocket.report.gathering import ReportData
from hocket.report.markup import esc, format_number, html_table, prose

REMEDIES = (
    "Gained or lost in a trial run, over what flowed; infinite: it fails. Stored energy: the largest "
    "difference from an iteration at the same step, over the largest there. Steps: in those of now."
)
MOST = 12
"""Rows of a table that are seen at once."""
Rows = list[dict[str, object]]


def tables_section(story: ReportData) -> str:
    """Return the section; empty if nothing was judged."""
    pieces: list[str] = []
    if story.trust:
        pieces += _estimate_tables(story.trust)
    pieces += _energy_tables(story.run)
    if story.check:
        pieces += _check_tables(story.check)
    if not pieces:
        return ""
    grid = f'<div class="tables">{"".join(pieces)}</div>'
    return f'<section id="tables"><h2>What the verdict rests on</h2>{grid}</section>'


def _estimate_tables(trust: ErrorEstimate) -> Iterator[str]:
    yield _titled_table("estimated errors of this run", trust.rows())
    yield _titled_table("inputs against the outputs that drive them", trust.defect_rows())


def _energy_tables(run: Run) -> Iterator[str]:
    found = read_bond_flows(run)
    if found.bonds:
        note = f"A bond keeps energy if it gains or loses at most {100.0 * KEEPS:g} % of what flowed."
        yield _titled_table("energy through power bonds", found.rows(), *found.verdict(), note)
    if len(found.bonds) > 1:
        yield _titled_table("energy through power bonds, per level", found.level_rows())
    yield _titled_table("stored energy", found.stored_rows())


def _check_tables(found: Check) -> Iterator[str]:
    if found.stability:
        yield _titled_table("what lasts longest", found.stability.rows())
        alone: Rows = [
            {"level": path or "the outermost level", "factor per step": rho}
            for path, rho in found.stability.levels
        ]
        yield _titled_table("each level by itself, its inputs held", alone)
    if found.prediction:
        order = f"order: {found.prediction.order.words}"
        yield _titled_table("errors expected before the run", found.prediction.rows(), order)
    yield _titled_table("what would change it", _advice_rows(found))
    if found.bonds:
        yield _titled_table("what the bonds would do", found.bonds.rows(), REMEDIES, *found.bonds.failures)
    if found.largest:
        yield _titled_table("steps that are stable", found.largest.rows())
    nearest = [row for each in found.robustness for row in each.rows()]
    yield _titled_table("how much a simulator's step may change before it grows", nearest)
    if found.consistency:
        yield _consistency_table(found.consistency)
    yield _titled_table("inputs that are extrapolated", found.posedness.rows(), *_loop_lines(found))
    if found.zero:
        yield _titled_table("do outputs that react at once settle", found.zero.rows())
    yield _titled_table("what is not linear", _nonlinear_rows(found))


def _consistency_table(found: Consistency) -> str:
    """Return the part of each input as rows; delta and what it is good for as a sentence."""
    parts: Rows = [{"input": row["what"], "part": row["value"]} for row in found.rows()[1:]]
    said = f"delta = {format_number(found.delta)} (k = {found.k}, norm {found.norm})"
    title = "relative consistency (Glumac and Kovacic)"
    return _titled_table(title, parts, f"{said}: {found.note}" if found.note else said)


def _advice_rows(found: Check) -> Rows:
    return [
        {"change": each.words, "factor per step": each.rho, "largest error": each.error, "steps": each.steps}
        for each in found.advice
    ]


def _loop_lines(found: Check) -> Iterator[str]:
    how = "solved in every step" if found.posedness.solved else "broken by a delay of one step"
    for loop in found.posedness.loops:
        yield f"algebraic loop: {' → '.join(loop)}, {how}"


def _nonlinear_rows(found: Check) -> Rows:
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


def _titled_table(title: str, rows: Rows, *notes: str) -> str:
    if not rows and not notes:
        return ""
    said = "".join(f'<p class="note">{prose(note)}</p>' for note in notes)
    return f"<figure><figcaption>{esc(title)}</figcaption>{html_table(rows, MOST)}{said}</figure>"
