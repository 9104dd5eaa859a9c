"""Clocks of FMUs for model exchange tick in the instants of their level, as those of co-simulation do."""

from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from simulators.test_fmu_instants import Trigger, run_both

K, LEVEL, TOP = Fraction(3, 2), Fraction(1, 2), Fraction(2)


class Pulse:
    """Ticks a clock at given times, with a number for what the clock samples."""

    outputs = (hk.Port("tick", type="clock"), hk.Port("r", event=True))

    def __init__(self, times, r):
        self.times, self.r = tuple(times), r

    def start(self, t):
        self.left, self.now = list(self.times), t

    def step(self, t, h, u): ...

    def output(self, t, u):
        return [1.0, self.r]

    def due(self):
        return self.left[0] if self.left else None

    def react(self, t, n, u, present):
        self.now = t
        return [bool(self.left) and self.left[0] <= t] * 2

    def commit(self):
        if self.left and self.left[0] <= self.now:
            del self.left[0]
        return False

    def save(self):
        return list(self.left), self.now

    def restore(self, state):
        self.left, self.now = list(state[0]), state[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("exchange")


def exchange(name, folder, **how):
    path = build(name, 3, folder=folder, file=f"{name}_me.fmu", interfaces=("me",))
    return hk.Fmu(path, **{"method": "rk4", **how})


def regulated(resets, r, stop):
    """Return x at `stop`, and the times at which `out` ticks: x is piecewise linear, in fractions."""
    t, x, v, late, outs = Fraction(0), Fraction(1), Fraction(0), None, []
    while True:
        if 4 * t == int(4 * t):
            v = -K * x
        if t == late:
            x = TOP
        if t in resets:
            x = r
        then = min(each for each in (Fraction(int(4 * t) + 1, 4), stop, *resets, late or stop) if each > t)
        if x > LEVEL and v < 0 and t + (LEVEL - x) / v <= then:
            then = t + (LEVEL - x) / v
            outs.append(then)
            late = then + Fraction(1, 3)
        t, x = then, x + v * (then - t)
        if t == stop:
            return x, outs


@pytest.mark.parametrize(
    ("p", "q", "stop", "counts"),
    [
        ({"intervalCounter": 1, "resolution": 3}, {"intervalCounter": 1, "resolution": 2}, 10, (31, 21, 11)),
        ({"intervalDecimal": 0.1}, {"intervalDecimal": 0.3}, 30, (301, 101, 101)),
    ],
)
def test_periodic_clocks_coincide_as_their_fractions_do(folder, p, q, stop, counts):
    ticks = {
        name: {"ticks": {"intervalVariability": "constant", **each}} for name, each in (("p", p), ("q", q))
    }
    path = build("metronome", 3, folder=folder, file=f"{stop}.fmu", variables=ticks, interfaces=("me",))
    run = run_both({"m": hk.Fmu(path)}, {}, "1 s", stop)
    assert tuple(run.final(f"m.{name}") for name in ("n_p", "n_q", "both")) == counts


def test_three_clocks_tick_as_in_co_simulation(folder):
    """Ticks 10, 4 and 1 at t = 0 ... 9 s; the output clock ticks with every fifth of them: 2, 6, 9 s."""
    models = {"f": exchange("ticks", folder), "trigger": hk.Python(Trigger, times=[0, 1, 8, 9])}
    run = run_both(models, {"f.b": "trigger.tick"}, "0.7 s", 9.1)
    assert [run.final(f"f.{name}") for name in ("n_a", "n_b", "n_c", "total")] == [10, 4, 1, 15]
    ticks = run["f.out"]
    assert ticks.t[~np.isnan(ticks.values)].tolist() == [2.0, 6.0, 9.0]


def test_an_interval_of_zero_is_another_instant_at_the_same_time(folder):
    run = run_both({"m": exchange("metronome", folder)}, {}, "1 s", 2)
    t, n = run["m.n_r"].t, run["m.n_r"].values
    assert t[np.flatnonzero(np.diff(n)) + 1].tolist() == [0.5, 0.5, 0.75]


def test_what_is_clocked_is_sampled_and_held(folder):
    """w = 2 u at the ticks of p, each 0.1 s, where u = t."""
    models = {"source": hk.Function(lambda t: t, outputs=["y"]), "m": exchange("metronome", folder)}
    run = run_both(models, {"m.u": "source.y"}, "0.25 s", 1)
    t, w = run["m.w"].t, run["m.w"].values
    last = np.append(np.diff(t) > 0.0, True)
    assert w[last] == pytest.approx(np.floor(t[last] * 10 + 1e-9) / 10 * 2, abs=1e-12)


RESETS = (Fraction(11, 10), Fraction(3, 2))


@pytest.mark.parametrize("step", ["0.4 s", "1/7 s", "2 s"])
@pytest.mark.parametrize("method", ["euler", "rk4", "adaptive", "cvode"])
def test_a_loop_with_clocks_of_every_kind_is_exact(folder, method, step):
    """A clock is periodic, one triggered, one ticks at a state event, and one is a countdown from there."""
    models = {"f": exchange("regulated", folder, method=method), "g": hk.Python(Pulse, times=RESETS, r=3.0)}
    run = run_both(models, {"f.reset": "g.tick", "f.r": "g.r"}, step, 4)
    x, outs = regulated(RESETS, Fraction(3), Fraction(4))
    ticks = run["f.out"]
    assert len(outs) >= 3
    assert ticks.t[~np.isnan(ticks.values)] == pytest.approx([float(each) for each in outs], abs=1e-9)
    assert run.final("f.x") == pytest.approx(float(x), abs=1e-8)
    assert run.final("f.n_p") == 17
    assert run.final("f.n_out") == len(outs)


@pytest.mark.parametrize("orchestrator", ["gauss-seidel", hk.Multirate({"f": 2}), "iterate", "adaptive"])
def test_every_algorithm_meets_them(folder, orchestrator):
    models = {"g": hk.Python(Pulse, times=RESETS, r=3.0), "f": exchange("regulated", folder)}
    run = run_both(models, {"f.reset": "g.tick", "f.r": "g.r"}, "0.4 s", 4, orchestrator)
    x, outs = regulated(RESETS, Fraction(3), Fraction(4))
    assert run.final("f.x") == pytest.approx(float(x), abs=1e-8)
    assert run.final("f.n_out") == len(outs)


def test_clocks_inside_a_level_are_met_outside(folder):
    """The source of the trigger is outside, the FMU two levels below."""
    inner = hk.Composite(hk.Scenario({"f": exchange("regulated", folder)}), "0.5 s")
    middle = hk.Composite(hk.Scenario({"i": inner}), "1 s")
    models = {
        "m": middle,
        "g": hk.Python(Pulse, times=RESETS, r=3.0),
        "h": hk.Fmu(build("clocked", 3, folder=folder)),
    }
    links = {"m.i.f.reset": "g.tick", "m.i.f.r": "g.r", "h.tick": "m.i.f.out"}
    run = run_both(models, links, "2 s", 4)
    x, outs = regulated(RESETS, Fraction(3), Fraction(4))
    assert run.final("m.i.f.x") == pytest.approx(float(x), abs=1e-8)
    assert run.final("h.y") == len(outs)


def test_a_clock_without_a_source_is_refused(folder):
    scenario = hk.Scenario({"f": exchange("regulated", folder)})
    with pytest.raises(hk.ScenarioError, match=r"nothing ticks the clock `f\.reset`"):
        hk.run(hk.Composite(scenario, 1), stop=1)
