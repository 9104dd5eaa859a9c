"""What a system of the benchmark is, and the list of all.

In:  functions that return a System, marked by `@system(kind)`
Out: System, CATALOGUE
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hocket as hk

Reference = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""The true values of the judged port at given times."""


@dataclass(frozen=True)
class System:
    """A coupled system with its true solution; `steps`: a reasonable and a bold macro step, in seconds."""

    models: Mapping[str, Any]
    wires: Mapping[str, str]
    port: str
    stop: float
    steps: tuple[float, float]
    reference: Reference
    orchestrator: Any = "jacobi"
    extrapolation: str = "hold"
    name: str = ""
    domain: str = ""
    kind: str = ""

    @property
    def half(self) -> str:
        """Which half it is in: decided by its name, so that nobody chooses."""
        return ("tune", "report")[sha256(self.name.encode()).digest()[0] % 2]

    def composite(self, step: float) -> hk.Composite:
        """Return the coupling with a macro step."""
        scenario = hk.Scenario(dict(self.models), dict(self.wires))
        return hk.Composite(scenario, step, self.orchestrator, self.extrapolation)

    def run(self, step: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Run the coupling; return times and values of the judged port, the last ones of each time."""
        table = hk.run(self.composite(step), self.stop, record=[self.port]).table()
        times, values = table["time"].to_numpy(), table[self.port].to_numpy()
        last = np.append(np.diff(times) > 0, True)
        return times[last], values[last]

    def error(self, times: NDArray[np.float64], values: NDArray[np.float64]) -> float:
        """Return the largest error of the judged port relative to its true peak; inf if values are."""
        if not np.isfinite(values).all():
            return float("inf")
        true = self.reference(times)
        return float(np.abs(values - true).max() / np.abs(true).max())


CATALOGUE: dict[str, Callable[[], System]] = {}


def system(kind: str) -> Callable[[Callable[[], System]], Callable[[], System]]:
    """Enter a function into the catalogue; it gives the system its name, its module the domain."""

    def enter(make: Callable[[], System]) -> Callable[[], System]:
        name, domain = make.__name__, make.__module__.rsplit(".", 1)[-1]

        def build() -> System:
            return replace(make(), name=name, domain=domain, kind=kind)

        if name in CATALOGUE:
            raise ValueError(f"two systems are called {name}")
        CATALOGUE[name] = build
        return build

    return enter
