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
from hocket.cli.command_arguments import locate_faults, parse_assignments, read_experiment, with_algorithms
from hocket.cli.output_files import check_file, check_picture
from hocket.cli.output_files import write_json as keep_facts
from hocket.cli.terminal import count_progress, print_err, print_out, titled_table
from hocket.errors import FileError
from hocket.planning.parameters import with_parameters

if TYPE_CHECKING:
    from hocket.model.experiment import Experiment
    from hocket.search.nest.nesting_summary import Nesting


ROWS = 8
"""Of each table, unless all are asked for."""


def nest(
    files: options.Files,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="The largest error, as a part of the largest value: the fewest exchanges that keep it.",
        ),
    ] = None,
    work: Annotated[
        float,
        typer.Option(metavar="TIMES", help="Without a tolerance: so many times the exchanges of now."),
    ] = 1.0,
    stop: options.Stop = None,
    keep: Annotated[
        bool, typer.Option("--keep", metavar="", help="Keep the algorithm and extrapolation as they are.")
    ] = False,
    algorithm: options.Algorithm = None,
    extrapolation: options.Extrapolation = None,
    connect: options.Connect = None,
    assign: options.Set = None,
    out: Annotated[
        Path | None, typer.Option(metavar="TOML", help="Write the scenario that was chosen.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the strengths and the clusters.")
    ] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything; -: print it instead.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", metavar="", help="All rows of the tables.")] = False,
) -> None:
    """Propose levels for a flat scenario: who should talk often, how often, and whether that pays.

    Each connection is weighed by what it does to the error and to growth; simulators that are strongly
    connected become a level with steps of its own. Everything is judged by the very plan that would be run,
    nothing is run, and a hierarchy is proposed only if it is better than the flat scenario with the same
    number of exchanges. Where none is, what helps instead is told.

    With --out the exit code is 1 if there is nothing better to write.
    """
    experiment = with_algorithms(read_experiment(files, connect or ()), algorithm, extrapolation)
    composite = with_parameters(experiment.composite, parse_assignments(experiment, assign or ()), "--set")
    experiment = replace(experiment, composite=composite)
    _check_nest_targets(out, plot, as_json, files)
    from hocket.search.nest.nest import nest as nested

    printed = str(as_json) == "-"
    with (
        locate_faults(files, ["stop"] if stop else [], ("tolerance", "work")),
        count_progress("nest", "couplings", quiet=printed) as told,
    ):
        found = nested(experiment, tolerance, stop=stop, work=work, keep=keep, progress=told)
    if as_json:
        keep_facts(as_json, _nesting_facts(found))
    if not printed:
        _print_nesting(found, None if everything else ROWS)
    if plot:
        found.plot(plot)
    written = _write_nested(found, experiment, out)
    if not printed:
        print_out(*(f"wrote {file}" for file in (plot, as_json, written) if file))
    if out and not written:
        print_err(f"nothing was written to {out}: the scenario as it is stays the best that was found")
        raise typer.Exit(1)


def _check_nest_targets(out: Path | None, plot: Path | None, as_json: Path | None, files: list[Path]) -> None:
    if out:
        check_file(out)
        if out.suffix != ".toml":
            raise FileError(f"`{out.name}` is no name for a scenario", "--out", "a name that ends in .toml")
        if any(out.absolute() == file.absolute() for file in files):
            hint = "another name: the flat scenario is not replaced"
            raise FileError(f"`{out.name}` is the scenario itself", "--out", "", hint)
    if plot:
        check_picture(plot)
    if as_json and str(as_json) != "-":
        check_file(as_json)


def _print_nesting(found: Nesting, most: int | None) -> None:
    first, *rest = found.verdict()
    print_out(Text(first, "bold"), *rest)
    print_out(*titled_table("what each connection does wrong", found.strengths.rows(), most))
    print_out(*titled_table("compared", found.rows(), None))


def _write_nested(found: Nesting, experiment: Experiment, out: Path | None) -> Path | None:
    if out is None or found.composite is None:
        return None
    from hocket.files.toml import write

    write(replace(experiment, composite=found.composite, path=None, notes=()), out)
    return out


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
