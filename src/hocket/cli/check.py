"""hocket check: is it stable, how wrong will it be, and what to change.

In:  a scenario file, or FMUs
Out: a verdict in plain words, then the tables behind it; a picture, or JSON
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import RenderableType
from rich.text import Text

from hocket.cli import check as maps
from hocket.cli import options
from hocket.cli import run_estimate as runs
from hocket.cli.command_arguments import (
    locate_faults,
    parse_assignments,
    read_study,
    split_assignment,
    with_algorithms,
)
from hocket.cli.output_files import check_file, check_picture, write_json
from hocket.cli.terminal import count_progress, print_out, titled_table
from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.clock import format_duration, seconds
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.planning.parameters import leaves, with_parameters

if TYPE_CHECKING:
    from hocket.analysis.bond_energy import BondCheck
    from hocket.analysis.coupling_check import Check
    from hocket.analysis.stability_intervals import Intervals
    from hocket.analysis.stability_map import StabilityMap


OPTION = "--vary"
MAP_COLUMNS, MAP_ROWS = 41, 31
"""Points of a map, unless they are given."""
WIDE = 100.0
"""From this ratio of its ends on, a range is looked at on a logarithmic scale."""


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
        """Return the values to look at."""
        places = np.geomspace if self.logarithmic else np.linspace
        return [float(value) for value in places(self.low, self.high, self.count or count)]


def parse_ranges(composite: Composite, written: Sequence[str]) -> list[VariedRange]:
    """Return what was typed; each fault says what is wrong with it."""
    from hocket.analysis.bond_energy import balanced_leaves

    if len(written) > 2:
        raise ScenarioError(f"{len(written)} things vary", OPTION, "one, or two for a map")
    for path in balanced_leaves(composite)[:1]:
        what = f"`{path}` cannot be judged: its bonds are balanced, by a law that is not linear"
        hint = "`hocket check` without --vary, which tries them; `hocket sweep` runs it for each value"
        raise ScenarioError(what, OPTION, "bonds without `balance`", hint)
    found = [_parse_range(composite, text) for text in written]
    if len(found) == 2 and found[0].name == found[1].name:
        raise ScenarioError(f"`{found[0].name}` varies twice", OPTION, "two different names")
    return found


def _parse_range(composite: Composite, text: str) -> VariedRange:
    from hocket.analysis.stability_map import is_step

    if "=" not in text:
        raise ScenarioError(f"`{text}` says not from where to where", OPTION, "name=low:high, as k=1:100")
    name, values = split_assignment(text, OPTION)
    where = f"{OPTION} {text}"
    step = is_step(composite, name)
    expected = "low:high, as step=10ms:200ms" if step else "low:high, as k=1:100"
    parts = values.split(":")
    count = parts[2].strip() if len(parts) == 3 else ""
    if len(parts) not in (2, 3) or (count and not count.isdecimal()):
        raise ScenarioError(f"`{values}` is no range", where, f"{expected}; of a map also low:high:points")
    if count and not 2 <= int(count) <= 1000:
        raise ScenarioError(f"{count} points make no map", where, "2 to 1000 points")
    try:
        low, high = (float(seconds(part.strip())) if step else float(part) for part in parts[:2])
    except ValueError as error:
        what = str(error) if step else f"`{values}` is no range of numbers"
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


def map_stability(study: Experiment, over: Sequence[VariedRange], quiet: bool) -> Intervals | StabilityMap:
    """Return the intervals of one parameter, or the map over two."""
    from hocket.analysis.stability_intervals import intervals_below
    from hocket.analysis.stability_map import VariedRadius, map_radius

    rho = VariedRadius(study.composite, [each.name for each in over], study.start, OPTION)
    with count_progress(study.name or "check", "values", quiet) as told:
        if len(over) == 1:
            (only,) = over
            return intervals_below(rho, only.low, only.high, only.logarithmic, only.name, told=told)
        x, y = over
        scales = x.logarithmic, y.logarithmic
        return map_radius(rho, x.points(MAP_COLUMNS), y.points(MAP_ROWS), (x.name, y.name), scales, told)


def print_stability(found: Intervals | StabilityMap, picture: bool, most: int | None) -> None:
    """Print what was found."""
    from hocket.analysis.stability_map import StabilityMap

    if isinstance(found, StabilityMap):
        known = np.isfinite(found.rho)
        stable = int((found.rho[known] < 1.0).sum())
        print_out(f"stable at {stable:,} of {found.rho.size:,} points of the map")
        if (~known).any():
            print_out(f"not judged, or without a solution: {int((~known).sum()):,} points")
        if not picture:
            print_out(f"{OPTION} ... --plot map.png draws it, with the boundary; --json writes it")
        return
    if not found.intervals:
        print_out(f"stable for no `{found.name}` from {found.low:.4g} to {found.high:.4g}")
        return
    spans = "; ".join(f"{each.low:.6g} to {each.high:.6g}" for each in found.intervals)
    print_out(f"stable for `{found.name}` from {spans}")
    print_out(*titled_table("where it is stable", found.rows(), most))


def stability_facts(found: Intervals | StabilityMap) -> dict[str, Any]:
    """Return everything, for JSON."""
    from hocket.analysis.stability_map import StabilityMap

    if isinstance(found, StabilityMap):
        return {"names": found.names, "points": found.rows(), "boundary": found.boundary}
    looked = [
        {found.name: v, "rho": r} for v, r in zip(found.values.tolist(), found.rho.tolist(), strict=True)
    ]
    return {"names": [found.name], "intervals": found.rows(), "points": looked}


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
        Path | None, typer.Option(metavar="PNG", help="Draw the eigenvalues, and who takes part.")
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
            help="Judge other steps and changes of simulators, however long it takes, or never.",
            show_default=False,
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH",
            help="Where it is stable instead: step=10ms:200ms, plant.k=1:100; given twice: a map.",
        ),
    ] = None,
    quick: runs.Quick = False,
    again: runs.Again = False,
) -> None:
    """Say before the run whether the coupling is well posed and stable, and how wrong it will be.

    It is judged by the very plan that will be run. What is not linear is linearised where it starts; black
    boxes are stepped by small pulses. The exit code is 1 if the coupling is ill posed, unstable or cannot be
    judged.

    With --vary it says for which values of one parameter it is stable, with the ends of all intervals, or
    over two: `step`, the step of a level (axle.step), what --set sets, an entry of a matrix (plant.A[2,1]),
    or the alpha of a filtered hold (plant.u.alpha).

    Of the folder of a run it says how wrong that was, by two more runs with shorter steps; with --quick by
    the defects of its connections, and by linear models where they follow it.
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
    study = with_algorithms(read_study(files, connect or ()), algorithm, extrapolation)
    composite = with_parameters(study.composite, parse_assignments(study, assign or ()), "--set")
    study = _with_stop(replace(study, composite=composite), stop)
    if plot:
        check_picture(plot)
    if as_json and str(as_json) != "-":
        check_file(as_json)
    most = None if everything else ROWS
    printed = str(as_json) == "-"
    if vary:
        over = maps.parse_ranges(composite, vary)
        shown = maps.map_stability(study, over, quiet=printed)
        if as_json:
            write_json(as_json, maps.stability_facts(shown))
        if not printed:
            maps.print_stability(shown, picture=plot is not None, most=most)
        if plot:
            shown.plot(plot)
        _print_written(plot, as_json)
        return
    from hocket.analysis.coupling_check import check as checked

    with locate_faults(files, ["stop"] if stop else []):
        found = checked(study, robust=robust)
    if as_json:
        write_json(as_json, _check_facts(found))
    if not printed:
        first, *rest = found.verdict()
        print_out(
            Text(first, "bold" if found.good else "bold red"), *(_with_option_names(line) for line in rest)
        )
        print_out(*_check_tables(found, most))
    if plot and found.stability:
        found.stability.plot(plot)
    _print_written(plot, as_json)
    if not found.good:
        raise typer.Exit(1)


def _with_option_names(line: str) -> str:
    """Return a line with options as they are typed."""
    if line.startswith("not judged: other steps: ") and line.endswith(" only"):
        return f"{line}: `--vary step=LOW:HIGH` identifies it anew"
    return line.replace("`robust=True` judges it", "`--robust` judges it")


def _print_written(*files: Path | None) -> None:
    if "-" not in map(str, files):
        print_out(*(f"wrote {file}" for file in files if file))


def _with_stop(study: Experiment, typed: str | None) -> Experiment:
    """Return the study with the end that was typed."""
    try:
        end = study.stop if typed is None else seconds(typed)
    except ValueError as error:
        raise ScenarioError(str(error), "--stop") from None
    if end is not None and end <= study.start:
        when = f"the run stops at {format_duration(end)} and starts at {format_duration(study.start)}"
        raise ScenarioError(when, "--stop")
    return replace(study, stop=end)


def _check_tables(found: Check, most: int | None) -> Iterator[RenderableType]:
    if found.stability:
        yield from titled_table("what lasts longest", found.stability.rows(), most)
        alone = [{"level": path, "factor": rho} for path, rho in found.stability.levels]
        yield from titled_table("each level by itself, its inputs held", alone, most)
    if found.prediction:
        yield from titled_table("expected errors", found.prediction.rows(), most)
        yield ""
        yield f"order: {found.prediction.order.words}"
    yield from titled_table("iterations", [each.row() for each in found.iterations], most)
    if found.largest:
        yield from titled_table("steps for which it is stable", found.largest.rows(), most)
    yield from titled_table("how much one simulator may change", _radius_rows(found), most)
    if found.consistency:
        yield ""
        delta = f"delta {found.consistency.delta:.4g} after {found.consistency.k} steps"
        yield f"relative consistency: {delta}, in the units of the states: {found.consistency.note}"
    tried = [
        {
            "change": change.words,
            "factor": change.rho,
            "largest error": change.error,
            "steps": f"{change.steps:g} times",
        }
        for change in found.advice
    ]
    yield from titled_table("what would change it", tried, most)
    if found.bonds:
        yield from titled_table("energy that bonds gain in a trial run", _bond_gain_rows(found.bonds), most)
        yield from titled_table("what the bonds would do", _remedy_rows(found.bonds), most)
        yield from found.bonds.failures
    yield from titled_table("inputs that are extrapolated", found.posedness.rows(), most)
    for loop in found.posedness.loops:
        how = "solved in every step" if found.posedness.solved else "broken by a delay of one step"
        how = "without a single solution" if found.ill_posed else how
        yield f"algebraic loop: {' -> '.join(loop)}, {how}"
    models = [
        {
            "simulator": leaf.path,
            "linear model": leaf.how,
            "fit": leaf.fit,
            "why": "; ".join(filter(None, (leaf.refused, *leaf.notes))),
        }
        for leaf in found.leaves
        if leaf.how != "exact"
    ]
    yield from titled_table("what is not linear", models, most)


def _bond_gain_rows(found: BondCheck) -> list[dict[str, object]]:
    return [
        {
            "bond": each.bond,
            f"gained in {each.seconds:g} s": f"{each.gained:.3g} {each.unit}",
            "in a step": f"{each.per_step:.3g} {each.unit}",
            "of what flows": f"{100.0 * each.share:.3g}%",
        }
        for each in found.gains
    ]


def _remedy_rows(found: BondCheck) -> list[dict[str, object]]:
    shares = ("gained or lost", "stored energy off by")
    return [
        row
        | {name: _format_share(row[name]) for name in shares if row.get(name) is not None}
        | {"steps": f"{row['steps']:.3g} times"}
        for row in found.rows()
    ]


def _format_share(share: Any) -> str:
    return "it fails" if math.isinf(share) else f"{100.0 * share:.3g}%"


def _radius_rows(found: Check) -> list[dict[str, object]]:
    return [
        {
            "simulator": each.what,
            "at least": f"{100.0 * each.at_least:.3g}%",
            "at most": f"{100.0 * each.at_most:.3g}%",
            "grows at [Hz]": each.frequency,
            "note": each.note,
        }
        for each in found.robustness
    ]


def _check_facts(found: Check) -> dict[str, Any]:
    zero = found.zero
    return {
        "good": found.good,
        "verdict": found.verdict(),
        "rho": found.stability.rho if found.stability else None,
        "rho of the exact system": found.own,
        "stable": found.stability.stable if found.stability else None,
        "zero-stable": zero.stable if zero else None,
        "modes": found.stability.rows() if found.stability else [],
        "levels": dict(found.stability.levels) if found.stability else {},
        "errors": found.prediction.rows() if found.prediction else [],
        "order": found.prediction.order.measured if found.prediction else None,
        "iterations": [each.row() for each in found.iterations],
        "stable steps": found.largest.rows() if found.largest else None,
        "largest stable step": found.largest.largest if found.largest else None,
        "robustness": [row for each in found.robustness for row in each.rows()],
        "delta": found.consistency.delta if found.consistency else None,
        "changes": [vars(change) for change in found.advice],
        "bonds": [vars(each) | {"share": each.share, "per step": each.per_step} for each in found.bonds.gains]
        if found.bonds
        else [],
        "remedies": found.bonds.rows() if found.bonds else [],
        "remedies that fail": found.bonds.failures if found.bonds else [],
        "loops": found.posedness.loops,
        "extrapolated": found.posedness.rows(),
        "models": [vars(leaf) for leaf in found.leaves],
        "not judged": found.unjudged,
    }
