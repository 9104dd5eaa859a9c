"""The answer of `hocket tune` on the screen: the front, the proposal, the lines to change, what runs show.

In:  a TuningResult, and the experiment it is about
Out: lines for the screen, facts for JSON, the tuned scenario as a file
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.text import Text

from hocket.cli.terminal import format_cell, plain_table, titled_table
from hocket.errors import ScenarioError, count
from hocket.files.atomic_files import write_text
from hocket.files.formats import write
from hocket.files.toml.line_changes import line_changes, rewrite_text, scenario_tables
from hocket.model.clock import format_duration as duration
from hocket.report.tuning_page import FrontRow, diff_lines
from hocket.search.tune.tuning_result import TuningResult, check_prediction

SHOWN = 20
"""Rows of the front on a screen."""
LINES = 16
"""Changes up to which each is shown."""


def select_row(made: TuningResult, wanted: int | None, file: Path) -> int:
    """Return the row to tell about, the proposed one if none is wanted; raises if there is none."""
    if not made.front:
        raise ScenarioError(*_empty_front_reason(made, file))
    if wanted is None:
        return made.knee
    if wanted >= len(made.front):
        expected = f"0 to {len(made.front) - 1}"
        raise ScenarioError(f"the front has no row {wanted}", f"--apply {wanted}", expected)
    return wanted


def _empty_front_reason(made: TuningResult, file: Path) -> tuple[str, str, str, str]:
    """Return why the front is empty: what has no number, or what is beyond its limit."""
    many = count(len(made.points), "coupling")
    for number, each in enumerate(made.wanted):
        if not any(math.isfinite(row[number]) for row in made.numbers):
            what = f"`{each.name}` has no number for any of {many}"
            return what, "--objective", "", f"`hocket check {file}` says what it knows; or another objective"
    limits = ", ".join(f"{each.name}={each.limit:g}" for each in made.wanted if each.limit is not None)
    hint = "wider limits, or more to choose from"
    return f"none of {many} is within the limits", limits, "", hint


def verification_rows(made: TuningResult, told: FrontRow) -> list[dict[str, object]]:
    """Return what was predicted, and what runs to the nearest multiple of their step show."""
    assert made.stop is not None
    both = {"now": told.before.composite, f"row {told.row}": told.after.composite}
    spans = {name: each.step * max(round(made.stop / each.step), 1) for name, each in both.items()}
    uneven = any(span != made.stop for span in spans.values())
    return [
        {"coupling": name}
        | ({"run to [s]": float(made.start + spans[name])} if uneven else {})
        | check_prediction(each, spans[name], made.start).row()
        for name, each in both.items()
    ]


def front_lines(made: TuningResult, told: FrontRow, everything: bool) -> Iterator[Any]:
    """Yield the front, the proposal and what changes for it."""
    rows = made.rows()
    differ, same = _split_choices(made)
    yield from _front_table(made, rows if everything else _thin_rows(rows, (told.row, made.knee)), differ)
    if same:
        yield Text(f"in all of them: {', '.join(f'{name} = {word}' for name, word in same.items())}", "dim")
    if not everything and len(rows) > SHOWN:
        yield f"{len(rows)} rows are on the front: --all shows them"
    none = sum(any(math.isnan(value) for value in row) for row in made.numbers)
    failures = f", {none:,} of which could not be" if none else ""
    yield f"{count(len(made.points), 'coupling')} judged{failures}"
    yield from made.notes
    if made.stop is None:
        yield "nothing says when a run stops: with --stop errors can count, too"
    yield ""
    yield Text(f"row {told.row}{' is proposed' if told.proposed else ''}: {told.why}", "bold")
    yield from _change_lines(made, told)
    yield from _uneven_step_note(made, told.after.composite.step)


def _split_choices(made: TuningResult) -> tuple[list[str], dict[str, str]]:
    """Return the names that differ along the front, and the others with what they all have."""
    words = [made.space.words(made.points[k]) for k in made.front]
    differ = [name for name in words[0] if len({each[name] for each in words}) > 1]
    return differ, {name: word for name, word in words[0].items() if name not in differ}


def _front_table(
    made: TuningResult, rows: Sequence[Mapping[str, object]], differ: Sequence[str]
) -> Iterator[Any]:
    """Yield the front with that of now on top; where it is narrow, words are folded and numbers are not."""
    names = [each.name for each in made.wanted]
    grid = plain_table("row", no_wrap=True)
    for head in names:
        grid.add_column(head, justify="right", no_wrap=True)
    for head in differ:
        grid.add_column(head, overflow="fold")
    grid.add_row("now", *map(_format_objective, names, made.now))
    for row in rows:
        chosen = row["row"] == made.knee
        cells = [_format_objective(name, row[name]) for name in names]
        cells += [str(row[name]) for name in differ]
        grid.add_row(f"{row['row']}{' *' if chosen else ''}", *cells, style="bold" if chosen else "")
    yield from ("", Text("Pareto front; * is proposed", "cyan"), grid)


def _format_objective(name: str, value: object) -> str:
    """Return a number in three digits; of a radius near one in more."""
    return format_cell(value) if name == "rho" or not isinstance(value, float) else f"{value:.3g}"


def _thin_rows(rows: Sequence[Mapping[str, object]], kept: Sequence[int]) -> list[Mapping[str, object]]:
    if len(rows) <= SHOWN:
        return list(rows)
    wanted = {round(k * (len(rows) - 1) / (SHOWN - 3)) for k in range(SHOWN - 2)} | set(kept)
    return [row for number, row in enumerate(rows) if number in wanted]


def _change_lines(made: TuningResult, told: FrontRow) -> Iterator[Text | str]:
    if not told.changed:
        yield "nothing changes: it is the coupling of now"
        return
    many = len(told.changed)
    where = told.before.path.name if told.before.path is not None else told.before.name
    if many > LINES:
        words = made.space.words(made.points[made.front[told.row]])
        yield f"{many} lines of {where} change; --apply {told.row} writes them. Chosen are:"
        yield from (f"  {name} = {word}" for name, word in words.items())
        return
    verb = "add" if all(each.old is None for each in told.changed) else "change"
    lines = "this line" if many == 1 else f"these {many} lines"
    yield f"{verb} {lines} {'to' if verb == 'add' else 'of'} {where}:"
    colours = {"table": "cyan", "dropped": "red", "added": "green"}
    yield from (Text(f"  {line}", colours[kind]) for kind, line in diff_lines(told.changed))


def _uneven_step_note(made: TuningResult, step: Fraction) -> Iterator[str]:
    """Yield what to do about a step that does not divide the run: it was judged, and would be refused."""
    if made.stop is not None and (steps := made.stop / step).denominator != 1:
        below, ends = made.start + step * math.floor(steps), made.start + made.stop
        near = f"{duration(below)} or " * (below > made.start) + duration(below + step)
        yield f"its step of {duration(step)} does not divide the run to {duration(ends)}: stop at {near}"


def comparison_lines(runs: Sequence[Mapping[str, object]]) -> Iterator[Any]:
    """Yield predictions beside what runs show, and how far apart they are at the most."""
    yield from titled_table("predicted, and what runs show", runs, None)
    worst = 1.0
    for run in runs:
        predicted, found = run["predicted error"], run["error of the run"]
        if not (isinstance(predicted, float) and isinstance(found, float)):
            return
        if not (0.0 < predicted < math.inf and 0.0 < found < math.inf):
            return
        worst = max(worst, predicted / found, found / predicted)
    far = f"{max(100 * (worst - 1), 0.01):.2g} %" if worst < 1.5 else f"a factor of {worst:.3g}"
    yield f"the predictions are within {far} of the runs"


def write_tuned_scenario(told: FrontRow, target: Path) -> str:
    """Write the tuned scenario, with the text of its file where that can be; return what to say of it."""
    if told.text is not None and target.suffix == ".toml":
        wanted = line_changes(scenario_tables(told.before), scenario_tables(told.after))
        text = rewrite_text(told.text, wanted, told.after, target.absolute().parent)
        if text is not None:
            write_text(target, text)
            return f"{target}: the file with {count(len(wanted), 'line')} changed"
    own = told.before.path is not None and told.before.name == told.before.path.stem
    write(replace(told.after, name="" if own else told.before.name, path=None, notes=()), target)
    lost = "" if told.text is None else ", written anew: comments are lost"
    return f"{target}{lost}"


def front_facts(
    made: TuningResult, told: FrontRow, runs: Sequence[Mapping[str, object]], total: int, ended: str | None
) -> dict[str, Any]:
    """Return all of it as JSON can hold it; `ended` is what ended the search before all were judged."""
    names = [each.name for each in made.wanted]
    return {
        "objectives": names[: made.goals],
        "limits": {each.name: each.limit for each in made.wanted if each.limit is not None},
        "judged": len(made.points),
        "couplings": max(total, len(made.points)),
        "ended_by": ended,
        "now": dict(zip(names, made.now, strict=True)),
        "front": made.rows(),
        "proposed": made.knee,
        "row": told.row,
        "why": told.why,
        "notes": list(made.notes),
        "changes": [asdict(each) for each in told.changed],
        "runs": list(runs),
    }
