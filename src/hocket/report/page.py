"""The page put together: one HTML file, with its style and script inside.

In:  a Run
Out: the page as text, or written to a file
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hocket.engine.blueprint import PlanTree
from hocket.files.run import REPORT, Run
from hocket.files.study import Experiment
from hocket.files.whole import write_text
from hocket.report.boxes import levels_section
from hocket.report.charts import ports_section
from hocket.report.facts import facts_section, notes_section, run_header
from hocket.report.gathering import ReportData, gather_report_data
from hocket.report.markup import esc, prose
from hocket.report.sheet import html_page, page_footer
from hocket.report.tables import tables_section
from hocket.report.timeline import timeline_section
from hocket.report.verdict import verdict_section

_STYLES = ("page.css", "timeline.css")
_SCRIPTS = ("errors.js", "wires.js", "axes.js", "charts.js", "ready.js")


def write_report(run: Run, path: Path | str | None = None, study: Experiment | None = None) -> Path:
    """Write the page of a run, by default as report.html in its folder; return where.

    `study` is what was run, where the run folder cannot tell (models made in Python code).
    """
    file = run.path / REPORT if path is None else Path(path)
    write_text(file, report_page(run, study))
    return file


def report_page(run: Run, study: Experiment | None = None) -> str:
    """Return the page as text."""
    story = gather_report_data(run, study)
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


def _coupling_sections(story: ReportData) -> tuple[str, ...]:
    if story.design is None:
        why = f'<p class="note">{prose(story.no_design)}</p>'
        return (f'<section id="levels"><h2>Levels and connections</h2>{why}</section>',)
    pictures = (("Levels and connections", levels_section), ("One macro step, as planned", timeline_section))
    return tuple(_draw_or_explain(title, draw, story.design, story.run.name) for title, draw in pictures)


def _draw_or_explain(title: str, draw: Callable[[PlanTree, str], str], design: PlanTree, name: str) -> str:
    try:
        return draw(design, name)
    except Exception as error:  # a picture that fails must not take the page with it
        why = prose(f"This could not be drawn: {type(error).__name__}: {error}")
        return f'<section><h2>{esc(title)}</h2><p class="note">{why}</p></section>'


def _text_sections(story: ReportData) -> tuple[str, ...]:
    titles = {"plan": "The plan in words", "scenario": "The scenario as it was run"}
    return tuple(
        f'<details class="text"><summary>{esc(titles[name])}</summary><pre>{esc(text)}</pre></details>'
        for name, text in story.texts.items()
        if text
    )
