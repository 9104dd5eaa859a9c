"""Simulators that cannot be balanced: what they lack and what to do, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command_line import good, refused
from fmus.build import build

VERBS = ("run", "check", "show", "plan")
SPRING = """
[models.spring]
type = "state-space"
A = [[0]]
B = [[1]]
C = [[-1]]
x0 = [1]
inputs = ["speed [m/s]"]
outputs = ["force [N]"]
energy = [[1]]
"""
WIRES = """
[connections]
mass.force = "spring.force"
spring.speed = "mass.speed"
"""
PLANT = """
class Mass:
    inputs = ["force [N]"]
    outputs = ["speed [m/s]"]

    def start(self, t):
        self.v = 0.5

    def output(self, t):
        return [self.v]

    def step(self, t, h, u):
        self.v += h * u[0, 0]


class Telling(Mass):
    def energy(self):
        return 0.5 * self.v**2


class Fixed(Mass):
    variable_step = False


def rate(t, x, u):
    return [u[0]]
"""
ODE = """
type = "ode"
f = "plant.py:rate"
x0 = [0.5]
inputs = ["force [N]"]
outputs = ["speed [m/s]"]
"""
HEAD = 'step = "0.2 s"\nextrapolation = "linear"\n[run]\nstop = "2 s"\n'


def bond(balance: str, effort: str = "mass.force", flow: str = "spring.speed") -> str:
    return f'\n[bonds.joint]\neffort = "{effort}"\nflow = "{flow}"\nbalance = "{balance}"\n'


def line_of(text: str, start: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plant.py").write_text(PLANT)
    return tmp_path


def python(name: str) -> str:
    return f'\ntype = "python"\nclass = "plant.py:{name}"\n'


def written(mass: str, balance: str) -> str:
    text = f"{HEAD}{SPRING}\n[models.mass]{mass}{WIRES}{bond(balance)}"
    Path("pair.toml").write_text(text)
    return text


@pytest.mark.parametrize(
    ("mass", "balance", "told"),
    [
        (python("Mass"), "energy", ["the state of this `Python` is not hocket's to move", '"inversion"']),
        (python("Telling"), "energy", ["the state of this `Python`", "is told is not enough", '"inversion"']),
        (python("Fixed"), "energy", ["the state of this `Python` is not hocket's to move"]),
        (
            python("Fixed"),
            "inversion",
            ["step of this `Python` cannot be divided by 8", "`balance-correction`"],
        ),
        (ODE, "energy", ["the stored energy of this `Ode`, which declares none", "declare `energy`"]),
    ],
)
def test_what_is_missing_is_told_at_the_line_of_the_bond(mass: str, balance: str, told: list[str]) -> None:
    text = written(mass, balance)
    for verb in VERBS:
        code = ["--code"] if verb in ("show", "plan") else []  # how it steps is told by its class
        said = refused(verb, "pair.toml", *code)
        assert said.startswith("`mass` cannot be balanced: ")  # one fault: the spring is able
        assert f"pair.toml, line {line_of(text, '[bonds.joint]')}\n" in said
        assert all(each in said for each in told)


@pytest.mark.parametrize("mass", [python("Mass"), python("Telling"), ODE])
def test_what_is_advised_works(mass: str) -> None:
    written(mass, "inversion")
    assert "bond: joint, given" in good("run", "pair.toml")


def test_the_advice_for_fixed_steps_works() -> None:
    text = written(python("Fixed"), "inversion").replace('balance = "inversion"\n', "")
    Path("pair.toml").write_text(text.replace('"linear"', '"balance-correction"'))
    assert "bond: joint, given" in good("run", "pair.toml")


def test_a_bond_of_a_level_inside_has_its_line() -> None:
    inner = f"{SPRING}\n[models.mass]{python('Mass')}{WIRES}{bond('energy')}"
    level = '[models.axle]\ntype = "composite"\nstep = "0.2 s"\nextrapolation = "linear"\n'
    text = 'step = "0.2 s"\n[run]\nstop = "2 s"\n' + level + inner.replace("[models.", "[models.axle.models.")
    for table in ("connections", "bonds."):
        text = text.replace(f"[{table}", f"[models.axle.{table}")
    Path("nested.toml").write_text(text)
    said = refused("run", "nested.toml")
    assert "`mass` cannot be balanced: " in said
    assert f"nested.toml, line {line_of(text, '[models.axle.bonds.joint]')}\n" in said


def test_fmus(here: Path) -> None:
    build("first", folder=here, interfaces=["cs"])
    build("second", folder=here, interfaces=["cs"])
    build(
        "second",
        folder=here,
        interfaces=["cs"],
        file="fixed.fmu",
        canHandleVariableCommunicationStepSize=None,
    )
    models = (
        '\n[models.first]\ntype = "fmu"\npath = "first.fmu"\n[models.second]\ntype = "fmu"\npath = "{}.fmu"\n'
    )
    wires = '\n[connections]\nfirst.x = "second.x"\nfirst.v = "second.v"\nsecond.force = "first.force"\n'
    for file, balance in (("second", "energy"), ("fixed", "inversion"), ("second", "inversion")):
        text = HEAD + models.format(file) + wires + bond(balance, "second.force", "first.v")
        Path(f"{file}_{balance}.toml").write_text(text)
    both = refused("run", "second_energy.toml")
    for name in ("first", "second"):
        assert f"`{name}` cannot be balanced: balance by energy moves the state" in both
    assert "the state of this `Fmu` is not hocket's to move" in both
    said = refused("run", "fixed_inversion.toml")
    assert said.startswith("`second` cannot be balanced: the step of this `Fmu` cannot be divided by 8")
    assert "bond: joint, given" in good("run", "second_inversion.toml")
