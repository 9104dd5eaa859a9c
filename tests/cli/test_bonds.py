"""Power bonds on the command line: summary, ledger, tables, pictures, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from command_line import good, invoked, refused
from hocket.cli.terminal import format_cell
from hocket.errors import ScenarioError
from hocket.files.bond_flows import BondFlow, BondFlows, format_energy, read_bond_flows
from hocket.model.units import Share
from systems import ROOT, golden

EXAMPLE = ROOT / "examples" / "spring_mass.toml"
PER_STEP = golden("spring_mass")["energy_factor_per_step"]["0.2"]
ACCOUNTS = ("joint.given", "joint.taken", "joint.gained")
FIRST = 0.625
"""Joules that spring and mass store at the start: (1 + 0.5^2) / 2."""


def pairs(count):
    """Return models, connections and bonds of springs and masses side by side."""
    models, connections, bonds = {}, {}, {}
    spring, mass = hk.read(EXAMPLE).composite.scenario.models.values()
    for number in range(1, count + 1):
        models |= {f"spring{number}": spring, f"mass{number}": mass}
        connections |= {
            f"mass{number}.force": f"spring{number}.force",
            f"spring{number}.speed": f"mass{number}.speed",
        }
        bonds[f"b{number}"] = hk.Bond(f"mass{number}.force", f"spring{number}.speed")
    return models, connections, bonds


def nested(folder):
    """Write three pairs: one in a level of its own, with its bond there."""
    models, connections, bonds = pairs(2)
    inner = hk.Composite(hk.read(EXAMPLE).composite.scenario, "0.1")
    path = folder / "nested.toml"
    hk.write(hk.Composite(hk.Scenario({"axle": inner, **models}, connections, bonds=bonds), "0.2"), path)
    return path


def edited(folder, old, new):
    text = EXAMPLE.read_text()
    assert text.count(old) == 1
    path = folder / "wrong.toml"
    path.write_text(text.replace(old, new))
    return path


def test_the_summary_says_what_was_gained(folder):
    said = good("run", EXAMPLE)
    # a hold makes 1 + (omega H)^2 of the energy in each step: 0.625 (1.04^100 - 1) = 30.94 J
    (line,) = (line for line in said.splitlines() if line.startswith("bond: "))
    assert line.startswith("bond: joint, given -")
    assert "gained 30.9 J (" in line
    assert line.endswith(" % of the transferred energy)")


@pytest.mark.parametrize(
    ("typed", "growth", "within"),
    [
        ("hold", PER_STEP["const"] ** 375, 1e-9),
        ("hermite", PER_STEP["linear"] ** 375, 1e-9),
        # formulas, section 5: 1.44-fold with the correction; what a start does to it is not in there
        ("balance-correction", 1.44, 5e-3),
    ],
)
def test_what_is_gained_is_what_the_extrapolation_makes(folder, typed, growth, within):
    good("run", EXAMPLE, "--stop", "75", "--extrapolation", typed, "--folder", "out")
    made = hk.open_run("out").info["bonds"]["joint"]["gained"]
    assert 1.0 + made / FIRST == pytest.approx(growth, rel=within)


def test_a_correction_is_typed_with_its_weight(folder):
    good("run", EXAMPLE, "--extrapolation", "balance-correction(alpha=0)", "--folder", "none")
    # without weight it is the hold
    made = hk.open_run("none").info["bonds"]["joint"]["gained"]
    assert made == pytest.approx(FIRST * (1.04**100 - 1.0), rel=1e-9)
    said = refused("run", EXAMPLE, "--extrapolation", "balance-corection")
    assert "did you mean `balance-correction`?" in said


def test_without_bonds_nothing_is_said_of_them(folder):
    assert "bond" not in good("run", ROOT / "examples" / "two_masses.toml", "--stop", "1")


def test_the_ledger_is_recorded_on_request(folder):
    good("run", EXAMPLE, "--folder", "plain")
    good("run", EXAMPLE, "--ledger", "--folder", "full")
    assert hk.open_run("plain").accounts == ()
    run = hk.open_run("full")
    assert run.accounts == ACCOUNTS
    assert [run[account].unit for account in ACCOUNTS] == ["W", "W", "J"]
    stored = (run["spring.force"].values ** 2 + run["mass.speed"].values ** 2) / 2.0
    assert np.allclose(run["joint.gained"].values, stored - FIRST, rtol=1e-9, atol=1e-12)
    assert run.without_accounts().ports == ("spring.force", "mass.speed")


def test_one_account_may_be_recorded_by_name(folder):
    good("run", EXAMPLE, "--record", "joint.gained", "--folder", "out")
    run = hk.open_run("out")
    assert run.ports == run.accounts == ("joint.gained",)


def test_bonds_that_share_their_connections_are_refused_by_every_verb(folder):
    path = folder / "twice.toml"
    path.write_text(EXAMPLE.read_text() + '\n[bonds.again]\neffort = "spring.speed"\nflow = "mass.force"\n')
    for verb in ("run", "check", "show", "plan"):
        said = refused(verb, path)
        assert "`joint` and `again` are bonds of the same two inputs" in said
        assert "twice.toml, line 39" in said


def test_a_ledger_without_bonds_is_refused(folder):
    said = refused("run", ROOT / "examples" / "two_masses.toml", "--ledger", "--folder", "out")
    assert "`--ledger` is for power bonds, and there is none" in said
    assert "[bonds.NAME]" in said
    assert not Path("out").exists()


def test_units_that_make_no_power_end_with_2_at_their_line(folder):
    path = edited(folder, "[bonds.joint]", '[bonds.joint]\nunit = "kg"')
    for verb in ("run", "check", "show", "plan"):
        said = refused(verb, path)
        assert "`N` times `m/s` is not `kg`" in said
        assert "wrong.toml, line 35" in said


def test_show_lists_bonds_of_every_level(folder):
    path = nested(folder)
    said = good("show", path).splitlines()
    titles = [line for line in said if line.startswith("power bonds")]
    assert titles == ["power bonds of nested", "power bonds inside axle"]
    rows = [line.split() for line in said if line.startswith(("joint ", "b1 ", "b2 "))]
    assert rows == [
        [bond, f"mass{n}.force", "[N]", f"spring{n}.speed", "[m/s]", "W", f"spring{n}", f"mass{n}", "none"]
        for bond, n in (("b1", "1"), ("b2", "2"), ("joint", ""))
    ]
    assert "joint from spring to mass" in good("plan", path)


def test_show_tells_the_remedy(folder):
    text = EXAMPLE.read_text().replace('"hold"', '"linear"')
    for balance, said in (("inversion", "inversion (eps = 0.05)"), ("energy", "energy")):
        Path("remedy.toml").write_text(f'{text}balance = "{balance}"\n')
        (row,) = (line for line in good("show", "remedy.toml").splitlines() if line.startswith("joint"))
        assert row.endswith(f"  {said}")


def test_check_has_a_table_of_bonds_and_a_picture(folder):
    good("run", EXAMPLE, "--ledger", "--folder", "out")
    done = invoked("check", "out", "--plot", "errors.png")
    said = done.stdout.splitlines()
    assert "energy residual: the bond `joint` gained 30.9 J (" in done.stdout
    head = said[said.index("energy through power bonds") + 1]
    assert head.split("  ")[0] == "bond"
    row = said[said.index("energy through power bonds") + 2].split()
    # 30.94 J in 20 s
    assert [*row[:2], *row[4:7]] == ["joint", "gains", "30.9", "J", "1.54703"]
    assert "at most 1 % of the transferred energy" in done.stdout
    assert "wrote errors.png" in said
    assert "wrote errors-energy.png" in said
    assert Path("errors-energy.png").stat().st_size > 10_000
    # the accounts are no ports whose error is estimated: the truth of what is gained is zero
    assert not any(line.startswith("joint.") for line in said)


def test_remedies_are_the_same_on_the_screen_and_in_json(folder):
    done = invoked("check", EXAMPLE, "--json", "out.json")
    said = done.stdout.splitlines()
    first = said.index("energy residual of couplings") + 1
    rows = json.loads(Path("out.json").read_text())["energy_residual_of_couplings"]
    heads = [head for head in said[first].split("  ") if head]
    assert [head.strip().replace(" ", "_") for head in heads] == list(rows[0])
    for line, row in zip(said[first + 1 :], rows, strict=False):
        assert line.startswith(row["coupling"])
        assert f" {Share(row['relative_residual'])} " in line
        assert line.rstrip().endswith(f" {format_cell(row['relative_cost'])}")
    # the hold: 1 + (omega H)^2 of energy in each step, so that its root is the factor of the motion
    assert rows[0]["spectral_radius"] == pytest.approx(1.04**0.5, rel=1e-9)


def test_a_remedy_that_fails_is_said_to_fail():
    """One whose trial does not get through has an infinite share; JSON has no infinity."""
    from hocket.analysis.bond_energy import BondCheck, Remedy

    found = BondCheck((), Remedy("as it is", 0.5, 1.0), (Remedy("other", float("inf"), 2.0, 1.25),))
    names = "coupling", "relative residual", "spectral radius", "relative cost"
    cells = [("as it is", "50 %", "", "1"), ("other", "unbounded", "1.25", "2")]
    assert [[*map(format_cell, row.values())] for row in found.rows()] == [[*row] for row in cells]
    assert all(tuple(row) == names for row in found.rows())


def test_check_says_where_the_picture_is_not(folder):
    good("run", EXAMPLE, "--folder", "out")
    done = invoked("check", "out", "--plot", "errors.png")
    assert "hocket run --ledger" in done.stderr
    assert not Path("errors-energy.png").exists()


def test_trust_leaves_the_accounts_out(folder):
    good("run", EXAMPLE, "--folder", "plain", "--quiet")
    invoked("check", "plain", "--json", "plain.json")
    invoked("run", EXAMPLE, "--ledger", "--trust", "--folder", "out")
    invoked("check", "out", "--json", "out.json")
    plain, out = (json.loads(Path(name).read_text()) for name in ("plain.json", "out.json"))
    assert [row["port"] for row in out["estimated_errors"]] == [
        row["port"] for row in plain["estimated_errors"]
    ]
    assert out["doubts"] == plain["doubts"]
    assert out["energy_through_power_bonds"] == plain["energy_through_power_bonds"]
    (row,) = out["energy_through_power_bonds"]
    assert row["energy_residual"] == pytest.approx(FIRST * (1.04**100 - 1.0), rel=1e-9)
    assert row["per_second"] == pytest.approx(row["energy_residual"] / 20.0, rel=1e-12)


def test_bonds_are_summed_per_level(folder):
    path = nested(folder)
    good("run", path, "--stop", "20", "--folder", "out", "--quiet")
    done = invoked("check", "out", "--json", "out.json")
    assert "energy through power bonds, by level" in done.stdout
    outer, inner = json.loads(Path("out.json").read_text())["energy_through_power_bonds_by_level"]
    # the level inside has steps of half the length
    assert (outer["level"], outer["bonds"], inner["level"], inner["bonds"]) == ("outermost", 2, "axle", 1)
    assert outer["energy_residual"] == pytest.approx(2.0 * FIRST * (1.04**100 - 1.0), rel=1e-9)
    assert inner["gained"] == pytest.approx(FIRST * (1.01**200 - 1.0), rel=1e-9)
    assert inner["lost"] == 0.0


def test_of_many_bonds_the_summary_has_the_worst(folder):
    models, connections, bonds = pairs(9)
    hk.write(hk.Composite(hk.Scenario(models, connections, bonds=bonds), "0.2"), "many.toml")
    said = good("run", "many.toml", "--stop", "1")
    lines = [line for line in said.splitlines() if line.startswith("bond: ")]
    assert len(lines) == 7
    assert lines[-1].startswith("bond: and 3 more: hocket check ")


def test_a_run_that_fails_shows_what_was_recorded(folder):
    result = invoked("run", EXAMPLE, "--step", "1", "--stop", "3000", "--ledger", "--folder", "out")
    assert result.exit_code == 1
    run = hk.open_run("out")
    assert run.status == "failed"
    assert run.accounts == ACCOUNTS
    assert [series.name for series in read_bond_flows(run).series] == ["joint.gained"]


def test_the_report_has_the_bonds(folder):
    good("run", EXAMPLE, "--folder", "out")
    good("report", "out")
    page = Path("out/report.html").read_text()
    assert "energy through power bonds" in page
    assert "gained 30.9 J" in page
    assert "energy residual of couplings" in page
    assert page.count("<td>joint</td>") >= 3  # of two connections, and in the table of bonds


def test_amounts_have_the_unit_that_suits_them():
    assert [format_energy(value, "J") for value in (3210.0, -25.0, 0.0042, 5e-7, 0.0, 2e10)] == [
        "3.21 kJ", "-25 J", "4.2 mJ", "5e-07 J", "0 J", "20 GJ",
    ]  # fmt: skip
    assert format_energy(3210.0, "kg") == "3.21e+03 kg"
    assert format_energy(float("inf"), "J") == "inf J"
    assert format_energy(1.5, "") == "1.5"


def flow(given, taken, bond="b", unit="J"):
    return BondFlow(bond, given, taken, taken - given, unit, 2.0)


@pytest.mark.parametrize(
    ("given", "taken", "word"),
    [(100.0, 100.5, "conserves"), (100.0, 110.0, "gains"), (-100.0, -110.0, "loses"), (0.0, 0.0, "conserves"),
     (float("inf"), float("-inf"), "loses"), (float("inf"), float("inf"), "gains")],
)  # fmt: skip
def test_a_bond_gains_loses_or_keeps(given, taken, word):
    assert flow(given, taken).verdict_word == word


def test_the_verdict_names_the_worst_of_those_that_gain_and_of_those_that_lose():
    found = BondFlows(
        "x", (flow(10.0, 20.0, "a.b"), flow(10.0, 12.0, "c"), flow(10.0, 8.0, "d"), flow(1.0, 1.0, "e"))
    )
    assert list(found.verdict()) == [
        "energy residual: the bond `a.b` gained 10 J (50 % of the transferred energy); 1 more gain too",
        "energy residual: the bond `d` lost 2 J (20 % of the transferred energy)",
    ]
    assert list(BondFlows("x", (flow(1.0, 1.0), flow(2.0, 2.0))).verdict()) == [
        "energy residual: both bonds conserve energy, to 1 %"
    ]
    assert list(BondFlows("x", ()).verdict()) == []
    assert [(row["level"], row["gained"], row["lost"]) for row in found.level_rows()] == [
        ("outermost", 2.0, 2.0),
        ("a", 10.0, 0.0),
    ]


def test_a_bond_that_gives_back_what_it_gained_swings(folder):
    """Gauss-Seidel with a hold is bounded: c s^2 + m v^2 - H c s v stays (symplectic Euler)."""
    options = "--algorithm", "gauss-seidel(order=[spring, mass])", "--ledger"
    good("run", EXAMPLE, *options, "--folder", "out")
    done = invoked("check", "out")
    assert "energy residual: that of the bond `joint` oscillates, what is gained is lost again" in done.stdout
    (each,) = read_bond_flows(hk.open_run("out")).bonds
    assert (each.verdict_word, each.gained > 0.0) == ("oscillates", True)
    # not recorded, only the end is known
    good("run", EXAMPLE, *options[:2], "--folder", "plain")
    assert [each.verdict_word for each in read_bond_flows(hk.open_run("plain")).bonds] == ["gains"]


def test_stored_energy_is_told_beside_the_bonds(folder):
    said = good("run", EXAMPLE, "--engine", "interpreter", "--folder", "out")
    # (1 + 0.25) / 2 J, times 1.04^100
    assert "stored: 625 mJ at the start, 31.6 J at the end in 2 simulators" in said
    invoked("check", "out", "--json", "out.json")
    spring, mass, both = json.loads(Path("out.json").read_text())["stored_energy"]
    assert [spring["simulator"], mass["simulator"], both["simulator"]] == ["spring", "mass", "together"]
    assert (spring["at_the_start"], mass["at_the_start"]) == (0.5, 0.125)
    assert both["change"] == pytest.approx(FIRST * (1.04**100 - 1.0), rel=1e-9)
    assert "stored energy" in invoked("check", "out").stdout


def test_a_picture_needs_the_ledger(folder):
    with pytest.raises(ScenarioError, match="ledger"):
        BondFlows("x", (flow(1.0, 2.0),)).plot("x.png")
    with pytest.raises(ScenarioError, match="no power bonds"):
        BondFlows("x", ()).plot("x.png")


def test_energy_beyond_all_numbers_is_told_as_such():
    (line,) = BondFlows("x", (flow(float("inf"), float("inf"), "joint"),)).verdict()
    assert line == "energy residual: the bond `joint` gained energy without bound"
