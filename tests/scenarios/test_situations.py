"""Situations in which a co-simulation goes quietly wrong, each with its exact answer."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from hocket.coupling.feedthrough import with_direct_feedthrough
from hocket.engine.opening import open_composite
from hocket.plan import Feed, Plan, Read, Record, Step, Times, Together
from systems import ENGINES, LAG_AT_REST

FREE = hk.StateSpace(
    [[0.0, 1.0], [-1.0, 0.0]], [[0.0], [0.0]], [[1.0, 0.0]], x0=[0.0, 1.0], inputs=["u = 0"], outputs=["y"]
)


def jump(t):
    return [1.0 if t >= 0.0015 else 0.0]


@pytest.mark.parametrize("extrapolation", ["linear", "quadratic", "cubic"])
def test_a_jump_right_after_the_start_is_no_past(extrapolation):
    """The source jumps within the first step of the outer level; a curve through that would lead anywhere."""
    inner = hk.Composite(hk.Scenario({"lag": LAG_AT_REST}), "1 ms", extrapolation=extrapolation)
    models = {"source": hk.Function(jump, ["y"]), "inner": inner}
    outer = hk.Composite(
        hk.Scenario(models, {"inner.lag.u": "source.y"}), "0.1 s", extrapolation=extrapolation
    )
    y = hk.run(outer, 1)["inner.lag.y"].values
    assert np.abs(y).max() < 1.0
    # the jump is seen one outer step late, and overshot by what the degree does to a step
    assert y[-1] == pytest.approx(1 - math.exp(-1), abs=0.05)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_level_with_a_longer_step_is_extrapolated_from_its_own_samples(engine):
    """sin t from a level of 2 H drives an integrator: its samples are 2 H apart, not H with repetitions."""

    def error(H):
        level = hk.Composite(hk.Scenario({"free": FREE}), 2 * H)
        integral = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"])
        scenario = hk.Scenario({"level": level, "sum": integral}, {"sum.u": "level.free.y"})
        run = hk.run(hk.Composite(scenario, H, extrapolation="cubic"), 2, engine=engine)
        return abs(run.final("sum.y") - (1 - math.cos(2)))

    errors = [error(Fraction(1, n)) for n in (20, 40)]
    assert math.log2(errors[0] / errors[1]) > 3.5


@pytest.mark.parametrize("step", [2 * math.pi / 100, 0.1 + 0.2])
def test_times_are_right_however_many_digits_a_step_has(step):
    composite = hk.Composite(hk.Scenario({"free": FREE}), step)
    stop = 2000 * composite.step
    t, y = hk.run(composite, stop)["free.y"]
    plain = hk.run(composite, stop, engine="interpreter")["free.y"]
    assert np.array_equal(t, plain.t)
    assert np.array_equal(y, plain.values)
    assert t[-1] == pytest.approx(2000 * step, rel=1e-15)


def test_a_clock_too_fine_for_the_native_engine_is_left_to_the_interpreter():
    composite = hk.Composite(hk.Scenario({"free": FREE}), "1/7000 s")
    start = Fraction("1700000000.123456789")
    run = hk.run(composite, start + Fraction(10, 7000), start=start)
    assert run["free.y"].t[-1] == float(start + Fraction(10, 7000))


def test_a_step_longer_than_the_native_engine_can_count_is_left_to_the_interpreter():
    inner = hk.Composite(hk.Scenario({"free": FREE}), 10**30)
    run = hk.run(hk.Composite(hk.Scenario({"inner": inner}), "0.1 s"), 1)
    assert run["inner.free.y"].values.tolist() == [0.0]


class Growing:
    """Returns its own array and goes on writing into it."""

    inputs = ("u = 0",)
    outputs = ("y",)

    def start(self, t):
        self.x = np.array([1.0])

    def output(self, t):
        return self.x

    def step(self, t, h, u):
        self.x *= math.exp(h)

    def save(self):
        return self.x.copy()

    def restore(self, state):
        self.x = state.copy()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_array_that_is_written_into_later(engine):
    integral = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"grow": hk.Python(Growing), "sum": integral}, {"sum.u": "grow.y"})
    run = hk.run(hk.Composite(scenario, "10 ms", extrapolation="cubic"), 1, engine=engine)
    assert run.final("sum.y") == pytest.approx(math.e - 1, rel=1e-7)


class Integrator:
    """A sampled PI controller: the integral is advanced once per period."""

    inputs = ("error",)
    outputs = ("force",)

    def start(self, t):
        self.i = self.p = 0.0

    def output(self, t):
        return [2.0 * self.p + self.i]

    def step(self, t, h, u):
        self.p = u[0, 0]
        self.i += h * u[0, 0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("order", [None, "auto", ["plant", "control"], ["control", "plant"]])
def test_a_sampled_controller_sees_its_period_whatever_the_order(order, engine):
    """x' = -x + f; every 0.4 s the controller sees -x and answers 0.4 s later. H = 0.1."""
    plant = hk.StateSpace([[-1.0]], [[1.0]], [[1.0], [-1.0]], x0=[1.0], inputs=["f"], outputs=["x", "e"])
    models = {"plant": plant, "control": hk.Python(Integrator, period="0.4 s")}
    scenario = hk.Scenario(models, {"control.error": "plant.e", "plant.f": "control.force"})
    orchestrator = hk.Jacobi() if order is None else hk.GaussSeidel(order)
    x = hk.run(hk.Composite(scenario, "0.1 s", orchestrator, "linear"), 4, engine=engine)["plant.x"].values
    state, force, integral = 1.0, 0.0, 0.0
    expected = [state]
    for _ in range(10):
        seen = -state
        for _ in range(4):
            state = force + (state - force) * math.exp(-0.1)
            expected.append(state)
        integral += 0.4 * seen
        force = 2.0 * seen + integral
    assert x == pytest.approx(expected, abs=1e-14)


class Late:
    """Shows from the end of its period on what its step made of the sample."""

    inputs = ("u",)
    outputs = ("y",)

    def __init__(self, gain):
        self.gain = gain

    def start(self, t):
        self.y = 1.0

    def output(self, t):
        return [self.y]

    def step(self, t, h, u):
        self.y = self.gain * u[0, 0] + 1.0


class AtOnce(Late):
    """Shows at its samples what it makes of them."""

    def output(self, t, u):
        return [self.gain * u[0, 0] + 1.0]


def in_a_ring(cls, gains, orchestrator, engine):
    first, second = (hk.Python(cls, period="10 ms", gain=gain) for gain in gains)
    scenario = hk.Scenario({"a": first, "b": second}, {"a.u": "b.y", "b.u": "a.y"})
    run = hk.run(hk.Composite(scenario, "10 ms", orchestrator), "50 ms", engine=engine)
    return run["a.y"].values.tolist(), run["b.y"].values.tolist()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("orchestrator", ["jacobi", "gauss-seidel", hk.GaussSeidel(["b", "a"])])
def test_two_sampled_models_that_compute_in_their_steps_are_a_period_apart(orchestrator, engine):
    """Each shows what the other had a period before: no loop."""
    a, b = in_a_ring(Late, (3.0, -2.0), orchestrator, engine)
    expected = [(1.0, 1.0)]
    for _ in range(5):
        x, y = expected[-1]
        expected.append((3.0 * y + 1.0, -2.0 * x + 1.0))
    assert list(zip(a, b, strict=True)) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_two_sampled_models_that_react_form_a_loop_at_every_sample(engine):
    """a = 3 b + 1 and b = -2 a + 1 at once: a = 4 / 7, b = -1 / 7."""
    a, b = in_a_ring(AtOnce, (3.0, -2.0), "jacobi", engine)
    assert a == pytest.approx([4 / 7] * 6, rel=1e-9)
    assert b == pytest.approx([-1 / 7] * 6, rel=1e-9)
    with pytest.raises(hk.ConvergenceError, match="no solution, or no single one") as caught:
        in_a_ring(AtOnce, (1.0, 1.0), "jacobi", engine)
    assert "let `step` of `a` compute what `output(t)` shows" in str(caught.value)
    assert "is seen a period later, and breaks the loop" in str(caught.value)


def test_an_undriven_input_of_a_level_keeps_its_start_value_from_the_start():
    inner = hk.Scenario({"gain": hk.Gain(2.0)}, {"gain.u": "u", "y": "gain.y"}, ["u = 5"], ["y"])
    run = hk.run(hk.Composite(hk.Scenario({"level": hk.Composite(inner, 1)}), 1), 2)
    assert run["level.y"].values.tolist() == [10.0, 10.0, 10.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tangent_passes_through_a_chain_of_gains_at_the_start(engine):
    models = {
        "ramp": hk.Table([0.0, 10.0], {"y": [0.0, 10.0]}),
        "first": hk.Gain(2.0),
        "second": hk.Gain(3.0),
        "sum": hk.StateSpace([[0.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"]),
    }
    wires = {"first.u": "ramp.y", "second.u": "first.y", "sum.u": "second.y"}
    run = hk.run(hk.Composite(hk.Scenario(models, wires), 0.5, extrapolation=hk.Hermite()), 2, engine=engine)
    assert run["sum.y"].values == pytest.approx(3 * run["sum.y"].t ** 2, rel=1e-13)


def test_a_stale_level_does_not_pretend_to_react():
    inner = hk.Scenario({"gain": hk.Gain(2.0)}, {"gain.u": "u", "y": "gain.y"}, ["u = 0"], ["y"])

    def feedthrough(**how):
        around = hk.Scenario({"level": hk.Composite(inner, 1, hk.Jacobi(**how))})
        return with_direct_feedthrough(around).models["level"].outputs[0].feedthrough

    assert feedthrough(outputs="consistent") == ("u",)
    assert feedthrough(outputs="stale") == ()
    assert feedthrough(inputs="delayed") == ()


def test_a_loop_of_large_values_is_solved():
    """y = 1e9 + y / 2, from a guess of zero."""
    model = hk.StateSpace([[0.0]], [[0.0]], [[1.0]], [[0.5]], [1e9], inputs=["u"], outputs=["y"])
    run = hk.run(hk.Composite(hk.Scenario({"a": model}, {"a.u": "a.y"}), 1), 1)
    assert run["a.y"].values == pytest.approx([2e9, 2e9], rel=1e-12)


class Thirds:
    """An orchestrator of a user's own: three sub-steps of a third."""

    def plan(self, scenario):
        body = (Feed("lag"), Step("lag", Fraction(1, 3)), Read("lag"))
        return Plan((Times(3, body), Record()))


def test_a_plan_may_step_by_parts():
    driven = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u = 0"], outputs=["y"])
    composite = hk.Composite(hk.Scenario({"lag": driven}), 0.1, Thirds())
    run, plain = (hk.run(composite, 1, engine=engine) for engine in ENGINES)
    assert run.info["engine"] == "native"
    assert run["lag.y"].values == pytest.approx(np.exp(-run["lag.y"].t), rel=1e-13)
    assert np.array_equal(run["lag.y"].values, plain["lag.y"].values)


class Lazy:
    """Never moves on."""

    outputs = ("y",)

    def start(self, t):
        pass

    def output(self, t):
        return 0.0

    def step(self, t, h, u):
        return t


@pytest.mark.parametrize("engine", ENGINES)
def test_a_simulator_that_stays_behind_is_noticed_late_in_time_too(engine):
    composite = hk.Composite(hk.Scenario({"lazy": hk.Python(Lazy)}), "1 ms")
    with pytest.raises(hk.SimulatorError, match="`lazy` stopped at 10000000"):
        hk.run(composite, 10**7 + 1, start=10**7, engine=engine)


def level():
    scenario = hk.Scenario(
        {"lag": LAG_AT_REST, "gain": hk.Gain(2.0)},
        {"lag.u": "u", "gain.u": "u", "y": "lag.y", "z": "gain.y"},
        ["u = 0"],
        ["y", "z"],
    )
    return hk.Composite(scenario, "0.1 s")


def test_a_level_may_be_started_at_any_time():
    simulator = open_composite(level())
    simulator.start(2.5)
    u = np.array([[1.0]])
    assert simulator.step(2.5, 0.1, u) == 2.6
    assert simulator.output(2.6, u) == pytest.approx([1 - math.exp(-0.1), 2.0])
    assert simulator.slope(2.6, u)[0] == pytest.approx(math.exp(-0.1))


def test_asking_a_level_for_outputs_changes_nothing():
    simulator = open_composite(level())
    simulator.start(0.0)
    simulator.step(0.0, 0.1, np.array([[1.0]]))
    before = simulator.save()
    assert simulator.output(0.1, np.array([[7.0]]))[1] == 14.0
    simulator.step(0.1, 0.1, np.array([[1.0]]))
    once = simulator.output(0.2, np.array([[1.0]]))
    simulator.restore(before)
    simulator.step(0.1, 0.1, np.array([[1.0]]))
    assert np.array_equal(simulator.output(0.2, np.array([[1.0]])), once)


def test_composites_can_be_pickled_and_copied():
    for again in (pickle.loads(pickle.dumps(level())), copy.deepcopy(level())):
        assert again == level()
        assert hash(again) == hash(level())


def test_every_undriven_input_is_named_at_once():
    scenario = hk.Scenario({"sum": hk.Sum("a", "b"), "gain": hk.Gain(1.0)})
    with pytest.raises(hk.ScenarioError) as caught:
        hk.run(hk.Composite(scenario, 1), 1)
    assert [fault.what for fault in caught.value.faults] == [
        "nothing drives `sum.a`",
        "nothing drives `sum.b`",
        "nothing drives `gain.u`",
    ]


class Racing:
    """An orchestrator of a user's own whose bodies feed from each other though they run together."""

    def plan(self, scenario):
        bodies = tuple((Feed(name), Step(name), Read(name)) for name in scenario.models)
        return Plan((Together(bodies), Record()))


def test_bodies_that_feed_from_each_other_may_not_run_together():
    scenario = hk.Scenario({"a": LAG_AT_REST, "b": LAG_AT_REST}, {"a.u": "b.y", "b.u": "a.y"})
    with pytest.raises(hk.ScenarioError) as caught:
        hk.run(hk.Composite(scenario, 1, Racing()), 1)
    assert [fault.what for fault in caught.value.faults] == [
        "`a` is fed from `b`, which is read in a body that runs together",
        "`b` is fed from `a`, which is read in a body that runs together",
    ]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("level.lag.u", "it is driven inside `level` already, by `gain.y`: one source per input"),
        ("level.lga.u", "did you mean `lag.u`?"),
    ],
)
def test_a_path_into_a_level_that_leads_nowhere(path, hint):
    inner = hk.Composite(hk.Scenario({"lag": LAG_AT_REST, "gain": hk.Gain(1.0)}, {"lag.u": "gain.y"}), 1)
    models = {"level": inner, "source": hk.Gain(1.0)}
    wires = {"level.gain.u": "source.y", "source.u": "level.lag.y", path: "source.y"}
    with pytest.raises(hk.ScenarioError) as caught:
        hk.run(hk.Composite(hk.Scenario(models, wires), 1), 1)
    assert caught.value.faults[0].hint == hint
