"""Everything a page tells, gathered before a word of it is written; what cannot be had is said.

In:  a Run, and perhaps the Study it came from
Out: a Story
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hocket.analysis.consistency import Consistency
from hocket.analysis.coupling_check import Check, check
from hocket.errors import HocketError, count
from hocket.files.bond_flows import KEEPS, read_bond_flows
from hocket.files.error_estimate import WRONG, ErrorEstimate, read_estimate
from hocket.files.run_folder import Run
from hocket.files.toml import loads
from hocket.model.experiment import Experiment
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.report.markup import bullets, esc, format_number, html_table, prose


@dataclass(frozen=True, eq=False)
class ReportData:
    """A run and what is known of it. Each `no_...` says why its fellow is missing."""

    run: Run
    design: PlanTree | None = None
    no_design: str = ""
    check: Check | None = None
    no_check: str = ""
    trust: ErrorEstimate | None = None
    no_trust: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    """Plan and scenario as they were kept."""


def gather_report_data(run: Run, study: Experiment | None = None) -> ReportData:
    """Return what there is to tell; nothing that fails on the way loses the rest."""
    no_design = no_check = no_trust = ""
    design, found, trust = None, None, None
    texts = {name: _stored_text(run, name) for name in ("plan", "scenario")}
    try:
        study = study or loads(texts["scenario"])
        design = plan_tree(study.composite)
    except Exception as error:  # code that a scenario names may fail in any way
        no_design = f"the scenario kept in the run folder cannot be read again: {_error_words(error)}"
    if study is not None and design is not None:
        try:
            found = check(study)
        except Exception as error:
            no_check = f"the coupling could not be judged: {_error_words(error)}"
    try:
        trust = read_estimate(run.path)
    except Exception as error:
        no_trust = f"the estimate kept in the run folder cannot be read: {_error_words(error)}"
    return ReportData(run, design, no_design, found, no_check or no_design, trust, no_trust, texts)


def _stored_text(run: Run, name: str) -> str:
    try:
        return run.plan_text if name == "plan" else run.scenario_text
    except (HocketError, ValueError):
        return ""


def _error_words(error: Exception) -> str:
    if isinstance(error, HocketError):
        first = error.faults[0]
        more = f" (and {len(error.faults) - 1} more)" if len(error.faults) > 1 else ""
        return f"{first.what}{more}"
    return f"{type(error).__name__}: {error}"


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


Tone: TypeAlias = Literal["ok", "warn", "bad", "none"]
"""Told by colour, sign and word alike."""

SIGNS: dict[Tone, tuple[str, str]] = {
    "ok": ("✓", "good"),
    "warn": ("!", "caution"),
    "bad": ("✕", "bad"),
    "none": ("–", "not known"),
}
LARGE = 0.1
"""An error in relation to the largest value from which on it is a caution."""


def verdict_section(story: ReportData) -> str:
    """Return the cards at the top of the page."""
    cards = (run_card(story.run), check_card(story), estimate_card(story))
    return f'<section id="verdict" class="cards" aria-label="verdict">{"".join(cards)}</section>'


def run_card(run: Run) -> str:
    """Return the card of the run itself; an error is told in full."""
    tones: dict[str, Tone] = {"finished": "ok", "failed": "bad", "killed": "bad"}
    info = run.info
    reached, stop = info.get("reached"), info.get("stop")
    if isinstance(reached, (int, float)) and isinstance(stop, (int, float)):
        far = f" at {reached:g} s" if run.status == "finished" else f" at {reached:g} of {stop:g} s"
    else:
        far = ""
    error = str(info.get("error") or "")
    told = f'<pre class="error">{esc(error)}</pre>' if error else ""
    lines = {
        "killed": ["its process ended without a word; every block of rows that was written is here"],
        "stopped": ["it was stopped before its end; every row so far is here"],
        "running": ["it is still running: this page shows the rows that there were"],
        "failed": [] if error else ["it left no message"],
    }.get(run.status, [])
    tone = tones.get(run.status, "warn")
    return _verdict_card("The run", tone, f"{run.status}{far}", lines, told, wide=tone != "ok")


def check_card(story: ReportData) -> str:
    """Return the card of `hocket check`."""
    title, found = "Before the run: is the coupling sound?", story.check
    if found is None:
        return _verdict_card(title, "none", "not judged", [story.no_check])
    first, *rest = found.verdict() or ["nothing to judge"]
    return _verdict_card(title, _check_tone(found), first, rest)


def estimate_card(story: ReportData) -> str:
    """Return the card of the error estimate."""
    title, trust = "After the run: how wrong was it?", story.trust
    how = (
        f"`hocket check {shlex.quote(story.run.path.name)}` runs it again with shorter steps and estimates it"
    )
    if trust is None:
        return _verdict_card(title, "none", "not estimated", [story.no_trust or how])
    first, *rest = trust.verdict() or ["nothing was estimated"]
    method = f"method: {trust.method}, {count(len(trust.ports), 'port')}"
    return _verdict_card(title, _trust_tone(trust), first, [*rest, method])


def _check_tone(found: Check) -> Tone:
    if found.ill_posed:
        return "bad"
    if found.stability is None or not found.is_conclusive:
        return "warn"
    if not found.good:
        return "bad"
    large = found.prediction is not None and not found.prediction.worst.relative <= LARGE
    return "warn" if large or (found.zero is not None and not found.zero.stable) else "ok"


def _trust_tone(trust: ErrorEstimate) -> Tone:
    if not trust.ports:
        return "none"
    worst = trust.ports[0].relative
    if not worst < WRONG:
        return "bad"
    return "warn" if trust.doubts or worst > LARGE else "ok"


def _verdict_card(
    title: str, tone: Tone, first: str, lines: Sequence[str], more: str = "", wide: bool = False
) -> str:
    sign, word = SIGNS[tone]
    return (
        f'<article class="card {tone}{" wide" if wide else ""}"><h2>{esc(title)}</h2>'
        f'<p class="first"><span class="sign" role="img" aria-label="{word}">{sign}</span>'
        f"<span>{prose(first)}</span></p>{more}{bullets(lines)}</article>"
    )
