"""Studies: known sensitivity indices, spreads with exact answers, and the share of the macro step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.measure import Outcome
from hocket.analysis.parameter_sampling import find_sensitivities, make_design
from hocket.analysis.uncertainty import study
from hocket.model.distributions import Distribution


def ishigami(x1: float = 0.0, x2: float = 0.0, x3: float = 0.0) -> hk.Ode:
    """Return y' = f(x1, x2, x3) from 0 on: after a second y is the function of Ishigami and Homma (1990)."""

    def f(t: float, x: Any, u: Any, x1: float, x2: float, x3: float) -> list[float]:
        return [np.sin(x1) + 7.0 * np.sin(x2) ** 2 + 0.1 * x3**4 * np.sin(x1)]

    return hk.Ode(f, x0=[0.0], outputs=["y"], method="euler", x1=x1, x2=x2, x3=x3)


ANGLE = f"uniform({-np.pi}, {np.pi})"
ANGLES = {f"f.{name}": ANGLE for name in ("x1", "x2", "x3")}
FIRST, TOTAL, TOGETHER = (0.3139, 0.4424, 0.0), (0.5576, 0.4424, 0.2437), 0.2437
"""The exact indices for a = 7, b = 0.1 (Sobol and Levitan 1999)."""


@pytest.mark.parametrize(("method", "runs", "near"), [("sobol", 2**15, 0.02), ("chaos", 800, 0.01)])
def test_the_indices_of_the_formula(method: Any, runs: int, near: float) -> None:
    uncertain = {path: Distribution.parse(text) for path, text in ANGLES.items()}
    design = make_design(uncertain, method, runs, seed=3)
    x1, x2, x3 = design.values.T
    results = np.sin(x1) + 7.0 * np.sin(x2) ** 2 + 0.1 * x3**4 * np.sin(x1)
    check_indices(find_sensitivities(design, results), near)


@pytest.mark.parametrize(
    ("method", "runs", "near"),
    [("chaos", 250, 0.05), pytest.param("sobol", 8192, 0.03, marks=pytest.mark.slow)],
)
def test_the_indices_of_ishigami_as_a_model(method: Any, runs: int, near: float) -> None:
    composite = hk.Composite(hk.Scenario({"f": ishigami()}), "1 s")
    found = study(composite, ANGLES, 1, method=method, runs=runs, estimate=False, every="1 s")
    check_indices(found["f.y"].sensitivities, near)


def check_indices(indices: Any, near: float) -> None:
    assert [each.first for each in indices] == pytest.approx(FIRST, abs=near)
    assert [each.total for each in indices] == pytest.approx(TOTAL, abs=near)
    assert indices[0].pairs["f.x3"] == pytest.approx(TOGETHER, abs=near)
    assert abs(indices[0].pairs["f.x2"]) < near


def decay(step: str = "1/10 s") -> hk.Composite:
    """Return two halves of x' = -a x, a = 1: the rate is computed beside the state, one step late."""
    state = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["r"], outputs=["x"])
    gain = hk.StateSpace(
        np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), [[-1.0]], inputs=["x"], outputs=["r"]
    )
    return hk.Composite(hk.Scenario({"s": state, "g": gain}, {"s.r": "g.r", "g.x": "s.x"}), step)


def test_the_spread_of_a_linear_system_is_the_exact_one() -> None:
    """x1 = (1 - a H)^10 with held inputs; its quantiles are those of a, turned around."""
    found = study(decay(), {"g.D[1,1]": "normal(-1, 0.1)"}, 1, runs=120)
    a = -1.0 + 0.1 * np.array([-1.6448536269514722, 0.0, 1.6448536269514722])
    each = found["s.x"]
    exact = (1.0 + a * 0.1) ** 10
    assert [each.low[-1], each.median[-1], each.high[-1]] == pytest.approx(exact, rel=6e-3)
    assert each.error is not None
    assert abs(each.error[-1]) == pytest.approx(np.exp(-1.0) - 0.9**10, rel=0.05)
    assert found.verdict()[0] == "stable in 120 of 120: " + found.verdict()[0].partition(": ")[2]
    radii = 1.0 + 0.1 * found.design.values[:, 0]
    assert found.radii == pytest.approx(radii, rel=1e-9)


def test_the_share_of_the_macro_step_falls_with_it() -> None:
    """The global error of a held input is of first order: its square falls by 16 from H to H/4."""
    uncertain = {"g.D[1,1]": "normal(-1, 0.1)"}
    shares = [study(decay(step), uncertain, 1, runs=30)["s.x"].step_share for step in ("1/5 s", "1/20 s")]
    ratio = (shares[0] / (1 - shares[0])) / (shares[1] / (1 - shares[1]))
    assert ratio == pytest.approx(16.0, rel=0.3)
    coarse = study(decay("1/2 s"), {"g.D[1,1]": "normal(-1, 0.001)"}, 1, runs=40)
    assert coarse.verdict()[-1].endswith("shorten it before the parameters are studied")
    fine = study(decay("1/100 s"), {"g.D[1,1]": "normal(-1, 0.3)"}, 1, runs=40)
    assert fine.verdict()[-1].endswith("no need for a shorter one")


def test_unstable_parameters_are_counted() -> None:
    """|1 - a H| <= 1 up to a = 4 with H = 1/2 s: half of a uniform distribution from 2 to 6."""
    found = study(decay("1/2 s"), {"g.D[1,1]": "uniform(-6, -2)"}, 4, runs=100, estimate=False)
    assert found.verdict()[0].startswith("stable in 50 of 100: spectral radius ")
    assert found.outcome is Outcome.BAD


def test_a_study_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    uncertain = {"g.D[1,1]": "normal(-1, 0.1)"}
    whole = study(decay(), uncertain, 1, runs=12, folder=tmp_path / "a", estimate=False)
    for number in (3, 7):  # as if these had not been made
        (tmp_path / "a" / "runs" / f"{number:03}" / "run.json").unlink()
    kept = (tmp_path / "a" / "runs" / "001" / "run.json").stat().st_mtime_ns
    for number in (3, 7):
        for file in sorted((tmp_path / "a" / "runs" / f"{number:03}").rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
    again = study(decay(), uncertain, 1, runs=12, folder=tmp_path / "a", estimate=False)
    assert (tmp_path / "a" / "runs" / "001" / "run.json").stat().st_mtime_ns == kept
    assert np.array_equal(again["s.x"].results, whole["s.x"].results)
    with pytest.raises(hk.ScenarioError, match="holds another study"):
        study(decay(), uncertain, 1, runs=13, folder=tmp_path / "a", estimate=False)


def test_files_say_what_is_uncertain(tmp_path: Path) -> None:
    experiment = hk.Experiment(decay(), stop=1, uncertain={"g.D[1,1]": "normal(-1, 0.1)"})
    hk.write(experiment, tmp_path / "decay.toml")
    assert '"g.D[1,1]" = "normal(-1, 0.1)"' in (tmp_path / "decay.toml").read_text()
    again = hk.read(tmp_path / "decay.toml")
    assert again.uncertain == experiment.uncertain
    assert study(again, runs=4, estimate=False).finished == 4
    text = (tmp_path / "decay.toml").read_text().replace("normal(-1, 0.1)", "normal(-1)")
    (tmp_path / "wrong.toml").write_text(text)
    with pytest.raises(hk.HocketError, match=r"normal\(mean, standard deviation\)"):
        hk.read(tmp_path / "wrong.toml")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"uncertain": {}}, "nothing is uncertain"),
        ({"uncertain": {"h.k": "normal(1, 1)"}}, "there is no model `h`"),
        ({"method": "guess"}, "method"),
        ({"runs": 1}, "runs"),
        ({"method": "sobol", "runs": 5}, "5 runs are too few for Sobol indices"),
        ({"quantity": "median"}, "quantity"),
    ],
)
def test_bad_input(options: Any, words: str) -> None:
    given = {"uncertain": {"g.D[1,1]": "normal(-1, 0.1)"}, "runs": 4, "stop": 1, **options}
    with pytest.raises(hk.ScenarioError, match=words):
        study(decay(), **given)
