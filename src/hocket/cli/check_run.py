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
from hocket.cli.facts import keep
from hocket.cli.progress import shown
from hocket.cli.screen import say, tell
from hocket.cli.summary import errors
from hocket.cli.tables import table
from hocket.cli.targets import check_file, check_picture
from hocket.errors import FileError, ScenarioError
from hocket.execution import Progress
from hocket.files.flows import KEEPS, Flows, flows
from hocket.files.run import FACTS
from hocket.files.study import Study
from hocket.files.trust import Trust, read_trust, write_trust

if TYPE_CHECKING:
    from hocket.trusting import Watch

PANEL = "Of a run"
ROWS = 8
"""Of each table, unless all are asked for."""
ARCHIVES = ("SystemStructure.ssd", "modelDescription.xml")
"""What a folder that is no run may hold."""

Files = Annotated[
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


def refuse(files: list[Path], typed: Mapping[str, object]) -> None:
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
        check_picture(_energy(plot))
    if as_json and str(as_json) != "-":
        check_file(as_json)
    run = open_run(folder)
    if run.status == "running":
        raise ScenarioError(f"`{run.path.name}` is still under way", str(folder), "a run that has ended")
    flowed = flows(run)
    found, kept = _found(run.without_accounts(), quick, again, quiet=str(as_json) == "-")
    _answer(run, found, flowed, kept, as_json, everything)
    drawn = _drawn(found, flowed, plot) if plot else []
    if str(as_json) != "-":
        say(*(f"wrote {file}" for file in (*drawn, as_json) if file))
    if not found.good:
        raise typer.Exit(1)


def _energy(plot: Path) -> Path:
    """Return the name of the picture of energies beside that of errors."""
    return plot.with_stem(f"{plot.stem}-energy")


def _drawn(found: Trust, flowed: Flows, plot: Path) -> list[Path]:
    """Draw the errors, and what the bonds gained if that was recorded; return the pictures."""
    found.plot(plot)
    if flowed.series:
        flowed.plot(_energy(plot))
        return [plot, _energy(plot)]
    if flowed.bonds:
        tell("no picture of the energy of its bonds: `hocket run --ledger` records it")
    return [plot]


def _found(run: Run, quick: bool, again: bool, quiet: bool) -> tuple[Trust, bool]:
    """Return the estimate, and whether it was in the folder already."""
    from hocket.trusting import trust_of  # here: the other verbs start sooner

    kept = None
    try:
        kept = read_trust(run.path)
    except FileError as error:
        tell(f"{error.faults[0].what}; the error is estimated anew")
    if kept and not again and (quick or kept.method == "Richardson"):
        return kept, True
    found = trust_of(run, quick, watching(quiet))
    if kept is None or found.runs >= kept.runs:
        try:
            write_trust(run.path, found)
        except FileError as error:
            tell(f"not kept: {error.faults[0].what}")
    return found, False


def watching(quiet: bool) -> Watch:
    """Return what tells of the runs that are made, with a bar on a terminal."""

    @contextmanager
    def watch(study: Study, how: str) -> Iterator[Progress | None]:
        if not quiet:
            tell(f"again {how}")
        with shown(study.name, study.start, study.composite.step, quiet) as progress:
            yield progress

    return watch


def _answer(
    run: Run, found: Trust, flowed: Flows, kept: bool, as_json: Path | None, everything: bool
) -> None:
    if as_json:
        keep(as_json, _facts(run, found, flowed, kept))
        if str(as_json) == "-":
            return
    first, *rest = found.verdict() or ["nothing is known of its error"]
    say(Text(first, "bold" if found.good else "bold red"), *rest)
    if kept:
        say("this was found before and is kept in the folder: --again estimates it anew")
    say(*flowed.verdict())
    say(*_tables(run, found, flowed, None if everything else ROWS))


def _tables(run: Run, found: Trust, flowed: Flows, most: int | None) -> Iterator[RenderableType]:
    yield from errors(run, found, most)
    yield from table("energy through power bonds", flowed.rows(), most)
    if len(flowed.bonds) > 1:
        yield from table("the same, summed per level", flowed.level_rows(), most)
    if flowed.bonds:
        yield GAINED
    yield from table("stored energy", flowed.stored_rows(), most)
    if found.gaps:
        yield from table("defects of connections", found.gap_rows(), most)
        yield DEFECT


def _facts(run: Run, found: Trust, flowed: Flows, kept: bool) -> dict[str, Any]:
    return {
        "run": str(run.path),
        "status": run.status,
        "good": found.good,
        "verdict": found.verdict(),
        "method": found.method,
        "found before": kept,
        "promised order": found.predicted,
        "errors": found.rows(),
        "defects": found.gap_rows(),
        "bonds": flowed.rows(),
        "bonds by level": flowed.level_rows(),
        "stored energy": flowed.stored_rows(),
        "doubts": found.doubts,
        "not seen": found.unseen,
    }
