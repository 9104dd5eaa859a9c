"""hocket check RUN: how wrong a run was, and whether to believe that.

In:  the folder of a run
Out: a verdict in plain words, then the tables behind it; a picture, or JSON; the estimate, kept in the folder
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocket.cli.output_files import check_file, check_picture, write_json
from hocket.cli.terminal import (
    format_significant,
    is_terminal,
    print_err,
    print_out,
    run_progress,
    titled_table,
)
from hocket.errors import FileError, ScenarioError, count
from hocket.execution.session import Progress
from hocket.files.bond_flows import KEEPS, BondFlows, read_bond_flows
from hocket.files.error_estimate import ErrorEstimate, read_estimate, write_estimate
from hocket.files.run_folder import FACTS, Run, open_run
from hocket.model.experiment import Experiment

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hocket.analysis.run_error import Watch


MOST = 12
"""Ports in the table of a run."""
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


def error_table(run: Run, trust: ErrorEstimate, most: int | None = MOST) -> Iterator[RenderableType]:
    """Yield a table of ports: where they ended, and how wrong they are; the worst first."""
    rows = [
        {
            "port": each.port,
            "unit": each.run.unit,
            "last value": run.final(each.port),
            "estimated error": each.largest,
            "at [s]": each.at,
            "of the largest value": each.relative,
            **({"order": _round_order(each.order)} if trust.method == "Richardson" else {}),
        }
        for each in trust.ports
    ]
    how = "from shorter steps" if trust.method == "Richardson" else "from linear models"
    yield from titled_table(f"how wrong it was, {how}", rows[:most], None)
    if most is not None and len(rows) > most:
        yield f"and {len(rows) - most} more: hocket check {shlex.quote(str(run.path))} --all"


def _round_order(order: float | None) -> float | None:
    return None if order is None else round(order, 2)


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
    return f"factor {facts['factor']:g}, {late}, at most {format_significant(1000 * facts['largest_lag'])} ms late"


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

DEFECT = (
    "a defect is how far an input was from the output that drives it when a step ended: what the coupling "
    "does wrong in one step, in the unit of the input; it is not the error of the run"
)

GAINED = (
    "what is gained was taken on one side of a bond and never given on the other: the coupling made it; "
    f"a bond keeps energy if that is at most {100.0 * KEEPS:g} % of what flowed. Where power "
    "goes forth and back, what is gained at the end of a run may be lost again: such a bond swings, which is "
    "seen where `hocket run --ledger` recorded it over time; `--plot` draws it"
)


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
    """Say how wrong a run was; `others` are options that are for scenarios only, by name."""
    typed = [name for name, value in others.items() if value]
    if typed:
        hint = "leave it out: a run is judged as it was run"
        raise ScenarioError(f"`{typed[0]}` is for scenarios, and this is a run", str(folder), "", hint)
    if plot:
        check_picture(plot)
        check_picture(_energy_picture_path(plot))
    if as_json and str(as_json) != "-":
        check_file(as_json)
    run = open_run(folder)
    if run.status == "running":
        raise ScenarioError(f"`{run.path.name}` is still under way", str(folder), "a run that has ended")
    flowed = read_bond_flows(run)
    found, kept = _read_or_estimate(run.without_accounts(), quick, again, quiet=str(as_json) == "-")
    _print_estimate(run, found, flowed, kept, as_json, everything)
    drawn = _draw_pictures(found, flowed, plot) if plot else []
    if str(as_json) != "-":
        print_out(*(f"wrote {file}" for file in (*drawn, as_json) if file))
    if not found.good:
        raise typer.Exit(1)


def _energy_picture_path(plot: Path) -> Path:
    """Return the name of the picture of energies beside that of errors."""
    return plot.with_stem(f"{plot.stem}-energy")


def _draw_pictures(found: ErrorEstimate, flowed: BondFlows, plot: Path) -> list[Path]:
    """Draw the errors, and what the bonds gained if that was recorded; return the pictures."""
    found.plot(plot)
    if flowed.series:
        flowed.plot(_energy_picture_path(plot))
        return [plot, _energy_picture_path(plot)]
    if flowed.bonds:
        print_err("no picture of the energy of its bonds: `hocket run --ledger` records it")
    return [plot]


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
    def watch(study: Experiment, how: str) -> Iterator[Progress | None]:
        if not quiet:
            print_err(f"again {how}")
        with run_progress(study.name, study.start, study.composite.step, quiet) as progress:
            yield progress

    return watch


def _print_estimate(
    run: Run, found: ErrorEstimate, flowed: BondFlows, kept: bool, as_json: Path | None, everything: bool
) -> None:
    if as_json:
        write_json(as_json, _estimate_facts(run, found, flowed, kept))
        if str(as_json) == "-":
            return
    from rich.text import Text

    first, *rest = found.verdict() or ["nothing is known of its error"]
    print_out(Text(first, "bold" if found.good else "bold red"), *rest)
    if kept:
        print_out("this was found before and is kept in the folder: --again estimates it anew")
    print_out(*flowed.verdict())
    print_out(*_estimate_tables(run, found, flowed, None if everything else ROWS))


def _estimate_tables(
    run: Run, found: ErrorEstimate, flowed: BondFlows, most: int | None
) -> Iterator[RenderableType]:
    yield from error_table(run, found, most)
    yield from titled_table("energy through power bonds", flowed.rows(), most)
    if len(flowed.bonds) > 1:
        yield from titled_table("the same, summed per level", flowed.level_rows(), most)
    if flowed.bonds:
        yield GAINED
    yield from titled_table("stored energy", flowed.stored_rows(), most)
    if found.gaps:
        yield from titled_table("defects of connections", found.defect_rows(), most)
        yield DEFECT


def _estimate_facts(run: Run, found: ErrorEstimate, flowed: BondFlows, kept: bool) -> dict[str, Any]:
    return {
        "run": str(run.path),
        "status": run.status,
        "good": found.good,
        "verdict": found.verdict(),
        "method": found.method,
        "found before": kept,
        "promised order": found.predicted,
        "errors": found.rows(),
        "defects": found.defect_rows(),
        "bonds": flowed.rows(),
        "bonds by level": flowed.level_rows(),
        "stored energy": flowed.stored_rows(),
        "doubts": found.doubts,
        "not seen": found.unseen,
    }
