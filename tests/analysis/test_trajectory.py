"""Nonlinear systems, judged along pilot runs, against the undivided system solved by SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hocket as hk
from analysis.nonlinear_systems import SYSTEMS, System
from hocket.analysis import pilot, trajectory
from hocket.analysis.coupling_check import check
from hocket.analysis.linearisation import linearise
from hocket.analysis.measure import join_facts
from hocket.analysis.pilot import Pilots, make_pilots, run_pilot
from hocket.analysis.pilot_error import estimate_pilot_error
from hocket.errors import ScenarioError
from hocket.model.experiment import Experiment

CASES = [(system, number) for system in SYSTEMS for number in (0, 1)]
NAMES = [f"{system.name}, {system.steps[number]:g} s" for system, number in CASES]
CASE_PARAMETERS = [
    pytest.param(*case, id=name, marks=[pytest.mark.slow] * (case[1] == 1))
    for case, name in zip(CASES, NAMES, strict=True)
]
"""The second, shorter step of each system says the same again."""
BY_NAME = {system.name: system for system in SYSTEMS}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Let what is tried not depend on how fast the machine is just now."""
    monkeypatch.setattr(pilot, "FREE", 2.0)
    monkeypatch.setattr(trajectory, "READING", 2.0)


def judged(system: System, h: float):
    """A check, the ports whose errors count, and the true error of these."""
    found = check(system.composite(h), system.stop, advise=False, robust=False, pilot_seconds=60)
    # what a relay shows is right or wrong, and its error is that of the times at which it switches
    ports = ["room.T"] if system.relay else None
    return found, system.true_error(h, ports)


@pytest.mark.parametrize(("system", "number"), CASE_PARAMETERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_verdict_and_error(system, number):
    """Sound or unsound as the undivided system says, and the error within a factor of two."""
    h = system.steps[number]
    found, true = judged(system, h)
    assert found.trajectory is not None
    if system.relay:
        # off by all of a jump while it comes late: neither sound nor unsound
        assert found.verdict()[0].startswith("not judged: `relay` is in a feedback loop")
        assert found.outcome.exit_code == 3
        assert found.trajectory.error.relative == pytest.approx(true, rel=1.0)
        (shown,) = found.trajectory.error.switching
        assert shown.largest == pytest.approx(system.true_error(h, [shown.port]) * shown.scale, rel=0.01)
        return
    if found.switched is not None and true <= 0.5:
        # sound where pilot runs converge, with the doubt in the first line; else not judged
        assert found.judgement in ("sound", "not judged")
        assert "switching not judged" in found.verdict()[0]
        assert found.trajectory.leads == (found.judgement == "sound")
        assert 0.5 * true <= found.trajectory.error.relative <= 2.0 * true
        return
    if found.switched is not None:
        assert "switching not judged" in found.verdict()[0]
    assert found.judgement == ("sound" if true <= 0.5 else "unsound")
    assert found.outcome.exit_code == (0 if true <= 0.5 else 1)
    assert found.verdict()[0].startswith(f"{found.judgement} along this trajectory, to ")
    if math.isfinite(true) and true < 1e3:
        assert found.prediction.worst.relative == pytest.approx(true, rel=1.0)
        assert found.prediction.worst.relative >= 0.5 * true


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_spring_struck_from_rest_fails():
    """Its tangent at rest knows nothing of the cube: the run becomes infinite, and that is said first."""
    found, _ = judged(BY_NAME["hardening spring"], 0.05)
    assert found.verdict()[0].startswith("unsound along this trajectory, to 0.7 s: the run fails, output at")


@pytest.mark.parametrize("name", ["contact stop", "saturated controller", "diode", "backlash", "quantiser"])
def test_a_switch_is_told_first(name):
    system = BY_NAME[name]
    found, _ = judged(system, system.steps[0])
    said = "a switch was met: `" if found.switched is None else "switching not judged"
    assert said in found.verdict()[0]


@pytest.mark.parametrize(
    "name", ["Kepler", "Van der Pol on its cycle", "pendulum", "Lorenz", "forced Duffing"]
)
def test_no_switch_where_all_is_smooth(name):
    system = BY_NAME[name]
    found, _ = judged(system, system.steps[0])
    assert found.variation.reading.switches == ()


def test_perturbations_grow_as_in_the_undivided_system():
    """Lorenz's system amplifies perturbations: by how much, two solutions that start close together tell."""
    system = BY_NAME["Lorenz"]
    found, _ = judged(system, system.steps[0])

    def rates(t, x):
        return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]

    peaks = [19.0, 26.0, 47.0]
    start, final = np.ones(3), 0.0
    for k in range(3):
        ends = [
            solve_ivp(
                rates, (0, system.stop), start + sign * 1e-6 * np.eye(3)[k] * peaks[k], rtol=1e-11, atol=1e-12
            ).y
            for sign in (1.0, -1.0)
        ]
        final = max(final, np.abs((ends[0] - ends[1])[:, -1] / 2e-6 / peaks).max())
    assert found.variation.reading.final_exact_growth == pytest.approx(final, rel=0.3)
    assert found.variation.reading.final_growth == pytest.approx(final, rel=0.3)


def unstable_at_rest(h: float) -> hk.Composite:
    """A stiff loop at its equilibrium: x' = -x + u - x^3, u = -30 x held, factor e - 30 (1 - e)."""
    plant = hk.Ode(lambda t, x, u: [-x[0] + u[0] - x[0] ** 3], None, [0.0], ["u"], ["x"])
    scenario = hk.Scenario(
        {"plant": plant, "gain": hk.Gain(-30.0)}, {"plant.u": "gain.y", "gain.u": "plant.x"}
    )
    return hk.Composite(scenario, h)


def test_a_coupling_that_is_unstable_is_unsound_though_nothing_moves():
    found = check(unstable_at_rest(0.1), 10)
    assert found.judgement == "unsound"
    e = math.exp(-0.1)
    factor = abs(e - 30 * (1 - e))
    assert factor > 1.0
    assert found.stability.rho == pytest.approx(factor, rel=1e-5)
    stable = check(unstable_at_rest(0.01), 10)
    assert stable.judgement == "sound"


def test_states_that_depend_on_time_are_predicted_by_pilot_runs():
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], inputs=["u"], outputs=["y"])
    driven = hk.Ode(lambda t, x, u: [-x[0] + u[0] + 5 * math.sin(10 * t)], None, [0.0], ["u"], ["y"])
    composite = hk.Composite(hk.Scenario({"a": lag, "b": driven}, {"a.u": "b.y", "b.u": "a.y"}), "0.1 s")
    found = check(composite, 5)
    run = hk.run(composite, 5)
    t = run["a.y"].t
    whole = solve_ivp(
        lambda t, x: [-x[0] + x[1], -x[1] + x[0] + 5 * math.sin(10 * t)],
        (0, 5),
        [0, 0],
        "DOP853",
        t,
        rtol=1e-10,
    ).y
    for port, values in (("a.y", whole[0]), ("b.y", whole[1])):
        wrong = np.abs(run[port].values - values).max()
        assert found.prediction[port].largest == pytest.approx(wrong, rel=0.1)


def test_linear_models_that_hold_stay_the_answer():
    """A linear Ode: the digits are those of the linear reading, and pilot runs confirm them."""
    A = np.array([[0.0, 1.0], [-4.0, -0.5]])
    ode = hk.Ode(lambda t, x, u: A @ x + [0.0, u[0]], None, [1.0, 0.0], ["u"], ["x", "v"])
    lag = hk.StateSpace(A=[[-1.0]], B=[[-3.0]], C=[[1.0]], inputs=["u"], outputs=["y"])
    composite = hk.Composite(hk.Scenario({"it": ode, "lag": lag}, {"it.u": "lag.y", "lag.u": "it.x"}), 0.05)
    found, alone = check(composite, 5), check(composite, 5, pilot=False)
    assert not found.trajectory.leads
    assert found.verdict()[0] == alone.verdict()[1]
    assert alone.verdict()[0].startswith("at the initial state only; in doubt: `it` may be different later")
    assert found.prediction.worst.largest == alone.prediction.worst.largest
    assert found.verdict()[-1].startswith("pilot runs agree with the linear models along this trajectory")


def test_a_linear_scenario_makes_no_pilot_run():
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    composite = hk.Composite(hk.Scenario({"a": lag, "b": hk.Gain(-0.5)}, {"a.u": "b.y", "b.u": "a.y"}), 0.1)
    assert check(composite, 2).trajectory is None


def test_the_limit_decides():
    system = BY_NAME["Van der Pol on its cycle"]
    composite = system.composite(system.steps[0])
    assert check(composite, system.stop).judgement == "sound"
    found = check(composite, system.stop, max_error=0.1)
    assert found.judgement == "unsound"
    assert "above the limit of 10 %" in found.verdict()[0]
    with pytest.raises(ScenarioError):
        check(composite, system.stop, max_error=0.0)


def test_the_limit_of_a_linear_scenario():
    """x' = -x + u, u = -x / 2 held over 1 s: from 1 to e - (1 - e) / 2, the truth is exp(-1.5)."""
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    composite = hk.Composite(hk.Scenario({"a": lag, "b": hk.Gain(-0.5)}, {"a.u": "b.y", "b.u": "a.y"}), 1)
    e = math.exp(-1.0)
    wrong = abs(e - 0.5 * (1 - e) - math.exp(-1.5))
    assert check(composite, 1, max_error=1.01 * wrong).judgement == "sound"
    assert check(composite, 1, max_error=0.99 * wrong).judgement == "unsound"


def test_a_pilot_run_that_ends_early_is_told_first():
    class Slow:
        inputs, outputs = ("u",), ("y",)

        def start(self, t):
            self.x = 1.0

        def output(self, t):
            return self.x

        def step(self, t, h, u):
            import time

            time.sleep(0.002)
            self.x += h * (-(self.x**3) + float(u[0][0]))
            return t + h

    gain = hk.Gain(-0.1)
    scenario = hk.Scenario({"slow": hk.Python(Slow), "gain": gain}, {"slow.u": "gain.y", "gain.u": "slow.y"})
    found = check(hk.Composite(scenario, 0.01), 20, pilot_seconds=0.5)
    first = found.verdict()[0]
    assert "the pilot run ended early, at " in first
    assert first.startswith(f"sound along this trajectory, to {found.trajectory.pilots.until:.4g} s")
    assert 0.0 < found.trajectory.pilots.until < 20.0


def test_pilot_runs_are_the_run_itself():
    """The same bits as a run, in memory; and as many macro steps."""
    system = BY_NAME["predator and prey"]
    composite = system.composite(0.1)
    pilot = run_pilot(Experiment(composite, stop=5), 1, 50, 60.0)
    run = hk.run(composite, 5)
    for port in run.ports:
        assert np.array_equal(pilot.ports[port][0], run[port].t)
        assert np.array_equal(pilot.ports[port][1], run[port].values)


def test_an_order_is_observed():
    """The error of a pair under held inputs falls with the step, and with its square under linear ones."""
    system = BY_NAME["predator and prey"]
    for extrapolation, order in (("hold", 1.0), ("linear", 2.0)):
        composite = system.composite(0.01).with_changes(extrapolation=extrapolation)
        pilots: Pilots = make_pilots(Experiment(composite, stop=4))
        assert estimate_pilot_error(pilots, int(order)).worst.order == pytest.approx(order, abs=0.2)


def test_smooth_models_are_not_called_otherwise():
    cubic = hk.Ode(lambda t, x, u: [-(x[0] ** 3)], lambda t, x, u: [x[0] ** 3], [0.0], outputs=["y"])
    (leaf,) = linearise(hk.Composite(hk.Scenario({"it": cubic}), 0.1)).leaves
    assert "smooth, but curved" in leaf.refused
    dry = hk.Ode(lambda t, x, u: [x[1], -math.copysign(1.0, x[1])], x0=[0.0, 0.0])
    (leaf,) = linearise(hk.Composite(hk.Scenario({"it": dry}), 0.1)).leaves
    assert "not smooth at this point" in leaf.refused


def test_facts():
    system = BY_NAME["contact stop"]
    found = check(system.composite(system.steps[0]), system.stop)
    facts = found.trajectory.facts()["along the trajectory"]
    assert facts["judgement"] == "sound"
    assert facts["whole run"] is True
    assert facts["doubts"]
    told = join_facts(found.measures)  # of a switched system they hold for this run only
    assert told["predicted errors"]
    growth = told["stability along the trajectory"]
    assert growth["switches"][0]["simulator"] == "spring"
