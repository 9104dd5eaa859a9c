"""The options that verbs share, and `--plot`, which may stand alone.

In:  nothing
Out: the types of the parameters of verbs
"""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from hocket.files.formats import ENDINGS


class InterfaceChoice(StrEnum):
    """Which interface of an FMU is used."""

    auto = "auto"
    cosimulation = "co-simulation"
    exchange = "model-exchange"


FMU_PANEL = "FMUs"
Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="A scenario (.toml, .ssp), or FMUs.", show_default=False),
]
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A scenario (.toml, .ssp) or an .fmu.", show_default=False)
]
Stop = Annotated[str | None, typer.Option(metavar="TIME", help='When to stop: 10, "500 ms", "2 min".')]
Start = Annotated[str | None, typer.Option(metavar="TIME", help="When to start.")]
Step = Annotated[str | None, typer.Option(metavar="TIME", help='The macro step, as "10 ms".')]
Algorithm = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="In place of the file's: gauss-seidel, 'iterate(tolerance=1e-6)', of a level axle=jacobi.",
    ),
]
Extrapolation = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="In place of the file's: linear, of a level axle=quadratic."),
]
Every = Annotated[
    str | None, typer.Option(metavar="TIME", help='Time between rows; "micro": micro steps too.')
]
Record = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help='Ports to keep, as "axle.*"; may be repeated.'),
]
Ledger = Annotated[
    bool,
    typer.Option("--ledger", metavar="", help="Record what flows through power bonds, and what they gain."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", metavar="", help="Replace the run in --folder.")]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="Then write what was recorded.")]
Connect = Annotated[
    list[str] | None,
    typer.Option(metavar="IN=OUT", help="Connect FMUs: b.u=a.y; may be repeated.", rich_help_panel=FMU_PANEL),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter or start value: k=20, of several a.k=20.",
        rich_help_panel=FMU_PANEL,
    ),
]
Observe = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Record a variable that is no output: h, a.h.", rich_help_panel=FMU_PANEL
    ),
]
Interfaces = Annotated[
    InterfaceChoice | None,
    typer.Option(
        "--interface", metavar="NAME", help="co-simulation or model-exchange.", rich_help_panel=FMU_PANEL
    ),
]
Isolate = Annotated[
    bool,
    typer.Option("--isolate", metavar="", help="Each in a process of its own.", rich_help_panel=FMU_PANEL),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="What a call may take, if not 60 s; each is isolated.",
        rich_help_panel=FMU_PANEL,
    ),
]
Log = Annotated[
    bool,
    typer.Option(
        "--log", metavar="", help="Show all they say, not warnings only.", rich_help_panel=FMU_PANEL
    ),
]

IN_FOLDER = Path(".")
"""What `--plot` alone means: a picture in the folder of the run."""


class PlotCommand(TyperCommand):
    """A verb whose `--plot` need not be followed by a file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--plot` its value where what follows is another option, a scenario or nothing."""
        pairs = pairwise([*args, "-"])
        return super().parse_args(ctx, [_fill_in_plot(word, after) for word, after in pairs])


def _fill_in_plot(word: str, after: str) -> str:
    alone = after.startswith("-") or Path(after).suffix.lower() in ENDINGS
    return f"--plot={IN_FOLDER}" if word == "--plot" and alone else word
