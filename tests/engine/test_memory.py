"""The exchange memory: what is kept per sample, and what is fitted from it."""

from fractions import Fraction as F

import numpy as np
import pytest

from hocket import Hermite, Hold, Nepce, Polynomial, Scenario, StateSpace
from hocket.coupling.wiring import wire
from hocket.engine.memory import ExchangeMemory
from hocket.model.clock import Clock

NO_INPUTS = np.zeros((1, 0))


def memory(*ways, unit="", out="", inputs=(), connections=None, degree=3):
    """One source `s.y`, and a child `m` with an input per extrapolator; a tick is half a second."""
    names = [f"u{k}" for k in range(len(ways))]
    source = StateSpace(A=[[0]], C=[[1]], outputs=[f"y [{unit}]"])
    child = StateSpace(inputs=[f"{name} [{out}]" for name in names])
    links = [("s.y", f"m.{name}", way) for name, way in zip(names, ways, strict=True)]
    scenario = Scenario({"s": source, "m": child}, connections or links, inputs)
    kept = ExchangeMemory(wire(scenario), Clock(F(1, 2)), [0, degree])
    kept.clear()
    return kept


def store(kept, tick, value, slope=None):
    kept.store(0, tick, np.array([value]), None if slope is None else np.array([slope]))


def fed(kept, tick):
    """The polynomials of the child, one column per input."""
    kept.feed(1, tick, NO_INPUTS, 0)
    return kept.u[1].T.tolist()


def test_inputs_begin_at_their_start_values():
    child = StateSpace(inputs=["u = 3", "v"])
    scenario = Scenario({"m": child}, {"m.v": "p"}, ["p"])
    kept = ExchangeMemory(wire(scenario), Clock(F(1)), [2])
    kept.clear()
    assert kept.u[0].tolist() == [[3, 0], [0, 0], [0, 0]]


def test_a_line_goes_through_the_newest_two_samples():
    """4 at 0.5 s and 10 at 1 s: 12 per second, 10 at the start of the step."""
    kept = memory(Polynomial(1))
    store(kept, 0, 100.0)
    store(kept, 1, 4.0)
    store(kept, 2, 10.0)
    assert fed(kept, 2) == [[10, 12, 0, 0]]


def test_a_sample_at_the_end_of_the_step_is_interpolated():
    kept = memory(Polynomial(1), Hold())
    store(kept, 1, 4.0)
    store(kept, 2, 10.0)
    assert fed(kept, 1) == [[4, 12, 0, 0], [10, 0, 0, 0]]


def test_a_later_sample_of_the_same_time_takes_the_place_of_the_first():
    kept = memory(Polynomial(1))
    store(kept, 1, 4.0)
    store(kept, 2, -99.0)
    store(kept, 2, 10.0)
    assert fed(kept, 2) == [[10, 12, 0, 0]]


def test_with_one_sample_a_line_is_a_hold():
    kept = memory(Polynomial(1))
    store(kept, 0, 4.0)
    assert fed(kept, 2) == [[4, 0, 0, 0]]


def test_only_as_many_samples_are_kept_as_someone_looks_back():
    kept = memory(Polynomial(2), Hold())
    for tick in range(9):
        store(kept, tick, float(tick))
    assert [sample[0] for sample in kept.rings[0][0]] == [6, 7, 8]


def test_slopes_are_asked_of_those_whose_samples_need_them():
    assert memory(Hermite(1)).sloped == [True, False]
    assert memory(Polynomial(3)).sloped == [False, False]
    kept = memory(Hermite(1))
    store(kept, 1, 4.0, slope=-2.0)
    assert fed(kept, 2) == [[3, -2, 0, 0]]


def test_units_change_every_power_and_shift_the_value_only():
    """20 degC and rising by 4 K/s is 68 degF, rising by 7.2 degF/s."""
    kept = memory(Polynomial(1), unit="degC", out="degF")
    store(kept, 0, 18.0)
    store(kept, 1, 20.0)
    assert fed(kept, 1) == [pytest.approx([68, 7.2, 0, 0], rel=1e-14)]


def test_a_filter_advances_once_per_sample_however_often_it_is_fed():
    kept = memory(Nepce(0.5))
    store(kept, 0, 8.0)
    assert fed(kept, 0)[0][0] == fed(kept, 0)[0][0] == 8.0
    store(kept, 1, 16.0)
    assert [fed(kept, 1)[0][0] for _ in range(3)] == [12.0] * 3
    store(kept, 1, 0.0)  # the sample is corrected: from 8, not from 12
    assert fed(kept, 1)[0][0] == 4.0
    store(kept, 2, 0.0)
    assert fed(kept, 2)[0][0] == 2.0


def test_an_input_of_the_level_is_the_same_curve_seen_from_later():
    """1 + 2 s + 3 s^2 from tick 0 is 6 + 8 s + 3 s^2 from tick 2, one second later."""
    kept = memory(None, None, inputs=["p"], connections=[("p", "m.u0"), ("p", "m.u1", Hold())])
    kept.feed(1, 2, np.array([[1.0], [2.0], [3.0], [0.0]]), 0)
    assert kept.u[1].T.tolist() == [[6, 8, 3, 0], [6, 0, 0, 0]]


def test_powers_that_a_child_does_not_honour_are_left_out():
    """4 t^2 at 1 s is 4 + 8 s + 4 s^2."""
    kept = memory(Polynomial(2), degree=1)
    for tick, value in enumerate([0.0, 1.0, 4.0]):
        store(kept, tick, value)
    assert fed(kept, 2) == [[4, 8]]


def test_what_is_restored_is_what_was_saved_however_often():
    kept = memory(Nepce(0.5), Polynomial(1))
    store(kept, 0, 8.0)
    store(kept, 1, 16.0)
    before = fed(kept, 1)
    saved = kept.save()
    for _ in range(2):
        store(kept, 1, -1.0)
        store(kept, 2, 3.0)
        assert fed(kept, 2) != before
        kept.restore(saved)
        assert kept.u[1].T.tolist() == before
        assert fed(kept, 1) == before
        assert [sample[:2] for sample in kept.rings[0][0]] == [(0, 8.0), (1, 16.0)]
