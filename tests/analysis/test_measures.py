"""Measures: command line, JSON and report say what the list says, and know none of them by name."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

import hocket as hk
from command_line import good, invoked
from hocket.analysis import coupling_check, run_measures
from hocket.analysis.measure import Measure, Outcome, join_facts
from hocket.analysis.stability import Mode, Stability
from hocket.model.units import Share

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Weight(Measure):
    """A measure that hocket does not have."""

    kilograms: float
    outcome: Outcome = Outcome.GOOD
    title = "weight of the coupling"
    picture = "weight"

    def verdict(self):
        return [f"weight: {self.kilograms} kg"]

    def rows(self):
        return [{"part": "all", "weight [kg]": self.kilograms, "of the car": Share(0.25)}]

    def notes(self):
        return ["weighed without `driver`"]

    def plot(self, path=None):
        Path(path).write_text("a picture")


def test_one_line_in_the_list_is_all_it_takes(tmp_path, monkeypatch):
    more = ("weight", lambda coupling: Weight(1200.5))
    monkeypatch.setattr(coupling_check, "MEASURES", (*coupling_check.MEASURES, more))
    said = good(
        "check", EXAMPLES / "two_masses.toml", "--plot", tmp_path / "a.png", "--json", tmp_path / "a.json"
    )
    assert "\nweight: 1200.5 kg\n" in said
    lines = said.splitlines()
    at = lines.index("weight of the coupling")
    assert lines[at + 1].split("  ") == ["part", "weight [kg]", "of the car"]
    assert lines[at + 2].split() == ["all", "1.2e+03", "25", "%"]
    assert lines[at + 3] == "weighed without `driver`"
    assert (tmp_path / "a-weight.png").read_text() == "a picture"
    facts = json.loads((tmp_path / "a.json").read_text())
    assert facts["weight_of_the_coupling"] == [{"part": "all", "weight_kg": 1200.5, "of_the_car": 0.25}]
    run = hk.run(hk.read(EXAMPLES / "two_masses.toml"), folder=tmp_path / "run")
    page = _page(run).read_text(encoding="utf-8")
    assert "<figcaption>weight of the coupling</figcaption>" in page
    assert "weighed without <code>driver</code>" in page
    assert "25 %" in page


def _page(run):
    from hocket.report import write_report

    return write_report(run)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome.GOOD, 0),
        (Outcome.CAUTION, 0),
        (Outcome.NOT_JUDGED, 3),
        (Outcome.UNRELIABLE, 1),
        (Outcome.BAD, 1),
    ],
)
def test_the_worst_outcome_is_the_exit_code(monkeypatch, outcome, code):
    more = ("weight", lambda coupling: Weight(1.0, outcome))
    monkeypatch.setattr(coupling_check, "MEASURES", (*coupling_check.MEASURES, more))
    assert invoked("check", EXAMPLES / "two_masses.toml").exit_code == code


def test_a_measure_that_fails_is_not_judged_and_the_others_are(monkeypatch):
    def fail(coupling):
        raise hk.ScenarioError("it has no scales", hint="a balance")

    monkeypatch.setattr(coupling_check, "MEASURES", (("weight", fail), *coupling_check.MEASURES))
    found = hk.check(EXAMPLES / "two_masses.toml")
    assert found.good
    assert "not judged: weight: it has no scales; try a balance" in found.verdict()


def test_without_a_spectral_radius_nothing_is_judged(monkeypatch):
    monkeypatch.setattr(coupling_check, "MEASURES", ())
    assert hk.check(EXAMPLES / "two_masses.toml").outcome is Outcome.NOT_JUDGED


@pytest.mark.parametrize("name", ["car", "spring_mass", "two_hosts"])
def test_no_two_measures_share_a_key_and_rows_have_the_same_columns(name):
    found = hk.check(EXAMPLES / f"{name}.toml").measures
    keys = [key for each in found for key in each.facts()]
    assert len(keys) == len(set(keys))
    assert len(join_facts(found)) == len(keys) + 3
    assert all(row.keys() == each.rows()[0].keys() for each in found for row in each.rows())


def test_a_measure_of_a_run_is_told_everywhere(tmp_path, monkeypatch):
    class Length(run_measures.RunMeasure):
        title = "length of the run"

        def rows(self):
            return [{"stop [s]": self.run.info["stop"]}]

    monkeypatch.setattr(run_measures, "MEASURES", (*run_measures.MEASURES, Length))
    run = hk.run(hk.read(EXAMPLES / "two_masses.toml"), folder=tmp_path / "run")
    said = invoked("check", run.path, "--json", tmp_path / "a.json").stdout
    assert "\nlength of the run\n" in said
    assert json.loads((tmp_path / "a.json").read_text())["length_of_the_run"] == [
        {"stop_s": run.info["stop"]}
    ]
    assert "<figcaption>length of the run</figcaption>" in _page(run).read_text(encoding="utf-8")


def test_shares_are_per_cent_to_people_and_numbers_to_programs():
    assert [str(Share(part)) for part in (0.0064, 1.0, 5.9, 49.5, 6.9e-18, 0.0)] == [
        "0.64 %", "100 %", "590 %", "4,950 %", "6.9e-16 %", "0 %",
    ]  # fmt: skip
    assert [str(Share(part)) for part in (math.inf, math.nan)] == ["unbounded", ""]
    assert f"{Share(0.12345):.2g}" == "12 %"
    assert json.dumps(Share(0.0064)) == "0.0064"


@pytest.mark.parametrize("ratio", [-0.5, 0.0, 0.05, 0.7])
def test_damping_ratios_are_those_of_the_oscillator(ratio):
    """s = omega (-zeta + i sqrt(1 - zeta^2)), and z = exp(s T)."""
    T, omega = 0.1, 3.0
    s = omega * complex(-ratio, math.sqrt(1.0 - ratio**2))
    z = complex(math.exp(s.real * T) * math.cos(s.imag * T), math.exp(s.real * T) * math.sin(s.imag * T))
    assert Mode(z, T, ()).damping_ratio == pytest.approx(ratio, abs=1e-12)
    assert [Mode(complex(z), T, ()).damping_ratio for z in (0.5, 1.0, 2.0, 0.0)] == [1.0, 0.0, -1.0, 1.0]


def test_a_residual_that_reaches_over_the_circle_is_not_judged():
    known = Stability(0.999, True, 0.1, (), (), residual=0.0009, poorest="box")
    assert known.outcome is Outcome.GOOD
    doubtful = Stability(0.999, True, 0.1, (), (), residual=0.002, poorest="box")
    assert doubtful.outcome is Outcome.NOT_JUDGED
    (line,) = doubtful.verdict()
    assert line.startswith(
        "not judged: the fit residual 0.002 of the linear model of `box` exceeds the distance"
    )
