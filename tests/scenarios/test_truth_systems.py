"""The systems of benchmarks/truth.py: couplings converge to references that were written apart from them."""

import sys
import warnings
from collections import Counter

import numpy as np
import pytest

from systems import ROOT

if str(ROOT / "benchmarks") not in sys.path:
    sys.path.append(str(ROOT / "benchmarks"))

from truth import Row, judge
from truth_systems import CATALOGUE, System
from truth_systems.as_fmus import IN_PYTHON, SMOOTH_IN_C, as_c, as_pythonfmu
from truth_systems.parts import part
from truth_systems.reference import Switch, delayed, sampled, smooth, switched

SAMPLE = (
    "contact_stop_damped",
    "sampled_p_late",
    "predator_prey",
    "boxed_heat",
    "relay_hysteresis",
    "kepler",
)


def converges(name):
    system = CATALOGUE[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        coarse, fine = (system.error(*system.run(system.steps[0] / parts)) for parts in (1, 16))
    assert fine < 0.02, f"error {fine:.2g} of peak at a sixteenth of the reasonable step"
    assert fine < max(coarse / 3, 1e-5), f"error {coarse:.2g} becomes {fine:.2g}"


@pytest.mark.parametrize("name", SAMPLE)
def test_a_coupling_converges_to_its_reference(name):
    converges(name)


@pytest.mark.parametrize("name", [*SAMPLE, "mackey_glass", "ball_on_table"])
def test_composed_references_agree_with_those_written_by_hand(name):
    """All parts solved together, sampled, late, switching or with events, give the judged port."""
    system = CATALOGUE[name]()
    times = np.linspace(0.0, system.stop / 4, 101)
    true = system.composed(times)
    assert set(true) == set(system.ports)
    wanted = system.reference(times)
    assert true[system.port] == pytest.approx(wanted, abs=1e-6 * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in SAMPLE])
def test_all_couplings_converge_to_their_references(name):
    converges(name)


def test_there_are_enough_systems_in_all_parts():
    """At least 60 are asked for, in two halves named by a hash and about equal; the others are held out."""
    count = Counter(make().half for make in CATALOGUE.values())
    halves = count["tune"] + count["report"]
    assert halves >= 70
    assert 0.4 < count["tune"] / halves < 0.6
    assert count["fresh"] >= 30
    assert count["later"] >= 30


@pytest.mark.parametrize("wrap", [as_pythonfmu, as_c])
def test_a_system_of_fmus_runs_as_its_equations_do(wrap, tmp_path):
    """FMUs hold their inputs, as this system does; they differ by their micro steps only."""
    system = CATALOGUE["two_machines_swing" if wrap is as_c else "predator_prey"]()
    system = type(system)(**{**vars(system), "extrapolation": "hold"})
    times, values = system.run(system.steps[0])
    _, others = wrap(system, tmp_path).run(system.steps[0])
    assert others == pytest.approx(values, rel=1e-6, abs=1e-9)
    assert len(SMOOTH_IN_C) >= 10
    assert len(IN_PYTHON) >= 10
    assert len(times) > 100


def test_references_with_switches_samples_and_delays_have_exact_answers():
    times = np.linspace(0.0, 2.0, 9)
    bounce = Switch(lambda t, y: y[0], -1, 0, lambda t, y: [0.0, -y[1]])
    ball = switched(lambda t, y, m: [y[1], -2.0], [0.25, 0.0], 0, {0: [bounce]}, lambda t, y, m: y[0])
    late = (times - 0.5) % 1.0  # it touches the ground after 0.5 s, and every second from then on
    assert ball(times) == pytest.approx(np.where(times < 0.5, 0.25 - times**2, late - late**2), abs=1e-7)
    held = sampled(lambda t, y, u: [u], [1.0], lambda t, y, m: (-y[0], m), None, 0.5, 0)
    assert held(times[::2]) == pytest.approx(0.5 ** np.arange(5))
    slow = sampled(lambda t, y, u: [u], [1.0], lambda t, y, m: (-y[0], m), None, 0.5, 0, late=0.0)
    assert slow(times[::2]) == pytest.approx([1.0, 1.0, 0.5, 0.0, -0.25])
    ramp = delayed(lambda t, y, late: [-late[0]], lambda t: [1.0], 1.0, 0)
    assert ramp(np.array([0.0, 1.0, 2.0])) == pytest.approx([1.0, 0.0, -0.5])


def test_the_runner_finds_the_truth_of_a_linear_system():
    """Of linear systems `check` is right: predicted and true error agree, a blow-up is unsound."""
    system = System(
        models={
            "a": part(lambda t, s, u: [2.0 * u[0] - s[0]], [1.0], "u", "y"),
            "b": part(lambda t, s, u: [-2.0 * u[0] - s[0]], [0.0], "u", "y"),
        },
        wires={"a.u": "b.y", "b.u": "a.y"},
        port="a.y",
        stop=16.0,
        steps=(0.05, 2.0),
        reference=smooth(lambda t, y: [2.0 * y[1] - y[0], -2.0 * y[0] - y[1]], [1.0, 0.0], 0),
        name="linear",
    )
    fine, bold = (judge(system, Row("linear", "tune", "", "", step, False), 60.0) for step in system.steps)
    assert (fine.truth, fine.said, fine.doubt) == ("sound", "sound", False)
    assert fine.ratio == pytest.approx(1.0, rel=0.01)
    assert (bold.truth, bold.said) == ("unsound", "unsound")
