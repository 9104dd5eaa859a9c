"""An FMU in a process of its own: what crashes or hangs there does not take this one with it.

In:  an Fmu
Out: a live simulator with the same numbers; `native` is what a level steps without Python

`serving.py` runs in the other process. The two share memory; in a step no Python runs on either side.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import weakref
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket import _native
from hocket.errors import SimulatorError
from hocket.model import Array
from hocket.simulators.fmu import live
from hocket.simulators.fmu.endings import obituary
from hocket.simulators.fmu.launching import abandoned, launched
from hocket.simulators.fmu.logs import deliver

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

_OPENING = Fraction(60)
"""Seconds that a process may take to come up, whatever the time limit."""
_EXITING = 1.0
"""Seconds that it may take to end, once the FMU is freed."""


def opened(model: Fmu) -> Isolated:
    """Start a process for the FMU; it comes up while others do, and is waited for by start()."""
    return IsolatedExchange(model) if model.exchange else Isolated(model)


class State:
    """A state that is kept in the other process, until nobody has this any more."""

    def __init__(self, number: int, forgotten: list[int]):
        self.number = number
        self.forgotten = forgotten

    def __del__(self) -> None:
        self.forgotten.append(self.number)


class Isolated:
    """A live FMU in a process of its own."""

    settles = True

    def __init__(self, model: Fmu):
        self.model = model
        self.stop_time: float | None = None
        """When the run will end, if that is known: FMUs are told."""
        self.early = False
        """Whether its level handles steps that end early; set before the start."""
        self._limit = float(model.time_limit)
        self._opening = max(model.time_limit, _OPENING)
        self._number = next(live._counts[model.interface_used.identifier])
        self._launch()

    def _launch(self) -> None:
        self._process, self._door = launched(self.model, self._number)
        self._up = False
        self._forgotten: list[int] = []
        self._finalizer = weakref.finalize(self, abandoned, self._process, self._door, os.getpid())

    def _wait_up(self) -> None:
        """Wait until the FMU is loaded; raises what went wrong with that."""
        if self._up:
            return
        if not self._door.wait_opened(float(self._opening)):
            error = self.fault()
            self._end()
            raise error
        self._up = True
        if pickle.loads(self._door.payload):
            self.native = self._door

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a function of `serving.py`."""
        self._wait_up()
        if not self._door.call(name, pickle.dumps((name, arguments)), self._limit):
            raise self.fault()
        return pickle.loads(self._door.payload)

    # Simulator

    def start(self, t: float) -> None:
        """Start the FMU anew; in a new process if the last one has ended."""
        if self._door.end:
            self._end()
            self._launch()
        self._call("start", float(t), self.stop_time, self.early)
        deliver()

    def ready(self) -> None:
        """Leave initialisation: the inputs are as they shall be."""
        self._call("ready")

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs under these inputs."""
        self._wait_up()
        y: Array | None = self._door.output(t, _plain(u))
        if y is None:
            raise self.fault()
        return y

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h; return the time reached."""
        self._wait_up()
        reached: float | None = self._door.step(t, h, _plain(u))
        if reached is None:
            raise self.fault()
        return reached

    def slope(self, t: float, u: Array) -> Array:
        """Return the time derivatives of the outputs."""
        self._wait_up()
        slopes: Array | None = self._door.slope(t, _plain(u))
        if slopes is None:
            raise self.fault()
        return slopes

    def save(self) -> State:
        """Keep the state there; those that were forgotten meanwhile are freed."""
        forgotten = self._forgotten[:]
        del self._forgotten[: len(forgotten)]
        return State(self._call("save", forgotten), self._forgotten)

    def restore(self, state: State) -> None:
        """Go back to a state; that of an earlier process is not known any more."""
        self._call("restore", state.number if state.forgotten is self._forgotten else None)

    def close(self) -> None:
        """Terminate and free the FMU and end its process, by force if it does not end within a second."""
        try:
            if not self._up:
                self._process.kill()
            elif not self._door.end:
                self._call("close")
        finally:
            self._end()
            deliver()

    def _end(self) -> None:
        self._finalizer.detach()
        self._door.detach()
        try:
            self._process.wait(_EXITING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    # the slow lane

    def text(self, port: int) -> bytes:
        """Return a string or binary output."""
        value: bytes = self._call("text", port)
        return value

    def set_text(self, port: int, value: bytes) -> None:
        """Set a string or binary input."""
        self._call("set_text", port, value)

    # what went wrong

    def fault(self) -> SimulatorError:
        """Return the error for the call that failed last; raises what a Ctrl-C meanwhile has raised."""
        door = self._door
        if not (door.problem or door.end or door.worded):
            door.call("fault", pickle.dumps(("fault", ())), self._limit)
        deliver()
        if door.problem:
            return SimulatorError(door.problem)
        if door.end == "interrupted":
            raise _native.take_raised() or KeyboardInterrupt
        if door.end:
            limit = self._opening if door.asked == "open" else self.model.time_limit
            return obituary(door, limit)
        return SimulatorError(*pickle.loads(door.payload))


class IsolatedExchange(Isolated):
    """A live model exchange FMU in a process of its own, where hocket integrates it."""

    def jacobian(self, t: float, u: Array) -> tuple[Array, Array, Array, Array]:
        """Return A, B, C, D where it stands."""
        matrices: tuple[Array, Array, Array, Array] = self._call("jacobian", t, _plain(u))
        return matrices


def _plain(u: Array) -> Array:
    return np.ascontiguousarray(u, dtype=float)
