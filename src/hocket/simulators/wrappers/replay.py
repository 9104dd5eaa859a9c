"""Going back for those who cannot: what was done is done again, by a simulator opened anew.

In:  a Model whose simulators cannot go back
Out: a Model like it whose simulators can; going back to step n costs n steps
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from hocket.errors import ScenarioError, SimulatorError
from hocket.model.composite import as_level
from hocket.model.ports import Port
from hocket.model.protocols import Array, Capabilities, Model, Simulator

_SHARED = ("class_name", "path", "is_isolated", "step", "period")
"""What else is read off models, where they have it."""
_SETTINGS = ("stop_time", "early")
"""What engines may set on a simulator before it starts."""


@dataclass(frozen=True)
class Replay:
    """A model like the one inside that can go back, by making all steps again from the start.

    For simulators that are cheap, or runs that are short: n steps, each made twice, cost about n * n / 2.
    They must repeat themselves exactly; one that does not is found out. Texts are not handed on.
    """

    model: Model
    emulates: ClassVar[str] = "rewind"
    emulation: ClassVar[str] = "rewind by replay"
    price: ClassVar[str] = "a run of n steps costs n^2/2"

    def __post_init__(self) -> None:
        if isinstance(self.model, type) or not hasattr(self.model, "open"):
            raise ScenarioError(f"`{self.model!r:.60}` is no model", "Replay", "such as `Python(Tank)`")
        if as_level(self.model) is not None:
            hint = "`Replay` around each of those in it that cannot go back"
            raise ScenarioError("a level is not replayed as a whole", "Replay", "one simulator", hint)

    def __getattr__(self, name: str) -> Any:
        if name in _SHARED:
            return getattr(self.model, name)
        raise AttributeError(f"`Replay` has no attribute `{name}`")

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Those of the model inside."""
        return self.model.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Those of the model inside."""
        return self.model.outputs

    @property
    def abilities(self) -> Capabilities:
        """Those of the model inside, and to go back; micro steps are not told, they would come twice."""
        return replace(self.model.abilities, rewind=True, micro=False)

    def without_period(self) -> Replay:
        """Return the same model in the step of its level."""
        inner: Any = self.model
        return Replay(inner.without_period())

    def open(self) -> Simulator:
        """Make a live simulator that notes what is done to it."""
        return _ReplaySimulator(self.model)


@dataclass(slots=True)
class _Call:
    """What was done, and after what."""

    before: int
    """The number of the call before it; -1: none."""
    name: str
    arguments: tuple[Any, ...]
    answer: Any = None
    seen: tuple[float, Array, Array] | None = None
    """Time, inputs and outputs, when the outputs were last asked for after it."""


class _ReplaySimulator:
    """A simulator and the calls that brought it where it is; a state is the number of the last one.

    Calls are kept for good, those of abandoned ways too: any state may be asked for again.
    """

    def __init__(self, model: Model):
        self.model = model
        self.calls: list[_Call] = []
        self.at = -1
        self.beginning = False
        """Inputs may still change the initial state."""
        self.inner: Any = model.open()
        self.settles = bool(getattr(self.inner, "settles", False))
        for name in _SETTINGS:
            if hasattr(self.inner, name):
                setattr(self, name, getattr(self.inner, name))
        if hasattr(self.inner, "ready"):
            self.ready = partial(self._record_call, "ready")
        if hasattr(self.inner, "slope"):
            self.slope = self._slope

    def start(self, t: float) -> None:
        """Begin a new way."""
        self.at = -1
        self._record_call("start", t)

    def output(self, t: float, u: Array) -> Array:
        """Ask the one inside."""
        given = _read_only_copy(u)
        y: Array = self._record_call("output", t, given) if self.beginning else self.inner.output(t, given)
        if self.at >= 0:
            self.calls[self.at].seen = t, given, np.array(y)
        return y

    def step(self, t: float, h: float, u: Array) -> float:
        """Step the one inside, and keep what it was given."""
        reached: float = self._record_call("step", t, h, _read_only_copy(u))
        return reached

    def save(self) -> int:
        """Return where it is."""
        return self.at

    def restore(self, state: int) -> None:
        """Open it anew and do everything up to there again, unless it is there."""
        if state == self.at:
            return
        self.close()
        self.at = -1
        self.inner = self.model.open()
        for number in self._calls_to(state):
            call = self.calls[number]
            answer = self._make_call(call.name, *call.arguments)
            if call.name == "step" and answer != call.answer:
                t = call.arguments[0]
                raise _repeat_error(
                    f"a step from {t!r} s ended at {call.answer!r} s, and now at {answer!r} s"
                )
        self.at = state
        self._check()

    def close(self) -> None:
        """Close the one inside, once."""
        inner, self.inner = self.inner, None
        if inner is not None:
            inner.close()

    def _slope(self, t: float, u: Array) -> Array:
        slope: Array = self.inner.slope(t, u)
        return slope

    def _record_call(self, name: str, *arguments: Any) -> Any:
        """Do something that may change it; what fails is kept as well: it is no longer where it was."""
        call = _Call(self.at, name, arguments)
        self.calls.append(call)
        self.at = len(self.calls) - 1
        call.answer = self._make_call(name, *arguments)
        return call.answer

    def _make_call(self, name: str, *arguments: Any) -> Any:
        if name == "start":
            for setting in _SETTINGS:
                if hasattr(self, setting):
                    setattr(self.inner, setting, getattr(self, setting))
            self.beginning = hasattr(self.inner, "ready")
        elif name == "ready":
            self.beginning = False
        return getattr(self.inner, name)(*arguments)

    def _calls_to(self, state: int) -> Iterator[int]:
        """Return the calls that lead to a state, first to last."""
        found = []
        while state >= 0:
            found.append(state)
            state = self.calls[state].before
        return reversed(found)

    def _check(self) -> None:
        """Compare the outputs with those that were seen here before."""
        seen = self.calls[self.at].seen if self.at >= 0 else None
        if seen is not None and not self.beginning:
            t, u, before = seen
            now = np.array(self.inner.output(t, u))
            if not np.array_equal(before, now, equal_nan=True):
                raise _repeat_error(
                    f"its outputs at {t!r} s were {_format_values(before)}, and now they are {_format_values(now)}"
                )


def _read_only_copy(u: Array) -> Array:
    """Return a copy that nobody can write into."""
    copy = np.array(u)
    copy.flags.writeable = False
    return copy


def _format_values(values: Array) -> str:
    return f"{np.ravel(values).tolist()!r:.80}"


def _repeat_error(how: str) -> SimulatorError:
    return SimulatorError(
        f"it does not repeat itself when it is replayed: {how}",
        expected="the same steps under the same inputs to end alike",
        hint="no random numbers without a seed, no clock; or an explicit algorithm such as `GaussSeidel()`",
    )
