"""hocket export, plot and report: what was recorded, for other programs and for people.

In:  a run folder; or a scenario that shall be an FMU
Out: a CSV or Parquet file, an FMU, a picture, an HTML page that needs nothing else
"""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from hocket.cli import options
from hocket.cli.command_arguments import read_changed
from hocket.cli.options import RunFolder, argument, flag, option
from hocket.cli.output_files import check_file, check_picture, open_noted_run, print_written, with_size
from hocket.cli.terminal import print_err
from hocket.errors import FileError, ScenarioError
from hocket.files.error_estimate import add_bands, read_estimate
from hocket.files.plotting import save_figure
from hocket.files.run_clearing import REPORT
from hocket.files.run_folder import Run
from hocket.model.code_loading import is_code_refused

WRITERS: Mapping[str, Callable[..., None]] = {
    ".csv": Run.to_csv,
    ".parquet": Run.to_parquet,
    ".h5": Run.to_hdf5,
    ".hdf5": Run.to_hdf5,
    ".mat": Run.to_mat,
}
"""By the suffix of a file, how the rows of a run are written to it."""
_ENDINGS = " or ".join(WRITERS)


class FmiChoice(StrEnum):
    """The version of FMI of what is written."""

    two = "2"
    three = "3"


def export(
    what: Annotated[
        list[Path],
        argument("RUN FILE", f"A run, and a file that ends in {_ENDINGS} (-: CSV); with --fmu a scenario."),
    ],
    changes: options.Changes = options.NO_CHANGES,
    ports: Annotated[
        list[str] | None, option("PATTERN", "A port, or several with * and ?; may be repeated.")
    ] = None,
    fmu: Annotated[Path | None, option("FMU", "Write the scenario itself as an FMU for other tools.")] = None,
    fmi: Annotated[FmiChoice, option("VERSION", "The version of FMI: 2 or 3.")] = FmiChoice.two,
) -> None:
    """Write the rows of a run as CSV, Parquet, HDF5 or MATLAB; or a scenario as an FMU.

    Examples:
        hocket export runs/car-001 car.csv --ports 'axle.*' --ports body.v
        hocket export car.toml --fmu car.fmu --fmi 3
    """
    if fmu is not None:
        from hocket.execution.fmu_export.export import export as export_fmu

        check_file(fmu)
        export_fmu(read_changed(what, changes), fmu, fmi=str(fmi), record=ports or None)
        print_written(with_size(fmu))
        return
    if len(what) != 2:
        hint = "hocket export runs/car-001 car.csv; or hocket export car.toml --fmu car.fmu"
        raise ScenarioError("a run and one file are expected", "hocket export", "RUN FILE", hint)
    folder, file = what
    opened = open_noted_run(folder)
    if str(file) == "-":
        opened.to_csv(sys.stdout.buffer, ports or None)
        return
    kind = file.suffix.lower()
    if kind not in WRITERS:
        raise FileError(f"cannot write a `{kind}` file", str(file), f"a name that ends in {_ENDINGS}")
    check_file(file)
    WRITERS[kind](opened, file, ports or None)
    print_written(file)


def plot(
    run: RunFolder,
    ports: Annotated[
        list[str] | None, argument("[PORTS]...", "What to draw, with * and ?; none: everything.")
    ] = None,
    out: Annotated[Path | None, option("PNG", "The picture (png, svg, pdf); default: RUN.png here.")] = None,
) -> None:
    """Draw the ports of a run over time, one axes per unit.

    Where the global error was estimated (`hocket run --trust`, `hocket check RUN`) there are error bands.

    Examples:
        hocket plot runs/car-001 'axle.*' --out axle.png
    """
    opened = open_noted_run(run)
    picture = out or Path(f"{opened.path.name}.png")
    check_picture(picture)
    drawn = opened.plot(*(ports or ()))
    try:
        if estimate := read_estimate(opened.path):
            add_bands(drawn, [opened[port] for port in opened.select(ports or None)], estimate)
    except FileError as error:
        print_err(f"without bands: {error.faults[0].what}")
    save_figure(drawn, picture)
    print_written(picture)


def report(
    run: RunFolder,
    output: Annotated[
        Path | None, option("FILE", "The page; default: RUN/report.html.", "--output", "--out", "-o")
    ] = None,
    show: Annotated[bool, flag("--open", "Open it in the browser.")] = False,
) -> None:
    """Write one page about a run: verdict, ports with error bands, levels, timeline, tables.

    The page holds all it needs and can be sent to others. Bands are drawn where errors were estimated, by
    hocket check RUN or hocket run --trust. A run that failed or was stopped gets its page too.

    Examples:
        hocket report runs/car-001 --open
    """
    from hocket.report.page import write_report

    opened = open_noted_run(run)
    target = output or (run if run.is_dir() else run.parent) / REPORT
    check_file(target)
    write_report(opened, target, code=not is_code_refused())
    print_written(with_size(target))
    if show and not webbrowser.open(target.resolve().as_uri()):
        print_err("no browser could be opened")
