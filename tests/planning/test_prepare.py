"""A co-simulation is a model: what it can do follows from what is inside."""

from fractions import Fraction as F

import pytest

from hocket import Composite, GaussSeidel, Hold, Jacobi, Ode, Polynomial, Python, Scenario, StateSpace
from hocket.coupling.feedthrough import with_direct_feedthrough
from hocket.engine.opening import open_composite
from hocket.errors import ScenarioError
from hocket.model.ports import Port
from hocket.model.scenario import Connection
from hocket.planning.planner import plan_tree
from hocket.planning.prepare import as_sampled_level, prepare_composite
from systems import LAG_AT_REST

GAIN = StateSpace(D=[[2]], inputs=["u"], outputs=["y"])
CROSSED = StateSpace(D=[[0, 1], [1, 0]], inputs=["u", "v"], outputs=["y", "z"])
"""y reacts to v, z to u."""


class Simple:
    """Can step, no more."""

    inputs = ("u [N] = 2",)
    outputs = ("y [m]", "z")
    feedthrough = {"z": ["u"]}  # noqa: RUF012

    def start(self, t): ...

    def output(self, t, u):
        return [1.0, u[0][0]]

    def step(self, t, h, u): ...


class Rewinding(Simple):
    def save(self): ...

    def restore(self, state): ...


class Sloping(Rewinding):
    def slope(self, t, u):
        return [0.0, 0.0]


def level(models, connections=(), inputs=(), outputs=(), step=1, **more):
    return Composite(Scenario(models, connections, inputs, outputs), step, **more)


# capabilities


@pytest.mark.parametrize(
    ("classes", "rollback", "slopes"),
    [
        ([Sloping, Sloping], True, True),
        ([Sloping, Rewinding], True, False),
        ([Sloping, Simple], False, False),
        ([Simple], False, False),
    ],
)
def test_a_level_can_do_what_all_inside_can(classes, rollback, slopes):
    one = level({f"m{k}": Python(cls) for k, cls in enumerate(classes)})
    for composite in (one, level({"inner": one, "good": Python(Sloping)})):
        capabilities = composite.capabilities
        assert (capabilities.rollback, capabilities.slopes) == (rollback, slopes)
        assert not capabilities.variable_step
        assert not capabilities.micro


@pytest.mark.parametrize(
    ("methods", "order"),
    [(["exact"], None), (["rk4", "exact"], 4), (["rk4", "heun"], 2), (["euler", "rk4", "heun"], 1)],
)
def test_the_order_of_a_level_is_the_lowest_inside(methods, order):
    models = {f"m{k}": StateSpace(A=[[0]], C=[[1]], outputs=["y"], method=m) for k, m in enumerate(methods)}
    assert level(models).capabilities.order == order
    assert level({"inner": level(models)}).capabilities.order == order


def test_every_power_of_time_of_an_input_is_passed_on():
    assert level({"m": Python(Simple)}).capabilities.input_degree is None


# ports


def test_a_level_has_the_ports_of_its_scenario():
    composite = level({"m": LAG_AT_REST}, {"m.u": "force", "x": "m.y"}, ["force [N] = 3"], ["x [m]"])
    assert composite.inputs == (Port("force", "N", 3.0),)
    assert composite.outputs == (Port("x", "m"),)


def feedthrough(composite):
    level = with_direct_feedthrough(Scenario({"level": composite})).models["level"]
    return {port.name: port.feedthrough for port in level.outputs}


def test_outputs_react_to_the_inputs_that_reach_them():
    models = {"a": CROSSED, "b": CROSSED, "state": LAG_AT_REST}
    connections = {
        "a.u": "p",
        "a.v": "q",
        "b.u": "a.y",
        "b.v": "state.y",
        "state.u": "p",
        "through": "b.z",
        "held": "b.y",
        "short": "a.z",
    }
    composite = level(models, connections, ["p", "q"], ["through", "held", "short"])
    assert feedthrough(composite) == {"through": ("q",), "held": (), "short": ("p",)}


def test_outputs_react_through_levels_in_levels():
    composite = level(
        {"m": CROSSED}, {"m.u": "p", "m.v": "q", "y": "m.y", "z": "m.z"}, ["p", "q"], ["y", "z"]
    )
    for _ in range(3):
        composite = level(
            {"inner": composite},
            {"inner.p": "p", "inner.q": "q", "y": "inner.y", "z": "inner.z"},
            ["p", "q"],
            ["y", "z"],
        )
        assert feedthrough(composite) == {"y": ("q",), "z": ("p",)}


def test_inputs_are_listed_in_the_order_of_the_level():
    mixer = StateSpace(D=[[1, 1, 1]], inputs=["a", "b", "c"], outputs=["y"])
    connections = {"m.a": "third", "m.b": "first", "m.c": "second", "y": "m.y"}
    composite = level({"m": mixer}, connections, ["first", "second", "third"], ["y"])
    assert feedthrough(composite) == {"y": ("first", "second", "third")}


# what may be written


@pytest.mark.parametrize(
    ("step", "exact"), [("2.5 ms", F(1, 400)), (0.1, F(1, 10)), (F(1, 3), F(1, 3)), (2, F(2))]
)
def test_a_step_is_exact(step, exact):
    assert level({"m": LAG_AT_REST}, step=step).step == exact


def test_words_stand_for_orchestrators_and_extrapolators():
    scenario = Scenario({"m": LAG_AT_REST}, {"m.u": "m.y"})
    assert Composite(scenario, 1) == Composite(scenario, 1, Jacobi(), Hold(), "window")
    assert Composite(scenario, 1, "gauss-seidel", "quadratic") == Composite(
        scenario, 1, GaussSeidel(), Polynomial(2)
    )
    assert Composite(scenario, 1) != Composite(scenario, 1, GaussSeidel())


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"step": 0}, "the step 0 s is not positive\n  where:    step\n  expected: a step above zero"),
        (
            {"step": "-5 ms"},
            "the step -5 ms is not positive\n  where:    step\n  expected: a step above zero",
        ),
        (
            {"extrapolation": "cubik"},
            "there is no extrapolation `cubik`\n  where:    extrapolation\n  try:      did you mean `cubic`?",
        ),
        (
            {"orchestrator": "jakobi"},
            "there is no orchestrator `jakobi`\n  where:    orchestrator\n  try:      did you mean `jacobi`?",
        ),
        ({"start": "warm"}, '`start` cannot be \'warm\'\n  where:    start\n  expected: "window" or "cold"'),
    ],
)
def test_wrong_choices_are_refused(choice, message):
    with pytest.raises(ScenarioError) as caught:
        level({"m": LAG_AT_REST}, {"m.u": "m.y"}, **choice)
    assert str(caught.value) == message


@pytest.mark.parametrize("step", ["soon", float("nan"), None])
def test_a_step_that_is_no_duration_is_refused_as_a_step(step):
    with pytest.raises(ScenarioError, match="is not a ") as caught:
        level({"m": LAG_AT_REST}, step=step)
    assert caught.value.faults[0].where == "step"


def test_another_scenario_keeps_the_choices():
    one = Composite(Scenario({"m": LAG_AT_REST}), "5 ms", GaussSeidel(["m"]), Polynomial(2), "cold")
    other = one.with_scenario(Scenario({"m": GAIN}))
    assert other == Composite(Scenario({"m": GAIN}), "5 ms", GaussSeidel(["m"]), Polynomial(2), "cold")


def test_a_plan_may_be_asked_for_again_and_again():
    composite = level({"m": LAG_AT_REST, "n": GAIN}, {"m.u": "n.y", "n.u": "m.y"})
    assert (
        plan_tree(composite).plan
        == plan_tree(composite).plan
        == plan_tree(composite.with_scenario(composite.scenario)).plan
    )


# models with a period


def test_a_sampled_model_is_a_level_of_one_that_holds_its_inputs():
    model = Python(Simple, period="20 ms")
    wrapped = as_sampled_level(model)
    assert wrapped.step == F(1, 50)
    assert wrapped.inputs == model.inputs == (Port("u", "N", 2.0),)
    assert model.outputs == (Port("y", "m"), Port("z", "", None, ("u",)))
    assert feedthrough(wrapped) == {"y": (), "z": ("u",)}
    assert wrapped.scenario.models["sampled"].period is None
    assert set(wrapped.scenario.connections) == {
        Connection("u", "sampled.u", Hold()),
        Connection("sampled.y", "y"),
        Connection("sampled.z", "z"),
    }


def test_models_with_a_period_become_levels_at_any_depth():
    inner = level({"controller": Python(Simple, period=2), "plant": LAG_AT_REST}, {"plant.u": "controller.y"})
    outer = level({"inner": inner, "other": Python(Simple, period=3), "plain": Python(Simple)})
    root = plan_tree(outer)
    assert {design.path: design.composite.step for design in root.levels()} == {
        "": 1,
        "inner": 1,
        "inner.controller": 2,
        "other": 3,
    }
    assert root.leaves.wiring.names == ("plain", "inner.plant", "inner.controller.sampled", "other.sampled")


def test_a_period_must_fit_the_step_around_it():
    with pytest.raises(ScenarioError) as caught:
        plan_tree(level({"controller": Python(Simple, period="15 ms")}, step="10 ms"))
    assert (
        str(caught.value)
        == """\
the step 15 ms of `controller` does not divide the step 10 ms around it
  where:    controller.step
  expected: the outer step divided by a whole number, or a multiple of it
  try:      10 ms or 20 ms"""
    )


# preparation


def test_preparing_leaves_the_composite_alone():
    composite = level(
        {"inner": level({"m": GAIN}), "a": LAG_AT_REST, "c": Python(Simple, period=1)},
        {"inner.m.u": "a.y", "a.u": "inner.m.y"},
    )
    before = composite.with_scenario(composite.scenario)
    made = prepare_composite(composite)
    assert composite == before
    assert made.scenario.models["inner"].inputs == (Port("m.u"),)
    assert made.scenario.models["inner"].outputs == (Port("m.y", feedthrough=("m.u",)),)
    assert isinstance(made.scenario.models["c"], Composite)
    assert prepare_composite(made) == made


def test_faults_of_every_level_are_told_at_once():
    inner = level({"m": GAIN}, {"m.u": "n.y"})
    with pytest.raises(ScenarioError) as caught:
        prepare_composite(level({"inner": inner, "a": LAG_AT_REST}, {"a.u": "b.y"}))
    assert [(fault.what, fault.where) for fault in caught.value.faults] == [
        ("there is no model `b`", "connections.a.u"),
        ("there is no model `n`", "inner.connections.m.u"),
    ]


# the live level


def test_a_level_takes_several_own_steps_and_any_power_of_time():
    """x' = u with u = 3 + 2 s + 6 s^2: x grows by 3 + 1 + 2 in a second, in five steps."""
    integral = StateSpace(A=[[0]], B=[[1]], C=[[1]], x0=[10], inputs=["u"], outputs=["x"])
    live = open_composite(level({"m": integral}, {"m.u": "u", "x": "m.x"}, ["u"], ["x"], step="0.2 s"))
    live.start(0.0)
    u = [[3.0], [2.0], [6.0]]
    assert live.step(0.0, 1.0, u) == 1.0
    assert live.output(1.0, [[0.0]]) == pytest.approx([16.0], rel=1e-14)


def test_a_level_asked_for_outputs_reacts_to_the_new_input():
    live = open_composite(level({"m": GAIN}, {"m.u": "u", "y": "m.y"}, ["u = 5"], ["y"]))
    live.start(0.0)
    assert live.output(0.0, [[5.0]]).tolist() == [10.0]
    assert live.output(0.0, [[-1.0]]).tolist() == [-2.0]


def test_ode_and_linear_models_can_share_a_level():
    ode = Ode(lambda t, x, u: [-x[0]], None, [1.0], outputs=["x"], method="heun")
    composite = level({"ode": ode, "linear": LAG_AT_REST}, {"linear.u": "ode.x"})
    assert (composite.capabilities.order, composite.capabilities.rollback, composite.capabilities.slopes) == (
        2,
        True,
        True,
    )
