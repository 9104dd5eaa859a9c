"""What a simulator is called with, what it may return, and what is said when it fails.

In:  numbers, or an exception out of somebody else's code
Out: arrays that can be trusted, or a SimulatorError with name, call and time
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hocket.errors import EndRequestError, HocketError, SimulatorError
from hocket.model.protocols import Array, Model, bookkeeping_ports


class EarlyError(SimulatorError):
    """A step did not reach its end."""

    def __init__(self, name: str, reached: float, t: float, h: float, end: float):
        self.reached = reached
        super().__init__(
            f"`{name}` stopped at {reached!r} s instead of {end!r} s",
            where=f"step from t = {t!r} s by {h!r} s",
            hint="a shorter macro step; or an FMU with early_return=True, if all others can roll back",
        )


def read_only(u: Array) -> Array:
    """Return a view that a simulator cannot write into."""
    view = u.view()
    view.flags.writeable = False
    return view


def output_array(returned: Any, count: int) -> Array:
    """Return what output() returned as an array; rows are kept as they are."""
    if returned is None:
        raise TypeError(f"output() returned None, expected {count} numbers")
    y = np.asarray(returned)
    if y.dtype.kind not in "biuf":
        raise TypeError(f"output() returned {returned!r:.60}, expected {count} numbers")
    y = y.astype(float).reshape(1) if y.ndim == 0 else y.astype(float)
    if len(y) != count:
        raise ValueError(f"{len(y)} outputs were returned, expected {count}")
    return y


def simulator_error(name: str, call: str, t: float, error: Exception) -> SimulatorError:
    """Return the error of a simulator with its name, the call and the time."""
    where = f"`{name}`, {call}() at t = {t!r} s{_raising_line(error)}"
    if isinstance(error, HocketError):
        fault = error.faults[0]
        if isinstance(error, EndRequestError):
            request = EndRequestError(fault.what, where=where)
            request.by = name
            return request
        return SimulatorError(fault.what, where=where, expected=fault.expected, hint=fault.hint)
    return SimulatorError(f"`{name}` raised {type(error).__name__}: {error}", where=where)


@contextmanager
def blame(name: str, call: str, t: float) -> Iterator[None]:
    """Give what a simulator raises in a call its name, the call and the time."""
    try:
        yield
    except Exception as error:
        raise simulator_error(name, call, t, error) from error


def _raising_line(error: Exception) -> str:
    """Return the line of the simulator's own code that raised, if it has one."""
    frames = traceback.extract_tb(error.__traceback__)
    package = str(Path(__file__).parents[1])
    theirs = [frame for frame in frames if not frame.filename.startswith(package)]
    return f", {Path(theirs[-1].filename).name} line {theirs[-1].lineno}" if theirs else ""


def not_finite(name: str, model: Model, port: int, value: float, t: float) -> SimulatorError:
    """Return the error for an output that is NaN or infinite; ports that only bonds want have no name."""
    output = model.outputs[port].name
    hidden = output in bookkeeping_ports(model)
    return SimulatorError(
        f"the energy that `{name}` hands over is {value}" if hidden else f"`{name}.{output}` is {value}",
        where=f"output at t = {t!r} s",
        expected="a finite number",
        hint="a smaller step, if the coupling is unstable; else look into the simulator",
    )
