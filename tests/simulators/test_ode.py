"""Equations as models: exact answers, the order of every method, stiff systems, rewinding, micro steps."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm

from hocket.errors import ScenarioError, SimulatorError
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities
from hocket.simulators.methods import ORDERS, TABLEAUX
from hocket.simulators.ode import METHODS, Ode
from hocket.simulators.state_space import StateSpace

NONE = np.zeros((1, 0))
FIXED = (*TABLEAUX, "ab2")
IMPLICIT = ("implicit-euler", "trapezoid")


def oscillator(t, x, u):
    return np.array([x[1], -x[0]])


def driven(t, x, u):
    return np.array([x[1], -2.0 * x[0] - 0.3 * x[1] + u[0]])


A = [[0.0, 1.0], [-2.0, -0.3]]
B = [[0.0], [1.0]]


def run(model, h, count, u=NONE):
    """Return the outputs after each step; u are coefficients about the start of each step."""
    simulator = model.open()
    simulator.start(0.0)
    rows = []
    for k in range(count):
        assert simulator.step(k * h, h, u) == k * h + h
        rows.append(np.array(simulator.output((k + 1) * h, u)))
    return np.array(rows)


@pytest.mark.parametrize("method", METHODS)
def test_harmonic_oscillator(method):
    loose = {"euler": 0.05, "implicit-euler": 0.05, "heun": 1e-4, "ab2": 2e-4, "trapezoid": 1e-4}
    y = run(Ode(oscillator, x0=[1.0, 0.0], method=method, step=0.01), 0.5, 10)
    t = 0.5 * np.arange(1, 11)
    assert np.abs(y - np.c_[np.cos(t), -np.sin(t)]).max() < loose.get(method, 1e-4)


def test_tight_tolerances_are_kept():
    for method in ("adaptive", "cvode"):
        y = run(Ode(oscillator, x0=[1.0, 0.0], method=method, rtol=1e-11, atol=1e-13), 0.5, 10)
        assert y[-1] == pytest.approx([math.cos(5.0), -math.sin(5.0)], abs=2e-9)


@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_matrix_exponential(method):
    matrix = np.array([[-1.0, 2.0, 0.0], [-2.0, -1.0, 0.5], [0.0, 0.3, -0.2]])
    x0 = np.array([1.0, -1.0, 0.5])
    model = Ode(lambda t, x, u: matrix @ x, x0=x0, method=method, step="1 ms", rtol=1e-10, atol=1e-12)
    assert run(model, 1.0, 1)[0] == pytest.approx(expm(matrix) @ x0, abs=1e-10)


@pytest.mark.parametrize("method", FIXED)
def test_observed_order(method):
    def error(h):
        y = run(Ode(oscillator, x0=[1.0, 0.0], method=method), h, round(2.0 / h))
        return np.abs(y[-1] - [math.cos(2.0), -math.sin(2.0)]).max()

    observed = math.log2(error(0.02) / error(0.01))
    assert observed == pytest.approx(ORDERS[method], abs=0.1)


@pytest.mark.parametrize("method", FIXED)
def test_order_with_a_polynomial_input(method):
    """The equation x' = -x + u with u = t^2 over one macro step: u is followed inside it."""
    u = np.array([[0.0], [0.0], [1.0]])

    def error(step):
        model = Ode(lambda t, x, u: u - x, x0=[1.0], inputs=["u"], method=method, step=step)
        return abs(run(model, 2.0, 1, u)[0, 0] - (2.0 - math.exp(-2.0)))

    assert math.log2(error(0.02) / error(0.01)) == pytest.approx(ORDERS[method], abs=0.1)


@pytest.mark.parametrize("method", FIXED)
@pytest.mark.parametrize("step", [None, 0.03])
def test_agrees_with_the_linear_maps(method, step):
    u = np.array([[0.3], [1.0], [-0.5]])
    linear = StateSpace(
        A, B, np.eye(2).tolist(), x0=[1.0, 0.5], inputs=["u"], outputs=["a", "b"], method=method, step=step
    )
    model = Ode(driven, x0=[1.0, 0.5], inputs=["u"], method=method, step=step)
    assert run(model, 0.1, 5, u) == pytest.approx(run(linear, 0.1, 5, u), rel=1e-10)


def test_adams_bashforth_restarts_when_the_step_changes():
    u = np.array([[0.3], [1.0]])
    model = Ode(driven, x0=[1.0, 0.5], inputs=["u"], method="ab2")
    heun = Ode(driven, x0=[1.0, 0.5], inputs=["u"], method="heun")
    ends = []
    for recipe in (model, heun):
        simulator = recipe.open()
        simulator.start(0.0)
        simulator.step(0.0, 0.1, u)
        simulator.step(0.1, 0.05, u)
        ends.append(simulator.output(0.15, u))
    assert np.array_equal(*ends)
    assert not np.array_equal(run(model, 0.1, 2, u), run(heun, 0.1, 2, u))


@pytest.mark.parametrize("method", METHODS)
def test_rewinding_gives_the_same_bits(method):
    u = np.array([[0.3], [1.0]])
    simulator = Ode(driven, x0=[1.0, 0.5], inputs=["u"], method=method, step=0.04).open()
    simulator.start(0.0)
    simulator.step(0.0, 0.12, u)
    state, ends = simulator.save(), []
    for _ in range(3):
        simulator.restore(state)
        simulator.step(0.12, 0.12, u)
        simulator.step(0.24, 0.12, u)
        ends.append(simulator.output(0.36, u).tobytes())
    assert len(set(ends)) == 1
    simulator.start(0.0)
    simulator.step(0.0, 0.12, u)
    simulator.step(0.12, 0.12, u)
    simulator.step(0.24, 0.12, u)
    assert simulator.output(0.36, u).tobytes() == ends[0]


@pytest.mark.parametrize("method", METHODS)
def test_an_instant_changes_nothing(method):
    simulator = Ode(oscillator, x0=[1.0, 0.0], method=method).open()
    simulator.start(2.0)
    assert simulator.step(2.0, 0.0, NONE) == 2.0
    assert simulator.output(2.0, NONE).tolist() == [1.0, 0.0]


def stiff(t, x, u):
    """Prothero and Robinson (1974): the exact answer is cos t, reached through a layer of 1e-6 s."""
    return -1e6 * (x - math.cos(t)) - math.sin(t)


@pytest.mark.parametrize("jacobian", [None, lambda t, x, u: [[-1e6]]])
def test_stiff(jacobian):
    model = Ode(stiff, x0=[0.0], method="cvode", rtol=1e-8, atol=1e-10, jacobian=jacobian)
    t = 0.2 * np.arange(1, 11)
    assert run(model, 0.2, 10)[:, 0] == pytest.approx(np.cos(t), abs=1e-6)
    implicit = Ode(stiff, x0=[1.0], method="implicit-euler", step=0.01, jacobian=jacobian)
    assert run(implicit, 0.2, 10)[:, 0] == pytest.approx(np.cos(t), abs=1e-6)


def test_stiff_and_nonlinear():
    """Van der Pol, eps = 1e-6; the answer is that of the IVP test set, computed with RADAU."""

    def f(t, x, u):
        return [x[1], ((1.0 - x[0] ** 2) * x[1] - x[0]) / 1e-6]

    model = Ode(f, x0=[2.0, 0.0], method="cvode", rtol=1e-9, atol=1e-10)
    assert run(model, 0.5, 4)[-1] == pytest.approx([1.706167732170483, -0.8928097010247975], rel=1e-5)


@pytest.mark.parametrize("method", IMPLICIT)
@pytest.mark.parametrize("given", [True, False])
def test_newton_on_a_nonlinear_system(method, given):
    """The equation x' = -x^3 has the answer 1 / sqrt(1 + 2 t)."""
    jacobian = (lambda t, x, u: [[-3.0 * x[0] ** 2]]) if given else None
    model = Ode(lambda t, x, u: -(x**3), x0=[1.0], method=method, step=1e-3, jacobian=jacobian)
    error = {"implicit-euler": 1e-3, "trapezoid": 1e-6}[method]
    assert run(model, 1.0, 1)[0, 0] == pytest.approx(1.0 / math.sqrt(3.0), abs=error)


@pytest.mark.parametrize("method", METHODS)
def test_micro_steps_are_reported(method):
    def g(t, x, u):
        return [x[0], t, u[0]]

    model = Ode(driven, g, [1.0, 0.5], ["u"], ["x", "t", "u"], method, step=0.04)
    simulator = model.open()
    u = np.array([[0.3], [1.0], [2.0]])
    seen = []
    simulator.start(1.0)
    simulator.micro = lambda t, y: seen.append((t, *y))
    simulator.step(1.0, 0.1, u)
    if method in ORDERS:
        assert [row[0] for row in seen] == [1.0 + 0.1 / 3, 1.0 + 2 * (0.1 / 3), 1.1]
    assert len(seen) >= 3
    assert seen[-1][0] == 1.1
    assert seen[-1][1] == simulator.output(1.1, u)[0]
    for t, _, own, value in seen:
        assert own == t
        assert value == pytest.approx(0.3 + (t - 1.0) + 2.0 * (t - 1.0) ** 2, rel=1e-12)
    unseen = model.open()
    unseen.start(1.0)
    unseen.step(1.0, 0.1, u)
    assert np.array_equal(unseen.output(1.1, u), simulator.output(1.1, u))


def test_outputs_ports_and_capabilities():
    model = Ode(driven, x0=[1.0, 0.0], inputs=["u [N] = 0"])
    assert model.outputs == (Port("x1"), Port("x2"))
    assert model.capabilities == Capabilities(rollback=True, slopes=True, micro=True, order=4)
    named = Ode(driven, x0=[1.0, 0.0], inputs=["u"], outputs=["x [m]", "v [m/s]"], method="adaptive")
    assert named.outputs == (Port("x", "m"), Port("v", "m/s"))
    assert named.capabilities.order is None
    simulator = model.open()
    simulator.start(0.0)
    assert simulator.slope(0.0, np.array([[3.0]])).tolist() == [0.0, 1.0]


def test_feedthrough():
    def outputs(**more):
        model = Ode(driven, lambda t, x, u: [x[0], u[0]], [1.0, 0.0], ["u"], ["x", "u"], **more)
        assert not model.capabilities.slopes
        return [port.feedthrough for port in model.outputs]

    assert outputs() == [("u",), ("u",)]
    assert outputs(feedthrough={}) == [(), ()]
    assert outputs(feedthrough={"u": ["u"]}) == [(), ("u",)]
    with pytest.raises(ScenarioError, match="did you mean"):
        outputs(feedthrough={"uu": ["u"]})


def test_parameters_and_equality():
    def f(t, x, u, rate, matrix=None):
        return -rate * x

    def g(t, x, u, rate, matrix=None):
        return rate * x

    model = Ode(f, g, [1.0], outputs=["y"], step="1/100 s", rate=2.0, matrix=np.eye(2))
    assert run(model, 0.5, 1)[0, 0] == pytest.approx(2.0 * math.exp(-1.0), rel=1e-8)
    assert model.step == Fraction(1, 100)
    assert model.parameters["rate"] == 2.0
    assert model == Ode(f, g, [1], outputs=["y"], step=0.01, matrix=np.eye(2), rate=2.0)
    assert len({model, Ode(f, g, [1], outputs=["y"], step=0.01, matrix=np.eye(2), rate=2.0)}) == 1
    assert model != Ode(f, g, [1.0], outputs=["y"], step=0.01, rate=3.0, matrix=np.eye(2))


def test_functions_named_by_text(tmp_path):
    (tmp_path / "plant.py").write_text("def f(t, x, u):\n    return -x\n\nnumber = 3\n")
    model = Ode("plant.py:f", x0=[1.0], step=0.01, folder=tmp_path)
    assert run(model, 1.0, 1)[0, 0] == pytest.approx(math.exp(-1.0), rel=1e-8)
    with pytest.raises(ScenarioError, match="is not a function"):
        Ode("plant.py:number", x0=[1.0], folder=tmp_path).open()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"method": "rk5"}, "did you mean `rk4`"),
        ({"method": "exact"}, "StateSpace"),
        ({"x0": [1.0, math.nan]}, "finite"),
        ({"x0": "one"}, "not a list of numbers"),
        ({"x0": ["1.0", "0"]}, "not a list of numbers"),
        ({"x0": [[1.0]]}, "a list of lists"),
        ({"x0": 1}, r"`x0` is the single number 1, not a list such as \[1\]"),
        ({"step": "-1 ms"}, "above zero"),
        ({"rtol": 0.0}, "rtol"),
        ({"outputs": ["a"]}, r"1 output for 2 states(.|\n)*name every state in `outputs`"),
        ({"outputs": ["a"], "x0": []}, r"1 output for 0 states(.|\n)*give `x0`"),
        ({"outputs": ["a", "b", "c"]}, r"3 outputs for 2 states(.|\n)*compute them with `g`"),
        ({"g": 3, "outputs": ["y"]}, "`g` is `3`"),
        ({"g": oscillator}, "have no names"),
    ],
)
def test_recipes_that_make_no_sense(facts, words):
    with pytest.raises(ScenarioError, match=words):
        Ode(oscillator, **{"x0": [1.0, 0.0], **facts})


def damped(t, x, u, rate, mass=1.0):
    return -rate / mass * x


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"metod": "rk4", "rate": 1.0}, "`metod` is not a parameter of `f`(.|\n)*did you mean `method`"),
        ({"rat": 1.0}, "`rat` is not a parameter of `f`(.|\n)*did you mean `rate`"),
        ({"rate": 1.0, "t": 3.0}, "`t` is not a parameter of `f`"),
        ({}, r"`f` needs the parameter `rate`(.|\n)*`Ode\(..., rate=...\)`"),
        ({"g": damped, "outputs": ["y"]}, "`f` and `g` need the parameter `rate`"),
        (
            {"g": lambda t, x, u: x, "outputs": ["y"], "rate": 1.0},
            r"`rate` is not a parameter of `g`(.|\n)*same parameters(.|\n)*`def g\(t, x, u, rate\)`",
        ),
        ({"jacobian": lambda t, x: x, "rate": 1.0}, r"`jacobian\(t, x\)` and cannot be called"),
    ],
)
def test_parameters_that_nobody_takes(facts, words):
    with pytest.raises(ScenarioError, match=words) as caught:
        Ode(damped, x0=[1.0], **facts)
    assert len(caught.value.faults) == 1
    Ode(damped, lambda t, x, u, **_: x, [1.0], outputs=["y"], rate=1.0, mass=2.0)
    Ode(max, x0=[1.0], anything=1.0)  # compiled code cannot be asked


def test_parameters_of_a_function_named_by_text(tmp_path):
    (tmp_path / "plant.py").write_text("def f(t, x, u, rate):\n    return -rate * x\n")
    model = Ode("plant.py:f", x0=[1.0], folder=tmp_path, raet=2.0)
    for look in (model.check, model.open):
        with pytest.raises(ScenarioError, match=r"`raet`(.|\n)*`Ode` of `plant.py:f`(.|\n)*`rate`"):
            look()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("returned", [None, ["1", "2"], [1.0, None], "12", [1j, 2j]])
def test_what_is_no_number_is_refused(method, returned):
    def wrong(t, x, u):
        return returned

    for f, g in ((wrong, None), (oscillator, wrong)):
        model = Ode(f, g, [1.0, 0.0], outputs=["a", "b"], method=method)
        with pytest.raises(TypeError, match=r"wrong` returned .*, expected 2 numbers"):
            run(model, 0.1, 1)


@pytest.mark.parametrize("method", ["trapezoid", "cvode"])
def test_a_jacobian_of_the_wrong_kind(method):
    with pytest.raises(TypeError, match="returned None, expected 4 numbers"):
        run(Ode(oscillator, x0=[1.0, 0.0], method=method, jacobian=lambda t, x, u: None), 0.1, 1)
    with pytest.raises(SimulatorError, match="returned 2 numbers"):
        run(Ode(oscillator, x0=[1.0, 0.0], method=method, jacobian=lambda t, x, u: [1, 2]), 0.1, 1)


@pytest.mark.parametrize("method", METHODS)
def test_equations_cannot_write_to_what_they_are_handed(method):
    def to_x(t, x, u):
        x[0] = 0.5
        return -x

    def to_u(t, x, u):
        u[0] = 0.5
        return -x

    u = np.array([[3.0]])
    for f, g in ((to_x, None), (to_u, None), (driven, to_x), (driven, to_u)):
        model = Ode(f, g, x0=[1.0, 0.0], inputs=["u"], outputs=["a", "b"], method=method)
        with pytest.raises(ValueError, match="read-only"):
            run(model, 0.1, 1, u)
    u[0] = 1.0  # it is still the caller's


def test_a_function_of_the_wrong_size():
    with pytest.raises(SimulatorError, match=r"returned 1 numbers(.|\n)*2, one for each of the states"):
        run(Ode(lambda t, x, u: 1.0, x0=[1.0, 0.0]), 0.1, 1)
    with pytest.raises(SimulatorError, match="one for each of the outputs"):
        run(Ode(oscillator, oscillator, [1.0, 0.0], outputs=["y"]), 0.1, 1)


@pytest.mark.parametrize("method", ["adaptive", "cvode"])
def test_a_solver_that_fails_says_where(method, capfd):
    model = Ode(lambda t, x, u: x * x, x0=[1.0], method=method)
    with pytest.raises(SimulatorError, match=rf"`{method}` failed at t = (1|0\.9999)"):
        run(model, 2.0, 1)
    nan = Ode(lambda t, x, u: x * math.nan, x0=[1.0], method=method)
    with pytest.raises(SimulatorError, match="failed at t = 0"):
        run(nan, 2.0, 1)
    assert capfd.readouterr().out == ""


def test_what_an_equation_prints_is_kept(capsys):
    run(Ode(lambda t, x, u: print("here") or -x, x0=[1.0], method="cvode"), 0.1, 1)
    assert "here" in capsys.readouterr().out


def test_newton_that_fails_says_so():
    """The step z = z^2 + 1 has no answer."""
    model = Ode(lambda t, x, u: x * x + 1.0, x0=[0.0], method="implicit-euler")
    with pytest.raises(SimulatorError, match=r"Newton's method did not converge(.|\n)*smaller `step`"):
        run(model, 1.0, 5)


def test_numbers_that_grow_without_bound_are_returned():
    y = run(Ode(lambda t, x, u: x**3, x0=[10.0], method="euler"), 1.0, 12)
    assert not np.isfinite(y[-1]).any()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sksundae.cvode", None)
    with pytest.raises(ScenarioError, match=r"pip install hocket\[stiff\]"):
        Ode(oscillator, x0=[1.0, 0.0], method="cvode").open()


@pytest.mark.parametrize("method", METHODS)
def test_a_model_without_states_is_a_function_of_its_inputs(method):
    model = Ode(lambda t, x, u: x, lambda t, x, u: 2.0 * u, inputs=["u"], outputs=["y"], method=method)
    assert run(model, 0.5, 2, np.array([[3.0]])).tolist() == [[6.0], [6.0]]


@pytest.mark.parametrize("method", METHODS)
def test_a_function_may_fill_the_same_array_again(method):
    rate = np.empty(2)

    def f(t, x, u):
        rate[:] = x[1], -x[0]
        return rate

    ends = [run(Ode(equation, x0=[1.0, 0.0], method=method), 0.1, 3) for equation in (f, oscillator)]
    assert np.array_equal(*ends)
