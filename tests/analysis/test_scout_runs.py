"""Runs of which a pilot has seen the first part only: what longer steps tell of the rest."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hocket as hk
from hocket.analysis import scout_runs
from hocket.analysis.pilot import Pilots, run_pilot
from hocket.analysis.pilot_error import estimate_pilot_error
from hocket.analysis.scout_runs import ScoutedError, scout_ahead


def prey_and_predator(step):
    """Return the equations of Lotka and Volterra, one species a simulator."""
    models = {
        "x": hk.Ode(lambda t, s, u: [s[0] * (1.0 - u[0])], x0=[2.0], inputs=["y"], outputs=["x"]),
        "y": hk.Ode(lambda t, s, u: [s[0] * (u[0] - 1.0)], x0=[1.0], inputs=["x"], outputs=["y"]),
    }
    return hk.Composite(hk.Scenario(models, {"x.y": "y.y", "y.x": "x.x"}), step)


def relaxation_oscillator(step):
    """Return van der Pol's oscillator: nothing happens for four seconds, then all does."""
    models = {
        "x": hk.Ode(lambda t, s, u: [u[0]], x0=[2.0], inputs=["v"], outputs=["x"]),
        "v": hk.Ode(
            lambda t, s, u: [5.0 * (1.0 - u[0] ** 2) * s[0] - u[0]], x0=[0.0], inputs=["x"], outputs=["v"]
        ),
    }
    return hk.Composite(hk.Scenario(models, {"x.v": "v.v", "v.x": "x.x"}), step)


def scout(composite, stop, seen):
    """Return what scouts tell where pilots have seen a part of the run, and the pilots."""
    experiment = hk.Experiment(composite, stop=Fraction(stop))
    asked = int(Fraction(stop) / composite.step)
    runs = tuple(run_pilot(experiment, Fraction(part), int(asked * seen), 60.0) for part in (1, 2, 4))
    pilots = Pilots(runs, composite.step, asked, 0.0)
    return scout_ahead(experiment, pilots, estimate_pilot_error(pilots, 1), 1), pilots


def test_longer_steps_tell_the_error_at_the_end():
    found, pilots = scout(prey_and_predator("4 ms"), 20, 0.25)
    t, x = hk.run(prey_and_predator("4 ms"), 20)["x.x"]
    exact = solve_ivp(
        lambda t, y: [y[0] * (1.0 - y[1]), y[1] * (y[0] - 1.0)],
        (0.0, 20.0),
        [2.0, 1.0],
        "DOP853",
        np.asarray(t),
        rtol=1e-11,
        atol=1e-12,
    ).y[0]
    true = np.abs(np.asarray(x) - exact).max() / np.abs(exact).max()
    early = estimate_pilot_error(pilots, 1).relative
    assert early < true / 2.0  # the first part tells less than half of it
    assert found.ports["x.x"][0] == pytest.approx(true, rel=0.3)
    assert found.objection(0.5, pilots.until) == ""
    assert "times as long suggest" in found.suggestion
    assert "by the end" in found.objection(true, pilots.until)


def test_what_comes_later_is_not_sound_on_the_word_of_the_first_part():
    found, pilots = scout(relaxation_oscillator("5 ms"), 15, 0.2)
    assert estimate_pilot_error(pilots, 1).relative < 0.05
    assert "the pilot run ended early, at 3 s" in found.objection(0.5, pilots.until)


def test_a_run_that_is_too_short_for_longer_steps_is_extrapolated_or_not_known():
    whole, pilots = scout(prey_and_predator("200 ms"), 6, Fraction(2, 3))
    early = estimate_pilot_error(pilots, 1).relative
    assert whole.times == 0
    assert whole.relative >= early / (2.0 / 3.0) * (1.0 - 1e-9)  # an error that grows at least with time
    little, _ = scout(prey_and_predator("200 ms"), 6, Fraction(1, 3))
    assert little.relative == float("inf")
    assert "nothing is known" in little.objection(0.5, 2.0)


@pytest.mark.parametrize(("seen", "known"), [(Fraction(3, 4), False), (Fraction(19, 20), True)])
def test_scouts_that_are_lost_count_unless_nearly_all_was_seen(seen, known, monkeypatch):
    lost = ScoutedError(float("inf"), 8, "they are lost")
    monkeypatch.setattr(scout_runs, "_run_scouts", lambda *_: lost)
    found, _ = scout(prey_and_predator("50 ms"), 6, seen)
    assert np.isfinite(found.relative) == known
    assert (found is lost) != known


def test_a_factor_of_two_is_kept_from_the_limit():
    assert ScoutedError(0.24, 4).objection(0.5, 1.0) == ""
    assert ScoutedError(0.26, 4).objection(0.5, 1.0) != ""


def test_the_first_line_of_a_check_says_so():
    found = hk.check(relaxation_oscillator("1 ms"), 15, pilot_seconds=0.1)
    assert found.outcome.exit_code == 3
    assert found.verdict()[0].startswith("not judged: the pilot run ended early")
    assert "--pilot-seconds" in found.verdict()[0]
