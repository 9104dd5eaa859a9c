"""Scenarios that are wrong, each with the whole message that its author gets to read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hocket import ScenarioError, SimulatorError, open_run, read, run
from hocket.errors import FileError
from systems import ENGINES

GOOD = """\
step = "10 ms"

[run]
stop = 1

[models.mass]
type = "state-space"
A = [[0, 1], [-1, -0.1]]
B = [[0], [1]]
C = [[1, 0]]
inputs = ["force [N]"]
outputs = ["x [m]"]

[models.spring]
type = "gain"
gain = -2
unit = "m"
out = "N"

[connections]
mass.force = "spring.y"
spring.u = "mass.x"
"""

SIMULATORS = """\
import math


class Tank:
    inputs = ["flow [m^3/s] = 0.5"]
    outputs = ["volume [m^3]", "level [m]"]

    def __init__(self, overflows=math.inf, dries=math.inf):
        self.overflows, self.dries = overflows, dries

    def start(self, t):
        self.volume = 0.0

    def output(self, t):
        return [self.volume, math.nan if t >= self.dries else self.volume / 2]

    def step(self, t, h, u):
        if t >= self.overflows:
            raise RuntimeError("the tank overflows")
        self.volume += h * u[0][0]
"""


@dataclass(frozen=True)
class Bad:
    """What is typed instead of what, and the answer."""

    name: str
    instead_of: str
    typed: str
    message: str


BAD = (
    Bad(
        "a connection from an unknown model",
        '"spring.y"',
        '"sprung.y"',
        """\
there is no model `sprung`
  where:    bad.toml, line 21
  try:      did you mean `spring`?""",
    ),
    Bad(
        "an unknown type of model",
        '"gain"',
        '"gian"',
        """\
there is no model of type `gian`
  where:    bad.toml, line 15
  try:      did you mean `gain`?""",
    ),
    Bad(
        "an unknown port",
        '"mass.x"',
        '"mass.xx"',
        """\
`mass` has no output `xx`
  where:    bad.toml, line 22
  try:      did you mean `x`?""",
    ),
    Bad(
        "an unknown key",
        "gain = -2",
        "gainn = -2",
        """\
there is no key `gainn` in `gain`
  where:    bad.toml, line 16
  try:      did you mean `gain`?""",
    ),
    Bad(
        "an unknown key of the level",
        "step =",
        "setp =",
        """\
there is no key `setp` in a scenario
  where:    bad.toml, line 1
  try:      did you mean `step`?""",
    ),
    Bad(
        "two sources",
        'spring.u = "mass.x"\n',
        'spring.u = "mass.x"\nmass.force = "mass.x"\n',
        """\
`mass.force` has two sources, in line 21 and line 23
  where:    bad.toml, line 23
  expected: one source per input
  try:      add them in a model of type `sum` and connect that""",
    ),
    Bad(
        "an input that nothing drives",
        'mass.force = "spring.y"\n',
        "",
        """\
nothing drives `mass.force`
  where:    bad.toml, line 6
  expected: a connection or a start value
  try:      connect an output to it, or give it a start value: "force = 0.0\"""",
    ),
    Bad(
        "a micro step that does not divide the step",
        "C = [[1, 0]]",
        'C = [[1, 0]]\nmethod = "rk4"\nstep = "4 ms"',
        """\
the step 4 ms of `mass` does not divide the step 10 ms around it
  where:    bad.toml, line 12
  expected: the outer step divided by a whole number
  try:      1/300 s or 5 ms""",
    ),
    Bad(
        "the step of a level that does not divide the one around it",
        "[connections]",
        '[models.inner]\ntype = "composite"\nstep = "3 ms"\nmodels.road = { type = "table", t = [0, 1], '
        "columns = { z = [0, 1] } }\n\n[connections]",
        """\
the step 3 ms of `inner` does not divide the step 10 ms around it
  where:    bad.toml, line 22
  expected: the outer step divided by a whole number, or a multiple of it
  try:      2.5 ms or 1/300 s""",
    ),
    Bad(
        "a negative step",
        '"10 ms"',
        '"-10 ms"',
        """\
the step -10 ms is not positive
  where:    bad.toml, line 1
  expected: a step above zero""",
    ),
    Bad(
        "a step of zero",
        '"10 ms"',
        "0",
        """\
the step 0 s is not positive
  where:    bad.toml, line 1
  expected: a step above zero""",
    ),
    Bad(
        "a wrong type",
        "gain = -2",
        'gain = "two"',
        """\
`gain` is the text "two"
  where:    bad.toml, line 16
  expected: a number""",
    ),
    Bad(
        "units of different dimensions",
        'unit = "m"',
        'unit = "kg"',
        """\
`m` cannot be converted to `kg`: [length] against [mass]
  where:    bad.toml, line 22
  expected: `mass.x` and `spring.u` in units that convert""",
    ),
    Bad(
        "not TOML",
        '"10 ms"',
        "10 ms",
        """\
this is not TOML, expected newline or end of document after a statement: `step = 10 ms`
  where:    bad.toml, line 1
  try:      put the duration in quotes: "10 ms\"""",
    ),
    Bad(
        "a class that is not there",
        "[connections]",
        '[models.tank]\ntype = "python"\nclass = "simulators.py:Tnak"\n\n[connections]',
        """\
`simulators.py` has no `Tnak`
  where:    bad.toml, line 22
  try:      did you mean `Tank`?""",
    ),
    Bad(
        "a file that includes itself",
        "[connections]",
        '[models.again]\ntype = "composite"\nfile = "bad.toml"\n\n[connections]',
        """\
a cycle of composites: `bad.toml` includes `bad.toml`
  where:    bad.toml, line 22
  expected: files that do not include themselves""",
    ),
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with some simulators."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "simulators.py").write_text(SIMULATORS)
    return tmp_path


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_message(here: Path, bad: Bad) -> None:
    assert GOOD.count(bad.instead_of) == 1
    (here / "bad.toml").write_text(GOOD.replace(bad.instead_of, bad.typed))
    with pytest.raises(FileError) as caught:
        read("bad.toml")
    assert str(caught.value) == bad.message


def test_all_faults_at_once(here: Path) -> None:
    text = GOOD.replace("10 ms", "10 mss").replace("gain = -2", "gainn = -2").replace("mass.x", "mass.xx")
    (here / "bad.toml").write_text(text)
    with pytest.raises(FileError) as caught:
        read("bad.toml")
    assert (
        str(caught.value)
        == """\
3 faults:
1. `step` is the text "10 mss"
     where:    bad.toml, line 1
     expected: a duration such as "2.5 ms", "1/3 s" or 0.01
2. there is no key `gainn` in `gain`
     where:    bad.toml, line 16
     try:      did you mean `gain`?
3. `mass` has no output `xx`
     where:    bad.toml, line 22
     try:      did you mean `x`?"""
    )


def test_cycle_of_two_files(here: Path) -> None:
    other = '[models.{0}]\ntype = "composite"\nfile = "{0}.toml"\n\n[connections]'
    (here / "car.toml").write_text(GOOD.replace("[connections]", other.format("axle")))
    (here / "axle.toml").write_text(GOOD.replace("[connections]", other.format("car")))
    with pytest.raises(FileError) as caught:
        read("car.toml")
    assert (
        str(caught.value)
        == """\
a cycle of composites: `car.toml` includes `axle.toml` includes `car.toml`
  where:    axle.toml, line 22
  expected: files that do not include themselves"""
    )


def test_unreadable_files(here: Path) -> None:
    (here / "bad.toml").write_bytes(b'step = "10 ms"\nname = "\xff"\n')
    with pytest.raises(FileError) as caught:
        read("bad.toml")
    assert (
        str(caught.value)
        == """\
`bad.toml` is not UTF-8 text: byte 0xff
  where:    bad.toml, line 2
  expected: UTF-8
  try:      save it as UTF-8 in your editor"""
    )
    (here / "folder.toml").mkdir()
    with pytest.raises(FileError) as caught:
        read("folder.toml")
    assert str(caught.value) == (
        "`folder.toml` is a folder, and holds no SystemStructure.ssd or modelDescription.xml\n"
        "  where:    folder.toml\n  expected: a name that ends in .toml, .ssp, .ssd or .fmu"
    )
    with pytest.raises(FileError) as caught:
        read("bda.toml")
    assert (
        str(caught.value)
        == """\
there is no file `bda.toml`
  where:    bda.toml
  try:      did you mean `bad.toml`?"""
    )


def test_a_run_of_broken_steps(here: Path) -> None:
    (here / "good.toml").write_text(GOOD)
    with pytest.raises(ScenarioError) as caught:
        run(read("good.toml").composite, "1.005 s")
    assert (
        str(caught.value)
        == """\
the step 10 ms does not divide the run from 0 s to 1.005 s
  where:    stop
  expected: a whole number of steps
  try:      stop at 1 s or 1.01 s, or choose another step"""
    )


TANK = """\
step = "10 ms"
run.stop = 1

[models.tank]
type = "python"
class = "simulators.py:Tank"
parameters = { PARAMETER = 0.3 }
"""
IN_PLANT = TANK.replace(
    "[models.tank]", '[models.plant]\ntype = "composite"\nstep = "5 ms"\n[models.plant.models.tank]'
)

RAISED = """\
`tank` raised RuntimeError: the tank overflows
  where:    `tank`, step() at t = 0.3 s, simulators.py line 19"""
NOT_A_NUMBER = """\
`tank.level` is nan
  where:    output at t = 0.3 s
  expected: a finite number
  try:      a smaller step, if the coupling is unstable; else look into the simulator"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "parameter", "port", "message", "kept", "last"),
    [
        (TANK, "overflows", "tank.volume", RAISED, "0.3", 0.3),
        (TANK, "dries", "tank.volume", NOT_A_NUMBER, "0.29", 0.29),
        (IN_PLANT, "overflows", "plant.tank.volume", RAISED.replace("`tank`", "`plant.tank`"), "0.3", 0.3),
        (
            IN_PLANT,
            "dries",
            "plant.tank.volume",
            NOT_A_NUMBER.replace("`tank", "`plant.tank"),
            "0.295",
            0.295,
        ),
    ],
    ids=["raises", "is not a number", "raises inside a level", "is not a number inside a level"],
)
def test_failing_run_keeps_its_rows(
    here: Path, engine: str, text: str, parameter: str, port: str, message: str, kept: str, last: float
) -> None:
    (here / "bad.toml").write_text(text.replace("PARAMETER", parameter))
    experiment = read("bad.toml")
    with pytest.raises(SimulatorError) as caught:
        run(experiment.composite, 1, folder="out", engine=engine)  # type: ignore[arg-type]
    assert str(caught.value) == message
    assert caught.value.__notes__ == [f"rows up to t = {kept} s are kept in {here / 'out'}"]
    failed = open_run("out")
    assert (failed.status, failed.info["error"]) == ("failed", message)
    t, volume = failed[port]
    step = 0.005 if text == IN_PLANT else 0.01
    np.testing.assert_allclose(t, np.arange(0, last + step / 2, step), atol=1e-12)
    np.testing.assert_allclose(volume, t / 2, atol=1e-12)
