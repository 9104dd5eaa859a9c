"""What hocket adds to the events of a SimPy line: microseconds per event, beside the bare environment.

In:  nothing; `python benchmarks/events.py [events]`
Out: a table: events, seconds of the bare environment and in hocket (the native engine), and the difference
     per event, for a line that only runs, one whose values drive a plant, and one that emits events

The same processes run in both, in one process, alternately; the smallest of several times of the processor
counts.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import simpy

import hocket as hk

LIMIT = 3.0
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


def seconds_of(task: Callable[[], Any]) -> float:
    begin = time.process_time()
    task()
    return time.process_time() - begin


def main() -> None:
    """Print the table."""
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
    main()
