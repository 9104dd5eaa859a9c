"""`hocket.tune`: the best coupling of a system, found by what couplings are worth before they are run.

In:  a Composite, what may be chosen, what counts
Out: a Tuned: everything that was judged, the Pareto front, and the coupling to choose
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from hocket.clock import Duration, seconds
from hocket.engine.composite import Composite
from hocket.errors import HocketError, ScenarioError, nearest
from hocket.files import toml
from hocket.signals import Hold, Nepce
from hocket.tune.defaults import default_space
from hocket.tune.journal import Journal
from hocket.tune.objectives import Case, Objective, judged, objectives
from hocket.tune.searching import FEW, exhaustive, genetic
from hocket.tune.space import Point, Space, space
from hocket.tune.tuned import Tuned
from hocket.tune.work import Work, work_of
from hocket.tune.workers import Judging, Numbers, evaluate

How: TypeAlias = Literal["auto", "all", "genetic"]
Told: TypeAlias = Callable[[float, float], None]
"""Called with how many points were judged, and of how many."""
Early: TypeAlias = Callable[[Tuned], None]
"""Called with what was judged so far."""

DEFAULT = ("error", "work")
UNTIMED = ("rho", "work")
BUDGET = 2000
"""Points that the genetic search judges."""


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
    what is exchanged), `goals` what counts: "rho", "delta", "error", "relative", "radius", "radius:one",
    "work", "exchanges", "steps", "step", "measured", "seconds", or "file.py:function" of the composite (left
    out: the error of the run and the work). `limits` bounds any of them. All points are judged if there are
    up to 20,000; "genetic" judges `budget` of them, with a fixed seed. `folder` keeps what was judged: the
    same search goes on where it was stopped. `early` is called with the answer so far, again and again.
    """
    if search not in get_args(How):
        hint = nearest(str(search), get_args(How))
        raise ScenarioError(f"there is no search `{search}`", "search", "", hint)
    ends = None if stop is None else seconds(stop)
    begins = seconds(start)
    names = tuple(goals or (DEFAULT if ends is not None else UNTIMED))
    wanted = objectives(names, limits)
    chosen = space(
        composite, over or default_space(composite, ends), rotations=not _turned(composite, wanted)
    )
    work = _work(composite)
    judging = Judging(composite, chosen, wanted, ends, begins, work)
    now = judged(Case(composite, ends, begins, work), wanted)
    path = None if folder is None else Path(folder)
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)

    def answer(points: Sequence[Point], numbers: Sequence[Numbers]) -> Tuned:
        return Tuned(composite, chosen, wanted, len(names), tuple(points), tuple(numbers), now, ends, begins)

    with Journal(path / "judged.jsonl" if path else None, _about(judging, composite)) as journal:
        total = chosen.size if _all(search, chosen) else min(budget, chosen.size)

        def ask(points: Sequence[Point]) -> list[Numbers]:
            def done(some: Sequence[Point], numbers: Sequence[Numbers]) -> None:
                journal.add(some, numbers)
                if progress:
                    progress(min(len(journal.known), total), total)
                if early:
                    early(answer(tuple(journal.known), tuple(journal.known.values())))

            evaluate(judging, journal.missing(points), done, workers, dask)
            return [journal.known[point] for point in points]

        if _all(search, chosen):
            points = exhaustive(chosen, ask)
        else:
            points = genetic(chosen, wanted, len(names), ask, budget, seed)
        numbers = [journal.known[point] for point in points]
    return answer(points, numbers)


def _all(search: How, chosen: Space) -> bool:
    return search == "all" or (search == "auto" and chosen.size <= FEW)


def _turned(composite: Composite, wanted: Sequence[Objective]) -> bool:
    """Return whether orders that are rotations of each other are worth the same: holds, and rho alone."""
    held = all(
        isinstance(each.extrapolation or composite.extrapolation, (Hold, Nepce))
        for each in composite.scenario.connections
    )
    return held and all(each.name in ("rho", "step", "work", "exchanges", "steps") for each in wanted)


def _work(composite: Composite) -> Work | None:
    try:
        return work_of(composite)
    except HocketError:
        return None


def _about(judging: Judging, composite: Composite) -> str:
    """Return what a search is about, as a text that differs where the search does."""
    variables = [(each.name, each.words) for each in judging.space.variables]
    ends = (judging.start, judging.stop or Fraction(0))
    return repr(
        (toml.dumps(composite, strict=False), variables, [each.name for each in judging.wanted], ends)
    )
