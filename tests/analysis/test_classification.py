"""Scenarios in the terms of the field."""

import hocket as hk
from command_line import good
from hocket.analysis.classification import classify
from planning.compiler.linked import Told, pair
from systems import EXAMPLES, three_masses, two_masses


def test_a_hierarchy():
    found = classify(three_masses(2, "0.2 s", "0.05 s"))
    assert (found["subsystems"], found["hierarchy"]) == ("3", "2 levels")
    assert found["model descriptions"] == "3 linear ODE"
    assert found["subsystem solvers"] == "3 one step, explicit, order 1"
    assert found["sequence"] == "outermost: parallel; pair: parallel"
    assert found["multirate"] == "5 rates: 0.2 s, 50 ms, 5 ms, 2.5 ms, 1.25 ms"
    assert (found["interface"], found["iterations"], found["hybrid"]) == ("loose", "none", "no")
    assert found["scheme (Busch)"] == "explicit: Jacobi"


def test_a_sequence():
    found = classify(two_masses("Seidel21", 1.0))
    assert found["sequence"] == "outermost: sequential, order given"
    assert found["scheme (Busch)"] == "explicit: GaussSeidel"
    assert (found["macro step"], found["multirate"]) == ("outermost: 1 s, fixed", "no")


def test_strong_coupling_has_the_same_steps_and_iterates():
    """Hafner 2021, definition 2.9; a loop that is solved within explicit steps is not enough."""
    assert rated(hk.Iterate())["interface"] == "strong: the same steps, iterated"
    assert rated(hk.PredictorCorrector())["interface"] == "loose"
    assert rated(hk.Iterate(hk.Multirate({"fast": 4})))["interface"] == "loose"
    assert rated(hk.Jacobi())["interface"] == "loose"


def test_constraints_are_equations_that_the_orchestrator_solves():
    found = classify(hk.Composite(pair(), "0.1 s"))
    assert found["coordination"] == "orchestrator, which solves equations"


def test_factors_and_tools():
    assert rated(hk.Multirate({"fast": 4}))["multirate factor"] == "outermost: 4"
    found = classify(three_masses(2, "0.2 s", "0.05 s"))
    assert found["multirate factor"] == "outermost: 40; pair: 40"
    assert found["tools and integrators (Geimer)"] == (
        "1 tool, 3 integrators: distributed integration in one tool"
    )
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"])
    boxes = hk.Scenario({"a": hk.Python(Told, c=1.0, d=0.5), "b": lag}, {"a.F": "b.y", "b.u": "a.x"})
    told = classify(hk.Composite(boxes, 0.1))["tools and integrators (Geimer)"]
    assert told == "2 tools, 2 integrators: co-simulation of several tools"


def test_a_solved_loop_is_told():
    gain = hk.Gain(0.5)
    scenario = hk.Scenario({"a": gain, "b": gain}, {"a.u": "b.y", "b.u": "a.y"})
    found = classify(hk.Composite(scenario, "0.1 s"))
    assert found["interface"] == "loose; algebraic loops are solved"
    assert found["coordination"] == "orchestrator, which solves equations"
    assert classify(hk.Composite(scenario, "0.1 s", hk.Jacobi(outputs="stale")))["interface"] == "loose"


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
        assert found["multirate"] == f"2 rates: 0.1 s, 25 ms; outermost: {words}"
        assert found["sequence"] == f"outermost: sequential, {words}"
        assert found["macro step"] == "outermost: 0.1 s, fixed"
        kind = "semi-implicit" if scheme == "compound" else "explicit"
        assert found["scheme (Busch)"] == f"{kind}: Multirate"


def test_turns_have_no_common_step():
    found = rated(hk.Asynchronous({"fast": 5, "slow": 2}))
    assert found["multirate"] == "2 rates: 50 ms, 20 ms; outermost: the furthest behind first"
    assert found["macro step"] == "outermost: none in common; all meet every 0.1 s"
    assert found["scheme (Busch)"] == "explicit: Asynchronous"
    equal = rated(hk.Asynchronous({}))
    assert (equal["macro step"], equal["multirate"]) == ("outermost: 0.1 s, fixed", "no")


def test_adaptive_steps():
    found = rated(hk.Adaptive(hk.GaussSeidel()))
    told = "0.1 s at most, adaptive by the defect of the inputs, with rejection"
    assert found["macro step"] == f"outermost: {told}"
    assert found["sequence"] == "outermost: sequential, order found"
    assert (found["iterations"], found["scheme (Busch)"]) == ("none", "semi-implicit: GaussSeidel")
    ahead = rated(hk.Adaptive(hk.Jacobi(), estimate="orders"))
    assert ahead["macro step"].endswith("by two orders of extrapolation, before the step, without rejection")
    assert ahead["scheme (Busch)"] == "explicit: Jacobi"
    inside = rated(hk.Adaptive(hk.Iterate()))
    assert (inside["iterations"], inside["scheme (Busch)"]) == ("iterative", "implicit: Jacobi")


def test_a_predictor_and_a_corrector_do_not_iterate():
    found = rated(hk.Iterate(hk.Jacobi(), tolerance=None, at_most=2))
    assert (found["iterations"], found["scheme (Busch)"]) == ("predictor-corrector", "semi-implicit: Jacobi")
    assert rated(hk.Iterate(hk.Jacobi(), tolerance=None, at_most=3))["iterations"] == "iterative"
    assert rated(hk.Iterate())["scheme (Busch)"] == "implicit: Jacobi"
