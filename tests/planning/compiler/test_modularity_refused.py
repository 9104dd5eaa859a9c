"""Constraints that cannot be compiled are refused, with the condition that is not met."""

import numpy as np
import pytest

import hocket as hk
from hocket.coupling.wiring import scenario_faults
from hocket.errors import ScenarioError
from hocket.model.constraints import Constraint
from hocket.model.ports import Port
from hocket.model.scenario import Scenario
from hocket.planning.compiler.modularity import Modularity
from hocket.simulators.wrappers.replay import Replay
from planning.compiler.linked import EQUATIONS, LINK, RATES, Body, Told, boxes, mass, pair

MODELS = {"left": mass(1.0, 1.0, 0.5), "right": mass(1.0, 2.0, 0.3)}


def fault(scenario, orchestrator="jacobi", **options):
    """The only fault: told by the pass, and by every way to run the level."""
    level = hk.Composite(scenario, 0.1, orchestrator)
    (found,) = Modularity(**options).check_preconditions(level)
    if not options:
        with pytest.raises(ScenarioError) as caught:
            hk.run(level, stop=1)
        assert found in caught.value.faults
    return found


def linked(constraint, models=None, connections=(), **more):
    return hk.Scenario(MODELS | (models or {}), connections, constraints={"link": constraint}, **more)


def test_too_few_equations():
    found = fault(linked("left.x - right.x = 0 * (left.F + right.F)"))
    assert found.what == "1 equation for 2 inputs: `left.F`, `right.F`"
    assert found.where == "constraints.link"
    assert "`a.F + b.F = 0`" in found.hint


def test_too_many_equations():
    found = fault(linked(Constraint((*EQUATIONS, "left.v = right.v"), RATES)))
    assert found.what == "3 equations for 2 inputs: `left.F`, `right.F`"
    assert found.hint == "`left.v = right.v` follows from `rates`: leave it out"
    assert "`determines`" in fault(linked("left.x = right.x")).hint


def test_equations_that_say_the_same():
    same = Constraint(
        ("left.x = right.x", "2 * left.x = 2 * right.x"), RATES, determines=("left.F", "right.F")
    )
    assert "cannot tell `left.F` and `right.F` apart" in fault(linked(same)).what


def test_an_input_without_influence():
    deaf = hk.StateSpace(A=[[-1.0]], C=[[1.0]], x0=[1.0], inputs=["F"], outputs=["x"])
    models = {"left": deaf, "right": deaf}
    scenario = hk.Scenario(models, constraints={"link": EQUATIONS})
    assert "`left.x = right.x` does not react to `left.F` and `right.F`" in fault(scenario).what


def test_a_simulator_that_cannot_go_back():
    once = type(
        "Once", (), {name: getattr(Told, name) for name in ("start", "output", "step", "outputs", "__init__")}
    )
    box = hk.Python(once, ["F [N]"], c=1.0, d=0.5)
    found = fault(linked(LINK, {"left": box}))
    assert found.what == "steps are made again until the equations hold, and `left` cannot roll back"
    assert "`Replay(model)`" in found.hint
    replayed = hk.Composite(linked(LINK, {"left": Replay(box)}), 0.1)
    assert Modularity().check_preconditions(replayed) == []


def test_a_port_that_jumps():
    switch = hk.Python(Told, ["F [N]"], [Port("x", "m", held=True), Port("v", "m/s")], c=1.0, d=0.5)
    assert fault(linked(LINK, {"left": switch})).what == "`left.x` jumps from value to value"


def test_a_port_that_does_not_exist():
    found = fault(linked(("left.x = right.y", "left.F + right.F = 0")))
    assert found.what == "there is no port `right.y`"
    assert found.hint == "did you mean `right.x`?"


def test_a_text_that_is_no_equation():
    found = fault(linked("left.x ~ right.x"))
    assert found.what == "`left.x ~ right.x` is not an equation"
    assert found.where == "constraints.link"


def test_an_input_that_is_driven_already():
    found = fault(linked(LINK, {"k": hk.Gain(1.0, out="N")}, {"right.F": "k.y", "k.u": "left.x"}))
    assert found.what == "`right.F` is driven by `k.y`, and stands in an equation that would determine it"
    assert found.hint == "write `k.y` in its place"


def test_units_that_differ():
    in_mm = mass(1.0, 2.0, 0.3, outputs=("x [mm]", "v [mm/s]"))
    assert "`left.x` is in `m`, `right.x` in `mm`" in fault(linked(LINK, {"right": in_mm})).what
    force = ("left.x = right.v", "left.F + right.F = 0")
    assert "cannot be converted" in fault(linked(force)).what


def test_a_start_where_the_equations_do_not_hold():
    def moved(x, v):
        return hk.StateSpace(
            [[0, 1], [-2, -0.3]], [[0], [1]], np.eye(2), x0=[x, v], inputs=["F"], outputs=["x", "v"]
        )

    found = fault(linked(LINK, {"right": moved(1.25, 0.0)}))
    assert found.what == "`left.x = right.x` does not hold at the start: left - right is -0.25"
    assert (
        "the time derivative of left - right is 0.5" in fault(linked(LINK, {"right": moved(1.0, -0.5)})).what
    )
    assert (
        Modularity(gap=0.5).check_preconditions(hk.Composite(linked(LINK, {"right": moved(1.25, 0.0)}), 0.1))
        == []
    )


def test_inputs_behind_an_actuator():
    slow = hk.StateSpace(
        [[0, 1, 0], [0, 0, 1], [0, 0, 0]],
        [[0], [0], [1]],
        np.eye(3)[:2],
        x0=[1.0, 0.0, 0.0],
        inputs=["F [N]"],
        outputs=["x [m]", "v [m/s]"],
    )
    scenario = hk.Scenario({"left": slow, "right": slow}, constraints={"link": LINK})
    assert "only through its third derivative" in fault(scenario).what


def test_a_derivative_that_nobody_knows():
    class Fixed(Body):
        variable_step = False

    found = fault(boxes(Fixed, {}))
    assert "the time derivative of `left.x` is needed" in found.what
    assert "`left` accepts only the step of its level" in found.what
    assert 'rates = { "left.x" = "..." }' in found.hint


def test_a_sampled_simulator():
    device = hk.Python(Told, period="50 ms", c=1.0, d=0.5)
    assert fault(linked(LINK, {"left": device})).what.startswith("`left` is sampled")


def test_simulators_with_rates_of_their_own():
    assert "rates of their own" in fault(pair(), hk.Multirate({"left": 2})).what
    third = linked(LINK, {"k": hk.Gain(1.0)}, {"k.u": "left.x"})
    assert "`right` would step" in fault(third, hk.Asynchronous({"right": 2})).what
    assert Modularity().check_preconditions(hk.Composite(third, 0.1, hk.Multirate({"k": 2}))) == []


def test_simulators_on_different_hosts():
    apart = pair(hosts={"one": ["left"], "two": ["right"]})
    (found,) = Modularity().check_preconditions(hk.Composite(apart, 0.1))
    assert found.what == "`left` and `right` live on different hosts"


def test_a_simulator_that_fails_when_it_is_tried():
    class Broken(Told):
        def step(self, t, h, u):
            raise RuntimeError("no licence")

    found = fault(boxes(Broken, RATES))
    assert found.what == "`left` was tried over a step of 0.1 s: RuntimeError: no licence"


def test_faults_in_levels_say_where():
    inside = hk.Composite(linked("left.x = right.x"), 0.1)
    level = hk.Composite(hk.Scenario({"box": inside}), 0.1)
    (found,) = Modularity().check_preconditions(level)
    assert found.where == "box.constraints.link"
    with pytest.raises(ScenarioError, match="1 equation for 0 inputs"):
        hk.run(level, stop=1)


def test_other_faults_are_told_beside_them():
    scenario = linked(("left.x = right.y", "left.F + right.F = 0"), {"k": hk.Gain(1.0)}, {"k.u": "lfet.x"})
    with pytest.raises(ScenarioError) as caught:
        hk.run(hk.Composite(scenario, 0.1), stop=1)
    assert [each.where for each in caught.value.faults] == ["connections.k.u", "constraints.link"]
    assert {each.where for each in scenario_faults(scenario)} == {"connections.k.u"}
    assert scenario_faults(pair()) == []


@pytest.mark.parametrize(
    ("written", "what"),
    [
        ({"link": []}, "there are no equations"),
        ({"link": [1, 2]}, "`equations` is"),
        ({"link": 3}, "a constraint cannot be made of 3"),
        ({"li nk": ["a.x = b.x"]}, "`li nk` cannot name a constraint"),
        ({"left": ["a.x = b.x"]}, "`left` names a constraint and a model"),
        ({"link": {"equations": ["a.x = b.x"], "rate": {}}}, "a constraint has no `rate`"),
        ({"link": {"equations": ["a.x = b.x"], "rates": "v"}}, "`rates` is 'v'"),
        ({"link": {"equations": ["a.x = b.x"], "mu": -1.0}}, "`mu` is -1.0"),
        ({"link": {"equations": ["a.x = b.x"], "determines": "a.F"}}, "`determines` is 'a.F'"),
        (["a.x = b.x"], "the constraints of a scenario have names"),
    ],
)
def test_what_is_no_constraint(written, what):
    with pytest.raises(ScenarioError) as caught:
        Scenario(MODELS, constraints=written)
    assert what in caught.value.faults[0].what
    assert caught.value.faults[0].where.startswith("constraints")
