"""hocket fit: parameters for which a co-simulation follows measurements, with confidence intervals.

In:  files, a table of measurements, parameters with bounds: `spring.k=10:30`
Out: values, intervals, doubts; a picture, a scenario with the values, or JSON
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hocket.cli import options
from hocket.cli import run_estimate as runs
from hocket.cli.command_arguments import locate_faults, parse_assignments, read_changed, split_assignment
from hocket.cli.options import flag, option
from hocket.cli.output_files import check_outputs, check_scenario_target, print_written
from hocket.cli.terminal import count_progress
from hocket.errors import ScenarioError
from hocket.files.experiments import vary_experiment

PARAMETER = "--parameter"
_BOUNDS = "NAME=LOW:HIGH, NAME=LOW:START:HIGH, or NAME=START"


def fit(
    files: options.Files,
    data: Annotated[Path, option("CSV", "What was measured: a column t, in seconds, one for each port.")],
    parameter: Annotated[
        list[str], option("NAME=RANGE", "k=10:30, k=10:15:30 with a start value, or k=15; may be repeated.")
    ],
    deviation: Annotated[
        list[str] | None,
        option("PORT=VALUE", "The standard deviation of what was measured; left out: from what is left."),
    ] = None,
    starts: Annotated[
        int, option("N", "How many searches begin, from elsewhere within the bounds.", min=1)
    ] = 1,
    seed: Annotated[int, option("N", "Of these starts.", min=0)] = 0,
    confidence: Annotated[float, option("SHARE", "That of the intervals.")] = 0.95,
    stop: options.Stop = None,
    changes: options.Changes = options.NO_CHANGES,
    out: Annotated[Path | None, option("TOML", "Write the scenario with the values that were found.")] = None,
    plot: Annotated[Path | None, option("PNG", "Draw what was measured, and what the values give.")] = None,
    as_json: options.Json = None,
    everything: options.AllRows = False,
    quiet: Annotated[bool, flag("--quiet", "Show no progress.")] = False,
) -> None:
    """Find parameters for which a co-simulation follows measurements: least squares, with intervals.

    Ports may be measured at different times: empty cells are left out. Intervals hold for errors that are
    independent and small; what is at a bound, or cannot be told from these measurements, is said.

    Exit codes: 0 good, 1 it has not converged, 2 bad scenario or command, 3 not judged: a value cannot be
    told from these measurements.

    Examples:
        hocket fit car.toml --data measured.csv --parameter spring.k=1e4:3e4 --parameter damper.d=100:5000
        hocket fit loop.toml --data step.csv --parameter pid.K=0.5:2:8 --starts 5 --out fitted.toml
    """
    from hocket.files import toml
    from hocket.search.fit import fit as fitted

    ranges = {
        name: _parse_range(name, text)
        for name, text in (split_assignment(each, PARAMETER, _BOUNDS) for each in parameter)
    }
    known = dict(
        split_assignment(each, "--deviation", "port=value, as tank.y=0.02") for each in deviation or ()
    )
    deviations = {port: _parse_number(text, f"--deviation {port}") for port, text in known.items()}
    experiment = read_changed(files, changes, stop)
    experiment = vary_experiment(experiment, parse_assignments(experiment, changes.assign or ()), "--set")
    check_outputs(as_json, plot)
    if out is not None:
        check_scenario_target(out, [Path(each) for each in files])
    shy = quiet or str(as_json) == "-"
    with (
        locate_faults(files, ["stop"] if stop else []),
        count_progress(experiment.name or "fit", "runs", shy) as progress,
    ):
        found = fitted(
            experiment,
            data,
            ranges,
            stop,
            starts=starts,
            seed=seed,
            deviations=deviations or None,
            confidence=confidence,
            progress=None if progress is None else lambda done, _: progress(done, done),
        )
    if out is not None:
        toml.write(found.experiment, out)
        if str(as_json) != "-":
            print_written(out)
    runs.present_measures([found], plot, as_json, everything, found.outcome, verb="fit")


def _parse_range(name: str, text: str) -> tuple[float, ...]:
    """Return the numbers of `10:30`, `10:15:30` or `15`."""
    numbers = tuple(_parse_number(part, f"{PARAMETER} {name}") for part in text.split(":"))
    if len(numbers) > 3:
        raise ScenarioError(f"`{text}` has {len(numbers)} numbers", f"{PARAMETER} {name}", _BOUNDS)
    return numbers


def _parse_number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(f"`{text.strip()}` is not a number", where, "a number, as 1.5e4") from None
