"""The page of a search: its candidates and Pareto front, the proposal, and the lines that change for each.

In:  a TuningResult, and the Experiment it is about
Out: the page as text, or written to a file
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hocket.errors import HocketError, count
from hocket.files.atomic_files import write_text
from hocket.files.toml.line_changes import LineChange, changes_in_text, line_changes, scenario_tables
from hocket.model.experiment import Experiment
from hocket.report.markup import (
    bullets,
    card_section,
    esc,
    html_page,
    html_table,
    json_numbers,
    json_script,
    note,
    page_footer,
    page_header,
    section,
    template,
    verdict_card,
)
from hocket.search.tune.space import Point, apply_choices
from hocket.search.tune.tuning_result import TuningResult, reason

VariableGroup: TypeAlias = tuple[int, ...]
"""Numbers of variables."""
PointChanges: TypeAlias = tuple[LineChange, ...] | None

SEEN = 40
"""Points that are written out to see that choices do not meddle with each other."""
_RANK = {"step": 0, "orchestrator": 1, "extrapolation": 2}


def changed_lines(tuned: TuningResult, experiment: Experiment, shown: Sequence[int]) -> list[PointChanges]:
    """Return what changes at each of some points; None where a point is not a coupling.

    Choices that touch different lines are looked at one by one, those that share lines together; some points
    are written out to see that this is right, and all of them where it is not.
    """
    before = scenario_tables(experiment)
    variables = tuned.space.variables

    @cache
    def changes_for(group: VariableGroup, values: Point) -> PointChanges:
        """Return what some choices change by themselves."""
        named = {variables[n].name: variables[n].values[k] for n, k in zip(group, values, strict=True)}
        try:
            made = apply_choices(tuned.composite, named)
        except HocketError:
            return None
        return tuple(line_changes(before, scenario_tables(replace(experiment, composite=made))))

    def changes_at(k: int, groups: Sequence[VariableGroup]) -> PointChanges:
        """Return the changes at a point: the outermost table first, in it steps before algorithms."""
        found: list[LineChange] = []
        for group in groups:
            some = changes_for(group, tuple(tuned.points[k][n] for n in group))
            if some is None:
                return None
            found += some
        return tuple(sorted(found, key=lambda each: (each.table, _RANK.get(each.key, 3))))

    whole = [tuple(range(len(variables)))]
    groups = _independent_groups(tuned, changes_for)
    sample = dict.fromkeys((*tuned.front[:SEEN], *shown[:: max(1, len(shown) // SEEN)]))
    work = sum(math.prod(len(variables[n]) for n in group) for group in groups)
    apart = work < len(shown) and all(changes_at(k, groups) == changes_at(k, whole) for k in sample)
    return [changes_at(k, groups if apart else whole) for k in shown]


def _independent_groups(
    tuned: TuningResult, changes_for: Callable[[VariableGroup, Point], PointChanges]
) -> list[VariableGroup]:
    """Return variables that share no lines with those of other groups."""
    groups: list[tuple[VariableGroup, set[tuple[str, str]]]] = []
    for number, variable in enumerate(tuned.space.variables):
        found = [changes_for((number,), (k,)) for k in range(len(variable))]
        keys = {(each.table, each.key) for some in found for each in some or ()}
        mine: VariableGroup = (number,)
        for other, theirs in [each for each in groups if each[1] & keys]:
            groups.remove((other, theirs))
            mine, keys = (*other, *mine), keys | theirs
        groups.append((mine, keys))
    return [group for group, _ in groups]


MOST = 20_000
"""Points on a page."""


def shown_points(tuned: TuningResult) -> list[int]:
    """Return the points that a page holds: those with numbers; of too many, the front and an even choice."""
    finite = [k for k, row in enumerate(tuned.numbers) if all(map(math.isfinite, row))]
    if len(finite) <= MOST:
        return finite
    every = math.ceil(len(finite) / MOST)
    return sorted({*finite[::every], *tuned.front})


def candidate_data(tuned: TuningResult, experiment: Experiment, shown: Sequence[int]) -> dict[str, Any]:
    """Return what the script draws: numbers and choices by column, lines once."""
    place = {k: number for number, k in enumerate(shown)}
    lines: dict[tuple[str, str], int] = {}
    """Table and line with its sign, each once, and its number."""
    changes = [
        None
        if found is None
        else [
            lines.setdefault((each.table, line), len(lines)) for each in found for line in each.diff_lines()
        ]
        for found in changed_lines(tuned, experiment, shown)
    ]
    return {
        "objectives": [
            {"name": each.name, "words": each.words, "goal": number < tuned.goals, "limit": each.limit}
            for number, each in enumerate(tuned.wanted)
        ],
        "variables": [
            {"name": each.name, "words": each.words, "values": _numeric_values(each.values)}
            for each in tuned.space.variables
        ],
        "numbers": [json_numbers(tuned.numbers[k][n] for k in shown) for n in range(len(tuned.wanted))],
        "choices": [[tuned.points[k][n] for k in shown] for n in range(len(tuned.space.variables))],
        "outside": [number for number, k in enumerate(shown) if not math.isfinite(tuned.costs[k][0])],
        "front": [place[k] for k in tuned.front],
        "proposed": place[tuned.front[tuned.knee]] if tuned.front else None,
        "now": json_numbers(tuned.now),
        "lines": list(lines),
        "changes": changes,
    }


def _numeric_values(values: Sequence[Any]) -> list[float | None] | None:
    plain = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
    return json_numbers(values) if plain else None


@dataclass(frozen=True, eq=False)
class FrontRow:
    """A row of the front: why, and what changes for it."""

    row: int
    proposed: bool
    why: str
    before: Experiment
    after: Experiment
    text: str | None
    """Of the file that was tuned; None: it is not a TOML file."""
    changed: tuple[LineChange, ...]


def explain_row(made: TuningResult, experiment: Experiment, row: int) -> FrontRow:
    """Return what there is to say about a row of the front."""
    numbers = made.numbers[made.front[row]]
    goals = slice(made.goals)
    after = replace(experiment, composite=made.composite_of(row))
    text = None
    if experiment.path is not None and experiment.path.suffix.lower() == ".toml":
        text = experiment.path.read_bytes().decode("utf-8-sig")
    changed = line_changes(scenario_tables(experiment), scenario_tables(after))
    return FrontRow(
        row,
        row == made.knee,
        reason(made.wanted[goals], numbers[goals], made.now[goals]),
        experiment,
        after,
        text,
        tuple(changes_in_text(text, changed) if text is not None else changed),
    )


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
    "measured": "`measured` is the difference to a run with half the steps, not a bound of the error.",
}
"""What numbers can and cannot say (theory, section 1)."""


def write_tuning_page(tuned: TuningResult, path: Path | str, experiment: Experiment | None = None) -> Path:
    """Write the page of a search; return where."""
    file = Path(path)
    write_text(file, tuned_page(tuned, experiment))
    return file


def tuned_page(tuned: TuningResult, experiment: Experiment | None = None) -> str:
    """Return the page as text; `experiment` is the scenario with its name."""
    about = experiment or Experiment(tuned.composite, name="coupling")
    shown = shown_points(tuned)
    parts = (
        _tuning_header(tuned, about),
        _proposal_section(tuned, about),
        _scatter_section(tuned, shown),
        _front_section(tuned),
        _meaning_section(tuned),
        page_footer(),
        json_script(candidate_data(tuned, about, shown)),
    )
    return html_page(f"{about.name}: tuned", parts, ("page.css", "tuned.css"), _SCRIPTS)


_SCRIPTS = ("errors.js", "axes.js", "scatter.js", "tuned.js")


def _tuning_header(tuned: TuningResult, experiment: Experiment) -> str:
    said = [
        f"{count(len(tuned.points), 'coupling')} judged",
        f"{len(tuned.front):,} on the front",
        "by " + " and ".join(each.words for each in tuned.wanted[: tuned.goals]),
    ]
    if tuned.stop is not None:
        said.append(f"for a run of {float(tuned.stop):g} s")
    return page_header("hocket tune", experiment.name, said)


def _proposal_section(tuned: TuningResult, experiment: Experiment) -> str:
    if not tuned.front:
        card = verdict_card("proposal", "bad", "no coupling is within the limits", wide=True)
        return card_section("proposal", [card])
    row = explain_row(tuned, experiment, tuned.knee)
    lines = count(len(row.changed), "line")
    what = f"change {lines} of the scenario" if row.changed else "it is the coupling of now"
    spans = [f'<span class="{kind}">{esc(line)}</span>' for kind, line in diff_lines(row.changed)]
    if len(spans) > LINES:
        spans = [*spans[:LINES], f'<span class="table">and {len(spans) - LINES} lines more</span>']
    diff = f'<pre class="diff">{chr(10).join(spans)}</pre>' if spans else ""
    title, notes = f"proposed: row {tuned.knee} of the front", (what, *tuned.notes)
    return card_section("proposal", [verdict_card(title, "ok", row.why, notes, diff, wide=True)])


def diff_lines(changes: Iterable[LineChange]) -> Iterator[tuple[Literal["table", "dropped", "added"], str]]:
    """Yield the lines that change under the headers of their tables, and the kind of each."""
    for table, some in groupby(changes, lambda each: each.table):
        if table:
            yield "table", f"[{table}]"
        for line in (line for each in some for line in each.diff_lines()):
            yield "dropped" if line[0] == "-" else "added", line


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
    return section("judged", "Candidates", note(" ".join(said)) + template("scatter.html"))


def _front_section(tuned: TuningResult) -> str:
    rows: list[dict[str, object]] = [
        {**row, "": "proposed" if number == tuned.knee else ""} for number, row in enumerate(tuned.rows())
    ]
    return section("front", "Pareto front", html_table(rows, ROWS))


def _meaning_section(tuned: TuningResult) -> str:
    said = [SAYS[name] for each in tuned.wanted if (name := each.name.partition(":")[0]) in SAYS]
    return section("meaning", "What the numbers say", bullets(said, "notes"))
