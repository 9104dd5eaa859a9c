"""Model exchange with steps that solvers choose: an adaptive explicit pair, CVODE for stiff systems.

In:  a live FMU that tells its rates
Out: live simulators; events are located between the solver's steps
"""

from __future__ import annotations

import contextlib
import io
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import ScenarioError, SimulatorError
from hocket.model.protocols import Array
from hocket.simulators.fmu.exchange import ModelExchange, gives_directional, state_slopes
from hocket.simulators.fmu.live import _contiguous_array

_EVENTS, _STILL = 10_000, 1000
"""So many in one step, or at one time, are taken to be endless."""
_HALVINGS = 40
"""Of a solver's step, until an event is located."""
_TINY = 1e-13

Between: TypeAlias = Callable[[float], Array]


class _SolverSimulator(ABC):
    """A model exchange FMU and a solver. It has no `native`: its steps are made in Python."""

    settles = True

    def __init__(self, live: ModelExchange):
        self.live = live
        self.model = live.model
        self.longest = None if self.model.step is None else float(self.model.step)
        self.size: float | None = None
        """The solver's step to begin with; None: the whole step."""
        self._trusted = False
        self._trial: _Trial | None = None

    @property
    def stop_time(self) -> float | None:
        """When the run will end, if that is known."""
        return self.live.stop_time

    @stop_time.setter
    def stop_time(self, stop: float | None) -> None:
        self.live.stop_time = stop

    # Simulator

    def start(self, t: float) -> None:
        """Instantiate the FMU anew, and enter initialisation at time t."""
        self.size = None
        self._trial = None
        self.live.start(t)

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs under these inputs."""
        return self.live.output(t, u)

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h."""
        self._advance(t, h, u)
        if self._trial is not None and self._trial.step is None:
            self._trial.step = t, h, np.array(u), self._current_outputs()
        return t + h

    def save(self) -> Any:
        """Return the FMU's state, and the solver's step."""
        state = self.live.save(), self.size
        if not self._trusted and (self._trial is None or self._trial.step is None):
            self._trial = _Trial(state)
        return state

    def restore(self, state: Any) -> None:
        """Go back; the first time it is checked that the FMU goes on from there as before."""
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

    def _restore(self, state: Any) -> None:
        self.live.restore(state[0])
        self.size = state[1]

    def _current_outputs(self) -> Array:
        return self.live.output(0.0, self.live.exchange.inputs[np.newaxis])

    def close(self) -> None:
        """Terminate and free the FMU."""
        self.live.close()

    def text(self, port: int) -> bytes:
        """Return a string or binary output."""
        return self.live.text(port)

    def set_text(self, port: int, value: bytes) -> None:
        """Set a string or binary input."""
        self.live.set_text(port, value)

    def fault(self) -> SimulatorError:
        """Return the error for the call that failed last."""
        return self.live.fault()

    def jacobian(self, t: float, u: Array) -> tuple[Array, Array, Array, Array]:
        """Return A, B, C, D where it stands."""
        return self.live.jacobian(t, u)

    # the step

    def _advance(self, t: float, h: float, u: Array) -> None:
        exchange = self.live.exchange
        self._require_success(exchange.enter(t, _contiguous_array(u)))
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
                self._require_success(exchange.event())
        exchange.leave()

    def _integrate(self, exchange: Any, t: float, s: float, stop: float) -> tuple[float, bool]:
        """Integrate up to `stop`, or to an event before it; return the time reached, and if by an event."""
        self._require_success(exchange.watch(s, stop - s))
        if stop - s <= _TINY * max(
            abs(t), stop
        ):  # what rounding leaves beside an event: no solver begins there
            x = exchange.x
            return stop, bool(
                self._require_answer(exchange.accept(stop, x + (stop - s) * self._rates(exchange, s, x)))
            )
        for low, high, x, between in self._steps(exchange, t, s, stop):
            crossed = bool(self._require_answer(exchange.crossed(high, x)))
            if crossed:
                high, x = self._locate_event(exchange, low, high, x, between())
            if self._require_answer(exchange.accept(high, x)) or crossed:
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
            if self._require_answer(exchange.crossed(middle, there)):
                high, x = middle, there
            else:
                low = middle
        return high, x

    @abstractmethod
    def _steps(
        self, exchange: Any, t: float, s: float, stop: float
    ) -> Iterator[tuple[float, float, Array, Callable[[], Between]]]:
        """Yield the solver's steps: from, to, the state there, and what tells the states between."""

    def _rates(self, exchange: Any, s: float, x: Array) -> Array:
        rates: Array | None = exchange.rates(s, x)
        if rates is None:
            if not exchange.discarded:
                raise self.fault()
            rates = np.full(len(x), math.nan)  # the solver tries a shorter step
        return rates

    def _tolerances(self, exchange: Any) -> Array:
        nominals = exchange.nominals()
        self._require_success(nominals is not None)
        return np.asarray(self.model.atol * np.where(nominals > 0.0, nominals, 1.0))

    def _require_success(self, good: bool) -> None:
        if not good:
            raise self.fault()

    def _require_answer(self, answer: int) -> int:
        if answer < 0:
            raise self.fault()
        return answer

    def _solver_error(self, t: float, why: str, hint: str) -> SimulatorError:
        return SimulatorError(f"`{self.model.method}` failed at t = {t:.9g}: {why}", hint=hint)


class _Trial:
    """The first step after a save: the first rewind is not believed, it is made again."""

    def __init__(self, state: Any):
        self.state = state
        self.step: tuple[float, float, Array, Array] | None = None
        """Time, length, inputs, and the outputs after it."""


class DormandPrince(_SolverSimulator):
    """Dormand and Prince's pair of order 5, or of order 8 where rtol < 1e-8."""

    def _steps(
        self, exchange: Any, t: float, s: float, stop: float
    ) -> Iterator[tuple[float, float, Array, Callable[[], Between]]]:
        from scipy.integrate import DOP853, RK45

        kind = RK45 if self.model.rtol >= 1e-8 else DOP853
        solver = kind(
            lambda s, x: self._rates(exchange, s, x),
            s,
            exchange.x,
            stop,
            rtol=self.model.rtol,
            atol=self._tolerances(exchange),
            max_step=self.longest or math.inf,
            first_step=min(self.size or stop - s, stop - s),
        )
        while solver.status == "running":
            why = solver.step()
            if solver.status == "failed":
                hint = "method `cvode` if it is stiff; larger tolerances"
                raise self._solver_error(t + solver.t, why or "", hint)
            self.size = float(solver.h_abs)
            yield float(solver.t_old), float(solver.t), solver.y, solver.dense_output


class Cvode(_SolverSimulator):
    """Backward differentiation formulas of SUNDIALS, begun anew in every step and after every event."""

    def __init__(self, live: ModelExchange):
        super().__init__(live)
        try:
            from sksundae.cvode import CVODE
        except ImportError:
            what = "method `cvode` needs the package scikit-sundae, which is not installed"
            raise ScenarioError(what, hint="pip install hocket[stiff]") from None
        os.environ.setdefault("SUNLOGGER_WARNING_FILENAME", os.devnull)  # else it prints on standard output
        self.kind = CVODE
        self.solver: Any = None
        self.tolerances: Array | None = None

    def close(self) -> None:
        """Terminate and free the FMU."""
        self.solver = self.tolerances = None
        super().close()

    def _steps(
        self, exchange: Any, t: float, s: float, stop: float
    ) -> Iterator[tuple[float, float, Array, Callable[[], Between]]]:
        self._prepare(exchange)
        self.solver.init_step(s, exchange.x)
        each = exchange.indicators or self.model.interface_used.completed_step
        reached = s
        while reached < stop:
            result = self._call(t, stop, "onestep" if each else "normal", stop)
            low, reached = reached, float(result.t)
            yield low, reached, np.array(result.y, dtype=float), lambda: self._interpolate_states(t)

    def _prepare(self, exchange: Any) -> None:
        """Make a solver, anew where nominal values have changed."""
        tolerances = self._tolerances(exchange)
        if self.tolerances is not None and np.array_equal(self.tolerances, tolerances):
            return

        def rates(s: float, x: Array, filled: Array) -> None:
            filled[:] = self._rates(exchange, s, x)

        def slopes(s: float, x: Array, _: Array, filled: Array) -> None:
            self._rates(exchange, s, x)  # it must stand there
            filled[:] = state_slopes(self.live)

        self.tolerances = tolerances
        self.solver = self.kind(
            rates,
            rtol=self.model.rtol,
            atol=tolerances,
            max_step=self.longest or 0.0,
            max_num_steps=100_000,
            **({"jacfn": slopes} if gives_directional(self.live) else {}),
        )

    def _interpolate_states(self, t: float) -> Between:
        """Return the states within the solver's last step: it interpolates when asked for an earlier time."""
        return lambda s: np.array(self._call(t, s, "normal", None).y, dtype=float)

    def _call(self, t: float, s: float, way: str, stop: float | None) -> Any:
        with contextlib.redirect_stdout(io.StringIO()) as said:  # it prints what went wrong
            result = self.solver.step(s, method=way, tstop=stop)
        if not result.success:
            why = " ".join(said.getvalue().split()) or result.message
            raise self._solver_error(t + result.t, why, "larger tolerances")
        print(said.getvalue(), end="")
        return result
