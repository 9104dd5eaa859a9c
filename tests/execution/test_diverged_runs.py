"""Runs that come to their end with values beyond all bounds: their status is not "finished"."""

from __future__ import annotations

import json

import hocket as hk
from command_line import invoked


def struck_spring(step):
    """Return a mass struck from rest and a spring that hardens: its tangent at rest is stable."""
    mass = hk.Ode(lambda t, s, u: [s[1], u[0]], x0=[0.0, 3.0], inputs=["F"], outputs=["x", "v"])
    spring = hk.Ode(
        lambda t, s, u: [], lambda t, s, u: [-u[0] - 400.0 * u[0] ** 3], inputs=["x"], outputs=["F"]
    )
    scenario = hk.Scenario({"mass": mass, "spring": spring}, {"mass.F": "spring.F", "spring.x": "mass.x"})
    return hk.Composite(scenario, step)


def alone(rate):
    """Return a lag with a rate, which a constant drives."""
    lag = hk.StateSpace([[rate]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    return hk.Composite(
        hk.Scenario({"lag": lag, "c": hk.Function(lambda t: 0.0, ["y"])}, {"lag.u": "c.y"}), 0.1
    )


def test_what_explodes_has_diverged():
    run = hk.run(struck_spring(0.1), 1.0)
    assert abs(run.final("mass.x")) > 1e12  # it moves within 0.4 m: the energy of 4.5 J is 100 x**4 at most
    assert (run.status, run.is_complete) == ("diverged", False)
    assert run.info["findings"][0]["kind"] == "growth"


def test_the_same_with_short_steps_is_finished():
    run = hk.run(struck_spring(0.001), 1.0)
    assert (run.status, run.info.get("findings")) == ("finished", None)


def test_growth_that_is_the_answer_is_finished():
    """exp(25) is noted, and is a result; exp(40) has no digit left of where it began."""
    run = hk.run(alone(1.0), 25)
    assert (run.status, run.info["findings"][0]["kind"]) == ("finished", "growth")
    assert hk.run(alone(1.0), 40).status == "diverged"


def test_what_comes_from_outside_may_grow():
    source = hk.Function(lambda t: 10.0 ** (20.0 * t), ["y"])
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"s": source, "lag": lag}, {"lag.u": "s.y"})
    assert hk.run(hk.Composite(scenario, 0.01), 1.0).status == "finished"


def test_the_command_line_says_so_and_exits_with_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grows.toml").write_text(
        'step = 0.1\n[run]\nstop = 50\n[models.lag]\ntype = "state-space"\nA = [[1]]\nB = [[1]]\nC = [[1]]\n'
        'x0 = [1]\ninputs = ["u"]\noutputs = ["y"]\n[models.c]\ntype = "state-space"\nA = [[-1]]\nB = [[0]]\n'
        'C = [[1]]\nx0 = [1]\ninputs = ["u"]\noutputs = ["y"]\n[connections]\n"lag.u" = "c.y"\n'
        '"c.u" = "lag.y"\n'
    )
    result = invoked("run", "grows.toml", "--folder", "kept")
    assert result.exit_code == 1
    assert result.stdout.startswith("grows diverged: 500 steps")
    assert "`lag.y` grows without bound" in result.output
    assert json.loads((tmp_path / "kept" / "run.json").read_text())["status"] == "diverged"
    assert hk.open_run(tmp_path / "kept").status == "diverged"
