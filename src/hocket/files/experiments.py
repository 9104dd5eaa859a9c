"""Anything that can be run, checked, tuned, nested or compiled is an experiment.

In:  an Experiment, a Composite, FMUs with what connects them, or paths of files
Out: an Experiment
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hocket.errors import ScenarioError
from hocket.files.formats import read
from hocket.model.arguments import expect
from hocket.model.clock import Duration, format_duration
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.scenario import Connections
from hocket.planning.parameters import with_parameters
from hocket.simulators.recipes import parse_seconds

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

ExperimentLike: TypeAlias = (
    "Experiment | Composite | Fmu | Path | str | Mapping[str, Fmu] | Sequence[Fmu | Path | str]"
)
"""A level, what a file holds, an FMU, several FMUs (by name or in a list), or the path of a file."""

EXPECTED = "a Composite, an Fmu, several of them with connections, or the path of a scenario file"


def as_experiment(
    what: ExperimentLike,
    connections: Connections = (),
    *,
    start: Duration | None = None,
    stop: Duration | None = None,
    step: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    done: str = "run",
) -> Experiment:
    """Return what is meant as an experiment; `connections` couple several FMUs.

    `start` and `stop` are in place of its own, `step` in place of that of the outermost level and of those
    that have none of their own; `parameters` are set by path: {"spring.k": 20}. `done` says what is done with
    it, for the message when that is impossible: "checked".
    """
    experiment = _read_experiment(what, connections, done)
    times = {"start": start, "stop": stop}
    given: Any = {key: parse_seconds(time, key) for key, time in times.items() if time is not None}
    experiment = replace(experiment, **given)
    if step is not None:
        experiment = replace(experiment, composite=experiment.composite.with_changes(step=step))
    return experiment if parameters is None else vary_experiment(experiment, parameters)


def vary_experiment(
    experiment: Experiment, parameters: Mapping[str, Any], where: str = "parameters"
) -> Experiment:
    """Return an experiment with other parameters."""
    fits = isinstance(parameters, Mapping) and all(isinstance(path, str) for path in parameters)
    expect(fits, where, parameters, 'values by path: {"spring.k": 20}')
    return replace(experiment, composite=with_parameters(experiment.composite, parameters, where))


def check_times(experiment: Experiment) -> None:
    """Refuse a run that stops before it starts, or there."""
    if experiment.stop is not None and experiment.stop <= experiment.start:
        end, begin = format_duration(experiment.stop), format_duration(experiment.start)
        raise ScenarioError(f"the run stops at {end} and starts at {begin}", "stop")


def _read_experiment(what: ExperimentLike, connections: Connections, done: str) -> Experiment:
    match what:
        case Experiment():
            experiment = what
        case Composite():
            experiment = Experiment(what)
        case str() | Path():
            experiment = read(what)
        case _:
            return _couple_fmus(what, connections, done)
    if not isinstance(connections, Sized) or len(connections):
        hint = "write them into the scenario, or give FMUs"
        raise ScenarioError(f"there is nothing to connect in {what!r:.60}", "connections", "FMUs", hint)
    return experiment


def _couple_fmus(
    what: Fmu | Mapping[str, Fmu] | Sequence[Fmu | Path | str], connections: Connections, done: str
) -> Experiment:
    """Return FMUs as an experiment; those of a list are named after their files."""
    from hocket.files.fmus import experiment_from_fmus, model_name  # here: most runs have no FMU
    from hocket.simulators.fmu.recipe import Fmu

    pairs: list[tuple[str, Any]]
    match what:
        case Fmu():
            pairs = [("", what)]
        case Mapping():
            pairs = list(what.items())
        case Sequence():
            pairs = [("", each) for each in what]
        case _:
            raise ScenarioError(f"{what!r:.60} cannot be {done}", expected=EXPECTED)
    found: dict[str, Fmu] = {}
    for name, each in pairs:
        path = isinstance(each, (str, Path)) and Path(each).suffix.lower() == ".fmu"
        fmu = Fmu(Path(each)) if path else each
        if not isinstance(fmu, Fmu):
            raise ScenarioError(f"{each!r:.60} cannot be {done}", expected="FMUs, or paths of FMUs")
        found[name or model_name(fmu.file, found)] = fmu
    if not found:
        raise ScenarioError(f"nothing was given to be {done}", expected=EXPECTED)
    return experiment_from_fmus(found, connections)
