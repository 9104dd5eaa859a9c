"""Everything a page tells, gathered before a word of it is written; its cards and its tables of measures.

In:  a Run, and perhaps the Experiment it came from
Out: a ReportData, and HTML
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass

from hocket.analysis.coupling_check import Check, check
from hocket.analysis.measure import Measure, Outcome, verdict_lines, worst_outcome
from hocket.analysis.run_measures import run_measures
from hocket.errors import HocketError, count
from hocket.files.error_estimate import ErrorEstimate, read_estimate
from hocket.files.run_folder import Run
from hocket.files.toml import loads
from hocket.model.experiment import Experiment
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.report.markup import Tone, card_section, esc, html_table, note, section, verdict_card


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
    after: tuple[Measure, ...] = ()
    """What is said about the run itself."""
    plan_text: str = ""
    scenario_text: str = ""
    """Both as they were kept."""


def gather_report_data(run: Run, experiment: Experiment | None = None) -> ReportData:
    """Return what there is to tell; nothing that fails on the way loses the rest."""
    no_design = no_check = no_trust = plan_text = scenario_text = ""
    design, found, trust = None, None, None
    with suppress(HocketError, ValueError):
        plan_text = run.plan_text
    with suppress(HocketError, ValueError):
        scenario_text = run.scenario_text
    try:
        experiment = experiment or loads(scenario_text)
        design = plan_tree(experiment.composite)
    except Exception as error:  # code that a scenario names may fail in any way
        no_check = no_design = (
            f"the scenario kept in the run folder cannot be read again: {_error_words(error)}"
        )
    if experiment is not None and design is not None:
        try:
            found = check(experiment)
        except Exception as error:
            no_check = f"the coupling could not be judged: {_error_words(error)}"
    try:
        trust = read_estimate(run.path)
    except Exception as error:
        no_trust = f"the estimate kept in the run folder cannot be read: {_error_words(error)}"
    after = run_measures(run, trust)
    return ReportData(
        run, design, no_design, found, no_check, trust, no_trust, after, plan_text, scenario_text
    )


def _error_words(error: Exception) -> str:
    if isinstance(error, HocketError):
        first = error.faults[0]
        more = f" (and {len(error.faults) - 1} more)" if len(error.faults) > 1 else ""
        return f"{first.what}{more}"
    return f"{type(error).__name__}: {error}"


MOST = 12
"""Rows of a table that are seen at once."""


def tables_section(story: ReportData) -> str:
    """Return a table for each measure; empty if nothing was judged."""
    pieces = "".join(map(_measure_table, (*story.after, *(story.check.measures if story.check else ()))))
    return section("tables", "Measures", f'<div class="tables">{pieces}</div>' if pieces else "")


def _measure_table(measure: Measure) -> str:
    rows, notes = measure.rows(), measure.notes()
    if not rows and not notes:
        return ""
    said = "".join(map(note, notes))
    return f"<figure><figcaption>{esc(measure.title)}</figcaption>{html_table(rows, MOST)}{said}</figure>"


TONES: dict[Outcome, Tone] = {
    Outcome.GOOD: "ok",
    Outcome.CAUTION: "warn",
    Outcome.NOT_JUDGED: "warn",
    Outcome.UNRELIABLE: "warn",
    Outcome.BAD: "bad",
}


def verdict_section(story: ReportData) -> str:
    """Return the cards at the top of the page."""
    cards = (run_card(story.run), check_card(story), estimate_card(story))
    return card_section("verdict", cards)


def run_card(run: Run) -> str:
    """Return the card of the run itself; an error is told in full."""
    tones: dict[str, Tone] = {"finished": "ok", "failed": "bad", "killed": "bad"}
    info = run.info
    reached, stop = info.get("reached"), info.get("stop")
    far = ""
    if isinstance(reached, (int, float)) and isinstance(stop, (int, float)):
        far = f" at {reached:g} s" if run.status == "finished" else f" at {reached:g} of {stop:g} s"
    error = str(info.get("error") or "")
    told = f'<pre class="error">{esc(error)}</pre>' if error else ""
    lines = {
        "killed": ["its process ended without a word; every block of rows that was written is here"],
        "stopped": ["it was stopped before its end; every row so far is here"],
        "running": ["it is still running: this page shows the rows that there were"],
        "failed": [] if error else ["it left no message"],
    }.get(run.status, [])
    tone = tones.get(run.status, "warn")
    return verdict_card("The run", tone, f"{run.status}{far}", lines, told, wide=tone != "ok")


def check_card(story: ReportData) -> str:
    """Return the card of `hocket check`."""
    title, found = "Before the run: is the coupling stable?", story.check
    if found is None:
        return verdict_card(title, "none", "not judged", [story.no_check])
    first, *rest = found.verdict() or ["nothing to judge"]
    return verdict_card(title, TONES[found.outcome], first, rest)


def estimate_card(story: ReportData) -> str:
    """Return the card of what is known after the run."""
    title, trust, lines = "After the run: how large is the error?", story.trust, verdict_lines(story.after)
    if trust is None:
        how = f"`hocket check {shlex.quote(story.run.path.name)}` estimates it from runs with shorter steps"
        return verdict_card(title, "none", "not estimated", [story.no_trust or how, *lines])
    tone = TONES[worst_outcome(story.after)] if trust.ports else "none"
    return verdict_card(
        title, tone, lines[0], [*lines[1:], f"method: {trust.method}, {count(len(trust.ports), 'port')}"]
    )
