"""hocket plot: a picture of a run.

In:  a run folder, the ports to draw
Out: a picture file, with bands where the folder says how wrong the run was
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hocket.cli.output_files import check_picture
from hocket.cli.terminal import print_err, print_out
from hocket.errors import FileError
from hocket.files.error_estimate import ErrorEstimate, add_bands, read_estimate
from hocket.files.plotting import save_figure
from hocket.files.run_folder import open_run


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    ports: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PORTS]...", help="What to draw, with * and ?; none: everything."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="PNG", help="The picture (png, svg, pdf); default: RUN.png here.")
    ] = None,
) -> None:
    """Draw the ports of a run over time, one axes per unit.

    Where the folder says how wrong it was (`hocket run --trust`, `hocket check RUN`) there are bands.
    """
    opened = open_run(run)
    picture = out or Path(f"{opened.path.name}.png")
    check_picture(picture)
    drawn = opened.plot(*(ports or ()))
    trust = _trust_if_readable(opened.path)
    if trust:
        add_bands(drawn, [opened[port] for port in opened.select(ports or None)], trust)
    save_figure(drawn, picture)
    print_out(f"wrote {picture}")


def _trust_if_readable(folder: Path) -> ErrorEstimate | None:
    try:
        return read_estimate(folder)
    except FileError as error:
        print_err(f"without bands: {error.faults[0].what}")
        return None
