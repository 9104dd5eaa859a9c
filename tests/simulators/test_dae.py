"""Systems in residual form: circuits with algebraic voltages, alone and coupled, against exact answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import hocket as hk
from hocket.simulators.dae import Dae
from hocket.testing import check_simulator
from systems import ENGINES, lag


def divider(t, x, dx, u, R=2.0, C=0.5):
    """A source u, a resistor R, then R to ground beside R into C: x = (voltage of C, voltage of the node)."""
    q, v = x
    return [C * dx[0] - (v - q) / R, (u[0] - v) / R - v / R - (v - q) / R]


CIRCUIT = Dae(divider, [0.3, 0.0], algebraic=[1], inputs=["u"], outputs=["q", "v"])
"""v = (u + q)/3, q' = (u - 2 q)/3 for R = 2, C = 1/2."""


def test_it_obeys_the_laws_of_simulators():
    check_simulator(CIRCUIT)
    assert CIRCUIT.outputs[0].feedthrough == ()
    assert CIRCUIT.outputs[1].feedthrough == ("u",)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_algebraic_voltage(engine):
    """q -> 1/2 with rate 2/3 under u = 1; the node fits at every time, the start included."""
    source = hk.Function(lambda t: [1.0], outputs=["y"])
    scenario = hk.Scenario({"c": CIRCUIT, "one": source}, {"c.u": "one.y"})
    run = hk.run(hk.Composite(scenario, 0.1), 3, engine=engine)
    t = np.array(run["c.q"].t)
    q = 0.5 - 0.2 * np.exp(-2.0 / 3.0 * t)
    assert run["c.q"].values == pytest.approx(q, abs=1e-7)
    assert run["c.v"].values == pytest.approx((1.0 + q) / 3.0, abs=1e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_systems_in_residual_form_that_react_at_once(engine):
    """The node drives a lag; the lag drives the circuit: the exact system, by order of the extrapolation."""
    scenario = hk.Scenario({"c": CIRCUIT, "l": lag(1.0, 1.0, 1.0)}, {"c.u": "l.y", "l.u": "c.v"})
    A = np.array([[-2.0 / 3.0, 1.0 / 3.0], [1.0 / 3.0, -2.0 / 3.0]])
    exact = (expm(A * 2.0) @ [0.3, 1.0])[0]
    off = [
        abs(hk.run(hk.Composite(scenario, H, extrapolation="linear"), 2, engine=engine).final("c.q") - exact)
        for H in (0.1, 0.05)
    ]
    assert np.log2(off[0] / off[1]) == pytest.approx(2.0, abs=0.3)
    iterated = hk.run(hk.Composite(scenario, 0.05, hk.Iterate(), extrapolation="cubic"), 2, engine=engine)
    assert iterated.final("c.q") == pytest.approx(exact, abs=1e-6)


def test_an_algebraic_loop_through_two_circuits_is_solved():
    """Each node drives the other: v_a = (v_b + q_a)/3, v_b = (v_a + q_b)/3, at the start and at every row."""
    scenario = hk.Scenario(
        {"a": CIRCUIT, "b": Dae(divider, [0.9, 0.0], [1], ["u"], ["q", "v"])}, {"a.u": "b.v", "b.u": "a.v"}
    )
    run = hk.run(hk.Composite(scenario, 0.1), 1)
    qa, qb, va = (np.array(run[port].values) for port in ("a.q", "b.q", "a.v"))
    assert va == pytest.approx((3.0 * qa + qb) / 8.0, abs=1e-8)


def test_a_nonlinear_system_and_its_parameters():
    """y' = -y z, z^3 + z = 2 y k: against explicit integration of the state space form."""

    def f(t, x, dx, u, k):
        return [dx[0] + x[0] * x[1], x[1] ** 3 + x[1] - 2.0 * k * x[0]]

    def z(y, k):
        return max(np.roots([1.0, 0.0, 1.0, -2.0 * k * y]).real, key=lambda r: -abs(r**3 + r - 2.0 * k * y))

    for k in (0.5, 2.0):
        model = Dae(f, [1.0, 0.5], [1], outputs=["y", "z"], k=k)
        run = hk.run(hk.Composite(hk.Scenario({"d": model}), 0.1), 2)
        found = solve_ivp(lambda t, y, k=k: [-y[0] * z(y[0], k)], (0.0, 2.0), [1.0], rtol=1e-10, atol=1e-12)
        assert run.final("d.y") == pytest.approx(found.y[0, -1], abs=1e-6)


def test_an_index_above_one_is_refused():
    """x' = z, x = sin t: z follows only after a differentiation."""
    model = Dae(lambda t, x, dx, u: [dx[0] - x[1], x[0] - np.sin(t)], [0.0, 1.0], [1])
    with pytest.raises(hk.SimulatorError, match="do not follow from f"):
        hk.run(hk.Composite(hk.Scenario({"d": model}), 0.1), 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"algebraic": [2]}, "`algebraic` is"),
        ({"algebraic": [1, 1]}, "`algebraic` is"),
        ({"outputs": ["q"]}, "1 outputs for 2 entries"),
        ({"rtol": 0.0}, "tolerances"),
        ({"f": 3}, "`f` is `3`"),
    ],
)
def test_what_is_no_system(arguments, message):
    with pytest.raises(hk.ScenarioError, match=message):
        Dae(**{"f": divider, "x0": [0.3, 0.0], "inputs": ["u"], **arguments})
    model = Dae(lambda t, x, dx, u: [0.0], [0.3, 0.0], [1])
    with pytest.raises(hk.SimulatorError, match="1 residuals for 2 entries"):
        hk.run(hk.Composite(hk.Scenario({"d": model}), 0.1), 1)


def test_files_have_it(tmp_path):
    (tmp_path / "circuit.py").write_text(
        "def node(t, x, dx, u, R=2.0):\n"
        "    return [0.5 * dx[0] - (x[1] - x[0]) / R, (u[0] - x[1]) / R - x[1] / R - (x[1] - x[0]) / R]\n"
    )
    (tmp_path / "a.toml").write_text(
        """
step = "0.1 s"


[models.c]
type = "dae"
f = "circuit.py:node"
x0 = [0.3, 0.0]
algebraic = [1]
inputs = ["u = 1"]
outputs = ["q", "v"]
parameters = { R = 4.0 }
"""
    )
    run = hk.run(tmp_path / "a.toml", 1)
    assert run.final("c.q") == pytest.approx(0.5 - 0.2 * np.exp(-1.0 / 3.0), abs=1e-7)
    hk.write(hk.read(tmp_path / "a.toml"), tmp_path / "b.toml")
    assert hk.run(tmp_path / "b.toml", 1).final("c.q") == run.final("c.q")
