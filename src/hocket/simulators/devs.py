"""Atomic DEVS models (Zeigler 1976; Chow and Zeigler 1994): states that change at events alone.

In:  a class with time advance, output, internal and external transition
Out: a Model that announces its internal events and reacts to those of others
"""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from hocket.errors import HocketError, ScenarioError, SimulatorError, raise_faults
from hocket.model.arguments import set_fields
from hocket.model.clock import Duration, seconds
from hocket.model.ports import Port, PortLike, parse_ports
from hocket.model.protocols import Array, Capabilities, Simulator
from hocket.simulators.python import parameter_faults
from hocket.simulators.recipes import Recipe, load, place_of, qualified_name, with_feedthrough

NEAR = 4.0
"""By how many roundings an event may be after the time of an instant and still happen in it."""


class Atomic:
    """What a DEVS model does; derive from it. `__init__` makes the initial state: the object's attributes.

    `inputs` and `outputs` name its ports. A text is a port of events; a `Port` may also be a value that
    holds: as an input it is present where it jumps. The state is copied for rollback, so it holds data.
    """

    inputs: Sequence[PortLike] = ()
    outputs: Sequence[PortLike] = ()

    def time_advance(self) -> Duration | None:
        """Return how long it stays in this state if nothing arrives, in seconds; None: for ever."""
        raise NotImplementedError(f"`{type(self).__name__}` has no time_advance()")

    def output(self) -> Mapping[str, float]:
        """Return the values that leave, by output, when that time is over; nothing changes."""
        return {}

    def internal(self) -> None:
        """Go to the next state when that time is over; output() was called before."""
        raise NotImplementedError(f"`{type(self).__name__}` has no internal()")

    def external(self, elapsed: float, inputs: Mapping[str, float]) -> None:
        """Go to the next state when values arrive, `elapsed` seconds after the last event."""
        raise NotImplementedError(f"`{type(self).__name__}` has inputs, and no external(elapsed, inputs)")

    def confluent(self, inputs: Mapping[str, float]) -> None:
        """Go to the next state when both happen in one instant: internal first, unless it is overridden."""
        self.internal()
        self.external(0.0, inputs)


@dataclass(frozen=True, init=False, eq=False)
class Devs(Recipe):
    """An atomic DEVS model; further keywords are the parameters its objects are made with.

    `atomic` is a class derived from `Atomic`, or text that names one ("plant.py:Queue"); file paths start
    in `folder`. What happens in one instant is seen by others in the same one; where models drive each other
    in a circle, by some of them in the next one.
    """

    atomic: type[Atomic] | str
    own_inputs: tuple[Port, ...] | None
    """The ports given here; None: those of the class."""
    own_outputs: tuple[Port, ...] | None
    values: tuple[tuple[str, Any], ...]
    folder: str
    capabilities = Capabilities(rollback=True, input_degree=0, events=True)

    def __init__(
        self,
        atomic: type[Atomic] | str,
        inputs: Iterable[PortLike] | None = None,
        outputs: Iterable[PortLike] | None = None,
        *,
        folder: str | Path = "",
        **parameters: Any,
    ):
        set_fields(
            self,
            atomic=atomic,
            own_inputs=None if inputs is None else _event_ports(inputs),
            own_outputs=None if outputs is None else _event_ports(outputs),
            values=tuple(sorted(parameters.items())),
            folder=str(folder),
        )
        if not isinstance(atomic, str):
            self.check()

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.values)

    @property
    def class_name(self) -> str:
        """The class as text that `Devs` reads back."""
        return qualified_name(self.atomic)

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self._ports[0]

    @property
    def outputs(self) -> tuple[Port, ...]:
        return self._ports[1]

    @cached_property
    def _ports(self) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        where, inputs, outputs = self.class_name, self.own_inputs, self.own_outputs
        if inputs is None or outputs is None:
            cls = self._load_class()
            inputs = _event_ports(cls.inputs) if inputs is None else inputs
            outputs = _event_ports(cls.outputs) if outputs is None else outputs
        if not inputs and not outputs:
            what = f"`{where}` has neither inputs nor outputs"
            hint = 'give them here or in the class: `inputs = ["job"]`'
            raise ScenarioError(what, where, "named ports", hint)
        held = tuple(port if port.event else replace(port, held=port.type == "real") for port in outputs)
        return inputs, with_feedthrough(held, inputs, {}, where)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_ports"}

    def _load_class(self) -> type[Atomic]:
        cls = load(self.atomic, self.folder) if isinstance(self.atomic, str) else self.atomic
        if not (isinstance(cls, type) and issubclass(cls, Atomic)):
            what = f"`{self.class_name}` is not an atomic model"
            raise ScenarioError(what, self.class_name, "a class derived from `hocket.Atomic`")
        return cls

    def check(self) -> None:
        """Load the class; raises ScenarioError with what is wrong."""
        cls, where = self._load_class(), self.class_name
        raise_faults(parameter_faults(cls, self.parameters, where))
        _ = self._ports

    def open(self) -> Simulator:
        return _DevsSimulator(self, self._make())

    def _make(self) -> Atomic:
        cls = self._load_class()
        try:
            return cls(**self.parameters)
        except HocketError:
            raise
        except Exception as error:
            what = f"`{cls.__name__}` cannot be made: {type(error).__name__}: {error}"
            raise SimulatorError(what, place_of(error)) from error


def _event_ports(written: Iterable[PortLike]) -> tuple[Port, ...]:
    """Return ports; those that are written as text are events."""
    listed = tuple(written) if isinstance(written, Iterable) and not isinstance(written, str) else written
    ports = parse_ports(listed)  # which refuses what cannot be listed
    return tuple(
        replace(port, event=True) if isinstance(each, str) else port
        for port, each in zip(ports, listed, strict=True)
    )


class _DevsSimulator:
    """An atomic model at work: the object is its state."""

    def __init__(self, model: Devs, atomic: Atomic):
        self.model, self.atomic = model, atomic
        self.names = [port.name for port in model.inputs]
        self.place = {port.name: number for number, port in enumerate(model.outputs)}
        self.events = {port.name for port in model.outputs if port.event}
        self.fresh = True

    def start(self, t: float) -> None:
        if not self.fresh:
            self.atomic = self.model._make()
        self.fresh = False
        self.shown = [port.start or 0.0 for port in self.model.outputs]
        self.last = seconds(t)
        """The time of the last event."""
        self.arrived: dict[str, float] = {}
        self.held: dict[str, float] = {}
        """What outputs that are not events become when the instant ends."""
        self.reached, self.imminent = t, False
        self.announced: Fraction | None = None
        self._announce()

    def close(self) -> None:
        """Nothing is held."""

    def output(self, t: float, u: Array) -> Any:
        return self.shown

    def step(self, t: float, h: float, u: Array) -> float:
        while self.announced is not None and float(self.announced) < t and not self._is_due(t):
            self.imminent, self.reached = True, t  # nobody has reacted
            self._show_outputs()
            self.commit()
        return t + h

    def save(self) -> Any:
        kept = self.last, self.shown, dict(self.arrived), self.reached, self.imminent, self.announced
        return copy.deepcopy(vars(self.atomic)), kept

    def restore(self, state: Any) -> None:
        inside, (self.last, self.shown, arrived, self.reached, self.imminent, self.announced) = state
        self.arrived = dict(arrived)
        vars(self.atomic).clear()
        vars(self.atomic).update(copy.deepcopy(inside))

    def due(self) -> Fraction | None:
        """Return the time of the next internal event."""
        return self.announced

    def _announce(self) -> None:
        length = self.atomic.time_advance()
        if length is None or length == math.inf:
            self.announced = None
            return
        self.announced = self.last + _length(length)

    def _is_due(self, t: float) -> bool:
        return self.announced is not None and float(self.announced) <= t + NEAR * math.ulp(t)

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> list[bool]:
        """Let values leave if its time is over, and values arrive."""
        self.reached, self.imminent = t, self.imminent or self._is_due(t) or not any(present)
        for name, value, there in zip(self.names, u.tolist(), present, strict=True):
            if there:
                self.arrived[name] = value
        return self._show_outputs() if self.imminent else [False] * len(self.shown)

    def _show_outputs(self) -> list[bool]:
        leaving = self.atomic.output()
        if not isinstance(leaving, Mapping):
            raise TypeError(f"output() returned {leaving!r:.60}, expected values by name, or {{}}")
        unknown = [name for name in leaving if name not in self.place]
        if unknown:
            raise ValueError(f"output() names `{unknown[0]}`, expected one of {', '.join(self.place)}")
        values = {name: _number(name, value) for name, value in leaving.items()}
        self.held = {name: value for name, value in values.items() if name not in self.events}
        self._show({name: value for name, value in values.items() if name in self.events})
        return [name in leaving for name in self.place]

    def _show(self, values: Mapping[str, float]) -> None:
        if values:
            self.shown = list(self.shown)
            for name, value in values.items():
                self.shown[self.place[name]] = value

    def commit(self) -> bool:
        """Go to the next state."""
        arrived, self.arrived = self.arrived, {}
        if self.imminent:
            assert self.announced is not None
            self._show(self.held)
            self.last = self.announced
            if arrived:
                self.atomic.confluent(arrived)
            else:
                self.atomic.internal()
        else:
            elapsed = max(0.0, self.reached - float(self.last))
            self.last = max(self.last, seconds(self.reached))
            self.atomic.external(elapsed, arrived)
        self.imminent = False
        self._announce()
        return False


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"output() gives {value!r:.60} for `{name}`, expected a number") from None


def _length(written: Any) -> Fraction:
    if not isinstance(written, Hashable):
        raise ValueError(f"time_advance() returned {written!r:.60}, expected a duration, or None")
    return _cached_length(written)


@lru_cache(maxsize=1024)
def _cached_length(written: Any) -> Fraction:
    try:
        length = seconds(written)
    except ValueError as error:
        raise ValueError(f"time_advance() returned {written!r:.60}: {error}") from None
    if length < 0:
        raise ValueError(f"time_advance() returned {written!r:.60}, expected a duration of zero or above")
    return length
