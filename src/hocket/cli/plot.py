"""hocket plot: a picture of a run.

In:  a run folder, the ports to draw
Out: a picture file
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hocket import open_run
from hocket.cli.screen import say
from hocket.cli.targets import check_picture


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
    """Draw the ports of a run over time, one axes per unit."""
    opened = open_run(run)
    picture = out or Path(f"{opened.path.name}.png")
    check_picture(picture)
    opened.plot(*(ports or ()), path=picture)
    say(f"wrote {picture}")
