"""Rollback for simulators that have none: what was done is done again, by a simulator opened anew.

In:  a Model whose simulators cannot roll back
Out: a Model like it whose simulators can; a rollback to step n costs n steps
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hocket.errors import SimulatorError
from hocket.model.plain_state import SerialisedState, StateError
from hocket.model.protocols import (
    Array,
    Capabilities,
    InitialisationSimulator,
    Model,
    NotingSimulator,
    OutputDerivativeSimulator,
    Simulator,
    provides,
    step_of,
)
from hocket.simulators.wrappers.emulation import SETTINGS, Emulating, LiveWrapper, check_wrapped


@dataclass(frozen=True)
class Replay(Emulating):
    """A model like the one inside that can roll back, by making all steps again from the start.

    For simulators that are cheap, or runs that are short: n steps, each made twice, cost about n * n / 2.
    They must repeat themselves exactly; one that does not is found out. Texts are not handed on.
    """

    model: Model
    emulates: ClassVar[str] = "rollback"
    emulation: ClassVar[str] = "rollback by replay"
    price: ClassVar[str] = "a run of n steps costs n^2/2"
    rank: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_wrapped(self.model, "Replay", "replayed")

    @property
    def file_keys(self) -> dict[str, Any]:
        return {"replay": True}

    @property
    def step(self) -> Fraction | None:
        return step_of(self.model)

    @property
    def capabilities(self) -> Capabilities:
        # micro steps are not told: they would come twice
        return replace(self.model.capabilities, rollback=True, micro=False, resumes=False)

    def open(self) -> Simulator:
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


class _Place(NamedTuple):
    """A state: the number of the call that led there."""

    owner: _ReplaySimulator
    call: int

    def serialise(self) -> list[Any]:
        """Return all calls that lead there: another process makes them again."""
        return self.owner.told_calls(self.call)


class _ReplaySimulator(LiveWrapper):
    """A simulator and the calls that brought it where it is; a state is the number of the last one.

    Calls are kept for good, those of abandoned ways too: any state may be asked for again.
    """

    def __init__(self, model: Model):
        super().__init__(model, *SETTINGS)
        self.model = model
        self.calls: list[_Call] = []
        self.at = -1
        self.beginning = False
        """Inputs may still change the initial state."""
        if provides(self.inner, InitialisationSimulator):
            self.ready = partial(self._record_call, "ready")
        if provides(self.inner, NotingSimulator):
            self.notes = lambda: self.inner.notes()
        if provides(self.inner, OutputDerivativeSimulator):
            self.slope = lambda t, u: self.inner.slope(t, u)  # the one inside is another after a rollback

    def start(self, t: float) -> None:
        self.at = -1
        self._record_call("start", t)

    def output(self, t: float, u: Array) -> Array:
        given = _read_only_copy(u)
        y: Array = self._record_call("output", t, given) if self.beginning else self.inner.output(t, given)
        if self.at >= 0:
            self.calls[self.at].seen = t, given, np.array(y)
        return y

    def step(self, t: float, h: float, u: Array) -> float:
        reached: float = self._record_call("step", t, h, _read_only_copy(u))
        return reached

    def save(self) -> _Place:
        return _Place(self, self.at)

    def restore(self, state: _Place | SerialisedState) -> None:
        """Open it anew and do everything up to there again, unless it is there."""
        self._go_to(self._learn_calls(state.content) if isinstance(state, SerialisedState) else state.call)

    def told_calls(self, state: int) -> list[Any]:
        """Return the calls that lead to a state, as plain data: name, arguments, answer, what was seen."""
        return [
            (each.name, each.arguments, each.answer if each.name == "step" else None, each.seen)
            for each in (self.calls[number] for number in self._calls_to(state))
        ]

    def _learn_calls(self, told: Any) -> int:
        """Take calls of another process for those that were made; return the number of the last one."""
        self.calls, self.at = [], -1
        for number, (name, arguments, answer, seen) in enumerate(told):
            if name not in ("start", "ready", "output", "step"):
                raise StateError(f"a call of `{name!r:.40}`")
            self.calls.append(_Call(number - 1, name, tuple(arguments), answer, seen))
        return len(self.calls) - 1

    def _go_to(self, state: int) -> None:
        if state == self.at:
            return
        self.close()
        self.at = -1
        self.inner = self.model.open()
        for number in self._calls_to(state):
            call = self.calls[number]
            answer = self._make_call(call.name, *call.arguments)
            if call.name == "step" and answer != call.answer:
                begun = f"a step from {call.arguments[0]!r} s"
                raise _repeat_error(f"{begun} ended at {call.answer!r} s, and now at {answer!r} s")
        self.at = state
        self._check()

    def close(self) -> None:
        inner, self.inner = self.inner, None
        if inner is not None:
            inner.close()

    def _record_call(self, name: str, *arguments: Any) -> Any:
        """Do something that may change it; what fails is kept as well: it is no longer where it was."""
        call = _Call(self.at, name, arguments)
        self.calls.append(call)
        self.at = len(self.calls) - 1
        call.answer = self._make_call(name, *arguments)
        return call.answer

    def _make_call(self, name: str, *arguments: Any) -> Any:
        if name == "start":
            self._hand_over_settings()
            self.beginning = provides(self.inner, InitialisationSimulator)
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
                one, other = (f"{np.ravel(values).tolist()!r:.80}" for values in (before, now))
                raise _repeat_error(f"its outputs at {t!r} s were {one}, and now they are {other}")


def _read_only_copy(u: Array) -> Array:
    """Return a copy that cannot be written to."""
    copy = np.array(u)
    copy.flags.writeable = False
    return copy


def _repeat_error(how: str) -> SimulatorError:
    return SimulatorError(
        f"it does not repeat itself when it is replayed: {how}",
        expected="the same steps under the same inputs to end alike",
        hint="no random numbers without a seed, no clock; or an explicit algorithm such as `GaussSeidel()`",
    )
