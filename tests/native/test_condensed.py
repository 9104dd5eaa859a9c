"""Sampled levels with one linear simulator inside: run natively without a program, with the same bits."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from hocket.engine.initialise import initialise
from hocket.engine.native.engine import NativeEngine
from hocket.engine.opening import open_level
from hocket.engine.selection import bind_tables, choose_tables
from hocket.orchestrators import Multirate
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree
from scenarios.hybrid import both_engines, final_values, rows
from systems import ENGINES

STEP = "1/8 s"
PERIODS = (1, 2, 3, 7)


def integrator(x0: float = 1.0) -> hk.StateSpace:
    """Return x' = u."""
    return hk.StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[x0], inputs=["u"], outputs=["x"])


def accumulating() -> hk.StateSpace:
    """Return z' = e, u = -z / 2: its output does not follow its input at once."""
    return hk.StateSpace([[0.0]], [[1.0]], [[-0.5]], x0=[0.5], inputs=["e"], outputs=["u"])


def proportional(gain: float = -1.0) -> hk.StateSpace:
    """Return u = gain e, beside a state that nobody sees: its output follows its input at once."""
    return hk.StateSpace([[-1.0]], [[0.0]], [[0.0]], [[gain]], x0=[0.0], inputs=["e"], outputs=["u"])


def sampled(law: hk.StateSpace, steps: int) -> hk.Composite:
    """Return a law that takes a sample every so many steps of 1/8 s."""
    inside = hk.Scenario({"law": law}, {"law.e": "e", "u": "law.u"}, ["e"], ["u"], record=[])
    return hk.Composite(inside, f"{steps}/8 s", sampled=True)


def watched(laws: dict[str, hk.Composite]) -> dict[str, hk.Composite]:
    """Return the same laws with a row per sample: they need a program."""
    return {
        name: hk.Composite(replace(law.scenario, record=["law.u"]), law.step, sampled=True)
        for name, law in laws.items()
    }


def loops(laws: dict[str, hk.Composite], orchestrator: Any = None, **more: Any) -> hk.Composite:
    """Return an integrator under each law."""
    models: dict[str, Any] = dict(more)
    wires = {}
    for number, (name, law) in enumerate(laws.items()):
        models |= {f"p_{name}": integrator(1.0 + number), name: law}
        wires |= {f"p_{name}.u": f"{name}.u", f"{name}.e": f"p_{name}.x"}
    return hk.Composite(hk.Scenario(models, wires), STEP, orchestrator or hk.Jacobi())


def count_condensed(composite: hk.Composite) -> int:
    """Return how many levels compiled code runs without a program when all that can be recorded is not."""
    design = plan_tree(composite)
    level = open_level(design, clock_of(design))
    initialise(level, 0.0)
    engine = NativeEngine(level, bind_tables(level, choose_tables(design, level.clock, ["*"], None)), 1)
    found = len(engine.condensed)
    level.close()
    return found


class Beat:
    """Announces an event now and then, at times that are on no grid of a sampled level."""

    outputs = ("u",)

    def start(self, t: float) -> None:
        self.count = 0

    def output(self, t: float) -> list[float]:
        return [float(self.count)]

    def step(self, t: float, h: float, u: object) -> None: ...

    def due(self) -> float:
        return 0.3 * (self.count + 1)

    def react(self, t: float, n: int, u: object, present: object) -> None: ...

    def commit(self) -> bool:
        self.count += 1
        return False

    def save(self) -> int:
        return self.count

    def restore(self, state: int) -> None:
        self.count = state


def accumulate(period: int, steps: int, x: float) -> list[float]:
    """Return the integrator under an accumulating law, step by step, by the definition of sampling."""
    h, z, taken, command, found = 0.125, 0.5, 0.0, -0.25, [x]
    for k in range(steps):
        if k % period == 0:
            taken = x
        x = x + h * command
        if (k + 1) % period == 0:
            z = z + period * h * taken
            command = -0.5 * z
        found.append(x)
    return found


def test_periods_are_those_of_the_definition(tmp_path: Path) -> None:
    """All numbers are dyadic: sums are exact, and so are the rows."""
    laws = {f"c{period}": sampled(accumulating(), period) for period in PERIODS}
    composite = loops(laws)
    assert count_condensed(composite) == len(PERIODS)
    run = both_engines(composite, tmp_path, stop=6.0)
    for number, period in enumerate(PERIODS):
        expected = accumulate(period, 48, 1.0 + number)
        assert np.allclose(run[f"p_c{period}.x"].values, expected, rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("period", PERIODS)
def test_feedthrough_acts_when_the_sample_is_taken(period: int, tmp_path: Path) -> None:
    """x' = -x[k] over a period T: x[k + 1] = (1 - T) x[k]."""
    composite = loops({"c": sampled(proportional(), period)})
    assert count_condensed(composite) == 1
    stop = 4 * period / 8
    run = both_engines(composite, tmp_path, stop=stop)
    times = [k * period / 8 for k in range(5)]
    expected = [(1.0 - period / 8) ** k for k in range(5)]
    assert final_values(run, "p_c.x", times) == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_rollback_takes_a_sampled_level_back(tmp_path: Path) -> None:
    """An iteration makes every step several times: what a law has sampled, counted and shown goes back too.

    Of one sweep, an iteration is Jacobi's step; of several without feedback inside a step, it is so again.
    """
    laws = {f"c{period}": sampled(accumulating(), period) for period in PERIODS}
    sweeps = loops(laws, hk.Iterate(hk.Jacobi(), tolerance=None, at_most=4, accelerate="plain"))
    assert count_condensed(sweeps) == len(PERIODS)
    again = both_engines(sweeps, tmp_path / "condensed", stop=6.0)
    with_program = both_engines(loops(watched(laws), sweeps.orchestrator), tmp_path / "program", stop=6.0)
    for period in PERIODS:
        for port in (f"p_c{period}.x", f"c{period}.u"):
            assert rows(again, port)[1].tobytes() == rows(with_program, port)[1].tobytes()
        assert len(set(again[f"c{period}.u"].values.tolist())) > 4  # it does not stand still


@pytest.mark.parametrize(
    "orchestrator",
    [
        hk.Jacobi(),
        hk.Jacobi(outputs="stale"),
        hk.GaussSeidel(),
        hk.Iterate(at_most=3),
        Multirate({"p_c2": 4}),
    ],
    ids=["jacobi", "stale", "gauss-seidel", "iterate", "multirate"],
)
def test_both_engines_agree(orchestrator: Any, tmp_path: Path) -> None:
    laws = {f"c{period}": sampled(accumulating(), period) for period in PERIODS}
    laws |= {f"f{period}": sampled(proportional(-0.5), period) for period in PERIODS}
    both_engines(loops(laws, orchestrator), tmp_path, stop=3.0)


@pytest.mark.parametrize("period", PERIODS)
def test_events_around_do_not_move_the_samples(period: int, tmp_path: Path) -> None:
    """The steps of the level end at events; a law whose period is under way waits for its end."""
    laws = {"c": sampled(accumulating(), period)}
    plain = both_engines(loops(laws), tmp_path / "plain", stop=3.5)
    eventful = both_engines(loops(laws, beat=hk.Python(Beat)), tmp_path / "events", stop=3.5)
    times = [k * period / 8 for k in range(1 + 28 // period)]
    assert final_values(eventful, "p_c.x", times) == pytest.approx(
        final_values(plain, "p_c.x", times), rel=1e-13
    )


def test_units_are_converted_inside(tmp_path: Path) -> None:
    """The law sees millimetres: a gain of 1/1000 in its place gives the same loop."""
    law = hk.StateSpace(
        [[-1.0]], [[0.0]], [[0.0]], [[-1e-3]], x0=[0.0], inputs=["e [mm]"], outputs=["u [m/s]"]
    )
    inside = hk.Scenario({"law": law}, {"law.e": "e", "u": "law.u"}, ["e [m]"], ["u [m/s]"], record=[])
    plant = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u [m/s]"], outputs=["x [m]"])
    composite = hk.Composite(
        hk.Scenario(
            {"p": plant, "c": hk.Composite(inside, "1/2 s", sampled=True)}, {"p.u": "c.u", "c.e": "p.x"}
        ),
        STEP,
    )
    assert count_condensed(composite) == 1
    run = both_engines(composite, tmp_path, stop=2.0)
    assert final_values(run, "p.x", [0.5, 1.0, 2.0]) == pytest.approx([0.5, 0.25, 0.0625], rel=1e-12)


@pytest.mark.parametrize("follows", [False, True])
def test_a_failure_inside_names_the_simulator_and_its_output(follows: bool, tmp_path: Path) -> None:
    """x grows by e^50 in a period of a second: beyond all floats after 15 of them."""
    direct = [[1.0]] if follows else [[0.0]]
    law = hk.StateSpace([[50.0]], [[0.0]], [[1.0]], direct, x0=[1.0], inputs=["e"], outputs=["u"])
    assert 50.0 * 14 < math.log(sys.float_info.max) < 50.0 * 15
    composite = loops({"c": sampled(law, 8)})
    assert count_condensed(composite) == 1
    words = []
    for engine in ENGINES:
        with pytest.raises(hk.HocketError) as raised:
            hk.run(composite, stop=30.0, engine=engine, folder=tmp_path / engine)
        words.append(str(raised.value))
    assert words[0] == words[1]
    assert words[0].startswith("`c.law.u` is inf")
    assert "t = 15.0 s" in words[0]
