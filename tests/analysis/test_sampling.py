"""Sampled devices: the system flows between samples and jumps at them, worked out by hand here."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.analysis.coupling_check import check
from hocket.analysis.error_prediction import predicted_error, predicted_order
from hocket.analysis.forced_response import driven_solution
from hocket.analysis.linear_models import with_sources
from hocket.analysis.linearisation import linearise
from hocket.errors import ScenarioError
from hocket.files.formats import read
from hocket.planning.parameters import scale_steps
from systems import EXAMPLES

H = 0.1
CAR = EXAMPLES / "car.toml"


class Pi:
    """Its step computes what it shows next."""

    inputs = ("x = 0", "r = 0")
    outputs = ("u",)
    feedthrough = {}  # noqa: RUF012
    input_degree = 0

    def start(self, t):
        self.i, self.u = 0.2, 0.1

    def output(self, t, u):
        return [self.u]

    def step(self, t, h, u):
        wrong = u[0, 1] - u[0, 0]
        self.i += 0.3 * h * wrong
        self.u = self.i + 0.8 * wrong


class Proportional:
    """Its output reacts to what it sees, at its samples."""

    inputs = ("x = 0", "r = 0")
    outputs = ("u",)
    input_degree = 0

    def start(self, t):
        pass

    def output(self, t, u):
        return [0.8 * (u[0, 1] - u[0, 0])]

    def step(self, t, h, u):
        pass


PLANT = {"A": [[-0.5, 0.2], [0, -1]], "B": [[0], [1]], "C": [[1, 0]], "x0": [1, 0.3], "inputs": ["u"]}
REFERENCE = hk.Function(lambda t: np.sin(t), ["r"])


def loop(device, orchestrator, extrapolation="hold"):
    """A plant under a sampled controller, and a second plant that follows the first."""
    plant = hk.StateSpace(**PLANT, outputs=["x"])
    second = hk.StateSpace(A=[[-0.3]], B=[[1]], C=[[1]], x0=[0.5], inputs=["x"], outputs=["y"])
    wires = {"plant.u": "device.u", "device.x": "plant.x", "device.r": "ref.r", "second.x": "plant.x"}
    models = {"plant": plant, "device": device, "second": second, "ref": REFERENCE}
    return hk.Composite(hk.Scenario(models, wires), H, orchestrator, extrapolation)


FLOW = expm(H * np.array([[-0.5, 0.2, 0, 0], [0, -1, 0, 1], [1, 0, -0.3, 0], [0, 0, 0, 0]]))
"""Both plants and what the device holds, over a step."""


def by_hand(steps, every, cls):
    """Return both plants and the device at each step, with jumps in every so many."""
    x = np.array([1, 0.3, 0.5, 0.1 if cls is Pi else -0.8])
    i, saw = 0.2, (1.0, 0.0)
    rows = [x.copy()]
    for step in range(1, steps + 1):
        x = FLOW @ x
        if step % every == 0:
            wrong = saw[1] - saw[0]
            saw = x[0], np.sin(step * H)
            i += 0.3 * every * H * wrong
            x[3] = i + 0.8 * wrong if cls is Pi else 0.8 * (saw[1] - saw[0])
        rows.append(x.copy())
    return np.array(rows)


@pytest.mark.parametrize("cls", [Pi, Proportional])
@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
@pytest.mark.parametrize(
    "orchestrator", ["jacobi", "gauss-seidel", hk.GaussSeidel(["device", "plant", "second", "ref"])]
)
def test_errors_are_those_of_a_run(cls, every, extrapolation, orchestrator):
    composite = loop(hk.Python(cls, period=Fraction(every, 10)), orchestrator, extrapolation)
    made = with_sources(linearise(composite, still=True).composite, 6)
    found, run = predicted_error(made, 6, measure=False), hk.run(composite, 6)
    truth = by_hand(60, every, cls)
    assert found["second.y"].largest > 1e-4
    for port, column in (("plant.x", 0), ("second.y", 2)):
        wrong = np.abs(run[port].values - truth[:, column]).max()
        assert found[port].largest == pytest.approx(wrong, rel=1e-6, abs=1e-12)
    assert found["device.sampled.u"].largest < 1e-11
    assert found["device.sampled.u"].scale == pytest.approx(np.abs(truth[::every, 3]).max(), rel=1e-9)


@pytest.mark.parametrize("cls", [Pi, Proportional])
def test_the_exact_solution_jumps_at_the_samples(cls):
    composite = loop(hk.Python(cls, period="0.3 s"), "jacobi")
    solution = driven_solution(with_sources(linearise(composite, still=True).composite, 6), 6)
    truth = by_hand(60, 3, cls)
    found = solution.outputs(H * np.arange(61))
    for port, column in (("plant.x", 0), ("second.y", 2), ("device.sampled.u", 3)):
        assert found[:, solution.ports.index(port)] == pytest.approx(truth[:, column], abs=1e-11)
    just_before = solution.outputs(np.array([0.3 - 1e-9, 0.3]))[:, solution.ports.index("device.sampled.u")]
    assert just_before == pytest.approx([truth[0, 3], truth[3, 3]], abs=1e-8)


def test_two_devices_with_periods_of_their_own():
    """A gain every 0.2 s and one every 0.3 s, on the two states of a plant."""
    plant = hk.StateSpace(A=[[-1, 0.5], [0.5, -2]], B=np.eye(2), C=np.eye(2), x0=[1, -1],
                          inputs=["u", "v"], outputs=["x", "y"])  # fmt: skip
    devices = [
        hk.Composite(hk.Scenario({"g": hk.Gain(k)}), s, sampled=True) for k, s in ((-0.7, 0.2), (0.4, 0.3))
    ]
    wires = {"plant.u": "a.g.y", "plant.v": "b.g.y", "a.g.u": "plant.x", "b.g.u": "plant.y"}
    composite = hk.Composite(hk.Scenario({"plant": plant, "a": devices[0], "b": devices[1]}, wires), H)
    flow = expm(H * np.block([[np.array([[-1, 0.5], [0.5, -2]]), np.eye(2)], [np.zeros((2, 4))]]))
    x = np.array([1, -1, -0.7, -0.4])
    truth = [x.copy()]
    for step in range(1, 41):
        x = flow @ x
        x[2] = -0.7 * x[0] if step % 2 == 0 else x[2]
        x[3] = 0.4 * x[1] if step % 3 == 0 else x[3]
        truth.append(x.copy())
    solution = driven_solution(composite, 4)
    found = solution.outputs(H * np.arange(41))
    for port, column in (("plant.x", 0), ("plant.y", 1), ("a.g.y", 2), ("b.g.y", 3)):
        assert found[:, solution.ports.index(port)] == pytest.approx(np.array(truth)[:, column], abs=1e-12)
    run = hk.run(composite, 4)
    wrong = np.abs(run["plant.x"].values - np.array(truth)[:, 0]).max()
    assert predicted_error(composite, 4, measure=False)["plant.x"].largest == pytest.approx(wrong, abs=1e-12)


def test_the_error_of_the_car():
    """It falls with the steps, while its controller keeps its period; and a far finer run is as far off."""
    car = read(CAR).composite
    errors, ports = {}, ("skyhook.sampled.force", "chassis.body.x", "chassis.axle.wheel.v")
    linear = linearise(car, still=True).composite
    for part in (1, 2, 4):
        variant = with_sources(scale_steps(linear, Fraction(1, part), own=True), 1)
        errors[part] = predicted_error(variant, 1, measure=False)
    run, finer = (
        hk.run(scale_steps(car, factor, own=True), 1, record=ports) for factor in (1, Fraction(1, 50))
    )
    for port in ports:
        assert errors[2][port].largest / errors[4][port].largest == pytest.approx(2, rel=0.1)
        t, values = run[port]
        wrong = np.abs(values - np.interp(t, *finer[port])).max()
        assert errors[1][port].largest == pytest.approx(wrong, rel=0.05)


def test_what_is_sampled_costs_no_order():
    composite = loop(hk.Python(Pi, period="0.1 s"), "jacobi", "linear")
    assert predicted_order(composite)[0] == 2
    found = check(loop(hk.Python(Pi, period="0.2 s"), "jacobi", "linear"), 6)
    assert found.prediction is not None
    assert found.prediction.order.measured == pytest.approx(2, abs=0.2)


OPEN = hk.StateSpace(D=[[1]], inputs=["u = 0"], outputs=["y"])


def test_what_flows_inside_a_sampled_level_is_refused():
    lag = hk.StateSpace(A=[[-1]], B=[[1]], C=[[1]], inputs=["u"], outputs=["y"])
    plant = hk.StateSpace(**PLANT, outputs=["x"])
    for inside, why in (
        ({"g": lag}, "moves between its samples"),
        ({"g": hk.Gain(1), "k": OPEN}, "more than one"),
    ):
        device = hk.Composite(hk.Scenario(inside), "0.2 s", sampled=True)
        scenario = hk.Scenario({"plant": plant, "d": device}, {"plant.u": "d.g.y", "d.g.u": "plant.x"})
        with pytest.raises(ScenarioError, match=why):
            predicted_error(hk.Composite(scenario, H), 2)


@pytest.mark.parametrize("options", [{"offset": 0}, {"delay": "0.2 s"}])
def test_samples_that_are_announced_are_read_as_those_that_are_not(options):
    """What its step computes is shown a period later in both cases: the same loop, and the same radius."""
    found = check(loop(hk.Python(Pi, period="0.2 s", **options), "jacobi"), 6)
    same = check(loop(hk.Python(Pi, period="0.2 s"), "jacobi"), 6)
    assert found.stability.rho == pytest.approx(same.stability.rho, rel=1e-9)
    assert found.stability.period == same.stability.period


def test_samples_with_jitter_are_not_judged():
    found = check(loop(hk.Python(Pi, period="0.2 s", jitter={"uniform": "1 ms"}), "jacobi"), 6)
    assert found.stability is None
    assert "the times of its samples have jitter, and no period" in str(found.measures)


def test_the_first_sample_sees_offsets_and_sources_as_they_start():
    """y = x + 0.5 and r = cos(t): the device begins with 0.8 (1 - 1.5), and holds that for 0.3 s."""
    ports = ["u", hk.Port("b", start=0.5)]
    plant = hk.StateSpace([[-0.5]], [[1, 0]], [[1]], D=[[0, 1]], x0=[1], inputs=ports, outputs=["x"])
    models = {
        "plant": plant,
        "device": hk.Python(Proportional, period="0.3 s"),
        "ref": hk.Function(np.cos, ["r"]),
    }
    wires = {"plant.u": "device.u", "device.x": "plant.x", "device.r": "ref.r"}
    composite = hk.Composite(hk.Scenario(models, wires), H)
    solution = driven_solution(with_sources(linearise(composite, still=True).composite, 1), 1)
    t = np.array([0.0, 0.1, 0.2])
    held = 0.8 * (1.0 - 1.5)
    found = solution.outputs(t)
    assert found[:, solution.ports.index("device.sampled.u")] == pytest.approx([held] * 3, abs=1e-12)
    x = np.exp(-0.5 * t) + held * (1.0 - np.exp(-0.5 * t)) / 0.5
    assert found[:, solution.ports.index("plant.x")] == pytest.approx(x + 0.5, abs=1e-12)
