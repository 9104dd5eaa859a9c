"""What `hocket check` costs: seconds, for small and large scenarios.

In:  nothing; `python benchmarks/check.py`
Out: a table, with the limits that were set
"""

from __future__ import annotations

import os
import sys
from fractions import Fraction
from pathlib import Path
from time import perf_counter

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np

import hocket as hk
from hocket.analysis.coupling_check import check
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import spectral_radius
from systems import three_masses, two_masses


def large(count: int, size: int) -> hk.Composite:
    """Return a net of random stable systems, each driven by two others."""
    rng = np.random.default_rng(1)
    models, links = {}, {}
    for k in range(count):
        A = rng.normal(size=(size, size)) / np.sqrt(size) - 2.0 * np.eye(size)
        B, C = rng.normal(size=(size, 2)), 0.1 * rng.normal(size=(2, size))
        x0 = rng.normal(size=size)
        models[f"m{k}"] = hk.StateSpace(A, B, C, x0=x0, inputs=["u0", "u1"], outputs=["y0", "y1"])
        links |= {f"m{k}.u{j}": f"m{(7 * k + 13 * j + 1) % count}.y{j}" for j in (0, 1)}
    return hk.Composite(hk.Scenario(models, links), "0.1 s")


def line(what: str, value: str, limit: str = "") -> None:
    """Print one figure."""
    print(f"{what:<64}{value:>12}   {limit}")


def main() -> None:
    """Print the table."""
    begin = perf_counter()
    check(three_masses(2, "0.1 s", "0.025 s"), Fraction(100))
    line("three masses, nested, 100 s, s", f"{perf_counter() - begin:.2f}", "under 2")
    composite = large(100, 10)
    begin = perf_counter()
    check(composite, Fraction(10))
    line("100 simulators, 1,000 states, 10 s, s", f"{perf_counter() - begin:.2f}", "under 10")
    begin, count = perf_counter(), 400
    for k in range(count):
        spectral_radius(read_linear(two_masses("Control21", 0.1 + 0.02 * k)))
    rate = 60.0 * count / (perf_counter() - begin)
    line("two masses, settings per minute", f"{rate:,.0f}", "10,000")


if __name__ == "__main__":
    main()
