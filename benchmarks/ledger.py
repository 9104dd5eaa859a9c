"""What the accounts of power bonds cost: a chain with a hundred bonds, with and without them, side by side.

In:  nothing; `python benchmarks/ledger.py [--quick]`
Out: per coupling the shortest milliseconds of a run without bonds, with bonds, and with their columns
     recorded too; what bonds and columns cost, and the limit that was set

The cost is the middle one of the ratios of rounds: in each, runs without bonds are made before and after
those with them, so that a machine that slows down or speeds up counts for both. The quartiles tell how sure
it is.

A chain of 101 masses, each on a spring and a damper of its own and joined to the next by a spring that the
left one owns, with 100 bonds: bare (three states, as little as can be) and with four modes inside. Native
engine, one thread, all outputs kept at every step.
"""

from __future__ import annotations

import os
import statistics
import sys
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import hocket as hk

QUICK = "--quick" in sys.argv
BONDS = 100
LIMIT = 1.10
STOP = 1
ROUNDS = 5 if QUICK else 40
COUPLINGS: dict[str, tuple[hk.Orchestrator, Any]] = {
    "Jacobi, hold": (hk.Jacobi(), "hold"),
    "Jacobi, lines": (hk.Jacobi(), "linear"),
    "Jacobi, tangents": (hk.Jacobi(), hk.Hermite()),
    "Jacobi, parabolas": (hk.Jacobi(), "quadratic"),
    "Gauss-Seidel, hold": (hk.GaussSeidel(), "hold"),
    "Gauss-Seidel, lines": (hk.GaussSeidel(), "linear"),
    "two sweeps, lines": (hk.Iterate(hk.Jacobi(), None, 2), "linear"),
    "step control, lines": (hk.Adaptive(hk.Jacobi(), 1e3), "linear"),
}


def link(last: bool, modes: int) -> hk.StateSpace:
    """Return a mass on a spring and a damper: x' = v, v' = -x - 0.1 v + f - F, F' = v - w.

    Each of its inner modes is a smaller mass on a spring inside it.
    """
    inputs = ["f [N] = 0"] if last else ["f [N] = 0", "w [m/s]"]
    force, size = 0.0 if last else 1.0, 3 + 2 * modes
    A = np.zeros((size, size))
    A[:3, :3] = [[0, 1, 0], [-1, -0.1, -force], [0, force, 0]]
    for k in range(modes):
        r, s, c = 3 + 2 * k, 4 + 2 * k, 4.0 + k  # its place relative to the mass, and its speed
        A[r, s], A[r, 1], A[s, r], A[1, r] = 1, -1, -c, 0.1 * c
    B = np.zeros((size, len(inputs)))
    B[1, 0] = 1
    if not last:
        B[2, 1] = -1
    C = np.eye(3, size)[1:]
    x0 = np.eye(size)[0]
    return hk.StateSpace(A, B, C, x0=x0, inputs=inputs, outputs=["v [m/s]", "F [N]"])


def chain(bonds: bool, coupling: str, modes: int) -> hk.Composite:
    """Return the chain: every link gives its force to the next, and gets the speed of that."""
    inner, end = link(False, modes), link(True, modes)
    models = {f"m{k}": end if k == BONDS else inner for k in range(BONDS + 1)}
    wires: dict[str, str] = {}
    for k in range(BONDS):
        wires |= {f"m{k + 1}.f": f"m{k}.F", f"m{k}.w": f"m{k + 1}.v"}
    joints = {f"b{k}": hk.Bond(f"m{k + 1}.f", f"m{k}.w") for k in range(BONDS)}
    scenario = hk.Scenario(models, wires, bonds=joints if bonds else None)
    return hk.Composite(scenario, "1 ms", *COUPLINGS[coupling])


def milliseconds(composite: hk.Composite, ledger: bool = False) -> float:
    """Return how long the steps of a run take, without its start."""
    run = hk.run(composite, STOP, engine="native", threads=1, ledger=ledger)
    assert run.info["engine"] == "native"
    return 1e3 * float(run.info["timings"]["phases"]["steps"])


def compared(coupling: str, modes: int) -> float:
    """Print the times of a coupling; return what the accounts cost, as a ratio."""
    without, bonded = (chain(bonds, coupling, modes) for bonds in (False, True))
    calls = [(without, False), (bonded, False), (bonded, False), (without, False), (bonded, True)]
    rounds = [[milliseconds(*call) for call in calls] for _ in range(ROUNDS + 1)][1:]
    costs = sorted((each[1] + each[2]) / (each[0] + each[3]) for each in rounds)
    columns = statistics.median(2 * each[4] / (each[0] + each[3]) for each in rounds)
    shortest = [min(column) for column in zip(*rounds, strict=True)]
    times = min(shortest[0], shortest[3]), min(shortest[1], shortest[2]), shortest[4]
    told = "".join(f"{each:>12.3f}" for each in times)
    cost, low, high = (costs[len(costs) * k // 4] for k in (2, 1, 3))
    named = f"{coupling:<20}{3 + 2 * modes:>4} states"
    print(f"{named}{told}{cost:>10.3f} ({low:.3f} to {high:.3f}){columns:>10.3f}")
    return cost


def main() -> None:
    """Print the table."""
    print(f"{BONDS} bonds, {BONDS + 1} simulators, {STOP * 1000} steps, {ROUNDS} rounds")
    heads = "".join(f"{head:>12}" for head in ("without, ms", "bonds, ms", "columns, ms"))
    print(f"{'':<31}{heads}{'bonds, times (quartiles)':>28}{'columns':>8}")
    worst = max(compared(coupling, modes) for modes in (0, 4) for coupling in COUPLINGS)
    print(f"the ledger costs {100 * (worst - 1):.1f} % at the most; the limit is {100 * (LIMIT - 1):.0f} %")


if __name__ == "__main__":
    main()
