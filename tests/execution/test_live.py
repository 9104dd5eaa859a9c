"""Stepping by hand: the bits of a run, on both engines; states that are saved and restored; overrides."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from native.random_scenarios import draw
from scenarios.random_hybrids import draw_hybrid
from systems import ENGINES, EXAMPLES, lag, slow_after

BLOCKS = slow_after(1, [range(first, first + 10) for first in range(0, 200, 10)])
HYBRIDS = slow_after(1, [range(first, first + 3) for first in range(0, 120, 3)])


def last_rows(run: hk.Run) -> dict[str, dict[float, float]]:
    """Return the values of every port by their times; of several rows of one time the last one counts."""
    return {
        port: dict(zip(np.asarray(run[port].t).tolist(), np.asarray(run[port].values).tolist(), strict=True))
        for port in run
    }


def shown_every(composite: hk.Composite, path: str) -> Fraction:
    """Return how often a port is as new as the run: a level with a longer step waits for its end."""
    head, _, rest = path.partition(".")
    inner = dict(composite.scenario.models).get(head)
    if not isinstance(inner, hk.Composite):
        return composite.step
    one, other = composite.step, shown_every(inner, rest)
    common = math.lcm(one.numerator * other.denominator, other.numerator * one.denominator)
    return Fraction(common, one.denominator * other.denominator)


def bits(values: Any) -> bytes:
    return np.array(list(values), dtype=float).tobytes()


def compare_with_run(what: Any, engine: str, steps: int | None = None, **options: Any) -> None:
    """Step by hand, and compare every port with the rows of a run; then again from saved states."""
    run = hk.run(what, engine=engine, **options)
    rows = last_rows(run)
    options.pop("every", None)
    with hk.open(what, engine=engine, **options) as live:
        assert live.engine == run.info["engine"]
        count = int(run.info["counts"]["steps"])
        assert set(rows) <= set(live.ports)
        composite, begin = live.experiment.composite, live.experiment.start
        every = {port: shown_every(composite, port) for port in rows}
        events = {port for port in rows if any(map(math.isnan, rows[port].values()))}
        seen = []
        saved = []
        can_save = True
        for number in range(count + 1):
            if number:
                assert live.step() == 1
            assert live.steps == number
            for port, values in rows.items():
                if port in events:
                    assert math.isnan(live[port])
                elif (live.time - begin) % every[port] == 0:
                    assert bits([live[port]]) == bits([values[live.t]]), (port, live.t)
            seen.append(bits(live[port] for port in rows))
            if can_save and number % 3 == 0:
                try:
                    saved.append((number, live.save()))
                except hk.SimulatorError:
                    can_save = False
        for number, state in reversed(saved):
            live.restore(state)
            assert live.time == state.time
            for later in range(number, min(number + 100, count + 1)):
                if later > number:
                    live.step()
                assert bits(live[port] for port in rows) == seen[later], (number, later)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.toml")))
def test_examples_are_stepped_by_hand_with_the_bits_of_a_run(name: str, engine: str) -> None:
    experiment = hk.read(EXAMPLES / name)
    stop = experiment.start + 30 * experiment.composite.step
    compare_with_run(experiment, engine, stop=stop)


@pytest.mark.parametrize("block", BLOCKS)
def test_random_scenarios_are_stepped_by_hand_with_the_bits_of_a_run(block: range) -> None:
    for number in block:
        it = draw(np.random.default_rng([1, number]))
        for engine in ENGINES:
            compare_with_run(it.composite, engine, start=it.start, stop=it.stop)


@pytest.mark.parametrize("block", HYBRIDS)
def test_random_hybrids_are_stepped_by_hand_with_the_bits_of_a_run(block: range) -> None:
    for seed in block:
        composite, _ = draw_hybrid(seed)
        stop = (14 if composite.step < 0.09 else 7) * composite.step
        for engine in ENGINES:
            try:
                hk.run(composite, stop=stop, engine=engine)
            except hk.HocketError:
                continue
            compare_with_run(composite, engine, stop=stop)


def two_lags(**options: Any) -> hk.Composite:
    """Return two lags, each driven by the other; x' = -x + u from 1."""
    scenario = hk.Scenario({"a": lag(), "b": lag()}, {"a.u": "b.y", "b.u": "a.y"})
    return hk.Composite(scenario, "1/10", options.pop("orchestrator", "jacobi"), **options)


DECAY = math.exp(-0.1)
"""What is left of a state after a step without input."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", [hk.Hold(), hk.Polynomial(2), hk.Hermite(1), hk.Nepce(0.5)])
def test_an_input_that_is_overridden_gets_that_value_until_it_is_released(engine, extrapolation) -> None:
    with hk.open(two_lags(extrapolation=extrapolation), engine=engine) as live:
        live.step(3)
        live.set("a.u", 2.5)
        assert live["a.u"] == 2.5
        assert live.overrides == {"a.u": 2.5}
        x = live["a.y"]
        for _ in range(5):  # the exact answer of x' = -x + 2.5
            live.step()
            x = 2.5 + (x - 2.5) * DECAY
            assert live["a.y"] == pytest.approx(x, rel=1e-13)
            assert live["a.u"] == 2.5
        live.set("a.u", -1)
        live.step()
        assert live["a.y"] == pytest.approx(-1 + (x + 1) * DECAY, rel=1e-13)
        live.release("a.u")
        assert live.overrides == {}
        live.step()
        assert live["a.u"] != -1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["jacobi", "gauss-seidel", hk.Iterate(hk.Jacobi(), tolerance=1e-12)])
@pytest.mark.parametrize("extrapolation", [hk.Hold(), hk.Polynomial(1), hk.Hermite(1), hk.Nepce(0.5)])
def test_an_output_that_is_overridden_shows_that_value_to_all(engine, how, extrapolation) -> None:
    with hk.open(two_lags(orchestrator=how, extrapolation=extrapolation), engine=engine) as live:
        live.step(3)
        live.set("b.y", 2.5)
        assert live["b.y"] == 2.5
        x, own = live["a.y"], []
        for _ in range(5):
            live.step()
            x = 2.5 + (x - 2.5) * DECAY
            assert live["b.y"] == 2.5
            assert live["a.y"] == pytest.approx(x, rel=1e-12)
            own.append(x)
        live.release()
        assert live["b.y"] != 2.5  # what it is itself, at once
        assert live["b.y"] < max(own)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_has_its_overrides_with_it(engine) -> None:
    with hk.open(two_lags(extrapolation=hk.Polynomial(2)), engine=engine) as live:
        live.step(2)
        plain = live.save()
        live.set("a.u", 3)
        live.set("b.y", -2)
        live.step(2)
        with_both = live.save()
        live.step(2)
        after = live["a.y"], live["b.u"], live["b.y"]
        live.restore(plain)
        assert live.overrides == {}
        live.step(7)
        never_set = live["a.y"], live["b.y"]
        live.restore(with_both)
        assert live.overrides == {"a.u": 3.0, "b.y": -2.0}
        live.step(2)
        assert (live["a.y"], live["b.u"], live["b.y"]) == after
    with hk.open(two_lags(extrapolation=hk.Polynomial(2)), engine=engine) as live:
        live.step(9)
        assert (live["a.y"], live["b.y"]) == never_set


@pytest.mark.parametrize("seed", range(40))
def test_both_engines_agree_whatever_is_overridden(seed: int) -> None:
    rng = np.random.default_rng(seed)
    it = draw(np.random.default_rng([1, seed]))
    steps = []
    with hk.open(it.composite, start=it.start) as live:
        for _ in range(12):
            port = live.ports[rng.integers(len(live.ports))]
            steps.append((port, float(rng.normal()), rng.random() < 0.3))
    seen = {}
    for engine in ENGINES:
        rows = seen[engine] = []
        with hk.open(it.composite, start=it.start, engine=engine) as live:
            for port, value, release in steps:
                try:
                    live.release() if release else live.set(port, value)
                    live.step()
                except hk.HocketError as error:  # a loop may have no solution then
                    rows.append(str(error).splitlines()[0])
                    break
                rows.append(bits(live[each] for each in live.ports))
    assert seen["native"] == seen["interpreter"], steps


@pytest.mark.parametrize("engine", ENGINES)
def test_inputs_of_the_scenario_and_inputs_that_nothing_drives_are_set(engine) -> None:
    scenario = hk.Scenario({"a": lag(), "b": lag(inputs=("u = 1",))}, {"a.u": "force"}, inputs=["force = 0"])
    with hk.open(hk.Composite(scenario, "1/10"), engine=engine) as live:
        assert (live["force"], live["b.u"]) == (0.0, 1.0)
        live.set("force", 4)
        live.set("b.u", 5)
        live.step()
        assert live["a.y"] == pytest.approx(4 - 3 * DECAY, rel=1e-13)
        assert live["b.y"] == pytest.approx(5 - 4 * DECAY, rel=1e-13)
        live.release()
        assert (live["force"], live["b.u"]) == (0.0, 1.0)
        a, b = live["a.y"], live["b.y"]
        live.step()
        assert live["a.y"] == pytest.approx(a * DECAY, rel=1e-13)
        assert live["b.y"] == pytest.approx(1 + (b - 1) * DECAY, rel=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
def test_ports_inside_levels_are_overridden(engine) -> None:
    inner = hk.Scenario({"lag": lag()}, {"lag.u": "u", "y": "lag.y"}, inputs=["u"], outputs=["y"])
    outer = hk.Scenario(
        {"level": hk.Composite(inner, "1/20"), "b": lag()}, {"level.u": "b.y", "b.u": "level.y"}
    )
    with hk.open(hk.Composite(outer, "1/10"), engine=engine) as live:
        live.set("level.lag.u", 2)
        live.step()
        assert live["level.lag.y"] == pytest.approx(2 - DECAY, rel=1e-13)
        live.release("level.lag.u")
        live.set("level.y", 7)
        b = live["b.y"]
        live.step(2)
        assert live["level.y"] == 7
        assert live["level.lag.y"] != 7
        assert live["b.y"] == pytest.approx(7 + (b - 7) * DECAY**2, rel=1e-13)


def test_time_is_exact_and_a_run_ends_on_a_step() -> None:
    with hk.open(two_lags(), stop=10) as live:
        assert live.run("1/2") == 5
        live.step(17)
        assert live.time == Fraction(22, 10)
        assert live.t == 2.2
        with pytest.raises(hk.ScenarioError, match=r"does not divide.*(?s:.)*2.4 s or 2.5 s"):
            live.run(2.45)
        with pytest.raises(hk.ScenarioError, match=r"2.2 s is reached, which is after 2 s"):
            live.run(2)
        with pytest.raises(hk.ScenarioError, match="end after the stop time, 10 s"):
            live.step(79)
        assert live.run(10) == 78
        with pytest.raises(hk.ScenarioError, match="at most 0"):
            live.step()


def test_what_is_wrong_is_said() -> None:
    with hk.open(two_lags()) as live, hk.open(two_lags()) as other:
        with pytest.raises(KeyError, match=r"no port `a.x`(?s:.)*`a.[uy]`"):
            live["a.x"]
        with pytest.raises(hk.ScenarioError, match=r"no port `c.u`"):
            live.set("c.u", 1)
        with pytest.raises(hk.ScenarioError, match="finite number"):
            live.set("a.u", math.nan)
        with pytest.raises(hk.ScenarioError, match="finite number"):
            live.set("a.u", "3")  # type: ignore[arg-type]
        with pytest.raises(hk.ScenarioError, match=r"`a.u` is not overridden"):
            live.release("a.u")
        with pytest.raises(hk.ScenarioError, match=r"no port `a.k`"):
            live.set("a.k", 1)
        for wrong in (-1, 1.5, "2", True):
            with pytest.raises(hk.ScenarioError, match="number of macro steps"):
                live.step(wrong)  # type: ignore[arg-type]
        assert live.step(0) == 0
        with pytest.raises(hk.ScenarioError, match="another Live"):
            live.restore(other.save())
        state = live.save()
    assert repr(live) == "<Live a co-simulation: closed, t = 0.0 s>"
    live.close()
    for use in (
        live.step, live.save, lambda: live["a.y"], lambda: live.set("a.u", 1), lambda: live.restore(state),
        lambda: live.run(1), live.release, live.__enter__,
    ):  # fmt: skip
        with pytest.raises(hk.ScenarioError, match="it is closed"):
            use()


class Failing:
    """Counts its steps; fails in the fourth, the first time."""

    def __init__(self) -> None:
        self.fails = True

    def start(self, t: float) -> None:
        self.count = 0.0

    def output(self, t: float) -> list[float]:
        return [self.count]

    def step(self, t: float, h: float, u: Any) -> float:
        self.count += 1
        if self.count == 4 and self.fails:
            self.fails = False
            raise RuntimeError("not yet")
        return t + h


class Saving(Failing):
    def save(self) -> float:
        return self.count

    def restore(self, state: float) -> None:
        self.count = state


@pytest.mark.parametrize("engine", ENGINES)
def test_a_simulator_that_cannot_be_saved_is_named(engine) -> None:
    scenario = hk.Scenario({"a": lag(inputs=("u = 0",)), "b": hk.Python(Failing, outputs=["y"])})
    with hk.open(hk.Composite(scenario, "1/10"), engine=engine) as live:
        with pytest.raises(hk.SimulatorError, match="`b` cannot save its state") as caught:
            live.save()
        assert "`a`" not in str(caught.value)
        live.step(2)
        assert live["b.y"] == 2.0


@pytest.mark.parametrize("engine", ENGINES)
def test_after_a_step_that_failed_a_state_is_restored(engine) -> None:
    scenario = hk.Scenario({"b": hk.Python(Saving, outputs=["y"]), "a": lag()}, {"a.u": "b.y"})
    with hk.open(hk.Composite(scenario, "1/10"), engine=engine) as live:
        live.step(2)
        state = live.save()
        with pytest.raises(hk.SimulatorError, match="not yet"):
            live.step(5)
        assert live.time == Fraction(3, 10)
        for use in (live.step, live.save, lambda: live.set("a.u", 1)):
            with pytest.raises(hk.ScenarioError, match="last step failed"):
                use()
        live.restore(state)
        assert live.step(5) == 5
        assert live["b.y"] == 7.0
        assert live.time == Fraction(7, 10)


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with hk.open(two_lags()) as live:
        live.step(10)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def oscillators(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("fmus")
    return {version: build("first", version, folder=folder / f"{version}") for version in (2, 3)}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_fmus_are_saved_and_restored(oscillators, version: int, isolate: bool, engine: str) -> None:
    model = hk.Fmu(oscillators[version], isolate=isolate)
    links = {"fmu.x": "x.y", "fmu.v": "v.y", "x.u": "fmu.force", "v.u": "fmu.force"}
    scenario = hk.Scenario({"fmu": model, "x": lag(), "v": lag(0.5)}, links)
    compare_with_run(hk.Composite(scenario, "1/10", "gauss-seidel"), engine, stop=3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "how",
    [
        hk.Adaptive(tolerance=1e-4),
        hk.Iterate(tolerance=1e-9, accelerate="quasi-newton"),
        hk.Iterate(tolerance=1e-9, accelerate="newton"),
    ],
)
def test_states_are_restored_in_any_order(how: Any, engine: str) -> None:
    """Also a later one after that of the start, which had no step controller and no accelerator yet."""
    with hk.open(two_lags(orchestrator=how), engine=engine) as live:
        states, seen = [], []
        for _ in range(6):
            states.append(live.save())
            live.step(2)
            seen.append(bits(live[port] for port in live.ports))
        for number in (0, 4, 1, 5, 0, 0, 3, 2):
            live.restore(states[number])
            live.step(2)
            assert bits(live[port] for port in live.ports) == seen[number], number
        live.restore(states[0])
        live.restore(states[3])
        live.step(2)
        assert bits(live[port] for port in live.ports) == seen[3]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_from_where_it_has_ended_is_still_the_end(engine: str, tmp_path: Path) -> None:
    model = hk.Fmu(build("stair", 2, folder=tmp_path))
    with hk.open(hk.Composite(hk.Scenario({"stair": model}, {}), 1), engine=engine) as live:
        begin = live.save()
        while live.step():
            pass
        assert live.ended_by == "stair"
        try:
            end = live.save()
        except hk.ScenarioError:  # it has ended inside a step: there is no state between two
            return
        live.restore(begin)
        assert live.ended_by == ""
        assert live.step() == 1
        live.restore(end)
        assert live.ended_by == "stair"
        assert live.step() == 0
