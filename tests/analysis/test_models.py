"""Every simulator gets a linear stand-in where it stands, and the plan stays the same."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.analysis import linearisation
from hocket.analysis.linear_models import IdentifiedModel
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import LinearisationPoint, linearise
from hocket.analysis.pulse_responses import BlackBoxBench, OperatingPoint
from hocket.errors import ScenarioError
from hocket.planning.planner import plan_tree
from systems import spectral_radius

DAMPING, GRAVITY = 0.1, 9.81


def rate(t, x, u):
    return [x[1], -GRAVITY * math.sin(x[0]) - DAMPING * x[1] + u[0]]


def jacobian(t, x, u):
    return [[0.0, 1.0], [-GRAVITY * math.cos(x[0]), -DAMPING]]


def pendulum(x0=(0.0, 0.0), **options):
    return hk.Ode(rate, x0=x0, inputs=["torque = 0"], outputs=["angle", "speed"], **options)


def alone(model, h=0.1):
    return hk.Composite(hk.Scenario({"it": model}), h)


def made(composite, **options):
    return linearise(composite, **options).composite.scenario.models["it"]


def sorted_eigenvalues(matrix):
    return np.sort_complex(np.linalg.eigvals(matrix))


@pytest.mark.parametrize("given", [None, jacobian])
@pytest.mark.parametrize("method", ["rk4", "adaptive", "cvode"])
def test_a_pendulum_at_rest_has_the_textbook_eigenvalues(method, given):
    found = linearise(alone(pendulum(method=method, jacobian=given)))
    tangent = found.composite.scenario.models["it"]
    textbook = np.sort_complex(np.roots([1.0, DAMPING, GRAVITY]))
    assert sorted_eigenvalues(tangent.A) == pytest.approx(textbook, abs=1e-9)
    assert np.array(tangent.B) == pytest.approx(np.array([[0.0], [1.0]]), abs=1e-9)
    (leaf,) = found.leaves
    assert (leaf.how, leaf.states, leaf.notes) == ("jacobian", 2, ())
    assert 0.0 < leaf.fit < 1e-5


def test_a_pendulum_upright_falls():
    tangent = made(alone(pendulum()), at={"it": LinearisationPoint(x=[math.pi, 0.0])})
    textbook = np.sort_complex(np.roots([1.0, DAMPING, -GRAVITY]))
    assert sorted_eigenvalues(tangent.A) == pytest.approx(textbook, abs=1e-8)


@pytest.mark.parametrize("method", ["euler", "implicit-euler", "heun", "rk4", "trapezoid", "ab2"])
def test_the_method_and_its_step_are_kept(method):
    """What is integrated by Euler is judged as Euler: the same reading as the StateSpace with that method."""
    A, B = [[0.0, 1.0], [-4.0, -0.5]], [[0.0], [1.0]]
    models = [
        hk.Ode(
            lambda t, x, u: np.array(A) @ x + np.array(B) @ u,
            x0=[1.0, 0.0],
            inputs=["u = 0"],
            outputs=["x", "v"],
            method=method,
            step="50 ms",
        ),
        hk.StateSpace(A, B, np.eye(2), (), [1.0, 0.0], ["u = 0"], ["x", "v"], method, "50 ms"),
    ]
    lag = hk.StateSpace(A=[[-1.0]], B=[[-3.0]], C=[[1.0]], inputs=["u"], outputs=["y"])
    wires = {"it.u": "lag.y", "lag.u": "it.x"}
    readings = [
        read_linear(linearise(hk.Composite(hk.Scenario({"it": m, "lag": lag}, wires), 0.1)).composite)
        for m in models
    ]
    assert readings[0].Phi == pytest.approx(readings[1].Phi, abs=1e-8)
    assert readings[0].z == pytest.approx(readings[1].z, abs=1e-8)


def test_adaptive_methods_are_taken_as_exact():
    tangent = made(alone(pendulum(method="adaptive", step="10 ms")))
    assert (tangent.method, tangent.step) == ("exact", None)


@pytest.mark.parametrize("mu", [0.7, -1.5])
@pytest.mark.parametrize(("version", "method"), [(2, "rk4"), (3, "rk4"), (2, "adaptive"), (2, "cvode")])
def test_the_jacobian_of_van_der_pol_at_zero(tmp_path, version, method, mu):
    path = build("vanderpol", version, folder=tmp_path)
    model = hk.Fmu(path, interface="model-exchange", method=method, mu=mu, x0=0.0)
    found = linearise(alone(model))
    tangent = found.composite.scenario.models["it"]
    assert np.array_equal(tangent.A, [[0.0, 1.0], [-1.0, mu]])
    assert tangent.method == ("rk4" if method == "rk4" else "exact")
    assert found.leaves[0].how == "jacobian"


def test_the_masses_as_model_exchange_fmus(tmp_path):
    """Without directional derivatives, by differences; coupled as their matrices are."""
    wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    fmus = {
        name: hk.Fmu(build(name, 2, folder=tmp_path), interface="model-exchange", method="rk4")
        for name in ("first", "second")
    }
    exact = {
        "first": hk.StateSpace(
            A=[[0, 1], [-0.2, -0.3]],
            B=[[0, 0], [0.1, 0.2]],
            C=[[1, 2]],
            D=[[-1, -2]],
            x0=[0.1, 0.1],
            inputs=["x", "v"],
            outputs=["force"],
            method="rk4",
        ),
        "second": hk.StateSpace(
            A=[[0, 1], [-0.1, -0.2]],
            B=[[0], [0.1]],
            C=np.eye(2),
            x0=[0.2, 0.1],
            inputs=["force"],
            outputs=["x", "v"],
            method="rk4",
        ),
    }
    composites = [hk.Composite(hk.Scenario(models, wires), 1.0) for models in (fmus, exact)]
    readings = [read_linear(linearise(composite).composite) for composite in composites]
    assert spectral_radius(readings[0].core) == pytest.approx(spectral_radius(readings[1].core), abs=1e-8)
    assert readings[0].z == pytest.approx(readings[1].z, abs=1e-8)


def test_a_ball_that_hocket_integrates_is_refused_too(tmp_path):
    ball = hk.Fmu(build("ball", 2, folder=tmp_path), interface="model-exchange", method="rk4")
    (leaf,) = linearise(alone(ball, "10 ms")).leaves
    # its steps end at the bounce since FMUs take part in instants: 1 m fall in sqrt(2 / 9.81) s
    assert leaf.refused == "it stopped inside a step, at 0.451523641 s: it has events"


def test_what_is_not_smooth_is_refused():
    dry = hk.Ode(lambda t, x, u: [x[1], -math.copysign(1.0, x[1])], x0=[0.0, 0.0])
    (leaf,) = linearise(alone(dry)).leaves
    assert (
        leaf.refused
        == "the residual of its Jacobian is 100 % at changes of 0.001: it is not smooth at this point"
    )


def test_a_point_that_is_no_equilibrium_is_reported_and_kept():
    """The tangent moves on from there: its first step is that of the model, to second order in h."""
    model = pendulum((1.0, 0.0), method="adaptive", rtol=1e-10)
    composite = alone(model, "1 ms")
    found = linearise(composite)
    slope = -GRAVITY * math.sin(1.0)
    assert found.leaves[0].notes == (f"not an equilibrium: x2 moves by {slope:.3g} per second",)
    run, other = hk.run(composite, 0.01), hk.run(found.composite, 0.01)
    assert other.final("it.speed") == pytest.approx(run.final("it.speed"), rel=1e-5)


def test_what_depends_on_time_is_frozen():
    forced = hk.Ode(lambda t, x, u: [math.cos(t) - x[0]], x0=[1.0])
    (leaf,) = linearise(alone(forced)).leaves
    assert leaf.notes == ("explicitly time-dependent: linearised at 0 s",)
    assert leaf.depends_on_time


@pytest.mark.parametrize("force", [lambda t: t % 1.0, lambda t: t % 0.25, lambda t: float(t > 5.0)])
def test_dependence_on_time_is_found_where_a_second_later_all_is_as_before(force):
    (leaf,) = linearise(alone(hk.Ode(lambda t, x, u: [force(t) - x[0]], x0=[1.0]))).leaves
    assert leaf.depends_on_time


def mixed():
    """Two levels, a source, a sampled class, an Ode, a linear model."""

    class Controller:
        inputs = ("angle", "wanted")
        outputs = ("torque",)
        feedthrough = {}  # noqa: RUF012
        input_degree = 0

        def start(self, t):
            self.torque = 0.0

        def output(self, t, u):
            return [self.torque]

        def step(self, t, h, u):
            self.torque = 0.5 * self.torque - 2.0 * (u[0, 0] - u[0, 1])

    lag = hk.StateSpace(A=[[-5.0]], B=[[5.0]], C=[[1.0]], inputs=["u"], outputs=["y"])
    inside = hk.Scenario(
        {"pendulum": pendulum(), "lag": lag},
        {"lag.u": "torque", "pendulum.torque": "lag.y", "angle": "pendulum.angle"},
        inputs=["torque"],
        outputs=["angle"],
    )
    plant = hk.Composite(inside, "50 ms", "gauss-seidel")
    models = {
        "plant": plant,
        "controller": hk.Python(Controller, period="200 ms"),
        "wanted": hk.Function(lambda t: 0.1 + t, ["y"]),
    }
    wires = {
        "controller.angle": "plant.angle",
        "controller.wanted": "wanted.y",
        "plant.torque": "controller.torque",
    }
    return hk.Composite(hk.Scenario(models, wires), "100 ms")


def test_all_levels_are_replaced_and_the_plan_stays():
    composite = mixed()
    found = linearise(composite)
    assert str(plan_tree(found.composite).plan) == str(plan_tree(composite).plan)
    assert {leaf.path: leaf.how for leaf in found.leaves} == {
        "wanted": "constant",
        "plant.pendulum": "jacobian",
        "plant.lag": "exact",
        "controller.sampled": "identified",
    }
    reading = read_linear(found.composite)
    assert reading.z[reading.newest["wanted.y"]] == 0.1
    assert reading.period == Fraction(1, 5)


def test_a_linear_scenario_runs_as_before_in_its_stand_ins():
    """All is linear in the small here, but for the pendulum: it is hardly moved."""
    composite = mixed()
    frozen = linearise(composite).composite
    still = composite.scenario.with_models(
        {**composite.scenario.models, "wanted": hk.Function(lambda t: 1e-4, ["y"])}
    )
    run = hk.run(composite.with_scenario(still), 5)
    scaled = hk.run(frozen, 5)
    assert scaled["plant.angle"].values / 0.1 == pytest.approx(run["plant.angle"].values / 1e-4, abs=1e-5)


def test_a_later_time_is_another_operating_point():
    """x' = -x^2 from 1 is 1 / (1 + t), its tangent there has the slope -2 / (1 + t)."""
    model = hk.Ode(lambda t, x, u: -(x**2), x0=[1.0], method="adaptive", rtol=1e-12, atol=1e-14)
    tangent = made(alone(model), at=3)
    assert tangent.x0[0] == pytest.approx(0.25, abs=1e-9)
    assert tangent.A[0, 0] == pytest.approx(-0.5, abs=1e-8)


def test_one_that_cannot_rewind_is_tried_at_its_start_only():
    class Lag:
        inputs = ("u = 0",)
        outputs = ("y",)
        feedthrough = {}  # noqa: RUF012
        input_degree = 0

        def start(self, t):
            self.y = 1.0

        def output(self, t, u):
            return [self.y]

        def step(self, t, h, u):
            self.y = 0.5 * self.y + u[0, 0]

    class Rewinding(Lag):
        def save(self):
            return self.y

        def restore(self, state):
            self.y = state

    (leaf,) = linearise(alone(hk.Python(Lag)), at=1).leaves
    assert leaf.refused == "it cannot roll back, so it can be tried at its start only"
    stand_in = made(alone(hk.Python(Rewinding)), at=1)
    live = stand_in.open()
    live.start(0.0)
    assert live.output(0.0, np.zeros((1, 1)))[0] == pytest.approx(0.5**10, rel=1e-9)


def test_what_cannot_be_judged_but_drives_only_may_stand_still():
    class Steps:
        outputs = ("y",)

        def start(self, t):
            """Keep nothing."""

        def output(self, t):
            return [math.floor(math.sqrt(1.0 + t))]

        def step(self, t, h, u):
            """Keep nothing."""

    composite = alone(hk.Python(Steps))
    assert linearise(composite).leaves[0].how == "refused"
    found = linearise(composite, still=True)
    assert found.leaves[0].how == "constant"
    assert found.leaves[0].notes[-1] == "no inputs: no coupling depends on it"
    assert read_linear(found.composite).z == pytest.approx([1.0])


def test_a_linear_scenario_is_left_alone():
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], inputs=["u = 0"], outputs=["y"])
    found = linearise(alone(lag))
    assert found.composite.scenario.models["it"] is lag
    assert (found.fit, found.leaves[0].how) == (0.0, "exact")


def test_the_report_is_a_table_and_a_picture(tmp_path):
    ball = hk.Fmu(build("ball", 2, folder=tmp_path))
    found = linearise(hk.Composite(hk.Scenario({"ball": ball, "pendulum": pendulum()}), 0.1))
    rows = found.rows()
    assert [(row["simulator"], row["linear model"]) for row in rows] == [
        ("ball", "refused"),
        ("pendulum", "jacobian"),
    ]
    assert [leaf.states for leaf in found.leaves] == [0, 2]
    assert math.isnan(found.fit)
    figure = found.plot(tmp_path / "fits.png")
    assert (tmp_path / "fits.png").stat().st_size > 1000
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["ball (refused)", "pendulum (jacobian)"]


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"pendlum": LinearisationPoint()}, "there is no simulator `pendlum`"),
        ({"pendulum": LinearisationPoint(x=[1.0])}, "the point does not fit the Ode"),
        ({"lag": LinearisationPoint()}, "`lag` is not an Ode"),
        (0.25, "is not a whole number of steps"),
        ("never", "never"),
    ],
)
def test_points_and_times_that_do_not_fit_are_refused(at, message):
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], inputs=["u = 0"], outputs=["y"])
    with pytest.raises(ScenarioError, match=message):
        linearise(hk.Composite(hk.Scenario({"pendulum": pendulum(), "lag": lag}), 0.1), at)


def test_what_stands_still_says_since_when():
    """A black box without inputs that is not linear: after three steps of a tenth it is looked at."""

    class Chirp:
        outputs = ("y",)

        def start(self, t):
            self.t = t

        def output(self, t):
            return [math.sin(30.0 * t * t)]

        def step(self, t, h, u):
            self.t = t + h

    composite = hk.Composite(hk.Scenario({"chirp": hk.Python(Chirp)}), "0.1 s")
    (leaf,) = linearise(composite, "0.3 s", still=True, start="2 s").leaves
    assert leaf.notes[0].startswith("as it is at 2.3 s: ")


def test_a_constant_output_does_not_answer_to_inputs(monkeypatch):
    """Of an FMU whose output has no slopes: 5 with and without a push is silent, 5 and 5.1 is not."""
    ports = [hk.Port("u"), hk.Port("v")]
    model = SimpleNamespace(inputs=ports, outputs=ports[:1], capabilities=hk.Capabilities())
    place = SimpleNamespace(started=False, u=np.zeros(2))

    class Bench:
        answer = 0.0

        def __init__(self, place):
            self.still = np.zeros((1, 2))

        def run(self, pushes):
            return np.array([[5.0 + self.answer * float(push.sum())] for push in pushes])

        def restore_simulator(self):
            pass

    monkeypatch.setattr(linearisation, "BlackBoxBench", Bench)
    assert not linearisation._silent_outputs_move(model, place, np.zeros((1, 2)))
    assert not linearisation._silent_outputs_move(model, place, np.ones((1, 2)))  # not silent: slopes tell
    Bench.answer = 1.0
    assert linearisation._silent_outputs_move(model, place, np.zeros((1, 2)))
    # where slopes tell, where there is nothing to push, and where it could not go back, nothing is tried
    assert not linearisation._silent_outputs_move(model, place, np.ones((1, 2)))
    place.started = True
    assert not model.capabilities.rollback
    assert not linearisation._silent_outputs_move(model, place, np.zeros((1, 2)))
    place.started, model.inputs = False, []
    assert not linearisation._silent_outputs_move(model, place, np.zeros((1, 2)))


def test_the_tangent_is_taken_at_the_inputs_of_that_time():
    """x' = u^2 under u = t, at 0.3 s after three steps: the slope is 2 u = 0.6."""
    square = hk.Ode(lambda t, x, u: [u[0] ** 2], x0=[0.0], inputs=["u"], outputs=["x"])
    ramp = hk.Function(lambda t: t, ["r"])
    composite = hk.Composite(hk.Scenario({"square": square, "ramp": ramp}, {"square.u": "ramp.r"}), "0.1 s")
    made = dict(linearise(composite, "0.3 s", still=True).made.scenario.models)["square"]
    assert (made.A[0, 0], made.B[0, 0]) == pytest.approx((0.0, 0.6), abs=1e-6)


@pytest.mark.parametrize(
    ("h", "start"), [("0.1", "window"), ("0.05", "window"), ("0.2", "cold"), ("0.15", "cold")]
)
def test_a_past_is_told_where_identified_steps_divide_those_of_the_level(h, start, monkeypatch):
    """A level of 0.1 s: an identified model of 0.05 s can make its steps, one of 0.2 or 0.15 s cannot."""
    composite = hk.Composite(
        hk.Scenario({"a": hk.StateSpace([[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])}), "0.1 s"
    )
    model = object.__new__(IdentifiedModel)
    object.__setattr__(model, "h", Fraction(h))
    monkeypatch.setattr(linearisation, "window_degree", lambda level: 2)
    made = linearisation._with_fitting_start(composite, {"a": model}, plan_tree(composite))
    assert made.start == start


def test_benches_on_one_simulator_each_begin_where_they_stand():
    """x' = -x from 1: one bench at the start, one two steps of 0.1 s later, used in turn."""
    model = hk.StateSpace([[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])
    simulator = model.open()
    simulator.start(0.0)
    place = OperatingPoint(model, simulator, Fraction(0), Fraction(1, 10), np.zeros(0), 1, False, False)
    first, second = BlackBoxBench(place), BlackBoxBench(place, later=2)
    for _ in range(2):
        for bench, begin in ((first, 0.0), (second, 0.2)):
            rows = bench.run([bench.still] * 3)
            assert rows[:, 0] == pytest.approx(np.exp(-begin - 0.1 * np.arange(4)), abs=1e-12)
