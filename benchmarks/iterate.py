"""What iterations cost and bring: a sweep against a plain step, sweeps to the end, errors, orders.

In:  nothing; `python benchmarks/iterate.py [--quick] [--cost]`
Out: tables; ratios come from one run, side by side, with the limit that was set

Cost: engines step the same ring of first-order simulators in turn. One makes Jacobi's step. One saves all,
goes back to there and makes that step: `Rewound(1)`, a plan written by hand, nothing is repeated. Others are
Iterates with a fixed number of sweeps; their time is divided by it. What saving and going back takes alone is
the difference of the first two. For orientation: ten sweeps written out, `Rewound(10)`, show what a Repeat
adds. Seconds are those of the processor, so that others on the machine do not count.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path
from time import process_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import hocket as hk
from hocket.engine.native.engine import NativeEngine
from hocket.plan import Plan, Restore, Save
from loop import models, started
from order import test_orders
from scenarios import test_iterations, test_scenario_three

QUICK = "--quick" in sys.argv
STALE = hk.Jacobi(outputs="stale")
ROUNDS = 3 if QUICK else 9


class Rewound:
    """Jacobi's step so many times, with all simulators saved once, and taken back before each."""

    outputs = "stale"

    def __init__(self, times: int):
        self.times = times

    def plan(self, scenario: hk.Scenario) -> Plan:
        """Return the plan of one step."""
        everyone = tuple(scenario.models)
        *sweep, record = STALE.plan(scenario).step
        return Plan((Save(everyone), *(Restore(everyone), *sweep) * self.times, record), outputs="stale")


def ring(count: int, orchestrator: object, extrapolation: str) -> hk.Composite:
    """Return a ring: each is driven by the one before it."""
    kinds = models(count)
    names = [f"s{number}" for number in range(count)]
    chosen = {name: kinds[number % len(kinds)] for number, name in enumerate(names)}
    wires = {f"{name}.u": f"{names[number - 1]}.y" for number, name in enumerate(names)}
    return hk.Composite(hk.Scenario(chosen, wires, record=[]), 0.01, orchestrator, extrapolation)


def timed(engine: NativeEngine, steps: int) -> float:
    """Return the seconds of the processor that so many steps take."""
    begin = process_time()
    while steps:
        steps -= engine.run(steps, 1e9)
    return process_time() - begin


def cost() -> None:
    """Compare a sweep with a plain step plus save and restore."""
    print(f"a ring of first-order simulators, native engine, ns per simulator step, median of {ROUNDS}")
    heads = ("plain", "and rewound", "2 sweeps", "ratio", "10 sweeps", "ratio", "written out", "ratio")
    print(f"  {'':<24}" + "".join(f"{head:>12}" for head in heads))
    print(f"  {'':<24}" + "".join(f"{limit:>12}" for limit in ("", "", "", "<= 1.5", "", "<= 1.5")))
    for count in (10, 100, 1000):
        for extrapolation in ("hold", "linear", "cubic"):
            cost_row(count, extrapolation)


def cost_row(count: int, extrapolation: str) -> None:
    """Print the times of one ring."""
    ways = [STALE, Rewound(1), hk.Iterate(STALE, None, 2), hk.Iterate(STALE, None, 10), Rewound(10)]
    engines = [started(ring(count, way, extrapolation)) for way in ways]
    steps = max(20, (20_000 if QUICK else 100_000) // count)
    rounds = []
    for _ in range(ROUNDS):
        plain, rewound, two, ten, out = (timed(engine, steps) / steps / count * 1e9 for engine in engines)
        rounds.append(
            (plain, rewound, two / 2, two / 2 / rewound, ten / 10, ten / 10 / rewound, out / 10, ten / out)
        )
    numbers = [statistics.median(column) for column in zip(*rounds, strict=True)]
    cells = "".join(f"{number:>12.{2 if at in (3, 5, 7) else 1}f}" for at, number in enumerate(numbers))
    print(f"  {f'{count} simulators, {extrapolation}':<24}{cells}")


def leading() -> None:
    """Print what it costs to lead sweeps: microseconds per sweep, of as many as are needed."""
    print("\nwhat leading adds: microseconds per sweep, to 1e-10")
    words = ("plain", "relax", "aitken", "quasi-newton", "newton")
    print(f"  {'':<24}" + "".join(f"{word:>14}" for word in words))
    for count in (2, 10, 50):
        cells = []
        for word in words:
            engine = started(ring(count, hk.Iterate(STALE, 1e-10, 200, word), "linear"))
            steps = 200 if QUICK else 1000
            timed(engine, 10)
            before = engine.sweeps()[""].total
            seconds = timed(engine, steps)
            cells.append(f"{seconds / (engine.sweeps()[''].total - before) * 1e6:.2f}")
        print(f"  {f'{count} numbers handed on':<24}" + "".join(f"{cell:>14}" for cell in cells))


def orders() -> None:
    """Print all orders, from the finest pair of steps."""
    print("\norders (solvers of order 4; finest pair of steps, 1/64 and 1/128 s)")
    print(f"  {'':<34}{'levels':>7}" + "".join(f"{f'degree {q}':>10}" for q in range(4)))
    ways = {
        "Jacobi": hk.Jacobi(),
        "Gauss-Seidel": hk.GaussSeidel(),
        "Iterate(Jacobi), 2 sweeps": hk.Iterate(hk.Jacobi(), None, 2),
        "Iterate(Jacobi), to 1e-13": hk.Iterate(hk.Jacobi(), 1e-13),
        "Iterate(Gauss-Seidel), to 1e-13": hk.Iterate(hk.GaussSeidel(), 1e-13),
    }
    for name, way in ways.items():
        for levels in (1, 2, 3):
            found = [
                test_orders.observed_order(levels, "rk4", way, degree)
                for degree in test_orders.extrapolators()
            ]
            print(f"  {name:<34}{levels:>7}" + "".join(f"{order:>10.3f}" for order in found))


if __name__ == "__main__":
    cost()
    leading()
    if "--cost" in sys.argv:
        sys.exit()
    test_iterations.show_counts(test_iterations.all_counts())
    test_iterations.show_eight()
    test_scenario_three.show(test_scenario_three.table())
    orders()
