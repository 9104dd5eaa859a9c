"""The answer first: how the run went, what was expected of it, how wrong it was.

In:  a Story
Out: three cards, each with a sign, a sentence and what it rests on
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal, TypeAlias

from hocket.analysis.checking import Check
from hocket.files.estimate import WRONG, ErrorEstimate
from hocket.files.run import Run
from hocket.report.gathering import ReportData
from hocket.report.markup import bullets, esc, prose
from hocket.simulators.fmu.probe.words import count

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
