"""Parameters set by path, in whatever model has them."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.planning.parameters import leaves, split_parameter_path, with_parameters
from hocket.simulators.fmu.recipe import remake_fmu
from systems import three_masses

pytestmark = pytest.mark.usefixtures("fresh_cache")


@dataclass(frozen=True)
class Constant:
    """A model of one's own: a plain dataclass."""

    value: float
    inputs: tuple = ()
    outputs: tuple = (hk.Port("y"),)
    capabilities: hk.Capabilities = field(default_factory=hk.Capabilities)

    def open(self):
        return self

    def start(self, t):
        pass

    def output(self, t, u):
        return np.array([self.value])

    def step(self, t, h, u):
        return t + h

    def close(self):
        pass


class Tank:
    inputs = ("u = 0",)
    outputs = ("y",)

    def __init__(self, area=1.0):
        self.area = area

    def start(self, t):
        pass

    def output(self, t):
        return self.area

    def step(self, t, h, u):
        pass


def decay(t, x, u, rate):
    return -rate * x


@pytest.fixture
def plant(tmp_path):
    fmu = hk.Fmu(build("lag", 2, folder=tmp_path, binary=b""), T=2.0, observe=["der_y"])
    ode = hk.Ode(decay, x0=[1.0], outputs=["x"], rate=1.0)
    inner = hk.Composite(hk.Scenario({"lag": fmu, "tank": hk.Python(Tank)}), 0.1)
    models = {"axle": inner, "ode": ode, "constant": Constant(1.0), "gain": hk.Gain(2.0, "u = 0", "y")}
    return hk.Composite(hk.Scenario(models), 0.1)


def faults(composite, values):
    with pytest.raises(hk.ScenarioError) as caught:
        with_parameters(composite, values)
    return caught.value.faults


def test_paths_of_the_leaves(plant):
    assert [path for path, _ in leaves(plant)] == ["axle.lag", "axle.tank", "ode", "constant", "gain"]


def test_every_kind_of_model(plant):
    values = {
        "axle.lag.T": 5.0,
        "axle.lag.y0": 1.0,
        "axle.tank.area": 3.0,
        "ode.rate": 2.0,
        "constant.value": 7,
    }
    models = dict(leaves(with_parameters(plant, values)))
    assert models["axle.lag"].parameters == {"T": 5.0, "y0": 1.0}
    assert models["axle.lag"].observe == ("der_y",)
    assert models["axle.tank"].parameters == {"area": 3.0}
    assert models["ode"].parameters == {"rate": 2.0}
    assert models["constant"] == Constant(7)
    assert dict(leaves(plant))["ode"].parameters == {"rate": 1.0}, "the original is left alone"


def test_they_act(plant):
    scenario = hk.Scenario({name: plant.scenario.models[name] for name in ("ode", "constant")})
    run = hk.run(hk.Composite(scenario, 0.1), 1, parameters={"ode.rate": 2.0, "constant.value": 3.0})
    assert run.final("ode.x") == pytest.approx(np.exp(-2), rel=1e-4)
    assert run.final("constant.y") == 3.0


def test_nothing_to_set(plant):
    assert with_parameters(plant, {}) is plant


def test_every_fault_at_once(plant):
    found = faults(
        plant,
        {
            "axle.lag.TT": 1.0,
            "axle.lag.y0": "high",
            "axle.tank.aera": 1.0,
            "ode.rte": 1.0,
            "gain.gian": 3.0,
            "constant.valeu": 1.0,
            "axel.lag.T": 1.0,
            "axle.lga.T": 1.0,
            "T": 1.0,
        },
    )
    text = str(hk.ScenarioError(found))
    for essential in (
        "there is no variable `TT`",
        "`y0` is 'high'",
        "`Tank` has no parameter `aera`",
        "rte",
        "`gain` has no parameter `gian`",
        "did you mean `gain`?",
        "did you mean `value`?",
        "there is no model `axel`",
        "`axle.lga.T` does not lead to a model",
        "did you mean `axle.lag`?",
        "`T` does not name a model",
        "parameters, `axle.lag`",
    ):
        assert essential in text


def lagging() -> hk.Composite:
    model = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u = 0"], outputs=["y"])
    return hk.Composite(hk.Scenario({"lag": model}), 0.1)


def test_entries_of_matrices_are_parameters_of_a_linear_model():
    """x' = -2 x, y = 3 x."""
    for names in (("lag.A[1,1]", "lag.C[1, 1]"), ("A[1,1]", "C[1,1]")):
        t, y = hk.run(with_parameters(lagging(), dict(zip(names, (-2, 3.0), strict=True))), 1)["lag.y"]
        assert y == pytest.approx(3 * np.exp(-2 * t), rel=1e-14)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("lag.A[2,1]", 1.0, ["`lag.A` has no entry [2,1]", "up to [1,1], counted from one"]),
        ("lag.A[1,1]", "high", ["`lag.A[1,1]` is 'high'", "a finite number"]),
        ("lag.A[1,1]", float("nan"), ["a finite number"]),
        ("lag.A[1,1]", True, ["a finite number"]),
        ("lag.k", 1.0, ["has no parameter `k`", "`lag.A[1,1]`, `lag.B[1,1]`", "FMUs, Python classes"]),
    ],
)
def test_what_is_no_entry_is_told_with_those_there_are(name, value, told):
    with pytest.raises(hk.ScenarioError) as caught:
        with_parameters(lagging(), {name: value})
    for words in told:
        assert words in str(caught.value)


def test_a_single_model_need_not_be_named(tmp_path):
    fmu = hk.Fmu(build("lag", 2, folder=tmp_path, binary=b""))
    single = hk.Composite(hk.Scenario({"lag": fmu}), 0.1)
    assert split_parameter_path(single, "T") == split_parameter_path(single, "lag.T") == ("lag", "T")
    assert split_parameter_path(single, "no.such") == ("lag", "no.such")
    assert "there is no variable `no.such`" in faults(single, {"no.such": 1})[0].what


def test_variables_with_dots_and_the_name_of_their_model(tmp_path):
    head = '<ScalarVariable name="{}" valueReference="{}" causality="parameter" variability="fixed">'
    tail = '<Real start="1"/></ScalarVariable>'
    more = head.format("spring.k", 90) + tail + head.format("lag.T", 91) + tail + "</ModelVariables>"
    path = build(
        "lag", 2, folder=tmp_path, binary=b"", xml=lambda text: text.replace("</ModelVariables>", more)
    )
    single = hk.Composite(hk.Scenario({"lag": hk.Fmu(path)}), 0.1)
    assert split_parameter_path(single, "spring.k") == ("lag", "spring.k")
    assert split_parameter_path(single, "lag.T") == ("lag", "lag.T"), "the variable wins over the model"
    assert split_parameter_path(single, "lag.spring.k") == ("lag", "spring.k")
    several = hk.Composite(hk.Scenario({"lag": hk.Fmu(path), "b": hk.Fmu(path)}), 0.1)
    assert split_parameter_path(several, "b.spring.k") == ("b", "spring.k")


def test_an_fmu_made_again_keeps_its_options(tmp_path):
    path = build("lag", 2, folder=tmp_path, binary=b"")
    fmu = hk.Fmu("lag.fmu", T=3.0, interface="model-exchange", method="rk4", step="1 ms", folder=tmp_path)
    again = remake_fmu(fmu, {"y0": 1.0}, isolate=True)
    assert again == hk.Fmu(
        "lag.fmu",
        {"T": 3.0, "y0": 1.0},
        interface="model-exchange",
        method="rk4",
        step="1 ms",
        isolate=True,
        folder=tmp_path,
    )
    assert again.file == path


def test_a_whole_array_wins_over_elements_given_before(tmp_path):
    path = build("arrays", 3, folder=tmp_path, binary=b"")
    fmu = hk.Fmu(path, {"A[1,1]": 99.0, "A[2, 1]": 98.0, "u[1]": 5.0})
    whole = ((1, 2, 3), (4, 5, 6), (7, 8, 9))
    assert remake_fmu(fmu, {"A": whole}).parameters == {"A": whole, "u[1]": 5.0}
    assert remake_fmu(remake_fmu(fmu, {"A": whole}), {"A[1,1]": 7.0}).parameters["A[1,1]"] == 7.0


def test_in_fmi_2_the_elements_are_variables(tmp_path):
    head = '<ScalarVariable name="{}" valueReference="{}" causality="parameter" variability="fixed">'
    names = ("x[1]", "x[2]", "z", "z[1]")
    more = "".join(
        head.format(name, 90 + k) + '<Real start="1"/></ScalarVariable>' for k, name in enumerate(names)
    )
    path = build(
        "lag", 2, folder=tmp_path, binary=b"",
        xml=lambda text: text.replace("</ModelVariables>", more + "</ModelVariables>"),
    )  # fmt: skip
    fmu = hk.Fmu(path, {"x[1]": 9.0, "z[1]": 8.0})
    again = remake_fmu(fmu, {"x": [1.0, 2.0], "z": 3.0})
    assert again.parameters == {"x": (1.0, 2.0), "z": 3.0, "z[1]": 8.0}, "z[1] is no element of the scalar z"


def test_steps_of_levels_are_parameters():
    """`step` scales all levels; that of a level inside is set; an error over both falls as each does."""
    composite = three_masses(2, "0.2 s", "0.05 s")
    made = with_parameters(composite, {"step": "0.1 s"})
    assert (made.step, made.scenario.models["pair"].step) == (Fraction(1, 10), Fraction(1, 40))
    made = with_parameters(composite, {"pair.step": 0.1})
    assert (made.step, made.scenario.models["pair"].step) == (Fraction(1, 5), Fraction(1, 10))
    made = with_parameters(composite, {"pair.step": "25 ms", "step": 0.1})
    assert (made.step, made.scenario.models["pair"].step) == (Fraction(1, 10), Fraction(1, 40))
    for wrong in (0, -1, "often", None, float("nan")):
        with pytest.raises(hk.ScenarioError, match="`step` cannot be"):
            with_parameters(composite, {"step": wrong})


def test_a_map_of_errors_over_two_steps():
    """A level of two lags beside a third: over (H1, H2) the run is that of the composite with these steps."""
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    inside = hk.Scenario({"a": lag, "b": lag}, [("u", "a.u"), ("a.y", "b.u"), ("b.y", "y")], ["u"], ["y"])

    def composite(outer, inner):
        level = hk.Composite(inside, inner)
        return hk.Composite(hk.Scenario({"in": level, "c": lag}, {"in.u": "c.y", "c.u": "in.y"}), outer)

    steps = [{"step": outer, "in.step": inner} for outer in (0.2, 0.1) for inner in (0.1, 0.05)]
    runs = hk.sweep(composite(0.4, 0.2), steps, stop=2, workers=1)
    for each, run in zip(steps, runs, strict=True):
        alone = hk.run(composite(each["step"], each["in.step"]), 2)
        assert run.final("c.y") == alone.final("c.y")
