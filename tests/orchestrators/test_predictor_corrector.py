"""Predictor and corrector: one rollback, interface sensitivities by differences or known before the run."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.analysis.linear_reading import read_linear
from hocket.plan import Repeat
from hocket.plan.accelerators import Newton, QuasiNewton
from hocket.planning.planner import plan_tree
from systems import ENGINES, SPRING_MASS, mass, spectral_radius, spring

SWINGING = hk.Scenario({"spring": spring(c=400.0), "mass": mass()}, SPRING_MASS)
STIFFNESS, DAMPING = 1e4, 1e4


def stiff_link():
    """Two masses of 1 kg, each held by 1 N/m, and a link of 1e4 N/m and 1e4 Ns/m between them."""
    side = {"A": [[0.0, 1.0], [-1.0, 0.0]], "B": [[0.0], [1.0]], "C": [[1.0, 0.0], [0.0, 1.0]]}
    k, c = STIFFNESS, DAMPING
    models = {
        "one": hk.StateSpace(**side, x0=[1.0, 0.0], inputs=["f"], outputs=["x", "v"]),
        "two": hk.StateSpace(
            [[0.0, 1.0], [-1.0 - k, -c]],
            [[0.0, 0.0], [k, c]],
            [[k, c]],
            [[-k, -c]],
            x0=[1.0, 0.0],
            inputs=["x", "v"],
            outputs=["f"],
        ),
    }
    return hk.Scenario(models, {"one.f": "two.f", "two.x": "one.x", "two.v": "one.v"})


def exact_position(t):
    k, c = STIFFNESS, DAMPING
    A = [[0, 1, 0, 0], [-1 - k, -c, k, c], [0, 0, 0, 1], [k, c, -1 - k, -c]]
    return float((expm(np.array(A, dtype=float) * t) @ [1.0, 0.0, 1.0, 0.0])[0])


def couple(how):
    return hk.Composite(stiff_link(), "10 ms", how, extrapolation="linear")


def methods():
    known = hk.interface_jacobian(couple(hk.Jacobi()))
    assert known.names == ("one.v", "one.x", "two.f")
    return {
        "predictor and corrector": hk.PredictorCorrector(),
        "linearly implicit": hk.PredictorCorrector(jacobian=known.matrix),
        "interface Jacobian": hk.Iterate(tolerance=None, at_most=2, accelerate=Newton(jacobian=known.matrix)),
        "newton": hk.Iterate(tolerance=None, at_most=2, accelerate="newton"),
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stiff_link_at_one_rollback(engine):
    """Plain coupling, once or twice, is off by many powers of ten; corrected it is off by less than 0.01."""
    for plain in (hk.Jacobi(), hk.Iterate(tolerance=None, at_most=2)):
        try:
            wrong = hk.run(couple(plain), 0.4, engine=engine).final("one.x")
        except hk.SimulatorError:  # beyond all numbers
            continue
        assert abs(wrong) > 1e12
    for name, method in methods().items():
        run = hk.run(couple(method), 1, engine=engine)
        assert run.final("one.x") == pytest.approx(exact_position(1.0), abs=1e-2), name
        counted = run.info["counts"]["sweeps"][""]
        tried = {"newton": 6, "predictor and corrector": 6}.get(name, 0)  # a cold start, and then two samples
        assert counted["total"] == 2 * 100 + tried, name


@pytest.mark.parametrize("engine", ENGINES)
def test_a_held_spring_is_an_implicit_euler_step(engine):
    """s' = v, v' = -400 s, held: Jacobi grows by (1 + 400 H^2)^(1/2) a step, this falls so."""
    step, growth = 0.1, np.sqrt(1.0 + 400.0 * 0.1**2)
    plain = hk.Composite(SWINGING, step, hk.Jacobi())
    corrected = hk.Composite(SWINGING, step, hk.PredictorCorrector())
    assert spectral_radius(read_linear(plain).Phi) == pytest.approx(growth, rel=1e-12)
    assert spectral_radius(read_linear(corrected).Phi) == pytest.approx(1.0 / growth, rel=1e-12)
    run = hk.run(corrected, 1, engine=engine)
    implicit = np.linalg.matrix_power(np.linalg.inv([[1.0, -0.1], [40.0, 1.0]]), 10) @ [1.0, 0.5]
    assert [-run.final("spring.f") / 400.0, run.final("mass.v")] == pytest.approx(implicit, rel=1e-6)


@pytest.mark.parametrize("extrapolation", ["hold", "linear", "quadratic", "cubic"])
@pytest.mark.parametrize(
    "inner", [hk.Jacobi(), hk.GaussSeidel(["mass", "spring"]), hk.Jacobi(outputs="stale")]
)
def test_it_is_the_limit_of_the_iteration(inner, extrapolation):
    """Of linear models one correction is all: the reading, and both engines, with the same bits."""
    corrected, limit = (
        hk.Composite(SWINGING, "20 ms", how, extrapolation=extrapolation)
        for how in (hk.PredictorCorrector(inner), hk.Iterate(inner, 1e-13))
    )
    one, other = read_linear(corrected), read_linear(limit)
    assert one.Phi == pytest.approx(other.Phi, rel=1e-9, abs=1e-9)
    assert not one.sweeps
    runs = [hk.run(corrected, 1, engine=engine) for engine in ENGINES]
    assert runs[0]["mass.v"].values.tobytes() == runs[1]["mass.v"].values.tobytes()
    assert runs[0]["mass.v"].values == pytest.approx(hk.run(limit, 1)["mass.v"].values, abs=1e-6)


@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
def test_another_jacobian_is_read_as_it_is_run(extrapolation):
    """A wrong matrix leaves an error that the reading has too: a run is a power of it."""
    how = hk.PredictorCorrector(jacobian=[[0.0, -0.5], [1.0, 0.1]])
    composite = hk.Composite(SWINGING, "20 ms", how, extrapolation=extrapolation)
    reading = read_linear(composite)
    z = np.linalg.matrix_power(reading.Phi, 20) @ reading.z
    later = hk.run(composite, float(reading.since) + 0.4)
    assert z[reading.newest["mass.v"]] == pytest.approx(later.final("mass.v"), rel=1e-9)
    limit = read_linear(hk.Composite(SWINGING, "20 ms", hk.PredictorCorrector(), extrapolation=extrapolation))
    assert abs(limit.Phi - reading.Phi).max() > 1e-3


def test_the_interface_jacobian_of_a_held_pair():
    """A pass of a held pair: f = -400 (s + H v) by v, v = v - H f by f."""
    found = hk.interface_jacobian(hk.Composite(SWINGING, "50 ms", hk.PredictorCorrector()))
    assert found.names == ("mass.v", "spring.f")
    assert np.array(found.matrix) == pytest.approx(np.array([[0.0, 0.05], [-20.0, 0.0]]), abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_sensitivities_are_found_anew_where_they_serve_no_longer(engine):
    """A pair whose stiffness changes a thousandfold halfway: differences follow a step later."""

    class Link:
        def __init__(self):
            self.s, self.t = 0.1, 0.0

        def start(self, t):
            self.t = t

        def step(self, t, h, u):
            self.s = self.s + h * float(u[0, 0])
            self.t = t + h

        def output(self, t):
            return -(10.0 if t < 0.5 else 1e4) * self.s

        def save(self):
            return self.s, self.t

        def restore(self, state):
            self.s, self.t = state

    link = hk.Python(Link, inputs=["v"], outputs=["f"])
    scenario = hk.Scenario({"spring": link, "mass": mass()}, SPRING_MASS)
    run = hk.run(hk.Composite(scenario, "50 ms", hk.PredictorCorrector()), 1, engine=engine)
    assert 40 + 4 <= run.info["counts"]["sweeps"][""]["total"] <= 40 + 6
    assert (
        abs(run.final("mass.v")) < 1e-3
    )  # one step was corrected by the old ones, and its error has decayed


def test_a_step_of_another_length_has_other_sensitivities():
    """Under step control the steps change, and the result is that of the iteration to convergence."""
    made = [
        hk.run(hk.Composite(SWINGING, "20 ms", hk.Adaptive(how, 1e-3), extrapolation="linear"), 0.4).final(
            "mass.v"
        )
        for how in (hk.PredictorCorrector(), hk.Iterate(tolerance=1e-12))
    ]
    assert made[0] == pytest.approx(made[1], abs=1e-6)


def test_a_fixed_number_of_iterations_does_what_it_says():
    """Newton's method corrects; what leads to a tolerance only is refused where there is none."""
    (repeat,) = [
        each
        for _, each in plan_tree(
            hk.Composite(SWINGING, 0.1, hk.Iterate(tolerance=None, accelerate="newton"))
        ).instructions(Repeat)
    ]
    assert repeat.accelerate == Newton()
    assert hk.Iterate(tolerance=None).accelerator is None
    assert pickle.loads(pickle.dumps(hk.Iterate(tolerance=None))).accelerator is None
    for word in ("aitken", "quasi-newton", QuasiNewton(reuse=2)):
        with pytest.raises(hk.ScenarioError, match="leads an iteration to a tolerance, and there is none"):
            hk.Iterate(tolerance=None, accelerate=word)
    with pytest.raises(hk.ScenarioError, match="`at_most` is 1"):
        hk.Iterate(tolerance=None, at_most=1, accelerate="newton")


def test_what_cannot_be_predicted_is_refused():
    for engine in ENGINES:
        with pytest.raises(hk.ScenarioError, match=r"predicts no value of `.*` through Nepce"):
            hk.run(
                hk.Composite(SWINGING, 0.1, hk.PredictorCorrector(), extrapolation=hk.Nepce(-0.1)),
                1,
                engine=engine,
            )
        with pytest.raises(hk.ScenarioError, match="a Jacobian of 1 x 1, and 2 numbers are handed back"):
            hk.run(hk.Composite(SWINGING, 0.1, hk.PredictorCorrector(jacobian=[[0.5]])), 1, engine=engine)
    with pytest.raises(hk.ScenarioError, match="a square matrix"):
        hk.PredictorCorrector(jacobian=[[1.0, 2.0]])
    with pytest.raises(hk.ScenarioError, match="an iteration of an iteration"):
        hk.PredictorCorrector(hk.Iterate())


def test_files_have_it(tmp_path):
    how = hk.PredictorCorrector(hk.GaussSeidel(["mass", "spring"]), jacobian=[[0.5]], falls=0.2)
    hk.write(hk.Composite(SWINGING, 0.1, how), tmp_path / "a.toml")
    assert hk.read(tmp_path / "a.toml").composite.orchestrator == how
    text = (tmp_path / "a.toml").read_text()
    assert 'type = "predictor-corrector"' in text
