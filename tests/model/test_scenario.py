"""Ports, connections and scenarios: what may be written, and that it stays as it is."""

from dataclasses import FrozenInstanceError

import pytest

from hocket import Gain, Hold, Polynomial
from hocket.errors import ScenarioError
from hocket.model.ports import Port, parse_ports
from hocket.model.scenario import Connection, Scenario

TWO = {"a": Gain(2.0), "b": Gain(3.0)}
RING = {"a.u": "b.y", "b.u": "a.y"}


@pytest.mark.parametrize(
    ("written", "port"),
    [
        ("force", Port("force")),
        ("force [N]", Port("force", "N")),
        ("force[N]", Port("force", "N")),
        ("force [ kg m / s^2 ]", Port("force", "kg m / s^2")),
        ("force []", Port("force")),
        ("x = 1.5", Port("x", "", 1.5)),
        ("x=-2", Port("x", "", -2.0)),
        ("  x [m] = 1e-3  ", Port("x", "m", 0.001)),
        ("x [m]=0", Port("x", "m", 0.0)),
        ("wheel.left.force [N]", Port("wheel.left.force", "N")),
        ("größe", Port("größe")),
        (Port("y", feedthrough=("u",)), Port("y", "", None, ("u",))),
    ],
)
def test_a_port_is_read_from_text(written, port):
    assert Port.of(written) == port


@pytest.mark.parametrize(
    "written", ["", "   ", "[N]", "two words", "x [m", "x m]", "x =", "x = 1 2", "= 1", "x [m] [s]"]
)
def test_text_that_is_no_port_is_refused(written):
    with pytest.raises(ScenarioError) as caught:
        Port.of(written)
    assert str(caught.value) == f'`{written}` is not a port\n  expected: text such as "force [N]"'


@pytest.mark.parametrize("start", ["fast", "nan", "inf", "-inf"])
def test_a_start_value_that_is_no_number_is_refused(start):
    with pytest.raises(ScenarioError) as caught:
        Port.of(f"x [m] = {start}")
    told = f"`{start}` is not a start value\n  where:    port `x [m] = {start}`\n  expected: a finite number"
    assert str(caught.value).startswith(told)


def test_ports_are_a_list_even_if_there_is_one():
    assert parse_ports(["x [m]", Port("v")]) == (Port("x", "m"), Port("v"))
    with pytest.raises(ScenarioError) as caught:
        parse_ports("x [m]")
    assert str(caught.value) == 'ports are a list, not the text `x [m]`\n  expected: ["x [m]"]'


@pytest.mark.parametrize(
    "connections",
    [
        {"a.u": "b.y", "b.u": ("a.y", Polynomial(1))},
        [("b.y", "a.u"), ("a.y", "b.u", Polynomial(1))],
        [Connection("b.y", "a.u"), Connection("a.y", "b.u", Polynomial(1))],
        (pair for pair in [("b.y", "a.u", None), Connection("a.y", "b.u", Polynomial(1))]),
        {"a.u": ("b.y", None), "b.u": ("a.y", Polynomial(1))},
    ],
    ids=["mapping", "tuples", "connections", "mixed", "mapping with none"],
)
def test_connections_may_be_written_in_many_ways(connections):
    assert Scenario(TWO, connections).connections == (
        Connection(source="b.y", target="a.u", extrapolation=None),
        Connection(source="a.y", target="b.u", extrapolation=Polynomial(1)),
    )


def test_one_pattern_to_record_needs_no_list():
    assert Scenario(TWO, record="a.*").record == ("a.*",)
    assert Scenario(TWO, record=["a.*", "b.y"]).record == ("a.*", "b.y")
    assert Scenario(TWO).record == ("*",)


def test_scenarios_with_the_same_facts_are_equal():
    one = Scenario(TWO, RING, ["u [N]"], ["y"], ["a.*"])
    other = Scenario(
        {"a": Gain(2.0), "b": Gain(3.0)},
        [("b.y", "a.u"), ("a.y", "b.u")],
        [Port("u", "N")],
        [Port("y")],
        ("a.*",),
    )
    assert one == other
    assert hash(one) == hash(other)
    assert {one: "found"}[other] == "found"


@pytest.mark.parametrize(
    "other",
    [
        Scenario({"a": Gain(2.0), "b": Gain(4.0)}, RING),
        Scenario({"a": Gain(2.0), "c": Gain(3.0)}, RING),
        Scenario(TWO, {"a.u": "b.y"}),
        Scenario(TWO, {"a.u": "b.y", "b.u": ("a.y", Hold())}),
        Scenario(TWO, RING, ["u"]),
        Scenario(TWO, RING, (), ["y"]),
        Scenario(TWO, RING, record=[]),
        "a scenario",
    ],
    ids=["model", "name", "connections", "extrapolation", "inputs", "outputs", "record", "no scenario"],
)
def test_any_other_fact_makes_another_scenario(other):
    assert Scenario(TWO, RING) != other


def test_a_scenario_cannot_be_changed():
    scenario = Scenario(TWO, RING)
    with pytest.raises(FrozenInstanceError):
        scenario.connections = ()
    with pytest.raises(TypeError):
        scenario.models["c"] = Gain(1.0)
    with pytest.raises(FrozenInstanceError):
        scenario.connections[0].source = "b.y"
    with pytest.raises(FrozenInstanceError):
        Port("x").unit = "m"


def test_what_a_scenario_was_made_of_may_change_later():
    models, connections, inputs, record = dict(TWO), dict(RING), ["u"], ["a.*"]
    scenario = Scenario(models, connections, inputs, record=record)
    models.clear(), connections.clear(), inputs.clear(), record.clear()
    assert scenario == Scenario(TWO, RING, ["u"], record=["a.*"])


def test_other_models_leave_the_rest_alone():
    scenario = Scenario(TWO, RING, ["u"], ["y"], ["a.*"])
    changed = scenario.with_models({**TWO, "c": Gain(1.0)})
    assert list(changed.models) == ["a", "b", "c"]
    assert changed != scenario
    assert changed.with_models(TWO) == scenario


def test_own_ports_have_their_names():
    scenario = Scenario({}, inputs=["u [N]", "v"], outputs=["y = 1"])
    assert (scenario.input_names, scenario.output_names) == ({"u", "v"}, {"y"})


@pytest.mark.parametrize("name", ["left", "mass_2", "mass-2", "_hidden", "Größe"])
def test_names_of_models(name):
    assert list(Scenario({name: Gain(1.0)}).models) == [name]


@pytest.mark.parametrize("name", ["", "a.b", "2nd", "two words", "-a", "a[0]", "*", "a\n"])
def test_names_that_paths_could_not_hold_are_refused(name):
    with pytest.raises(ScenarioError) as caught:
        Scenario({"good": Gain(1.0), name: Gain(1.0)})
    assert caught.value.faults[0].what == f"`{name}` cannot name a model"
    assert caught.value.faults[0].expected == "letters, digits, _ and -, no dots: dots join paths"
