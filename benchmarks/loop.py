"""How much hocket adds to a bare loop; every ratio comes from one run, side by side.

In:  nothing; `python benchmarks/loop.py [--quick]`
Out: a table of ratios, each with the limit that hocket sets itself
"""

from __future__ import annotations

import ctypes
import gc
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter

import numpy as np

import hocket as hk
from hocket.engine.initialise import initialise
from hocket.engine.native.engine import NativeEngine
from hocket.engine.opening import open_level
from hocket.engine.selection import bind_tables, choose_tables
from hocket.execution.session import pause_collector
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree

QUICK = "--quick" in sys.argv
H = 0.01
KINDS = 50


def models(count: int) -> list[hk.StateSpace]:
    """Return first-order lags x' = -k (x - u); as many kinds as a real system might have."""
    rates = [1.0 + 0.1 * (number % KINDS) for number in range(min(count, KINDS))]
    return [
        hk.StateSpace([[-k]], [[k]], [[1.0]], x0=[1.0 + 0.01 * i], inputs=["u"], outputs=["y"])
        for i, k in enumerate(rates)
    ]


def ring(count: int) -> hk.Composite:
    """Return a ring: each is driven by the one before it."""
    kinds = models(count)
    names = [f"s{number}" for number in range(count)]
    chosen = {name: kinds[number % len(kinds)] for number, name in enumerate(names)}
    wires = {f"{name}.u": f"{names[number - 1]}.y" for number, name in enumerate(names)}
    return hk.Composite(
        hk.Scenario(chosen, wires, record=[]), step=H, orchestrator=hk.Jacobi(outputs="stale")
    )


def started(
    composite: hk.Composite, record: list[str] | None = None, threads: int | None = 1
) -> NativeEngine:
    """Return an engine that is ready to step, so that only the loop is timed."""
    with pause_collector():
        design = plan_tree(composite)
        level = open_level(design, clock_of(design))
        initialise(level, 0.0)
        recorded = bind_tables(level, choose_tables(design, level.clock, record or [], None))
        return NativeEngine(level, recorded, threads)


def timed(engine: NativeEngine, steps: int) -> float:
    """Return the seconds that so many steps take, rows being taken out as in a run."""
    begin = perf_counter()
    left = steps
    while left:
        left -= engine.run(left, 1e9)
        for index in range(len(engine.recorded)):
            engine.rows(index)
    return perf_counter() - begin


def library() -> ctypes.CDLL:
    """Compile the yardstick."""
    folder = Path(tempfile.mkdtemp())
    target = folder / "bare_loop.so"
    source = Path(__file__).with_name("bare_loop.c")
    subprocess.run(["cc", "-O3", "-ffp-contract=off", "-shared", "-fPIC", source, "-o", target], check=True)
    loaded = ctypes.CDLL(str(target))
    loaded.indirect.restype = loaded.fused.restype = loaded.chain.restype = ctypes.c_double
    loaded.size.restype = ctypes.c_size_t
    return loaded


def bare(loaded: ctypes.CDLL, count: int, steps: int) -> tuple[float, float, float]:
    """Return the seconds of the C loop with calls, of the fused one, and the final value of the first."""
    kinds = models(count)
    maps = [kind.open().maps(H, 0) for kind in kinds]
    a = np.array([maps[i % len(maps)].Phi[0, 0] for i in range(count)])
    b = np.array([maps[i % len(maps)].Gamma[0, 0, 0] for i in range(count)])
    x = np.array([kinds[i % len(kinds)].x0[0] for i in range(count)])
    source = np.array([(i - 1) % count for i in range(count)], dtype=np.int32)
    pointer = ctypes.c_void_p
    simulators = ctypes.create_string_buffer(loaded.size() * count)
    loaded.prepare(simulators, pointer(a.ctypes.data), pointer(b.ctypes.data), pointer(x.ctypes.data), count)
    y = x.copy()
    calls = loaded.indirect(
        simulators, pointer(y.ctypes.data), pointer(source.ctypes.data), count, ctypes.c_long(steps)
    )
    state, spare = x.copy(), x.copy()
    arrays = [pointer(array.ctypes.data) for array in (state, spare, a, b, source)]
    return calls, loaded.fused(*arrays, count, ctypes.c_long(steps)), float(y[0])


def line(what: str, value: float, limit: str) -> None:
    """Print one result."""
    print(f"{what:<72}{value:>9.2f}   {limit}")


def loops() -> None:
    """Compare hocket with the C loop."""
    count, steps = 1000, 2000 if QUICK else 10_000
    loaded = library()
    plain, recording = started(ring(count)), started(ring(count), [f"s{i * 100}.y" for i in range(10)])
    ratios, fused, extra = [], [], []
    for _ in range(5):
        with_rows = timed(recording, steps)
        hocket = timed(plain, steps)
        c, array, _ = bare(loaded, count, steps)
        ratios.append(hocket / c)
        fused.append(hocket / array)
        extra.append(with_rows / hocket)
    print(f"a ring of {count} first-order simulators, {steps} steps, median of 5:")
    line("  hocket: nanoseconds per simulator step", hocket / count / steps * 1e9, "")
    line("  hocket / C loop with one indirect call per simulator", statistics.median(ratios), "at most 2")
    line("  hocket / C loop fused over arrays (for orientation)", statistics.median(fused), "")
    line("  with ten ports recorded / without", statistics.median(extra), "at most 1.2")


class Nothing:
    """A simulator that does nothing: what is left is hocket's own time."""

    inputs = ("u",)
    outputs = ("y",)

    def start(self, t: float) -> None:
        """Begin."""
        self.y = [0.0]

    def output(self, t: float) -> list[float]:
        """Return a constant."""
        return self.y

    def step(self, t: float, h: float, u: object) -> float:
        """Do nothing."""
        return t + h


def python() -> None:
    """Measure hocket's own time around simulators written in Python."""
    count, steps = 100, 500 if QUICK else 3000
    model = hk.Python(Nothing)
    names = [f"p{number}" for number in range(count)]
    wires = {f"{name}.u": f"{names[number - 1]}.y" for number, name in enumerate(names)}
    scenario = hk.Scenario(dict.fromkeys(names, model), wires, record=[])
    engine = started(hk.Composite(scenario, step=H))
    objects = [Nothing() for _ in names]
    u = np.zeros((1, 1))
    for each in objects:
        each.start(0.0)
    own = []
    for _ in range(5):
        begin = perf_counter()
        for k in range(steps):
            for each in objects:
                each.step(k * H, H, u)
            for each in objects:
                each.output(k * H)
        theirs = perf_counter() - begin
        own.append((timed(engine, steps) - theirs) / count / steps * 1e6)
    print("simulators written in Python:")
    line("  hocket's own microseconds per simulator step", statistics.median(own), "at most 1.5")


def machine(loaded: ctypes.CDLL) -> float:
    """Return what a second thread gains without hocket: the same work, in turn or side by side."""
    count = ctypes.c_long(20_000_000)
    begin = perf_counter()
    for _ in range(2):
        loaded.chain(count)
    in_turn = perf_counter() - begin
    workers = [threading.Thread(target=loaded.chain, args=(count,)) for _ in range(2)]
    begin = perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return in_turn / (perf_counter() - begin)


def threads() -> None:
    """Measure what a second thread gains with two heavy simulators: a small system with many micro steps."""
    A = [[0, 1, 0, 0], [-2, -0.1, 1, 0], [0, 0, 0, 1], [1, 0, -2, -0.1]]
    heavy = hk.StateSpace(
        A, [[0], [1], [0], [0]], [[1, 0, 0, 0]], x0=[1, 0, 0, 0],
        inputs=["u"], outputs=["y"], method="rk4", step="1/1000000 s",
    )  # fmt: skip
    scenario = hk.Scenario({"a": heavy, "b": heavy}, {"a.u": "b.y", "b.u": "a.y"}, record=[])
    composite = hk.Composite(scenario, step=H)
    one, two = started(composite), started(composite, threads=2)
    steps = 100 if QUICK else 1000
    timed(two, 10)
    gains, bare_gains, loaded = [], [], library()
    for _ in range(5):
        single = timed(one, steps)
        gains.append(single / timed(two, steps))
        bare_gains.append(machine(loaded))
    print("two heavy native simulators:")
    line("  microseconds per step of one", single / steps / 2 * 1e6, "about 200")
    line("  one thread / two threads, median of 5", statistics.median(gains), "at least 1.7")
    line("  the same for two bare threads in C (what the machine gives)", statistics.median(bare_gains), "")


def scale() -> None:
    """Measure how time and memory grow with the number of simulators."""
    print("scale (one process per row):")
    print(f"  {'simulators':>12}{'build and plan, s':>20}{'ns per sim step':>18}{'bytes per simulator':>22}")
    for count in (100, 1000, 10_000, 100_000):
        subprocess.run([sys.executable, __file__, "--scale", str(count)], check=True)


def resident() -> int:
    """Return the bytes of memory in use."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def scale_row(count: int) -> None:
    """Print one row of the scale table."""
    started(ring(10))
    before = resident()
    begin = perf_counter()
    engine = started(ring(count))
    built = perf_counter() - begin
    memory = (resident() - before) / count
    steps = max(20, 10_000_000 // count)
    timed(engine, 5)
    best = min(timed(engine, steps) for _ in range(3))
    print(f"  {count:>12}{built:>20.3f}{best / steps / count * 1e9:>18.2f}{memory:>22.0f}")


if __name__ == "__main__":
    if "--scale" in sys.argv:
        scale_row(int(sys.argv[-1]))
    else:
        loops()
        python()
        threads()
        scale()
