"""What is told of a scenario before any number is known."""

import hocket as hk
from hocket.analysis.posedness import posedness
from systems import three_masses, two_masses


def test_a_sequence_delays_what_comes_later():
    found = posedness(two_masses("Seidel12", 1.0))
    assert [(delay.source, delay.target) for delay in found.delays] == [
        ("two.x", "one.x2"),
        ("two.v", "one.v2"),
    ]
    assert all(delay.reacts for delay in found.delays)  # the force follows x2 and v2 at once
    assert found.loops == ()


def test_jacobi_delays_everything():
    found = posedness(three_masses(1, "0.1 s"))
    assert len(found.delays) == 6
    assert found.loops == ()
    nested = posedness(three_masses(1, "0.1 s", "0.025 s"))
    assert {delay.target for delay in nested.delays} >= {"pair.third.x2", "first.force", "pair.second.x1"}


def test_loops_are_solved_or_broken():
    gain = hk.StateSpace(D=[[0.5, 1.0]], inputs=["u", hk.Port("v", start=2.5)], outputs=["y"])
    scenario = hk.Scenario({"a": gain, "b": gain}, {"a.u": "b.y", "b.u": "a.y"})
    found = posedness(hk.Composite(scenario, "0.1 s"))
    assert found.loops == (("a.y", "b.y"),) or found.loops == (("b.y", "a.y"),)
    assert found.solved
    assert not posedness(hk.Composite(scenario, "0.1 s", hk.Jacobi(outputs="stale"))).solved
