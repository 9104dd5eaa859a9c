"""hocket probe: whether an FMU can do what it declares.

In:  an .fmu
Out: a table of what was found; exit code 1 if something declared is not true
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from hocket.cli.screen import console, is_terminal, print_out
from hocket.simulators.fmu import Fmu
from hocket.simulators.fmu.probe import Probe
from hocket.simulators.fmu.probe import probe as probed
from hocket.simulators.recipes import positive_duration

_STYLES = {"true": "green", "false": "bold red", "not declared": "dim", "untried": "yellow"}


def probe(
    file: Annotated[Path, typer.Argument(metavar="FMU", help="An FMU.", show_default=False)],
    interface: Annotated[
        str, typer.Option(metavar="NAME", help="co-simulation or model-exchange, if it has both.")
    ] = "auto",
    time_limit: Annotated[str, typer.Option(metavar="TIME", help="What a check may take.")] = "60 s",
    here: Annotated[
        bool, typer.Option("--here", metavar="", help="In this process: a crash of the FMU ends it.")
    ] = False,
) -> None:
    """Load an FMU, step it, and check that what it declares is true.

    Exit codes: 0 it is, 1 it is not or the FMU fails, 2 the FMU cannot be read.
    """
    options: dict[str, Any] = {
        "interface": interface,
        "time_limit": positive_duration(time_limit, "--time-limit"),
    }
    model = Fmu(file, **options)
    busy = console(stderr=True).status(f"probing {file.name}") if is_terminal(stderr=True) else nullcontext()
    with busy:
        found = probed(model, here=here)
    print_out(
        _findings_table(found), "", Text(found.summary, "bold red" if found.failed_checks else "bold green")
    )
    if found.failed_checks:
        raise typer.Exit(1)


def _findings_table(found: Probe) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("ability", "verdict", "found"):
        table.add_column(heading, header_style="dim", overflow="fold", no_wrap=heading != "found")
    for finding in found.findings:
        style = _STYLES[finding.verdict]
        quiet = "dim" if finding.verdict == "not declared" else ""
        table.add_row(Text(finding.name, quiet), Text(finding.verdict, style), Text(finding.what, quiet))
    return table
