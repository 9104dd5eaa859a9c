"""The components of Broman et al. (2015), and what happens when they are put together, with exact answers.

Broman, Greenberg, Lee, Masin, Tripakis and Wetter: Requirements for hybrid cosimulation standards, HSCC 2015.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import hocket as hk
from scenarios.hybrid import both_engines, final_values, present, rows, values_at


class Silent:
    """What components in Python share: no event of their own, and a state that is a tuple."""

    state: tuple[Any, ...] = ()

    def start(self, t: float) -> None: ...

    def step(self, t: float, h: float, u: Any) -> None: ...

    def due(self) -> Any:
        return None

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> Any: ...

    def commit(self) -> bool:
        return False

    def save(self) -> Any:
        return dict(vars(self))

    def restore(self, state: Any) -> None:
        vars(self).clear()
        vars(self).update(state)


class PiecewiseConstant(hk.Atomic):
    """Goes through its values, a new one every period, from the start on."""

    outputs: ClassVar = [hk.Port("y")]

    def __init__(self, values: Sequence[float], period: Any = 1):
        self.values, self.period, self.count = list(values), period, 0

    def time_advance(self) -> Any:
        return self.period if self.count else 0

    def output(self) -> dict[str, float]:
        return {"y": self.values[self.count % len(self.values)]}

    def internal(self) -> None:
        self.count += 1


class DiscreteGenerator(PiecewiseConstant):
    """Emits its values as events."""

    outputs: ClassVar = ["y"]


class Hold(Silent):
    """Holds the value of the last event."""

    inputs: ClassVar = [hk.Port("x", event=True)]
    outputs: ClassVar = [hk.Port("y", held=True)]

    def __init__(self) -> None:
        self.y = self.next = 0.0

    def output(self, t: float) -> list[float]:
        return [self.y]

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> None:
        self.next = float(u[0])

    def commit(self) -> bool:
        self.y = self.next
        return False


class Sampler(Silent):
    """Emits the value of x in the instant in which r is present."""

    inputs: ClassVar = ["x", hk.Port("r", event=True)]
    outputs: ClassVar = [hk.Port("y", event=True)]

    def output(self, t: float, u: Any) -> list[float]:
        return [u[0, 0]]

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> list[bool]:
        return [present[1]]


class InstantDelay(hk.Atomic):
    """Emits what it gets in the next instant of the same time."""

    inputs: ClassVar = ["x"]
    outputs: ClassVar = ["y"]
    delay: Any = 0

    def __init__(self) -> None:
        self.queue: list[tuple[Fraction, float]] = []

    def time_advance(self) -> Any:
        return self.queue[0][0] if self.queue else None

    def output(self) -> dict[str, float]:
        return {"y": self.queue[0][1]}

    def internal(self) -> None:
        gone = self.queue.pop(0)[0]
        self.queue = [(left - gone, value) for left, value in self.queue]

    def external(self, elapsed: float, inputs: Any) -> None:
        gone = Fraction(elapsed).limit_denominator(10**6)
        self.queue = [(left - gone, value) for left, value in self.queue]
        self.queue.append((Fraction(self.delay), inputs["x"]))


class DiscreteDelay(InstantDelay):
    """Emits what it gets `delay` seconds later."""

    def __init__(self, delay: Any):
        super().__init__()
        self.delay = delay


class Integrator(Silent):
    """x' = u, exact for polynomials; an event sets x to its value."""

    inputs: ClassVar = ["u", hk.Port("reset", event=True, start=0.0)]
    outputs: ClassVar = ["x"]

    def __init__(self, x0: float = 0.0):
        self.x, self.set = x0, None

    def output(self, t: float) -> list[float]:
        return [self.x]

    def step(self, t: float, h: float, u: Any) -> None:
        self.x += sum(row[0] * h ** (power + 1) / (power + 1) for power, row in enumerate(u))

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> None:
        self.set = float(u[1]) if present[1] else None

    def commit(self) -> bool:
        self.x = self.x if self.set is None else self.set
        self.set = None
        return False


NEAR = 1e-12
"""How far before its level a crossing is found."""


class ZeroCrossing(Silent):
    """Emits an event where x crosses `level` upwards (or downwards); x is linear within a step."""

    inputs: ClassVar = ["x"]
    outputs: ClassVar = [hk.Port("z", event=True)]
    feedthrough: ClassVar[dict[str, list[str]]] = {}
    stops_early = True

    def __init__(self, level: float = 0.0, sign: int = 1):
        self.level, self.sign, self.crossed, self.reached = level, sign, False, 0.0

    def output(self, t: float) -> list[float]:
        return [float(self.sign)]

    def step(self, t: float, h: float, u: Any) -> float:
        before = self.sign * (u[0, 0] - self.level)
        slope = self.sign * u[1, 0] if len(u) > 1 else 0.0
        self.reached = t + h
        if before < -NEAR <= before + slope * h:
            self.crossed = True
            self.reached = min(t - (before + NEAR / 2.0) / slope, t + h)
        return self.reached

    def due(self) -> float | None:
        return self.reached if self.crossed else None

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> list[bool]:
        return [self.crossed]

    def commit(self) -> bool:
        self.crossed = False
        return False


class Modal(Silent):
    """Two modes: `up` and `down` choose one of them, which says what is put out."""

    inputs: ClassVar = [hk.Port("up", event=True), hk.Port("down", event=True)]
    outputs: ClassVar = [hk.Port("y", held=True)]

    def __init__(self, up: float = 1.0, down: float = -1.0, mode: str = "up"):
        self.values, self.mode, self.next = {"up": up, "down": down}, mode, mode

    def output(self, t: float) -> list[float]:
        return [self.values[self.mode]]

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> None:
        self.next = "up" if present[0] else "down" if present[1] else self.next

    def commit(self) -> bool:
        self.mode = self.next
        return False


def run_all(tmp_path: Path, models: dict[str, Any], wires: dict[str, str], stop: Any, **options: Any) -> Any:
    options = {"step": "1/4 s", **options}
    return both_engines(hk.Composite(hk.Scenario(models, wires), **options), tmp_path, stop=stop)


# each of them


def test_gain_and_adder(tmp_path: Path) -> None:
    """Two signals that jump together: the sum jumps once, it never shows one of them alone."""
    models = {
        "a": hk.Devs(PiecewiseConstant, values=[1.0, 2.0, 3.0]),
        "b": hk.Devs(PiecewiseConstant, values=[10.0, 20.0]),
        "gain": hk.Gain(-2.0),
        "sum": hk.Sum("a", "b"),
    }
    wires = {"gain.u": "a.y", "sum.a": "gain.y", "sum.b": "b.y"}
    run = run_all(tmp_path, models, wires, 4)
    expected = [10.0 - 2.0, 20.0 - 4.0, 10.0 - 6.0, 20.0 - 2.0, 10.0 - 4.0]
    assert final_values(run, "sum.y", range(5)) == expected
    t, y = rows(run, "sum.y")
    assert set(y[t > 0.0]) <= set(expected), "never one of them alone"


def test_piecewise_constant_and_discrete_generators(tmp_path: Path) -> None:
    models = {
        "held": hk.Devs(PiecewiseConstant, values=[1.0, -1.0], period="1/3 s"),
        "beat": hk.Devs(DiscreteGenerator, values=[5.0, 6.0, 7.0], period="1/2 s"),
    }
    run = run_all(tmp_path, models, {}, 2)
    assert present(run, "beat.y") == [(0.0, 5.0), (0.5, 6.0), (1.0, 7.0), (1.5, 5.0), (2.0, 6.0)]
    for k in range(1, 6):
        before = 1.0 if k % 2 else -1.0
        assert set(values_at(run, "held.y", k / 3)) == {before, -before}
        assert values_at(run, "held.y", k / 3)[0] == before


def test_integrator_of_a_discontinuous_signal(tmp_path: Path) -> None:
    """The integral of a square wave is a triangle, exactly, though its period is on no grid."""
    models = {
        "wave": hk.Devs(PiecewiseConstant, values=[1.0, -1.0], period="1/3 s"),
        "x": hk.Python(Integrator),
    }
    for number, how in enumerate(("hold", "linear")):
        run = run_all(tmp_path / how, models, {"x.u": "wave.y"}, 2, extrapolation=how)
        expected = [k % 2 / 3 for k in range(7)]
        assert final_values(run, "x.x", [k / 3 for k in range(7)]) == pytest.approx(expected, abs=1e-15), (
            number
        )


def test_integrator_with_reset(tmp_path: Path) -> None:
    """x' = 1, set to 10, 20, 10 ... every half second: left and right limits."""
    models = {
        "one": hk.Devs(PiecewiseConstant, values=[1.0], period=100),
        "beat": hk.Devs(DiscreteGenerator, values=[10.0, 20.0], period="1/2 s"),
        "x": hk.Python(Integrator),
    }
    run = run_all(tmp_path, models, {"x.u": "one.y", "x.reset": "beat.y"}, 2)
    for t, limits in {0.5: (10.5, 20.0), 1.0: (20.5, 10.0), 1.5: (10.5, 20.0)}.items():
        assert (values_at(run, "x.x", t)[0], values_at(run, "x.x", t)[-1]) == limits


def test_zero_crossing_detector(tmp_path: Path) -> None:
    """x = t - 0.7 crosses at 0.7, which is on no grid."""
    models = {
        "ramp": hk.Table([0.0, 10.0], {"y": [-0.7, 9.3]}),
        "cross": hk.Python(ZeroCrossing),
    }
    algorithm = hk.GaussSeidel(["ramp", "cross"])
    run = run_all(tmp_path, models, {"cross.x": "ramp.y"}, 2, orchestrator=algorithm, extrapolation="linear")
    ((time, value),) = present(run, "cross.z")
    assert (time, value) == (pytest.approx(0.7, abs=1e-11), 1.0)


def test_sampler_and_hold(tmp_path: Path) -> None:
    """A ramp, sampled every third of a second and held: a staircase."""
    models = {
        "ramp": hk.Table([0.0, 10.0], {"y": [0.0, 10.0]}),
        "beat": hk.Devs(DiscreteGenerator, values=[1.0], period="1/3 s"),
        "sampler": hk.Python(Sampler),
        "stair": hk.Python(Hold),
    }
    wires = {"sampler.x": "ramp.y", "sampler.r": "beat.y", "stair.x": "sampler.y"}
    run = run_all(tmp_path, models, wires, 2)
    assert present(run, "sampler.y") == [(k / 3, pytest.approx(k / 3, abs=1e-15)) for k in range(7)]
    t, y = rows(run, "stair.y")
    inside = np.array([(3.0 * each) % 1.0 > 1e-9 for each in t])
    assert y[inside] == pytest.approx(np.floor(3.0 * t[inside]) / 3.0, abs=1e-15)


def test_discrete_delay(tmp_path: Path) -> None:
    models = {
        "beat": hk.Devs(DiscreteGenerator, values=[1.0, 2.0, 3.0], period="1/2 s"),
        "delay": hk.Devs(DiscreteDelay, delay="7/10"),
    }
    run = run_all(tmp_path, models, {"delay.x": "beat.y"}, 2)
    assert present(run, "delay.y") == [(0.7, 1.0), (1.2, 2.0), (1.7, 3.0)]


def test_modal_model(tmp_path: Path) -> None:
    models = {
        "up": hk.Devs(DiscreteGenerator, values=[1.0], period=1),
        "down": hk.Devs(DiscreteDelay, delay="1/4"),
        "mode": hk.Python(Modal, mode="down"),
    }
    wires = {"down.x": "up.y", "mode.up": "up.y", "mode.down": "down.y"}
    run = run_all(tmp_path, models, wires, 3)
    for k in range(3):
        assert values_at(run, "mode.y", float(k))[-1] == 1.0
        assert (values_at(run, "mode.y", k + 0.25)[0], values_at(run, "mode.y", k + 0.25)[-1]) == (1.0, -1.0)


# compositions


def test_simultaneous_sampler_and_jump(tmp_path: Path) -> None:
    """A sampler that is triggered when its signal jumps sees the value before it; an instant later, after."""
    wave = hk.Devs(PiecewiseConstant, values=[1.0, 2.0, 3.0, 4.0])
    beat = hk.Devs(DiscreteGenerator, values=[1.0])
    models = {"wave": wave, "beat": beat, "sampler": hk.Python(Sampler)}
    wires = {"sampler.x": "wave.y", "sampler.r": "beat.y"}
    run = run_all(tmp_path / "before", models, wires, 3)
    assert present(run, "sampler.y") == [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    models = {**models, "later": hk.Devs(InstantDelay)}
    wires = {"sampler.x": "wave.y", "later.x": "beat.y", "sampler.r": "later.y"}
    run = run_all(tmp_path / "after", models, wires, 3)
    assert present(run, "sampler.y") == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]


def test_simultaneous_resets_and_sampling(tmp_path: Path) -> None:
    """What samples an integrator when it is reset sees it before; what is an instant late sees it after."""
    models = {
        "one": hk.Devs(PiecewiseConstant, values=[1.0], period=100),
        "beat": hk.Devs(DiscreteGenerator, values=[0.0]),
        "x": hk.Python(Integrator),
        "now": hk.Python(Sampler),
        "delay": hk.Devs(InstantDelay),
        "late": hk.Python(Sampler),
    }
    wires = {
        "x.u": "one.y", "x.reset": "beat.y", "now.x": "x.x", "now.r": "beat.y",
        "delay.x": "beat.y", "late.x": "x.x", "late.r": "delay.y",
    }  # fmt: skip
    run = run_all(tmp_path, models, wires, 3)
    assert present(run, "now.y") == [(0.0, 0.0), (1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]
    assert present(run, "late.y") == [(float(k), 0.0) for k in range(4)]


def test_crossing_in_a_feedback_loop(tmp_path: Path) -> None:
    """x' = 1 until x crosses 1, then -1 until it crosses -1: a triangle that turns at 1, 3, 5 ..."""
    models = {
        "x": hk.Python(Integrator),
        "high": hk.Python(ZeroCrossing, level=1.0, sign=1),
        "low": hk.Python(ZeroCrossing, level=-1.0, sign=-1),
        "mode": hk.Python(Modal),
    }
    wires = {"x.u": "mode.y", "high.x": "x.x", "low.x": "x.x", "mode.down": "high.z", "mode.up": "low.z"}
    algorithm = hk.GaussSeidel(["mode", "x", "high", "low"])
    run = run_all(
        tmp_path, models, wires, "6.3 s", step="3/10 s", orchestrator=algorithm, extrapolation="linear"
    )
    assert [t for t, _ in present(run, "high.z")] == pytest.approx([1.0, 5.0], abs=1e-10)
    assert [t for t, _ in present(run, "low.z")] == pytest.approx([3.0], abs=1e-10)
    t, x = rows(run, "x.x")
    expected = np.abs((t - 3.0) % 4.0 - 2.0) * -1.0 + 1.0
    assert x == pytest.approx(expected, abs=1e-10)


def test_a_crossing_resets_its_integrator(tmp_path: Path) -> None:
    """A saw: x' = 1, and a crossing of 1 sets x to zero."""

    class Zero(ZeroCrossing):
        def output(self, t: float) -> list[float]:
            return [0.0]

    models = {
        "one": hk.Devs(PiecewiseConstant, values=[1.0], period=100),
        "x": hk.Python(Integrator),
        "cross": hk.Python(Zero, level=1.0),
    }
    wires = {"x.u": "one.y", "cross.x": "x.x", "x.reset": "cross.z"}
    algorithm = hk.GaussSeidel(["one", "x", "cross"])
    run = run_all(
        tmp_path, models, wires, "3.6 s", step="3/10 s", orchestrator=algorithm, extrapolation="linear"
    )
    assert [t for t, _ in present(run, "cross.z")] == pytest.approx([1.0, 2.0, 3.0], abs=1e-10)
    assert run.final("x.x") == pytest.approx(0.6, abs=1e-10)


# known answers


class Unit(Silent):
    """Hands an event on in the same instant, with its own number added."""

    inputs: ClassVar = [hk.Port("x", event=True)]
    outputs: ClassVar = [hk.Port("y", event=True)]

    def __init__(self, digit: int):
        self.digit = digit

    def output(self, t: float, u: Any) -> list[float]:
        return [10.0 * u[0, 0] + self.digit]

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> Any:
        return present


@pytest.mark.parametrize("names", ["abcde", "edcba", "caebd"])
def test_a_chain_of_five_units(names: str, tmp_path: Path) -> None:
    """One time, one instant, the order kept: the digits 1 to 5 stand one behind the other."""
    models: dict[str, Any] = {name: hk.Python(Unit, digit=number) for number, name in enumerate(names, 1)}
    models["beat"] = hk.Devs(DiscreteGenerator, values=[0.0], period="1/3 s")
    wires = {f"{names[0]}.x": "beat.y"}
    wires |= {f"{after}.x": f"{before}.y" for before, after in itertools.pairwise(names)}
    run = run_all(tmp_path, models, wires, 1)
    assert present(run, f"{names[-1]}.y") == [(k / 3, 12345.0) for k in range(4)]
    last, first = rows(run, f"{names[-1]}.y")[1], rows(run, f"{names[0]}.y")[1]
    assert ((last == last) == (first == first)).all(), "in one instant"


@pytest.mark.parametrize("names", ["abcde", "edcba"])
def test_a_chain_of_five_units_an_instant_apart(names: str, tmp_path: Path) -> None:
    models: dict[str, Any] = {name: hk.Devs(InstantDelay) for name in names}
    models["beat"] = hk.Devs(DiscreteGenerator, values=[7.0], period="1/3 s")
    wires = {f"{names[0]}.x": "beat.y"}
    wires |= {f"{after}.x": f"{before}.y" for before, after in itertools.pairwise(names)}
    run = run_all(tmp_path, models, wires, 1)
    for number, name in enumerate(names):
        at = np.flatnonzero(rows(run, f"{name}.y")[1] == 7.0)
        assert [float(t) for t in rows(run, f"{name}.y")[0][at]] == [k / 3 for k in range(4)]
        first = np.flatnonzero(rows(run, "beat.y")[1] == 7.0)
        assert list(at - first) == [number + 1] * 4, "one instant later than the one before"


class Ball(Silent):
    """Moves at constant speed until it is hit."""

    inputs: ClassVar = [hk.Port("left", event=True, start=0.0), hk.Port("right", event=True, start=0.0)]
    outputs: ClassVar = ["x", hk.Port("v", held=True)]

    def __init__(self, x: float, v: float = 0.0):
        self.x, self.v, self.next = x, v, v

    def output(self, t: float) -> list[float]:
        return [self.x, self.v]

    def step(self, t: float, h: float, u: Any) -> None:
        self.x += self.v * h

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> None:
        self.next = float(u[0]) if present[0] else float(u[1]) if present[1] else self.v

    def commit(self) -> bool:
        self.v = self.next
        return False


class Contact(Silent):
    """Lets two equal balls exchange their speeds when they meet; it knows when that will be."""

    inputs: ClassVar = ["x1", "v1", "x2", "v2"]
    outputs: ClassVar = [hk.Port("first", event=True), hk.Port("second", event=True)]

    def __init__(self) -> None:
        self.time: float | None = 0.0

    def output(self, t: float, u: Any) -> list[float]:
        return [u[0, 3], u[0, 1]]

    def due(self) -> float | None:
        return self.time

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> list[bool]:
        gap, speed = u[2] - u[0], u[1] - u[3]
        hits = bool(gap <= 1e-12 and speed > 0.0)
        self.next = float(t + gap / speed) if speed > 0.0 and not hits else None
        return [hits, hits]

    def commit(self) -> bool:
        self.time = self.next
        return False


@pytest.mark.parametrize("names", ["abcde", "edcba", "badce"])
def test_three_balls_in_a_row(names: str, tmp_path: Path) -> None:
    """Newton's cradle: at t = 1 the first hits the second, and the second the third, in two instants."""
    one, two, three, near, far = names
    models = {
        one: hk.Python(Ball, x=-1.0, v=1.0),
        two: hk.Python(Ball, x=0.0),
        three: hk.Python(Ball, x=0.0),
        near: hk.Python(Contact),
        far: hk.Python(Contact),
    }
    wires = {}
    for contact, left, right in ((near, one, two), (far, two, three)):
        wires |= {f"{contact}.x1": f"{left}.x", f"{contact}.v1": f"{left}.v"}
        wires |= {f"{contact}.x2": f"{right}.x", f"{contact}.v2": f"{right}.v"}
        wires |= {f"{left}.right": f"{contact}.first", f"{right}.left": f"{contact}.second"}
    run = run_all(tmp_path, models, wires, 2, step="2/5 s")
    hits = [np.flatnonzero(rows(run, f"{contact}.first")[1] == 0.0) for contact in (near, far)]
    assert [len(each) for each in hits] == [1, 1]
    assert hits[1] - hits[0] == 1, "one instant after the other"
    assert [present(run, f"{contact}.second") for contact in (near, far)] == [[(1.0, 1.0)], [(1.0, 1.0)]]
    speeds = {name: values_at(run, f"{name}.v", 1.0)[:3] for name in (one, two, three)}
    assert speeds == {one: [1.0, 0.0, 0.0], two: [0.0, 1.0, 0.0], three: [0.0, 0.0, 1.0]}
    assert [run.final(f"{name}.x") for name in (one, two, three)] == pytest.approx([0.0, 0.0, 1.0], abs=1e-14)
