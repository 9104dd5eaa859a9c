"""Constraints in files: what is written is read back, compiled or not; faults are told with their line."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from fmus.build import build
from hocket.errors import FileError, ScenarioError
from hocket.execution.run import run
from hocket.files.ssp import read_ssp, write_ssp
from hocket.files.toml import dumps, loads, read
from hocket.model.composite import Composite
from hocket.model.constraints import Constraint
from hocket.model.experiment import Experiment
from hocket.model.scenario import Scenario
from hocket.planning.compiler.modularity import Modularity
from hocket.simulators.fmu.recipe import Fmu
from systems import EXAMPLES

FILE = EXAMPLES / "massless_link.toml"
TEXT = FILE.read_text()


def told(text):
    """The only fault: line, what, hint."""
    with pytest.raises(FileError) as caught:
        loads(text)
    (fault,) = caught.value.faults
    return int(fault.where.removeprefix("line ")), fault.what, fault.hint


def line_of(text, part):
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_constraints_are_read_and_written_back():
    experiment = read(FILE)
    link = experiment.composite.scenario.constraints["link"]
    assert link == Constraint(
        ("left.x = right.x", "left.F + right.F = 0"), {"left.x": "left.v", "right.x": "right.v"}
    )
    again = loads(dumps(experiment))
    assert again.composite.scenario == experiment.composite.scenario
    assert dumps(again) == dumps(experiment)


def test_all_of_a_constraint_is_written():
    whole = Constraint(("left.x = right.x",), {"left.x": "left.v", "right.x": "right.v"}, 3.0, ("left.F",))
    experiment = read(FILE)
    scenario = experiment.composite.scenario.with_changes(constraints={"link": whole})
    text = dumps(replace(experiment, composite=experiment.composite.with_scenario(scenario)))
    assert "mu = 3.0" in text
    assert 'determines = ["left.F"]' in text
    with pytest.raises(FileError, match=r"nothing drives `right\.F`"):
        loads(text)


def test_what_was_compiled_is_a_file_that_runs_the_same():
    experiment = read(FILE)
    compiled = replace(experiment, composite=Modularity().apply(experiment.composite))
    text = dumps(compiled)
    again = loads(text)
    assert again.composite.scenario.models == compiled.composite.scenario.models
    assert dumps(again) == text
    one, other = (run(each.composite, 1) for each in (experiment, again))
    for port in ("left.x", "right.v", "link.left.F", "link.gap1"):
        assert np.array_equal(one[port].values, other[port].values)


def test_a_misspelt_port_is_told_with_its_line():
    text = TEXT.replace('"left.x = right.x"', '"left.x = rihgt.x"')
    line, what, hint = told(text)
    assert line == line_of(text, "[constraints.link]")
    assert "`rihgt.x`" in what
    assert hint == "did you mean `right.x`?"


def test_a_wrong_rate_is_told_with_its_line():
    text = TEXT.replace('"left.x" = "left.v"', '"left.x" = "left.F"')
    line, what, _ = told(text)
    assert line == line_of(text, "rates")
    assert what == "`left.F` is an input"
    what = told(TEXT.replace('"left.x" = "left.v"', '"left.x" = "right.x"'))[1]
    assert what.startswith("`right.x` is not the rate of `left.x`: `m` times `s` is not `m`")


def test_keys_and_names_are_checked():
    assert told(TEXT.replace("equations =", "equation ="))[2] == "did you mean `equations`?"
    assert told(TEXT.replace("[constraints.link]", "[constraints.left]"))[1] == (
        "`left` names a constraint and a model"
    )
    assert "a constraint has no name" in told(TEXT.replace("[constraints.link]", "[constraints]"))[1]
    assert "`mu` is -1.0" in told(TEXT + "mu = -1.0\n")[1]


def test_a_level_that_was_inserted_is_written_too():
    third = """
[models.gain]
type = "gain"
gain = 2.0

[connections]
"gain.u" = "left.x"
"""
    head, tail = TEXT.split("[constraints.link]")
    experiment = loads(f"{head}{third}\n[constraints.link]{tail}")
    compiled = replace(experiment, composite=Modularity().apply(experiment.composite))
    text = dumps(compiled)
    again = loads(text)
    assert "[models.link_level]" in text
    assert dumps(again) == text
    one, other = (run(each.composite, 1) for each in (experiment, again))
    assert one.ports == other.ports
    for port in one.ports:
        assert np.array_equal(one[port].values, other[port].values)


def test_constraints_of_fmus_survive_an_ssp(tmp_path):
    file = build("second", 2, folder=tmp_path)
    masses = {
        name: Fmu(file, m=1.0, c=c, d=d, x0=1.0, v0=0.0, substeps=4)
        for name, c, d in (("left", 1.0, 0.5), ("right", 2.0, 0.3))
    }
    link = Constraint(
        ("left.x = right.x", "left.force + right.force = 0"), {"left.x": "left.v", "right.x": "right.v"}
    )
    experiment = Experiment(Composite(Scenario(masses, constraints={"link": link}), "50 ms"), name="masses")
    write_ssp(experiment, tmp_path / "masses.ssp")
    back = read_ssp(tmp_path / "masses.ssp")
    assert back.composite.scenario.constraints == experiment.composite.scenario.constraints
    done = run(back.composite, 5)
    assert np.abs(np.array(done["link.gap1"].values)).max() < 1.2e-5
    joined = np.array([[0.0, 1.0], [-3.0 / 2.0, -0.8 / 2.0]])
    end = expm(joined * 5.0) @ [1.0, 0.0]
    assert done["left.x"].values[-1] == pytest.approx(end[0], abs=1e-5)
    assert done["right.v"].values[-1] == pytest.approx(end[1], abs=2e-4)


def test_reading_a_file_opens_no_simulator(tmp_path):
    (tmp_path / "box.py").write_text(BOX)
    box = '{ type = "python", class = "box.py:Box" }'
    text = f'step = "10 ms"\n[models]\nleft = {box}\nright = {box}\n[constraints.link]\n'
    (tmp_path / "pair.toml").write_text(text + 'equations = ["left.x = right.x", "left.F + right.F = 0"]\n')
    experiment = read(tmp_path / "pair.toml")
    with pytest.raises(ScenarioError, match=r"`left` was tried over a step of 0\.01 s: RuntimeError: opened"):
        run(experiment.composite, 1)


BOX = """
class Box:
    inputs = ["F"]
    outputs = ["x"]

    def start(self, t):
        raise RuntimeError("opened")

    def output(self, t): ...
    def step(self, t, h, u): ...
    def save(self): ...
    def restore(self, state): ...
"""
