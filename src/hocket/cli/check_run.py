"""hocket check RUN: how wrong a run was, and whether to believe that.

In:  the folder of a run
Out: a verdict in plain words, then the tables behind it; a picture, or JSON; the estimate, kept in the folder
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hocket import Run, open_run
from hocket.cli.facts import write_json
from hocket.cli.progress import run_progress
from hocket.cli.screen import print_err, print_out
from hocket.cli.summary import error_table
from hocket.cli.tables import titled_table
from hocket.cli.targets import check_file, check_picture
from hocket.errors import FileError, ScenarioError
from hocket.execution import Progress
from hocket.files.flows import KEEPS, BondFlows, read_bond_flows
from hocket.files.run import FACTS
from hocket.files.study import Experiment
from hocket.files.trust import ErrorEstimate, read_estimate, write_estimate

if TYPE_CHECKING:
    from hocket.trusting import Watch

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
    from hocket.trusting import estimate_run_error  # here: the other verbs start sooner

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
