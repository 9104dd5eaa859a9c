"""The page of a run: all it tells, gathered before a word of it is written, then put together.

In:  a Run, and perhaps the Experiment it came from
Out: one HTML file, with its style and script inside
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hocket.analysis.coupling_check import Check, check
from hocket.analysis.measure import Measure, Outcome, verdict_lines, worst_outcome
from hocket.analysis.reconciliation import predicted_errors
from hocket.analysis.run_measures import Reconciliation, run_measures
from hocket.errors import HocketError, count
from hocket.files.atomic_files import write_text
from hocket.files.error_estimate import ErrorEstimate, read_estimate
from hocket.files.run_clearing import REPORT
from hocket.files.run_folder import Run
from hocket.files.toml import loads
from hocket.model.code_loading import no_code
from hocket.model.experiment import Experiment
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.report.charts import ports_section
from hocket.report.level_boxes import levels_section
from hocket.report.markup import (
    Tone,
    bullets,
    card_section,
    esc,
    format_number,
    html_page,
    html_table,
    note,
    page_footer,
    page_header,
    section,
    verdict_card,
)
from hocket.report.timeline import timeline_section

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class ReportData:
    """A run and what is known of it. Each `no_...` says why its fellow is missing."""

    run: Run
    design: PlanTree | None
    no_design: str
    check: Check | None
    no_check: str
    trust: ErrorEstimate | None
    no_trust: str
    after: tuple[Measure, ...]
    """What is said about the run itself."""
    plan_text: str
    scenario_text: str
    """Both as they were kept."""


def gather_report_data(run: Run, experiment: Experiment | None = None) -> ReportData:
    """Return what there is to tell; nothing that fails on the way loses the rest."""
    plan_text, _ = _attempt("no plan", lambda: run.plan_text)
    scenario_text, _ = _attempt("no scenario", lambda: run.scenario_text)

    def plan_again() -> tuple[Experiment, PlanTree]:
        meant = experiment or loads(scenario_text or "")
        return meant, plan_tree(meant.composite)

    planned, no_design = _attempt("the scenario kept in the run folder cannot be read again", plan_again)
    found, no_check = None, no_design
    if planned is not None:
        meant, _ = planned
        found, no_check = _attempt("the coupling could not be judged", lambda: check(meant))
    trust, no_trust = _attempt(
        "the estimate kept in the run folder cannot be read", lambda: read_estimate(run.path)
    )
    if trust is not None and found is not None:
        # a check that predicts nothing here does not undo what was predicted when it was run
        trust = replace(trust, prediction=predicted_errors(found) or trust.prediction)
    return ReportData(
        run,
        planned[1] if planned else None,
        no_design,
        found,
        no_check,
        trust,
        no_trust,
        run_measures(run, trust),
        plan_text or "",
        scenario_text or "",
    )


def _attempt(failure: str, work: Callable[[], Result]) -> tuple[Result | None, str]:
    """Return what some work gives, or why nothing: code that a scenario names may fail in any way."""
    try:
        return work(), ""
    except HocketError as error:
        more = f" (and {len(error.faults) - 1} more)" if len(error.faults) > 1 else ""
        return None, f"{failure}: {error.faults[0].what}{more}"
    except Exception as error:
        return None, f"{failure}: {type(error).__name__}: {error}"


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
    tones: dict[str, Tone] = {
        "ended": "ok",
        "finished": "ok",
        "diverged": "bad",
        "failed": "bad",
        "crashed": "bad",
        "killed": "bad",
    }
    info = run.info
    kind = "ended" if info["status"] == "ended" else run.status
    reached, stop = info.get("reached"), info.get("stop")
    far = ""
    if isinstance(reached, (int, float)) and isinstance(stop, (int, float)):
        far = (
            f" at {reached:g} s"
            if run.status in ("finished", "diverged")
            else f" at {reached:g} of {stop:g} s"
        )
    error = str(info.get("error") or "")
    told = f'<pre class="error">{esc(error)}</pre>' if error else ""
    lines = {
        "crashed": ["its process ended inside an FMU or other compiled code; every row so far is here"],
        "killed": ["its process ended without a word; every block of rows that was written is here"],
        "diverged": ["it came to its end, with values that nothing of its start is left in: see the notes"],
        "stopped": ["it was stopped before its end; every row so far is here"],
        "ended": ["a simulator asked to end the simulation; every row so far is here"],
        "running": ["it is still running: this page shows the rows that there were"],
        "failed": [] if error else ["it left no message"],
    }.get(kind, [])
    tone = tones.get(kind, "warn")
    return verdict_card("The run", tone, f"{run.status}{far}", lines, told, wide=tone != "ok")


def check_card(story: ReportData) -> str:
    """Return the card of `hocket check`."""
    title, found = "Before the run: is the coupling stable?", story.check
    if found is None:
        return verdict_card(title, "none", "not judged", [story.no_check])
    first, *rest = found.verdict() or ["nothing to judge"]
    apart = [each for each in story.after if isinstance(each, Reconciliation)]
    tone = TONES[max(found.outcome, worst_outcome(apart))]  # what the run contradicts has no tick
    return verdict_card(title, tone, first, [*rest, *verdict_lines(apart)])


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


def run_header(run: Run) -> str:
    """Return the title with what is asked first."""
    parts = [f"{word} {text}" for word, text in _run_facts(run) if word in ("simulated", "took")]
    return page_header("hocket report", run.name, [*parts, _format_date(run.info.get("begun"))])


def facts_section(run: Run) -> str:
    """Return all facts, in pairs."""
    pairs = "".join(f"<div><dt>{esc(word)}</dt><dd>{esc(text)}</dd></div>" for word, text in _run_facts(run))
    return section("facts", "Facts", f"<dl>{pairs}</dl>")


def notes_section(run: Run) -> str:
    """Return what was noted when it was read, planned and run."""
    said = [str(each) for each in run.info.get("notes", [])]
    why = run.info.get("why_interpreted")
    said += [f"run by the interpreter, because {why}"] if why else []
    return section("notes", "Notes and warnings", bullets(said, "notes"))


def _run_facts(run: Run) -> Iterator[tuple[str, str]]:
    info = run.info
    yield "status", run.status
    start, reached = _number_or_none(info.get("start")), _number_or_none(info.get("reached"))
    if start is not None and reached is not None:
        yield "simulated", f"{start:g} to {reached:g} s"
    counts = info.get("counts") or {}
    for thing in ("steps", "simulators"):
        if thing in counts:
            yield thing, f"{counts[thing]:,}"
    timings = info.get("timings") or {}
    wall = _number_or_none(timings.get("wall"))
    if wall is not None:
        yield "took", _format_duration(wall)
        if wall > 0 and start is not None and reached is not None and reached > start:
            yield "speed", f"{format_number((reached - start) / wall)} times real time"
    for phase, length in (timings.get("phases") or {}).items():
        yield f"of it, {phase}", _format_duration(length)
    yield "engine", str(info.get("engine", "never started"))
    yield "kept", run.size_text
    if realtime := info.get("realtime"):
        late, lag = count(realtime["overruns"], "overrun"), _format_duration(realtime["largest_lag"])
        yield "real time", f"factor {realtime['factor']:g}, {late}, at most {lag} late"
    for path, value in (info.get("parameters") or {}).items():
        yield f"parameter {path}", str(value)
    yield "begun", _format_date(info.get("begun"))
    yield "machine", str(info.get("host", ""))
    yield from ((name, str(version)) for name, version in (info.get("versions") or {}).items())
    yield "folder", run.path.name


def _number_or_none(value: Any) -> float | None:
    """Return a fact that is a number; a run that never began lacks some."""
    return float(value) if isinstance(value, (int, float)) else None


def _format_duration(length: float) -> str:
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if abs(length) >= scale:
            return f"{format_number(length / scale)} {unit}"
    return f"{format_number(length / 1e-6)} µs"


def _format_date(text: Any) -> str:
    try:
        return f"{datetime.fromisoformat(str(text)):%Y-%m-%d %H:%M:%S %Z}"
    except ValueError:
        return ""


_STYLES = ("page.css", "timeline.css")
_SCRIPTS = ("errors.js", "wires.js", "axes.js", "charts.js", "ready.js")


def write_report(
    run: Run, path: Path | str | None = None, experiment: Experiment | None = None, *, code: bool = False
) -> Path:
    """Write the page of a run, by default as report.html in its folder; return where.

    `experiment` is what was run, where the run folder cannot tell (models made in Python code). Code that
    the run folder names, FMUs too, is loaded only with `code`: what cannot be told without it says so.
    """
    file = run.path / REPORT if path is None else Path(path)
    write_text(file, report_page(run, experiment, code=code))
    return file


def report_page(run: Run, experiment: Experiment | None = None, *, code: bool = False) -> str:
    """Return the page as text."""
    with nullcontext() if code or experiment else no_code("`code=True` (--code) loads it: that runs it"):
        story = gather_report_data(run, experiment)
    parts = (
        run_header(run),
        verdict_section(story),
        ports_section(run, story.trust),
        *_coupling_sections(story),
        tables_section(story),
        notes_section(run),
        facts_section(run),
        *_text_sections(story),
        page_footer(),
    )
    return html_page(f"{run.name}: {run.status}", parts, _STYLES, _SCRIPTS)


def _coupling_sections(story: ReportData) -> Iterator[str]:
    levels, timeline = "Levels and connections", "One macro step, as planned"
    design = story.design
    if design is None:
        yield section("levels", levels, note(story.no_design))
        return
    for name, title, draw in (("levels", levels, levels_section), ("timeline", timeline, timeline_section)):
        drawn, why = _attempt("This could not be drawn", partial(draw, design, story.run.name))
        yield drawn if drawn is not None else section(name, title, note(why))


def _text_sections(story: ReportData) -> tuple[str, ...]:
    texts = {"The plan in words": story.plan_text, "The scenario as it was run": story.scenario_text}
    return tuple(
        f'<details class="text"><summary>{title}</summary><pre>{esc(text)}</pre></details>'
        for title, text in texts.items()
        if text
    )
