"""The page put together: one HTML file, with its style and script inside.

In:  a Run
Out: the page as text, or written to a file
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from hocket.errors import count
from hocket.files.atomic_files import write_text
from hocket.files.run_folder import REPORT, Run
from hocket.model.experiment import Experiment
from hocket.report.charts import ports_section
from hocket.report.evidence import ReportData, gather_report_data, tables_section, verdict_section
from hocket.report.level_boxes import levels_section
from hocket.report.markup import (
    bullets,
    esc,
    format_number,
    html_page,
    note,
    page_footer,
    page_header,
    section,
)
from hocket.report.timeline import timeline_section


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
    because = str(run.info.get("engine", "")).partition(", because ")[2]
    said += [f"run by the interpreter, because {because}"] if because else []
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
    yield "engine", str(info.get("engine", "never started")).partition(", because ")[0]
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


def write_report(run: Run, path: Path | str | None = None, experiment: Experiment | None = None) -> Path:
    """Write the page of a run, by default as report.html in its folder; return where.

    `experiment` is what was run, where the run folder cannot tell (models made in Python code).
    """
    file = run.path / REPORT if path is None else Path(path)
    write_text(file, report_page(run, experiment))
    return file


def report_page(run: Run, experiment: Experiment | None = None) -> str:
    """Return the page as text."""
    story = gather_report_data(run, experiment)
    parts = (
        run_header(run),
        verdict_section(story),
        ports_section(story),
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
    if story.design is None:
        yield section("levels", levels, note(story.no_design))
        return
    for name, title, draw in (("levels", levels, levels_section), ("timeline", timeline, timeline_section)):
        try:
            yield draw(story.design, story.run.name)
        except Exception as error:  # a picture that fails must not take the page with it
            yield section(name, title, note(f"This could not be drawn: {type(error).__name__}: {error}"))


def _text_sections(story: ReportData) -> tuple[str, ...]:
    texts = {"The plan in words": story.plan_text, "The scenario as it was run": story.scenario_text}
    return tuple(
        f'<details class="text"><summary>{title}</summary><pre>{esc(text)}</pre></details>'
        for title, text in texts.items()
        if text
    )
