"""What a process of its own costs an FMU: microseconds per step, isolated and not, side by side.

In:  nothing; `python benchmarks/isolation.py [--quick]`
Out: a table
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import hocket as hk
from fmus.build import build
from hocket.engine.initialise import initialise
from hocket.engine.native.engine import NativeEngine
from hocket.engine.opening import open_level
from hocket.planning.clocks import clock_of
from hocket.planning.prepare import prepare_composite
from hocket.planning.tree import build_tree
from hocket.simulators.fmu.recipe import Fmu

STEPS = 2_000 if "--quick" in sys.argv else 20_000
ROUNDS = 2 if "--quick" in sys.argv else 5


def native(path: Path, count: int, isolate: bool) -> tuple[Callable[[], float], Callable[[], None]]:
    """Return a round of steps of a ring in the native engine, timed, and how to end it."""
    names = [f"s{number}" for number in range(count)]
    wires = {f"{name}.u": f"{names[number - 1]}.y" for number, name in enumerate(names)}
    scenario = hk.Scenario({name: Fmu(path, isolate=isolate) for name in names}, wires, record=[])
    design = build_tree(
        prepare_composite(hk.Composite(scenario, step=1e-3, orchestrator=hk.Jacobi(outputs="stale")))
    )
    level = open_level(design, clock_of(design))
    initialise(level, 0.0)
    engine = NativeEngine(level, [], 1)

    def measured() -> float:
        begin = perf_counter()
        engine.run(STEPS, 1e9)
        return (perf_counter() - begin) / STEPS / count

    return measured, level.close


def called(path: Path, isolate: bool) -> tuple[Callable[[], float], Callable[[], None]]:
    """Return a round of steps and outputs from Python, timed, and how to end it."""
    simulator = Fmu(path, isolate=isolate).open()
    u = np.ones((1, 1))
    simulator.start(0.0)
    simulator.output(0.0, u)

    def measured() -> float:
        begin = perf_counter()
        for number in range(STEPS):
            simulator.step(1e-3 * number, 1e-3, u)
            simulator.output(1e-3 * (number + 1), u)
        return (perf_counter() - begin) / STEPS

    return measured, simulator.close


def starting(path: Path, count: int, isolate: bool) -> float:
    """Return the seconds until so many FMUs are started."""
    begin = perf_counter()
    simulators = [Fmu(path, isolate=isolate).open() for _ in range(count)]
    for simulator in simulators:
        simulator.start(0.0)
    took = perf_counter() - begin
    for simulator in simulators:
        simulator.close()
    return took


def best(make: Callable[[bool], tuple[Callable[[], float], Callable[[], None]]]) -> list[float]:
    """Return the fastest round in this process and isolated, in turn, so that both see the same machine."""
    pairs = [make(False), make(True)]
    times = [[measured() for measured, _ in pairs] for _ in range(ROUNDS)]
    for _, close in pairs:
        close()
    return [min(column) for column in zip(*times, strict=True)]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = build("lag", 2, folder=Path(folder))
        print(f"{'a step and its outputs, us':<40}{'in process':>12}{'isolated':>12}")
        for count in (1, 2, 4, 16):
            plain, isolated = best(lambda isolate, count=count: native(path, count, isolate))
            print(f"{f'native engine, {count} in a ring':<40}{plain * 1e6:12.2f}{isolated * 1e6:12.2f}")
        plain, isolated = best(lambda isolate: called(path, isolate))
        print(f"{'called from Python':<40}{plain * 1e6:12.2f}{isolated * 1e6:12.2f}")
        print("starting, ms")
        for count in (1, 4):
            plain, isolated = (
                min(starting(path, count, isolate) for _ in range(ROUNDS)) for isolate in (False, True)
            )
            print(f"{f'{count} at once':<40}{plain * 1e3:12.2f}{isolated * 1e3:12.2f}")


if __name__ == "__main__":
    main()
