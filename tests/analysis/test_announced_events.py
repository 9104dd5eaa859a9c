"""The linear reading of what announces its events: classes with due(), FMUs with periodic clocks."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.stability import stability
from systems import slow_after

H = Fraction(1, 10)
LIMITS = {Fraction(0): 2.0, H / 4: 4.0, H / 2: 2.0, 3 * H / 4: 4 / 3, H: 1.0}
"""The largest stable K h of x' = u, u = -K x sampled every h with a delay, by hand."""


class Late:
    """u = -K x, sampled every tenth of a second; the output follows `delay` later."""

    inputs, outputs = ["x"], ["u"]
    rate = 1

    def __init__(self, K=1.0, delay=0.0):
        self.K, self.delay = K, Fraction(delay)

    def start(self, t):
        self.next, self.later, self.u, self.count = Fraction(t), (), 0.0, 0

    def output(self, t):
        return [self.u]

    def step(self, t, h, u): ...

    def due(self):
        return min([self.next, *(at for at, _ in self.later)])

    def react(self, t, n, u, present):
        self.seen = u[0]

    def commit(self):
        now = self.due()
        if self.next <= now:
            if self.count % self.rate == 0:
                self.later = (*self.later, (now + self.delay, self.sample(self.seen)))
            self.next, self.count = self.next + H, self.count + 1
        while self.later and self.later[0][0] <= now:
            self.u, self.later = self.later[0][1], self.later[1:]
        return False

    def sample(self, seen):
        return -self.K * seen


class Reversible(Late):
    def save(self):
        return self.next, self.later, self.u, self.count

    def restore(self, state):
        self.next, self.later, self.u, self.count = state


class Every3(Reversible):
    """Takes every third of its samples only."""

    rate = 3


def loop(controller, inputs=("u", "x"), step=H):
    """x' = u, and a controller."""
    plant = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    u, x = inputs
    return hk.Composite(
        hk.Scenario({"plant": plant, "c": controller}, {"plant.u": f"c.{u}", f"c.{x}": "plant.x"}), step
    )


def radius(composite):
    return stability(read_linear(linearise(composite).composite)).rho


def exact_radius(Kh, delay):
    """Of z^2 - (1 - (1 - m) K h) z + m K h, delay = m h."""
    m = float(delay / H)
    return max(abs(np.roots([1.0, -(1.0 - (1.0 - m) * Kh), m * Kh])))


@pytest.mark.parametrize(
    ("kind", "delay", "limit"), [(Late, H / 4, 4.0), *((Reversible, *each) for each in LIMITS.items())]
)
def test_limits_of_a_class_with_due(kind, delay, limit):
    for part in (0.995, 1.005):
        K = part * limit / float(H)
        found = radius(loop(hk.Python(kind, K=K, delay=delay)))
        assert found == pytest.approx(exact_radius(part * limit, delay), abs=1e-9)
        assert (found < 1.0) == (part < 1.0)


@pytest.mark.parametrize("case", slow_after(4, itertools.product(LIMITS.items(), ("cs", "me"))))
def test_limits_of_an_fmu_with_periodic_clocks(tmp_path, case):
    (delay, limit), interface = case
    ticks = {"intervalVariability": "constant", "intervalDecimal": 0.1, "shiftDecimal": float(delay % H)}
    row = {"from": ["u"] if delay == 0 else []}
    variables = {"send": {"ticks": ticks}, "w": row}
    file = build("digital", 3, folder=tmp_path, interfaces=(interface,), variables=variables)
    for part in (0.995, 1.005):
        fmu = hk.Fmu(file, gain=part * limit / float(H), at_once=delay == 0)
        found = radius(loop(fmu, ("w", "u")))
        assert found == pytest.approx(exact_radius(part * limit, delay), abs=1e-9)


@pytest.mark.parametrize(("part", "code"), [(0.995, 0), (1.005, 1)])
def test_check_says_so_before_the_run(part, code):
    composite = loop(hk.Python(Reversible, K=part * 40.0, delay=H / 4))
    found = hk.check(composite, stop=2)
    assert found.outcome.exit_code == code
    assert found.verdict()[0].startswith("stable" if part < 1 else "unstable")
    run = hk.run(composite, stop=200)
    assert (abs(run.final("plant.x")) < 1.0) == (part < 1)


def test_a_period_of_what_happens_may_be_longer_than_that_of_the_times():
    """Of three samples one is taken: three tenths are a period, and K h is a third of it."""
    for part in (0.99, 1.01):
        found = radius(loop(hk.Python(Every3, K=part * 2.0 / 0.3)))
        assert found == pytest.approx(abs(1.0 - part * 2.0), abs=1e-9)


def test_periods_are_unrolled_beside_those_of_sampled_models():
    """The same controller as a sampled model, in a hyperperiod with a macro step of 0.25 s."""

    class Gain:
        inputs, outputs, feedthrough = ["x"], ["u"], {"u": ["x"]}

        def start(self, t): ...

        def output(self, t, u):
            return [-15.0 * u[0, 0]]

        def step(self, t, h, u): ...

    step = Fraction(1, 4)
    sampled = loop(hk.Python(Gain, period=H, offset=0, delay=H / 4), step=step)
    announced = loop(hk.Python(Reversible, K=15.0, delay=H / 4), step=step)
    assert radius(announced) == pytest.approx(radius(sampled), abs=1e-9)


class Drawn(Reversible):
    """A class that is not periodic, or not linear, in one way or another."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def due(self):
        if self.how == "aperiodic":
            return self.next + H * Fraction(self.count * self.count)
        if self.how == "of its input" and self.u < -1.0005:
            return self.next + H / 2
        return super().due()

    def commit(self):
        if self.how == "twice" and not getattr(self, "again", False):
            self.again = True
            return True
        self.again = False
        return super().commit()

    def sample(self, seen):
        return -abs(seen - 1.0) if self.how == "kink" else -seen

    def step(self, t, h, u):
        if self.how == "between":
            self.u -= h * u[0, 0]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("aperiodic", "the times of its events do not repeat"),
        ("of its input", "the times of its events depend on its inputs"),
        ("twice", "it asks for a second instant"),
        ("between", "it moves between its events"),
        ("kink", "is not linear"),
    ],
)
def test_what_cannot_be_read_is_not_judged(how, why):
    composite = loop(hk.Python(Drawn, how=how))
    (leaf,) = [leaf for leaf in linearise(composite).leaves if leaf.path == "c"]
    assert leaf.how == "refused"
    assert why in leaf.refused
    assert hk.check(composite, pilot=False).outcome.exit_code == 3


class Punctual(Reversible):
    """Does nothing where its inputs jump between its samples."""

    def react(self, t, n, u, present):
        self.is_due = float(self.due()) <= t
        super().react(t, n, u, present)

    def commit(self):
        return super().commit() if self.is_due else False


@pytest.mark.parametrize("kind", [Punctual, Reversible])
def test_what_minds_jumps_of_its_inputs_is_not_judged_where_they_jump(kind):
    """A Reversible takes every commit for one of its events."""
    linear = linearise(loop(hk.Python(kind))).composite.scenario.models["c"]
    assert linear.minds_jumps == (kind is Reversible)
    simulator = linear.open()
    simulator.start(0.0)
    assert simulator.react(0.0, 1, [1.0], [False]) == [False]
    assert not simulator.commit()
    if linear.minds_jumps:
        with pytest.raises(hk.SimulatorError, match="its inputs jump between its events"):
            simulator.react(0.05, 1, [2.0], [True])
    else:
        simulator.react(0.05, 1, [2.0], [True])
        assert not simulator.commit()
        assert simulator.due() == H
        assert simulator.output(0.05, None) == [-1.0]
