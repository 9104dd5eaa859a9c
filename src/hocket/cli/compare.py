"""hocket compare: two runs, or a run and a reference, beside each other.

In:  folders of runs, or files of columns; tolerances
Out: a verdict with an exit code for regression tests, a table, a picture, JSON
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hocket.cli import options
from hocket.cli.options import argument, option
from hocket.cli.output_files import check_outputs
from hocket.cli.run_estimate import present_measures

RELATIVE = 1e-6
"""As `hocket.compare` has it, without importing what it needs."""
Side = Annotated[Path, argument("REFERENCE", "The folder of a run, or a .csv or .parquet file.")]
Other = Annotated[Path, argument("OTHER", "What is compared with it: the same.")]


def compare(
    reference: Side,
    other: Other,
    ports: Annotated[list[str] | None, option("PATTERN", "Ports to compare; may be repeated.")] = None,
    relative: Annotated[float, option("SHARE", "What may differ, as a part of the peak.")] = RELATIVE,
    absolute: Annotated[float, option("VALUE", "What may differ, in the unit of the port.")] = 0.0,
    time_tolerance: Annotated[str, option("TIME", "By how much values may be early or late.")] = "0 s",
    plot: Annotated[Path | None, option("PNG", "Draw the ports that are farthest apart.")] = None,
    as_json: options.Json = None,
    everything: options.AllRows = False,
) -> None:
    """Compare two runs port by port: how far apart, where, within a tolerance?

    Every port of the reference must be there, over the same time, in a tube around it.

    Exit codes: 0 within the tolerance, 1 not, 2 bad input, 3 not judged: no port in common.

    Examples:
        hocket compare runs/car-001 runs/car-002
        hocket compare reference.csv runs/car-002 --relative 1e-3 --time-tolerance "10 ms" --plot diff.png
    """
    check_outputs(as_json, plot)
    from hocket.analysis.run_comparison import compare as compared

    found = compared(
        reference, other, ports, absolute=absolute, relative=relative, time_tolerance=time_tolerance
    )
    present_measures([found], plot, as_json, everything, found.outcome, verb="compare")
