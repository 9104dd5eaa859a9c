"""The options that verbs share, and `--plot`, which may stand alone.

In:  nothing
Out: the types of the parameters of verbs
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand


class InterfaceChoice(StrEnum):
    """Which interface of an FMU is used."""

    auto = "auto"
    cosimulation = "co-simulation"
    exchange = "model-exchange"


def argument(metavar: str, about: str) -> Any:
    """Return what stands in a command without a name before it."""
    return typer.Argument(metavar=metavar, help=about, show_default=False)


def option(metavar: str, about: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """Return an option with a value; `names` if it is not called as its parameter is."""
    return typer.Option(*names, metavar=metavar, help=about, rich_help_panel=panel, **more)


def flag(name: str, about: str, panel: str | None = None) -> Any:
    """Return an option without a value."""
    return typer.Option(name, metavar="", help=about, rich_help_panel=panel)


FMU_PANEL = "FMUs"
Files = Annotated[list[Path], argument("FILE", "A scenario (.toml, .ssp), or FMUs.")]
File = Annotated[Path, argument("FILE", "A scenario (.toml, .ssp) or an .fmu.")]
RunFolder = Annotated[Path, argument("RUN", "The folder of a run.")]
Stop = Annotated[str | None, option("TIME", 'When to stop: 10, "500 ms", "2 min".')]
Start = Annotated[str | None, option("TIME", "When to start.")]
Step = Annotated[
    str | None, option("TIME", 'The macro step, as "10 ms", of all levels that have none of their own.')
]
Algorithm = Annotated[
    list[str] | None,
    option("NAME", "The algorithm: gauss-seidel, 'iterate(tolerance=1e-6)'; of a level inside: axle=jacobi."),
]
Extrapolation = Annotated[
    list[str] | None, option("NAME", "The extrapolation: linear; of a level inside: axle=quadratic.")
]
Every = Annotated[str | None, option("TIME", 'Time between rows; "micro": micro steps too.')]
Record = Annotated[list[str] | None, option("PATTERN", 'Ports to keep, as "axle.*"; may be repeated.')]
Ledger = Annotated[
    bool, flag("--ledger", "Record the power through power bonds, and their energy residuals.")
]
CheckpointEvery = Annotated[
    str | None,
    option("TIME", 'Real time between checkpoints, as "10 min"; `hocket resume RUN` goes on from them.'),
]
Csv = Annotated[Path | None, option("FILE", "Then write what was recorded; -: print it instead.")]
Json = Annotated[Path | None, option("FILE", "Write everything as JSON; -: print it instead.", "--json")]
AllRows = Annotated[bool, flag("--all", "Show all rows of the tables.")]
Connect = Annotated[
    list[str] | None, option("IN=OUT", "Connect FMUs: b.u=a.y; may be repeated.", panel=FMU_PANEL)
]
Set = Annotated[
    list[str] | None,
    option(
        "NAME=VALUE",
        "A parameter or start value: k=20; of one model of several: a.k=20.",
        "--set",
        panel=FMU_PANEL,
    ),
]
Observe = Annotated[
    list[str] | None, option("NAME", "Record a variable that is not an output: h, a.h.", panel=FMU_PANEL)
]
Interfaces = Annotated[
    InterfaceChoice | None,
    option("NAME", "The interface of FMUs: co-simulation or model-exchange.", "--interface", panel=FMU_PANEL),
]
NoStopTime = Annotated[
    bool, flag("--no-stop-time", "Do not tell FMUs when the run ends: some go there at once.", FMU_PANEL)
]
Isolate = Annotated[
    bool | None,
    flag(
        "--isolate/--no-isolate",
        "Run each FMU in a process of its own; or all in this one, untried.",
        FMU_PANEL,
    ),
]
TimeLimit = Annotated[
    str | None,
    option("TIME", "The longest time of a call, if not 60 s; each FMU is isolated.", panel=FMU_PANEL),
]
Build = Annotated[
    bool, flag("--build", "Compile FMUs from their sources where they have no binary for here.", FMU_PANEL)
]
Log = Annotated[bool, flag("--log", "Show all that FMUs log, not warnings only.", FMU_PANEL)]


@dataclass(frozen=True)
class Changes:
    """What was typed in place of what files say; every verb that reads a scenario takes all of them.

    A parameter of a verb with this type stands for one option for each field.
    """

    step: Step = None
    algorithm: Algorithm = None
    extrapolation: Extrapolation = None
    connect: Connect = None
    assign: Set = None
    build: Build = False

    def typed_options(self) -> dict[str, object]:
        """Return what was typed, by option."""
        named = {f"--{each.name}": getattr(self, each.name) for each in fields(self)}
        named["--set"] = named.pop("--assign")
        return {name: value for name, value in named.items() if value}


NO_CHANGES = Changes()


@dataclass(frozen=True)
class FmuChoices:
    """What was typed about FMUs; every verb that runs them takes all of it, one option for each field."""

    observe: Observe = None
    interface: Interfaces = None
    isolate: Isolate = None
    time_limit: TimeLimit = None
    no_stop_time: NoStopTime = False
    log: Log = False


NO_FMU_CHOICES = FmuChoices()

IN_FOLDER = Path(".")
"""What `--plot` alone means: a picture in the folder of the run."""


class PlotCommand(TyperCommand):
    """A verb whose `--plot` need not be followed by a file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--plot` its value where what follows is another option, a scenario or nothing."""
        pairs = pairwise([*args, "-"])
        return super().parse_args(ctx, [_fill_in_plot(word, after) for word, after in pairs])


def _fill_in_plot(word: str, after: str) -> str:
    if word != "--plot":
        return word
    from hocket.files.formats import ENDINGS  # NumPy comes with it, which `--help` can do without

    alone = after.startswith("-") or Path(after).suffix.lower() in ENDINGS
    return f"--plot={IN_FOLDER}" if alone else word
