"""hocket report: one page about a run that opens anywhere.

In:  a run folder
Out: an HTML file that needs nothing else
"""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from hocket.cli.output_files import check_file
from hocket.cli.terminal import print_err, print_out
from hocket.files.run_folder import REPORT, open_run


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", metavar="FILE", help="The page; default: RUN/report.html."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", metavar="", help="Open it in the browser.")] = False,
) -> None:
    """Write one page about a run: the verdict, ports with error bands, levels, timeline, tables.

    The page holds all it needs and can be sent to others. Bands are drawn where errors were estimated, by
    hocket check RUN or hocket run --trust. A run that failed or was stopped gets its page too.
    """
    from hocket.report.page import write_report

    opened = open_run(run)
    target = output or (run if run.is_dir() else run.parent) / REPORT
    check_file(target)
    write_report(opened, target)
    size = target.stat().st_size
    print_out(f"wrote {target} ({size / 1000:,.0f} kB)")
    if show and not webbrowser.open(target.resolve().as_uri()):
        print_err("no browser could be opened")
