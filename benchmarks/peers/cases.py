"""The systems that are coupled, made of the test FMUs.

In:  the size of a ring; 2 stands for the two-mass oscillator
Out: units and wires, the FMUs built and unpacked
"""

from __future__ import annotations

import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from system import Unit, Wire

STEP = 1 / 128
"""Seconds; a power of two, so that no tool's clock drifts."""
BUILD = Path(__file__).resolve().parents[2] / "tests" / "fmus" / "build.py"


@dataclass(frozen=True)
class Case:
    """A system, and how it is stepped."""

    title: str
    size: int
    steps: int
    method: str = "jacobi"
    record: bool = False
    limit: float = 2.0
    """hocket's time is to be at most so many times that of the C loop."""


CASES = {
    "two-mass": Case("Two-mass oscillator, Jacobi", 2, 100_000),
    "two-mass-gs": Case("Two-mass oscillator, Gauss-Seidel", 2, 100_000, "gauss-seidel"),
    "ring-10": Case("Ring of 10 lags, Jacobi", 10, 100_000),
    "ring-100": Case("Ring of 100 lags, Jacobi", 100, 20_000, limit=1.5),
    "ring-1000": Case("Ring of 1,000 lags, Jacobi", 1000, 4_000, limit=1.5),
    "ring-100-rows": Case(
        "Ring of 100 lags, Jacobi, all outputs recorded at every step", 100, 20_000, record=True, limit=5.0
    ),
}


def coupled(case: Case, folder: Path) -> tuple[list[Unit], list[Wire]]:
    """Return units and wires."""
    if case.size == 2:
        # no dampers to the ground: it still moves at the end
        loose = {"first": {"d": 0.0, "d_coupling": 0.1}, "second": {"d": 0.0}}
        units = [Unit(kind, **built(kind, folder), parameters=values) for kind, values in loose.items()]
        return units, [
            Wire("second", "x", "first", "x"),
            Wire("second", "v", "first", "v"),
            Wire("first", "force", "second", "force"),
        ]
    # names of one length: some tools take a name for a prefix
    names = [f"s{number:04}" for number in range(case.size)]
    units = [
        Unit(
            name,
            **built("lag", folder),
            parameters={"T": 1.0 + 0.1 * (number % 50), "y0": 1.0 + 0.01 * number},
        )
        for number, name in enumerate(names)
    ]
    return units, [Wire(names[number - 1], "y", name, "u") for number, name in enumerate(names)]


@cache
def built(kind: str, folder: Path) -> dict[str, Any]:
    """Build an FMU, unpack it, and return what its description says."""
    path = builder().build(kind, 2, folder=folder, interfaces=["cs"])
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder / kind)
    root = ET.parse(folder / kind / "modelDescription.xml").getroot()
    variables = list(root.iter("ScalarVariable"))
    return {
        "fmu": str(path),
        "guid": root.get("guid"),
        "identifier": kind,
        "library": str(folder / kind / "binaries" / "linux64" / f"{kind}.so"),
        "inputs": [v.get("name") for v in variables if v.get("causality") == "input"],
        "outputs": [v.get("name") for v in variables if v.get("causality") == "output"],
        "references": {v.get("name"): int(v.get("valueReference", "")) for v in variables},
    }


@cache
def builder() -> Any:
    """Return tests/fmus/build.py as a module."""
    spec = spec_from_file_location("build", BUILD)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["build"] = module
    spec.loader.exec_module(module)
    return module
