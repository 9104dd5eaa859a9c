"""hocket capabilities: what simulators can, what is needed, and the file with what is missing emulated."""

from __future__ import annotations

import json

import pytest

import hocket as hk
from command_line import good, invoked, refused
from fmus.build import build
from systems import ENGINES, EXAMPLES

CAR = EXAMPLES / "car.toml"

PLANT = """
class Plant:
    inputs, outputs = ("u", "w"), ("x", "y")

    def start(self, t):
        self.x = 1.0

    def output(self, t, u):
        return [self.x, self.x * u[0, 1]]

    def step(self, t, h, u):
        self.x += h * (u[0, 0] - self.x)
"""
FILE = """
step = "10 ms"
orchestrator = "iterate"

[run]
stop = "0.1 s"

[models.a]
type = "python"
class = "plant.py:Plant"

[models.b]
type = "python"
class = "plant.py:Plant"

[connections]
a.u = "b.x"
a.w = "b.x"
b.u = "a.y"
b.w = "a.x"
"""


@pytest.fixture
def stuck(tmp_path):
    """A scenario that its own algorithm refuses."""
    (tmp_path / "plant.py").write_text(PLANT)
    file = tmp_path / "stuck.toml"
    file.write_text(FILE)
    return file


def line(text, *words):
    """Return the first line with all these words."""
    return next(one for one in text.splitlines() if all(word in one for word in words))


def test_the_car():
    text = good("capabilities", CAR)
    assert line(text, "skyhook", "Python").split()[2:8] == ["no", "no:", "sampled", "every", "20", "ms"]
    assert line(text, "chassis.axle.wheel", "StateSpace").split()[2:5] == ["yes", "yes", "yes"]
    assert line(text, "chassis ", "level").split()[2:4] == ["yes", "no"]
    assert "NOT MET" not in text
    assert "events" not in text
    assert "events" in good("capabilities", CAR, "--all")


def test_an_algorithm_that_does_not_suit_it():
    result = invoked("capabilities", CAR, "--algorithm", "iterate")
    assert result.exit_code == 2
    found = line(result.stdout, "iterate", "rollback", "NOT MET")
    assert found.split()[-4:] == ["skyhook", "replay", "=", "true"]
    assert "skyhook: iterate needs rollback: steps are made again" in result.stdout
    assert "without it the scenario is refused" in result.stdout


def test_a_file_that_is_refused_is_read_and_mended(stuck, tmp_path):
    assert "cannot roll back" in refused("plan", stuck)
    result = invoked("capabilities", stuck)
    assert result.exit_code == 2
    assert "assumed: all" in result.stdout
    target = tmp_path / "able.toml"
    text = good("capabilities", stuck, "--emulate", target)
    assert "rollback by replay" in text
    assert f"wrote {target}" in text
    assert target.read_text().count("replay = true") == 2
    assert "emulated: replay" in line(good("capabilities", target), "a ", "Python")
    run = hk.run(target, 0.1)
    assert run.info["status"] == "finished"


def test_probing_opens_models_and_marks_what_was_seen(stuck, tmp_path):
    target = tmp_path / "able.toml"
    text = good("capabilities", stuck, "--emulate", target, "--probe")
    assert text.count("feedthrough by probing") == 2
    written = target.read_text()
    assert written.count('feedthrough = { y = ["w"] }') == 2
    assert written.count("probed = true") == 2
    assert "emulated: probing" in good("capabilities", target)
    assert "feedthrough by probing" in good("plan", target, "--code")
    assert "`plant.py:Plant` is code, and code is not loaded" in refused("plan", target)


def test_what_is_only_lost_is_emulated_on_request(stuck, tmp_path):
    file = tmp_path / "lost.toml"
    file.write_text(FILE.replace('"iterate"', '"jacobi"\nextrapolation = "quadratic"'))
    result = invoked("capabilities", file)
    assert result.exit_code == 0
    assert "lost" in line(result.stdout, "the start", "rollback")
    target = tmp_path / "able.toml"
    assert "nothing has to be emulated" in good("capabilities", file, "--emulate", target)
    assert "replay" not in target.read_text()
    assert "rollback by replay" in good("capabilities", file, "--emulate", target, "--wanted")
    assert target.read_text().count("replay = true") == 2


def test_passes_can_be_asked():
    assert "pass accuracy" in invoked("capabilities", CAR, "--pass", "accuracy").stdout
    assert "did you mean `accuracy`" in refused("capabilities", CAR, "--pass", "acuracy")


def test_json(tmp_path):
    found = json.loads(good("capabilities", CAR, "--json", "-"))
    assert [row["simulator"] for row in found["capabilities"]][:3] == ["road", "skyhook", "chassis"]
    assert all(need["met"] for need in found["needs"])
    target = tmp_path / "car.json"
    good("capabilities", CAR, "--json", target)
    assert json.loads(target.read_text()) == found


def test_fmus(tmp_path):
    first = build("first", 1, folder=tmp_path)
    second = build(
        "second", 2, folder=tmp_path, canGetAndSetFMUstate=None, canHandleVariableCommunicationStepSize=None
    )
    wires = [
        word
        for pair in ("first.x=second.x", "first.v=second.v", "second.force=first.force")
        for word in ("--connect", pair)
    ]
    text = good("capabilities", first, second, *wires)
    assert line(text, "second ", "Fmu").split()[2:6] == ["no", "no", "no", "0"]
    how = "--algorithm", "adaptive(tolerance=1e-3)", "--extrapolation", "hermite"
    result = invoked("capabilities", first, second, *wires, *how)
    assert result.exit_code == 2
    assert 'slopes = "backward"' in line(result.stdout, "slopes", "NOT MET")
    target = tmp_path / "able.toml"
    good("capabilities", first, second, *wires, *how, "--emulate", target)
    runs = [hk.run(target, 0.2, engine=engine) for engine in ENGINES]
    assert (runs[0]["second.x"].values == runs[1]["second.x"].values).all()


def test_what_nothing_emulates_is_said_and_nothing_is_written(tmp_path):
    target = tmp_path / "able.toml"
    result = invoked("capabilities", CAR, "--algorithm", "adaptive", "--emulate", target)
    assert result.exit_code == 2
    assert "adaptive needs variable step of `skyhook`, which nothing emulates" in result.stderr
    assert "a multiple of 20 ms" in result.stderr
    assert 'quantum = "1/5"' in result.stderr
    assert not target.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.toml"], "nowhere.toml"),
        ([CAR, "--algorithm", "iterat"], "did you mean `iterate`"),
        ([CAR, "--emulate", "no/such/folder/x.toml"], "there is no folder"),
    ],
)
def test_bad_input(words, message):
    assert message in refused("capabilities", *words)


def test_other_faults_of_a_file_are_told_as_ever(stuck):
    stuck.write_text(FILE.replace('"iterate"', '"jacobi"').replace('"a.y"', '"a.z"'))
    told = refused("capabilities", stuck)
    assert "`a` has no output `z`" in told
    assert "line 19" in told
    stuck.write_text(FILE.replace('"a.y"', '"a.z"'))
    assert "`a` has no output `z`" in refused("capabilities", stuck)


def test_a_file_of_another_kind_cannot_be_written(stuck, tmp_path):
    assert "not a name for a scenario" in refused("capabilities", stuck, "--emulate", tmp_path / "able.txt")


LINK = """
step = "10 ms"

[run]
stop = "0.2 s"

[models.left]
type = "state-space"
A = [[0, 1], [-1, -0.1]]
B = [[0], [1]]
C = [[1, 0], [0, 1]]
x0 = [1, 0]
inputs = ["F"]
outputs = ["x", "v"]

[models.right]
type = "python"
class = "mass.py:Mass"

[constraints]
link = { equations = ["left.x = right.x", "left.F + right.F = 0"] }
"""
MASS = """
class Mass:
    inputs, outputs = ("F",), ("x", "v")

    def start(self, t):
        self.x, self.v = 1.0, 0.0

    def output(self, t):
        return [self.x, self.v]

    def step(self, t, h, u):
        self.x += h * self.v + 0.5 * h * h * u[0, 0]
        self.v += h * u[0, 0]
"""


def test_equations_between_those_that_cannot_go_back(tmp_path):
    """Refused for what one cannot do; emulated, the pass does its work and the two stay together."""
    (tmp_path / "mass.py").write_text(MASS)
    file, target = tmp_path / "link.toml", tmp_path / "able.toml"
    file.write_text(LINK)
    assert "`right` cannot roll back" in refused("plan", file, "--code")
    assert "`mass.py:Mass` is code, and code is not loaded" in refused("plan", file)
    result = invoked("capabilities", file)
    assert result.exit_code == 2
    assert line(result.stdout, "pass modularity", "rollback", "NOT MET").endswith("replay = true")
    good("capabilities", file, "--emulate", target)
    run = hk.run(target, 0.2)
    assert abs(run["left.x"].values - run["right.x"].values).max() < 1e-4
    # one body of two masses on a spring: (1 + 1) x'' = -x - 0.1 x'
    assert abs(run["left.x"].values[-1] - (1 - 0.25 * 0.2**2)) < 1e-3
