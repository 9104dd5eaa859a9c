"""What is to be coupled, and a meter for the three things that are measured.

In:  a job as peers.py writes it, in JSON
Out: a System; seconds to load and to step, and the memory that loading took

This runs in the environments of the rivals: only the standard library is used.
"""

from __future__ import annotations

import gc
import json
import resource
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter


@dataclass(frozen=True)
class Unit:
    """An FMU, used under a name of its own."""

    name: str
    fmu: str
    """Path of the archive."""
    guid: str
    identifier: str
    library: str
    """Path of the binary, unpacked."""
    inputs: list[str]
    outputs: list[str]
    references: dict[str, int]
    parameters: dict[str, float]
    starts: dict[str, float] = field(default_factory=dict)
    """The inputs before the first step, as outputs that are handed on make them."""


@dataclass(frozen=True)
class Wire:
    """An output that drives an input."""

    source: str
    output: str
    target: str
    input: str


@dataclass(frozen=True)
class System:
    """Units, wires between them, and how they are to be stepped."""

    units: list[Unit]
    wires: list[Wire]
    step: float
    steps: int
    method: str
    """jacobi or gauss-seidel, in the order of the units."""
    record: bool
    """Whether all outputs are to be kept at every step."""
    at_once: bool
    """Whether a container FMU is to be stepped by a single call."""
    folder: Path
    """A place for files; gone afterwards."""

    @classmethod
    def read(cls, path: Path) -> System:
        """Read a job."""
        job = json.loads(path.read_text())
        units = [Unit(**unit) for unit in job.pop("units")]
        wires = [Wire(**wire) for wire in job.pop("wires")]
        return cls(units, wires, folder=path.parent, **job)

    @property
    def places(self) -> dict[tuple[str, str], int]:
        """Where each output is in the list of all."""
        names = [(unit.name, output) for unit in self.units for output in unit.outputs]
        return {name: place for place, name in enumerate(names)}

    def sources(self) -> list[list[int]]:
        """Return for each unit where the outputs that drive its inputs are, in the order of its inputs."""
        places = self.places
        driven = {(wire.target, wire.input): places[wire.source, wire.output] for wire in self.wires}
        return [[driven[unit.name, name] for name in unit.inputs] for unit in self.units]

    def refuse_unless(self, *methods: str) -> None:
        """Say so if the tool knows none of these methods."""
        if self.method not in methods:
            raise UnableError(f"it has no {self.method} method")


class UnableError(Exception):
    """The tool cannot do this."""


@dataclass
class Meter:
    """Takes the time and the memory."""

    load: float = 0.0
    steps: float = 0.0
    memory: int = 0
    """In kB."""
    stepped: int = 0
    marks: dict[str, float] = field(default_factory=dict)

    def begin(self) -> None:
        """Take note: loading begins."""
        self.memory = -resident()
        self.marks["begin"] = perf_counter()

    def loaded(self) -> None:
        """Take note: all is ready for the first step."""
        self.load = perf_counter() - self.marks["begin"]
        self.memory += resident()
        self.marks["steps"] = perf_counter()

    def done(self, steps: int) -> None:
        """Take note: so many steps have been made."""
        self.steps = perf_counter() - self.marks["steps"]
        self.stepped = steps


def resident() -> int:
    """Return the kB of memory in use."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def named(system: System, values: Iterable[float]) -> dict[str, float]:
    """Return all outputs by name."""
    names = [f"{unit}.{output}" for unit, output in system.places]
    return dict(zip(names, map(float, values), strict=True))
