"""hocket export: what was recorded, for other programs.

In:  a run folder
Out: one CSV or Parquet file
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hocket.cli.output_files import check_file
from hocket.cli.terminal import print_out
from hocket.errors import FileError
from hocket.files.run_folder import open_run


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Ends in .csv or .parquet.", show_default=False)
    ],
    ports: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="A port, or several with * and ?; may be repeated."),
    ] = None,
) -> None:
    """Write the rows of a run as CSV or Parquet, time first."""
    opened = open_run(run)
    writers = {".csv": opened.to_csv, ".parquet": opened.to_parquet}
    kind = file.suffix.lower()
    if kind not in writers:
        raise FileError(f"cannot write a `{kind}` file", str(file), "a name that ends in .csv or .parquet")
    check_file(file)
    writers[kind](file, ports or None)
    print_out(f"wrote {file}")
