"""A stand-in for a simulator on another host: it shows what was sent last, extrapolated to now.

In:  values of the other simulator, as often as they are sent
Out: the same values at every step of this host

Its inputs come as polynomials, fitted by the extrapolator of the connection that ends in it; its outputs are
these polynomials at the time they are asked for (Gomes 2016, section 3.3: the artificial simulators S'). So
it is linear, has no state, and is judged by the linear reading like any other model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from hocket.errors import ScenarioError
from hocket.model.ports import Port, PortLike, parse_ports
from hocket.simulators.state_space import StateSpace

SENT = "_sent"
"""What the input is called that an output shows: `force_sent` of `force`."""


@dataclass(frozen=True, init=False)
class StandIn(StateSpace):
    """Shows each of its inputs, `force_sent`, as the output `force`: that of the simulator `of`."""

    of: str = ""

    def __init__(self, shows: Iterable[PortLike], of: str = ""):
        shown = parse_ports(shows)
        names = [port.name for port in shown]
        sent = [name + SENT for name in names]
        twice = sorted({name for name in names + sent if (names + sent).count(name) > 1})
        if not shown or twice:
            what = f"two of its ports would be named `{twice[0]}`" if twice else "it has no ports"
            raise ScenarioError(
                f"a stand-in for `{of}` cannot be built: {what}", "shows", "names that differ"
            )
        super().__init__(
            D=np.eye(len(shown)).tolist(),
            inputs=[
                Port(name, port.unit, port.start, type=port.type, held=port.held)
                for name, port in zip(sent, shown, strict=True)
            ],
            outputs=[Port(port.name, port.unit) for port in shown],
        )
        outputs = tuple(
            replace(made, type=port.type, held=port.held)
            for made, port in zip(self.outputs, shown, strict=True)
        )
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "of", of)

    @property
    def shows(self) -> tuple[Port, ...]:
        """What it shows, as it was given."""
        return tuple(
            Port(port.name, port.unit, sent.start, type=port.type, held=port.held)
            for port, sent in zip(self.outputs, self.inputs, strict=True)
        )
