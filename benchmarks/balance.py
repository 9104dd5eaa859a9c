"""What power-balanced coupling costs: steps with and without it, side by side.

In:  nothing; `python benchmarks/balance.py`
Out: microseconds per step of the level without balance, balanced by energy, and the ratio: the middle one of
     rounds in each of which both are run

Systems are those of the tests whose simulators are linear models, all in compiled code; one thread.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.pop(0)  # the folder of this file, which would be taken for the one of the tests
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import hocket as hk
from energy.systems import System, every

ROUNDS = 15
INPUTS: dict[str, Any] = {"lines": "linear", "tangents": hk.Hermite()}


def microseconds(system: System, balance: str | None, inputs: Any) -> float:
    """Return how long a step of the level takes, at the shortest step of the system."""
    composite = hk.Composite(system.scenario(balance), system.steps[-1], hk.Jacobi(), inputs)
    run = hk.run(composite, system.end, engine="native", threads=1)
    return 1e6 * float(run.info["timings"]["phases"]["steps"]) / int(run.info["counts"]["steps"])


def main() -> None:
    """Print the table."""
    print(f"{'':<36}{'without, us':>12}{'by energy, us':>15}{'times':>8}")
    for system in every():
        if not all(isinstance(model, hk.StateSpace) for model in system.models.values()):
            continue
        for name, inputs in INPUTS.items():
            rounds = [
                [microseconds(system, each, inputs) for each in (None, "energy")] for _ in range(ROUNDS + 1)
            ]
            without, balanced = (statistics.median(column) for column in zip(*rounds[1:], strict=True))
            times = statistics.median(one / other for other, one in rounds[1:])
            print(f"{f'{system.name}, {name}':<36}{without:>12.2f}{balanced:>15.2f}{times:>8.1f}")


if __name__ == "__main__":
    main()
