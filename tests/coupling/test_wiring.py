"""Names become numbers, or faults that say what is wrong with them."""

from types import SimpleNamespace

import pytest

from fmus.build import build
from hocket import Composite, Fmu, Hold, Polynomial, Scenario, StateSpace
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import OWN, Drive, TextDrive, scenario_faults, wire, wire_unchecked
from hocket.errors import ScenarioError
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities
from hocket.model.scenario import Connection


def block(inputs=(), outputs=()):
    """A model with these ports; what it does is of no interest here."""
    return StateSpace(inputs=inputs, outputs=outputs)


MASS = block(["force [N]"], ["x [m]", "v [m/s]"])
SPRING = block(["x [m]"], ["force [N]"])
MODELS = {"mass": MASS, "spring": block(["length [m]"], ["force [N]"])}
RING = {"mass.force": "spring.force", "spring.length": "mass.x"}


def test_names_become_numbers():
    wiring = wire(Scenario(MODELS, RING))
    assert wiring.names == ("mass", "spring")
    assert wiring.models == tuple(MODELS.values())
    assert wiring.drives == ((Drive(child=1, port=0),), (Drive(child=0, port=0),))
    assert wiring.outputs == ()
    assert wiring.numbers() == {"mass": 0, "spring": 1}


def test_own_ports_are_driven_and_drive():
    scenario = Scenario(
        {"a": block(["u", "v = 1"], ["y", "z"])},
        {"a.u": "second", "seen": "a.z"},
        ["first", "second"],
        ["seen"],
    )
    wiring = wire(scenario)
    assert wiring.drives == ((Drive(OWN, 1), None),)
    assert wiring.outputs == (Drive(child=0, port=1),)


def test_the_order_of_the_connections_does_not_matter():
    models = {"a": block(["u", "v"], ["y", "z"])}
    there = wire(Scenario(models, [("a.y", "a.u"), ("a.z", "a.v")]))
    back = wire(Scenario(models, [("a.z", "a.v"), ("a.y", "a.u")]))
    assert there.drives == back.drives == ((Drive(0, 0), Drive(0, 1)),)


def test_units_become_gains_and_offsets():
    models = {
        "giving": block([], ["speed [km/h]", "T [degC]", "plain"]),
        "taking": block(["v [m/s]", "T [K]", "a [mm]", "T2 [degF]"]),
    }
    connections = {
        "taking.v": "giving.speed",
        "taking.T": "giving.T",
        "taking.a": "giving.plain",
        "taking.T2": "giving.T",
        "out": "giving.speed",
    }
    wiring = wire(Scenario(models, connections, outputs=["out [m/s]"]))
    gains = [(drive.gain, drive.offset) for drive in (*wiring.drives[1], *wiring.outputs)]
    assert gains == [
        (pytest.approx(1 / 3.6, rel=1e-14), 0.0),
        (1.0, 273.15),
        (1.0, 0.0),
        (pytest.approx(1.8, rel=1e-14), pytest.approx(32.0, rel=1e-14)),
        (pytest.approx(1 / 3.6, rel=1e-14), 0.0),
    ]


def test_a_connection_keeps_its_extrapolation_and_the_level_gives_the_rest():
    scenario = Scenario(
        {"a": block(["u", "v", "w"], ["y"])},
        {"a.u": "a.y", "a.v": ("a.y", Hold()), "a.w": "outside"},
        ["outside"],
    )
    linear = Polynomial(1)
    assert [drive.extrapolation for drive in wire(scenario).drives[0]] == [None, Hold(), None]
    wiring = wire(scenario, linear)
    assert [drive.extrapolation for drive in wiring.drives[0]] == [linear, Hold(), None]
    assert wiring.extrapolators == {linear, Hold()}


def test_what_jumps_is_held():
    inputs = Port("u"), Port("v", held=True), Port("n", type="integer")
    outputs = Port("y"), Port("s", held=True), Port("m", type="integer")
    more = {"open": None, "capabilities": Capabilities()}
    a = SimpleNamespace(inputs=inputs, outputs=outputs, **more)
    b = SimpleNamespace(inputs=(Port("u"), Port("v")), outputs=(), **more)
    connections = {"a.u": "a.y", "a.v": "a.y", "a.n": "a.m", "b.u": "a.s", "b.v": "a.m"}
    linear = Polynomial(1)
    wiring = wire(Scenario({"a": a, "b": b}, connections), linear)
    assert [drive.extrapolation for drive in wiring.drives[0]] == [linear, Hold(), Hold()]
    assert [drive.extrapolation for drive in wiring.drives[1]] == [Hold(), Hold()]
    told = faults_of({"a": a, "b": b}, {**connections, "a.v": ("a.y", linear)})
    assert told.startswith("a real that changes at events only cannot be extrapolated")


def faults_of(models, connections, inputs=(), outputs=()):
    with pytest.raises(ScenarioError) as caught:
        wire(Scenario(models, connections, inputs, outputs))
    return str(caught.value)


@pytest.mark.parametrize(
    ("connections", "message"),
    [
        (
            {**RING, "mass.force": "sprung.force"},
            """\
there is no model `sprung`
  where:    connections.mass.force
  try:      did you mean `spring`?""",
        ),
        (
            {**RING, "damper.v": "mass.v"},
            """\
there is no model `damper`
  where:    connections.damper.v
  try:      one of `mass`, `spring`""",
        ),
        (
            {**RING, "mass.force": "spring.forse"},
            """\
`spring` has no output `forse`
  where:    connections.mass.force
  try:      did you mean `force`?""",
        ),
        (
            {**RING, "spring.lenght": "mass.x"},
            """\
`spring` has no input `lenght`
  where:    connections.spring.lenght
  try:      did you mean `length`?""",
        ),
        (
            {"spring.force": "mass.force", "spring.length": "mass.x"},
            """\
2 faults:
1. `mass` has no output `force`
     where:    connections.spring.force
     try:      `mass.force` is an input; perhaps source and target are exchanged
2. `spring` has no input `force`
     where:    connections.spring.force
     try:      `spring.force` is an output; perhaps source and target are exchanged""",
        ),
        (
            {**RING, "mass.force": "spring"},
            """\
`spring` is not an output here
  where:    connections.mass.force
  expected: a path such as `model.port`
  try:      did you mean `spring.force`?""",
        ),
        (
            {**RING, "force": "spring.force"},
            """\
`force` is not an input here
  where:    connections.force
  expected: a path such as `model.port`
  try:      did you mean `mass.force`?""",
        ),
        (
            [("spring.force", "mass.force"), ("mass.x", "spring.length"), ("mass.v", "mass.force")],
            """\
`mass.force` has two sources, `spring.force` and `mass.v`
  where:    connections.mass.force
  expected: one source per input
  try:      add them in a `Sum` and connect that""",
        ),
        (
            {**RING, "spring.length": "mass.v"},
            """\
`m/s` cannot be converted to `m`: [length] / [time] against [length]
  where:    connections.spring.length
  expected: `mass.v` and `spring.length` in units that convert""",
        ),
        (
            {"mass.force": "spring.force"},
            """\
nothing drives `spring.length`
  where:    models.spring
  expected: a connection or a start value
  try:      connect an output to it, or give it a start value: "length = 0.0\"""",
        ),
    ],
    ids=[
        "unknown source model",
        "unknown target model",
        "unknown output",
        "unknown input",
        "exchanged",
        "model without port",
        "port without model",
        "two sources",
        "units",
        "nothing drives",
    ],
)
def test_a_wrong_connection_is_told_with_its_place(connections, message):
    assert faults_of(MODELS, connections) == message


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.setenv("HOCKET_CACHE", str(tmp_path / "cache"))
    fmu = Fmu(build("types", 3, folder=tmp_path, binary=b""))
    return {"a": fmu, "b": fmu, "c": fmu}


def test_texts_have_one_source(texts):
    to = "b.u_string"
    assert wire(Scenario(texts, {to: "a.y_string"})).texts == (TextDrive(0, 0, 1, 0),)
    connections = [
        ("a.y_string", to),
        ("c.y_string", to),
        ("a.y_real", "b.u_real"),
        ("a.y_binary", "b.u_binary"),
    ]
    message = f"""\
`{to}` has two sources, `a.y_string` and `c.y_string`
  where:    connections.{to}
  expected: one source per input"""
    assert faults_of(texts, connections) == message


def test_texts_are_not_computed_with(texts):
    wrong = [
        Connection("a.y_string", "b.u_string", gain=2.0, offset=1.0),
        Connection("a.y_binary", "b.u_binary", Hold()),
    ]
    message = """\
2 faults:
1. `a.y_string` is a text, which has no gain and no offset
     where:    connections.b.u_string
     expected: a text, handed on as it is
2. `a.y_binary` is a text, which has no extrapolation
     where:    connections.b.u_binary
     expected: a text, handed on as it is"""
    assert faults_of(texts, wrong) == message


def test_strings_and_binaries_do_not_mix(texts):
    message = """\
`a.y_binary` is a binary, `b.u_string` is a string
  where:    connections.b.u_string
  expected: two strings, or two binaries"""
    assert faults_of(texts, {"b.u_string": "a.y_binary"}) == message


def test_a_level_may_not_pass_its_input_straight_on():
    assert (
        faults_of({"k": block([], ["z"])}, {"y": "u"}, ["u"], ["y"])
        == """\
`u` passes straight to `y`
  where:    connections.y
  try:      put a `Gain(1)` between"""
    )


def test_an_output_of_the_level_needs_a_source():
    assert (
        faults_of({"a": block([], ["y"])}, {"y": "a.y"}, (), ["y", "z"])
        == """\
nothing drives the output `z`
  where:    outputs
  expected: a connection to it"""
    )


def test_two_ports_of_one_name_are_refused():
    assert (
        faults_of({"a": block(["u = 0", "u = 1"], ["y"])}, {})
        == """\
`a` has two ports named `u`
  where:    models.a
  expected: names that differ"""
    )


def test_all_wrong_connections_are_told_at_once():
    connections = {"mass.force": "sprung.force", "spring.length": "mass.xx", "mass.speed": "mass.v"}
    with pytest.raises(ScenarioError) as caught:
        wire(Scenario(MODELS, connections))
    assert [fault.what for fault in caught.value.faults] == [
        "there is no model `sprung`",
        "`mass` has no output `xx`",
        "`mass` has no input `speed`",
    ]


def test_what_is_right_is_wired_in_spite_of_faults():
    wiring = wire_unchecked(Scenario(MODELS, {"mass.force": "spring.force", "spring.length": "mass.xx"}))
    assert wiring.drives == ((Drive(1, 0),), (None,))


def level(models, connections=(), **ends):
    return Composite(Scenario(models, connections, **ends), 1)


def test_faults_inside_levels_have_their_path():
    inner = level({"mass": MASS}, {"mass.force": "mass.push"})
    scenario = Scenario({"car": level({"axle": inner}), "mass": MASS})
    faults = scenario_faults(scenario)
    assert [(fault.what, fault.where) for fault in faults] == [
        ("nothing drives `mass.force`", "models.mass"),
        ("`mass` has no output `push`", "car.axle.connections.mass.force"),
    ]


# paths through levels


def test_a_path_makes_a_port_at_every_level_on_its_way():
    wheel = level({"tyre": block(["slip [km/h] = 2"], ["force [N]"])})
    car = Scenario(
        {"axle": level({"wheel": wheel}), "road": block(["load [kN]"], ["speed [m/s]"])},
        {"road.load": "axle.wheel.tyre.force", "axle.wheel.tyre.slip": "road.speed"},
    )
    made = with_level_ports(car)
    assert made.connections == car.connections
    axle = made.models["axle"].scenario
    assert axle.inputs == (Port("wheel.tyre.slip", "km/h", 2.0),)
    assert axle.outputs == (Port("wheel.tyre.force", "N"),)
    assert set(axle.connections) == {
        Connection("wheel.tyre.slip", "wheel.tyre.slip"),
        Connection("wheel.tyre.force", "wheel.tyre.force"),
    }
    inside = axle.models["wheel"].scenario
    assert inside.inputs == (Port("tyre.slip", "km/h", 2.0),)
    assert inside.outputs == (Port("tyre.force", "N"),)
    wiring = wire(made)
    assert wiring.drives == ((Drive(1, 0, gain=3.6),), (Drive(0, 0, gain=0.001),))
    assert wire(inside).drives == ((Drive(OWN, 0),),)
    assert wire(inside).outputs == (Drive(0, 0),)


def test_the_scenario_itself_is_left_alone_and_made_ports_stay():
    car = Scenario({"axle": level({"wheel": SPRING}), "mass": MASS}, {"axle.wheel.x": "mass.x"})
    made = with_level_ports(car)
    assert car.models["axle"].scenario.inputs == ()
    assert made != car
    assert with_level_ports(made) == made


def test_a_path_that_several_connections_take_makes_one_port():
    car = Scenario(
        {"axle": level({"wheel": block([], ["x"])}), "a": block(["u", "v"])},
        {"a.u": "axle.wheel.x", "a.v": "axle.wheel.x"},
    )
    axle = with_level_ports(car).models["axle"].scenario
    assert (axle.outputs, axle.connections) == ((Port("wheel.x"),), (Connection("wheel.x", "wheel.x"),))


def test_ports_that_are_there_are_used():
    axle = level({"wheel": SPRING}, {"wheel.x": "x", "force": "wheel.force"}, inputs=["x"], outputs=["force"])
    car = Scenario({"axle": axle, "mass": MASS}, {"axle.x": "mass.x", "mass.force": "axle.force"})
    assert with_level_ports(car) == car


def test_without_levels_nothing_is_made():
    scenario = Scenario(MODELS, RING)
    assert with_level_ports(scenario) is scenario


def test_a_path_that_leads_nowhere_makes_no_port():
    car = Scenario({"axle": level({"wheel": SPRING}), "mass": MASS}, {"mass.force": "axle.weel.force"})
    made = with_level_ports(car)
    assert made == car
    assert "`axle` has no output `weel.force`" in [fault.what for fault in scenario_faults(made)]
