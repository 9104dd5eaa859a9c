"""What a system of the benchmark is, and the list of all.

In:  functions that return a System, marked by `@system(kind)`
Out: System, CATALOGUE
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hocket as hk
from truth_systems.monolith import Monolith

Vector = NDArray[np.float64]
Samples = tuple[Vector, Vector]
"""Times and values."""
TINY = 1e-12
"""What counts as nothing."""
Reference = Callable[[Vector], Vector]
"""The true values of the judged port at given times."""


@dataclass(frozen=True)
class System:
    """A coupled system with its true solution; `steps`: a reasonable and a bold macro step, in seconds."""

    models: Mapping[str, Any]
    wires: Mapping[str, str]
    port: str
    stop: float
    steps: tuple[float, float]
    reference: Reference | None = None
    """Written apart from the coupled form, for the judged port; None: only the composed one is there."""
    orchestrator: Any = "jacobi"
    """Or a function that returns one, given the macro step."""
    extrapolation: str = "hold"
    levels: Mapping[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    """Models that are coupled in a level of their own, and what part of the macro step is its step."""
    equations: Mapping[str, Any] | None = None
    """The models that references are composed of, where `models` are FMUs made of them."""
    name: str = ""
    domain: str = ""
    kind: str = ""

    @property
    def half(self) -> str:
        """Which half it is in: decided by its name, so that nobody chooses; "fresh" and others: by when."""
        for late in ("fresh", "later", "trial", "last"):
            if self.domain.startswith(late):
                return late
        return ("tune", "report")[sha256(self.name.encode()).digest()[0] % 2]

    def composite(self, step: float) -> hk.Composite:
        """Return the coupling with a macro step."""
        how = self.orchestrator
        how = how(step) if callable(how) else how
        inner = {name for names, _ in self.levels.values() for name in names}
        wires = {self.path(one): self.path(other) for one, other in self.wires.items()}
        models = {name: model for name, model in self.models.items() if name not in inner}
        for level, (names, parts) in self.levels.items():
            head = f"{level}."
            own = {
                one: other for one, other in wires.items() if one.startswith(head) and other.startswith(head)
            }
            wires = {one: other for one, other in wires.items() if one not in own}
            local = {one.removeprefix(head): other.removeprefix(head) for one, other in own.items()}
            scenario = hk.Scenario({name: self.models[name] for name in names}, local)
            models[level] = hk.Composite(scenario, step / parts, how, self.extrapolation)
        return hk.Composite(hk.Scenario(models, wires), step, how, self.extrapolation)

    def path(self, port: str) -> str:
        """Return the path of a model or port in the composite, where it may be in a level."""
        name = port.partition(".")[0]
        level = next((level for level, (names, _) in self.levels.items() if name in names), "")
        return f"{level}.{port}" if level else port

    @property
    def ports(self) -> tuple[str, ...]:
        """All outputs."""
        return tuple(f"{name}.{port.name}" for name, model in self.models.items() for port in model.outputs)

    def run_all(self, step: float) -> dict[str, Samples]:
        """Run the coupling; return times and values of each output, the last ones of each time."""
        run = hk.run(self.composite(step), self.stop)
        found = {}
        for port in self.ports:
            times, values = (np.asarray(each) for each in run[self.path(port)])
            last = np.append(np.diff(times) > 0, True)
            found[port] = times[last], values[last]
        return found

    def run(self, step: float) -> Samples:
        """Run the coupling; return times and values of the judged port."""
        return self.run_all(step)[self.port]

    def error(self, times: Vector, values: Vector) -> float:
        """Return the largest error of the judged port relative to its true peak; inf if values are."""
        if not np.isfinite(values).all():
            return float("inf")
        true = self.reference(times) if self.reference else self.composed(times)[self.port]
        return relative_error(values, true)

    def composed(self, times: Vector) -> dict[str, Vector]:
        """Return the true values of every output, from all equations solved together."""
        models = self.models if self.equations is None else self.equations
        return Monolith(models, self.wires, 4.0 * self.steps[0]).solve(times)

    def errors(self, found: Mapping[str, Samples]) -> dict[str, float]:
        """Return the largest error of each output relative to its true peak.

        What is sampled at the very end is not shown by all runs: there its last row does not count.
        """
        times = np.unique(np.concatenate([t for t, _ in found.values()]))
        true, errors = self.composed(times), {}
        for port, (t, values) in found.items():
            wanted = true[port][np.searchsorted(times, t)]
            model = self.models[port.partition(".")[0]]
            rows = slice(None, -1) if getattr(model, "period", None) is not None else slice(None)
            errors[port] = relative_error(values[rows], wanted[rows])
        if self.reference is not None:
            errors[self.port] = self.error(*found[self.port])
        return errors


def relative_error(values: Vector, true: Vector) -> float:
    """Return the largest error relative to the true peak; inf if values are, 0 where nothing moves at all."""
    if not np.isfinite(values).all():
        return float("inf")
    error, peak = np.abs(values - true).max(), np.abs(true).max()
    return float(error / peak) if peak > TINY else 0.0 if error <= TINY else float("inf")


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
