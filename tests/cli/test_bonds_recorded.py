"""Accounts of power bonds on the command line: which are recorded, and what a sweep says of them."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

import hocket as hk
from cli.test_bonds import ACCOUNTS, EXAMPLE, ROOT, nested
from command_line import good, invoked, refused
from systems import rewrite_run

SWEPT = """
step = "0.2 s"
[run]
stop = "20 s"
[models.spring]
type = "ode"
f = "plant.py:rate"
g = "plant.py:force"
x0 = [1]
inputs = ["speed [m/s]"]
outputs = ["force [N]"]
feedthrough = {}
energy = "plant.py:stored"
parameters = { c = 1.0 }
[models.mass]
type = "ode"
f = "plant.py:rate"
x0 = [0.5]
inputs = ["force [N]"]
outputs = ["speed [m/s]"]
energy = "plant.py:stored"
parameters = { c = 1.0 }
[connections]
mass.force = "spring.force"
spring.speed = "mass.speed"
[bonds.joint]
effort = "mass.force"
flow = "spring.speed"
"""
PLANT = """
def rate(t, x, u, c):
    return [u[0]]


def force(t, x, u, c):
    return [-c * x[0]]


def stored(x, c):
    return 0.5 * c * x[0] ** 2
"""


@pytest.fixture
def swept(folder):
    """A spring and a mass of 1 kg whose stiffness is a parameter."""
    (folder / "plant.py").write_text(PLANT)
    (folder / "swept.toml").write_text(SWEPT)
    return folder / "swept.toml"


@pytest.mark.parametrize("ledger", [[], ["--ledger"]], ids=["", "ledger"])
def test_accounts_of_all_bonds_are_chosen_by_their_end(folder, ledger):
    path = nested(folder)
    good("run", path, "--stop", "1", "--record", "*.gained", *ledger, "--folder", "out")
    assert set(hk.open_run("out").ports) == {"b1.gained", "b2.gained", "axle.joint.gained"}
    good("run", path, "--stop", "1", "--record", "b?.taken", "--record", "b1.*", *ledger, "--folder", "some")
    assert set(hk.open_run("some").ports) == {"b1.given", "b1.taken", "b1.gained", "b2.taken"}


def test_the_ledger_adds_all_accounts_to_ports_that_are_chosen(folder):
    good("run", EXAMPLE, "--record", "*.speed", "--ledger", "--folder", "out")
    assert hk.open_run("out").ports == ("mass.speed", *ACCOUNTS)


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [("*.gaind", "hocket show"), ("c*.gained", "`b1.*`: given, taken, gained"), ("b1.x*", "`b1.*`: given,")],
)
@pytest.mark.parametrize("ledger", [[], ["--ledger"]], ids=["", "ledger"])
def test_a_pattern_that_chooses_nothing_is_told(folder, pattern, hint, ledger):
    said = refused("run", nested(folder), "--stop", "1", "--record", pattern, *ledger)
    assert f"no output matches `{pattern}`" in said
    assert hint in said


def test_a_pattern_of_accounts_without_bonds_is_told(folder):
    said = refused("run", ROOT / "examples" / "two_masses.toml", "--record", "*.gained")
    assert "no output matches `*.gained`" in said
    assert "power bonds: there is none" in said


def growth(c, steps=100, h=0.2):
    """Return the joules that held inputs make: 1 + c h^2 times the energy in every step (Moshagen 2021)."""
    return 0.5 * (c + 0.25) * ((1.0 + c * h * h) ** steps - 1.0)


@pytest.mark.parametrize("more", [[], ["--ledger"], ["--record", "*.gained"]], ids=["", "ledger", "record"])
def test_a_sweep_says_what_every_bond_gained(swept, more):
    said = good("sweep", swept, "--vary", "spring.c=1,2", "--csv", "table.csv", *more).splitlines()
    column = said[0].split().index("joint.gained")
    head, *rows = list(csv.reader(Path("table.csv").read_text().splitlines()))
    for c, printed, row in zip((1.0, 2.0), said[1:3], rows, strict=True):
        assert float(row[head.index("joint.gained")]) == pytest.approx(growth(c), rel=1e-9)
        assert float(printed.split()[column]) == pytest.approx(growth(c), rel=1e-5)
    assert head.count("joint.gained") == 1
    assert ("joint.given" in head) == (more == ["--ledger"])


def test_a_sweep_of_balanced_bonds(swept):
    swept.write_text(SWEPT.replace('step = "0.2 s"', 'step = "0.2 s"\nextrapolation = "linear"'))
    plain = swept.read_text()
    for balance in ("energy", "inversion"):
        swept.write_text(f'{plain}balance = "{balance}"\n')
        good("sweep", swept, "--vary", "spring.c=1,2", "--csv", f"{balance}.csv")
    good_rows = list(csv.DictReader(Path("energy.csv").read_text().splitlines()))
    # the energy form keeps c s^2 + v^2, and so does its account
    for row, c in zip(good_rows, (1.0, 2.0), strict=True):
        E = 0.5 * (float(row["spring.force"]) ** 2 / c + float(row["mass.speed"]) ** 2)
        assert pytest.approx(0.5 * (c + 0.25), rel=1e-9) == E
        assert float(row["joint.gained"]) == pytest.approx(0.0, abs=1e-9)
    for row in csv.DictReader(Path("inversion.csv").read_text().splitlines()):
        assert abs(float(row["joint.gained"])) < 0.1


def test_a_sweep_with_a_ledger_needs_bonds(folder):
    said = refused("sweep", ROOT / "examples" / "two_masses.toml", "--vary", "left.x=1", "--ledger")
    assert "`--ledger` is for power bonds, and there is none" in said


def test_a_killed_run_says_what_its_rows_say(folder):
    good("run", EXAMPLE, "--ledger", "--folder", "out")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left_out = dict.fromkeys(("bonds", "stored", "reached", "counts"))
    rewrite_run("out", status="running", process=gone.pid, **left_out)
    assert hk.open_run("out").status == "killed"
    said = invoked("check", "out", "--quick").output
    assert (
        f"energy residual: the bond `joint` gained {growth(1.0):.3g} J up to 20 s, where its rows end\n"
        in said
    )


@pytest.mark.parametrize("balance", ["energy", "inversion"])
def test_the_plan_says_which_bonds_are_balanced(swept, balance):
    plain = SWEPT.replace('step = "0.2 s"', 'step = "0.2 s"\nextrapolation = "linear"')
    swept.write_text(plain)
    assert "    joint from spring to mass\n" in good("plan", swept)
    swept.write_text(f'{plain}balance = "{balance}"\n')
    assert f"    joint from spring to mass, balanced by {balance}\n" in good("plan", swept)


def test_stable_values_of_balanced_bonds_are_not_looked_for(swept):
    plain = SWEPT.replace('step = "0.2 s"', 'step = "0.2 s"\nextrapolation = "linear"')
    swept.write_text(plain)
    assert "`spring.c`" in good("check", swept, "--vary", "spring.c=0.5:2")
    swept.write_text(f'{plain}balance = "energy"\n')
    said = refused("check", swept, "--vary", "spring.c=0.5:2")
    assert said.startswith(
        "`spring` has no linear model: its bonds are balanced, by a law that is not linear\n"
    )
    assert "where:    --vary\n" in said
