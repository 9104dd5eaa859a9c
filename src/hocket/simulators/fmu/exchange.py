"""A model exchange FMU at work: hocket integrates it, and lets it handle its events.

In:  an Fmu
Out: a live simulator; with a fixed-step method `native` is what a level steps without Python, else events are
     located between the steps of a solver
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import EndRequestError, SimulatorError
from hocket.model.protocols import Array, Simulator
from hocket.simulators.fmu.directional import (
    directional_columns,
    directional_slopes,
    gives_directional,
    moving_inputs,
    rate_variables,
)
from hocket.simulators.fmu.live import (
    ELSEWHERE,
    CoSimulation,
    FmuInstants,
    contiguous_array,
    load_fmu,
    state_count,
    state_ranges,
)
from hocket.simulators.fmu.ports import element_names
from hocket.simulators.methods import Cvode, DormandPrince, import_cvode

_NUDGE = float(np.finfo(float).eps) ** (1 / 3)
"""Where central differences err least."""
_DIFFER = 1e-4
"""How far directional derivatives may be from differences, which have their own errors."""
_EVENTS, _STILL = 10_000, 1000
"""So many in one step, or at one time, are taken to be endless."""
_HALVINGS = 40
"""Of a solver's step, until an event is located."""
_TINY = 1e-13
AT_END = 2
"""What `postpone` answers where an event is at the end of a step."""

Between: TypeAlias = Callable[[float], Array]
SolverSteps: TypeAlias = Iterator[tuple[float, float, Array, Callable[[], Between]]]
"""From, to, the state there, and what tells the states between."""


def open_simulator(model: Any, events: bool = False) -> Simulator:
    """Load the FMU; nothing is instantiated yet. With `events` it can take part in instants."""
    elsewhere = model.method in ELSEWHERE and bool(state_count(model))
    return load_fmu(_KINDS[model.method if elsewhere else "", events], model)


class ModelExchange(CoSimulation):
    """A live model exchange FMU, integrated by compiled code with a fixed-step method."""

    @property
    def exchange(self) -> Any:
        """What a solver elsewhere calls; the FMU leaves initialisation, if that is still to do."""
        self._require(self.driver.ready())
        return self.driver.exchange

    def jacobian(self, t: float, u: Array) -> tuple[Array, Array, Array, Array]:
        """Return A, B, C, D where it stands: x' = A x + B u, y = C x + D u for small changes.

        Inputs that only change at events have columns of zeros, outputs that are not real rows of zeros.
        """
        whole, size = self.slopes(u)[0], len(self.exchange.x)
        return whole[:size, :size], whole[:size, size:], whole[size:, :size], whole[size:, size:]

    def slopes(self, u: Array) -> tuple[Array, str]:
        """Return the slopes of rates and outputs over states and inputs, and why not those it gives itself.

        Its directional derivatives are taken where they agree with central differences.
        """
        exchange = self.exchange
        x, kept = exchange.x, exchange.inputs
        size, point = len(x), np.concatenate([x, contiguous_array(u)[0]])
        found, doubt = self._differences(point, size), ""
        if gives_directional(self):
            self._evaluate_at(point, size)
            rows, given = directional_slopes(self, len(point))
            if given is None:
                doubt = f"it gives no directional derivatives ({self.driver.problem}): differences are used"
            else:
                doubt = self._disagreement(point, size, rows, given, found[rows])
                if not doubt:
                    found[rows] = given
        self._evaluate_at(np.concatenate([x, kept]), size)
        return found, doubt

    def _disagreement(self, point: Array, size: int, rows: list[int], given: Array, found: Array) -> str:
        """Return where directional derivatives are not the differences, beyond their noise; "": nowhere."""
        scales = self._scales(point, size)
        one, other = given * scales, found * scales
        apart, largest = np.abs(one - other), np.maximum(np.abs(one), np.abs(other))
        bound = _DIFFER * largest + 1e-3 * _DIFFER * largest.max(axis=1, initial=0.0, keepdims=True)
        if (apart <= bound).all():
            return ""
        coarse = self._differences(point, size, 16.0 * _NUDGE)[rows] * scales
        excess = np.where(np.isfinite(apart), apart - bound - 4.0 * np.abs(coarse - other), np.inf)
        if excess.max() <= 0.0:
            return ""
        row, column = divmod(int(excess.argmax()), excess.shape[1])
        unknowns, knowns = self._names()
        numbers = f"{given[row, column]:.6g}, by differences {found[row, column]:.6g}"
        which = f"of `{unknowns[rows[row]]}` over `{knowns[column]}`"
        return f"its directional derivative {which} is {numbers}: differences are used"

    def _names(self) -> tuple[list[str], list[str]]:
        """Return the names of rates and outputs, and those of states and inputs."""
        model, sizes = self.model, self.model.settings.sizes
        states = [name for state, _ in state_ranges(model) for name in element_names(state, sizes)]
        rates = [name for rate in rate_variables(self.model) for name in element_names(rate, sizes)]
        return rates + [port.name for port in model.outputs], states + [port.name for port in model.inputs]

    def _scales(self, point: Array, size: int) -> Array:
        """Return the size of each state and input: its value or its nominal value."""
        nominals = np.concatenate([self._require(self.exchange.nominals()), np.ones(len(point) - size)])
        for variable, columns in moving_inputs(self.model, size):
            nominals[list(columns)] = variable.nominal or 1.0
        return np.asarray(np.maximum(np.abs(point), np.abs(nominals)))

    def _differences(self, point: Array, size: int, part: float = _NUDGE) -> Array:
        """Return the slopes of rates and outputs, from central differences by a part of each scale."""
        scales = self._scales(point, size)
        slopes = np.zeros((size + len(self.model.outputs), len(point)))
        for column in (*range(size), *(n for _, columns in moving_inputs(self.model, size) for n in columns)):
            ends, moved = [], []
            for sign in (1.0, -1.0):
                there = point.copy()
                there[column] += sign * part * scales[column]
                moved.append(there[column])
                ends.append(self._evaluate_at(there, size))
            slopes[:, column] = (ends[0] - ends[1]) / (moved[0] - moved[1])
        slopes[[size + n for n, port in enumerate(self.model.outputs) if port.type != "real"]] = 0.0
        return slopes

    def _evaluate_at(self, point: Array, size: int) -> Array:
        """Return rates and outputs at other states and inputs."""
        states, inputs = point[:size].copy(), point[size:].copy()
        return np.concatenate(self._require(self.exchange.probe(states, inputs, len(self.model.outputs))))


@dataclass
class _Trial:
    """The first step after a save: the first rollback is not believed, it is made again."""

    state: Any
    step: tuple[float, float, Array, Array] | None = None
    """Time, length, inputs, and the outputs after it."""


_BLIND = 100.0
"""A solver is said not to control states that never are so many times its absolute tolerance."""


class SolvedExchange(ModelExchange):
    """A model exchange FMU and a solver."""

    def __init__(self, model: Any):
        super().__init__(model)
        self.longest = None if model.step is None else float(model.step)
        self._trusted = False
        self._trial: _Trial | None = None
        self._largest: Array = np.zeros(0)
        """The largest size of each state so far, after steps."""

    @property
    def native(self) -> Any:
        """None: steps are made in Python, and the native engine must not step the compiled code inside."""
        return None

    def start(self, t: float) -> None:
        self._trial, self._largest = None, np.zeros(0)
        super().start(t)

    def driver_notes(self) -> list[str]:
        """Return what the FMU could not do, and that its solver could not see its states for their size."""
        notes, largest = super().driver_notes(), self._largest
        if np.isfinite(largest).all() and largest.any() and not self.driver.ended:
            tolerances = self._tolerances(self.exchange)
            if np.all(largest < _BLIND * tolerances):
                what = f"its states stay below {largest.max():.2g}, and its solver lets errors of "
                fitting = 1e-3 * self.model.rtol * largest[largest > 0.0].min()
                remedy = f"`atol` of {fitting:.0e} would"
                return [
                    *notes,
                    f"{what}{tolerances.max():.2g} (atol) pass: it does not control them; {remedy}",
                ]
        return notes

    def step(self, t: float, h: float, u: Array) -> float:
        before = np.abs(self.exchange.x)
        reached = self._advance(t, h, u)
        size = np.maximum(before, np.abs(self.exchange.x))
        self._largest = np.maximum(self._largest, size) if self._largest.size else size
        if reached < t + h:
            return reached
        if self._trial is not None and self._trial.step is None:
            self._trial.step = t, h, np.array(u), self._current_outputs()
        return t + h

    def save(self) -> Any:
        state = self._save()
        if not self._trusted and (self._trial is None or self._trial.step is None):
            self._trial = _Trial(state)
        return state

    def restore(self, state: Any) -> None:
        """Roll back; the first time it is checked that the FMU goes on from there as before."""
        self._restore(state)
        trial, self._trial = self._trial, None
        if self._trusted or trial is None or trial.state is not state or trial.step is None:
            return
        t, h, u, before = trial.step
        self._advance(t, h, u)
        after = self._current_outputs()
        if not np.allclose(after, before, rtol=1e-9, atol=1e-9, equal_nan=True):
            what = "it says that it can save and restore its state, but the same step"
            raise SimulatorError(f"{what} from t = {t:.12g} s ended at {before} before and at {after} after")
        self._trusted = True
        self._restore(state)

    def _save(self) -> Any:
        return (super().save(),)

    def _restore(self, state: Any) -> None:
        super().restore(state[0])

    def _current_outputs(self) -> Array:
        return self.output(0.0, self.exchange.inputs[np.newaxis])

    def _advance(self, t: float, h: float, u: Array) -> float:
        """Go to the end, or to an event that the level meets; return the time reached."""
        exchange = self.exchange
        if self.driver.ended:
            raise EndRequestError("it has asked to end the simulation")
        self._require(exchange.enter(t, contiguous_array(u)))
        end, t, h = t + h, t + exchange.lag, h - exchange.lag  # it goes on from where it stands
        s, events, still = 0.0, 0, 0
        while s < h:
            timed = exchange.due(h)
            stop = min(max(timed, s), h)
            happens = stop >= timed
            still += 1
            if stop > s:
                still = 0
                with np.errstate(all="ignore"):  # numbers that are not finite show in the outputs
                    s, event = self._integrate(exchange, t, s, stop)
                happens = event or (happens and s == stop)
            if happens:
                events += 1
                if events > _EVENTS or still > _STILL:
                    what = f"its events do not settle: {events} of them between {t:g} s and {t + s:g} s"
                    raise SimulatorError(what)
                left = exchange.postpone(s, h)
                if left:
                    exchange.leave()
                    return end if left == AT_END else t + s
                self._require(exchange.event())
            if s < h and self.driver.ended:
                raise EndRequestError("it asks to end the simulation")
        exchange.leave()
        return end

    def _integrate(self, exchange: Any, t: float, s: float, stop: float) -> tuple[float, bool]:
        """Integrate up to `stop`, or to an event before it; return the time reached, and if by an event."""
        self._require(exchange.watch(s, stop - s))
        # what rounding leaves beside an event: no solver begins there
        if stop - s <= _TINY * max(abs(t), stop):
            x = exchange.x + (stop - s) * self._rates(exchange, s, exchange.x)
            return stop, bool(self._require(exchange.accept(stop, x)))
        for low, high, x, between in self._steps(exchange, t, s, stop):
            crossed = bool(self._require(exchange.crossed(high, x)))
            if crossed:
                high, x = self._locate_event(exchange, low, high, x, between())
            if self._require(exchange.accept(high, x)) or crossed:
                return high, True
        return stop, False

    def _locate_event(
        self, exchange: Any, low: float, high: float, x: Array, between: Between
    ) -> tuple[float, Array]:
        """Return the time just behind the first crossing, and the state there."""
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            there = between(middle)
            if self._require(exchange.crossed(middle, there)):
                high, x = middle, there
            else:
                low = middle
        return high, x

    @abstractmethod
    def _steps(self, exchange: Any, t: float, s: float, stop: float) -> SolverSteps:
        """Yield the solver's steps."""

    def _rates(self, exchange: Any, s: float, x: Array) -> Array:
        rates: Array | None = exchange.rates(s, x)
        if rates is None:
            if not exchange.discarded:
                raise self.fault()
            rates = np.full(len(x), math.nan)  # the solver tries a shorter step
        return rates

    def _tolerances(self, exchange: Any) -> Array:
        nominals = self._require(exchange.nominals())
        return np.asarray(self.model.atol * np.where(nominals > 0.0, nominals, 1.0))


class DormandPrinceExchange(SolvedExchange):
    """Integrated by an adaptive explicit pair."""

    def __init__(self, model: Any):
        super().__init__(model)
        self.pair = DormandPrince(model.rtol, self.longest)

    def start(self, t: float) -> None:
        self.pair.size = None
        super().start(t)

    def _save(self) -> Any:
        return *super()._save(), self.pair.size

    def _restore(self, state: Any) -> None:
        super()._restore(state)
        self.pair.size = state[1]

    def _steps(self, exchange: Any, t: float, s: float, stop: float) -> SolverSteps:
        def rates(s: float, x: Array) -> Array:
            return self._rates(exchange, s, x)

        for solver in self.pair.steps(rates, t, s, exchange.x, stop, self._tolerances(exchange)):
            yield float(solver.t_old), float(solver.t), solver.y, solver.dense_output


class CvodeExchange(SolvedExchange):
    """Integrated by CVODE, begun anew in every step and after every event."""

    def __init__(self, model: Any):
        super().__init__(model)
        import_cvode()
        self.solver: Cvode | None = None
        self.tolerances: Array | None = None

    def close(self) -> None:
        self.solver = self.tolerances = None
        super().close()

    def _steps(self, exchange: Any, t: float, s: float, stop: float) -> SolverSteps:
        solver = self._prepare_solver(exchange)
        solver.begin(s, exchange.x)
        each = exchange.indicators or self.model.interface_used.completed_step
        reached = s
        while reached < stop:
            low, (reached, x) = reached, solver.step(t, stop, "onestep" if each else "normal", stop)
            # it interpolates when it is asked for an earlier time
            yield low, reached, x, lambda: lambda s: solver.step(t, s, "normal", None)[1]

    def _prepare_solver(self, exchange: Any) -> Cvode:
        """Return a solver, a new one where nominal values have changed."""
        tolerances = self._tolerances(exchange)
        if self.solver is not None and np.array_equal(self.tolerances, tolerances):  # type: ignore[arg-type]
            return self.solver

        def rates(s: float, x: Array, filled: Array) -> None:
            filled[:] = self._rates(exchange, s, x)

        def slopes(s: float, x: Array, _: Array, filled: Array) -> None:
            self._rates(exchange, s, x)  # it must stand there
            unknowns, size = rate_variables(self.model), len(x)
            states = state_ranges(self.model)
            columns = (
                directional_columns(self, unknowns, each, len(places), size) for each, places in states
            )
            filled[:] = np.hstack([self._require(part) for part in columns])

        jacobian = slopes if gives_directional(self) else None
        self.tolerances = tolerances
        self.solver = Cvode(rates, self.model.rtol, tolerances, self.longest, jacobian)
        return self.solver


class EventExchange(ModelExchange, FmuInstants):
    """A model exchange FMU with events, integrated by compiled code."""


class EventDormandPrinceExchange(DormandPrinceExchange, FmuInstants):
    """One integrated by an adaptive explicit pair."""


class EventCvodeExchange(CvodeExchange, FmuInstants):
    """One integrated by CVODE."""


_KINDS: dict[tuple[str, bool], type[ModelExchange]] = {
    ("", False): ModelExchange,
    ("", True): EventExchange,
    ("adaptive", False): DormandPrinceExchange,
    ("adaptive", True): EventDormandPrinceExchange,
    ("cvode", False): CvodeExchange,
    ("cvode", True): EventCvodeExchange,
}
"""By the method whose steps are made in Python, if one is, and whether it has events."""
