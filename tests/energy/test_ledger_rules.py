"""What the rules of the ledger see and miss: heat, exact integrals, orders, and sides without slopes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from energy.test_ledger import BOND, START, C, M, both, mass, nested, pair, spring, stored
from systems import ENGINES, SPRING_MASS

# losses: what is given and not stored is heat

D = 0.7


def heat(v, h, begin, end):
    """Return what a damper takes from lines between two values of each step."""
    return D * h * ((begin**2 + begin * end + end**2) / 3).sum()


def lines(v, kind):
    now, then = v[:-1], v[1:]
    before = np.append(v[0], v[:-2])
    return {
        "held": (now, now),
        "led": (now, 2 * now - before),
        "met": (now, then),
        "implicit": (then, then),
    }[kind]


@pytest.mark.parametrize(
    ("orchestrator", "extrapolation", "kind"),
    [
        (hk.Jacobi(), "hold", "held"),
        (hk.Jacobi(), "linear", "led"),
        (hk.GaussSeidel(["mass", "spring"]), "linear", "met"),
        (hk.Iterate(hk.Jacobi(), 1e-13, 100), "linear", "met"),
        (hk.Iterate(hk.Jacobi(outputs="stale"), 1e-13, 100), "linear", "met"),
        (hk.Jacobi(outputs="stale"), "hold", "held"),
        (hk.Jacobi(outputs="stale"), "linear", "led"),
        (hk.GaussSeidel(["mass", "spring"]), "hold", "implicit"),
        (hk.Iterate(hk.Jacobi(), 1e-13, 100), "hold", "implicit"),
    ],
)
def test_what_a_damper_took_is_not_given(orchestrator, extrapolation, kind):
    run = both(pair(orchestrator, extrapolation, d=D, start="cold"), 5)
    in_spring, in_mass = stored(run)
    v = run["mass.v"].values
    lost = heat(v, 0.2, *lines(v, kind))
    flowed = run.info["bonds"]["joint"]
    assert flowed["taken"] == pytest.approx(in_mass[-1] - in_mass[0], abs=1e-12)
    assert flowed["given"] == pytest.approx(in_spring[0] - in_spring[-1] - lost, abs=1e-12)
    assert lost > 0.5


def damped_power(t):
    """Return the exact work that the spring with its damper does on the mass (van Loan 1978)."""
    A = np.array([[0.0, 1.0], [-C / M, -D / M]])
    P = np.array([[0.0, -C / 2], [-C / 2, -D]])  # x P x = f v
    n = len(A)
    blocks = expm(np.block([[-A.T, P], [np.zeros((n, n)), A]]) * t)
    x0 = np.array(START)
    return x0 @ (blocks[n:, n:].T @ blocks[:n, n:]) @ x0


def test_the_exact_work_is_the_change_of_the_energy_of_the_mass():
    x = expm(np.array([[0.0, 1.0], [-C / M, -D / M]]) * 4.0) @ START
    assert damped_power(4.0) == pytest.approx(0.5 * M * (x[1] ** 2 - START[1] ** 2), rel=1e-12)


@pytest.mark.parametrize(("extrapolation", "order"), [("hold", 1), ("linear", 2)])
@pytest.mark.parametrize("outputs", ["consistent", "stale"])
def test_energies_come_to_the_exact_integrals(outputs, extrapolation, order):
    errors = {"given": [], "taken": []}
    for step in ("0.02", "0.01"):
        flowed = hk.run(pair(hk.Jacobi(outputs=outputs), extrapolation, step, D), 4).info["bonds"]["joint"]
        for side, found in errors.items():
            found.append(abs(flowed[side] - damped_power(4.0)))
    for found in errors.values():
        assert order - 0.25 < np.log2(found[0] / found[1]) < order + 0.6, errors


# how well the ledger sees a side whose power is no line, and no cubic


def swing(h, extrapolation):
    """Return what a mass on an own spring took, less the exact integral under the same forces."""
    A = np.array([[0.0, 1.0, 0.0], [-4.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    outputs = ["v [m/s]", "x [m]", "sum [m.s]"]
    swinging = hk.StateSpace(
        A,
        [[0], [1], [0]],
        [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
        x0=[0.5, 0, 0],
        inputs=["f [N]"],
        outputs=outputs,
    )
    scenario = hk.Scenario({"spring": spring(), "mass": swinging}, SPRING_MASS, bonds=BOND)
    run = hk.run(hk.Composite(scenario, str(h), hk.Jacobi(), extrapolation, "cold"), 3, ledger=True)
    f, x, area = (run[name].values for name in ("spring.f", "mass.x", "mass.sum"))
    begin, end = lines(f, "held" if extrapolation == "hold" else "led")
    exact = (end * x[1:] - begin * x[:-1] - (end - begin) / h * np.diff(area)).sum()
    return run.info["bonds"]["joint"]["taken"] - exact


@pytest.mark.parametrize(("extrapolation", "order"), [("hold", 2), ("linear", 4)])
def test_the_rule_of_the_ledger_is_an_order_better_than_the_coupling(extrapolation, order):
    """A trapezoid, and Simpson's rule on a cubic, of a power that swings: second and fourth order."""
    errors = [abs(swing(h, extrapolation)) for h in (0.025, 0.0125, 0.00625)]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert slopes == pytest.approx([order, order], abs=0.35), errors


@pytest.mark.parametrize(
    ("extrapolation", "order"), [("hold", 1), ("linear", 2), (hk.Hermite(), 2), ("quadratic", 3)], ids=str
)
def test_the_residual_power_falls_with_the_order_of_the_input(extrapolation, order):
    """The largest rate at which energy is gained: inputs of degree q err by H^(q+1)."""
    rates = []
    for h in (0.05, 0.025, 0.0125):
        run = hk.run(pair(hk.Jacobi(), extrapolation, str(h), D), 4, ledger=True)
        rates.append(np.abs(np.diff(run["joint.gained"].values)).max() / h)
    slopes = np.log2(np.array(rates[:-1]) / rates[1:])
    print(extrapolation, rates, slopes)
    assert slopes == pytest.approx([order, order], abs=0.2)


# black boxes and levels


class Box:
    """v' = f / M, exactly under polynomials; a black box without slopes, which cannot roll back."""

    inputs, outputs = ("f [N]",), ("v [m/s]",)

    def start(self, t):
        self.v = START[1]

    def output(self, t):
        return [self.v]

    def step(self, t, h, u):
        self.v += sum(float(c[0]) * h ** (k + 1) / (k + 1) for k, c in enumerate(u)) / M


@pytest.mark.parametrize("orchestrator", [hk.Jacobi(), hk.GaussSeidel(), hk.Multirate({"mass": 2})], ids=str)
def test_a_black_box_under_held_inputs(orchestrator):
    models = {"spring": spring(), "mass": hk.Python(Box)}
    run = both(hk.Composite(hk.Scenario(models, SPRING_MASS, bonds=BOND), "0.2", orchestrator), 3)
    in_spring, in_mass = stored(run)
    total = in_spring + in_mass
    assert run["joint.gained"].values == pytest.approx(total - total[0], abs=1e-13)


def missed(signal, h, factor):
    """Return what a line in place of a parabola misses: factor h^2/24 (end^2 - begin^2) of each step's input.

    y' = k u with u = a + b s is k b/2 (s^2 - s h) off its chord; times u, from 0 to h, that is the sum.
    It is of the order of linear inputs, and almost a telescope: it does not grow with time.
    """
    begin, end = lines(signal, "led")
    return factor * h * h / 24 * (end**2 - begin**2).sum()


def test_a_black_box_under_lines():
    """It tells no slopes: the ledger takes its output for a line, and misses what a line does."""
    models = {"spring": spring(), "mass": hk.Python(Box)}
    scenario = hk.Scenario(models, SPRING_MASS, bonds=BOND)
    composite = hk.Composite(scenario, "0.2", hk.Jacobi(), "linear", "cold")
    run = both(composite, 5)
    in_spring, in_mass = stored(run)
    flowed = run.info["bonds"]["joint"]
    off = missed(run["spring.f"].values, 0.2, 1 / M)
    assert abs(off) > 1e-4
    assert flowed["given"] == pytest.approx(in_spring[0] - in_spring[-1], abs=1e-13)
    assert flowed["taken"] == pytest.approx(in_mass[-1] - in_mass[0] + off, abs=1e-13)


@pytest.mark.parametrize("extrapolation", [hk.Polynomial(1), hk.Hermite()], ids=str)
@pytest.mark.parametrize("step", ["0.4", "0.2", "0.1", "0.04"])
def test_a_level_keeps_the_account_of_its_border(step, extrapolation):
    """It does so at its own steps, longer or shorter, and knows the slopes of what is inside."""
    run = both(nested(extrapolation, step, start="cold"), 4.8)
    in_spring, in_mass = stored(run, "axle.")
    flowed = run.info["bonds"]["joint"]
    assert flowed["given"] == pytest.approx(in_spring[0] - in_spring[-1], abs=1e-13)
    assert flowed["taken"] == pytest.approx(in_mass[-1] - in_mass[0], abs=1e-13)


@pytest.mark.parametrize("extrapolation", ["hold", "linear", hk.Hermite()], ids=str)
def test_a_level_in_a_level(extrapolation):
    """The account goes as deep as the simulator whose ports they are, through gears and units on the way."""
    inner = hk.Scenario(
        {"spring": spring()},
        [hk.Connection("v", "spring.v", gain=2.0), hk.Connection("spring.f", "f", gain=3.0)],
        ["v [m/s]"],
        ["f [N]"],
    )
    axle = hk.Scenario(
        {"inner": hk.Composite(inner, "0.1")},
        [("v", "inner.v"), ("inner.f", "f")],
        ["v [km/h]"],
        ["f [kN]"],
    )
    scenario = hk.Scenario(
        {"axle": hk.Composite(axle, "0.05"), "mass": mass()},
        {"mass.f": "axle.f", "axle.v": "mass.v"},
        bonds={"joint": hk.Bond("mass.f", "axle.v")},
    )
    run = both(hk.Composite(scenario, "0.2", hk.Jacobi(), extrapolation), 2)
    in_spring, in_mass = stored(run, "axle.inner.")
    flowed = run.info["bonds"]["joint"]
    assert flowed["given"] == pytest.approx(3.0 / 2.0 * (in_spring[0] - in_spring[-1]), abs=1e-12)
    assert flowed["taken"] == pytest.approx(in_mass[-1] - in_mass[0], abs=1e-12)
    assert np.ptp(in_spring) > 0.1


def test_ports_of_different_simulators_in_a_level():
    """The account is kept at the steps outside, with a line for the output: it misses what a line does."""
    meter = hk.StateSpace([[0]], [[1]], [[1]], x0=START[:1], inputs=["v [m/s]"], outputs=["s [m]"])
    law = hk.StateSpace(D=[[-C]], inputs=["s [m]"], outputs=["f [N]"])
    inside = hk.Scenario({"meter": meter, "law": law}, {"law.s": "meter.s"})
    scenario = hk.Scenario(
        {"axle": hk.Composite(inside, "0.1", start="cold"), "mass": mass()},
        {"mass.f": "axle.law.f", "axle.meter.v": "mass.v"},
        bonds={"joint": hk.Bond("mass.f", "axle.meter.v")},
    )
    run = both(hk.Composite(scenario, "0.2", hk.Jacobi(), "linear", "cold"), 5)
    s = run["axle.meter.s"].values
    off = missed(run["mass.v"].values, 0.2, -C)
    assert abs(off) > 1e-4
    given = 0.5 * C * (s[0] ** 2 - s[-1] ** 2)
    assert run.info["bonds"]["joint"]["given"] == pytest.approx(given + off, abs=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rate", [1, 4])
def test_held_inputs_of_steps_that_nobody_reads_count_as_they_were(rate: int, engine: str) -> None:
    """A ramp v = t is held at each of the steps, the output stays 1: the work is the sum of v h."""
    inside = hk.Scenario(
        {
            "fast": hk.StateSpace([[0]], [[0]], [[1]], x0=[1], inputs=["u"], outputs=["y"]),
            "slow": hk.StateSpace([[0]], [[0]], [[1]], x0=[1], inputs=["u"], outputs=["y"]),
        },
        [hk.Connection("in", "fast.u", hk.Hold()), ("fast.y", "slow.u"), ("fast.y", "out")],
        [hk.Port("in", "", 0.0)],
        ["out"],
    )
    level = hk.Composite(inside, "0.2", hk.Multirate({"fast": rate, "slow": 1}), start="cold")
    ramp = hk.StateSpace([[0, 1], [0, 0]], [[0], [0]], [[1, 0]], x0=[0, 1], inputs=["f"], outputs=["v"])
    wires = {"level.in": "ramp.v", "ramp.f": "level.out"}
    bond = hk.Bond("ramp.f", "level.in", "")
    around = hk.Scenario({"level": level, "ramp": ramp}, wires, bonds={"joint": bond})
    run = hk.run(hk.Composite(around, "0.2", extrapolation="linear"), 2, engine=engine)
    h = 0.2 / rate
    assert run.info["bonds"]["joint"]["given"] == pytest.approx(
        sum(k * h * h for k in range(10 * rate)), rel=1e-12
    )
