"""How equations react to the inputs they shall determine: simulators are opened and tried over two steps.

In:  models that can rewind, equations between their ports, the step
Out: per equation on which derivative the inputs act; the matrix W of a Coupler; or why there is none

Inputs that something else drives stay at their start values meanwhile: W is a first guess of what the
iteration learns, and exact where the models are linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.equations import Equation
from hocket.errors import Fault, HocketError
from hocket.model import Array, Model

GROWS = 1.75
"""What a pulse over one step has done after a second step, over what it had done after the first: up to one
where an input acts on an output or its speed, three where it acts on an acceleration, seven beyond."""
SINGULAR = 1e-10
NUDGES = (1.0, 1e-3)
"""By how much inputs are moved; the smaller one where the larger is not borne."""

Paths = Mapping[str, tuple[str, str]]
"""Model and port of each path."""


class TrialError(Exception):
    """A simulator does not bear to be tried; the arguments say which, and what it said."""


@dataclass(frozen=True)
class Moment:
    """Values of all ports in the equations, and the slopes of those whose models tell them."""

    values: dict[str, float]
    slopes: dict[str, float]


@dataclass(frozen=True)
class PulseTrial:
    """At the start, after a step under some inputs, and after one more under none."""

    start: Moment
    after: Moment
    later: Moment


@dataclass(frozen=True)
class Response:
    """Trials: one as things are, and one for each determined input moved by `nudge`."""

    base: PulseTrial
    moved: tuple[PulseTrial, ...]
    nudge: float


class SensitivityBench:
    """Live simulators, tried over and over from their start."""

    def __init__(
        self,
        models: Mapping[str, Model],
        reads: Paths,
        determined: Paths,
        step: float,
        constants: Mapping[str, float] | None = None,
    ):
        self.models = models
        self.reads = reads
        self.determined = determined
        self.step = step
        self.constants = constants or {}
        """What comes from outside the level."""

    def response(self) -> Response:
        """Try each determined input; raises TrialError."""
        with self._open_simulators() as (live, saved):
            first = np.array([self._start(path) for path in self.determined])
            base = self._trial(live, saved, first, first)
            for nudge in NUDGES:
                try:
                    moved = [
                        self._trial(live, saved, first + nudge * unit, first) for unit in np.eye(len(first))
                    ]
                except TrialError:
                    if nudge == NUDGES[-1]:
                        raise
                    continue
                break
            return Response(base, tuple(moved), nudge)

    def _start(self, path: str) -> float:
        owner, name = self.determined[path]
        return next(port.start or 0.0 for port in self.models[owner].inputs if port.name == name)

    @contextmanager
    def _open_simulators(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        live: dict[str, Any] = {}
        saved: dict[str, Any] = {}
        try:
            for name, model in self.models.items():
                with _report_trial_errors(name):
                    live[name] = simulator = model.open()
                    simulator.start(0.0)
                    simulator.output(0.0, self._inputs(name, {}))
                    if hasattr(simulator, "ready"):
                        simulator.ready()
                    saved[name] = simulator.save()  # type: ignore[attr-defined]
            yield live, saved
        finally:
            for simulator in live.values():
                with suppress(Exception):  # what was learned counts
                    simulator.close()

    def _inputs(self, owner: str, given: Mapping[str, float]) -> Array:
        ports = self.models[owner].inputs
        u = np.array([[port.start or 0.0 for port in ports]], dtype=float).reshape(1, len(ports))
        names = [port.name for port in ports]
        for path, value in given.items():
            if self.determined[path][0] == owner:
                u[0, names.index(self.determined[path][1])] = value
        return u

    def _trial(self, live: dict[str, Any], saved: dict[str, Any], u: Array, after: Array) -> PulseTrial:
        given, none = (dict(zip(self.determined, each.tolist(), strict=True)) for each in (u, after))
        for name, simulator in live.items():
            with _report_trial_errors(name):
                simulator.restore(saved[name])
        moments = [self._moment(live, 0.0, given)]
        for number, inputs in enumerate((given, none)):
            for name, simulator in live.items():
                with _report_trial_errors(name):
                    simulator.step(number * self.step, self.step, self._inputs(name, inputs))
            moments.append(self._moment(live, (number + 1) * self.step, inputs))
        return PulseTrial(*moments)

    def _moment(self, live: dict[str, Any], t: float, given: Mapping[str, float]) -> Moment:
        values, slopes = {**self.constants, **given}, dict.fromkeys(given, 0.0)
        for name, simulator in live.items():
            model = self.models[name]
            with _report_trial_errors(name):
                u = self._inputs(name, given)
                y = np.array(simulator.output(t, u), dtype=float).reshape(-1)
                dy = np.array(simulator.slope(t, u), dtype=float) if model.abilities.slopes else None
            numbers = {port.name: number for number, port in enumerate(model.outputs)}
            for path, (owner, port) in self.reads.items():
                if owner == name:
                    values[path] = float(y[numbers[port]])
                    if dy is not None:
                        slopes[path] = float(dy[numbers[port]])
        if not all(map(np.isfinite, values.values())):
            path = next(path for path, value in values.items() if not np.isfinite(value))
            raise TrialError(path, f"is {values[path]}")
        return Moment(values, slopes)


@contextmanager
def _report_trial_errors(name: str) -> Iterator[None]:
    try:
        yield
    except HocketError as error:
        raise TrialError(name, error.faults[0].what) from error
    except Exception as error:
        raise TrialError(name, f"{type(error).__name__}: {error}") from error


def changes(response: Response, evaluate: Callable[[Moment, Moment], Any]) -> tuple[Array, Array]:
    """Return by how much something changes per unit of each input, after the step and one step later.

    What is evaluated depends on the moment, and on the one a step before.
    """
    found = []
    for now, before in (("after", "start"), ("later", "after")):
        base = _evaluate_trial(response.base, evaluate, now, before)
        columns = [_evaluate_trial(trial, evaluate, now, before) - base for trial in response.moved]
        found.append(np.array(columns).T.reshape(len(base), len(columns)) / response.nudge)
    return found[0], found[1]


def _evaluate_trial(
    trial: PulseTrial, evaluate: Callable[[Moment, Moment], Any], now: str, before: str
) -> Array:
    return np.array(evaluate(getattr(trial, now), getattr(trial, before)), dtype=float)


def outputs_reacting_at_once(response: Response) -> set[str]:
    """Return the outputs that react at once to a determined input."""
    start = response.base.start.values
    return {
        path
        for trial in response.moved
        for path, value in trial.start.values.items()
        if abs(value - start[path]) > 1e-12 * max(1.0, abs(value))
    }


def equations_acted_at_once(response: Response, equations: Sequence[Equation]) -> Array:
    """Return per equation whether a determined input acts on it at once."""
    base = np.array(residuals(equations, response.base.start))
    moved = [np.array(residuals(equations, trial.start)) for trial in response.moved]
    largest = np.max([np.abs(each - base) for each in moved], axis=0, initial=0.0)
    return np.asarray(largest > 1e-12 * np.maximum(1.0, np.abs(base)))


def midpoint_values(now: Moment, before: Moment) -> dict[str, float]:
    """Return the values in the middle of a step."""
    return {path: 0.5 * (value + before.values[path]) for path, value in now.values.items()}


def pulse_growth(now: Array, later: Array) -> Array:
    """Return per equation by how much the answer to a pulse grows in the step after it."""
    first, then = np.abs(now).max(axis=1, initial=0.0), np.abs(later).max(axis=1, initial=0.0)
    return np.where(then > 0.0, then / np.maximum(first, 1e-300), 0.0)


def residuals(equations: Sequence[Equation], moment: Moment) -> list[float]:
    """Return left - right of each equation."""
    return [float(equation.residual(moment.values)) for equation in equations]


def invert_sensitivity(
    S: Array, equations: Sequence[str], inputs: Sequence[str], where: str
) -> Array | list[Fault]:
    """Return the inverse of how equations react to inputs, or why there is none."""
    deaf = [text for text, row in zip(equations, S, strict=True) if not np.abs(row).max() > 0.0]
    listed = " and ".join(f"`{path}`" for path in inputs)
    if deaf:
        what = f"`{deaf[0]}` does not react to {listed} within a step"
        hint = "is there a way from these inputs to the outputs in it? does it act later than a step?"
        return [Fault(what, where, "inputs that act on what is asked of them", hint)]
    idle = [path for path, column in zip(inputs, S.T, strict=True) if not np.abs(column).max() > 0.0]
    if idle:
        what = f"`{idle[0]}` has no influence on the equations"
        return [Fault(what, where, "inputs that act on what is asked of them")]
    rows = S / np.abs(S).max(axis=1, keepdims=True)
    scaled = rows / np.abs(rows).max(axis=0, keepdims=True)
    sizes = np.linalg.svd(scaled, compute_uv=False)
    if sizes[-1] < SINGULAR * sizes[0]:
        what = f"the equations cannot tell {listed} apart: they react to them in the same way"
        hint = "one equation may follow from the others; for a force and its counterforce, say which is which"
        return [Fault(what, where, "equations that do not depend on each other", hint)]
    return np.array(np.linalg.inv(S), dtype=np.float64)
