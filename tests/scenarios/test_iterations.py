"""How many sweeps an iteration needs: loops that settle slowly, and loops that plain sweeps drive apart.

All outputs are stale, so that nothing but the iteration closes the loops.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag, expm

import hocket
from hocket import Composite, ConvergenceError, GaussSeidel, Iterate, Jacobi, Scenario, StateSpace
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import iteration_convergence
from hocket.plan.accelerators import Aitken, Newton, QuasiNewton, Relax
from systems import ENGINES, TWO

TOLERANCE = 1e-10
STEP, STEPS = 0.1, 30
END = STEP * STEPS
LED = {
    "plain": None,
    "relax": Relax(0.3),
    "aitken": Aitken(),
    "quasi-newton": QuasiNewton(),
    "newton": Newton(),
}


def two_masses(ck, dk, m1=None):
    """Glumac and Kovacic's two masses with a stiffer spring and damper between them."""
    p = {**TWO["parameters"], "ck": ck, "dk": dk, **({"m1": m1} if m1 else {})}
    x0 = TWO["conventions"]["x0 two mass"]
    one = StateSpace(
        A=[[0, 1], [-(p["c1"] + ck) / p["m1"], -(p["d1"] + dk) / p["m1"]]],
        B=[[0, 0], [ck / p["m1"], dk / p["m1"]]],
        C=[[ck, dk], [1, 0]],
        D=[[-ck, -dk], [0, 0]],
        x0=x0[:2],
        inputs=["x2", "v2"],
        outputs=["F", "x"],
    )
    two = StateSpace(
        A=[[0, 1], [-p["c2"] / p["m2"], -p["d2"] / p["m2"]]],
        B=[[0], [1 / p["m2"]]],
        C=np.eye(2),
        x0=x0[2:],
        inputs=["F"],
        outputs=["x", "v"],
    )
    return Scenario({"one": one, "two": two}, {"one.x2": "two.x", "one.v2": "two.v", "two.F": "one.F"})


def exact_two_masses(ck, dk, m1=None):
    """x1, x2 after the run, from M z'' + D z' + C z = 0 of both."""
    p = {**TWO["parameters"], **({"m1": m1} if m1 else {})}
    masses = np.array([[p["m1"]], [p["m2"]]])
    stiff = np.array([[p["c1"] + ck, -ck], [-ck, p["c2"] + ck]]) / masses
    damping = np.array([[p["d1"] + dk, -dk], [-dk, p["d2"] + dk]]) / masses
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-stiff, -damping]])
    x1, v1, x2, v2 = TWO["conventions"]["x0 two mass"]
    return (expm(END * A) @ [x1, x2, v1, v2])[:2]


M1, M2 = 1.0, 2.0
SPRINGS, DAMPERS = (1.5, 2.5), (0.2, 0.3)


def joined_masses():
    """Two bodies that are one: m1 a = f1 - pull and pull = m2 a - f2, with f = -c x - d v.

    The first answers a force with an acceleration, the second an acceleration with the force it takes. Once
    around, an error of the pull becomes -m2 / m1 = -2 of itself, however short the step: the added mass of
    Causin, Gerbeau & Nobile (2005).
    """
    (c1, c2), (d1, d2) = SPRINGS, DAMPERS
    one = StateSpace(
        A=[[0, 1], [-c1 / M1, -d1 / M1]],
        B=[[0], [-1 / M1]],
        C=[[-c1 / M1, -d1 / M1], [1, 0]],
        D=[[-1 / M1], [0]],
        x0=[1, 0],
        inputs=["pull"],
        outputs=["a", "x"],
    )
    two = StateSpace(
        A=[[0, 1], [0, 0]],
        B=[[0], [1]],
        C=[[c2, d2], [1, 0]],
        D=[[M2], [0]],
        x0=[1, 0],
        inputs=["a"],
        outputs=["pull", "x"],
    )
    return Scenario({"one": one, "two": two}, {"one.pull": "two.pull", "two.a": "one.a"})


def exact_joined_masses():
    """(m1 + m2) x'' = -(c1 + c2) x - (d1 + d2) x', twice."""
    A = np.array([[0, 1], [-sum(SPRINGS) / (M1 + M2), -sum(DAMPERS) / (M1 + M2)]])
    return np.repeat((expm(END * A) @ [1, 0])[0], 2)


SYSTEMS = {
    "two masses, ck = 25, dk = 50": (two_masses(25, 50), exact_two_masses(25, 50)),
    "two masses, ck = 500, dk = 1000": (two_masses(500, 1000), exact_two_masses(500, 1000)),
    "the same, m1 = 40": (two_masses(500, 1000, m1=40), exact_two_masses(500, 1000, m1=40)),
    "joined masses, m2 / m1 = 2": (joined_masses(), exact_joined_masses()),
}
INNERS = {"Gauss-Seidel": GaussSeidel(["one", "two"], outputs="stale"), "Jacobi": Jacobi(outputs="stale")}


def iterated(scenario, accelerate, inner="Gauss-Seidel", at_most=200, tolerance=TOLERANCE):
    return Composite(scenario, STEP, Iterate(INNERS[inner], tolerance, at_most, accelerate), "linear")


def plain_contraction(composite):
    """The contraction factor of plain iteration, as the linear reading tells it."""
    (found,) = iteration_convergence(read_linear(composite))
    return found.plain


def parts(scenario):
    """E, G0, G1 with x' = E x + G0 u + G1 u' for inputs in a straight line, C, D of all, and u = L y."""
    models = list(scenario.models.values())
    A, B, C, D = (block_diag(*(getattr(model, name) for model in models)) for name in "ABCD")
    states, inputs = B.shape
    big = np.zeros((states + 2 * inputs,) * 2)
    big[:states, : states + inputs] = np.hstack([A, B])
    big[states:-inputs, -inputs:] = np.eye(inputs) / STEP
    grown = expm(STEP * big)[:states]
    G1 = grown[:, -inputs:]
    targets = [f"{name}.{port.name}" for name, model in scenario.models.items() for port in model.inputs]
    sources = [f"{name}.{port.name}" for name, model in scenario.models.items() for port in model.outputs]
    L = np.zeros((len(targets), len(sources)))
    for wire in scenario.connections:
        L[targets.index(wire.target), sources.index(wire.source)] = 1.0
    return grown[:, :states], grown[:, states:-inputs] - G1, G1, C, D, L


def at_once(scenario):
    """The states after the run if each step is solved at once: y' = C x' + D u', u = L y before and after."""
    E, G0, G1, C, D, L = parts(scenario)
    W = np.linalg.solve(np.eye(len(L)) - L @ D, L @ C)
    x = np.concatenate([model.x0 for model in scenario.models.values()])
    once = np.linalg.solve(np.eye(len(x)) - G1 @ W, E + G0 @ W)
    return np.linalg.matrix_power(once, STEPS) @ x


def plain_factor(scenario):
    """The spectral radius of a Jacobi sweep: what an error of y' at the end of the step becomes."""
    _, _, G1, C, D, L = parts(scenario)
    return np.abs(np.linalg.eigvals((C @ G1 + D) @ L)).max()


def counted(composite, stop=END, engine="native"):
    """The sweeps of a run, and the run; None if they do not settle."""
    try:
        run = hocket.run(composite, stop, engine=engine)
    except ConvergenceError:
        return None, None
    return run.info["counts"]["sweeps"][""], run


def all_counts():
    """The sweeps and the final positions of every system, order and accelerator."""
    found = {}
    for name, (scenario, _) in SYSTEMS.items():
        for inner in INNERS:
            for led, accelerate in LED.items():
                counts, run = counted(iterated(scenario, accelerate, inner))
                found[name, inner, led] = counts, run and [run.final("one.x"), run.final("two.x")]
    return found


def show_counts(found):
    """Print the sweeps per step."""
    print(f"\nsweeps per step, mean (most), to {TOLERANCE:g}")
    print(f"  {'':<46}{'factor':>8}" + "".join(f"{name:>14}" for name in LED))
    for name, (scenario, _) in SYSTEMS.items():
        for inner in INNERS:
            factor = plain_contraction(iterated(scenario, None, inner))
            cells = [found[name, inner, led][0] for led in LED]
            told = [f"{c['total'] / c['repeats']:.1f} ({c['most']})" if c else "no end" for c in cells]
            print(f"  {name + ', ' + inner:<46}{factor:>8.3f}" + "".join(f"{cell:>14}" for cell in told))


@pytest.fixture(scope="module")
def found():
    counts = all_counts()
    show_counts(counts)
    return counts


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("inner", INNERS)
def test_plain_sweeps_end_if_the_factor_is_below_one(found, inner, name):
    counts, _ = found[name, inner, "plain"]
    assert (counts is not None) == (plain_factor(SYSTEMS[name][0]) < 1.0)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("led", ["relax", "aitken", "quasi-newton", "newton"])
def test_what_is_led_ends_where_all_is_solved_at_once(found, name, led):
    """On the solution of the implicit step, found here by matrices; Aitken has one factor for one number."""
    for inner in INNERS if led != "aitken" else ["Gauss-Seidel"]:
        counts, x = found[name, inner, led]
        assert counts["repeats"] == STEPS
        assert x == pytest.approx(at_once(SYSTEMS[name][0])[::2], abs=1e-8)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_line_through_two_sweeps_is_right_where_all_is_linear(found, name):
    """One number: extrapolate, look, go by the line between the two, look again."""
    for led in ("aitken", "quasi-newton"):
        assert found[name, "Gauss-Seidel", led][0]["most"] == 4
    assert found[name, "Jacobi", "quasi-newton"][0]["most"] <= 5


@pytest.mark.parametrize("led", ["relax", "aitken", "quasi-newton", "newton"])
def test_both_engines_count_the_sweeps_of_joined_masses_alike(found, led):
    name = "joined masses, m2 / m1 = 2"
    counts, run = counted(iterated(joined_masses(), LED[led]), engine="interpreter")
    assert (counts, [run.final("one.x"), run.final("two.x")]) == found[name, "Gauss-Seidel", led]


@pytest.mark.parametrize("name", SYSTEMS)
def test_shorter_steps_lead_to_the_solution_of_the_equations(name):
    """With order 2: straight lines."""
    scenario, exact = SYSTEMS[name]
    errors = []
    for step in (0.025, 0.0125):
        run = hocket.run(Composite(scenario, step, Iterate(INNERS["Gauss-Seidel"], TOLERANCE), "linear"), END)
        errors.append(np.abs(np.array([run.final("one.x"), run.final("two.x")]) - exact).max())
    print(f"{name}: error {errors[0]:.1e}, {errors[1]:.1e} with steps of 0.025, 0.0125 s")
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_linear_reading_tells_the_factor(name):
    scenario, _ = SYSTEMS[name]
    for inner, power in (("Jacobi", 1), ("Gauss-Seidel", 2)):
        factor = plain_contraction(iterated(scenario, None, inner))
        assert factor == pytest.approx(plain_factor(scenario) ** power, rel=1e-6)


@pytest.mark.parametrize("step", [0.1, 0.001])
def test_joined_masses_are_driven_apart_however_short_the_step(step):
    composite = Composite(joined_masses(), step, Iterate(INNERS["Gauss-Seidel"], 1e-8, 30, None), "linear")
    factor = plain_contraction(composite)
    assert factor == pytest.approx(2.0, rel=0.1 * step)
    with pytest.raises(ConvergenceError, match=r"of `two\.pull` does not contract in 30 iterations"):
        hocket.run(composite, 1)


def test_the_best_relaxation_of_a_single_number():
    """1 - w (1 + 2) = 0: the third sweep is right, and the fourth sees it."""
    counts, _ = counted(iterated(joined_masses(), Relax(1.0 / 2.994114948660318)))
    assert counts["most"] <= 5


EIGENVALUES = (-3.0, -2.0, -1.2, -0.8, 0.3, 0.5, 0.7, 0.9)
RATES = np.linspace(0.5, 4.0, 8)


def eight(seed=8):
    """y = x + K y with x' = -rate x; K has the eigenvalues above, rotated. Returns the scenario, K and x0."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    K, x0 = Q @ np.diag(EIGENVALUES) @ Q.T, rng.normal(size=8)
    inputs, outputs = [f"u{i}" for i in range(8)], [f"y{i}" for i in range(8)]
    zero = np.zeros((8, 8))
    one = StateSpace(A=-np.diag(RATES), B=zero, C=np.eye(8), D=K, x0=x0, inputs=inputs, outputs=outputs)
    two = StateSpace(A=-np.eye(8), B=zero, C=zero, D=np.eye(8), x0=0 * x0, inputs=inputs, outputs=outputs)
    wires = {f"one.u{i}": f"two.y{i}" for i in range(8)} | {f"two.u{i}": f"one.y{i}" for i in range(8)}
    return Scenario({"one": one, "two": two}, wires), K, x0


AT_MOST = 500


def sweeps_of_eight(accelerate, steps, seed=8):
    """The sweeps, at_most for what does not settle, and the largest error of what does."""
    scenario, K, x0 = eight(seed)
    counts, run = counted(iterated(scenario, accelerate, at_most=AT_MOST, tolerance=1e-8), STEP * steps)
    if counts is None:
        return AT_MOST, None
    exact = np.linalg.solve(np.eye(8) - K, x0 * np.exp(-RATES * STEP * steps))
    return counts["total"], max(abs(run.final(f"one.y{i}") - exact[i]) for i in range(8))


def show_eight():
    """Print the sweeps over one and over ten steps."""
    print(f"\neight numbers, factor 3, to 1e-8 (at most {AT_MOST} in a step)")
    print(f"  {'':<36}{'one step':>10}{'ten steps':>11}{'error':>10}")
    for led in (None, Relax(0.4), Aitken(), QuasiNewton(reuse=0), QuasiNewton(), Newton()):
        (first, _), (ten, error) = sweeps_of_eight(led, 1), sweeps_of_eight(led, 10)
        ends = ["no end", "", ""] if error is None else [str(first), str(ten), f"{error:.1e}"]
        print(f"  {led or 'plain'!s:<36}{ends[0]:>10}{ends[1]:>11}{ends[2]:>10}")


def test_the_factor_of_eight_numbers_is_told():
    show_eight()
    factor = plain_contraction(iterated(eight()[0], None))
    assert factor == pytest.approx(3.0, rel=1e-6)
    assert sweeps_of_eight(None, 1) == (AT_MOST, None)


@pytest.mark.parametrize("seed", [8, 9, 10])
@pytest.mark.parametrize("steps", [1, 10])
def test_what_learns_needs_at_most_half_the_sweeps_of_aitken(steps, seed):
    aitken, _ = sweeps_of_eight(Aitken(), steps, seed)
    fresh, fresh_error = sweeps_of_eight(QuasiNewton(reuse=0), steps, seed)
    learned, error = sweeps_of_eight(QuasiNewton(), steps, seed)
    print(f"seed {seed}, {steps} steps: Aitken {aitken}, IQN-ILS {fresh}, with columns kept {learned}")
    assert 2 * fresh <= aitken
    assert 2 * learned <= aitken
    assert learned <= fresh
    assert max(error, fresh_error) < 1e-7


def test_columns_of_earlier_steps_are_worth_keeping():
    """Eight directions are learned in one step; later ones need no more than to look."""
    fresh, _ = sweeps_of_eight(QuasiNewton(reuse=0), 10)
    learned, _ = sweeps_of_eight(QuasiNewton(), 10)
    assert fresh >= 10 * 10
    assert learned <= 11 + 9 * 5


@pytest.mark.parametrize("accelerate", [Aitken(), QuasiNewton(), Newton()], ids=str)
def test_both_engines_count_alike(accelerate):
    scenario, _, _ = eight()
    composite = iterated(scenario, accelerate, at_most=AT_MOST, tolerance=1e-8)
    (one, first), (other, second) = (counted(composite, 5 * STEP, engine) for engine in ENGINES)
    assert one == other
    assert [first.final(f"one.y{i}") for i in range(8)] == [second.final(f"one.y{i}") for i in range(8)]
