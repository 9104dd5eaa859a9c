"""`hocket.tune`: the best coupling of a system, found by what couplings are worth before they are run.

In:  a Composite, what may be chosen, what counts
Out: a Tuned: everything that was judged, the Pareto front, and the coupling to choose
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from hocket.clock import Duration, seconds
from hocket.engine.composite import Composite
from hocket.errors import Fault, ScenarioError, nearest
from hocket.tuning.aims import aims, turned, work_now
from hocket.tuning.defaults import default_space
from hocket.tuning.journal import Journal, about
from hocket.tuning.judge import Judging, Numbers
from hocket.tuning.measured import step_seconds
from hocket.tuning.objectives import LONG
from hocket.tuning.searching import FEW, FEWER, all_points, genetic
from hocket.tuning.settings import applied
from hocket.tuning.space import Point, Space, space
from hocket.tuning.starting import near_now
from hocket.tuning.tuned import Tuned
from hocket.tuning.workers import Workers

How: TypeAlias = Literal["auto", "all", "genetic"]
Told: TypeAlias = Callable[[float, float], None]
"""Called with how many points were judged, and of how many."""
Early: TypeAlias = Callable[[Tuned], None]
"""Called with what was judged so far."""

BUDGET = 2000
"""Points that the genetic search judges."""
EARLY = 100
"""Points after which an objective without a single number is given up."""


def tune(
    composite: Composite,
    over: Mapping[str, str] | None = None,
    goals: Sequence[str] | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    stop: Duration | None = None,
    start: Duration = 0,
    search: How = "auto",
    budget: int = BUDGET,
    seed: int = 1,
    workers: int | None = None,
    dask: str | None = None,
    folder: Path | str | None = None,
    progress: Told | None = None,
    early: Early | None = None,
) -> Tuned:
    """Return the best couplings of a system: those that no other beats in all that counts.

    `over` says what may be chosen (see docs/tune.md; left out: steps, algorithms, orders, extrapolations and
    what is exchanged), `goals` what counts: "rho", "delta", "error", "error:*.x", "relative", "radius",
    "radius:one", "work", "exchanges", "steps", "time", "messages", "step", "measured", "seconds", or
    "file.py:function" of the composite (left out: the error of what is recorded and the work, of couplings
    that do not grow). `limits` bounds any of them. All points are judged if there are up to 20,000, or 2,000
    where a run is predicted; "genetic" judges `budget` of them, with a fixed seed. `folder` keeps what was
    judged: the same search goes on where it was stopped. `early` is called with the answer so far.
    """
    if search not in get_args(How):
        hint = nearest(str(search), get_args(How))
        raise ScenarioError(f"there is no search `{search}`", "search", "", hint)
    if budget < 1:
        raise ScenarioError(f"{budget} couplings are none to judge", "budget", "one or more")
    _ = composite.blueprint  # raises with all faults of the scenario
    ends, begins = None if stop is None else seconds(stop), seconds(start)
    count, wanted = aims(composite, goals, limits, ends, begins)
    chosen = _space(composite, over or default_space(composite, ends), not turned(composite, wanted, over))
    judging = Judging(composite, chosen, wanted, ends, begins, work_now(composite))
    everything = _all(search, judging)

    def times() -> dict[str, float] | None:
        return step_seconds(composite, begins) if any(each.name == "time" for each in wanted) else None

    with Journal(_file(folder), about(judging), times) as journal:
        judging = judging.changed(times=journal.facts)
        now = judging.of_now()
        points = all_points(chosen) if everything else []
        total = len(points) or min(budget, chosen.size)

        def answer(some: Sequence[Point], numbers: Sequence[Numbers]) -> Tuned:
            return Tuned(composite, chosen, wanted, count, tuple(some), tuple(numbers), now, ends, begins)

        def done(some: Sequence[Point], numbers: Sequence[Numbers]) -> None:
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
                crew.judge(journal.missing(some), done)
                return [journal.known[point] for point in some]

            if everything:
                ask(points)
            else:
                begin = near_now(composite, chosen)
                points = genetic(chosen, wanted, count, ask, budget, seed, begin)
        _check(judging, points, journal)
        if progress:
            progress(len(points), len(points))
        return answer(points, [journal.known[point] for point in points])


def _file(folder: Path | str | None) -> Path | None:
    if folder is None:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) / "judged.jsonl"


def _space(composite: Composite, over: Mapping[str, str], rotations: bool) -> Space:
    """Return the space; raises ScenarioError for a name that no value suits."""
    chosen = space(composite, over, rotations)
    faults: list[Fault] = []
    for variable in chosen.variables:
        refused = []
        for value in variable.values:
            try:
                applied(composite, {variable.name: value})
                break
            except ScenarioError as error:
                refused.append(error)
        if len(refused) == len(variable):
            faults += refused[0].faults
    if faults:
        raise ScenarioError(faults)
    return chosen


def _all(search: How, judging: Judging) -> bool:
    long = any(each.name.partition(":")[0] in LONG or ".py:" in each.name for each in judging.wanted)
    return search == "all" or (search == "auto" and judging.space.size <= (FEWER if long else FEW))


def _check(judging: Judging, points: Sequence[Point], journal: Journal) -> None:
    """Refuse an objective that has no number at any point, with the reason of the first."""
    for number, objective in enumerate(judging.wanted):
        if points and all(math.isnan(journal.known[point][number]) for point in points):
            why = judging.failure(objective, points[0]).replace("\n", "\n  ")
            what = f"`{objective.name}` has no number for any of {len(points):,} couplings; the first: {why}"
            hint = "another objective: `measured` compares runs, and needs no linear models"
            raise ScenarioError(what, "objectives", "", hint)
