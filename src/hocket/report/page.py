"""The page put together: one HTML file, with its style and script inside.

In:  a Run
Out: the page as text, or written to a file
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hocket.engine.blueprint import Blueprint
from hocket.files.run import REPORT, Run
from hocket.files.study import Study
from hocket.files.whole import write_text
from hocket.report.boxes import boxes
from hocket.report.charts import charts
from hocket.report.facts import facts, head, notes
from hocket.report.gathering import Story, gather
from hocket.report.markup import esc, prose
from hocket.report.sheet import foot, sheet
from hocket.report.tables import tables
from hocket.report.timeline import timeline
from hocket.report.verdict import verdict

_STYLES = ("page.css", "timeline.css")
_SCRIPTS = ("errors.js", "wires.js", "axes.js", "charts.js", "ready.js")


def write_report(run: Run, path: Path | str | None = None, study: Study | None = None) -> Path:
    """Write the page of a run, by default as report.html in its folder; return where.

    `study` is what was run, where the run folder cannot tell (models made in Python code).
    """
    file = run.path / REPORT if path is None else Path(path)
    write_text(file, report_page(run, study))
    return file


def report_page(run: Run, study: Study | None = None) -> str:
    """Return the page as text."""
    story = gather(run, study)
    parts = (
        head(run),
        verdict(story),
        charts(story),
        *_coupling(story),
        tables(story),
        notes(run),
        facts(run),
        *_texts(story),
        foot(),
    )
    return sheet(f"{run.name}: {run.status}", parts, _STYLES, _SCRIPTS)


def _coupling(story: Story) -> tuple[str, ...]:
    if story.design is None:
        why = f'<p class="note">{prose(story.no_design)}</p>'
        return (f'<section id="levels"><h2>Levels and connections</h2>{why}</section>',)
    pictures = (("Levels and connections", boxes), ("One macro step, as planned", timeline))
    return tuple(_tried(title, draw, story.design, story.run.name) for title, draw in pictures)


def _tried(title: str, draw: Callable[[Blueprint, str], str], design: Blueprint, name: str) -> str:
    try:
        return draw(design, name)
    except Exception as error:  # a picture that fails must not take the page with it
        why = prose(f"This could not be drawn: {type(error).__name__}: {error}")
        return f'<section><h2>{esc(title)}</h2><p class="note">{why}</p></section>'


def _texts(story: Story) -> tuple[str, ...]:
    titles = {"plan": "The plan in words", "scenario": "The scenario as it was run"}
    return tuple(
        f'<details class="text"><summary>{esc(titles[name])}</summary><pre>{esc(text)}</pre></details>'
        for name, text in story.texts.items()
        if text
    )
