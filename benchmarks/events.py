"""What events cost: a level that meets them, sampled controllers, and a SimPy line; each beside a yardstick.

In:  nothing; `python benchmarks/events.py [events]`
Out: three tables, each with the limit that hocket sets itself: a step between events against a step of the
     same level without events; sampled controllers against a loop in C; microseconds per event of a line

Both sides of a ratio run in one process, alternately; the smallest of several times counts, for noise only
ever adds to it.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import simpy

import hocket as hk
from hocket.engine.native.engine import NativeEngine
from loop import started, timed

LIMIT = 3.0
PAIRS, PERIODS = 100, 10
TURNS = 5
MACHINES = 4
Factory: TypeAlias = Callable[..., None]


def line(env: Any, ports: Any, emits: bool = False) -> None:
    """Start machines in a row with stores between them; a part is made in about a second."""
    stores = [simpy.Store(env) for _ in range(MACHINES)]

    def source() -> Any:
        number = 0
        while True:
            yield env.timeout(1.0)
            number += 1
            yield stores[0].put(number)

    def machine(place: int) -> Any:
        while True:
            part = yield stores[place].get()
            yield env.timeout(0.5 + 0.1 * place)
            ports["load"].value = float(place)
            if place + 1 < MACHINES:
                yield stores[place + 1].put(part)
            elif emits:
                ports["done"].put(part)

    env.process(source())
    for place in range(MACHINES):
        env.process(machine(place))


def clock(env: Any, _ports: Any, **_options: bool) -> None:
    """Start one process that only waits: every event has a time of its own."""

    def tick() -> Any:
        while True:
            yield env.timeout(0.1)

    env.process(tick())


def bare_ports() -> dict[str, Any]:
    return {"load": SimpleNamespace(value=0.0), "done": SimpleNamespace(put=abs)}


def count_events(factory: Factory, stop: float) -> int:
    """Return how many events the environment processes."""
    env, count = simpy.Environment(), 0
    factory(env, bare_ports())
    while env.peek() <= stop:
        env.step()
        count += 1
    return count


def run_bare(factory: Factory, stop: float) -> None:
    env = simpy.Environment()
    factory(env, bare_ports())
    env.run(until=stop)


def composite(factory: Factory, plant: bool, emits: bool) -> hk.Composite:
    done = hk.Port("done", event=True)
    models: dict[str, Any] = {"line": hk.SimPy(factory, outputs=["load", done], emits=emits)}
    if not plant:
        return hk.Composite(hk.Scenario(models, record=[]), 100)
    models["plant"] = hk.StateSpace([[-0.1]], [[0.1]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["y"])
    return hk.Composite(hk.Scenario(models, {"plant.u": "line.load"}), 100)


# a level that meets events, beside one that meets none


class Steady:
    """A source that does nothing between events, and has none."""

    outputs = ("u",)

    def start(self, t: float) -> None:
        """Begin."""
        self.count = 0

    def output(self, t: float) -> list[float]:
        """Return how many events there were."""
        return [float(self.count)]

    def step(self, t: float, h: float, u: object) -> None:
        """Do nothing."""


class Beat(Steady):
    """The same source, which announces an event every so many seconds."""

    def __init__(self, every: float):
        self.every = every

    def due(self) -> float:
        """Return the time of the next event."""
        return self.every * (self.count + 1)

    def react(self, t: float, n: int, u: object, present: object) -> None:
        """Show nothing."""

    def commit(self) -> bool:
        """Count."""
        self.count += 1
        return False


def chain(count: int, source: Any) -> hk.Composite:
    """Return lags in a row, driven by a source."""
    models: dict[str, Any] = {"source": source}
    wires = {}
    for number in range(count):
        rate = 1.0 + 0.1 * (number % 10)
        models[f"s{number}"] = hk.StateSpace(
            [[-rate]], [[rate]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["y"]
        )
        wires[f"s{number}.u"] = f"s{number - 1}.y" if number else "source.u"
    return hk.Composite(hk.Scenario(models, wires, record=[]), "1/100 s")


def compare_levels() -> None:
    """Print what a step between events costs, against a step of the same level without any.

    Events are at ends of steps: there are as many steps with them as without. Few and many of them tell their
    own cost, which is taken off.
    """
    steps, few, many = 20_000, 200, 1000
    print("a step between events / a step of the same level without events; and what an event itself costs")
    for count in (10, 100, 1000):
        sources = [hk.Python(Steady), *(hk.Python(Beat, every=0.01 * steps / each) for each in (few, many))]
        engines = [started(chain(count, source)) for source in sources]
        turns = [[timed(engine, steps) for engine in engines] for _ in range(TURNS)]
        without, seldom, often = (min(side) for side in zip(*turns, strict=True))
        event = (often - seldom) / (many - few)
        between = (seldom - few * event) / steps
        times = f"{without / steps * 1e6:8.2f} us, {between * 1e6:8.2f} us,{between * steps / without:6.2f}"
        print(
            f"  {count:>5} lags and a source in Python: {times}   at most 1.5; an event {event * 1e6:8.2f} us"
        )


# sampled controllers with several periods, beside a loop in C


def sampled_loops() -> hk.Composite:
    """Return plants, each under a controller whose period is 1 to 10 macro steps of 1 ms."""
    plants: dict[str, Any] = {}
    controllers: dict[str, Any] = {}
    wires = {}
    for number in range(PAIRS):
        rate = 1.0 + 0.1 * (number % PERIODS)
        plants[f"p{number}"] = hk.StateSpace(
            [[-rate]], [[rate]], [[1.0]], x0=[1.0 + 0.01 * number], inputs=["u"], outputs=["y"]
        )
        law = hk.StateSpace([[0.0]], [[1.0]], [[-0.5]], inputs=["e"], outputs=["u"])
        inside = hk.Scenario({"c": law}, {"c.e": "e", "u": "c.u"}, ["e"], ["u"], record=[])
        controllers[f"c{number}"] = hk.Composite(inside, f"{1 + number % PERIODS} ms", sampled=True)
        wires |= {f"p{number}.u": f"c{number}.u", f"c{number}.e": f"p{number}.y"}
    return hk.Composite(hk.Scenario(plants | controllers, wires, record=[]), "1 ms")


def bare_loop() -> Callable[[int], tuple[float, Any]]:
    """Return the yardstick in C: seconds, and the outputs of the plants, after so many steps."""
    target = Path(tempfile.mkdtemp()) / "sampled_loop.so"
    source = Path(__file__).with_name("sampled_loop.c")
    subprocess.run(["cc", "-O3", "-ffp-contract=off", "-shared", "-fPIC", source, "-o", target], check=True)
    loaded = ctypes.CDLL(str(target))
    loaded.sampled.restype, loaded.size.restype = ctypes.c_double, ctypes.c_size_t
    kinds = np.arange(PAIRS) % PERIODS
    rates, periods = 1.0 + 0.1 * kinds, (1 + kinds).astype(np.int32)
    pointer = ctypes.c_void_p

    def prepared(*numbers: Any) -> Any:
        objects = ctypes.create_string_buffer(loaded.size() * PAIRS)
        loaded.prepare(objects, *(pointer(array.ctypes.data) for array in numbers), PAIRS)
        return objects

    def run(steps: int) -> tuple[float, Any]:
        phi, y = np.exp(-rates * 1e-3), 1.0 + 0.01 * np.arange(PAIRS)
        plants = prepared(phi, 1.0 - phi, y.copy(), np.ones(PAIRS, dtype=np.int32))
        controllers = prepared(np.ones(PAIRS), periods * 1e-3, np.zeros(PAIRS), periods)
        gains, command = np.full(PAIRS, -0.5), np.zeros(PAIRS)
        arrays = [pointer(array.ctypes.data) for array in (gains, y, command)]
        return loaded.sampled(plants, controllers, *arrays, PAIRS, ctypes.c_long(steps)), y

    return run


def cpu_seconds(engine: NativeEngine, steps: int) -> float:
    """Return the seconds of processor time that so many steps take."""
    begin = time.process_time()
    timed(engine, steps)
    return time.process_time() - begin


def final_states(engine: NativeEngine) -> Any:
    """Return the states of the plants."""
    return np.array([engine.engine.state(0, engine.root.number[f"p{n}"])[0] for n in range(PAIRS)])


def compare_sampled() -> None:
    """Print what sampled controllers cost, against the loop in C, which must end at the same values."""
    steps, bare, engine = 20_000, bare_loop(), started(sampled_loops())
    timed(engine, steps)
    expected = bare(steps)[1]
    apart = float(np.max(np.abs(final_states(engine) - expected) / np.maximum(np.abs(expected), 1e-3)))
    if not apart < 1e-9:
        raise SystemExit(f"hocket and the loop in C end {apart:.1e} apart")
    pairs = [(bare(steps)[0], cpu_seconds(engine, steps)) for _ in range(4 * TURNS)]
    c, hocket = (min(side) / steps * 1e9 for side in zip(*pairs, strict=True))
    print(
        f"{PAIRS} sampled controllers with {PERIODS} periods on {PAIRS} plants, nanoseconds per step of 1 ms"
    )
    print(f"  C {c:.0f}, hocket {hocket:.0f}: {hocket / c:.2f} times the C loop   at most 2")
    print(f"  both end at the same values, to {apart:.1e} of their size")


# a line in SimPy


def seconds_of(task: Callable[[], Any]) -> float:
    begin = time.process_time()
    task()
    return time.process_time() - begin


def compare_lines() -> None:
    """Print what hocket adds to the events of a line."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    kinds: dict[str, tuple[Factory, bool, bool]] = {
        "alone, nothing recorded": (line, False, False),
        "drives a plant, all recorded": (line, True, False),
        "the same, and emits events": (line, True, True),
        "a clock: each at its own time": (clock, False, False),
    }
    print(f"a line of {MACHINES} machines")
    print(f"{'':<32}{'events':>8}{'bare':>9}{'hocket':>9}{'us per event':>14}{'at most':>9}")
    for name, (factory, plant, emits) in kinds.items():
        stop = 100.0 * max(1, round(wanted / count_events(factory, 1000.0) * 10.0))
        events, whole = count_events(factory, stop), composite(factory, plant, emits)
        bare, coupled = [], []
        for _ in range(TURNS):
            bare.append(seconds_of(partial(run_bare, factory, stop)))
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) / "run"
                task = partial(hk.run, whole, stop=stop, folder=place)
                coupled.append(seconds_of(task))
        added = (min(coupled) - min(bare)) / events * 1e6
        limit = f"{LIMIT:.1f}" if factory is line else ""
        print(f"{name:<32}{events:>8}{min(bare):>8.3f}s{min(coupled):>8.3f}s{added:>14.2f}{limit:>9}")


if __name__ == "__main__":
    compare_levels()
    compare_sampled()
    compare_lines()
