"""The step of the eigenfrequency rule, and notes on step control that may mislead."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.eigenfrequency import EigenfrequencyStep
from hocket.plan.plan import NoteKind
from hocket.planning.planner import plan_tree
from systems import SPRING_MASS, lag, mass, spring


def offered(composite):
    found = hk.check(composite, advise=False, robust=False)
    return next((each for each in found.measures if isinstance(each, EigenfrequencyStep)), None)


def test_a_tenth_of_the_shortest_period():
    """A spring of 39.48 N/m and 1 kg swing at 1 Hz: a step of 0.1 s, whatever the present one is."""
    stiffness = (2.0 * np.pi) ** 2
    scenario = hk.Scenario({"spring": spring(c=stiffness), "mass": mass()}, SPRING_MASS)
    for step in ("10 ms", "0.4 s"):
        found = offered(hk.Composite(scenario, step))
        assert found.frequency == pytest.approx(1.0, rel=1e-9)
        assert found.step == pytest.approx(0.1, rel=1e-9)
    assert found.notes() == [
        "the present macro step is 4 times the step of the rule, a tenth of the shortest period"
    ]


def test_nothing_oscillates():
    scenario = hk.Scenario({"a": lag(1.0), "b": lag(2.0)}, {"a.u": "b.y", "b.u": "a.y"})
    found = offered(hk.Composite(scenario, 0.1))
    assert found.step is None
    assert found.rows() == []


def control_notes(composite):
    return [str(note) for note in plan_tree(composite).plan.notes if note.kind is NoteKind.STEP_CONTROL]


def nested(outer, inner):
    level = hk.Composite(
        hk.Scenario({"c": lag(), "d": lag()}, [("u", "c.u"), ("c.y", "d.u"), ("d.y", "y")], ["u"], ["y"]),
        0.1,
        inner,
    )
    return hk.Composite(hk.Scenario({"in": level, "b": lag()}, {"in.u": "b.y", "b.u": "in.y"}), 0.1, outer)


def test_step_control_inside_step_control_is_said():
    (note,) = control_notes(nested(hk.Adaptive(quantum=1, first=1), hk.Adaptive()))
    assert note.startswith("step control inside step control: the error that the outermost level estimates")
    assert "`in`" in note
    assert control_notes(nested(hk.Adaptive(quantum=1, first=1), hk.Jacobi())) == []
    assert control_notes(nested(hk.Jacobi(), hk.Adaptive())) == []


def test_half_steps_across_feedthrough_on_both_sides_are_said():
    def gain(D):
        return hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], [[D]], x0=[1.0], inputs=["u"], outputs=["y"])

    wires = {"a.u": "b.y", "b.u": "a.y"}
    both = hk.Scenario({"a": gain(0.5), "b": gain(0.4)}, wires)
    (note,) = control_notes(hk.Composite(both, 0.1, hk.Adaptive(estimate="richardson")))
    assert "`a.y` -> `b.y` react to each other at once" in note
    one = hk.Scenario({"a": gain(0.5), "b": gain(0.0)}, wires)
    assert control_notes(hk.Composite(one, 0.1, hk.Adaptive(estimate="richardson"))) == []
    assert control_notes(hk.Composite(both, 0.1, hk.Adaptive())) == []
