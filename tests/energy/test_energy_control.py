"""Steps by energy: what bonds gain stays below the tolerance, and steps are spent where energy is made."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from energy.systems import quarter_car
from hocket import Adaptive, Bond, Composite, GaussSeidel, Iterate, Jacobi, Python, Scenario, StateSpace
from hocket.engine.reference.step_control import MacroStepController
from hocket.files import toml
from hocket.planning.planner import plan_tree
from systems import ENGINES, SPRING_MASS, mass, spring

BONDS = {"joint": Bond("mass.f", "spring.v")}


def pair(orchestrator, extrapolation="linear", models=None):
    scenario = Scenario(models or {"spring": spring(), "mass": mass()}, SPRING_MASS, bonds=BONDS)
    return Composite(scenario, "0.5", orchestrator, extrapolation)


def gains(run, *names):
    """Return how long each step was, and what all bonds gained in it, in sum of sizes."""
    t = run[f"{names[0]}.gained"].t
    return np.diff(t), sum(np.abs(np.diff(run[f"{name}.gained"].values)) for name in names)


def counts(run):
    return run.info["counts"]["adapted"][""]


# a spring and a mass: nothing is lost, so what is gained shows in the energy


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-3])
@pytest.mark.parametrize("extrapolation", ["hold", "linear", "quadratic"])
@pytest.mark.parametrize(
    "inner", [Jacobi(), GaussSeidel(outputs="stale")], ids=lambda way: type(way).__name__
)
def test_no_step_gains_more_than_the_tolerance(inner, extrapolation, tolerance):
    run = hk.run(
        pair(Adaptive(inner, tolerance, "energy", per="unit", first=1), extrapolation), 10, ledger=True
    )
    h, gained = gains(run, "joint")
    assert len(h) == counts(run)["accepted"]
    assert (gained <= tolerance * h * (1 + 1e-9) + 1e-15).all()
    assert gained.sum() <= tolerance * 10
    E = 0.5 * (run["spring.f"].values ** 2 + run["mass.v"].values ** 2)
    assert np.abs(E - E[0]).max() <= tolerance * 10
    assert gained.sum() > 0.01 * tolerance * 10, "the steps are far too short"


def test_corrected_inputs():
    """What the last step missed is handed on whole, however short the next: such steps are passed."""
    way = Adaptive(Jacobi(), 1e-2, "energy", per="unit", first=1)
    run = hk.run(pair(way, hk.BalanceCorrection()), 10, ledger=True)
    assert gains(run, "joint")[1].sum() <= 1e-2 * 10
    assert counts(run)["passed"] > 0
    with pytest.raises(hk.ConvergenceError, match="smallest step"):
        hk.run(pair(replace(way, on_jump="stop"), hk.BalanceCorrection()), 10)


def test_per_step():
    way = Adaptive(Jacobi(), 1e-4, "energy", per="step", first=1)
    run = hk.run(pair(way), 10, ledger=True)
    assert gains(run, "joint")[1].max() <= 1e-4 * (1 + 1e-9)
    assert gains(run, "joint")[1].max() > 1e-5


def test_energy_follows_the_tolerance():
    """Per unit of time what is gained is in proportion to the tolerance, over three decades."""
    tolerances = np.array([1e-2, 1e-3, 1e-4, 1e-5])
    drifts = []
    for tolerance in tolerances:
        run = hk.run(pair(Adaptive(Jacobi(), tolerance, "energy", per="unit")), 20, ledger=True)
        drifts.append(gains(run, "joint")[1].sum())
    slope = np.polyfit(np.log(tolerances), np.log(drifts), 1)[0]
    print(f"slope {slope:.3f}, of the tolerance {drifts / tolerances / 20}")
    assert 0.8 < slope < 1.2


@pytest.mark.parametrize("inner", [Jacobi(), Iterate(Jacobi(), 1e-10), hk.Multirate({"spring": 2})])
def test_both_engines_agree_to_the_bit(inner):
    composite = pair(Adaptive(inner, 1e-2, "energy", per="unit", first=1))
    native, plain = (hk.run(composite, 5, ledger=True, engine=engine) for engine in ENGINES)
    assert [native.info["engine"], plain.info["engine"]] == list(ENGINES)
    assert counts(plain) == counts(native)
    for port in plain.ports:
        assert np.array_equal(plain[port].t, native[port].t)
        assert np.array_equal(plain[port].values, native[port].values), port


def test_the_plan_says_how():
    text = str(plan_tree(pair(Adaptive(Jacobi(), 1e-2, "energy", per="unit"))).plan)
    assert "an error of 0.01 W" in text
    assert "energy" in text or "bonds" in text


# what is left out follows from the estimate


def test_defaults_by_energy():
    way = Adaptive(estimate="energy")
    assert (way.inner, way.first) == (GaussSeidel(), Fraction(1, 1024))
    assert (Adaptive().inner, Adaptive().first) == (Jacobi(), Fraction(1, 64))
    assert Adaptive(Jacobi(), estimate="energy", first="1/8").inner == Jacobi()
    assert Adaptive(estimate="energy", quantum="1/40").first == Fraction(1, 40)  # no multiple of 1/1024


@pytest.mark.parametrize("way", [Adaptive(estimate="energy"), Adaptive(Jacobi(), estimate="energy")], ids=str)
def test_files_keep_the_algorithm_inside(way):
    assert toml.loads(toml.dumps(pair(way))).composite.orchestrator == way


@pytest.mark.parametrize("order", [["spring", "mass"], ["mass", "spring"]])
def test_gauss_seidel_gains_a_total_derivative(order):
    """To leading order plus or minus (e f)' H^2 / 2, by Jacobi (e f' - f e') H^2 / 2: theory, section 8.1."""
    H, end = 1e-3, 2
    t = np.arange(0, end, H) + H / 2
    s, v = np.cos(t) + 0.5 * np.sin(t), 0.5 * np.cos(t) - np.sin(t)  # s' = v, v' = -s; e = -s, f = v
    for way, law in (
        (GaussSeidel(order), (1 if order[0] == "spring" else -1) * (s * s - v * v)),
        (Jacobi(), s * s + v * v),
    ):
        run = hk.run(pair(way, "hold").with_changes(step=Fraction(1, 1000)), end, ledger=True)
        assert np.diff(run["joint.gained"].values) == pytest.approx(law * H * H / 2, abs=0.01 * H * H)


def test_two_equal_steps_stand_for_a_whole_and_a_cut_one():
    def shares(estimate, *lefts):
        (adapt,) = plan_tree(pair(Adaptive(estimate=estimate))).plan.step
        controller = MacroStepController(adapt.control, 2**22, 0)
        controller.wanted = 300 * controller.quantum
        return [controller.share_out(left * controller.quantum) / controller.quantum for left in lefts]

    assert shares("energy", 250, 300, 500, 501, 600, 601) == [250, 300, 250, 251, 300, 300]
    assert shares("defect", 250, 300, 500, 600) == [250, 300, 300, 300]


# who cannot roll back


class Mass:
    """v' = f, exactly for lines; it cannot roll back."""

    inputs, outputs = ("f [N]",), ("v [m/s]",)

    def start(self, t):
        self.v = 0.5

    def output(self, t):
        return [self.v]

    def step(self, t, h, u):
        self.v += sum(float(c[0]) * h ** (k + 1) / (k + 1) for k, c in enumerate(u))


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_needs_to_go_back(engine):
    stuck = {"spring": spring(), "mass": Python(Mass)}
    way = Adaptive(Jacobi(), 1e-2, "energy", per="unit", first="1/64")
    run = hk.run(pair(way, models=stuck), 10, ledger=True, engine=engine)
    assert counts(run)["rejected"] == 0
    assert "cannot roll back" in " ".join(run.info["notes"])
    h, gained = gains(run, "joint")
    assert gained.sum() <= 1e-2 * 10
    E = 0.5 * (run["spring.f"].values ** 2 + run["mass.v"].values ** 2)
    assert np.abs(E - E[0]).max() <= 1e-2 * 10
    assert len(set(h.round(12))) > 3


def test_going_back_is_refused_where_nobody_can():
    way = Adaptive(Jacobi(), 1e-2, "energy", per="unit", rejects=True)
    with pytest.raises(hk.ScenarioError, match=r"`mass` cannot roll back"):
        plan_tree(pair(way, models={"spring": spring(), "mass": Python(Mass)}))


def test_rejects_may_be_left_out():
    run = hk.run(pair(Adaptive(Jacobi(), 1e-2, "energy", per="unit", rejects=False)), 10, ledger=True)
    assert counts(run)["rejected"] == 0
    assert gains(run, "joint")[1].sum() <= 1e-2 * 10


# what is refused


def test_a_level_without_bonds():
    scenario = Scenario({"spring": spring(), "mass": mass()}, SPRING_MASS)
    with pytest.raises(hk.ScenarioError, match=r"without bonds") as caught:
        hk.run(Composite(scenario, "0.5", Adaptive(Jacobi(), 1e-2, "energy", per="unit")), 1)
    assert "bonds" in caught.value.faults[0].expected
    assert "defect" in str(caught.value)


def test_bonds_of_another_level_do_not_count():
    plain = Scenario({"spring": spring(), "mass": mass()}, SPRING_MASS)
    inner = Composite(plain, "0.5", Adaptive(Jacobi(), 1e-2, "energy", per="unit"))
    outer = Scenario({"inner": inner, "spring": spring(), "mass": mass()}, SPRING_MASS, bonds=BONDS)
    with pytest.raises(hk.ScenarioError, match=r"without bonds(.|\n)*inner"):
        hk.run(Composite(outer, "0.5"), 1)


def test_a_level_inside_controls_its_own_bonds():
    controlled = pair(Adaptive(Jacobi(), 1e-2, "energy", per="unit", first=1))
    outer = Scenario({"axle": controlled, "spring": spring(), "mass": mass()}, SPRING_MASS, bonds=BONDS)
    run = hk.run(Composite(outer, "0.5", Jacobi(), "linear"), 10, ledger=True)
    h, gained = gains(run, "axle.joint")
    assert (gained <= 1e-2 * h * (1 + 1e-9)).all()
    assert run.info["counts"]["adapted"]["axle"]["rejected"] >= 1


# a quarter of a car over a short bump in a long drive

WHEEL, BODY, TYRE, SPRING, DAMPER = 40.0, 300.0, 160e3, 16e3, 1.2e3
HEIGHT, PEAK, DRIVE = 0.05, 0.05, 20
"""Of the bump in m, when its top is reached in s, and how long the drive is."""
FALL = 1 / PEAK
RISE = HEIGHT * np.e * FALL
"""The road is RISE t exp(-FALL t): z'' = -2 FALL z' - FALL^2 z, so that the whole is linear."""
WHOLE = np.array(
    [
        [0, -1, 0, 0, 0, 1],
        [TYRE / WHEEL, -DAMPER / WHEEL, -SPRING / WHEEL, DAMPER / WHEEL, 0, 0],
        [0, 1, 0, -1, 0, 0],
        [0, DAMPER / BODY, SPRING / BODY, -DAMPER / BODY, 0, 0],
        [0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, -(FALL**2), -2 * FALL],
    ]
)
"""Of tyre, wheel's speed, suspension, body's speed; height of the road and its rise."""
PORTS = ("wheel.tyre", "wheel.v", "suspension.e", "body.v")


def car(orchestrator, step, extrapolation="linear"):
    wheel = StateSpace(
        [[0, -1, 0, 1], [TYRE / WHEEL, 0, 0, 0], [0, 0, 0, 1], [0, 0, -(FALL**2), -2 * FALL]],
        [[0], [-1 / WHEEL], [0], [0]],
        [[0, 1, 0, 0], [1, 0, 0, 0]],
        x0=[0, 0, 0, RISE],
        inputs=["F [N]"],
        outputs=["v [m/s]", "tyre [m]"],
    )
    return assembled(wheel, orchestrator, step, extrapolation)


def assembled(wheel, orchestrator, step, extrapolation):
    scenario = quarter_car(WHEEL, BODY, TYRE, SPRING, DAMPER).scenario()
    models = scenario.models | {"wheel": wheel}
    return Composite(scenario.with_models(models), step, orchestrator, extrapolation)


def largest(run, expected):
    """Return the largest error of a port, as a part of its largest value."""
    return max(
        np.abs(run[port].values - expected[:, k]).max() / np.abs(expected[:, k]).max()
        for k, port in enumerate(PORTS)
    )


def true_motion(t):
    rows, known = [np.array([0, 0, 0, 0, 0, RISE])], {}
    for h in np.diff(t).round(14):
        known[h] = known[h] if h in known else expm(WHOLE * h)
        rows.append(known[h] @ rows[-1])
    return np.array(rows)


def error(run):
    return largest(run, true_motion(run[PORTS[0]].t))


@cache
def fixed_error(inner, per_second, extrapolation):
    return error(hk.run(car(inner, Fraction(1, per_second), extrapolation), DRIVE))


def compared(inner, tolerance, extrapolation, rejects):
    """Return both errors at equal work, and what the bonds gained; steps that are taken back are work too."""
    way = Adaptive(inner, tolerance, "energy", per="unit", first="1/1024", rejects=rejects)
    run = hk.run(car(way, "20 ms", extrapolation), DRIVE, ledger=True)
    steps = counts(run)["accepted"] + counts(run)["rejected"]
    per_second = -(-steps // DRIVE)  # the fixed step may do a little more
    ours, theirs = error(run), fixed_error(inner, per_second, extrapolation)
    total = gains(run, "axle", "top")[1].sum()
    print(
        f"{type(inner).__name__}, {extrapolation}, {tolerance:g} W, rejects {rejects}: {3 * steps} steps,"
        f" error {ours:.2e}; fixed {3 * per_second * DRIVE}, {theirs:.2e}, {theirs / ours:.1f} times;"
        f" gained {total:.3g} J of {tolerance * DRIVE:g}"
    )
    return ours, theirs, total


@pytest.mark.parametrize("tolerance", [30.0, 10.0, 3.0, 1.0])
@pytest.mark.parametrize("inner", [Jacobi(), GaussSeidel(["wheel", "suspension", "body"])], ids=["J", "GS"])
@pytest.mark.parametrize("rejects", [None, False])
def test_five_times_less_error_at_equal_work(rejects, inner, tolerance):
    """Up to 2 kW flow through the bonds; errors of 0.2 to 0.3 with fixed steps of about 18 ms."""
    ours, theirs, total = compared(inner, tolerance, "linear", rejects)
    assert theirs >= 5 * ours
    assert total <= tolerance * DRIVE
    assert ours < 0.03


@pytest.mark.parametrize("tolerance", [30.0, 10.0])
def test_held_inputs_win_less(tolerance):
    """With first order small errors are dear: 3 to 8 times less error is what was seen."""
    ours, theirs, total = compared(Jacobi(), tolerance, "hold", None)
    assert theirs >= 3 * ours
    assert total <= tolerance * DRIVE


def test_fixed_steps_would_come_to_it_too():
    """So that the error above is one of coupling: fixed steps of a quarter have a 16th of the error."""
    errors = [fixed_error(Jacobi(), n, "linear") for n in (250, 1000)]
    assert 12 < errors[0] / errors[1] < 20


# the same car, the bump in the middle of a drive, at rest or on a wavy road

AT, LENGTH, LATE = 2.0, 0.1, 5
TURN, SWAY = 2 * math.pi / LENGTH, 2 * math.pi
WAVE = 0.005
"""The height of the waves in m, one per second."""


def rolling(t, x, u, wave):
    """The wheel on a road of waves, with a bump like 1 - cos."""
    rise = wave * SWAY * math.cos(SWAY * t)
    if AT < t < AT + LENGTH:
        rise += 0.5 * HEIGHT * TURN * math.sin(TURN * (t - AT))
    return [rise - x[1], (TYRE * x[0] - u[0]) / WHEEL]


def late_car(orchestrator, step, wave):
    """The road is solved in steps of 0.5 ms, or a little less where that does not divide the step."""
    own = Fraction(1, 2000) if isinstance(step, str) else step / -(-step * 2000 // 1)
    outputs = ["tyre [m]", "v [m/s]"]
    wheel = hk.Ode(rolling, x0=[0, 0], inputs=["F [N]"], outputs=outputs, method="rk4", step=own, wave=wave)
    return assembled(wheel, orchestrator, step, "linear")


def late_motion(t, wave):
    """The car, the waves as an oscillator, and on the bump another one."""
    off = np.zeros((8, 8))
    off[:4, :4], off[0, 4], off[4, 5], off[5, 4] = WHOLE[:4, :4], 1.0, -SWAY, SWAY
    on = off.copy()
    on[0, 6], on[6, 7], on[7, 6] = 1.0, TURN, -TURN
    x, now, rows, known = np.array([0, 0, 0, 0, wave * SWAY, 0, 0, 0.5 * HEIGHT * TURN]), 0.0, [], {}
    for end in t:
        for stop, A in ((min(end, AT), off), (min(end, AT + LENGTH), on), (end, off)):
            h = round(stop - now, 13)
            if h > 0:
                key = h, A is on
                known[key] = known[key] if key in known else expm(A * h)
                x, now = known[key] @ x, stop
        rows.append(x[:4])
    return np.array(rows)


@pytest.mark.parametrize(
    ("wave", "rejects", "times"), [(WAVE, None, 5), (WAVE, False, 2), (0.0, None, 2)], ids=str
)
def test_a_bump_that_comes_when_steps_are_long(wave, rejects, times):
    """It must be noticed; who cannot roll back notices it a step later, and so does who was at rest."""
    way = Adaptive(Jacobi(), 10.0, "energy", per="unit", quantum="1/40", first="1/40", rejects=rejects)
    run = hk.run(late_car(way, "20 ms", wave), LATE, ledger=True)
    steps = counts(run)["accepted"] + counts(run)["rejected"]
    per_second = -(-steps // LATE)
    fixed = hk.run(late_car(Jacobi(), Fraction(1, per_second), wave), LATE)
    ours, theirs = (largest(each, late_motion(each["body.v"].t, wave)) for each in (run, fixed))
    total = gains(run, "axle", "top")[1].sum()
    print(
        f"waves {wave} m, rejects {rejects}: {3 * steps} steps, error {ours:.2e}; fixed"
        f" {3 * per_second * LATE}, {theirs:.2e}, {theirs / ours:.1f} times; gained {total:.3g} J"
    )
    t = run["body.v"].t
    h = np.diff(t)
    assert h[t[1:] < AT].max() == pytest.approx(0.02)
    assert h[(t[:-1] >= AT + 0.04) & (t[1:] <= AT + LENGTH)].max() < 0.005
    assert total <= 10.0 * LATE
    assert theirs >= times * ours


def test_energy_does_not_see_what_comes_out_of_rest():
    """Power is a product: held at nothing, both sides see none, however far the wheel is thrown."""
    run = hk.run(late_car(Jacobi(), Fraction(1, 50), 0.0), Fraction(202, 100), ledger=True)
    assert run["body.v"].t[-2:] == pytest.approx([AT, AT + 0.02])
    assert abs(run["wheel.v"].values[-1]) > 0.1
    assert run["axle.gained"].values[-1] == 0.0
    assert run["top.gained"].values[-1] == 0.0


def test_every_bond_counts_on_both_engines() -> None:
    """Two pairs side by side: what both gain must stay below what one of them alone might gain."""
    models, wires, bonds = {}, {}, {}
    for number, c in ((1, 1.2), (2, 1.0)):
        models |= {f"spring{number}": spring(c=c), f"mass{number}": mass()}
        wires |= {f"mass{number}.f": f"spring{number}.f", f"spring{number}.v": f"mass{number}.v"}
        bonds[f"joint{number}"] = Bond(f"mass{number}.f", f"spring{number}.v")
    how = Adaptive(Jacobi(), 1e-4, "energy", per="unit", first=1)
    runs = []
    for chosen in (("joint1", "joint2"), ("joint2",)):
        scenario = Scenario(models, wires, bonds={name: bonds[name] for name in chosen})
        composite = Composite(scenario, "0.5", how, "linear")
        native, plain = (hk.run(composite, 5, ledger=True, engine=engine) for engine in ENGINES)
        assert native.info["counts"] == plain.info["counts"]
        assert np.array_equal(native["mass2.v"].t, plain["mass2.v"].t)
        runs.append(native)
        h, gained = gains(native, *chosen)
        assert (gained <= 1e-4 * h * (1 + 1e-9) + 1e-15).all()
    assert counts(runs[0])["accepted"] > counts(runs[1])["accepted"]


def test_accounts_of_the_level_around_do_not_count() -> None:
    """A bond of the outer level ends at the mass inside: the inner level keeps an account for it, no more."""
    pushed = StateSpace([[0]], [[1, 1]], [[1]], x0=[0.5], inputs=["f [N]", "push [N]"], outputs=["v [m/s]"])
    how = Adaptive(Jacobi(), 1e-2, "energy", per="unit", first=1)
    inside = Scenario({"spring": spring(), "mass": pushed}, SPRING_MASS, bonds=BONDS)
    axle = Composite(inside, "0.5", how, "linear")
    wires = {"axle.mass.push": "far.f", "far.v": "axle.mass.v"}
    bonds = {"link": Bond("axle.mass.push", "far.v")}
    outside = Scenario({"axle": axle, "far": spring(0.1)}, wires, bonds=bonds)
    around = Composite(outside, "0.5", extrapolation="linear")
    native, plain = (hk.run(around, 5, ledger=True, engine=engine) for engine in ENGINES)
    assert native.info["counts"] == plain.info["counts"]
    assert native.info["bonds"] == plain.info["bonds"]
    assert native.info["counts"]["adapted"]["axle"]["accepted"] > 20
