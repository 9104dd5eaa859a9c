"""`hocket.tune`: the best coupling of a system, found by what couplings are worth before they are run.

In:  a Composite, what may be chosen, what counts
Out: a TuningResult: everything that was judged, the Pareto front, and the coupling to choose
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.execution.notebook_progress import notebook_progress
from hocket.files.experiments import ExperimentLike, as_experiment, check_times
from hocket.model.arguments import (
    expect,
    expect_call,
    expect_count,
    expect_folder,
    is_one_of,
    is_whole,
)
from hocket.model.clock import Duration
from hocket.model.composite import Composite
from hocket.model.scenario import Connections
from hocket.planning.planner import plan_tree
from hocket.search.tune.evaluation_pool import Journal, Workers, search_identity
from hocket.search.tune.genetic import FEW, FEWER, all_points, genetic_search
from hocket.search.tune.objectives import (
    MEASURES,
    choose_objectives,
    rotations_equivalent,
    step_seconds,
    work_now,
)
from hocket.search.tune.order_search import has_numbered_orders, search_orders
from hocket.search.tune.point_judge import Numbers, PointJudge
from hocket.search.tune.space import Point, Space, apply_choices, default_space, near_now, parse_space
from hocket.search.tune.tuning_result import TuningResult

How: TypeAlias = Literal["auto", "all", "genetic"]
Told: TypeAlias = Callable[[float, float], None]
"""Called with how many points were judged, and of how many."""
Early: TypeAlias = Callable[[TuningResult], None]
"""Called with what was judged so far."""

BUDGET = 2000
"""Points that the genetic search judges."""
EARLY = 100
"""Points after which an objective without a single number is given up."""


def tune(
    what: ExperimentLike,
    over: Mapping[str, str] | None = None,
    goals: Sequence[str] | None = None,
    *,
    connections: Connections = (),
    limits: Mapping[str, float] | None = None,
    stop: Duration | None = None,
    start: Duration | None = None,
    step: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    search: How = "auto",
    budget: int = BUDGET,
    seed: int = 1,
    workers: int | None = None,
    dask: str | None = None,
    folder: Path | str | None = None,
    progress: Told | None = None,
    early: Early | None = None,
) -> TuningResult:
    """Return the best couplings of a system: those that no other beats in all that counts.

    `over` says what may be chosen (see docs/tune.md; left out: steps, algorithms, orders, extrapolations and
    what is exchanged), `goals` what counts: "rho", "delta", "error", "error:*.x", "relative", "radius",
    "radius:one", "work", "exchanges", "steps", "time", "messages", "step", "measured", "seconds", or
    "file.py:function" of the composite (left out: the error of what is recorded and the work, of couplings
    that do not grow). `limits` bounds any of them. All points are judged if there are up to 20,000, or 2,000
    where a run is predicted; "genetic" judges `budget` of them, with a fixed seed. `folder` keeps what was
    judged: the same search goes on where it was stopped. `early` is called with the answer so far.
    `stop` is a time, as that of `run`: a run is judged from `start` to it.
    """
    if not is_one_of(search, get_args(How)):
        hint = suggest_nearest(str(search), get_args(How))
        raise ScenarioError(f"there is no search `{search}`", "search", "", hint)
    goals = (goals,) if isinstance(goals, str) else goals
    _check_tune_arguments(over, goals, limits)
    expect(is_whole(budget, 1), "budget", budget, "how many couplings to judge, one or more")
    expect(is_whole(seed), "seed", seed, "a whole number from 0 on")
    expect_count("workers", workers)
    expect(dask is None or isinstance(dask, str), "dask", dask, 'an address such as "tcp://host:8786"')
    expect_folder(folder)
    expect_call("progress", progress, "two numbers: done, of all")
    progress = notebook_progress("couplings") if progress is None else progress
    expect_call("early", early, "the answer so far")
    experiment = as_experiment(
        what, connections, start=start, stop=stop, step=step, parameters=parameters, done="tuned"
    )
    composite, begins, ends = experiment.composite, experiment.start, experiment.stop
    _ = plan_tree(composite)  # raises with all faults of the scenario
    check_times(experiment)
    span = None if ends is None else ends - begins
    count, wanted = choose_objectives(composite, goals, limits, span, begins)
    chosen = _space(
        composite, over or default_space(composite, span), not rotations_equivalent(composite, wanted, over)
    )
    judging = PointJudge(composite, chosen, wanted, span, begins, work_now(composite))
    everything = _judges_all(search, judging)

    def times() -> dict[str, float] | None:
        return step_seconds(composite, begins) if any(each.name == "time" for each in wanted) else None

    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    file = None if folder is None else Path(folder) / "judged.jsonl"
    with Journal(file, search_identity(judging), times) as journal:
        judging = replace(judging, times=journal.facts)
        now = judging.of_now()
        points = all_points(chosen) if everything else []
        total = len(points) or min(budget, chosen.size)

        def answer(some: Sequence[Point], numbers: Sequence[Numbers]) -> TuningResult:
            return TuningResult(
                composite, chosen, wanted, count, tuple(some), tuple(numbers), now, span, begins
            )

        def record_numbers(some: Sequence[Point], numbers: Sequence[Numbers]) -> None:
            journal.add(some, numbers)
            if len(journal.known) <= EARLY + len(some) and len(journal.known) > EARLY:
                _check(judging, list(journal.known), journal)
            if progress:
                progress(min(len(journal.known), total), total)
            if early:
                early(answer(tuple(journal.known), tuple(journal.known.values())))

        missing = len(journal.missing(points)) if everything else total
        with Workers(judging, workers, dask, missing) as crew:

            def ask(some: Sequence[Point]) -> list[Numbers]:
                crew.judge(journal.missing(some), record_numbers)
                return [journal.known[point] for point in some]

            if everything:
                ask(points)
            else:
                begin = near_now(composite, chosen)
                search_points = search_orders if has_numbered_orders(chosen) else genetic_search
                points = search_points(chosen, wanted, count, ask, budget, seed, begin)
        _check(judging, points, journal)
        if progress:
            progress(len(points), len(points))
        return answer(points, [journal.known[point] for point in points])


def _check_tune_arguments(over: object, goals: object, limits: object) -> None:
    """Refuse what is neither a space nor objectives."""
    texts = isinstance(over, Mapping) and all(isinstance(each, str) for pair in over.items() for each in pair)
    expect(over is None or texts, "over", over, 'texts by name: {"step": "1 ms:10 ms:20:log"}')
    names = isinstance(goals, Sequence) and all(isinstance(each, str) for each in goals)
    expect(goals is None or names, "goals", goals, 'a list of names: ["error", "work"]')
    fits = isinstance(limits, Mapping) and all(isinstance(name, str) for name in limits)
    expect(limits is None or fits, "limits", limits, 'finite numbers by name: {"rho": 1.0}')


def _space(composite: Composite, over: Mapping[str, str], rotations: bool) -> Space:
    """Return the space; raises ScenarioError for a name that no value suits."""
    chosen = parse_space(composite, over, rotations)
    faults: list[Fault] = []
    for variable in chosen.variables:
        refused = []
        for value in variable.values:
            try:
                apply_choices(composite, {variable.name: value})
                break
            except ScenarioError as error:
                refused.append(error)
        if len(refused) == len(variable):
            faults += refused[0].faults
    if faults:
        raise ScenarioError(faults)
    return chosen


def _judges_all(search: How, judging: PointJudge) -> bool:
    kinds = [each.name.partition(":")[0] for each in judging.wanted]
    long = any(kind not in MEASURES or MEASURES[kind].long for kind in kinds)
    return search == "all" or (search == "auto" and judging.space.size <= (FEWER if long else FEW))


def _check(judging: PointJudge, points: Sequence[Point], journal: Journal) -> None:
    """Refuse an objective that has no number at any point, with the reason of the first."""
    for number, objective in enumerate(judging.wanted):
        if points and all(math.isnan(journal.known[point][number]) for point in points):
            why = judging.failure(objective, points[0]).replace("\n", "\n  ")
            what = f"`{objective.name}` has no number for any of {len(points):,} couplings; the first: {why}"
            hint = "another objective: `measured` compares runs, and needs no linear models"
            raise ScenarioError(what, "objectives", "", hint)
