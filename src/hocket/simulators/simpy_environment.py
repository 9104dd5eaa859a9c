"""SimPy environments as simulators: processes, queues and resources beside continuous models.

In:  a function that starts processes in an environment, and ports between these and the rest
Out: a Model whose events are those of the environment
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from hocket.errors import Fault, ScenarioError, raise_faults, suggest_nearest
from hocket.model.arguments import set_fields
from hocket.model.clock import seconds
from hocket.model.ports import Port, PortLike, parse_ports
from hocket.model.protocols import Array, Capabilities, Simulator
from hocket.simulators.recipes import Recipe, load, qualified_name, with_feedthrough

AT_MOST = 1_000_000
"""Events of an environment at one time."""

Factory: TypeAlias = Callable[..., Any]
"""Takes the environment, its `Ports`, and the parameters by name."""


@dataclass(frozen=True, init=False, eq=False)
class SimPy(Recipe):
    """A SimPy environment; further keywords are parameters, handed to the factory.

    `factory(env, ports, **parameters)` is a function, or text that names one ("line.py:build"; file paths
    start in `folder`), and starts processes: `env.process(machine(env, ports))`. They read inputs as
    `ports["power"].value`, wait for events with `yield ports["order"].wait()`, set outputs with
    `ports["load"].value = 3.0`, and emit events with `ports["done"].put()`. Outputs are held unless they are
    events, `Port("done", event=True)`. Times are in seconds. Processes cannot be copied, so there is no
    rollback.
    """

    factory: Factory | str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    values: tuple[tuple[str, Any], ...]
    folder: str
    capabilities = Capabilities(rollback=False, input_degree=0, events=True)

    def __init__(
        self,
        factory: Factory | str,
        inputs: Iterable[PortLike] = (),
        outputs: Iterable[PortLike] = (),
        *,
        folder: str | Path = "",
        **parameters: Any,
    ):
        entries = parse_ports(inputs)
        held = [
            port if port.event else replace(port, held=port.type == "real") for port in parse_ports(outputs)
        ]
        where = f"`SimPy` of `{qualified_name(factory)}`"
        both = {port.name for port in entries} & {port.name for port in held}
        raise_faults(
            Fault(f"`{name}` is an input and an output", where, "names that differ") for name in sorted(both)
        )
        set_fields(
            self,
            factory=factory,
            inputs=entries,
            outputs=with_feedthrough(tuple(held), entries, {}, where),
            values=tuple(sorted(parameters.items())),
            folder=str(folder),
        )
        if not isinstance(factory, str):
            self._load_factory()

    @property
    def parameters(self) -> dict[str, Any]:
        """What the factory is called with, beside the environment and its ports."""
        return dict(self.values)

    @property
    def class_name(self) -> str:
        """The factory as text that `SimPy` reads back."""
        return qualified_name(self.factory)

    def check(self) -> None:
        """Load the factory; raises ScenarioError with what is wrong."""
        self._load_factory()
        _environment_class()

    def _load_factory(self) -> Factory:
        found = load(self.factory, self.folder) if isinstance(self.factory, str) else self.factory
        if not callable(found):
            what = f"`{self.class_name}` cannot be called"
            raise ScenarioError(what, "factory", "a function of an environment and its ports")
        factory: Factory = found
        return factory

    def open(self) -> Simulator:
        return _SimPySimulator(self, self._load_factory(), _environment_class())


@cache
def _environment_class() -> Any:
    """Return the class of environments: one whose clock can be set to the time of an event from outside."""
    try:
        import simpy
    except ImportError:
        what = "`SimPy` needs the package `simpy`, which is not installed"
        raise ScenarioError(what, hint="pip install hocket[simpy]") from None

    class Environment(simpy.Environment):
        """An environment that is driven by hocket."""

        def run(self, until: Any = None) -> Any:
            """Refuse: its time is that of the run."""
            raise RuntimeError("env.run() was called, expected processes only: hocket lets the time pass")

        def schedule(self, event: Any, priority: Any = 1, delay: Any = 0) -> None:
            """Plan an event; refuse one before now, which would happen in the past."""
            if not delay >= 0:
                raise ValueError(f"an event is scheduled {delay!r} s from now, expected a delay from 0 on")
            super().schedule(event, priority, delay)

        def move_to(self, t: Any) -> None:
            """Let time pass; nothing is due before."""
            self._now = t

        def run_events(self, limit: Any) -> None:
            """Process every event that is due until then, and those that follow at the same time."""
            queue, step = self._queue, self.step
            count = 0
            while queue and queue[0][0] <= limit:
                step()
                count += 1
                if count > AT_MOST:
                    raise RuntimeError(f"{AT_MOST} events follow each other at t = {self.now!r} s")

    return Environment


class InputPort:
    """An input, as the processes of an environment see it."""

    def __init__(self, name: str, value: float, env: Any):
        self.name, self.value = name, value
        self._env = env
        self._waiting: list[Any] = []

    def wait(self) -> Any:
        """Return a SimPy event with the next value that arrives: an event, or the value after a jump."""
        event = self._env.event()
        self._waiting.append(event)
        return event

    def arrive(self, value: float) -> None:
        """Hand a value to those who wait; hocket calls it."""
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.succeed(value)


class OutputPort:
    """An output that holds its value until it is set again."""

    __slots__ = ("_number", "_values", "name")

    def __init__(self, name: str, values: list[float], number: int):
        self.name, self._values, self._number = name, values, number

    @property
    def value(self) -> float:
        """Its value now."""
        return self._values[self._number]

    @value.setter
    def value(self, value: float) -> None:
        self._values[self._number] = float(value)

    def put(self, value: float = 1.0) -> None:
        """Refuse an event."""
        raise TypeError(f"`{self.name}` holds its value: set `value`, or declare `Port(..., event=True)`")


class EventPort:
    """An output of events: absent, but for the instants at which a value is put."""

    __slots__ = ("_queue", "name")

    def __init__(self, name: str, queue: deque[float]):
        self.name, self._queue = name, queue

    def put(self, value: float = 1.0) -> None:
        """Let others see a value in the next instant of this time; each further one in an instant more."""
        self._queue.append(float(value))

    @property
    def value(self) -> float:
        """Refuse to be read."""
        raise TypeError(f"`{self.name}` is an event, it has no value between instants: use `put`")

    @value.setter
    def value(self, value: float) -> None:
        raise TypeError(f"`{self.name}` is an event, it does not hold a value: use `put`")


class Ports(Mapping[str, Any]):
    """The ports of an environment by name: `InputPort`, `OutputPort` or `EventPort`."""

    def __init__(self, ports: dict[str, Any]):
        self._ports = ports

    def __getitem__(self, name: str) -> Any:
        try:
            return self._ports[name]
        except KeyError:
            meant = suggest_nearest(str(name), list(self._ports))
            raise KeyError(f"there is no port `{name}`: {meant}") from None

    def __iter__(self) -> Any:
        return iter(self._ports)

    def __len__(self) -> int:
        return len(self._ports)


class _SimPySimulator:
    """An environment at work. Its processes run when an instant ends: others see the change in the next."""

    def __init__(self, model: SimPy, factory: Factory, environment: Any):
        self.model, self.factory, self.environment = model, factory, environment

    def start(self, t: float) -> None:
        model = self.model
        exact = seconds(t)
        self.env = self.environment(int(exact) if exact.denominator == 1 else t)
        self.values = [port.start or 0.0 for port in model.outputs]
        self.inputs = [InputPort(port.name, port.start or 0.0, self.env) for port in model.inputs]
        self.queues: list[tuple[int, deque[float]]] = []
        """Of each output of events: what is to be emitted."""
        ports: dict[str, Any] = {port.name: port for port in self.inputs}
        for number, port in enumerate(model.outputs):
            if port.event:
                self.queues.append((number, deque()))
                ports[port.name] = EventPort(port.name, self.queues[-1][1])
            else:
                ports[port.name] = OutputPort(port.name, self.values, number)
        self.factory(self.env, Ports(ports), **model.parameters)
        self.reached: float = t
        self.arrived: list[tuple[InputPort, float]] = []
        self._announce()

    def close(self) -> None:
        """Nothing is held."""

    def output(self, t: float, u: Array) -> Any:
        return self.values

    def step(self, t: float, h: float, u: Array) -> float:
        return t + h

    def due(self) -> Any:
        """Return the time of the next event in the environment."""
        return self.announced

    def _announce(self) -> None:
        self.emitting = False
        for _, queue in self.queues:
            if queue:
                self.emitting = True
        time = self.reached if self.emitting else self.env.peek()
        exact = isinstance(time, Fraction)
        self.announced: Any = None if time == math.inf else time if exact else float(time)

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> list[bool] | None:
        """Let values arrive; emit what was put in the instant before."""
        # a time that is announced may be rounded: without anything present it is the reason of this call
        self.reached = self.limit = t
        due = self.announced
        if due is not None and due > t and True not in present:
            self.limit = due
        if self.inputs:
            for port, value, there in zip(self.inputs, u.tolist(), present, strict=True):
                port.value = value
                if there:
                    self.arrived.append((port, value))
        if not self.emitting:
            return None
        flags = [False] * len(self.values)
        for number, queue in self.queues:
            if queue:
                flags[number], self.values[number] = True, queue[0]
        return flags

    def commit(self) -> bool:
        """Process the events of this time."""
        env = self.env
        if self.emitting:
            for _, queue in self.queues:
                if queue:
                    queue.popleft()
        if self.arrived:
            if env.peek() < self.reached:
                env.run_events(math.nextafter(self.reached, -math.inf))
            if env.now < self.reached:
                env.move_to(self.reached)
            for port, value in self.arrived:
                port.arrive(value)
            self.arrived = []
        env.run_events(self.limit)
        self._announce()
        return self.emitting
