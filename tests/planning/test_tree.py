"""The tree of levels before anything runs: steps, notes, leaves, clocks."""

from fractions import Fraction as F

import pytest

from hocket import Composite, GaussSeidel, Hermite, Hold, Nepce, Polynomial, Python, Scenario, StateSpace
from hocket.coupling.wiring import OWN, Drive
from hocket.engine.opening import open_level
from hocket.errors import ScenarioError, SimulatorError
from hocket.plan import Read, Solve, Together
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree


def lag(unit="", out="", step=None):
    return StateSpace(
        A=[[-1]], B=[[1]], C=[[1]], inputs=[f"u [{unit}]"], outputs=[f"y [{out}]"], method="rk4", step=step
    )


def gain(unit="", out=""):
    return StateSpace(D=[[2]], inputs=[f"u [{unit}]"], outputs=[f"y [{out}]"])


def alone(model, step, **more):
    """The model in a level, driven by itself."""
    return Composite(Scenario({"m": model}, {"m.u": "m.y"}), step, **more)


def message(composite):
    with pytest.raises(ScenarioError) as caught:
        plan_tree(composite)
    return str(caught.value)


# steps


@pytest.mark.parametrize(
    ("inner", "outer", "hint"),
    [
        ("4 ms", "10 ms", "1/300 s or 5 ms"),
        ("0.3 s", "1 s", "0.25 s or 1/3 s"),
        ("2/3 s", "1 s", "0.5 s or 1 s"),
        ("20 ms", "10 ms", "10 ms"),
        ("1.5 s", "1 s", "1 s"),
    ],
)
def test_the_step_of_a_simulator_must_divide_the_one_around_it(inner, outer, hint):
    assert message(alone(lag(step=inner), outer)) == (
        f"the step {inner} of `m` does not divide the step {outer} around it\n"
        "  where:    m.step\n"
        "  expected: the outer step divided by a whole number\n"
        f"  try:      {hint}"
    )


@pytest.mark.parametrize("inner", ["10 ms", "5 ms", "10/3 ms", "1 us"])
def test_steps_that_divide_are_taken(inner):
    assert plan_tree(alone(lag(step=inner), "10 ms")).plan.step


@pytest.mark.parametrize(
    ("inner", "hint"),
    [("3 ms", "2.5 ms or 1/300 s"), ("25 ms", "20 ms or 30 ms"), ("15 ms", "10 ms or 20 ms")],
)
def test_the_step_of_a_level_must_divide_the_one_around_it_or_be_a_multiple(inner, hint):
    outer = Composite(Scenario({"level": alone(lag(), inner)}), "10 ms")
    assert message(outer) == (
        f"the step {inner} of `level` does not divide the step 10 ms around it\n"
        "  where:    level.step\n"
        "  expected: the outer step divided by a whole number, or a multiple of it\n"
        f"  try:      {hint}"
    )


@pytest.mark.parametrize("inner", ["10 ms", "2.5 ms", "10/7 ms", "20 ms", "70 ms"])
def test_levels_may_be_faster_or_slower_by_a_whole_number(inner):
    assert plan_tree(Composite(Scenario({"level": alone(lag(), inner)}), "10 ms")).plan.step


def test_faults_of_all_levels_are_told_together():
    deep = alone(lag(step="0.3 s"), 1, orchestrator=GaussSeidel(["n"]))
    middle = Composite(Scenario({"deep": deep, "slow": alone(lag(), "0.7 s")}), 1)
    with pytest.raises(ScenarioError) as caught:
        plan_tree(Composite(Scenario({"middle": middle}), "1.5 s"))
    assert {(fault.where, fault.what) for fault in caught.value.faults} == {
        ("middle.step", "the step 1 s of `middle` does not divide the step 1.5 s around it"),
        ("middle.slow.step", "the step 0.7 s of `middle.slow` does not divide the step 1 s around it"),
        ("middle.deep.m.step", "the step 0.3 s of `middle.deep.m` does not divide the step 1 s around it"),
        ("middle.deep.order", "the order names `n`, which is not a model"),
        ("middle.deep.order", "the order leaves out `m`"),
    }


# extrapolation


class Steady:
    """Gives no slopes and cannot roll back."""

    inputs = ("u",)
    outputs = ("y",)
    feedthrough = {}  # noqa: RUF012

    def start(self, t): ...

    def output(self, t, u):
        return [1.0]

    def step(self, t, h, u): ...


def test_slopes_that_nobody_gives_are_refused():
    assert (
        message(alone(Python(Steady), 1, extrapolation=Hermite(1)))
        == """\
`m.u` wants slopes, and `m` does not give any
  where:    m
  try:      extrapolation "linear", which needs values only; slopes = "backward" makes some"""
    )


def inner_level(extrapolation):
    scenario = Scenario({"m": lag()}, {"m.u": ("u", extrapolation), "y": "m.y"}, ["u = 0"], ["y"])
    return Composite(Scenario({"level": Composite(scenario, 1)}), 1)


def test_an_input_of_the_level_is_passed_on_or_held_but_not_fitted_anew():
    assert (
        message(inner_level(Polynomial(1)))
        == """\
`level.m.u` passes an input of the level on and cannot be fitted anew
  where:    level.m
  expected: no extrapolation, or "hold" to sample it at every inner step"""
    )
    assert plan_tree(inner_level(None)).plan.step
    assert plan_tree(inner_level(Hold())).plan.step


COLD = "starts cold, without a past for its extrapolators"


@pytest.mark.parametrize(
    ("extrapolation", "start", "notes"),
    [
        ("hold", "window", ()),
        ("hold", "cold", ()),
        (Nepce(0.5), "cold", ()),
        (Hermite(1), "cold", ()),
        ("linear", "cold", ()),
        ("quadratic", "cold", (f"the order is capped at 2: the outermost level {COLD}",)),
        ("cubic", "cold", (f"the order is capped at 2: the outermost level {COLD}",)),
        (Hermite(2), "cold", (f"the order is capped at 3: the outermost level {COLD}",)),
        ("linear", "window", ()),
        ("cubic", "window", ()),
        (Hermite(1), "window", ()),
        (Hermite(2), "window", ()),
    ],
)
def test_notes_say_what_the_start_does_to_the_order(extrapolation, start, notes):
    assert plan_tree(alone(lag(), 1, extrapolation=extrapolation, start=start)).plan.notes == notes


def test_those_that_cannot_rewind_are_named():
    stuck = alone(Python(Steady), 1, extrapolation="quadratic")
    assert plan_tree(stuck).plan.notes == (
        "the order is capped at 2: `m` cannot roll back, so the start is cold",
    )
    assert plan_tree(alone(Python(Steady), 1, extrapolation="linear")).plan.notes == ()
    several = Composite(Scenario({"a": stuck, "b": stuck, "good": alone(lag(), 1)}), 1)
    assert plan_tree(several).plan.notes == (
        "the order is capped at 2: `a.m` and 1 more cannot roll back, so the start is cold",
    )


def test_cold_levels_inside_are_named():
    """The lowest order of them counts: 3 in a, 2 in b."""
    a, b = (alone(lag(), 1, extrapolation=way, start="cold") for way in (Hermite(2), "cubic"))
    outer = Composite(Scenario({"a": a, "b": b, "c": alone(lag(), 1)}), 1, extrapolation="linear")
    assert plan_tree(outer).plan.notes == (f"the order is capped at 2: `a`, `b` {COLD}",)


# leaves


def test_leaves_are_wired_straight_to_each_other_with_all_factors_on_the_way():
    """oven.T in degC leaves its level in K and enters another in degF, where a sensor wants mK."""
    oven = Composite(
        Scenario({"oven": lag("W", "degC")}, {"oven.u": "P", "T": "oven.y"}, ["P [kW]"], ["T [K]"]), 1
    )
    house = Composite(
        Scenario({"sensor": lag("mK", "V")}, {"sensor.u": "T", "U": "sensor.y"}, ["T [degF]"], ["U [mV]"]), 1
    )
    control = lag("uV", "MW")
    connections = {"house.T": "kitchen.T", "control.u": "house.U", "kitchen.P": "control.y"}
    root = plan_tree(
        Composite(Scenario({"kitchen": oven, "control": control, "house": house}, connections), 1)
    )
    leaves = root.leaves
    assert leaves.wiring.names == ("control", "kitchen.oven", "house.sensor")
    assert leaves.places == [("", 1), ("kitchen", 0), ("house", 0)]
    (from_sensor,), (from_control,), (from_oven,) = leaves.wiring.drives
    assert from_sensor == (2, 0, Hold(), pytest.approx(1e6, rel=1e-14), 0.0)
    assert from_control == (0, 0, Hold(), pytest.approx(1e6, rel=1e-14), 0.0)
    assert from_oven[:3] == (1, 0, Hold())
    for celsius in (0.0, 20.0, -273.15):
        assert from_oven.gain * celsius + from_oven.offset == pytest.approx(
            1000 * (celsius + 273.15), abs=1e-8
        )


def test_leaves_of_a_level_reach_its_own_ports():
    inner = Composite(Scenario({"m": gain("m", "cm")}, {"m.u": "u", "y": "m.y"}, ["u [mm]"], ["y [m]"]), 1)
    outer = Composite(
        Scenario({"level": inner}, {"level.u": "u", "y": "level.y"}, ["v = 1", "u [km]"], ["y [mm]"]), 1
    )
    wiring = plan_tree(outer).leaves.wiring
    assert wiring.names == ("level.m",)
    assert wiring.drives == ((Drive(OWN, 1, None, pytest.approx(1000.0, rel=1e-14), 0.0),),)
    assert wiring.outputs == (Drive(0, 0, None, pytest.approx(10.0, rel=1e-14), 0.0),)


def test_an_input_that_nothing_drives_at_any_level_stays_undriven():
    free = StateSpace(D=[[2]], inputs=["u = 3"], outputs=["y"])
    outer = Composite(Scenario({"level": Composite(Scenario({"m": free}), 1)}), 1)
    assert plan_tree(outer).leaves.wiring.drives == ((None,),)


def test_the_start_reads_first_what_reacts_to_nothing_and_goes_through_the_levels():
    scenario = Scenario({"second": gain(), "state": lag()}, {"second.u": "u", "y": "second.y"}, ["u"], ["y"])
    models = {"third": gain(), "level": Composite(scenario, 1, extrapolation="hold"), "first": gain()}
    inside = {
        "level.u": "first.y",
        "third.u": "level.y",
        "first.u": "level.state.y",
        "level.state.u": "third.y",
    }
    start = plan_tree(Composite(Scenario(models, inside), 1)).plan.start
    reads = [
        [body[0].sim for body in each.bodies] if isinstance(each, Together) else each.sim
        for each in start
        if isinstance(each, Read) or (isinstance(each, Together) and isinstance(each.bodies[0][0], Read))
    ]
    assert reads == ["level.state", "first", "level.second", "third"]


def test_a_loop_through_levels_is_solved_at_the_start():
    level = Composite(Scenario({"m": gain()}, {"m.u": "u", "y": "m.y"}, ["u"], ["y"]), 1)
    root = Composite(Scenario({"level": level, "a": gain()}, {"level.u": "a.y", "a.u": "level.y"}), 1)
    (solve,) = plan_tree(root).plan.start
    assert isinstance(solve, Solve)
    assert set(solve.ports) == {"a.y", "level.m.y"}
    assert set(solve.sims) == {"a", "level.m"}


def test_one_clock_fits_all_steps():
    deep = alone(lag(), "10/3 ms")
    middle = Composite(Scenario({"deep": deep}), "10 ms")
    root = plan_tree(Composite(Scenario({"middle": middle, "slow": alone(lag(), "50 ms")}), "10 ms"))
    assert clock_of(root).tick == F(1, 300)
    clock = clock_of(root, F(1, 40), start=F(2))
    assert (clock.tick, clock.start) == (F(1, 600), F(2))
    assert [level.path for level in root.levels()] == ["", "middle", "middle.deep", "slow"]


# opening


class Door(Steady):
    """Tells when it is opened and closed; `broken` ones do not open."""

    def __init__(self, log, name, broken=False):
        if broken:
            raise OSError("the door is stuck")
        self.log, self.name = log, name
        log.append(f"open {name}")

    def close(self):
        self.log.append(f"close {self.name}")


def test_what_was_opened_is_closed_when_a_later_one_fails():
    log = []
    good = {name: Python(Door, log=log, name=name) for name in "ab"}
    inner = Composite(
        Scenario(
            {"b": good["b"], "c": Python(Door, log=log, name="c", broken=True)}, {"b.u": "b.y", "c.u": "b.y"}
        ),
        1,
    )
    root = plan_tree(Composite(Scenario({"a": good["a"], "level": inner}, {"a.u": "a.y"}), 1))
    with pytest.raises(SimulatorError) as caught:
        open_level(root, clock_of(root))
    assert sorted(log) == ["close a", "close b", "open a", "open b"]
    assert "OSError: the door is stuck" in caught.value.faults[0].what
    assert caught.value.faults[0].where.startswith("`level.c`")
