"""What the accounts of power bonds cost: a chain with a hundred bonds, with and without them, side by side.

In:  nothing; `python benchmarks/ledger.py [--quick]`
Out: per extrapolation the milliseconds of a run without bonds, with bonds, and with their columns recorded
     too, the ratios, and the limit that was set; times are the shortest of rounds in which all take turns

A chain of 101 masses, each on a spring and a damper of its own and joined to the next by a spring that the
left one owns, with 100 bonds: bare (three states, as little as can be) and with four modes inside. Native
engine, one thread, all outputs kept at every step.
"""

from __future__ import annotations

import os
import statistics
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import hocket as hk

QUICK = "--quick" in sys.argv
BONDS = 100
LIMIT = 1.10
STOP = 1
ROUNDS = 3 if QUICK else 60


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


def chain(bonds: bool, extrapolation: str, modes: int) -> hk.Composite:
    """Return the chain: every link gives its force to the next, and gets the speed of that."""
    inner, end = link(False, modes), link(True, modes)
    models = {f"m{k}": end if k == BONDS else inner for k in range(BONDS + 1)}
    wires: dict[str, str] = {}
    for k in range(BONDS):
        wires |= {f"m{k + 1}.f": f"m{k}.F", f"m{k}.w": f"m{k + 1}.v"}
    joints = {f"b{k}": hk.Bond(f"m{k + 1}.f", f"m{k}.w") for k in range(BONDS)}
    scenario = hk.Scenario(models, wires, bonds=joints if bonds else None)
    return hk.Composite(scenario, "1 ms", hk.Jacobi(), extrapolation)


def seconds(composite: hk.Composite, ledger: bool) -> float:
    """Return how many milliseconds the steps of a run take, without its start."""
    run = hk.run(composite, STOP, engine="native", threads=1, ledger=ledger)
    assert run.info["engine"] == "native"
    return 1e3 * float(run.info["timings"]["phases"]["steps"])


def compared(extrapolation: str, modes: int) -> float:
    """Print the times of one extrapolation; return what the accounts cost, as a ratio."""
    without, with_bonds = (chain(bonds, extrapolation, modes) for bonds in (False, True))
    rounds = [
        (seconds(without, False), seconds(with_bonds, False), seconds(with_bonds, True))
        for _ in range(ROUNDS + 1)
    ][1:]
    times = [min(column) for column in zip(*rounds, strict=True)]
    ratios = [times[k] / times[0] for k in (1, 2)]
    middle = statistics.median(each[1] / each[0] for each in rounds)
    told = "".join(f"{each:>12.3f}" for each in (*times, *ratios))
    print(f"{extrapolation:<8}{3 + 2 * modes:>4} states{told}{middle:>12.3f}")
    return float(ratios[0])


def main() -> None:
    """Print the table."""
    print(f"{BONDS} bonds, {BONDS + 1} simulators, {STOP * 1000} steps, {ROUNDS} rounds")
    heads = ("without, ms", "bonds, ms", "columns, ms", "bonds", "columns", "median")
    print(f"{'':<19}" + "".join(f"{head:>12}" for head in heads))
    for modes in (0, 4):
        worst = max(compared(extrapolation, modes) for extrapolation in ("hold", "linear"))
        cost = (
            f"the ledger costs {100 * (worst - 1):.1f} % at the most; the limit is {100 * (LIMIT - 1):.0f} %"
        )
        print(f"with {3 + 2 * modes} states each, {cost}")


if __name__ == "__main__":
    main()
