"""Step control: what a step says about the length of the next one."""

from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest

import hocket as hk
from hocket.engine.reference import step_control
from hocket.engine.reference.step_control import MacroStepController, keep_leading_bits
from hocket.plan import Control
from systems import ENGINES, LAG_AT_REST


def controller(gains=(1.0, 0.0, 0.0), per_unit=True, degree=0):
    """A macro step of 1024 ticks in quanta of one."""
    control = Control(1e-3, "defect", per_unit, gains, F(1, 1024), F(1, 2), F(1), rejects=True)
    return MacroStepController(control, 1024, degree)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_that_the_end_cuts_short_does_not_shorten_the_next(engine):
    """A ramp of 0.1 per second that is held misses 0.1 h: steps of 0.97 s would use 0.9 of the tolerance.

    They are 15/16 s in four binary digits, and what is left of each macro step is 1/16 s. Three times that,
    the most that may follow such a step, must not become the next one.
    """
    models = {"ramp": hk.Function(lambda t: [0.1 * t], ["y"]), "lag": LAG_AT_REST}
    how = hk.Adaptive(hk.Jacobi(), 0.97 * 0.1 / 0.9, controller="I", first=F(1, 2))
    composite = hk.Composite(hk.Scenario(models, {"lag.u": "ramp.y"}), "1 s", how, "hold", "cold")
    run = hk.run(composite, 5, engine=engine)
    spans = np.diff(run["lag.y"].t)
    assert spans.tolist() == [0.5, 0.5, *[15 / 16, 1 / 16] * 4]
    assert run.info["counts"]["adapted"][""]["rejected"] == 0


@pytest.mark.parametrize(
    ("cut", "ratio", "wanted"),
    [
        (False, 0.5, 112),  # 64 * 0.9 / 0.5 = 115.2: in four binary digits 112
        (True, 0.5, 512),  # the 512 from before stay
        (True, 1e-9, 512),
        (True, 1.5, 38),  # one that was too long for its error says what it says, cut or not: 38.4
        (True, 1.0, 512),
    ],
)
def test_what_is_wanted_after_a_step(cut, ratio, wanted):
    pace = controller()
    assert pace.wanted == 512
    pace.accept(64, ratio, cut)
    assert pace.wanted == keep_leading_bits(wanted)
    assert (pace.before, pace.earlier) == (max(ratio, 1e-10), 1.0)
    pace.accept(64, 0.25, cut=False)
    assert (pace.before, pace.earlier) == (0.25, max(ratio, 1e-10))


@pytest.mark.parametrize(
    ("ratio", "accepted", "factor"),
    [
        (0.0, True, 3.0),
        (1e-3, True, 3.0),
        (0.9, True, 1.0),
        (1.0, False, 0.9),
        (1.1, False, 0.9 / 1.1),
        (0.5, False, 0.9),  # after a rejection it must become shorter
        (1e9, False, 0.2),
        (1e9, True, 0.2),
    ],
)
def test_the_next_step_is_the_last_one_times_a_bounded_factor(ratio, accepted, factor):
    assert controller().next_span(256, ratio, accepted) == keep_leading_bits(int(256 * factor))


def test_it_is_never_shorter_than_the_quantum_nor_longer_than_the_macro_step():
    assert controller().next_span(1, 1e9, accepted=False) == 1
    assert controller().next_span(1000, 0.0, accepted=True) == 1024


def test_earlier_errors_count_by_their_gains():
    """PID: h' / h = 0.9^(a - b + c) e^(-a/p) e1^(b/p) e2^(-c/p), p = degree + 1, or + 2 per step."""
    a, b, c = 0.58, 0.21, 0.10
    for per_unit, degree, power in ((True, 0, 1), (True, 1, 2), (False, 0, 2), (False, 2, 4)):
        pace = controller((a, b, c), per_unit, degree)
        pace.restore((512, 0.7, 0.4, 3))
        expected = 0.9 ** (a - b + c) * 0.8 ** (-a / power) * 0.7 ** (b / power) * 0.4 ** (-c / power)
        assert pace.next_span(512, 0.8, accepted=True) == keep_leading_bits(int(512 * expected))
        assert pace.next_span(512, 1.3, accepted=False) == keep_leading_bits(
            int(512 * 0.9 * 1.3 ** (-1 / power))
        )
        assert pace.state() == (512, 0.7, 0.4, 3)
        pace.begin()
        assert pace.state() == (512, 1.0, 1.0, 0)


@pytest.mark.parametrize(
    ("parts", "kept"), [(0, 0), (1, 1), (15, 15), (16, 16), (17, 16), (31, 30), (1000, 960)]
)
def test_lengths_have_four_binary_digits(parts, kept):
    assert keep_leading_bits(parts) == kept


def test_two_extrapolations_of_a_square_differ_by_its_second_difference(monkeypatch):
    """A line through 1 and 4 comes to 7 after another second, the parabola through 0, 1 and 4 to 9."""
    ring = [(0, 0.0, None), (1, 1.0, None), (2, 4.0, None)]
    level = SimpleNamespace(memory=SimpleNamespace(rings=[[ring]]), clock=SimpleNamespace(span=float))
    monkeypatch.setattr(step_control, "controlled_outputs", lambda _: [(0, 0, 1)])
    assert step_control.extrapolation_error(level, 1.0) == pytest.approx(2.0 / 7.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sample_that_is_not_new_says_nothing_about_a_step(engine):
    """A level of steps of 2 s is met once before, at an event at 0.3 s: its output falls to exp(-1.5).

    Until its next step this remains its newest sample, and its defect is that of one step, not of all.
    """
    decay = hk.StateSpace([[-5.0]], [[0.0]], [[1.0]], x0=[1.0], inputs=["u = 0"], outputs=["y"])
    jump = hk.Table([0.0, 0.3, 0.3, 9.0], {"y": [0.0, 0.0, 1.0, 1.0]})
    inside = hk.Scenario({"decay": decay, "jump": jump}, {"y": "decay.y"}, outputs=["y"])
    models = {"slow": hk.Composite(inside, "2 s"), "lag": LAG_AT_REST}
    how = hk.Adaptive(hk.Jacobi(), 0.05, quantum=F(1, 1024), rejects=False)
    composite = hk.Composite(hk.Scenario(models, {"lag.u": "slow.y"}), "1 s", how, "hold", "cold")
    run = hk.run(composite, 2, engine=engine)
    assert 0.3 in run["lag.y"].t
    # three times as long from one to the next: seven steps from the shortest to the longest
    assert run.info["counts"]["adapted"][""]["accepted"] < 60
