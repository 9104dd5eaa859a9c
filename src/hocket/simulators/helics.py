"""A HELICS federation as a simulator: hocket is one federate among others, by physical time.

In:  which inputs are published under which names, which names are subscribed to
Out: a Model whose step is a request for time

There is no hidden delay: before hocket asks for t + h it publishes its inputs as they are at t + h, and what
others have published by then is what its outputs show at t + h. A federate that publishes what it computed
at t only after t was granted is seen one step later; that is its own delay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.errors import Fault, ScenarioError, raise_faults
from hocket.model.arguments import expect, expect_texts, is_positive, set_fields
from hocket.model.extrapolators import value_at
from hocket.model.ports import Port, PortLike, parse_ports
from hocket.model.protocols import Array, Capabilities, Simulator
from hocket.simulators.helics_library import OPTIONS, PatientCaller, load_helics
from hocket.simulators.recipes import Recipe

NEAR = 1e-9
"""HELICS counts nanoseconds: a time that is granted may be so far from the one that was asked for."""


@dataclass(frozen=True, init=False, eq=False)
class Helics(Recipe):
    """A federation of HELICS: `Helics(["i [A]"], ["v [V]"], ["hocket/i"], ["grid/v"], broker=...)`.

    Inputs are published, and outputs are what was subscribed to: one name for each, in their order. `initial`
    are the outputs until somebody publishes (0 if left out). `broker` is its address, `federate` the name of
    hocket there, `core` the kind of connection. `patience` is how many seconds the federation may take for a
    step before that is an error. It cannot roll back, and its step is that of the level.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    publications: tuple[str, ...]
    subscriptions: tuple[str, ...]
    broker: str
    federate: str
    core: str
    initial: tuple[float, ...]
    patience: float
    capabilities = Capabilities(rollback=False)

    def __init__(
        self,
        inputs: Sequence[Port] | Sequence[PortLike] = (),
        outputs: Sequence[Port] | Sequence[PortLike] = (),
        publications: Sequence[str] = (),
        subscriptions: Sequence[str] = (),
        broker: str = "tcp://127.0.0.1",
        federate: str = "hocket",
        core: str = "zmq",
        initial: Sequence[float] = (),
        patience: float = 60.0,
    ):
        entries, shown = parse_ports(inputs), parse_ports(outputs)
        expect_texts(broker=broker, federate=federate, core=core)
        expect(is_positive(patience), "patience", patience, "seconds, above 0")
        pairs = (
            ("publications", publications, entries, "inputs"),
            ("subscriptions", subscriptions, shown, "outputs"),
        )
        faults = [
            Fault(
                f"{len(names)} {key} for {len(ports)} {kind}",
                key,
                f"one name for each of the {kind}, in their order",
            )
            for key, names, ports, kind in pairs
            if len(names) != len(ports)
        ]
        if initial and len(initial) != len(shown):
            faults.append(
                Fault(f"{len(initial)} values for {len(shown)} outputs", "initial", "one for each output")
            )
        raise_faults(faults)
        set_fields(
            self,
            inputs=entries,
            outputs=shown,
            publications=tuple(publications),
            subscriptions=tuple(subscriptions),
            broker=broker,
            federate=federate,
            core=core,
            initial=tuple(float(each) for each in initial) or (0.0,) * len(shown),
            patience=float(patience),
        )

    def open(self) -> Simulator:
        return _Federate(self)


class _Federate:
    """Hocket in the federation."""

    def __init__(self, model: Helics):
        self.model = model
        self.caller = PatientCaller()
        self.y = list(model.initial)
        self.federate: Any = None
        self.published: list[Any] = []
        self.subscribed: list[Any] = []

    def start(self, t: float) -> None:
        """Join the federation, which begins when all federates have come; go to t."""
        if t < 0.0:
            raise ScenarioError(
                f"a HELICS federation begins at 0, and the run at {t!r} s", "start", "0 or later"
            )
        self._call(self._join, "has not begun")
        if t > 0.0:
            self._call(lambda: self._request(t), f"was not granted t = {t!r} s")

    def _join(self) -> None:
        h, model = load_helics(), self.model
        info = h.helicsCreateFederateInfo()
        h.helicsFederateInfoSetCoreTypeFromString(info, model.core)
        options = f"--federates=1 --broker={model.broker} --timeout=600s {OPTIONS}"
        h.helicsFederateInfoSetCoreInitString(info, options)
        h.helicsFederateInfoSetFlagOption(info, h.HELICS_FLAG_UNINTERRUPTIBLE, True)
        self.federate = h.helicsCreateValueFederate(model.federate, info)
        double = h.HELICS_DATA_TYPE_DOUBLE
        for name, port in zip(model.publications, model.inputs, strict=True):
            self.published.append(
                h.helicsFederateRegisterGlobalPublication(self.federate, name, double, port.unit)
            )
        for name, port in zip(model.subscriptions, model.outputs, strict=True):
            self.subscribed.append(h.helicsFederateRegisterSubscription(self.federate, name, port.unit))
        h.helicsFederateEnterExecutingMode(self.federate)
        self._take()

    def _request(self, t: float) -> None:
        h = load_helics()
        granted = h.helicsFederateRequestTime(self.federate, t)
        if abs(granted - t) > NEAR * max(1.0, abs(t)):
            ended = " (it has ended)" if granted >= h.HELICS_TIME_MAXTIME else ""
            raise RuntimeError(f"the federation granted t = {granted!r} s{ended}, asked for was t = {t!r} s")
        self._take()

    def _take(self) -> None:
        h = load_helics()
        for number, source in enumerate(self.subscribed):
            if h.helicsInputIsUpdated(source):
                self.y[number] = float(h.helicsInputGetDouble(source))

    def output(self, t: float, u: Array) -> Array:
        """Return what was heard last."""
        return np.array(self.y)

    def step(self, t: float, h: float, u: Array) -> float:
        """Publish the inputs as they are at the end, ask for that time, and hear what others said."""
        values = [float(value_at(list(u[:, number]), h)) for number in range(len(self.published))]

        def exchange() -> None:
            library = load_helics()
            for publication, value in zip(self.published, values, strict=True):
                library.helicsPublicationPublishDouble(publication, value)
            self._request(t + h)

        self._call(exchange, f"did not grant t = {t + h!r} s")
        return t + h

    def _call(self, function: Callable[[], None], late: str) -> None:
        begun, model = time.monotonic(), self.model

        def look() -> None:
            if time.monotonic() - begun > model.patience:
                where = f"the federation at {model.broker} {late} within {model.patience:g} s"
                raise RuntimeError(f"{where}: have all federates come, and do they still run?")

        self.caller.call(function, look)

    def close(self) -> None:
        """Leave the federation; where a call hangs, it is left behind."""
        federate, self.federate = self.federate, None
        if federate is None or self.caller.is_stuck:
            return
        begun, h = time.monotonic(), load_helics()

        def look() -> None:
            if time.monotonic() - begun > 5.0:
                raise RuntimeError("HELICS does not let the federate go")

        self.caller.call(lambda: h.helicsFederateDisconnect(federate), look)
        self.caller.close()
