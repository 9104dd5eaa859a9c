"""How wrong a run was, from shorter steps: against the exact solution of the coupled system."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from analysis.systems import three_masses, two_masses
from command_line import invoked
from hocket.analysis.exact import exact
from hocket.files.study import Study
from hocket.trusting import trust


def estimated(composite, stop):
    study = Study(composite, stop=Fraction(stop), name="it")
    return trust(study, hk.run(composite, stop))


@pytest.mark.parametrize("nested", [False, True])
def test_the_estimate_is_the_error(nested):
    steps = ("0.1 s", "0.025 s") if nested else ("0.1 s",)
    composite = three_masses(1, *steps, outputs="consistent")
    found = estimated(composite, 5)
    solution = exact(composite)
    assert len(found.ports) == 8
    for each in found.ports:
        truth = solution.outputs(each.run.t)[:, solution.ports.index(each.port)]
        error = each.run.values - truth
        assert each.order == pytest.approx(1.0, abs=0.2), each.port
        assert each.largest == pytest.approx(np.abs(error).max(), rel=0.2), each.port
        np.testing.assert_allclose(each.error, error, atol=0.25 * np.abs(error).max())


def test_a_higher_order_is_seen():
    one, two = two_masses("Seidel12", 0.1).scenario.models.values()
    links = {"one.x2": "two.x", "one.v2": "two.v", "two.F": "one.F"}
    composite = hk.Composite(hk.Scenario({"one": one, "two": two}, links), "0.1 s", extrapolation="linear")
    found = estimated(composite, 10)
    assert found.predicted == 2
    assert found.doubts == ()
    solution = exact(composite)
    for each in found.ports:
        truth = solution.outputs(each.run.t)[:, solution.ports.index(each.port)]
        assert each.order == pytest.approx(2.0, abs=0.2)
        assert each.largest == pytest.approx(np.abs(each.run.values - truth).max(), rel=0.2)


def test_what_does_not_settle_is_doubted():
    lag = hk.StateSpace(A=[[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])
    models = {"a": hk.Gain(1.2), "b": hk.Gain(-1.2), "lag": lag, "sum": hk.Sum("u", "v")}
    scenario = hk.Scenario(models, {"sum.u": "b.y", "sum.v": "lag.y", "a.u": "sum.y", "b.u": "a.y"})
    found = estimated(hk.Composite(scenario, "0.1 s", hk.Jacobi(outputs="stale")), 3)
    assert any("broken by a delay" in doubt for doubt in found.doubts)
    assert any("no order is to be seen" in doubt for doubt in found.doubts)


def test_the_command(tmp_path):
    example = Path(__file__).parents[1] / "examples" / "two_masses.toml"
    written = "--plot", tmp_path / "band.png", "--folder", tmp_path / "run"
    done = invoked("run", example, "--stop", "10", "--trust", *written)
    assert done.exit_code == 0, done.output
    assert "how wrong it was, from shorter steps" in done.stdout
    assert "first.force" in done.stdout
    assert (tmp_path / "band.png").read_bytes()[:4] == b"\x89PNG"
