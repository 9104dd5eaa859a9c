"""A model exchange FMU at work: hocket integrates it, and lets it handle its events.

In:  an Fmu
Out: a live simulator; with a fixed-step method `native` is what a level steps without Python
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hocket.model import Array, Simulator
from hocket.simulators.fmu.continuous import ELSEWHERE, states
from hocket.simulators.fmu.linearised import jacobian
from hocket.simulators.fmu.live import CoSimulation, _plain, loaded

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu


def opened(model: Fmu) -> Simulator:
    """Load the FMU; nothing is instantiated yet."""
    exchange = loaded(ModelExchange, model)
    if model.method not in ELSEWHERE or not states(model):
        return exchange
    from hocket.simulators.fmu.adaptive import Adaptive, Cvode

    return Cvode(exchange) if model.method == "cvode" else Adaptive(exchange)


class ModelExchange(CoSimulation):
    """A live model exchange FMU, integrated by compiled code with a fixed-step method."""

    @property
    def exchange(self) -> Any:
        """What a solver elsewhere calls; the FMU leaves initialisation, if that is still to do."""
        self._done(self.native.ready())
        return self.native.exchange

    def jacobian(self, t: float, u: Array) -> tuple[Array, Array, Array, Array]:
        """Return A, B, C, D where it stands: x' = A x + B u, y = C x + D u for small changes.

        Inputs that only change at events have columns of zeros, outputs that are no reals rows of zeros.
        """
        return jacobian(self, _plain(u)[0])
