"""`hocket study`: how far results spread where parameters are uncertain, beside the error of the coupling.

In:  an Experiment, and distributions of some of its parameters
Out: an UncertaintyStudy: bands of every port, sensitivities, and what the macro step adds to the spread
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.parameter_sampling import Design, Method, Sensitivity, find_sensitivities, make_design
from hocket.analysis.run_error import Watch, estimate_error
from hocket.errors import HocketError, ScenarioError, count
from hocket.execution.notebook_progress import notebook_progress
from hocket.execution.run import experiment_to_run, run_experiment
from hocket.execution.session import Progress
from hocket.execution.sweep import OF_EXPERIMENT, Variants, check_variants, run_variants
from hocket.execution.sweep_folder import begin_sweep_folder, completed_runs, digest_experiment
from hocket.files.error_estimate import ErrorEstimate, format_time
from hocket.files.experiments import ExperimentLike, vary_experiment
from hocket.files.plotting import Series
from hocket.files.run_folder import Run
from hocket.model.arguments import (
    expect,
    expect_call,
    expect_count,
    expect_flags,
    expect_folder,
    is_one_of,
    is_whole,
)
from hocket.model.clock import Duration
from hocket.model.distributions import Distribution, as_distributions
from hocket.model.experiment import Experiment
from hocket.model.protocols import Array
from hocket.model.units import Share

Quantity: TypeAlias = Literal["final", "largest", "smallest", "mean"]
INNER = 0.9
"""The share of the runs that is within a band."""
SMALL, LARGE = 0.1, 0.5
"""Shares of the variance: below the first the error of the coupling does not matter, above the second it is
what matters most."""
MOST = 1_000_000
"""Runs of a study."""
SHOWN = 4
"""Ports in a picture."""
_STUDY = "study.json"


@dataclass(frozen=True, eq=False)
class PortSpread:
    """One port: where it is in most runs, and how wrong it is in each."""

    port: str
    unit: str
    t: Array
    low: Array
    median: Array
    high: Array
    deviation: Array
    """The standard deviation over the runs, at each time."""
    results: Array
    """The quantity that was asked for, one number per run that came to its end."""
    error: Array | None
    """The estimated global error of the nominal run at these times; None: it is not known."""
    sensitivities: Sequence[Sensitivity]

    @property
    def step_share(self) -> float | None:
        """What the error of the coupling adds, as a share of the variance of both, over all times."""
        if self.error is None:
            return None
        error, spread = float(np.mean(self.error**2)), float(np.mean(self.deviation**2))
        if not math.isfinite(error):
            return 1.0
        return error / (error + spread) if error + spread > 0.0 else 0.0

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        at = int(np.argmax(self.deviation))
        strongest = max(self.sensitivities, key=lambda each: each.total, default=None)
        return {
            "port": self.port,
            "unit": self.unit,
            "largest standard deviation": float(self.deviation[at]),
            "at [s]": float(self.t[at]),
            "5 %": float(self.low[at]),
            "median": float(self.median[at]),
            "95 %": float(self.high[at]),
            "global error": None if self.error is None else float(np.abs(self.error).max()),
            "share of the macro step": None if self.step_share is None else Share(self.step_share),
            "strongest parameter": "" if strongest is None else strongest.parameter,
        }


@dataclass(frozen=True, eq=False)
class UncertaintyStudy(Measure):
    """How far results spread, why, and what the coupling adds."""

    design: Design
    nominal: Run
    runs: tuple[Run | Exception, ...]
    """In the order of the design; fewer where the study was stopped."""
    ports: tuple[PortSpread, ...]
    """Those with the largest share of the macro step first."""
    error: ErrorEstimate | None
    radii: Array | None
    """The spectral radius for each run; None: the scenario is not linear throughout."""
    quantity: Quantity

    picture = "spread"

    def __getitem__(self, port: str) -> PortSpread:
        for each in self.ports:
            if each.port == port:
                return each
        raise ScenarioError(
            f"there is no spread of `{port}`", "", ", ".join(each.port for each in self.ports)
        )

    @property
    def title(self) -> str:
        return "uncertainty"

    @property
    def finished(self) -> int:
        """How many runs came to their end with finite values."""
        return sum(_is_usable(run) for run in self.runs)

    @property
    def outcome(self) -> Outcome:
        unstable = self.radii is not None and bool((self.radii > 1.0 + 1e-9).any())
        if unstable or self.finished < len(self.runs):
            return Outcome.BAD
        if len(self.runs) < len(self.design.probabilities) or not self.ports:
            return Outcome.NOT_JUDGED
        if self.error is None:
            return Outcome.CAUTION
        return Outcome.UNRELIABLE if self.error.doubts else Outcome.GOOD

    def verdict(self) -> list[str]:
        return [*self._robustness_lines(), *self._spread_lines(), *self._step_lines()]

    def _robustness_lines(self) -> list[str]:
        lines = []
        planned, begun = len(self.design.probabilities), len(self.runs)
        if begun < planned:
            lines.append(f"not judged: {begun:,} of {count(planned, 'run')} were begun")
        if self.radii is not None and len(self.radii):
            stable = int((self.radii <= 1.0 + 1e-9).sum())
            range_ = f"spectral radius {self.radii.min():.6g} to {self.radii.max():.6g}"
            lines.append(f"stable in {stable:,} of {len(self.radii):,}: {range_}")
        if self.finished < begun:
            lines.append(f"{begun - self.finished:,} of {count(begun, 'run')} failed or left all bounds")
        return lines

    def _spread_lines(self) -> list[str]:
        widest = max(self.ports, key=_relative_spread, default=None)
        if widest is None:
            return ["not judged: no run came to its end"]
        at = int(np.argmax(widest.deviation))
        unit = f" {widest.unit}" if widest.unit else ""
        within = f"{widest.low[at]:.4g} to {widest.high[at]:.4g}{unit}"
        where = f"`{widest.port}` at {format_time(float(widest.t[at]))} s"
        spread = f"standard deviation {widest.deviation[at]:.3g}{unit}"
        return [f"{where}: {Share(INNER):.2g} of the runs within {within}, {spread}"]

    def _step_lines(self) -> list[str]:
        if self.error is None:
            return ["not judged: the error of the coupling was not estimated"]
        lines = [f"doubt: {doubt}" for doubt in self.error.doubts]
        known = [each for each in self.ports if each.step_share is not None]
        if not known:
            return [*lines, "not judged: there is no estimate of the error of the coupling"]
        worst = known[0]
        share = worst.step_share or 0.0
        if share < SMALL:
            advice = "no need for a shorter one"
        elif share < LARGE:
            advice = "a shorter one would narrow the result"
        else:
            advice = "shorten it before the parameters are studied"
        said = f"the macro step contributes {Share(share):.2g} of the uncertainty of `{worst.port}`"
        return [*lines, f"{said}: {advice}"]

    def rows(self) -> Rows:
        return [each.row() for each in self.ports]

    @property
    def sensitivities(self) -> SensitivityTable:
        """The indices of all ports, as a measure of its own."""
        return SensitivityTable(self.ports, self.quantity)

    def notes(self) -> list[str]:
        asked = f"{self.design.method}, {count(len(self.runs), 'run')}"
        return [
            f"{asked}; shares are of the variance over all times; indices are of the {self.quantity} value"
        ]

    def facts(self) -> dict[str, Any]:
        return {
            "uncertainty": self.rows(),
            "runs": len(self.runs),
            "finished": self.finished,
            "method": self.design.method,
            "quantity": self.quantity,
        }

    def draw(self) -> Any:
        """Return the bands of the ports: the spread of the runs, and in it the error of the coupling."""
        from hocket.files.plotting import BLUE, envelope, new_figure, set_axes_title

        shown = self.ports[:SHOWN]
        if not shown:
            raise ScenarioError("there is nothing to draw: no run came to its end")
        figure, stack = new_figure(9, 0.9 + 2.1 * len(shown), rows=len(shown))
        for axes, each in zip(stack, shown, strict=True):
            t, low, high = envelope(each.t, each.low, each.high)
            axes.fill_between(t, low, high, color=BLUE, alpha=0.22, linewidth=0, label="90 % of the runs")
            if each.error is not None:
                size = np.abs(each.error)
                t, low, high = envelope(each.t, each.median - size, each.median + size)
                label = "global error of the coupling"
                axes.fill_between(t, low, high, color="#d1495b", alpha=0.55, linewidth=0, label=label)
            axes.plot(each.t, each.median, color=BLUE, linewidth=1.0, label="median")
            share = "" if each.step_share is None else f": {Share(each.step_share):.2g} from the macro step"
            set_axes_title(axes, f"{each.port}{f' [{each.unit}]' if each.unit else ''}{share}")
            axes.grid(alpha=0.3)
            axes.margins(x=0)
        stack[0].legend(loc="best", fontsize="small", frameon=False)
        stack[-1].set_xlabel("time [s]")
        return figure


@dataclass(frozen=True, eq=False)
class SensitivityTable(Measure):
    """Which parameters the results depend on."""

    ports: tuple[PortSpread, ...]
    quantity: Quantity

    @property
    def title(self) -> str:
        return "sensitivities"

    def rows(self) -> Rows:
        return [
            {
                "port": each.port,
                "parameter": one.parameter,
                "first order": one.first,
                "total": one.total,
                "largest with another": max(one.pairs.values(), default=0.0),
            }
            for each in self.ports
            for one in sorted(each.sensitivities, key=lambda one: -one.total)
        ]


def study(
    what: ExperimentLike,
    uncertain: Mapping[str, str | Distribution] | None = None,
    stop: Duration | None = None,
    *,
    method: Method = "latin-hypercube",
    runs: int = 200,
    seed: int = 1,
    quantity: Quantity = "final",
    estimate: bool = True,
    folder: Path | str | None = None,
    workers: int | None = None,
    processes: bool | None = None,
    dask: str | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> UncertaintyStudy:
    """Run many times with parameters drawn from distributions, such as {"spring.k": "normal(20, 2)"}.

    None: those of the scenario file, `[uncertain]`. The methods "latin-hypercube" and "monte-carlo" give
    bands, "sobol" and "chaos" (polynomials fitted to the runs) sensitivity indices of the `quantity` of each
    port as well. With `estimate` the global error of the coupling is estimated on the nominal run, all
    parameters at their medians, so that both uncertainties stand side by side. `folder` keeps the runs: a
    study that was stopped goes on there when it is called again with the same arguments. `dask` is the
    address of a Dask scheduler, whose workers make the runs. Further `options` are those of `hocket.run`.
    """
    _check_study_arguments(method, runs, seed, quantity, workers)
    expect_flags(estimate=estimate)
    expect_folder(folder)
    expect_call("progress", progress, "two numbers: runs done, of all")
    expect(dask is None or isinstance(dask, str), "dask", dask, 'an address such as "tcp://host:8786"')
    of_experiment = {name: options.pop(name) for name in OF_EXPERIMENT if name in options}
    experiment = experiment_to_run(what, stop=stop, **of_experiment)
    given = experiment.uncertain if uncertain is None else uncertain
    distributions = as_distributions(given, "uncertain")
    if not distributions:
        hint = '[uncertain] in the file: "spring.k" = "normal(20, 2)"'
        raise ScenarioError("nothing is uncertain", "uncertain", "distributions by path", hint)
    design = make_design(distributions, method, runs, seed)
    place = None if folder is None else Path(folder)
    done = _begin_folder(place, design, experiment, seed)
    middle = vary_experiment(
        experiment, {path: each.nominal for path, each in distributions.items()}, "uncertain"
    )
    nominal = run_experiment(
        middle, {}, folder=None if place is None else place / "nominal", overwrite=True, **dict(options)
    )
    kept = None if place is None else place / "runs"
    variants = Variants(experiment, list(design.parameters()), done, kept, again=True)
    check_variants(variants)
    shown = notebook_progress("runs") if progress is None else progress
    results = run_variants(variants, workers, processes, shown, dict(options), dask)
    error = estimate_error(middle, nominal, watch=watch) if estimate else None
    radii = _spectral_radii(experiment, design) if len(results) == len(design.probabilities) else None
    ports = _find_spreads(design, nominal, results, error, quantity)
    return UncertaintyStudy(design, nominal, tuple(results), ports, error, radii, quantity)


def _check_study_arguments(method: Any, runs: Any, seed: Any, quantity: Any, workers: Any) -> None:
    known = " or ".join(f'"{each}"' for each in get_args(Method))
    expect(is_one_of(method, get_args(Method)), "method", method, known)
    expect(is_whole(runs, 2) and runs <= MOST, "runs", runs, f"a whole number from 2 to {MOST:,}")
    expect(is_whole(seed, 0), "seed", seed, "a whole number from 0 on")
    wanted = " or ".join(f'"{each}"' for each in get_args(Quantity))
    expect(is_one_of(quantity, get_args(Quantity)), "quantity", quantity, wanted)
    expect_count("workers", workers)


def _begin_folder(place: Path | None, design: Design, experiment: Experiment, seed: int) -> dict[int, Run]:
    """Return the runs that an earlier call with the same arguments has brought to their end, by number."""
    if place is None:
        return {}
    facts = {
        "method": design.method,
        "runs": len(design.probabilities),
        "seed": seed,
        "uncertain": {path: str(each) for path, each in design.uncertain.items()},
        "start": str(experiment.start),
        "stop": str(experiment.stop),
        "scenario": digest_experiment(experiment),
    }
    again = begin_sweep_folder(place, facts, _STUDY, "study")
    return completed_runs(place / "runs", list(design.parameters())) if again else {}


def _spectral_radii(experiment: Experiment, design: Design) -> Array | None:
    """Return the spectral radius for each set of parameters; None where a simulator is not linear."""
    from hocket.analysis.exact_solution import exact_solution
    from hocket.analysis.stability_map import VariedRadius

    radius = VariedRadius(experiment.composite, list(design.uncertain), experiment.start, "uncertain")
    try:
        exact_solution(experiment.composite)  # refuses what is not linear
        return np.array([radius(*map(float, row)) for row in design.values])
    except HocketError:
        return None


def _is_usable(run: Run | Exception) -> bool:
    """Return whether a run came to its end; what is NaN now and then is an event that is absent."""
    return (
        isinstance(run, Run)
        and run.is_complete
        and not any(np.isinf(run[port].values).any() for port in run.ports)
    )


def _find_spreads(
    design: Design,
    nominal: Run,
    results: Sequence[Run | Exception],
    error: ErrorEstimate | None,
    quantity: Quantity,
) -> tuple[PortSpread, ...]:
    usable = [run for run in results if isinstance(run, Run) and _is_usable(run)]
    if len(usable) < 2:
        return ()
    whole = len(usable) == len(design.probabilities)
    spreads = []
    for port in nominal.ports:
        if not all(port in run for run in usable):
            continue
        t, _ = _right_limits(nominal[port])
        stack = np.array([np.interp(t, *_right_limits(run[port])) for run in usable])
        if not np.isfinite(stack).all():
            continue  # an event port is absent most of the time
        low, median, high = np.quantile(stack, [(1 - INNER) / 2, 0.5, (1 + INNER) / 2], axis=0)
        found = np.array([_reduce(run[port], quantity) for run in usable])
        spreads.append(
            PortSpread(
                port,
                nominal[port].unit,
                t,
                low,
                median,
                high,
                stack.std(axis=0, ddof=1),
                found,
                _error_at(error, port, t),
                find_sensitivities(design, found) if whole else [],
            )
        )
    return tuple(sorted(spreads, key=lambda each: -(each.step_share or 0.0)))


def _right_limits(series: Series) -> tuple[Array, Array]:
    """Return times that rise, and the last value at each: after an event the one that holds from then on."""
    t, values = np.asarray(series.t), np.asarray(series.values, dtype=float)
    last = np.append(t[1:] != t[:-1], True)
    return t[last], values[last]


def _reduce(series: Series, quantity: Quantity) -> float:
    t, values = _right_limits(series)
    match quantity:
        case "final":
            return float(values[-1])
        case "largest":
            return float(np.max(series.values))
        case "smallest":
            return float(np.min(series.values))
        case "mean":
            span = t[-1] - t[0]
            return float(np.trapezoid(values, t) / span) if span > 0.0 else float(values[-1])


def _error_at(error: ErrorEstimate | None, port: str, t: Array) -> Array | None:
    if error is None or port not in error:
        return None
    found = error[port]
    return np.interp(t, *_right_limits(Series(found.run.t, np.asarray(found.error), "", port)))


def _relative_spread(each: PortSpread) -> float:
    scale = float(np.abs(each.median).max())
    largest = float(each.deviation.max())
    return largest / scale if scale > 0.0 else math.inf if largest > 0.0 else 0.0
