"""A level changes nothing that it is not asked to change: nested runs equal flat ones, bit for bit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import hocket
from hocket import (
    Composite,
    Function,
    Gain,
    GaussSeidel,
    Hold,
    Jacobi,
    Polynomial,
    Python,
    Scenario,
    StateSpace,
    Sum,
)
from systems import ENGINES

STEP = Fraction(1, 20)
STOP = 2
EXTRAPOLATIONS = [Hold(), Polynomial(1), Polynomial(2), Polynomial(3)]


def masses():
    """A row of three; b and c own the springs to their left, whose forces react at once, without a loop."""
    a = StateSpace(
        A=[[0, 1], [-1, -0.3]], B=[[0], [0.7]], C=np.eye(2), x0=[1, 0], inputs=["f"], outputs=["x", "v"]
    )
    b = StateSpace(
        A=[[0, 1], [-2, -0.2]],
        B=[[0, 0, 0], [1.9, 0.1, 0.8]],
        C=[[1, 0], [0, 1], [1.9, 0.1]],
        D=[[0, 0, 0], [0, 0, 0], [-1.9, -0.1, 0]],
        x0=[0.5, -0.4],
        inputs=["x1", "v1", "f"],
        outputs=["x", "v", "p"],
        method="rk4",
        step=STEP / 2,
    )
    c = StateSpace(
        A=[[0, 1], [-3, -0.4]],
        B=[[0], [1.3]],
        C=[[1, 0], [1.3, 0.1]],
        D=[[0], [-1.3]],
        x0=[-0.7, 0.3],
        inputs=["x2"],
        outputs=["x", "p"],
        method="heun",
    )
    return {"a": a, "b": b, "c": c}


A_TO_B = {"a.f": "b.p", "b.x1": "a.x", "b.v1": "a.v"}
B_TO_C = {"b.f": "c.p", "c.x2": "b.x"}
PORTS = ["a.x", "a.v", "a.f", "b.x", "b.v", "b.p", "b.x1", "b.v1", "b.f", "c.x", "c.p", "c.x2"]


def inside(path, levels):
    """`b.x` of the level `level` that holds b is `level.b.x`."""
    return next((f"{level}.{path}" for level, names in levels.items() if path[0] in names), path)


def between(connections, levels):
    return {inside(target, levels): inside(source, levels) for target, source in connections.items()}


def nest(grouped, choices):
    """The masses, some of them in a level of their own: models and connections."""
    models, levels = masses(), {"level": grouped}
    own = {t: s for t, s in (A_TO_B | B_TO_C).items() if t[0] in grouped and s[0] in grouped}
    across = {t: s for t, s in (A_TO_B | B_TO_C).items() if t not in own}
    level = Composite(Scenario({name: models[name] for name in grouped}, own), *choices)
    rest = {name: model for name, model in models.items() if name not in grouped}
    return rest | {"level": level}, between(across, levels)


def fed_alike(outputs):
    """Every port; but an input that no output reacts to (b.f) is recorded as it was last fed, and a
    consistent level feeds it again only by the way.
    """
    return [p for p in PORTS if outputs == "stale" or p != "b.f"]


def series(composite, engine, paths):
    run = hocket.run(composite, STOP, record=paths, engine=engine)
    assert run.info["engine"] == engine
    assert all(len(run[path].t) == STOP / STEP + 1 for path in paths)
    return [run[path].values for path in paths]


def assert_same_bits(flat, nested, grouped, engine, ports=PORTS):
    levels = {"level": grouped}
    ours, theirs = series(flat, engine, ports), series(nested, engine, [inside(p, levels) for p in ports])
    for port, x, y in zip(ports, ours, theirs, strict=True):
        assert np.array_equal(x, y), port
        assert np.ptp(x) > 0.01, port


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
@pytest.mark.parametrize("outputs", ["stale", "consistent"])
@pytest.mark.parametrize("start", ["window", "cold"])
@pytest.mark.parametrize("grouped", ["bc", "ab", "ac"])
def test_jacobi_in_jacobi_with_one_step_is_flat_jacobi(grouped, start, outputs, extrapolation, engine):
    choices = (STEP, Jacobi(outputs=outputs), extrapolation, start)
    flat = Composite(Scenario(masses(), A_TO_B | B_TO_C), *choices)
    nested = Composite(Scenario(*nest(grouped, choices)), *choices)
    assert_same_bits(flat, nested, grouped, engine, fed_alike(outputs))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
@pytest.mark.parametrize("outputs", ["stale", "consistent"])
@pytest.mark.parametrize("first", ["a", "level"])
def test_a_level_in_a_sequence_is_a_group_in_it(first, outputs, extrapolation, engine):
    """GaussSeidel(["a", ["b", "c"]]) equals a level of b and c, Jacobi inside, after a."""
    group = ["a", ["b", "c"]] if first == "a" else [["b", "c"], "a"]
    sequence = ["a", "level"] if first == "a" else ["level", "a"]
    flat = Composite(
        Scenario(masses(), A_TO_B | B_TO_C), STEP, GaussSeidel(group, outputs=outputs), extrapolation
    )
    nested = Composite(
        Scenario(*nest("bc", (STEP, Jacobi(outputs=outputs), extrapolation))),
        STEP,
        GaussSeidel(sequence, outputs=outputs),
        extrapolation,
    )
    assert_same_bits(flat, nested, "bc", engine, fed_alike(outputs))


def one_after_the_other(*names):
    return GaussSeidel(names, outputs="stale")


def all_at_once(*names):
    return Jacobi(outputs="stale")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
@pytest.mark.parametrize("orchestrator", [all_at_once, one_after_the_other])
@pytest.mark.parametrize("inner_step", [STEP, STEP / 2], ids=["same step", "its own micro step"])
def test_a_level_with_one_child_is_the_child(inner_step, orchestrator, extrapolation, engine):
    """Bit for bit; two inner steps under a curve move its origin twice, which rounds differently."""
    a, b, c = masses().values()
    level = Composite(Scenario({"b": b}), inner_step, orchestrator("b"), extrapolation)
    flat, nested = (
        Composite(
            Scenario({"a": a, name: child, "c": c}, connections),
            STEP,
            orchestrator("a", name, "c"),
            extrapolation,
            "cold",
        )
        for name, child, connections in (
            ("b", b, A_TO_B | B_TO_C),
            ("level", level, between(A_TO_B | B_TO_C, {"level": "b"})),
        )
    )
    run = hocket.run(nested, STOP, record=[inside(p, {"level": "b"}) for p in PORTS], engine=engine)
    stride = int(STEP / inner_step)
    for port, x in zip(PORTS, series(flat, engine, PORTS), strict=True):
        y = run[inside(port, {"level": "b"})].values
        y = y[::stride] if port[0] == "b" else y
        if inner_step == STEP or extrapolation.degree == 0:
            assert np.array_equal(x, y), port
        else:
            assert y == pytest.approx(x, rel=0, abs=1e-13), port


@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
def test_paths_that_reach_inside_equal_ports_made_by_hand(extrapolation):
    models = masses()
    axle = {
        "by path": Composite(
            Scenario({"b": models["b"], "c": models["c"]}, B_TO_C), STEP / 2, Jacobi(), extrapolation
        ),
        "by hand": Composite(
            Scenario(
                {"b": models["b"], "c": models["c"]},
                B_TO_C | {"b.x1": "position", "b.v1": "speed", "pull": "b.p"},
                inputs=["position", "speed"],
                outputs=["pull"],
            ),
            STEP / 2,
            Jacobi(),
            extrapolation,
        ),
    }
    connections = {
        "by path": {"a.f": "axle.b.p", "axle.b.x1": "a.x", "axle.b.v1": "a.v"},
        "by hand": {"a.f": "axle.pull", "axle.position": "a.x", "axle.speed": "a.v"},
    }
    runs = [
        hocket.run(
            Composite(Scenario({"a": models["a"], "axle": axle[way]}, connections[way]), STEP, Jacobi()), STOP
        )
        for way in ("by path", "by hand")
    ]
    shared = ["a.x", "a.v", "axle.b.x", "axle.b.v", "axle.b.p", "axle.c.x", "axle.c.p"]
    assert set(runs[0].ports) == set(shared)
    for port in shared:
        assert np.array_equal(runs[0][port].values, runs[1][port].values), port
        assert np.ptp(runs[0][port].values) > 0.01


def test_a_path_may_reach_through_two_levels():
    """inner.wheel.y is a constant: what arrives, through two units, is known exactly."""
    wheel = StateSpace(A=[[0]], C=[[1]], x0=[4096.0], outputs=["y [mm]"])
    axle = Composite(Scenario({"wheel": wheel}), "5 ms")
    car = Composite(Scenario({"axle": axle}), "10 ms")
    meter = StateSpace(D=[[2.0]], inputs=["u [m]"], outputs=["y [m]"])
    scenario = Scenario({"car": car, "meter": meter}, {"meter.u": "car.axle.wheel.y"})
    run = hocket.run(Composite(scenario, "20 ms"), "100 ms", record=["meter.y", "car.axle.wheel.y"])
    assert run["meter.y"].values.tolist() == [8.192] * 6
    assert run["car.axle.wheel.y"].values.tolist() == [4096.0] * 21


class Delayed:
    """A controller that computes during its period: its output comes one period after its input."""

    inputs = ("measured",)
    outputs = ("y",)

    def __init__(self, calls):
        self.calls = calls

    def start(self, t):
        self.y = -1.0

    def output(self, t):
        return self.y

    def step(self, t, h, u):
        self.calls.append((t, h, u.tolist()))
        self.y = 10.0 * u[0, 0]


class Prompt(Delayed):
    """A controller that answers at once, at its sampling times."""

    def output(self, t, u):
        return 10.0 * u[0, 0]


def milliseconds(t):
    return round(1000 * t, 9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
@pytest.mark.parametrize("controller", [Delayed, Prompt])
def test_a_controller_with_a_period_is_sampled(controller, extrapolation, engine):
    """Measured is the time in milliseconds; rows come every 2 ms, the controller acts every 10 ms."""
    calls = []
    models = {
        "clock": Function(milliseconds, ["ms"]),
        "controller": Python(controller, period="10 ms", calls=calls),
    }
    composite = Composite(
        Scenario(models, {"controller.measured": "clock.ms"}), "2 ms", Jacobi(), extrapolation
    )
    run = hocket.run(composite, "40 ms", engine=engine)
    assert run["clock.ms"].values.tolist() == [2.0 * k for k in range(21)]
    if controller is Delayed:
        expected = [-1.0] * 5 + [0.0] * 5 + [100.0] * 5 + [200.0] * 5 + [300.0]
    else:
        expected = [0.0] * 5 + [100.0] * 5 + [200.0] * 5 + [300.0] * 5 + [400.0]
    assert run["controller.y"].values.tolist() == expected
    sampled = [0.0, 10.0, 20.0, 30.0]
    assert calls == [(u / 1000, 0.01, [[u]]) for u in sampled]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sampled_controller_in_a_loop_follows_the_difference_equation(engine):
    """x' = u is held over a period: x_n+1 = x_n + T y_n and y_n+1 = 10 x_n, known in whole numbers."""
    plant = StateSpace(A=[[0]], B=[[1]], C=[[1]], x0=[1], inputs=["u"], outputs=["x"])
    models = {"plant": plant, "controller": Python(Delayed, period=4, calls=[])}
    connections = {"plant.u": "controller.y", "controller.measured": "plant.x"}
    run = hocket.run(Composite(Scenario(models, connections), 1, Jacobi()), 12, engine=engine)
    x, y, xs, ys = 1.0, -1.0, [], []
    for _ in range(3):
        xs += [x + k * y for k in range(4)]
        ys += [y] * 4
        x, y = x + 4 * y, 10.0 * x
    assert run["plant.x"].values.tolist() == [*xs, x]
    assert run["controller.y"].values.tolist() == [*ys, y]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        ("km/h", "m/s", 36.0, 10.0),
        ("m/s", "km/h", 10.0, 36.0),
        ("degC", "K", 20.0, 293.15),
        ("K", "degC", 293.15, 20.0),
        ("degF", "degC", 212.0, 100.0),
        ("mm", "m", 250.0, 0.25),
        ("deg", "rad", 180.0, np.pi),
        ("rpm", "rad/s", 60.0, 2 * np.pi),
    ],
)
def test_units_are_converted_on_the_way(source, target, value, expected, engine):
    giving = StateSpace(A=[[0]], C=[[1]], x0=[value], outputs=[f"y [{source}]"])
    taking = StateSpace(D=[[3.0]], inputs=[f"u [{target}]"], outputs=[f"y [{target}]"])
    scenario = Scenario({"giving": giving, "taking": taking}, {"taking.u": "giving.y"})
    run = hocket.run(Composite(scenario, 1), 2, record=["*", "taking.u"], engine=engine)
    assert run["giving.y"].values.tolist() == [value] * 3
    assert run["taking.u"].values == pytest.approx(expected, rel=1e-15, abs=0)
    assert run["taking.y"].values == pytest.approx(3 * expected, rel=1e-15, abs=0)
    assert (run["giving.y"].unit, run["taking.u"].unit) == (source, target)


@pytest.mark.parametrize("engine", ENGINES)
def test_slopes_are_converted_without_the_offset(engine):
    """1 degC/s is 1 K/s: a ramp stays a ramp, 273.15 higher, between the samples too."""
    oven = StateSpace(A=[[0, 1], [0, 0]], C=[[1, 0]], x0=[20, 2], outputs=["T [degC]"])
    store = StateSpace(A=[[0]], B=[[1]], C=[[1]], inputs=["T [K]"], outputs=["integral"])
    scenario = Scenario({"oven": oven, "store": store}, {"store.T": "oven.T"})
    run = hocket.run(Composite(scenario, 0.5, Jacobi(), "linear"), 4, engine=engine)
    t, integral = run["store.integral"]
    assert integral == pytest.approx(293.15 * t + t**2, rel=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_and_gains_do_what_they_say(engine):
    models = {
        "time": Function(lambda t: t, ["t"]),
        "square": Function(lambda t: t * t, ["t2"]),
        "twice": Gain(2.0),
        "total": Sum("a", "b", "c"),
        "weighted": Sum("a", "b", gains=[0.5, -4.0]),
    }
    connections = {
        "twice.u": "time.t",
        "total.a": "twice.y",
        "total.b": "time.t",
        "total.c": "square.t2",
        "weighted.a": "total.y",
        "weighted.b": "twice.y",
    }
    run = hocket.run(Composite(Scenario(models, connections), 0.25), 2, engine=engine)
    t = np.arange(9) / 4
    assert np.array_equal(run["twice.y"].values, 2 * t)
    assert np.array_equal(run["total.y"].values, 3 * t + t**2)
    assert np.array_equal(run["weighted.y"].values, 0.5 * (3 * t + t**2) - 8 * t)
