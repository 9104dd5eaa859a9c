"""`hocket.fit`: parameters for which a co-simulation follows measurements, with confidence intervals.

In:  what can be run, or a function that makes it from parameters; measured columns; parameters with bounds
Out: a Fit: values, intervals, residuals, and what is in doubt
"""

from __future__ import annotations

import csv
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.errors import Fault, FileError, ScenarioError, SimulatorError, raise_faults, suggest_nearest
from hocket.execution.run import experiment_to_run, run_experiment
from hocket.files.experiments import vary_experiment
from hocket.files.plotting import BLUE, GREY, decimate, new_figure, set_axes_title
from hocket.model.arguments import expect, expect_call, is_number, is_positive, is_whole
from hocket.model.clock import Duration
from hocket.model.experiment import Experiment
from hocket.model.html import VerdictView
from hocket.model.protocols import Array
from hocket.simulators.methods import to_floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_STARTS = 10_000
"""Starts of one search: each takes tens of runs."""
TIMES = ("t", "time", "t [s]", "time [s]")
"""What the column of times may be called."""
CHANGE = 1e-4
"""By which part of its scale a parameter is changed to see what follows."""
PENALTY = 1e3
"""What the residuals are of parameters with which the run fails, in deviations of the measurements."""
BLIND = 1e-7
"""Singular values of the scaled Jacobian below this part of the largest tell nothing."""

Progress: TypeAlias = Callable[[int, float], None]
Build: TypeAlias = Callable[[Mapping[str, float]], Experiment]


@dataclass(frozen=True)
class FittedParameter:
    """A parameter, and between which values it is with the confidence that was asked for."""

    name: str
    value: float
    low: float
    high: float
    deviation: float
    """The standard deviation of the estimate; infinite: the measurements tell nothing of it."""
    at_bound: bool
    """Whether the best value is on a bound: its interval does not hold then."""


@dataclass(frozen=True)
class Fit(VerdictView, Measure):
    """What was found; `values` by name are parameters for `hocket.run` or `hocket.sweep`."""

    parameters: tuple[FittedParameter, ...]
    confidence: float
    residuals: Mapping[str, float]
    """Of each measured port, the root mean square of what is left, in its unit."""
    correlations: Array
    converged: bool
    runs: int
    failed: int
    """How many of them ended with an error."""
    experiment: Experiment
    """With the values that were found."""
    costs: tuple[float, ...]
    """Half the sum of the squared residuals that each start led to."""
    measured: Mapping[str, tuple[Array, Array]] = field(repr=False)
    """Times and values of each measured port."""

    picture = ""

    @property
    def title(self) -> str:
        return "fitted parameters"

    @property
    def outcome(self) -> Outcome:
        """Not judged where a value cannot be told; not reliable where the search did not end."""
        if not self.converged:
            return Outcome.UNRELIABLE
        if not all(math.isfinite(each.deviation) for each in self.parameters):
            return Outcome.NOT_JUDGED
        return Outcome.CAUTION if self.doubts() else Outcome.GOOD

    @property
    def values(self) -> dict[str, float]:
        """The best values by name."""
        return {each.name: each.value for each in self.parameters}

    def doubts(self) -> list[str]:
        """Return why the numbers may not hold."""
        found = [] if self.converged else ["it has not converged: the values are the best so far"]
        for each in self.parameters:
            if each.at_bound:
                found.append(f"`{each.name}` is at its bound: its interval does not hold")
            elif not math.isfinite(each.deviation):
                found.append(f"`{each.name}` cannot be told from these measurements")
        worst = self._worst_pair()
        return [*found, worst] if worst else found

    def _worst_pair(self) -> str:
        """Return which two parameters can hardly be told apart; empty: none."""
        size = np.abs(np.triu(np.nan_to_num(self.correlations), 1))
        if not size.size or size.max() < 0.999:
            return ""
        i, j = np.unravel_index(int(np.argmax(size)), size.shape)
        names = [each.name for each in self.parameters]
        correlation = self.correlations[i, j]
        return f"`{names[i]}` and `{names[j]}` can hardly be told apart: correlation {correlation:.4f}"

    def rows(self) -> Rows:
        """Return a row for each parameter."""
        return [
            {
                "parameter": each.name,
                "value": each.value,
                "from": each.low,
                "to": each.high,
                "standard deviation": each.deviation,
                "at bound": each.at_bound,
            }
            for each in self.parameters
        ]

    def verdict(self) -> list[str]:
        percent = 100.0 * self.confidence
        lines = [
            f"{each.name} = {each.value:.6g} ({percent:g} %: {each.low:.6g} to {each.high:.6g})"
            for each in self.parameters
        ]
        left = ", ".join(f"`{port}` {size:.3g}" for port, size in self.residuals.items())
        lines.append(f"residuals (root mean square): {left}; {self.runs} runs, {self.failed} failed")
        return [*lines, *(f"in doubt: {each}" for each in self.doubts())]

    def facts(self) -> dict[str, Any]:
        residuals = [{"port": port, "residual": size} for port, size in self.residuals.items()]
        counts = {"runs": self.runs, "failed": self.failed, "converged": self.converged}
        return super().facts() | {"confidence": self.confidence, "residuals": residuals, **counts}

    def draw(self) -> Figure:
        """Draw what was measured and what the fitted parameters give, port by port."""
        run = run_experiment(self.experiment, {}, record=list(self.measured))
        figure, stack = new_figure(9, 0.9 + 2.2 * len(self.measured), rows=len(self.measured))
        for axes, (port, (times, values)) in zip(stack, self.measured.items(), strict=True):
            series = run[port]
            axes.plot(times, values, ".", color=GREY, markersize=4, label="measured")
            axes.plot(*decimate(series), color=BLUE, label="fitted")
            axes.set_ylabel(f"{port.rpartition('.')[2]} [{series.unit or '-'}]", parse_math=False)
            set_axes_title(axes, f"{port}: residual {self.residuals[port]:.3g}")
            axes.margins(x=0)
            axes.grid(color="#e4e4e4", linewidth=0.8)
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.03), frameon=False, fontsize="small")
        stack[-1].set_xlabel("time [s]")
        return figure

    def __str__(self) -> str:
        return "\n".join(self.verdict())


@dataclass(frozen=True)
class _Range:
    """Where a parameter may be, and where the search begins."""

    start: float
    low: float
    high: float
    scale: float

    @staticmethod
    def of(name: str, written: Any) -> _Range:
        expected = "a start value, (low, high) or (low, start, high)"
        numbers = [written] if is_number(written) else written
        fits = isinstance(numbers, (list, tuple)) and all(map(is_number, numbers)) and 1 <= len(numbers) <= 3
        expect(fits, name, written, expected, where="parameters")
        given = [float(each) for each in numbers]
        if len(given) == 1:
            return _Range(given[0], -math.inf, math.inf, abs(given[0]) or 1.0)
        low, high = given[0], given[-1]
        start = given[1] if len(given) == 3 else 0.5 * (low + high)
        if not low < high or not low <= start <= high:
            raise ScenarioError(f"`{name}` cannot be {written!r:.60}", "parameters", "low <= start <= high")
        return _Range(start, low, high, high - low)


def fit(
    what: Any,
    data: Any,
    parameters: Mapping[str, Any],
    stop: Duration | None = None,
    *,
    starts: int = 1,
    seed: int = 0,
    deviations: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    evaluations: int = 100,
    progress: Progress | None = None,
) -> Fit:
    """Return the parameters for which a co-simulation follows measurements best: least squares (SciPy).

    `what` is anything that `hocket.run` takes, or a function that returns it from the parameters by name.
    `data` has a column of times, `t`, and one for each measured port by its path: a mapping, a DataFrame, or
    the path of a CSV file. Values that are not numbers are left out; between the rows of a run lines are
    drawn. `parameters` are start values, (low, high) or (low, start, high). With several `starts` the search
    begins elsewhere within the bounds, too. `deviations` are the standard deviations of the measurements by
    port; left out, they are estimated from what is left. Intervals are those of the linear model at the best
    values: they hold for errors that are independent, and small. `progress` is called with the number of runs
    and the best sum so far; one that raises ends the search.
    """
    ranges = _check_parameters(parameters)
    expect(
        is_whole(starts, 1) and starts <= MOST_STARTS,
        "starts",
        starts,
        f"a whole number from 1 to {MOST_STARTS}",
    )
    expect(is_whole(seed), "seed", seed, "a whole number")
    expect(is_whole(evaluations, 1), "evaluations", evaluations, "a whole number above zero")
    expect(is_number(confidence) and 0.0 < confidence < 1.0, "confidence", confidence, "above 0, below 1")
    expect_call("progress", progress, "two numbers: runs done, the best sum so far")
    unbounded = [
        name for name, each in ranges.items() if not math.isfinite(each.scale + each.high - each.low)
    ]
    if starts > 1 and unbounded:
        what_fails = f"several starts, and `{unbounded[0]}` has no bounds"
        raise ScenarioError(what_fails, "parameters", "(low, high) or (low, start, high)")
    columns = _read_data(data)
    known = _check_deviations(deviations, columns)
    search = _Search(_builder(what, stop), ranges, columns, known, progress)
    begin = search.experiment(search.start)
    _check_columns(columns, search, begin)
    return search.solve(starts, int(seed), int(evaluations), float(confidence))


def _check_parameters(parameters: Any) -> dict[str, _Range]:
    fits = (
        isinstance(parameters, Mapping) and bool(parameters) and all(isinstance(n, str) for n in parameters)
    )
    expect(fits, "parameters", parameters, '{"spring.k": (10, 30)}')
    return {name: _Range.of(name, written) for name, written in parameters.items()}


def _builder(what: Any, stop: Duration | None) -> Build:
    """Return what makes an experiment from values."""
    if callable(what) and not isinstance(what, type):

        def build(values: Mapping[str, float]) -> Experiment:
            try:
                inspect.signature(what).bind(**values)
            except TypeError as error:  # not one that the function itself raises
                names = ", ".join(values)
                raise ScenarioError(
                    f"the function cannot be called: {error}", "what", f"a function of {names}"
                ) from None
            except ValueError:  # it is not written in Python
                pass
            return experiment_to_run(what(**values), stop=stop)

        return build
    experiment = experiment_to_run(what, stop=stop)
    return lambda values: vary_experiment(experiment, values, "parameters")


def _read_data(data: Any) -> dict[str, tuple[Array, Array]]:
    """Return times and values by port."""
    if isinstance(data, (str, Path)):
        data = _read_file(Path(data))
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):  # its index, unless it has times
        named = {str(name): data[name].to_numpy() for name in data.columns}
        data = named if any(name in named for name in TIMES) else {"t": data.index.to_numpy(), **named}
    expected = 'a mapping such as {"t": [...], "second.x": [...]}, a DataFrame, or the path of a CSV file'
    expect(isinstance(data, Mapping), "data", data, expected)
    clock = next((name for name in TIMES if name in data), None)
    if clock is None:
        hint = suggest_nearest("t", [str(name) for name in data])
        raise ScenarioError("the data has no column of times", "data", "a column `t`, in seconds", hint)
    try:
        times = to_floats(data[clock])
        columns = {str(name): to_floats(values) for name, values in data.items() if name != clock}
    except (TypeError, ValueError):
        raise ScenarioError("the data has a column that is not numbers", "data", expected) from None
    if times.ndim != 1 or not np.isfinite(times).all() or not columns:
        raise ScenarioError("the data has no finite times, or no port", "data", expected)
    found = {}
    for name, values in columns.items():
        if values.shape != times.shape:
            what = f"`{name}` has {values.size} values for {times.size} times"
            raise ScenarioError(what, "data", "one value for each time; nan where there is none")
        there = np.isfinite(values)
        if not there.any():
            raise ScenarioError(f"`{name}` has no values", "data", "numbers, at some of the times at least")
        found[name.partition("[")[0].strip()] = (times[there], values[there])
    return found


def _read_file(path: Path) -> dict[str, list[float]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file, skipinitialspace=True) if any(row)]
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise FileError(f"`{path}` cannot be read: {error}", str(path)) from None
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        raise FileError("there are no rows, or rows of other lengths", str(path), "a header and rows")
    try:
        return {
            name.strip(): [float(row[place]) if row[place].strip() else math.nan for row in rows[1:]]
            for place, name in enumerate(rows[0])
        }
    except ValueError as error:
        raise FileError(f"there is a value that is not a number: {error}", str(path)) from None


def _check_deviations(given: Any, columns: Mapping[str, Any]) -> dict[str, float] | None:
    if given is None:
        return None
    fits = isinstance(given, Mapping) and {*given} == {*columns} and all(map(is_positive, given.values()))
    expect(fits, "deviations", given, f"a number above zero for each of {', '.join(columns)}")
    return {name: float(value) for name, value in given.items()}


def _check_columns(columns: Mapping[str, tuple[Array, Array]], search: _Search, begin: Experiment) -> None:
    """Refuse ports that are not there, and times outside of the run; makes the first run."""
    run = run_experiment(begin, search.start, record=["*"])
    search.runs += 1
    first, last = float(begin.start), float(begin.stop or 0)
    faults = []
    for name, (times, _) in columns.items():
        if name not in run.ports:
            hint = suggest_nearest(name, list(run.ports))
            faults.append(Fault(f"there is no port `{name}`", "data", "the path of a port", hint))
        elif times.min() < first - 1e-9 or times.max() > last + 1e-9:
            what = f"`{name}` was measured from {times.min():g} s to {times.max():g} s"
            faults.append(Fault(what, "data", f"times of the run, {first:g} s to {last:g} s"))
    count = sum(len(times) for times, _ in columns.values())
    if count <= len(search.ranges):
        what = f"{count} measurements for {len(search.ranges)} parameters"
        faults.append(Fault(what, "data", "more measurements than parameters"))
    raise_faults(faults)


class _Search:
    """Runs with parameters, and the residuals of those runs. Parameters are in units of their scales."""

    def __init__(
        self,
        build: Build,
        ranges: Mapping[str, _Range],
        columns: Mapping[str, tuple[Array, Array]],
        known: Mapping[str, float] | None,
        progress: Progress | None,
    ):
        self.build, self.ranges, self.columns, self.known = build, ranges, columns, known
        self.progress = progress
        self.names = list(ranges)
        self.scales = np.array([each.scale for each in ranges.values()])
        self.low, self.high = (
            np.array([getattr(each, side) / each.scale for each in ranges.values()])
            for side in ("low", "high")
        )
        self.weights = {
            name: 1.0 / (known[name] if known else float(np.std(values)) or 1.0)
            for name, (_, values) in columns.items()
        }
        self.runs = self.failed = 0
        self.best = math.inf
        self.memory: dict[bytes, Array] = {}

    @property
    def start(self) -> dict[str, float]:
        """The values at which the search begins."""
        return {name: each.start for name, each in self.ranges.items()}

    def values(self, z: Array) -> dict[str, float]:
        """Return parameters by name."""
        return dict(zip(self.names, (z * self.scales).tolist(), strict=True))

    def experiment(self, values: Mapping[str, float]) -> Experiment:
        """Return what is run with parameters."""
        return self.build(values)

    def differences(self, z: Array) -> Array | None:
        """Return the differences from the measurements, port by port; None: the run has failed."""
        key = z.tobytes()
        if key not in self.memory:
            self.runs += 1
            values = self.values(z)
            try:
                run = run_experiment(self.experiment(values), values, record=list(self.columns))
                parts = []
                for name, (times, measured) in self.columns.items():
                    t, y = run[name]
                    parts.append(np.interp(times, t, y) - measured)
                self.memory[key] = np.concatenate(parts)
            except SimulatorError:
                self.failed += 1
                self.memory[key] = np.zeros(0)
        found = self.memory[key]
        return found if found.size else None

    def residuals(self, z: Array) -> Array:
        """Return what is left, in deviations of the measurements."""
        left = self.differences(z)
        if left is None:
            return np.full(sum(len(times) for times, _ in self.columns.values()), PENALTY)
        found = left * self._spread_weights()
        self.best = min(self.best, float(found @ found))
        if self.progress is not None:
            self.progress(self.runs, self.best)
        return found

    def _spread_weights(self) -> Array:
        return np.concatenate(
            [np.full(len(times), self.weights[name]) for name, (times, _) in self.columns.items()]
        )

    def jacobian(self, z: Array) -> Array:
        """Return the slopes of the residuals, from central differences within the bounds."""
        columns = []
        for index in range(len(z)):
            ends = []
            for sign in (-1.0, 1.0):
                moved = z.copy()
                size = CHANGE * max(1.0, abs(z[index])) if math.isinf(self.low[index]) else CHANGE
                moved[index] = min(max(z[index] + sign * size, self.low[index]), self.high[index])
                ends.append(moved)
            width = ends[1][index] - ends[0][index]
            columns.append((self.residuals(ends[1]) - self.residuals(ends[0])) / width)
        return np.array(columns).T

    def solve(self, starts: int, seed: int, evaluations: int, confidence: float) -> Fit:
        """Search from several starts, and say how sure the best values are."""
        from scipy.optimize import least_squares

        def search(z: Array) -> Any:
            inside = np.clip(z, self.low, self.high)
            return least_squares(
                self.residuals,
                inside,
                self.jacobian,
                bounds=(self.low, self.high),
                x_scale="jac",
                max_nfev=evaluations,
                xtol=1e-10,
                ftol=1e-12,
            )

        found = [search(z) for z in self._starts(starts, seed)]
        best = min(found, key=lambda each: each.cost)
        if self.known is None and len(self.columns) > 1:  # ports that are measured better count for more
            self._estimate_weights(best.x)
            best = search(best.x)
        if self.differences(best.x) is None:
            raise SimulatorError("the run fails with all parameters that were tried", "fit")
        return self._report(best, tuple(float(each.cost) for each in found), confidence)

    def _starts(self, count: int, seed: int) -> Iterator[Array]:
        yield np.array([each.start for each in self.ranges.values()]) / self.scales
        if count > 1:
            from scipy.stats import qmc

            points = qmc.LatinHypercube(len(self.names), seed=seed).random(count - 1)
            yield from self.low + points * (self.high - self.low)

    def _parts(self, left: Array) -> Iterator[tuple[str, Array]]:
        begin = 0
        for name, (times, _) in self.columns.items():
            yield name, left[begin : begin + len(times)]
            begin += len(times)

    def _estimate_weights(self, z: Array) -> None:
        left = self.differences(z)
        if left is None:
            return
        for name, part in self._parts(left):
            size = float(np.sqrt(np.mean(part**2)))
            if size > 0.0:
                self.weights[name] = 1.0 / size

    def _report(self, best: Any, costs: tuple[float, ...], confidence: float) -> Fit:
        from scipy.stats import norm, t

        z = np.asarray(best.x, dtype=float)
        left = self.differences(z)
        assert left is not None
        jacobian = self.jacobian(z)
        freedom = len(left) - len(z)
        variance = 1.0 if self.known else 2.0 * float(best.cost) / freedom
        inverse = _inverse_of_square(jacobian)
        told = np.isfinite(inverse)
        covariance = np.where(told, variance * np.where(told, inverse, 0.0), inverse)  # not 0 times infinity
        quantile = float((norm if self.known else t(freedom)).ppf(0.5 + 0.5 * confidence))
        deviations = np.sqrt(np.diag(covariance)) * self.scales
        values = z * self.scales
        fitted = tuple(
            FittedParameter(
                name,
                float(value),
                float(value - quantile * deviation),
                float(value + quantile * deviation),
                float(deviation),
                bool(z[k] <= self.low[k] or z[k] >= self.high[k] or best.active_mask[k]),
            )
            for k, (name, value, deviation) in enumerate(zip(self.names, values, deviations, strict=True))
        )
        sizes = np.sqrt(np.diag(covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            correlations = covariance / np.outer(sizes, sizes)
        return Fit(
            fitted,
            confidence,
            {name: float(np.sqrt(np.mean(part**2))) for name, part in self._parts(left)},
            correlations,
            bool(best.success and best.status > 0),
            self.runs,
            self.failed,
            self.experiment(self.values(z)),
            costs,
            self.columns,
        )


def _inverse_of_square(jacobian: Array) -> Array:
    """Return the inverse of J'J; infinite for parameters that what is left does not depend on."""
    sizes = np.linalg.norm(jacobian, axis=0)
    scaled = jacobian / np.where(sizes > 0.0, sizes, 1.0)
    _, singular, rows = np.linalg.svd(scaled, full_matrices=False)
    seen = singular > BLIND * singular.max(initial=0.0)
    unit = np.where(sizes > 0.0, sizes, 1.0)
    inverse = (rows[seen].T / singular[seen] ** 2) @ rows[seen] / np.outer(unit, unit)
    for direction in rows[~seen]:
        lost = np.abs(direction) > 1e-6
        inverse[np.ix_(lost, lost)] = math.inf
    return np.asarray(inverse)
