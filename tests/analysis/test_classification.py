"""Scenarios in the terms of the field."""

import hocket as hk
from command_line import good
from hocket.analysis.classification import classify
from systems import EXAMPLES, three_masses, two_masses


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


def rated(orchestrator, step="0.1 s"):
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"slow": lag, "fast": lag}, {"slow.u": "fast.y", "fast.u": "slow.y"})
    return classify(hk.Composite(scenario, step, orchestrator))


def test_own_steps_within_a_level():
    for scheme, words in (
        ("slowest-first", "slowest first"),
        ("fastest-first", "fastest first"),
        ("compound", "mixed: a compound step"),
    ):
        found = rated(hk.Multirate({"fast": 4}, scheme))
        assert found.rates == ("0.1 s", "25 ms")
        assert found.within == (f"outermost: {words}",)
        assert found.sequence == (("outermost", f"sequential, {words}"),)
        assert found.steps == (("outermost", "0.1 s, fixed"),)
        kind = "semi-implicit" if scheme == "compound" else "explicit"
        assert found.busch == f"{kind}: Multirate"
    assert {
        "term": "multirate",
        "here": "2 rates: 0.1 s, 25 ms; outermost: mixed: a compound step",
    } in found.rows()


def test_turns_have_no_common_step():
    found = rated(hk.Asynchronous({"fast": 5, "slow": 2}))
    assert found.rates == ("50 ms", "20 ms")
    assert found.steps == (("outermost", "none in common; all meet every 0.1 s"),)
    assert found.within == ("outermost: the furthest behind first",)
    assert found.busch == "explicit: Asynchronous"
    equal = rated(hk.Asynchronous({}))
    assert (equal.steps, equal.within) == ((("outermost", "0.1 s, fixed"),), ())


def test_adaptive_steps():
    found = rated(hk.Adaptive(hk.GaussSeidel()))
    told = "0.1 s at most, adaptive by the defect of the inputs, with rejection"
    assert found.steps == (("outermost", told),)
    assert found.sequence == (("outermost", "sequential, order found"),)
    assert (found.iterations, found.busch) == ("none", "semi-implicit: GaussSeidel")
    ahead = rated(hk.Adaptive(hk.Jacobi(), estimate="orders"))
    assert ahead.steps[0][1].endswith("by two orders of extrapolation, before the step, without rejection")
    assert ahead.busch == "explicit: Jacobi"
    inside = rated(hk.Adaptive(hk.Iterate()))
    assert (inside.iterations, inside.busch) == ("iterative", "implicit: Jacobi")


def test_a_predictor_and_a_corrector_do_not_iterate():
    found = rated(hk.Iterate(hk.Jacobi(), tolerance=None, at_most=2))
    assert (found.iterations, found.busch) == ("predictor-corrector", "semi-implicit: Jacobi")
    assert rated(hk.Iterate(hk.Jacobi(), tolerance=None, at_most=3)).iterations == "iterative"
    assert rated(hk.Iterate()).busch == "implicit: Jacobi"
