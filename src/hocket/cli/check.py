"""hocket check: is it stable, how large will the global error be, and what to change.

In:  a scenario file, or FMUs
Out: the verdict, then the table of each measure; a picture, or JSON
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from hocket.analysis.measure import Measure, Outcome
from hocket.cli import options
from hocket.cli import run_estimate as runs
from hocket.cli.command_arguments import isolate_few, locate_faults, read_changed, split_assignment
from hocket.cli.options import option
from hocket.cli.output_files import check_outputs
from hocket.cli.terminal import count_progress, stage_progress
from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.clock import seconds
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.planning.parameters import leaves

if TYPE_CHECKING:
    from hocket.analysis.stability_intervals import Intervals
    from hocket.analysis.stability_map import StabilityMap


OPTION = "--vary"
MAP_COLUMNS, MAP_ROWS = 41, 31
"""Points of a map, unless they are given."""
PILOT_SECONDS = 2.0
"""As `hocket.check` has it, without importing what it needs."""
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

    name, values = split_assignment(text, OPTION, "name=low:high, as k=1:100")
    where = f"{OPTION} {text}"
    step = is_step(composite, name)
    expected = "low:high, as step=10ms:200ms" if step else "low:high, as k=1:100"
    parts = values.split(":")
    count = parts[2].strip() if len(parts) == 3 else ""
    if len(parts) not in (2, 3) or (count and not count.isdecimal()):
        raise ScenarioError(f"`{values}` is not a range", where, f"{expected}; of a map also low:high:points")
    if count and not 2 <= int(count) <= 1000:
        raise ScenarioError(f"a map of {count} points", where, "2 to 1000 points")
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
            hint = suggest_nearest(name, [*variable_names(composite), *models])
            expected = "a step, or a parameter of a model"
            raise ScenarioError(f"there is no `{name}`", where, expected, hint) from None
        raise error from None


def parse_share(text: str, name: str) -> float:
    """Return a part of a whole, written as 0.5 or as 50 %."""
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        value = float(number) / (100.0 if percent else 1.0)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise ScenarioError(f"`{text}` is not a part of the peak", name, "50% or 0.5")
    return value


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
            return stable_intervals(rho, only.low, only.high, only.logarithmic, only.name, told)
        x, y = over
        scales = x.logarithmic, y.logarithmic
        return stability_map(rho, x.points(MAP_COLUMNS), y.points(MAP_ROWS), (x.name, y.name), scales, told)


def check(
    files: runs.FilesOrRun,
    stop: options.Stop = None,
    changes: options.Changes = options.NO_CHANGES,
    plot: Annotated[Path | None, option("PNG", "Draw the eigenvalues and participation factors.")] = None,
    as_json: options.Json = None,
    everything: options.AllRows = False,
    robust: Annotated[
        bool | None,
        option(
            "",
            "Compute other macro steps and stability radii, however long it takes, or never.",
            "--robust/--no-robust",
            show_default=False,
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        option(
            "NAME=LOW:HIGH",
            "Only find where it is stable: step=10ms:200ms, plant.k=1:100; given twice: a map.",
        ),
    ] = None,
    pilot: Annotated[
        bool,
        option(
            "",
            "Run what is not linear in memory, with shorter steps too, or judge it at the start only.",
            "--pilot/--no-pilot",
            show_default=False,
        ),
    ] = True,
    pilot_seconds: Annotated[
        float, option("SECONDS", "Of real time that pilot runs may take together.")
    ] = PILOT_SECONDS,
    max_error: Annotated[
        str | None, option("SHARE", "A predicted error above this part of the peak is unsound: 50%, 0.5.")
    ] = None,
    deadline: Annotated[
        float | None, option("FACTOR", "Is every step computed in time? 1 keeps pace with the clock.")
    ] = None,
    quick: runs.Quick = False,
    again: runs.Again = False,
    budget: runs.Budget = False,
) -> None:
    """Judge a coupling before a run: well posed, stable, how large is the global error?

    It is judged by the very plan that will be run: spectral radius, least-damped modes, predicted errors,
    stability radii, recommended changes. What is not linear is linearised at its start; black boxes are
    identified from pulse responses. Where these may be wrong later, pilot runs decide: the plan itself, in
    memory, with its steps and with shorter ones.

    With --vary: for which values of one parameter it is stable, or a map over two: `step`, the step of a
    level (axle.step), what --set sets, an entry of a matrix (plant.A[2,1]), the alpha of a filtered hold
    (plant.u.alpha).

    After a run, given its folder: the global error, estimated from two more runs with shorter steps; with
    --quick from connection defects and linear models. With --budget: which level's coupling, or which
    simulator's solver, is to blame for it.

    Exit codes: 0 sound, 1 unsound: ill posed, unstable, or the error too large (a run: or the estimate
    not reliable), 2 bad scenario or command, 3 not judged.

    Examples:
        hocket check car.toml --stop 10 --algorithm gauss-seidel
        hocket check a.fmu b.fmu --connect b.u=a.y --json -
        hocket check car.toml --deadline 1
        hocket check runs/car-001 --plot wrong.png
    """
    if runs.is_run(files):
        others = {"--stop": stop, **changes.typed_options(), "--vary": vary, "--robust": robust}
        others |= {"--no-pilot": not pilot, "--max-error": max_error}
        others |= {"--deadline": deadline is not None}
        others |= {"--pilot-seconds": pilot_seconds != PILOT_SECONDS}
        runs.check_run(files[0], quick, again, plot, as_json, everything, others, budget)
        return
    runs.refuse_run_options(files, {"--quick": quick, "--again": again, "--budget": budget})
    experiment = isolate_few(read_changed(files, changes, stop))
    check_outputs(as_json, plot)
    measures: Sequence[Measure]
    facts: dict[str, object] = {}
    if vary:
        over = parse_ranges(experiment.composite, vary)
        measures, outcome = [map_stability(experiment, over, quiet=str(as_json) == "-")], Outcome.GOOD
    else:
        from hocket.analysis.coupling_check import check as checked
        from hocket.analysis.trajectory import MAX_ERROR

        with locate_faults(files, ["stop"] if stop else []):
            limit = MAX_ERROR if max_error is None else parse_share(max_error, "--max-error")
            with stage_progress(experiment.name or "check", quiet=str(as_json) == "-") as told:
                found = checked(
                    experiment,
                    robust=robust,
                    pilot=pilot,
                    pilot_seconds=pilot_seconds,
                    max_error=limit,
                    deadline=deadline,
                    progress=told,
                )
        measures, outcome, facts = found.measures, found.outcome, {"judgement": str(found.judgement)}
    runs.present_measures(measures, plot, as_json, everything, outcome, facts)
