"""Sources that depend on time: exact solutions in closed form, and predicted errors against those of runs."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from analysis.small_scenarios import SmallPen
from hocket.analysis.error_prediction import predicted_error
from hocket.analysis.forced_response import driven_solution, fit_curves
from hocket.analysis.linear_models import PlayedSource, played_sources, with_sources
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.run_observation import observe_run
from hocket.errors import ScenarioError, SimulatorError

W, Z, PUSHED = 2.0, 0.1, 3.0
"""x'' + 2 Z W x' + W^2 x = sin(PUSHED t), from (1, 0)."""


def pushed(t):
    """The textbook solution: a particular one, and one that decays."""
    a, b = W**2 - PUSHED**2, 2 * Z * W * PUSHED
    size = a * a + b * b
    sine, cosine = a / size, -b / size
    decay, wave = Z * W, W * math.sqrt(1 - Z * Z)
    first, speed = 1.0 - cosine, -sine * PUSHED
    second = (speed + decay * first) / wave
    own = np.exp(-decay * t) * (first * np.cos(wave * t) + second * np.sin(wave * t))
    return own + sine * np.sin(PUSHED * t) + cosine * np.cos(PUSHED * t)


def oscillator(method="exact", step=None):
    return hk.StateSpace(
        A=[[0, 1], [-(W**2), -2 * Z * W]], B=[[0], [1]], C=[[1, 0]], x0=[1, 0], inputs=["f"],
        outputs=["x [m]"], method=method, step=step,
    )  # fmt: skip


SINE = hk.Function(lambda t: math.sin(PUSHED * t), ["f"])


class Sine:
    """The same, as people write it."""

    outputs = ("f",)

    def start(self, t):
        self.steps = 0

    def output(self, t):
        return math.sin(PUSHED * t)

    def step(self, t, h, u):
        self.steps += 1


def alone(source, step="0.1 s", orchestrator="jacobi", extrapolation="hold", it=None):
    scenario = hk.Scenario({"source": source, "it": it or oscillator()}, {"it.f": "source.f"})
    return hk.Composite(scenario, step, orchestrator, extrapolation)


def same_as_run(composite, stop, truth, port="it.x", start=0):
    """Assert that the predicted error is that of a run against the truth, a function of the time."""
    found = predicted_error(with_sources(composite, stop, start), stop, measure=False)
    t, values = hk.run(composite, start + stop, start=start)[port]
    exact = truth(t)
    wrong, size = np.abs(values - exact).max(), np.abs(exact).max()
    assert found[port].largest == pytest.approx(wrong, rel=1e-6, abs=1e-12 * size)
    assert found[port].scale == pytest.approx(size, rel=1e-9)
    return wrong


@pytest.mark.parametrize("orchestrator", ["jacobi", "gauss-seidel", hk.GaussSeidel(["it", "source"])])
@pytest.mark.parametrize("extrapolation", ["hold", "linear", hk.Polynomial(3), hk.Nepce(0.4)])
@pytest.mark.parametrize("step", ["0.1 s", "1/3 s"])
def test_a_pushed_oscillator(step, extrapolation, orchestrator):
    assert same_as_run(alone(SINE, step, orchestrator, extrapolation), 12, pushed) > 1e-6


@pytest.mark.parametrize("method", ["euler", "rk4", "ab2"])
def test_a_pushed_oscillator_with_micro_steps(method):
    composite = alone(SINE, "0.1 s", extrapolation="linear", it=oscillator(method, "25 ms"))
    same_as_run(composite, 6, pushed)
    found = predicted_error(with_sources(composite, 6), 6, micro=True, measure=False)
    table = hk.run(composite, 6, every="micro").table("it@micro")
    wrong = np.abs(table.column("it.x").to_numpy() - pushed(table.column(0).to_numpy())).max()
    assert found["it.x"].largest == pytest.approx(wrong, rel=1e-6)


def test_the_exact_solution_is_the_textbook_one():
    solution = driven_solution(with_sources(alone(SINE), 20), 20)
    t = np.sort(np.random.default_rng(5).uniform(0, 20, 200))
    assert solution.outputs(t)[:, solution.ports.index("it.x")] == pytest.approx(pushed(t), abs=1e-12)
    slope = (pushed(t + 1e-5) - pushed(t - 1e-5)) / 2e-5
    assert solution.trajectory(t) @ solution.weights(1)[solution.ports.index("it.x")] == pytest.approx(
        slope, abs=1e-8
    )


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_order_is_measured_as_predicted(order):
    composite = alone(SINE, "20 ms", extrapolation=hk.Polynomial(order - 1))
    found = predicted_error(with_sources(composite, 5), 5).order
    assert found.predicted == order
    assert found.measured == pytest.approx(order, abs=0.1)


def test_one_step_is_that_of_a_held_input():
    """From an exact past: the sine is held for a step, and integrated exactly."""
    h, t = 0.1, 0.1 * np.arange(1, 50)
    A = np.array([[0.0, 1.0], [-(W**2), -2 * Z * W]])
    whole = expm(h * np.block([[A, np.array([[0.0], [1.0]])], [np.zeros((1, 3))]]))
    speed = (pushed(t + 1e-6) - pushed(t - 1e-6)) / 2e-6
    after = np.column_stack([pushed(t), speed, np.sin(PUSHED * t)]) @ whole[0]
    found = predicted_error(with_sources(alone(SINE), 5), 5, measure=False)
    assert found["it.x"].local == pytest.approx(np.abs(after - pushed(t + h)).max(), rel=1e-6)
    assert found["source.f"].largest <= 1e-13


# tables

KNOTS = [0.0, 0.73, 1.0, 1.0, 2.617, 4.0, 9.0]
VALUES = [0.0, 2.0, 1.5, -1.0, -1.0, 0.5, 0.5]


def tabled(t, linear=True):
    """The oscillator under a table, piece by piece: state, value and slope in one exponential."""
    A = np.zeros((4, 4))
    A[:2, :2], A[1, 2], A[2, 3] = [[0, 1], [-(W**2), -2 * Z * W]], 1.0, 1.0
    found = []
    for end in t:
        x = np.array([1.0, 0.0])
        for (a, u), (b, v) in pairwise(zip(KNOTS, VALUES, strict=True)):
            if a < min(b, end):
                slope = (v - u) / (b - a) if linear else 0.0
                x = (expm(A * (min(b, end) - a)) @ [*x, u, slope])[:2]
        found.append(x[0])
    return np.array(found)


@pytest.mark.parametrize("interpolation", ["linear", "hold"])
@pytest.mark.parametrize("extrapolation", ["hold", hk.Polynomial(2), hk.Hermite()])
def test_a_table_with_jumps_and_bends_between_the_steps(extrapolation, interpolation):
    table = hk.Table(KNOTS, {"f": VALUES}, interpolation)
    composite = alone(table, "0.1 s", extrapolation=extrapolation)
    same_as_run(composite, 8, lambda t: tabled(t, interpolation == "linear"))


def test_a_file_is_a_table(tmp_path):
    rows = "\n".join(f"{1000 * t},{value}" for t, value in zip(KNOTS, VALUES, strict=True))
    (tmp_path / "push.csv").write_text(f"time [ms],f [N]\n{rows}\n")
    source = hk.Csv("push.csv", folder=tmp_path)
    same_as_run(alone(source, "0.05 s", extrapolation="linear"), 8, tabled)


def test_a_table_that_ends_with_the_run():
    table = hk.Table(KNOTS, {"f": VALUES}, outside="error")
    same_as_run(alone(table, "0.1 s"), 9, tabled)
    with pytest.raises(SimulatorError, match="the table has no value"):
        predicted_error(with_sources(alone(table), 9), 10)


def test_a_table_keeps_the_order_across_its_jump():
    """Steps end where it jumps, and begin anew there: the runs themselves converge with order 2."""
    table = hk.Table(KNOTS, {"f": VALUES})
    steps = [Fraction(1, 50), Fraction(1, 100), Fraction(1, 200)]
    found = predicted_error(with_sources(alone(table, steps[0], "jacobi", "linear"), 8), 8)
    assert found.order.predicted == 2
    wrong = []
    for step in steps:
        t, values = hk.run(alone(table, step, "jacobi", "linear"), 8)["it.x"]
        wrong.append(np.abs(values - tabled(t)).max())
    assert math.log2(wrong[1] / wrong[2]) == pytest.approx(2, abs=0.05)
    assert found.order.measured == pytest.approx(math.log2(wrong[1] / wrong[2]), abs=1e-4)


def test_a_function_that_jumps_reduces_the_order():
    """Nothing announces its jump: the extrapolation leads over it, and one step is wrong by as much."""
    jumping = hk.Function(lambda t: 0.0 if t < 1.0 else 1.0, ["f"])
    found = predicted_error(with_sources(alone(jumping, "20 ms", "jacobi", "linear"), 8), 8)
    assert found.order.predicted == 2
    assert "jump" in found.order.words


def test_many_jumps_off_the_grid():
    """The matrix of a step between jumps, and the tree itself around them: the run says the same."""
    rng = np.random.default_rng(8)
    knots = np.concatenate([[0.0], np.sort(rng.uniform(0, 8, 30)).round(4), [9.0]])
    table = hk.Table(knots, {"f": rng.normal(size=32)}, "hold")
    for extrapolation in ("hold", hk.Polynomial(2), hk.Nepce(0.3)):
        composite = alone(table, "0.05 s", "gauss-seidel", extrapolation, it=oscillator("rk4", "10 ms"))
        found = predicted_error(with_sources(composite, 8), 8, trajectories=True, measure=False)
        run = hk.run(composite, 8)
        for port in ("it.x", "source.f"):
            t, values, _ = found[port].series
            ours, theirs = run[port]
            last = np.append(np.diff(ours) > 0, True)  # of several rows at a time the one after the event
            assert ours[last] == pytest.approx(t, abs=1e-12)
            assert theirs[last] == pytest.approx(values, abs=1e-10)


# a controller with a step in its reference

CONTROLLED = np.array([[-1.0, 2.0, 3.0], [-1.0, 0.0, 0.0], [0.0, 1.0, -2.0]])


def controlled(t, at):
    """Plant x' = u - x, u = 2 i + 3 (r - x) with i' = r - x; r steps from 0 to 1."""
    A = np.zeros((3, 3))
    A[0], A[1] = [-1.0 - 3.0, 2.0, 3.0], [-1.0, 0.0, 1.0]
    return np.array([(expm(A * max(each - at, 0.0)) @ [0.0, 0.0, 1.0])[0] for each in t])


def loop(reference, nested):
    plant = hk.StateSpace(A=[[-1]], B=[[1]], C=[[1]], inputs=["u"], outputs=["x"])
    controller = hk.StateSpace(A=[[0]], B=[[1, -1]], C=[[2]], D=[[3, -3]], inputs=["r", "x"], outputs=["u"])
    wires = {"plant.u": "controller.u", "controller.x": "plant.x"}
    both = {"plant": plant, "controller": controller}
    if not nested:
        scenario = hk.Scenario({**both, "reference": reference}, {**wires, "controller.r": "reference.r"})
        return hk.Composite(scenario, "0.05 s")
    inner = hk.Composite(hk.Scenario(both, wires), "0.01 s", "gauss-seidel", "linear")
    scenario = hk.Scenario({"loop": inner, "reference": reference}, {"loop.controller.r": "reference.r"})
    return hk.Composite(scenario, "0.05 s")


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("at", [1.0, 1.2345678])
def test_a_step_in_the_reference(at, nested):
    reference = hk.Function(lambda t: 0.0 if t < at else 1.0, ["r"])
    port = "loop.plant.x" if nested else "plant.x"
    same_as_run(loop(reference, nested), 6, lambda t: controlled(t, at), port)


def test_a_source_on_a_level_inside():
    """Sampled every 20 ms there, and passed on to the oscillator outside."""
    inner = hk.Composite(hk.Scenario({"source": SINE, "gain": hk.Gain(1.0)}, {"gain.u": "source.f"}), "20 ms")
    scenario = hk.Scenario({"deep": inner, "it": oscillator()}, {"it.f": "deep.gain.y"})
    same_as_run(hk.Composite(scenario, "0.1 s", extrapolation="linear"), 6, pushed)


def test_a_run_that_starts_later_sees_the_sources_later():
    later = Fraction(1, 3)

    def truth(t):
        A = np.array([[0, 1, 0, 0], [-(W**2), -2 * Z * W, 1, 0], [0, 0, 0, PUSHED], [0, 0, -PUSHED, 0]])
        x = np.array([1.0, 0.0, math.sin(PUSHED / 3), math.cos(PUSHED / 3)])
        return np.array([(expm(A * (each - 1 / 3)) @ x)[0] for each in t])

    same_as_run(alone(SINE, "0.1 s", extrapolation="linear"), Fraction(6), truth, start=later)


# what is a source


def test_a_class_that_depends_on_time_alone_is_played():
    composite = with_sources(linearise(alone(hk.Python(Sine)), still=True).composite, 12)
    assert [name for name, _ in played_sources(composite)] == ["source"]
    found = predicted_error(composite, 12, measure=False)
    t, values = hk.run(alone(hk.Python(Sine)), 12)["it.x"]
    assert found["it.x"].largest == pytest.approx(np.abs(values - pushed(t)).max(), rel=1e-6)


def test_what_counts_its_steps_is_not_played():
    class Counting(Sine):
        def output(self, t):
            return 0.1 * self.steps

    class Late(Sine):
        """It shows only after five seconds that it was stepped."""

        def output(self, t):
            return float(self.steps > 50)

    for cls in (Counting, Late):
        assert not played_sources(with_sources(alone(hk.Python(cls)), 12))


def test_what_is_linear_or_has_inputs_is_not_played():
    composite = with_sources(alone(oscillator_alone(), "0.1 s"), 5)
    assert not played_sources(composite)


def oscillator_alone():
    return hk.StateSpace(A=[[0, 1], [-9, 0]], C=[[1, 0]], x0=[0, 1], outputs=["f"])


def test_the_matrix_of_a_step_does_not_depend_on_the_sources():
    other = hk.Table([0, 1], {"f": [0, 5]})
    readings = [read_linear(with_sources(alone(each), 5)) for each in (SINE, other)]
    assert np.array_equal(readings[0].Phi, readings[1].Phi)
    held = read_linear(linearise(alone(SINE)).composite)
    assert np.abs(np.linalg.eigvals(held.core)).max() == pytest.approx(
        np.abs(np.linalg.eigvals(readings[0].core)).max(), rel=1e-12
    )


class DrivenPen(SmallPen):
    """Draws functions and tables among the linear simulators."""

    def leaf(self, step):
        if self.chance(0.7):
            return self.linear(step)
        if self.chance(0.5):
            knots = np.sort(self.rng.uniform(0, 2, 5))
            return hk.Table([0, *knots], {"f0": self.numbers(6), "f1": self.numbers(6)})
        phase = float(self.numbers())
        return hk.Function(lambda t: [math.sin(2 * t + phase), math.exp(-t) * t], ["f0", "f1"])


@pytest.mark.parametrize("seed", range(12))
def test_random_scenarios_run_as_predicted(seed):
    """Levels in levels, all orchestrators and extrapolators: values to a relative 1e-8, so errors too."""
    rng = np.random.default_rng([3, seed])
    composite = DrivenPen(rng, iterates=0.3).level(Fraction(1, 10), depth=1 + seed % 3, outermost=True)[0]
    stop = 15 * composite.step
    made = with_sources(composite, stop)
    found = predicted_error(made, stop, trajectories=True, measure=False)
    run = hk.run(composite, stop)
    for each in found.ports:
        t, values, exact = each.series
        ours, theirs = run[each.port]
        assert ours == pytest.approx(t, abs=1e-12)
        assert np.abs(theirs - values).max() <= 1e-8 * max(np.abs(theirs).max(), np.abs(exact).max())


# curves


def test_curves_follow_values_and_derivatives():
    found = fit_curves(lambda t: np.array([math.sin(9 * t), abs(t - 0.3)]), 2.0, [0.5, 1.0])
    t = np.linspace(0, 2, 300)
    assert found.at(t)[:, 0] == pytest.approx(np.sin(9 * t), abs=1e-11)
    assert found.at(t)[:, 1] == pytest.approx(np.abs(t - 0.3), abs=1e-11)
    assert found.at(t, 1)[:, 0] == pytest.approx(9 * np.cos(9 * t), abs=1e-8)
    assert found.at(t, 2)[:, 0] == pytest.approx(-81 * np.sin(9 * t), abs=1e-5)


def test_a_source_that_jumps_everywhere_is_refused(monkeypatch):
    monkeypatch.setattr("hocket.analysis.forced_response.MOST", 2000)
    rng = np.random.default_rng(1)
    with pytest.raises(ScenarioError, match="jumps too often"):
        fit_curves(lambda t: rng.normal(size=1), 1.0, [])


def test_a_source_that_fails_is_named():
    def fails(t):
        raise ValueError("no more film")

    broken = hk.Function(lambda t: t if t < 2 else fails(t), ["f"])
    with pytest.raises(SimulatorError, match="`source` raised ValueError: no more film"):
        predicted_error(with_sources(alone(broken), 5), 5)


def test_columns_of_samples_add_up():
    """A held sine: the sample of the step before moves the oscillator as the input matrix says."""
    composite = with_sources(alone(SINE), 5)
    seen = observe_run(read_linear(composite), False, Fraction(0))
    assert [(name, call) for name, _, call, _ in seen.tape.asked] == [("source", "output")]
    assert isinstance(seen.tape.asked[0][1], PlayedSource)
    assert seen.tape.samples(3, 2, 5.0).ravel() == pytest.approx(
        np.sin(PUSHED * np.array([0.4, 0.5])), abs=1e-15
    )
