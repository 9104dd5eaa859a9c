"""The algorithms: each is a function from a scenario to a plan.

In:  a Scenario
Out: the Plan of one step of its level

Each is imported when it is first used: a scenario pays for its own algorithm only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hocket.orchestrators.adaptive import Adaptive
    from hocket.orchestrators.asynchronous import Asynchronous
    from hocket.orchestrators.gauss_seidel import GaussSeidel
    from hocket.orchestrators.iterate import Iterate
    from hocket.orchestrators.jacobi import Jacobi
    from hocket.orchestrators.multirate import Multirate
    from hocket.orchestrators.predictor_corrector import PredictorCorrector
    from hocket.orchestrators.waveform import Waveform

    ORCHESTRATORS: dict[str, Any]
else:

    def __getattr__(name: str) -> Any:
        """Return an algorithm by the name of its class."""
        from hocket.model import registry

        if name == "ORCHESTRATORS":
            return registry.words("orchestrators")
        known = registry.OWN["orchestrators"]
        word = next((word for word, spec in known.items() if spec.endswith(f":{name}")), None)
        if word is None:
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        return registry.load("orchestrators", word)


# fmt: off
__all__ = [
    "Adaptive", "Asynchronous", "GaussSeidel", "Iterate",
    "Jacobi", "Multirate", "PredictorCorrector", "Waveform",
]
# fmt: on
