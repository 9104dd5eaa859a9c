"""hocket sweep of files: what one value spoils fails in its row, what is wrong for all is refused."""

import re
from pathlib import Path

import pytest

from command_line import good, invoked, refused, without_loads

MASS = """
class Mass:
    inputs = ["F [N]"]
    outputs = ["x [m]", "v [m/s]"]

    def __init__(self, k=1.0, x0=1.0):
        self.k, self.x0 = k, x0

    def start(self, t):
        self.x, self.v = self.x0, 0.0

    def output(self, t):
        return [self.x, self.v]

    def step(self, t, h, u):
        a = u[0, 0] - self.k * self.x
        self.x, self.v = self.x + h * self.v + 0.5 * h * h * a, self.v + h * a

    def save(self):
        return self.x, self.v

    def restore(self, state):
        self.x, self.v = state
"""
JOINED = """
name = "joined"
step = "25 ms"

[run]
stop = "1 s"

[models.left]
type = "python"
class = "mass.py:Mass"

[models.right]
type = "python"
class = "mass.py:Mass"

[constraints.link]
equations = ["left.x = right.x", "left.F + right.F = 0"]
rates = { "left.x" = "left.v", "right.x" = "right.v" }
"""


@pytest.fixture(autouse=True)
def joined(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mass.py").write_text(MASS)
    Path("joined.toml").write_text(JOINED)


def test_a_value_that_violates_an_equation_fails_in_its_row_only():
    result = invoked("sweep", "joined.toml", "--vary", "left.x0=1.5,1,2", "--record", "left.x")
    assert result.exit_code == 1
    assert without_loads(result.stderr).splitlines() == [
        "left.x0 = 1.5: `left.x = right.x` does not hold at the start: left - right is 0.5",
        "left.x0 = 2: `left.x = right.x` does not hold at the start: left - right is 1",
    ]
    assert re.search(r"001 +1\.5 +failed\n002 +1 +0\.5\d+\n *003 +2 +failed\n", result.stdout)
    assert sorted(path.name for path in Path("runs/joined-sweep-001").iterdir()) == ["002", "sweep.json"]


@pytest.mark.parametrize(
    ("words", "essentials"),
    [
        (("--vary", "lft.k=1,2"), ["no model `lft`", "where:    --vary lft.k", "did you mean `left`"]),
        (("--vary", "left.k=1,2", "--set", "lft.k=1"), ["no model `lft`", "where:    --set lft.k"]),
        (("--vary", "left.q=1,2"), ["has no parameter `q`", "where:    --vary, `left`"]),
        (("--vary", "left.k=1:2:1000000000"), ["1,000,000,000 runs", "at most 1,000,000"]),
        (("--vary", "left.k=1:2:2000", "--vary", "right.k=1:2:2000"), ["4,000,000 runs"]),
        (("--vary", "left.k"), ["`left.k` is not a name with a value", "name=values, as k=1,2,5"]),
        (("--vary", "left.k=1,2", "--stop", "0.99"), ["does not divide", "where:    --stop"]),
    ],
)
def test_what_is_wrong_with_all_of_them_is_told_once(words, essentials):
    message = refused("sweep", "joined.toml", *words)
    for essential in essentials:
        assert message.count(essential) == 1
    assert not Path("runs").exists()


def test_the_macro_step_is_swept():
    told = good("sweep", "joined.toml", "--vary", "step=0.05,10 ms")
    assert "0.05" in told
    assert "10 ms" in told
    assert "`step` cannot be 0" in refused("sweep", "joined.toml", "--vary", "step=0,0.1")
