"""After a run: its summary; and hocket check RUN, its global error and whether the estimate is reliable.

In:  a Run, or its folder
Out: the verdict, then the table of each measure; a picture, or JSON; the estimate, kept in the folder
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hocket.analysis.measure import join_facts, worst_outcome
from hocket.cli.output_files import check_outputs, draw_measures, write_json
from hocket.cli.terminal import (
    format_significant,
    is_terminal,
    print_err,
    print_measures,
    print_out,
    run_progress,
)
from hocket.errors import FileError, ScenarioError, count
from hocket.execution.session import Progress
from hocket.files.bond_flows import BondFlows, read_bond_flows
from hocket.files.error_estimate import ErrorEstimate, read_estimate, write_estimate
from hocket.files.run_folder import FACTS, Run, open_run
from hocket.model.experiment import Experiment

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hocket.analysis.run_error import Watch


BONDS = 6
"""Bonds in the summary of a run."""
_COLOURS = {"finished": "bold green", "stopped": "bold yellow"}


def print_summary(run: Run, folder: Path) -> None:
    """Print how it went and where to look."""
    simulated, took, kept = _simulated_span(run), _wall_time(run), _recorded_size(run)
    look = f'hocket.open_run("{folder.as_posix()}")'
    because = str(run.info["engine"]).partition(", because ")[2]
    notes = [str(note) for note in run.info.get("notes", [])]
    pace, sweeps, adapted, flowed = (
        _realtime_words(run),
        _iteration_lines(run),
        _step_control_lines(run),
        read_bond_flows(run),
    )
    bonds, stored, sent = _bond_lines(flowed, folder), flowed.stored_text, _message_lines(run)
    if not is_terminal():
        print_out(f"{run.name} {run.status}: {simulated} in {took}; {kept}")
        if because:
            print_out(f"run by the interpreter, because {because}")
        if pace:
            print_out(f"real time: {pace}")
        print_out(*(f"iterated: {line}" for line in sweeps))
        print_out(*(f"adapted: {line}" for line in adapted))
        print_out(*(f"sent: {line}" for line in sent))
        print_out(*(f"bond: {line}" for line in bonds))
        if stored:
            print_out(f"stored: {stored}")
        print_out(*(f"note: {note}" for note in notes))
        print_out(f"{folder}  {look}")
        return
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    lines: list[tuple[str, RenderableType]] = [
        ("simulated", simulated),
        ("took", took),
        ("kept", kept),
        ("engine", str(run.info["engine"])),
        *([("real time", pace)] if pace else []),
        *(("iterated", line) for line in sweeps),
        *(("adapted", line) for line in adapted),
        *(("sent", line) for line in sent),
        *(("bond", line) for line in bonds),
        *([("stored", stored)] if stored else []),
        *(("note", note) for note in notes),
        ("folder", Text(str(folder), "bold")),
        ("look", f"hocket plot {shlex.quote(str(folder))}"),
        ("", look),
    ]
    for label, text in lines:
        grid.add_row(label, text)
    print_out(Text.assemble((run.name, "bold"), " ", (run.status, _COLOURS.get(run.status, "bold red"))))
    print_out(Padding(grid, (0, 0, 0, 2), expand=False))


def _iteration_lines(run: Run) -> list[str]:
    """Return how often the steps of each level were made, in words."""
    counted = run.info.get("counts", {}).get("sweeps", {})
    return [
        f"{path or 'outermost'}, {each['total'] / each['repeats']:.1f} sweeps per step, most {each['most']}"
        for path, each in counted.items()
    ]


def _step_control_lines(run: Run) -> list[str]:
    """Return how many steps each level with step control made, and how long they were, in words."""
    counted = run.info.get("counts", {}).get("adapted", {})
    return [
        f"{path or 'outermost'}, {count(each['accepted'], 'step')}, {each['rejected']} rejected, "
        f"{_format_duration(each['shortest'])} to {_format_duration(each['longest'])}"
        for path, each in counted.items()
    ]


def _message_lines(run: Run) -> list[str]:
    """Return what passed from host to host, in words."""
    counted = run.info.get("counts", {}).get("messages", {})
    return [
        f"{link}, {count(each['messages'], 'message')} ({each['start']} to start), {each['bytes']:,} bytes"
        for link, each in counted.items()
    ]


def _bond_lines(flowed: BondFlows, folder: Path) -> list[str]:
    """Return what flowed through the power bonds, in words; those that gain or lose the most first."""
    found = flowed.bonds
    more = len(found) - BONDS
    lines = [each.account_text for each in found[:BONDS]]
    return [*lines, f"and {more} more: hocket check {shlex.quote(str(folder))}"] if more > 0 else lines


def _format_duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{format_significant(seconds / size)} {unit}"
    return f"{format_significant(seconds / 1e-9)} ns"


def _simulated_span(run: Run) -> str:
    start, reached = run.info["start"], run.info["reached"]
    steps = count(run.info["counts"]["steps"], "step")
    rest = "" if run.status == "finished" else f" of {run.info['stop']:g} s"
    return f"{steps} from {start:g} to {reached:g} s{rest}"


def _wall_time(run: Run) -> str:
    wall = run.info["timings"]["wall"]
    factor = (run.info["reached"] - run.info["start"]) / wall
    return f"{format_significant(wall)} s ({format_significant(factor)} times real time)"


def _recorded_size(run: Run) -> str:
    rows = sum(run.table(table.name).num_rows for table in run.tables)
    rates = f" at {len(run.tables)} rates" if len(run.tables) > 1 else ""
    return f"{count(rows, 'row')}{rates}, {count(len(run.ports), 'port')}"


def _realtime_words(run: Run) -> str:
    """Return how well the run kept pace with the clock; empty if it was not to."""
    if "realtime" not in run.info:
        return ""
    facts = run.info["realtime"]
    late = count(facts["overruns"], "overrun")
    lag = format_significant(1000 * facts["largest_lag"])
    return f"factor {facts['factor']:g}, {late}, at most {lag} ms late"


PANEL = "Of a run"
ROWS = 8
"""Of each table, unless all are asked for."""
ARCHIVES = ("SystemStructure.ssd", "modelDescription.xml")
"""What a folder that is no run may hold."""

FilesOrRun = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="A scenario (.toml, .ssp), FMUs, or the folder of a run.",
        show_default=False,
    ),
]
Quick = Annotated[
    bool,
    typer.Option("--quick", metavar="", help="Without running it again.", rich_help_panel=PANEL),
]
Again = Annotated[
    bool,
    typer.Option("--again", metavar="", help="Though the folder has an estimate.", rich_help_panel=PANEL),
]


def is_run(files: list[Path]) -> bool:
    """Return whether what was typed is meant as a run: one folder that is no unpacked archive."""
    if len(files) != 1:
        return False
    folder = files[0]
    return folder.name == FACTS or (
        folder.is_dir() and not any((folder / name).is_file() for name in ARCHIVES)
    )


def refuse_run_options(files: list[Path], typed: Mapping[str, object]) -> None:
    """Refuse options that are for runs only."""
    for name, value in typed.items():
        if value:
            hint = f"hocket check runs/{files[0].stem}-001 {name}"
            raise ScenarioError(
                f"`{name}` is for runs, and this is none", str(files[0]), "a run folder", hint
            )


def check_run(
    folder: Path,
    quick: bool,
    again: bool,
    plot: Path | None,
    as_json: Path | None,
    everything: bool,
    others: Mapping[str, object],
) -> None:
    """Say how large the error of a run is; `others` are options that are for scenarios only, by name."""
    from hocket.analysis.run_measures import MEASURES, run_measures

    typed = [name for name, value in others.items() if value]
    if typed:
        hint = "leave it out: a run is judged as it was run"
        raise ScenarioError(f"`{typed[0]}` is for scenarios, and this is a run", str(folder), "", hint)
    check_outputs(as_json, plot, (each.picture for each in MEASURES))
    run = open_run(folder)
    if run.status == "running":
        raise ScenarioError(f"`{run.path.name}` is still under way", str(folder), "a run that has ended")
    printed = str(as_json) == "-"
    found, kept = _read_or_estimate(run.without_accounts(), quick, again, quiet=printed)
    measures = run_measures(run, found)
    if as_json:
        facts = {"run": str(run.path), "status": run.status, "found before": kept}
        write_json(as_json, facts | join_facts(measures))
    if not printed:
        remark = "this was found before and is kept in the folder: --again estimates it anew" if kept else ""
        print_measures(measures, None if everything else ROWS, more_rows(run), remark)
    drawn = draw_measures(measures, plot)
    if not printed:
        print_out(*(f"wrote {file}" for file in (*drawn, as_json) if file))
    code = worst_outcome(measures).exit_code
    if code:
        raise typer.Exit(code)


def more_rows(run: Run) -> str:
    """Return the command that shows all rows of what is said about a run."""
    return f"hocket check {shlex.quote(str(run.path))} --all"


def _read_or_estimate(run: Run, quick: bool, again: bool, quiet: bool) -> tuple[ErrorEstimate, bool]:
    """Return the estimate, and whether it was in the folder already."""
    from hocket.analysis.run_error import estimate_run_error

    kept = None
    try:
        kept = read_estimate(run.path)
    except FileError as error:
        print_err(f"{error.faults[0].what}; the error is estimated anew")
    if kept and not again and (quick or kept.method == "Richardson"):
        return kept, True
    found = estimate_run_error(run, quick, announce_reruns(quiet))
    if kept is None or found.runs >= kept.runs:
        try:
            write_estimate(run.path, found)
        except FileError as error:
            print_err(f"not kept: {error.faults[0].what}")
    return found, False


def announce_reruns(quiet: bool) -> Watch:
    """Return what tells of the runs that are made, with a bar on a terminal."""

    @contextmanager
    def watch(experiment: Experiment, how: str) -> Iterator[Progress | None]:
        if not quiet:
            print_err(f"again {how}")
        with run_progress(experiment.name, experiment.start, experiment.composite.step, quiet) as progress:
            yield progress

    return watch
