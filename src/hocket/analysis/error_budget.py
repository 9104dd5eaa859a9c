"""The error budget of a run: which part of its global error is whose, from runs with one thing tightened.

In:  an Experiment that was run, or the Run in a folder
Out: an ErrorBudget: the error of each level's coupling and of each simulator's solver, and which is to blame

The parts add up where the error is small: then it is linear in what causes it (theory, section 9.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.run_error import Watch, engine_of, experiment_of, shared_rows, truncate_experiment
from hocket.analysis.solver_tightening import (
    DIVIDED,
    Knob,
    LevelKnob,
    SolverKnob,
    find_knobs,
    find_unjudged,
    tighten_inner_levels,
    tighten_level,
    tighten_solver,
    tighten_solvers,
)
from hocket.errors import ScenarioError, list_names, suggest_nearest
from hocket.execution.run import run_experiment
from hocket.execution.session import EngineName
from hocket.files.experiments import ExperimentLike, as_experiment
from hocket.files.plotting import Series
from hocket.files.run_folder import Run, open_run
from hocket.model.clock import format_duration
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.extrapolators import Hold, Polynomial
from hocket.model.protocols import Array
from hocket.model.units import Share
from hocket.planning.parameters import change_extrapolation
from hocket.planning.planner import plan_tree

CLOSES = 0.2
"""How far the sum of the parts may be from the whole, as a part of it."""
MINOR = 0.01
"""Parts below this part of the whole are not looked at again for their order."""
FITS = 0.1
"""A part that stays below this part of the whole does no harm: its solver may be that coarse."""
SEEN = (0.5, 6.0)
"""Orders outside this range are not believed."""
ROUNDING = 1e-11
"""Of the peak: a whole that is smaller is rounding."""


@dataclass(frozen=True, eq=False)
class BudgetPart:
    """What one level or one solver contributes to the error of the judged port."""

    knob: Knob
    error: Array
    """With its sign, at each time of the judged port: the run less what it would be without this part."""
    order: float | None
    """With which it falls as its steps get shorter; None: not seen."""
    peak: float
    """The largest value of the judged port."""

    @property
    def name(self) -> str:
        """What it is, in words."""
        path = f"`{self.knob.path}`" if self.knob.path else "the outermost level"
        return f"coupling of {path}" if isinstance(self.knob, LevelKnob) else f"solver of {path}"

    @property
    def largest(self) -> float:
        """The largest error, in the unit of the port."""
        return float(np.abs(self.error).max(initial=0.0))

    @property
    def relative(self) -> float:
        """The largest error over the largest value of the port."""
        return self.largest / self.peak if self.peak else 0.0

    @property
    def setting(self) -> str:
        """What determines it now."""
        knob = self.knob
        if isinstance(knob, LevelKnob):
            kept = "" if knob.tolerance is None else f", tolerance {knob.tolerance:g}"
            return f"macro step {format_duration(knob.step)}{kept}"
        if knob.rtol is not None:
            return f"{knob.method}, rtol {knob.rtol:g}"
        return f"{knob.method}, micro step {format_duration(knob.step)}"

    @property
    def remedy(self) -> str:
        """What to change."""
        knob = self.knob
        if isinstance(knob, LevelKnob):
            where = f"of `{knob.path}`" if knob.path else "of the outermost level"
            thing = "divide the tolerance" if knob.tolerance is not None else "halve the macro step"
            return f"{thing} {where}" + (" by 4" if knob.tolerance is not None else "")
        if knob.rtol is not None:
            return f"divide rtol and atol of `{knob.path}` by 10"
        shorter = format_duration(knob.step / 2)
        own = "" if knob.is_own else ", which makes one in each macro step"
        return f"halve the micro step of `{knob.path}`{own}: step = {shorter}"

    @property
    def gain(self) -> str:
        """What the change brings."""
        if self.order is None:  # of what keeps a tolerance there is none
            return ""
        return f"; that divides its part by {2.0**self.order:.2g}"


@dataclass(frozen=True, eq=False)
class ErrorBudget(Measure):
    """The error of the port that is judged, divided among levels and solvers; the largest part first."""

    port: str
    unit: str
    t: Array
    whole: Array
    """The error with its sign, at each time: the run less one with everything tightened, extrapolated."""
    peak: float
    parts: tuple[BudgetPart, ...]
    unjudged: tuple[str, ...]
    """Simulators that cannot be tightened."""
    tried: tuple[tuple[str, float], ...] = ()
    """Changes that were tried, and the error they leave, a part of the peak."""
    runs: int = 0
    title = "error budget"

    def __getitem__(self, path: str) -> BudgetPart:
        """Return the part of a simulator or a level by its path; "" is the outermost level."""
        for part in self.parts:
            if part.knob.path == path:
                return part
        known = [part.knob.path for part in self.parts]
        raise ScenarioError(f"`{path}` has no part in the budget", hint=suggest_nearest(path, known))

    @property
    def relative(self) -> float:
        """The largest error over the largest value."""
        return float(np.abs(self.whole).max(initial=0.0)) / self.peak if self.peak else 0.0

    @property
    def sum(self) -> Array:
        """All parts together, with their signs, at each time."""
        return np.asarray(np.sum([part.error for part in self.parts], axis=0) + 0.0 * self.whole)

    @property
    def gap(self) -> float:
        """How far the sum of the parts is from the whole at its worst, as a part of the whole."""
        largest = float(np.abs(self.whole).max(initial=0.0))
        off = float(np.abs(self.sum - self.whole).max(initial=0.0))
        return 0.0 if self.is_rounding else off / largest

    @property
    def is_rounding(self) -> bool:
        """Whether there is no error to divide."""
        return self.relative <= ROUNDING

    @property
    def blamed(self) -> BudgetPart | None:
        """The largest part; None: there is no error to speak of."""
        return None if self.is_rounding or not self.parts else self.parts[0]

    @property
    def outcome(self) -> Outcome:
        """Whether the parts add up to the whole."""
        if not math.isfinite(self.relative) or not self.gap <= CLOSES:
            return Outcome.UNRELIABLE
        return Outcome.CAUTION if self.unjudged else Outcome.GOOD

    def verdict(self) -> list[str]:
        """Return which part is to blame, what to change, and whether the parts add up."""
        return [*self._blame_lines(), *self._doubt_lines()]

    def _blame_lines(self) -> Iterator[str]:
        blamed = self.blamed
        if blamed is None:
            yield f"error budget of `{self.port}`: nothing but rounding"
            return
        share = blamed.largest / float(np.abs(self.whole).max())
        yield (
            f"error budget of `{self.port}`: {Share(blamed.relative):.2g} of peak is the {blamed.name} "
            f"({blamed.setting}), {Share(share):.2g} of the whole error"
        )
        yield f"to change first: {blamed.remedy}{blamed.gain}"
        for change, left in self.tried:
            helps = "leaves" if left < self.relative else "does not help: it leaves"
            before = f"{Share(self.relative):.2g}"
            yield f"{change} {helps} an error of {Share(left):.2g} of peak in place of {before}"

    def _doubt_lines(self) -> Iterator[str]:
        if not self.gap <= CLOSES:
            yield (
                f"doubt: the parts differ from the whole by {Share(self.gap):.2g} of it: they act on each "
                "other, or the steps are too long for parts to add up"
            )
        if self.unjudged:
            yield f"not judged: what is integrated inside {list_names(list(self.unjudged), 4)}"

    def rows(self) -> Rows:
        """Return a row for each part, then their sum and the whole, where the whole is largest."""
        if not len(self.whole):
            return []
        at = int(np.argmax(np.abs(self.whole)))
        scale = self.peak or 1.0
        rows: Rows = [
            {
                "part": part.name,
                "set to": part.setting,
                "error of peak": Share(part.relative),
                f"at {self.t[at]:.4g} s": Share(float(part.error[at]) / scale),
                "order": None if part.order is None else round(part.order, 2),
            }
            for part in self.parts
        ]
        for name, error in (("sum of the parts", self.sum), ("whole", self.whole)):
            largest = float(np.abs(error).max()) / scale
            rows.append(
                {
                    "part": name,
                    "set to": "",
                    "error of peak": Share(largest),
                    f"at {self.t[at]:.4g} s": Share(float(error[at]) / scale),
                    "order": None,
                }
            )
        return rows

    def notes(self) -> list[str]:
        """Return which steps and tolerances are finer than they need be beside the others."""
        return list(self._loose_settings())

    def _loose_settings(self) -> Iterator[str]:
        allowed = FITS * self.relative
        for part in self.parts if self.blamed else ():
            knob = part.knob
            if not isinstance(knob, SolverKnob) or part.relative >= allowed:
                continue
            if knob.rtol is not None:
                yield f"`{knob.path}`: rtol {knob.rtol:g} is tight enough beside the rest"
            elif knob.is_own and knob.order and part.relative:
                longer = (allowed / part.relative) ** (1.0 / knob.order)
                if longer >= 2.0:
                    yield (
                        f"`{knob.path}`: a micro step {longer:.2g} times as long keeps its part below "
                        f"{Share(FITS):.0f} of the whole"
                    )

    def facts(self) -> dict[str, Any]:
        """Return the port, every part, and how well they add up."""
        blamed = self.blamed
        return {
            self.title: {
                "port": self.port,
                "parts": [
                    {
                        "part": part.name,
                        "path": part.knob.path,
                        "set to": part.setting,
                        "of peak": part.relative,
                        "order": part.order,
                        "remedy": part.remedy,
                    }
                    for part in self.parts
                ],
                "whole of peak": self.relative,
                "sum off by": self.gap,
                "to blame": blamed and blamed.name,
                "remedy": blamed and blamed.remedy,
                "tried": [{"change": change, "of peak": left} for change, left in self.tried],
                "not judged": list(self.unjudged),
                "runs": self.runs,
            }
        }


def error_budget(
    run: Run | str | Path,
    experiment: ExperimentLike | None = None,
    port: str | None = None,
    watch: Watch | None = None,
) -> ErrorBudget:
    """Return which part of a run's error is whose: each level and each solver is tightened in runs in memory.

    `run` is a run or its folder, `experiment` is what was run, where the folder cannot tell (models made in
    Python code). `port` is the output that is judged; None: the one with the largest error beside its peak.
    There are about two runs for each level and each simulator with a solver. Raises ScenarioError where
    nothing can be run again.
    """
    plain = (run if isinstance(run, Run) else open_run(run)).without_accounts()
    if port is not None and (not isinstance(port, str) or port not in plain):
        raise ScenarioError(
            f"`{port!s:.60}` was not recorded", "port", "", suggest_nearest(port, plain.ports)
        )
    given = experiment_of(plain) if experiment is None else as_experiment(experiment)
    meant = truncate_experiment(given, plain)
    return _Bookkeeper(meant, plain, engine_of(plain), watch).divide_error(port)


class _Bookkeeper:
    """Makes the runs of a budget, on the rows of the run that is judged."""

    def __init__(self, experiment: Experiment, run: Run, engine: EngineName, watch: Watch | None):
        self.experiment, self.run, self.engine, self.watch = experiment, run, engine, watch
        rows = min(level.composite.step for level in plan_tree(experiment.composite).levels())
        self.every = experiment.every or rows
        self.levels, self.solvers = find_knobs(experiment.composite)
        self.sharp = tighten_solvers(experiment.composite, self.solvers)
        self.runs = 0

    def divide_error(self, port: str | None) -> ErrorBudget:
        """Return the budget of a port, or of the worst one."""
        fine = tighten_inner_levels(self.sharp, "", DIVIDED)
        finest = self.make_run(tighten_level(fine, "", DIVIDED), "everything tightened")
        self.port = port or self._worst_port(finest)
        here, values = shared_rows(self.run[self.port], finest[self.port])
        if not len(here):
            raise ScenarioError(f"the tightened run has no rows of `{self.port}` at the times of this one")
        self.t, self.finest = self.run[self.port].t[here], values
        base = self.run[self.port].values[here]
        self.peak, self.total = float(np.abs(base).max()), base - values
        parts = [self._judge_solver(knob, base) for knob in self.solvers]
        sharp = self.values(self.sharp, "all solvers tightened") if self.solvers else base
        parts += [self._judge_level(knob, sharp) for knob in self.levels]
        left = [part.error / 4.0**part.order if part.order else 0.0 * part.error for part in parts]
        whole = self.total + (np.sum(left, axis=0) if left else 0.0)
        parts.sort(key=lambda part: -part.largest)
        found = ErrorBudget(
            self.port,
            self.run[self.port].unit,
            self.t,
            whole,
            self.peak,
            tuple(parts),
            tuple(find_unjudged(self.experiment.composite)),
            runs=self.runs,
        )
        return replace(found, tried=tuple(self._try_extrapolation(found, base)), runs=self.runs)

    def make_run(self, composite: Composite, what: str) -> Run:
        """Run a tightened composite in memory; raises ScenarioError if it does not come to its end."""
        meant = replace(self.experiment, composite=composite, every=self.every)
        self.runs += 1
        with self.watch(meant, f"with {what}") if self.watch else nullcontext() as progress:
            found = run_experiment(meant, {}, record=self.run.ports, engine=self.engine, progress=progress)
        if found.status != "finished":
            raise ScenarioError(f"the run with {what} did not come to its end: {found.status}")
        return found

    def values(self, composite: Composite, what: str) -> Array:
        """Return the judged port of a tightened run, at the times of the budget."""
        series = self.make_run(composite, what)[self.port]
        rows = Series(self.t, self.t, "", "")
        here, found = shared_rows(rows, series)
        if len(here) != len(self.t):
            raise ScenarioError(f"the run with {what} has other rows of `{self.port}`")
        return found

    def _worst_port(self, finest: Run) -> str:
        def relative(port: str) -> float:
            here, values = shared_rows(self.run[port], finest[port])
            own = self.run[port].values[here]
            peak, off = float(np.abs(own).max(initial=0.0)), float(np.abs(own - values).max(initial=0.0))
            return off / peak if peak else 0.0

        if not self.run.ports:
            raise ScenarioError("nothing was recorded", str(self.run.path), "an output to judge")
        return max(self.run.ports, key=relative)

    def _judge_solver(self, knob: SolverKnob, base: Array) -> BudgetPart:
        composite, words = self.experiment.composite, f"the solver of `{knob.path}` tightened"
        quarter = self.values(tighten_solver(composite, knob, DIVIDED), words)
        if knob.rtol is not None:
            return BudgetPart(knob, base - quarter, None, self.peak)
        expected = float(knob.order or 1)
        if self._is_minor(base - quarter):
            return self._extrapolate_part(knob, base, None, quarter, expected)
        half = self.values(tighten_solver(composite, knob, 2), f"half the micro steps of `{knob.path}`")
        return self._extrapolate_part(knob, base, half, quarter, expected)

    def _judge_level(self, knob: LevelKnob, sharp: Array) -> BudgetPart:
        composite = tighten_inner_levels(self.sharp, knob.path, DIVIDED)
        where = f"`{knob.path}`" if knob.path else "the outermost level"
        if composite is not self.sharp:
            sharp = self.values(composite, f"all inside {where} tightened")
        quarter = self.finest  # of the outermost level: everything is tightened
        if knob.path:
            shorter = tighten_level(composite, knob.path, DIVIDED)
            quarter = self.values(shorter, f"a quarter of the steps of {where}")
        if self._is_minor(sharp - quarter):
            return self._extrapolate_part(knob, sharp, None, quarter, 1.0)
        half = self.values(tighten_level(composite, knob.path, 2), f"half the steps of {where}")
        return self._extrapolate_part(knob, sharp, half, quarter, 1.0)

    def _is_minor(self, difference: Array) -> bool:
        return float(np.abs(difference).max()) < MINOR * float(np.abs(self.total).max())

    def _extrapolate_part(
        self, knob: Knob, base: Array, half: Array | None, quarter: Array, expected: float
    ) -> BudgetPart:
        """Return the part by Richardson's extrapolation, with the order that is seen, or the expected one."""
        order = None if half is None else _observed_order(base - half, half - quarter)
        power = order or expected
        error = (base - quarter) * (4.0**power / (4.0**power - 1.0))
        return BudgetPart(knob, error, order or (expected if half is None else None), self.peak)

    def _try_extrapolation(self, found: ErrorBudget, base: Array) -> Iterator[tuple[str, float]]:
        """Yield what linear extrapolation leaves of the error, where held inputs of a level are to blame."""
        blamed = found.blamed
        if blamed is None or not isinstance(blamed.knob, LevelKnob) or blamed.knob.tolerance is not None:
            return
        level = blamed.knob.path
        changed = change_extrapolation(
            self.experiment.composite, level, lambda how: Polynomial(1) if isinstance(how, Hold) else how
        )
        if changed is None or changed == self.experiment.composite:
            return
        try:
            other = self.values(changed, "linear extrapolation")
        except ScenarioError:
            return
        truth = base - found.whole
        left = float(np.abs(other - truth).max()) / self.peak
        if math.isfinite(left):
            yield f"linear extrapolation in {f'`{level}`' if level else 'the outermost level'}", left


def _observed_order(first: Array, second: Array) -> float | None:
    one, other = (float(np.sqrt(np.mean(each**2))) for each in (first, second))
    if not (one > 0.0 and other > 0.0 and math.isfinite(one) and math.isfinite(other)):
        return None
    order = math.log2(one / other)
    return order if SEEN[0] <= order <= SEEN[1] else None
