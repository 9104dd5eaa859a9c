"""Combinations of passes, and wrong equations, as a new user would meet them."""

import math
import pickle

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.planning.compiler.accuracy import Accuracy, accepted_steps
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.compiler.modularity import Modularity
from systems import ENGINES

RATES = {"a.x": "a.v", "b.x": "b.v"}
ROD = {"rod": {"equations": ["a.x = b.x", "a.F + b.F = 0"], "rates": RATES}}


def mass(m: float, c: float, d: float, x: float = 1.0) -> hk.StateSpace:
    """A mass on a spring and a damper, with two forces."""
    return hk.StateSpace(
        [[0, 1], [-c / m, -d / m]],
        [[0, 0], [1 / m, 1 / m]],
        np.eye(2),
        x0=[x, 0.0],
        inputs=["F [N] = 0", "G [N] = 0"],
        outputs=["x [m]", "v [m/s]"],
    )


def exact(A: list[list[float]], x0: list[float], t: np.ndarray) -> np.ndarray:
    return np.array([expm(np.array(A) * each) @ x0 for each in t])


def spring_beside_a_rod(hosts: dict[str, list[str]] | None = None) -> hk.Composite:
    """1 kg and 3 kg joined by a rod, a spring of 1 N/m from them to a mass of 1 kg."""
    spring = hk.StateSpace(D=[[-1, 1], [1, -1]], inputs=["p [m]", "q [m]"], outputs=["Fp [N]", "Fq [N]"])
    models = {"a": mass(1, 1, 0.2), "b": mass(3, 2, 0.2), "s": spring, "c": mass(1, 1, 0.3, 0.0)}
    wires = {"b.G": "s.Fp", "s.p": "b.x", "s.q": "c.x", "c.G": "s.Fq"}
    return hk.Composite(hk.Scenario(models, wires, constraints=ROD, hosts=hosts), "50 ms")


TOGETHER = [[0, 1, 0, 0], [-1, -0.1, 0.25, 0], [0, 0, 0, 1], [1, 0, -2, -0.3]]
"""The joined mass of 4 kg and the other one, as one system."""


def test_what_was_compiled_can_be_pickled():
    made = compile_level(
        hk.Composite(hk.Scenario({"a": mass(1, 1, 0.2), "b": mass(3, 2, 0.2)}, constraints=ROD), 0.1)
    )
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("given", "passes", "told"),
    [
        ("car.toml", None, "is not a level"),
        (spring_beside_a_rod().scenario, None, "is not a level"),
        (spring_beside_a_rod(), ["modularity"], "is not a pass"),
        (spring_beside_a_rod(), [Modularity], "is not a pass"),
        (spring_beside_a_rod(), Modularity(), "one pass, and no list"),
    ],
)
def test_what_cannot_be_compiled_by_its_kind(given, passes, told):
    with pytest.raises(hk.HocketError, match=told):
        compile_level(given, passes)


def test_an_equation_inside_a_level_and_one_that_reaches_into_it():
    inner = hk.Scenario({"a": mass(1, 1, 0.2), "b": mass(3, 2, 0.2)}, constraints=ROD)
    outer = {
        "equations": ["level.b.x = c.x", "level.b.G + c.F = 0"],
        "rates": {"level.b.x": "level.b.v", "c.x": "c.v"},
    }
    models = {"level": hk.Composite(inner, "50 ms"), "c": mass(2, 1, 0.1)}
    run = hk.run(hk.Composite(hk.Scenario(models, constraints={"joint": outer}), "50 ms"), 5)
    whole = exact([[0, 1], [-4 / 6, -0.5 / 6]], [1.0, 0.0], 0.05 * np.arange(101))
    assert np.max(np.abs(np.asarray(run["level.a.x"]) - whole[:, 0])) < 1e-5
    assert np.max(np.abs(run["joint.gap1"])) < 1e-5


@pytest.mark.parametrize("rates", [{"a.x": "b.v", "b.x": "a.v"}, {"a.x": "a.v", "b.x": "a.v"}])
def test_rates_of_another_simulator_are_found_out(rates):
    wrong = {"rod": {**ROD["rod"], "rates": rates}}
    scenario = hk.Scenario({"a": mass(1, 1, 0.2), "b": mass(3, 2, 0.2)}, constraints=wrong)
    with pytest.raises(hk.HocketError, match=r"`a.v` is not the rate of `b.x`: `a.F` acts on `a.v`, not on"):
        hk.run(hk.Composite(scenario, 0.1), 1)


def test_an_equation_without_a_value_at_the_start():
    equations = {"rod": {"equations": ["sqrt(a.x - 5) = sqrt(b.x - 5)", "a.F + b.F = 0"], "rates": RATES}}
    scenario = hk.Scenario({"a": mass(1, 1, 0.2), "b": mass(3, 2, 0.2)}, constraints=equations)
    with pytest.raises(
        hk.HocketError, match=r"has no value at the start: left - right is nan, with `a.x` = 1"
    ):
        hk.run(hk.Composite(scenario, 0.1), 1)


class Sled:
    """1 kg, pushed; its output is one number, no list."""

    inputs = ("F [N] = 0",)
    outputs = ("x [m]",)
    feedthrough = {}  # noqa: RUF012

    def start(self, t):
        self.x, self.v = 1.0, 0.0

    def output(self, t):
        return self.x

    def step(self, t, h, u):
        self.x, self.v = self.x + h * self.v + 0.5 * h * h * u[0, 0], self.v + h * u[0, 0]

    def save(self):
        return self.x, self.v

    def restore(self, state):
        self.x, self.v = state


def test_a_black_box_is_led_along_a_function_of_time():
    models = {"sled": hk.Python(Sled), "way": hk.Function(math.cos, ["x [m]"])}
    led = {"guide": {"equations": ["sled.x = way.x"], "determines": ["sled.F"]}}
    run = hk.run(hk.Composite(hk.Scenario(models, constraints=led), "50 ms"), 5)
    assert np.max(np.abs(np.asarray(run["sled.x"]) - np.cos(0.05 * np.arange(101)))) < 2e-5
    middle = -np.cos(0.05 * np.arange(100) + 0.025)
    assert np.max(np.abs(np.asarray(run["guide.sled.F"])[2:] - middle[1:])) < 0.01


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (["a.*", "c.x"], {"c.x", "rod_level.a.x", "rod_level.a.v"}),
        (["a.F"], {"rod_level.a.F"}),
        ("rod.gap1", {"rod_level.rod.gap1"}),
        (["rod_level.b.x"], {"rod_level.b.x"}),
    ],
)
def test_what_a_run_records_may_have_the_names_that_were_written(record, kept):
    assert set(hk.run(spring_beside_a_rod(), "0.1 s", record=record)) == kept


def test_steps_are_controlled_by_what_moves_not_by_what_couplers_find():
    errors = []
    for tolerance in (1e-3, 1e-4):
        wanted = [Modularity(), Accuracy(stop=1, tolerance=tolerance)]
        found = accepted_steps(hk.run(compile_level(spring_beside_a_rod(), wanted).level, 450))
        assert found.finished
        whole = exact(TOGETHER, [1.0, 0.0, 0.0, 0.0], found.t)
        errors.append(np.max(np.abs(found.values["c.x"] - whole[:, 2])))
    assert errors[0] < 1e-2
    assert 2 < errors[0] / errors[1] < 5  # the root of ten: first order, tolerance per step


def test_equations_hosts_and_controlled_steps_together():
    wanted = [Modularity(), Distribution("5 ms"), Accuracy(stop=0.5, tolerance=1e-3)]
    made = compile_level(spring_beside_a_rod({"one": ["a", "b", "s"], "two": ["c"]}), wanted)
    native, plain = (hk.run(made.level, 90, engine=engine) for engine in ENGINES)
    found = accepted_steps(native)
    assert found.finished
    whole = exact(TOGETHER, [1.0, 0.0, 0.0, 0.0], found.t)
    assert np.max(np.abs(found.values["two.c.x"] - whole[:, 2])) < 3e-3
    assert all(np.array_equal(np.asarray(native[path]), np.asarray(plain[path])) for path in native)
