"""hocket nest: which simulators should talk more often, as a level of their own.

In:  a flat scenario file, or FMUs
Out: a verdict, the strengths of connections, the comparison at equal work; the nested scenario as a file
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from hocket.cli import options
from hocket.cli.command_arguments import locate_faults, read_changed
from hocket.cli.options import flag, option
from hocket.cli.output_files import check_outputs, check_scenario_target, print_written, write_json
from hocket.cli.terminal import count_progress, print_err, print_out, titled_table
from hocket.files.toml import write

if TYPE_CHECKING:
    from hocket.search.nest.nest import Nesting


ROWS = 8
"""Of each table, unless all are asked for."""


def nest(
    files: options.Files,
    tolerance: Annotated[
        float | None,
        option("NUMBER", "The largest error, as a part of the peak: the fewest exchanges that keep it."),
    ] = None,
    work: Annotated[float, option("TIMES", "Without a tolerance: so many times the exchanges of now.")] = 1.0,
    stop: options.Stop = None,
    keep: Annotated[bool, flag("--keep", "Keep the algorithm and extrapolation as they are.")] = False,
    changes: options.Changes = options.NO_CHANGES,
    out: Annotated[Path | None, option("TOML", "Write the scenario that was chosen.")] = None,
    plot: Annotated[Path | None, option("PNG", "Draw the strengths and the clusters.")] = None,
    as_json: options.Json = None,
    everything: options.AllRows = False,
) -> None:
    """Propose levels for a flat scenario: which simulators exchange more often, does it pay?

    The strength of each connection is its part of the error and of the growth rate; simulators that are
    strongly coupled become a level with steps of its own. Every candidate is judged by the plan that would
    be run; nothing is run. A hierarchy is proposed only if it is better than the flat scenario with the same
    number of exchanges. Where none is, the answer says what helps instead.

    With --out the exit code is 1 if there is nothing better to write.

    Examples:
        hocket nest car.toml --tolerance 1e-3 --out nested.toml
        hocket nest car.toml --work 1.5 --plot clusters.png
    """
    experiment = read_changed(files, changes)
    check_outputs(as_json, plot)
    if out:
        check_scenario_target(out, files)
    from hocket.search.nest.nest import nest as nested

    printed = str(as_json) == "-"
    with (
        locate_faults(files, ["stop"] if stop else [], ("tolerance", "work")),
        count_progress("nest", "couplings", quiet=printed) as told,
    ):
        found = nested(experiment, tolerance, stop=stop, work=work, keep=keep, progress=told)
    if as_json:
        write_json(as_json, "nest", _nesting_facts(found))
    if not printed:
        first, *rest = found.verdict()
        print_out(Text(first, "bold"), *rest)
        most = None if everything else ROWS
        print_out(*titled_table("coupling strengths", found.strengths.rows(), most))
        print_out(*titled_table("compared", found.rows(), None))
    if plot:
        found.plot(plot)
    better = found.composite
    if out and better is not None:
        write(replace(experiment, composite=better, path=None, notes=()), out)
    if not printed:
        print_written(plot, as_json, None if better is None else out)
    if out and better is None:
        print_err(f"nothing was written to {out}: the scenario as it is stays the best that was found")
        raise typer.Exit(1)


def _nesting_facts(found: Nesting) -> dict[str, object]:
    return {
        "verdict": found.verdict(),
        "nested": found.is_nested,
        "clusters": found.clusters,
        "levels": None if found.chosen is None else found.chosen.tree.words,
        "tolerance": found.tolerance,
        "strengths": found.strengths.rows(),
        "compared": found.rows(),
    }
