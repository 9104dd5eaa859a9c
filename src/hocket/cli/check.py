"""hocket check: is it stable, how large will the global error be, and what to change.

In:  a scenario file, or FMUs
Out: the verdict, then the table of each measure; a picture, or JSON
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from hocket.analysis.measure import Measure, join_facts
from hocket.cli import options
from hocket.cli import run_estimate as runs
from hocket.cli.command_arguments import (
    locate_faults,
    parse_assignments,
    read_experiment,
    split_assignment,
    with_algorithms,
)
from hocket.cli.output_files import check_outputs, draw_measures, write_json
from hocket.cli.terminal import count_progress, print_measures, print_out
from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.clock import format_duration, seconds
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.planning.parameters import leaves, with_parameters

if TYPE_CHECKING:
    from hocket.analysis.stability_intervals import Intervals
    from hocket.analysis.stability_map import StabilityMap


OPTION = "--vary"
MAP_COLUMNS, MAP_ROWS = 41, 31
"""Points of a map, unless they are given."""
WIDE = 100.0
"""From this ratio of its ends on, a range is searched on a logarithmic scale."""


@dataclass(frozen=True)
class VariedRange:
    """What varies, from where to where."""

    name: str
    low: float
    high: float
    count: int | None

    @property
    def logarithmic(self) -> bool:
        """Whether its ends are far apart."""
        return self.low > 0.0 and self.high >= WIDE * self.low

    def points(self, count: int) -> list[float]:
        """Return the values to compute."""
        places = np.geomspace if self.logarithmic else np.linspace
        return [float(value) for value in places(self.low, self.high, self.count or count)]


def parse_ranges(composite: Composite, written: Sequence[str]) -> list[VariedRange]:
    """Return what was typed; each fault says what is wrong with it."""
    from hocket.analysis.bond_energy import balanced_leaves

    if len(written) > 2:
        raise ScenarioError(f"{len(written)} things vary", OPTION, "one, or two for a map")
    for path in balanced_leaves(composite)[:1]:
        what = f"`{path}` has no linear model: its bonds are balanced, by a law that is not linear"
        hint = "`hocket check` without --vary, which tries them; `hocket sweep` runs it for each value"
        raise ScenarioError(what, OPTION, "bonds without `balance`", hint)
    found = [_parse_range(composite, text) for text in written]
    if len(found) == 2 and found[0].name == found[1].name:
        raise ScenarioError(f"`{found[0].name}` varies twice", OPTION, "two different names")
    return found


def _parse_range(composite: Composite, text: str) -> VariedRange:
    from hocket.analysis.stability_map import is_step

    if "=" not in text:
        raise ScenarioError(f"`{text}` has no range", OPTION, "name=low:high, as k=1:100")
    name, values = split_assignment(text, OPTION)
    where = f"{OPTION} {text}"
    step = is_step(composite, name)
    expected = "low:high, as step=10ms:200ms" if step else "low:high, as k=1:100"
    parts = values.split(":")
    count = parts[2].strip() if len(parts) == 3 else ""
    if len(parts) not in (2, 3) or (count and not count.isdecimal()):
        raise ScenarioError(f"`{values}` is not a range", where, f"{expected}; of a map also low:high:points")
    if count and not 2 <= int(count) <= 1000:
        raise ScenarioError(f"{count} points make no map", where, "2 to 1000 points")
    try:
        low, high = (float(seconds(part.strip())) if step else float(part) for part in parts[:2])
    except ValueError as error:
        what = str(error) if step else f"`{values}` is not a range of numbers"
        raise ScenarioError(what, where, expected) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        same = "begins where it ends" if low == high else "has its lower end last, or no end"
        raise ScenarioError(f"the range {values} of `{name}` {same}", where, "the lower value first")
    if step and low <= 0.0:
        raise ScenarioError("a step must be above zero", where, expected)
    _check_varied_name(composite, name, low, where)
    return VariedRange(name, low, high, int(count) if count else None)


def _check_varied_name(composite: Composite, name: str, value: float, where: str) -> None:
    """Refuse what cannot vary; near misses of steps and filters are offered."""
    from hocket.analysis.stability_map import variable_names, with_values

    try:
        with_values(composite, {name: value}, where)
    except ScenarioError as error:
        models = [path for path, _ in leaves(composite)]
        if len(models) > 1 and not any(name.startswith(f"{path}.") for path in models):
            expected = "a step, or a parameter of a model"
            raise ScenarioError(
                f"there is no `{name}`",
                where,
                expected,
                suggest_nearest(name, [*variable_names(composite), *models]),
            ) from None
        raise error from None


def map_stability(
    experiment: Experiment, over: Sequence[VariedRange], quiet: bool
) -> Intervals | StabilityMap:
    """Return the intervals of one parameter, or the map over two."""
    from hocket.analysis.stability_intervals import stable_intervals
    from hocket.analysis.stability_map import VariedRadius, stability_map

    rho = VariedRadius(experiment.composite, [each.name for each in over], experiment.start, OPTION)
    with count_progress(experiment.name or "check", "values", quiet) as told:
        if len(over) == 1:
            (only,) = over
            return stable_intervals(rho, only.low, only.high, only.logarithmic, only.name, told=told)
        x, y = over
        scales = x.logarithmic, y.logarithmic
        return stability_map(rho, x.points(MAP_COLUMNS), y.points(MAP_ROWS), (x.name, y.name), scales, told)


ROWS = 8
"""Of each table, unless all are asked for."""


def check(
    files: runs.FilesOrRun,
    stop: options.Stop = None,
    algorithm: options.Algorithm = None,
    extrapolation: options.Extrapolation = None,
    connect: options.Connect = None,
    assign: options.Set = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the eigenvalues and participation factors.")
    ] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything; -: print it instead.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", metavar="", help="All rows of the tables.")] = False,
    robust: Annotated[
        bool | None,
        typer.Option(
            "--robust/--no-robust",
            metavar="",
            help="Compute other macro steps and stability radii, however long it takes, or never.",
            show_default=False,
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH",
            help="Only find where it is stable: step=10ms:200ms, plant.k=1:100; given twice: a map.",
        ),
    ] = None,
    quick: runs.Quick = False,
    again: runs.Again = False,
) -> None:
    """Before a run: is the coupling well posed and stable, and how large will the global error be?

    It is judged by the very plan that will be run: spectral radius, least-damped modes, predicted errors,
    stability radii, recommended changes. What is not linear is linearised at its start; black boxes are
    identified from pulse responses.

    With --vary: for which values of one parameter it is stable, or a map over two: `step`, the step of a
    level (axle.step), what --set sets, an entry of a matrix (plant.A[2,1]), the alpha of a filtered hold
    (plant.u.alpha).

    After a run, given its folder: the global error, estimated from two more runs with shorter steps; with
    --quick from connection defects and linear models.

    Exit codes: 0 the coupling may be run, 1 ill posed or unstable (a run: error too large, or the estimate
    not reliable), 2 bad scenario or command, 3 not judged.
    """
    if runs.is_run(files):
        others = {
            "--stop": stop,
            "--algorithm": algorithm,
            "--extrapolation": extrapolation,
            "--connect": connect,
            "--set": assign,
            "--vary": vary,
            "--robust": robust,
        }
        runs.check_run(files[0], quick, again, plot, as_json, everything, others)
        return
    runs.refuse_run_options(files, {"--quick": quick, "--again": again})
    experiment = with_algorithms(read_experiment(files, connect or ()), algorithm, extrapolation)
    composite = with_parameters(experiment.composite, parse_assignments(experiment, assign or ()), "--set")
    experiment = _with_stop(replace(experiment, composite=composite), stop)
    check_outputs(as_json, plot)
    printed = str(as_json) == "-"
    measures: Sequence[Measure]
    if vary:
        measures, code = [map_stability(experiment, parse_ranges(composite, vary), quiet=printed)], 0
    else:
        from hocket.analysis.coupling_check import check as checked

        with locate_faults(files, ["stop"] if stop else []):
            found = checked(experiment, robust=robust)
        measures, code = found.measures, found.outcome.exit_code
    if as_json:
        write_json(as_json, join_facts(measures))
    if not printed:
        print_measures(measures, None if everything else ROWS)
    drawn = draw_measures(measures, plot)
    if not printed:
        print_out(*(f"wrote {file}" for file in (*drawn, as_json) if file))
    if code:
        raise typer.Exit(code)


def _with_stop(experiment: Experiment, typed: str | None) -> Experiment:
    """Return the experiment with the end that was typed."""
    try:
        end = experiment.stop if typed is None else seconds(typed)
    except ValueError as error:
        raise ScenarioError(str(error), "--stop") from None
    if end is not None and end <= experiment.start:
        when = f"the run stops at {format_duration(end)} and starts at {format_duration(experiment.start)}"
        raise ScenarioError(when, "--stop")
    return replace(experiment, stop=end)
