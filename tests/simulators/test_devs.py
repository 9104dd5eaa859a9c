"""Atomic DEVS models: queues with known departures, confluence, rollback, and what is refused."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest

import hocket as hk
from hocket.testing import check_simulator
from scenarios.hybrid import both_engines, present, rows, values_at
from systems import ENGINES


class Generator(hk.Atomic):
    """Emits 1, 2, 3 ... every `period` seconds, first after one of them."""

    outputs: ClassVar = ["job"]

    def __init__(self, period: Any = 1, jobs: int = 10**9):
        self.period, self.jobs, self.count = period, jobs, 0

    def time_advance(self) -> Any:
        return self.period if self.count < self.jobs else None

    def output(self) -> dict[str, float]:
        return {"job": self.count + 1.0}

    def internal(self) -> None:
        self.count += 1


class Server(hk.Atomic):
    """A queue with one server: first come, first served."""

    inputs: ClassVar = ["job"]
    outputs: ClassVar = ["done", hk.Port("waiting")]

    def __init__(self, service: Any = "1.5 s"):
        self.service, self.left = service, math.inf
        self.queue: list[float] = []

    def time_advance(self) -> Any:
        return self.left

    def output(self) -> dict[str, float]:
        return {"done": self.queue[0], "waiting": len(self.queue) - 1.0}

    def internal(self) -> None:
        self.queue.pop(0)
        self.left = self.service if self.queue else math.inf

    def external(self, elapsed: float, inputs: Any) -> None:
        if self.queue:
            left = 1.5 if self.left == self.service else self.left
            self.left = left - elapsed
        else:
            self.left = self.service
        self.queue.append(inputs["job"])


def chain(**models: Any) -> hk.Composite:
    names = list(models)
    wires = {f"{b}.job": f"{a}.{'job' if a == names[0] else 'done'}" for a, b in itertools.pairwise(names)}
    return hk.Composite(hk.Scenario(models, wires), "1/4 s")


def test_a_queue_departs_when_it_must(tmp_path: Path) -> None:
    """Arrivals at 1, 2, 3, 4, each served for 1.5: departures at 2.5, 4, 5.5, 7."""
    composite = chain(source=hk.Devs(Generator, jobs=4), server=hk.Devs(Server))
    run = both_engines(composite, tmp_path, stop=8)
    assert present(run, "source.job") == [(float(k), float(k)) for k in range(1, 5)]
    assert present(run, "server.done") == [(2.5, 1.0), (4.0, 2.0), (5.5, 3.0), (7.0, 4.0)]
    assert [values_at(run, "server.waiting", t)[-1] for t in (2.5, 4.0, 5.5, 7.0)] == [1.0, 1.0, 1.0, 0.0]


def test_two_queues_in_a_row(tmp_path: Path) -> None:
    composite = chain(
        source=hk.Devs(Generator, jobs=3),
        first=hk.Devs(Server, service="1/2 s"),
        second=hk.Devs(Server, service="1/4 s"),
    )
    run = both_engines(composite, tmp_path, stop=4)
    assert present(run, "second.done") == [(1.75, 1.0), (2.75, 2.0), (3.75, 3.0)]


@pytest.mark.parametrize("step", ["1/10 s", "1 s", "2/5 s"])
@pytest.mark.parametrize(
    ("periods", "stop", "counts", "together"),
    [
        (("1/3 s", "1/2 s"), 10, (30, 20), 10),
        ((Fraction(1, 3), 0.5), 10, (30, 20), 10),
        ((0.1, 0.3), 30, (300, 100), 100),
    ],
)
def test_periods_that_meet(
    periods: Any, stop: int, counts: tuple[int, int], together: int, step: str, tmp_path: Path
) -> None:
    """The first beat is one period after the start: one less of each than with a beat at zero."""
    models = {name: hk.Devs(Generator, period=period) for name, period in zip("ab", periods, strict=True)}
    run = both_engines(hk.Composite(hk.Scenario(models, {}), step), tmp_path, stop=stop)
    found = {name: [t for t, _ in present(run, f"{name}.job")] for name in "ab"}
    assert tuple(len(times) for times in found.values()) == counts
    assert len({*found["a"]} & {*found["b"]}) == together
    _, a = rows(run, "a.job")
    _, b = rows(run, "b.job")
    assert sum((a == a) & (b == b)) == together, "in the same instants"


class Confluent(hk.Atomic):
    """Is due every second; a job that comes meanwhile is added to its sum, with the time elapsed."""

    inputs: ClassVar = ["job"]
    outputs: ClassVar = [hk.Port("sum"), hk.Port("beats")]

    def __init__(self) -> None:
        self.sum, self.beats = 0.0, 0
        self.log: list[Any] = []

    def time_advance(self) -> int:
        return 1

    def output(self) -> dict[str, float]:
        return {"sum": self.sum, "beats": self.beats + 1}

    def internal(self) -> None:
        self.beats += 1
        self.log.append("internal")

    def external(self, elapsed: float, inputs: Any) -> None:
        self.sum += 100.0 * elapsed + inputs["job"]
        self.log.append("external")


class Deaf(Confluent):
    """Ignores what comes when it is due."""

    def confluent(self, inputs: Any) -> None:
        self.internal()


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize(("model", "sum_at_3"), [(Confluent, 1.0 + 2.0), (Deaf, 0.0)])
def test_both_at_once(model: type, sum_at_3: float, names: tuple[str, str], tmp_path: Path) -> None:
    """The generator emits 1 at 1 s, 2 at 2 s: when the other is due. Names do not matter."""
    source, target = names
    models = {source: hk.Devs(Generator), target: hk.Devs(model)}
    composite = hk.Composite(hk.Scenario(models, {f"{target}.job": f"{source}.job"}), "1/4 s")
    run = both_engines(composite, tmp_path, stop=3)
    assert values_at(run, f"{target}.sum", 3.0)[-1] == sum_at_3
    assert values_at(run, f"{target}.beats", 3.0)[-1] == 3.0


def test_elapsed_time_is_told(tmp_path: Path) -> None:
    """A job every 0.4 s restarts the second of the other: it is never due, and 0.4 s elapse each time."""
    models = {"a": hk.Devs(Generator, period="0.4 s", jobs=4), "b": hk.Devs(Confluent)}
    composite = hk.Composite(hk.Scenario(models, {"b.job": "a.job"}), "1/4 s")
    run = both_engines(composite, tmp_path, stop=3)
    times = rows(run, "b.beats")[0][1:][
        [bool(d) for d in rows(run, "b.beats")[1][1:] - rows(run, "b.beats")[1][:-1]]
    ]
    assert list(times) == [2.6], "a second after the last job, at 1.6 s"
    assert values_at(run, "b.sum", 2.6)[-1] == pytest.approx(4 * 40.0 + 1 + 2 + 3 + 4, abs=1e-9)


def test_a_queue_rolls_back_with_a_ball(tmp_path: Path) -> None:
    def bounce(t: float, x: Any, u: Any) -> list[float]:
        return [0.0, -0.7 * x[1]]

    hits = hk.Event(lambda t, x, u: x[0], "falling", bounce)
    ball = hk.Ode(lambda t, x, u: [x[1], -9.81], x0=[1.0, 0.0], outputs=["h", "v"], events=[hits])
    models = {"source": hk.Devs(Generator, jobs=4), "server": hk.Devs(Server), "ball": ball}
    scenario = hk.Scenario(models, {"server.job": "source.job"})
    run = both_engines(hk.Composite(scenario, "1/4 s"), tmp_path, stop=2.5)
    assert present(run, "server.done") == [(2.5, 1.0)]
    run = both_engines(hk.Composite(scenario, "5/2 s", hk.Iterate(tolerance=1e-9)), tmp_path / "b", stop=2.5)
    assert present(run, "server.done") == [(2.5, 1.0)]


def test_the_laws_hold() -> None:
    check_simulator(hk.Devs(Generator, period="0.07 s"))
    check_simulator(hk.Devs(Server))


def test_a_recipe_is_data() -> None:
    model = hk.Devs(Server, service=2)
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert again.parameters == {"service": 2}
    assert [port.event for port in model.inputs + model.outputs] == [True, True, False]
    assert model.outputs[1].held


class Misspelt(Generator):
    def output(self) -> dict[str, float]:
        return {"jop": 1.0}


class Backwards(Generator):
    def time_advance(self) -> float:
        return -1.0


class Lost(Generator):
    def time_advance(self) -> str:
        return "later"


class Listed(Generator):
    def output(self) -> Any:
        return ["job"]


class Wordy(Generator):
    def output(self) -> Any:
        return {"job": "one"}


class Unhashable(Generator):
    def time_advance(self) -> Any:
        return [1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Listed, "output() returned ['job'], expected values by name, or {}"),
        (Wordy, "output() gives 'one' for `job`, expected a number"),
        (Unhashable, "time_advance() returned [1], expected a duration, or None"),
        (Misspelt, "output() names `jop`, expected one of job"),
        (Backwards, "time_advance() returned -1.0, expected a duration of zero or above"),
        (Lost, "time_advance() returned 'later': `later` is not a duration"),
    ],
)
def test_wrong_answers_are_named(model: type, words: str, engine: str, tmp_path: Path) -> None:
    composite = hk.Composite(hk.Scenario({"a": hk.Devs(model)}, {}), "1/4 s")
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(composite, stop=2, engine=engine, folder=tmp_path / "run")
    assert words in str(caught.value)
    assert "`a`" in str(caught.value)


class Portless(Generator):
    outputs: ClassVar[list[str]] = []


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: hk.Devs(dict), "is not an atomic model"),
        (lambda: hk.Devs(Generator, perod=1), "`Generator` has no parameter `perod`"),
        (lambda: hk.Devs(Portless), "Portless` has neither inputs nor outputs"),
        (lambda: hk.Devs(Generator, outputs=["a", "a"]), "two outputs are named `a`"),
    ],
)
def test_wrong_models_are_refused(build: Any, words: str) -> None:
    with pytest.raises(hk.ScenarioError) as caught:
        build()
    assert words in str(caught.value)
