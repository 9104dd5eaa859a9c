"""SimPy environments beside other simulators: known times, ports, and what is refused."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.simulators.simpy_environment import _environment_class
from scenarios.hybrid import both_engines, final_values, present, rows, values_at
from systems import ENGINES

simpy = pytest.importorskip("simpy")
DONE = hk.Port("done", event=True)
ORDER = hk.Port("order", event=True)


def line(env: Any, ports: Any, arrival: Any = 1, service: Any = 1.5, jobs: int = 4) -> None:
    """A queue with one machine: arrivals at 1, 2, 3 ..., one after the other."""
    machine = simpy.Resource(env)

    def job(number: int) -> Any:
        with machine.request() as request:
            ports["waiting"].value = len(machine.queue)
            yield request
            ports["busy"].value = 1.0
            yield env.timeout(service)
        ports["busy"].value = 0.0 if not machine.count else 1.0
        ports["waiting"].value = len(machine.queue)
        ports["done"].put(number)

    def source() -> Any:
        for number in range(1, jobs + 1):
            yield env.timeout(arrival)
            env.process(job(number))

    env.process(source())


def production_line(**parameters: Any) -> hk.SimPy:
    return hk.SimPy(line, outputs=[DONE, "busy", "waiting"], **parameters)


def test_a_line_beside_a_plant(tmp_path: Path) -> None:
    """The machine is busy from 1 to 7: a heater of 1 W fills a store with 6 J, exactly."""
    store = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["p"], outputs=["e"])
    scenario = hk.Scenario({"line": production_line(), "store": store}, {"store.p": "line.busy"})
    run = both_engines(hk.Composite(scenario, "0.7 s"), tmp_path, stop=8.4)
    assert present(run, "line.done") == [(2.5, 1.0), (4.0, 2.0), (5.5, 3.0), (7.0, 4.0)]
    assert run.final("store.e") == pytest.approx(6.0, abs=1e-14)
    assert final_values(run, "store.e", [2.5, 7.0]) == pytest.approx([1.5, 6.0], abs=1e-14)
    assert final_values(run, "line.waiting", [2.0, 3.0, 4.0]) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("times", [(Fraction(1, 3), Fraction(1, 2)), ("float", "float")])
def test_periods_that_meet(times: Any, tmp_path: Path) -> None:
    """1/3 and 1/2 for 10 s: 31 and 21 ticks, of which 11 coincide; as fractions and as floats."""
    periods = (1.0 / 3.0, 0.5) if times[0] == "float" else times

    def ticking(env: Any, ports: Any, period: Any) -> None:
        def clock() -> Any:
            while True:
                ports["tick"].put()
                yield env.timeout(period)

        env.process(clock())

    tick = hk.Port("tick", event=True)
    models = {n: hk.SimPy(ticking, outputs=[tick], period=p) for n, p in zip("ab", periods, strict=True)}
    run = both_engines(hk.Composite(hk.Scenario(models, {}), "1/5 s"), tmp_path, stop=10)
    a, b = ([t for t, _ in present(run, f"{name}.tick")] for name in "ab")
    assert (len(a), len(b), len({*a} & {*b})) == (31, 21, 11)


def shop(env: Any, ports: Any) -> None:
    """Answers an order after a second, with twice its value; remembers what it costs."""

    def serve() -> Any:
        while True:
            order = yield ports["order"].wait()
            price = ports["price"].value
            yield env.timeout(1)
            ports["done"].put(2.0 * order)
            ports["total"].value += price * order

    env.process(serve())


class Orders(hk.Atomic):
    outputs = ("order",)

    def __init__(self, times: Any):
        self.times = [Fraction(time) for time in times]

    def time_advance(self) -> Any:
        return self.times[0] if self.times else None

    def output(self) -> dict[str, float]:
        return {"order": float(len(self.times))}

    def internal(self) -> None:
        self.times.pop(0)


def test_a_process_waits_for_events_and_reads_values(tmp_path: Path) -> None:
    ramp = hk.Table([0.0, 10.0], {"y": [0.0, 10.0]})
    models = {
        "orders": hk.Devs(Orders, times=["1/3", "2", "1/2"]),
        "ramp": ramp,
        "shop": hk.SimPy(shop, [ORDER, "price"], [DONE, "total"]),
    }
    scenario = hk.Scenario(models, {"shop.order": "orders.order", "shop.price": "ramp.y"})
    run = both_engines(hk.Composite(scenario, "1/4 s"), tmp_path, stop=5)
    third = 1.0 / 3.0
    # orders of 3, 2, 1 at 1/3, 7/3 and 17/6; the last finds nobody waiting
    assert present(run, "shop.done") == [
        (pytest.approx(1 + third, abs=1e-12), 6.0),
        (pytest.approx(3 + third, abs=1e-12), 4.0),
    ]
    assert run.final("shop.total") == pytest.approx(3 * third + 2 * (2 + third), abs=1e-12)


def test_what_is_put_twice_takes_two_instants(tmp_path: Path) -> None:
    def twice(env: Any, ports: Any) -> None:
        def process() -> Any:
            yield env.timeout(1)
            ports["done"].put(1.0)
            ports["done"].put(2.0)

        env.process(process())

    def count(env: Any, ports: Any) -> None:
        def process() -> Any:
            while True:
                ports["sum"].value += yield ports["order"].wait()

        env.process(process())

    models = {"a": hk.SimPy(twice, outputs=[DONE]), "b": hk.SimPy(count, [ORDER], ["sum"])}
    composite = hk.Composite(hk.Scenario(models, {"b.order": "a.done"}), "1/4 s")
    run = both_engines(composite, tmp_path, stop=2)
    assert present(run, "a.done") == [(1.0, 1.0), (1.0, 2.0)]
    assert run.final("b.sum") == 3.0


def test_a_run_may_begin_later(tmp_path: Path) -> None:
    scenario = hk.Scenario({"line": production_line()}, {})
    run = both_engines(hk.Composite(scenario, "1/2 s"), tmp_path, start=10.5, stop=19)
    assert [t for t, _ in present(run, "line.done")] == [13.0, 14.5, 16.0, 17.5]


def ball(e: float) -> hk.Ode:
    return hk.Ode(
        lambda t, x, u: [x[1], -9.81],
        x0=[1.0, 0.0],
        outputs=["h", "v"],
        events=[hk.Event(lambda t, x, u: x[0], "falling", lambda t, x, u: [0.0, -e * x[1]])],
    )


def test_there_is_no_rollback_and_the_plan_says_so(tmp_path: Path) -> None:
    """The ball handles its bounces itself: it loses nothing, and is where it would be alone."""
    assert not production_line().capabilities.rollback
    scenario = hk.Scenario({"line": production_line(), "ball": ball(1.0)}, {})
    run = both_engines(hk.Composite(scenario, "1/4 s"), tmp_path, stop=8)
    assert any("`line` cannot roll back" in note for note in run.info["notes"])
    assert [t for t, _ in present(run, "line.done")] == [2.5, 4.0, 5.5, 7.0], "announced events are exact"
    fall = math.sqrt(2.0 / 9.81)
    since = (8.0 + fall) % (2.0 * fall) - fall
    assert run.final("ball.h") == pytest.approx(1.0 - 9.81 / 2.0 * since**2, abs=1e-8)


def test_zeno_beside_it_is_named_or_passed(tmp_path: Path) -> None:
    scenario = hk.Scenario({"line": production_line(), "ball": ball(0.7)}, {})
    with pytest.raises(hk.SimulatorError, match=r"pile up \(Zeno\).* before t = 2.5586339656 s"):
        hk.run(hk.Composite(scenario, "1/4 s"), stop=8, folder=tmp_path / "stops")
    run = both_engines(hk.Composite(scenario, "1/4 s", on_zeno="continue"), tmp_path, stop=8)
    assert [t for t, _ in present(run, "line.done")] == [2.5, 4.0, 5.5, 7.0]
    # it falls for one spacing, 1/256 of the step, before it is put back
    assert abs(run.final("ball.h")) <= 9.81 * (0.25 / 256.0) ** 2


def test_inside_a_level(tmp_path: Path) -> None:
    inner = hk.Composite(
        hk.Scenario({"line": production_line()}, {"busy": "line.busy"}, outputs=["busy"]), "1/4 s"
    )
    store = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["p"], outputs=["e"])
    scenario = hk.Scenario({"in": inner, "store": store}, {"store.p": "in.busy"})
    run = both_engines(hk.Composite(scenario, "1/2 s"), tmp_path, stop=8)
    assert run.final("store.e") == pytest.approx(6.0, abs=1e-14)
    assert [t for t, _ in present(run, "in.line.done")] == [2.5, 4.0, 5.5, 7.0]


# what is refused


def failing(env: Any, ports: Any) -> None:
    def process() -> Any:
        yield env.timeout(1)
        raise ZeroDivisionError("no parts left")

    env.process(process())


def held_put(env: Any, ports: Any) -> None:
    ports["busy"].put()


def event_set(env: Any, ports: Any) -> None:
    ports["done"].value = 1.0


def event_read(env: Any, ports: Any) -> None:
    print(ports["done"].value)


def misspelt(env: Any, ports: Any) -> None:
    ports["bussy"].value = 1.0


def endless(env: Any, ports: Any) -> None:
    def process() -> Any:
        while True:
            yield env.timeout(0)

    env.process(process())


def drives_itself(env: Any, ports: Any) -> None:
    env.run(until=5)


def delayed_by(delay: Any) -> Any:
    def factory(env: Any, ports: Any) -> None:
        def process() -> Any:
            yield env.timeout(1)
            yield env.timeout(delay)

        env.process(process())

    return factory


def back_in_time(env: Any, ports: Any) -> None:
    def process() -> Any:
        yield env.timeout(1)
        env.schedule(env.event(), delay=-0.5)

    env.process(process())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (drives_itself, "env.run() was called, expected processes only"),
        (delayed_by(-1), "Negative delay -1"),
        (delayed_by(math.nan), "an event is scheduled nan s from now, expected a delay from 0 on"),
        (back_in_time, "an event is scheduled -0.5 s from now, expected a delay from 0 on"),
        (failing, "no parts left"),
        (held_put, "`busy` holds its value: set `value`"),
        (event_set, "`done` is an event, it does not hold a value"),
        (event_read, "`done` is an event, it has no value between instants"),
        (misspelt, "there is no port `bussy`"),
        (endless, "events follow each other at t = 0 s"),
    ],
)
def test_wrong_processes_are_named(
    factory: Any, words: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocket.simulators.simpy_environment.AT_MOST", 1000)
    model = hk.SimPy(factory, outputs=[DONE, "busy"])
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(
            hk.Composite(hk.Scenario({"a": model}, {}), "1/4 s"), stop=2, engine=engine, folder=tmp_path / "r"
        )
    assert words in str(caught.value)
    assert "`a`" in str(caught.value)


def test_wrong_recipes_are_refused() -> None:
    with pytest.raises(hk.ScenarioError, match="`x` is an input and an output"):
        hk.SimPy(line, ["x"], ["x"])
    with pytest.raises(hk.ScenarioError, match="cannot be called"):
        hk.SimPy(3)  # type: ignore[arg-type]


def test_without_the_package_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simpy", None)
    _environment_class.cache_clear()
    with pytest.raises(hk.ScenarioError) as caught:
        production_line().open()
    assert "`SimPy` needs the package `simpy`" in str(caught.value)
    assert "pip install hocket[simpy]" in str(caught.value)
    monkeypatch.undo()
    _environment_class.cache_clear()


def test_values_are_seen_an_instant_later(tmp_path: Path) -> None:
    """Left limit, and what is set when the instant has ended."""
    run = both_engines(hk.Composite(hk.Scenario({"line": production_line()}, {}), "1/4 s"), tmp_path, stop=2)
    assert values_at(run, "line.busy", 1.0)[0] == 0.0
    assert values_at(run, "line.busy", 1.0)[-1] == 1.0
    assert rows(run, "line.busy")[1][0] == 0.0
