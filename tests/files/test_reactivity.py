"""The reactivity of inputs in scenario files and SSPs: read, written, refused, and kept through levels."""

import pytest

from files.test_ssp import fmu
from hocket import Composite, GaussSeidel, Port, Scenario
from hocket.coupling.level_ports import with_level_ports
from hocket.errors import ScenarioError
from hocket.files.ssp import read_ssp, write_ssp
from hocket.files.toml import dumps, loads
from hocket.planning.planner import plan_tree
from hocket.simulators.fmu.recipe import Fmu

PAIR = """
step = "0.1 s"
orchestrator = { type = "gauss-seidel", order = ["mass", "force"], outputs = "stale" }

[models.mass]
type = "state-space"
A = [[0, 1], [-1, 0]]
B = [[0], [-1]]
C = [[1, 0]]
inputs = [{ name = "fk", start = 0.0, reactivity = "delayed" }]
outputs = ["x"]

[models.force]
type = "state-space"
A = [[-1]]
B = [[1]]
C = [[1]]
inputs = [{ name = "x", reactivity = "reactive" }]
outputs = ["fk"]

[connections]
mass.fk = "force.fk"
force.x = "mass.x"
"""


def test_a_file_declares_the_reactivity_of_inputs_and_comes_back():
    made = loads(PAIR)
    models = made.composite.scenario.models
    assert models["mass"].inputs == (Port("fk", start=0.0, reactivity="delayed"),)
    assert models["force"].inputs == (Port("x", reactivity="reactive"),)
    assert loads(dumps(made)) == made
    assert 'reactivity = "delayed"' in dumps(made)


def test_a_file_whose_order_breaks_a_reactivity_is_refused_by_the_input():
    plan_tree(loads(PAIR).composite)
    with pytest.raises(ScenarioError, match=r"`force\.x` is reactive"):
        plan_tree(loads(PAIR.replace('["mass", "force"]', '["force", "mass"]')).composite)
    with pytest.raises(ScenarioError, match=r"`mass\.fk` is reactive"):
        plan_tree(loads(PAIR.replace('"delayed"', '"reactive"')).composite)
    with pytest.raises(ScenarioError, match=r"`force\.x` is delayed"):
        plan_tree(loads(PAIR.replace('"reactive"', '"delayed"')).composite)


def test_another_word_is_refused_with_its_line():
    with pytest.raises(ScenarioError) as raised:
        loads(PAIR.replace('"reactive"', '"late"'))
    (fault,) = raised.value.faults
    assert "late" in fault.what
    assert fault.expected == '"reactive" or "delayed"'
    assert fault.place.line == 18


def test_a_connection_into_a_level_keeps_the_reactivity_of_the_input_it_leads_to():
    force = loads(PAIR).composite.scenario.models["force"]
    inner = Composite(Scenario({"force": force}), "0.1 s")
    mass = loads(PAIR).composite.scenario.models["mass"]
    links = {"mass.fk": "axle.force.fk", "axle.force.x": "mass.x"}
    flat = with_level_ports(Scenario({"axle": inner, "mass": mass}, links))
    assert flat.models["axle"].inputs == (Port("force.x", reactivity="reactive"),)
    for order, sound in ((["mass", "axle"], True), (["axle", "mass"], False)):
        made = Composite(
            Scenario({"axle": inner, "mass": mass}, links), "0.1 s", GaussSeidel(order, outputs="stale")
        )
        if sound:
            plan_tree(made)
        else:
            with pytest.raises(ScenarioError, match=r"`axle\.force\.x` is reactive"):
                plan_tree(made)


@pytest.fixture
def second(fresh_cache, tmp_path):
    path = tmp_path / "second.fmu"
    path.write_bytes(fmu("second", 2))
    return path


def test_an_fmu_is_told_of_the_reactivity_of_its_inputs(second):
    made = Fmu(second, reactivity={"force": "delayed"})
    assert [(port.name, port.reactivity) for port in made.inputs] == [("force", "delayed")]
    assert made.options == {"reactivity": (("force", "delayed"),)}
    assert [port.reactivity for port in Fmu(second).inputs] == [None]
    assert Fmu(second).options == {}
    with pytest.raises(ScenarioError, match=r"`reactivity` names `forces`"):
        Fmu(second, reactivity={"forces": "delayed"})
    with pytest.raises(ScenarioError, match="late"):
        Fmu(second, reactivity={"force": "late"})
    with pytest.raises(ScenarioError, match="`reactivity` is"):
        Fmu(second, reactivity="delayed")


def test_an_fmu_of_a_file_has_it_too(second):
    text = f"""
    step = 0.1
    [models.mass]
    type = "fmu"
    path = "{second.name}"
    reactivity = {{ force = "reactive" }}
    """
    made = loads(text, folder=second.parent)
    assert made.composite.scenario.models["mass"].inputs[0].reactivity == "reactive"
    assert 'reactivity = { force = "reactive" }' in dumps(made, folder=second.parent)


def test_an_ssp_keeps_it_of_fmus_and_of_levels(second, tmp_path):
    mass = Fmu(second, reactivity={"force": "delayed"})
    inner = Scenario(
        {"mass": mass},
        {"mass.force": "force", "x": "mass.x"},
        [Port("force", "N", 0.0, reactivity="delayed")],
        ["x"],
    )
    outer = Scenario({"axle": Composite(inner, 0.1), "other": Fmu(second)})
    write_ssp(Composite(outer, 0.1), tmp_path / "made.ssp")
    back = read_ssp(tmp_path / "made.ssp").composite.scenario.models
    assert [port.reactivity for port in back["axle"].inputs] == ["delayed"]
    assert [port.reactivity for port in back["axle"].scenario.models["mass"].inputs] == ["delayed"]
    assert [port.reactivity for port in back["other"].inputs] == [None]
