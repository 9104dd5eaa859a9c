"""Scenarios in the terms of the field."""

from pathlib import Path

import hocket as hk
from analysis.systems import three_masses, two_masses
from command_line import good
from hocket.analysis.classification import classify

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_hierarchy():
    found = classify(three_masses(2, "0.2 s", "0.05 s"))
    assert (found.simulators, found.levels) == (3, 2)
    assert found.descriptions == (("linear ODE", 3),)
    assert found.solvers == (("one step, explicit, order 1", 3),)
    assert found.sequence == (("outermost", "parallel"), ("pair", "parallel"))
    assert found.rates == ("0.2 s", "50 ms", "5 ms", "2.5 ms", "1.25 ms")
    assert (found.interface, found.iterations, found.hybrid) == ("loose", "none", False)
    assert found.busch == "explicit: Jacobi"


def test_a_sequence():
    found = classify(two_masses("Seidel21", 1.0))
    assert found.sequence == (("outermost", "sequential, order given"),)
    assert found.busch == "explicit: GaussSeidel"
    assert found.rates == ("1 s",)


def test_a_solved_loop_is_strong():
    gain = hk.Gain(0.5)
    scenario = hk.Scenario({"a": gain, "b": gain}, {"a.u": "b.y", "b.u": "a.y"})
    found = classify(hk.Composite(scenario, "0.1 s"))
    assert found.interface.startswith("strong")
    assert found.coordination == "orchestrator, which solves equations"
    assert classify(hk.Composite(scenario, "0.1 s", hk.Jacobi(outputs="stale"))).interface == "loose"


def test_the_command():
    told = good("describe", EXAMPLES / "car.toml")
    assert "3 levels" in told or "4 levels" in told
    assert "hybrid" in told
    assert "only its author knows" in told
