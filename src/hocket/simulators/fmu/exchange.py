"""A model exchange FMU at work: hocket integrates it, and lets it handle its events.

In:  an Fmu
Out: a live simulator; with a fixed-step method `native` is what a level steps without Python
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hocket.model import Array, Simulator
from hocket.simulators.fmu.continuous import ELSEWHERE, state_count
from hocket.simulators.fmu.linearised import jacobian
from hocket.simulators.fmu.live import CoSimulation, _contiguous_array, load_fmu

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu


def open_simulator(model: Fmu) -> Simulator:
    """Load the FMU; nothing is instantiated yet."""
    exchange = load_fmu(ModelExchange, model)
    if model.method not in ELSEWHERE or not state_count(model):
        return exchange
    from hocket.simulators.fmu.adaptive import Cvode, DormandPrince

    return Cvode(exchange) if model.method == "cvode" else DormandPrince(exchange)


class ModelExchange(CoSimulation):
    """A live model exchange FMU, integrated by compiled code with a fixed-step method."""

    @property
    def exchange(self) -> Any:
        """What a solver elsewhere calls; the FMU leaves initialisation, if that is still to do."""
        self._require_success(self.native.ready())
        return self.native.exchange

    def jacobian(self, t: float, u: Array) -> tuple[Array, Array, Array, Array]:
        """Return A, B, C, D where it stands: x' = A x + B u, y = C x + D u for small changes.

        Inputs that only change at events have columns of zeros, outputs that are no reals rows of zeros.
        """
        return jacobian(self, _contiguous_array(u)[0])
