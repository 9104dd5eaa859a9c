"""A page about a search: everything that was judged, the front, the proposal, and the lines to change.

In:  a TuningResult, and the Study it is about
Out: an HTML file that needs nothing else
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hocket.files.study import Experiment
from hocket.files.toml.changes import LineChange, line_changes, scenario_tables
from hocket.files.whole import write_text
from hocket.report.judged import candidate_data, shown_points
from hocket.report.markup import esc, html_table, prose
from hocket.report.sheet import html_page, page_footer
from hocket.simulators.fmu.probe.words import count
from hocket.tuning.reasons import reason
from hocket.tuning.tuned import TuningResult

ROWS, LINES = 40, 24
"""Of the front, and of the proposal's differences, that are seen at once."""

SAYS = {
    "rho": "`rho` says whether errors of the coupling die out (below one) or grow, and how fast at worst. "
    "It does not say how large they are, nor how close the coupling is to being unstable.",
    "delta": "`delta` says how far inputs and outputs are apart after a few steps. It follows the error well "
    "as the step varies within one coupling, and only weakly from one coupling to another: confirm a choice "
    "by `error`, or by `--verify`.",
    "error": "`error` is predicted with the linear models, over the run that was asked for.",
    "relative": "`relative` is predicted with the linear models, over the run that was asked for.",
    "measured": "`measured` is the difference to a run with half the steps, which is no bound of the error.",
}
"""What numbers can and cannot say (formulas, section 1)."""


def write_tuning_page(tuned: TuningResult, path: Path | str, study: Experiment | None = None) -> Path:
    """Write the page of a search; return where."""
    file = Path(path)
    write_text(file, tuned_page(tuned, study))
    return file


def tuned_page(tuned: TuningResult, study: Experiment | None = None) -> str:
    """Return the page as text; `study` is the scenario with its name."""
    about = study or Experiment(tuned.composite, name="coupling")
    shown = shown_points(tuned)
    data = json.dumps(candidate_data(tuned, about, shown), separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )
    parts = (
        _tuning_header(tuned, about),
        _proposal_section(tuned, about),
        _scatter_section(tuned, shown),
        _front_section(tuned),
        _meaning_section(tuned),
        page_footer(),
        f'<script type="application/json" id="data">{data}</script>',
    )
    return html_page(f"{about.name}: tuned", parts, ("page.css", "tuned.css"), _SCRIPTS)


_SCRIPTS = ("errors.js", "axes.js", "scatter.js", "tuned.js")


def _tuning_header(tuned: TuningResult, study: Experiment) -> str:
    said = [
        f"{count(len(tuned.points), 'coupling')} judged",
        f"{len(tuned.front):,} on the front",
        "by " + " and ".join(each.words for each in tuned.wanted[: tuned.goals]),
    ]
    if tuned.stop is not None:
        said.append(f"for a run of {float(tuned.stop):g} s")
    title = f'<p class="brand">hocket tune</p><h1>{esc(study.name)}</h1>'
    return f'<header>{title}<p class="sub">{esc(" · ".join(said))}</p></header>'


def _proposal_section(tuned: TuningResult, study: Experiment) -> str:
    if not tuned.front:
        return '<section class="cards"><article class="card bad wide"><h2>proposal</h2><p class="first">' \
            "no coupling is within the limits</p></article></section>"  # fmt: skip
    goals = slice(tuned.goals)
    why = reason(tuned.wanted[goals], tuned.numbers[tuned.front[tuned.knee]][goals], tuned.now[goals])
    found = line_changes(
        scenario_tables(study), scenario_tables(replace(study, composite=tuned.composite_of(tuned.knee)))
    )
    what = f"change {count(len(found), 'line')} of the scenario" if found else "it is the coupling of now"
    said = "".join(f"<li>{esc(each)}</li>" for each in (what, *tuned.notes))
    return (
        '<section class="cards" aria-label="proposal"><article class="card ok wide"><h2>proposed: row '
        f'{tuned.knee} of the front</h2><p class="first"><span class="sign" aria-hidden="true">✓</span>'
        f"<span>{esc(why)}</span></p><ul>{said}</ul>{_diff_html(found)}</article></section>"
    )


def _diff_html(found: Sequence[LineChange]) -> str:
    rows: list[str] = []
    header = ""
    for change in found:
        if change.table != header:
            header = change.table
            rows.append(f'<span class="table">[{esc(header)}]</span>')
        rows += [
            f'<span class="{"dropped" if line[0] == "-" else "added"}">{esc(line)}</span>'
            for line in change.diff_lines()
        ]
    if len(rows) > LINES:
        rows = [*rows[:LINES], f'<span class="table">and {len(rows) - LINES} lines more</span>']
    return f'<pre class="diff">{chr(10).join(rows)}</pre>' if rows else ""


def _scatter_section(tuned: TuningResult, shown: Sequence[int]) -> str:
    none = len(tuned.points) - sum(all(map(math.isfinite, row)) for row in tuned.numbers)
    said = [
        "Point at a coupling to read its choices, click it to see the lines that change; arrow keys walk "
        "along the front. Drag to zoom, double-click to see the front again."
    ]
    if none:
        said.append(f"{count(none, 'coupling')} without numbers: not drawn.")
    if len(shown) < len(tuned.points) - none:
        said.append(f"Of the others {len(shown):,} are drawn, the whole front among them.")
    outside = any(not math.isfinite(tuned.costs[k][0]) for k in shown)
    beyond = '<li><i class="dot outside"></i>beyond a limit</li>' if outside else ""
    return (
        f'<section id="judged"><h2>What was judged</h2><p class="note">{esc(" ".join(said))}</p>'
        '<div class="tools"><label>across <select id="across"></select></label>'
        '<label>up <select id="up"></select></label><label>shade <select id="shade"></select></label>'
        '<button type="button" id="near">the front</button>'
        '<button type="button" id="far">everything</button></div>'
        '<ul class="key"><li><i class="dot judged"></i>judged</li>'
        f'{beyond}<li><i class="dot front"></i>front</li>'
        '<li><i class="dot proposed"></i>proposed</li>'
        '<li><i class="star">★</i>now</li></ul>'
        '<div class="beside scatter"><div id="plane" tabindex="0" role="application" '
        'aria-label="couplings; arrow keys walk along the front"><canvas></canvas><svg></svg>'
        '<div id="tip" hidden></div></div><aside id="chosen" aria-live="polite"></aside></div></section>'
    )


def _front_section(tuned: TuningResult) -> str:
    rows: list[dict[str, object]] = [
        {**row, "": "proposed" if number == tuned.knee else ""} for number, row in enumerate(tuned.rows())
    ]
    return f'<section id="front"><h2>The front</h2>{html_table(rows, ROWS)}</section>' if rows else ""


def _meaning_section(tuned: TuningResult) -> str:
    said = [SAYS[name] for each in tuned.wanted if (name := each.name.partition(":")[0]) in SAYS]
    items = "".join(f"<li>{prose(each)}</li>" for each in said)
    return f'<section><h2>What the numbers say</h2><ul class="notes">{items}</ul></section>' if said else ""
