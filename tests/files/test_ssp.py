"""SSPs as experiments: systems, connections, units, annotations; and what others leave out."""

import tempfile
import zipfile
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from fmus.build import build
from hocket.coupling.feedthrough import with_direct_feedthrough
from hocket.errors import FileError
from hocket.files.fmus import read_fmu
from hocket.files.ssp import import_ssp, read_ssp
from hocket.model.composite import Composite
from hocket.model.extrapolators import Hold, Polynomial
from hocket.model.ports import Port
from hocket.model.scenario import Connection
from hocket.orchestrators import GaussSeidel, Jacobi

pytestmark = pytest.mark.usefixtures("fresh_cache")

SSP = "http://ssp-standard.org/SSP1/SystemStructure"
NAMESPACES = " ".join(
    f'xmlns:{prefix}="{SSP}{name}"'
    for prefix, name in (
        ("ssd", "Description"),
        ("ssc", "Common"),
        ("ssv", "ParameterValues"),
        ("ssm", "ParameterMapping"),
        ("ssb", "SignalDictionary"),
    )
)
OWN = "urn:hocket:ssp"


@cache
def fmu(name, version=2, binary=None, **overrides):
    """The bytes of a test FMU; without a binary nothing is compiled."""
    given = overrides if binary else {**overrides, "binary": None}
    with tempfile.TemporaryDirectory() as folder:
        return build(name, version, folder=Path(folder), **given).read_bytes()


def ssd(inside, more="", version="1.0", name="demo"):
    """An SSD: the content of its outermost system from line 3 on."""
    root = f'<ssd:SystemStructureDescription {NAMESPACES} version="{version}" name="{name}">'
    content = f'<ssd:System name="root">\n{inside}\n</ssd:System>{more}'
    return f'<?xml version="1.0"?>\n{root}{content}</ssd:SystemStructureDescription>'


def component(name, source, inside="", **attributes):
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<ssd:Component name="{name}" source="{source}"{written}>{inside}</ssd:Component>'


def connection(source, target, inside="", **attributes):
    """A connection between paths; `x` without a dot is a connector of the system."""
    ends = []
    for side, path in (("start", source), ("end", target)):
        element, dot, connector = path.partition(".")
        ends.append(
            f'{side}Element="{element}" {side}Connector="{connector}"' if dot else f'{side}Connector="{path}"'
        )
    ends += [f'{key}="{value}"' for key, value in attributes.items()]
    return f"<ssd:Connection {' '.join(ends)}>{inside}</ssd:Connection>"


def system(elements, connections="", connectors="", before="", after="", name=""):
    """The content of a system, or with a name the system itself."""
    inside = f"<ssd:Connectors>{connectors}</ssd:Connectors>" if connectors else ""
    inside += before + f"<ssd:Elements>{elements}</ssd:Elements>"
    inside += f"<ssd:Connections>{connections}</ssd:Connections>" if connections else ""
    inside += after
    return f'<ssd:System name="{name}">{inside}</ssd:System>' if name else inside


def connector(name, kind="", inside="<ssc:Real/>"):
    told = f' kind="{kind}"' if kind else ""
    return f'<ssd:Connector name="{name}"{told}>{inside}</ssd:Connector>'


def level(text, element="Level", kind="org.hocket.level"):
    inside = f'<hocket:{element} xmlns:hocket="{OWN}">{text}</hocket:{element}>'
    return f'<ssd:Annotations><ssc:Annotation type="{kind}">{inside}</ssc:Annotation></ssd:Annotations>'


def parameter(name, value, kind="Real", inside="", **attributes):
    more = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<ssv:Parameter name="{name}"><ssv:{kind} value="{value}"{more}/>{inside}</ssv:Parameter>'


def inline(*parameters, more="", version="1.0"):
    inside = f"<ssv:Parameters>{''.join(parameters)}</ssv:Parameters>{more}"
    return f'<ssv:ParameterSet {NAMESPACES} version="{version}" name="set">{inside}</ssv:ParameterSet>'


def binding(values="", mapping="", **attributes):
    """Bindings of an element: a set inline, or a source."""
    told = "".join(f' {key}="{value}"' for key, value in attributes.items())
    inside = f"<ssd:ParameterValues>{values}</ssd:ParameterValues>" if values else ""
    one = f"<ssd:ParameterBinding{told}>{inside}{mapping}</ssd:ParameterBinding>"
    return f"<ssd:ParameterBindings>{one}</ssd:ParameterBindings>"


def archive(path, text, files=None, name="demo.ssp"):
    """An SSP of this description and these files; those of the two masses unless told."""
    given = (
        {"resources/first.fmu": fmu("first"), "resources/second.fmu": fmu("second")}
        if files is None
        else files
    )
    with zipfile.ZipFile(path / name, "w") as made:
        made.writestr("SystemStructure.ssd", text)
        for entry, content in given.items():
            made.writestr(entry, content)
    return path / name


MASSES = component("left", "resources/first.fmu") + component("right", "resources/second.fmu")
COUPLED = (
    connection("left.force", "right.force")
    + connection("right.x", "left.x")
    + connection("right.v", "left.v")
)
GAINS = component("a", "resources/gain.fmu") + component("b", "resources/gain.fmu")
STEP = level('step = "10 ms"')


def gains(path, inside, more="", version="1.0", **overrides):
    """An experiment with FMUs `gain`: y = k u."""
    files = {"resources/gain.fmu": fmu("gain", **overrides)}
    return import_ssp(archive(path, ssd(inside, more, version), files)).experiment


def test_components_become_fmus_and_connections_lead_from_outputs_to_inputs(tmp_path):
    text = ssd(system(MASSES, COUPLED), '<ssd:DefaultExperiment startTime="0.5" stopTime="10"/>')
    experiment = read_ssp(archive(tmp_path, text))
    scenario = experiment.composite.scenario
    assert {name: model.file.name for name, model in scenario.models.items()} == {
        "left": "first.fmu",
        "right": "second.fmu",
    }
    assert scenario.connections == (
        Connection("left.force", "right.force"),
        Connection("right.x", "left.x"),
        Connection("right.v", "left.v"),
    )
    assert (experiment.start, experiment.stop, experiment.name) == (Fraction(1, 2), 10, "demo")
    assert experiment.path == tmp_path / "demo.ssp"
    assert experiment.composite.orchestrator == Jacobi()
    assert experiment.composite.extrapolation == Hold()


def test_start_and_end_do_not_say_which_way_a_value_goes(tmp_path):
    back = connection("right.force", "left.force") + connection("left.x", "right.x")
    scenario = read_ssp(archive(tmp_path, ssd(system(MASSES, back)))).composite.scenario
    assert scenario.connections == (
        Connection("left.force", "right.force"),
        Connection("right.x", "left.x"),
    )


def test_a_folder_and_a_description_alone_open_too(tmp_path):
    text = ssd(system(MASSES, COUPLED), name="")
    archive(tmp_path, text)
    folder = tmp_path / "unzipped"
    with zipfile.ZipFile(tmp_path / "demo.ssp") as packed:
        packed.extractall(folder)
    first, second, third = (
        read_ssp(path) for path in (tmp_path / "demo.ssp", folder, folder / "SystemStructure.ssd")
    )
    assert [experiment.name for experiment in (first, second, third)] == ["demo", "unzipped", "unzipped"]
    assert second.composite == third.composite
    assert second.composite.scenario.connections == first.composite.scenario.connections


def test_another_description_in_the_archive(tmp_path):
    files = {"resources/gain.fmu": fmu("gain"), "B.ssd": ssd(system(GAINS), name="the other")}
    path = archive(tmp_path, ssd(system(component("a", "resources/gain.fmu"))), files)
    assert list(read_ssp(path).composite.scenario.models) == ["a"]
    experiment = read_ssp(path, "B.ssd")
    assert list(experiment.composite.scenario.models) == ["a", "b"]
    assert experiment.name == "the other"
    with pytest.raises(FileError) as caught:
        read_ssp(path, "C.ssd")
    assert caught.value.faults[0].what == "`demo.ssp` holds no `C.ssd`"
    assert caught.value.faults[0].hint == "did you mean `B.ssd`?"


def test_systems_become_levels_and_their_connectors_ports(tmp_path):
    inner = system(
        component("mass", "resources/second.fmu"),
        connection("force", "mass.force") + connection("mass.x", "x"),
        connector("force", "input", '<ssc:Real unit="kN"/>') + connector("x", "output"),
        name="right",
        after=level('step = "5 ms"\norchestrator = { type = "gauss-seidel", order = ["mass"] }'),
    )
    outer = system(
        component("left", "resources/first.fmu") + inner,
        connection("left.force", "right.force") + connection("right.x", "left.x"),
        after=level('step = "10 ms"\nextrapolation = "linear"\nstart = "cold"'),
    )
    experiment = read_ssp(archive(tmp_path, ssd(outer)))
    right = experiment.composite.scenario.models["right"]
    assert isinstance(right, Composite)
    assert right.scenario.inputs == (Port("force", "kN"),)
    # the unit of x is that of what it leads to
    assert [(port.name, port.unit) for port in right.scenario.outputs] == [("x", "m")]
    assert (right.step, right.orchestrator) == (Fraction(1, 200), GaussSeidel(["mass"]))
    assert experiment.composite.extrapolation == Polynomial(1)
    assert experiment.composite.start == "cold"
    assert not experiment.notes[0].startswith("the SSP tells no step")


def test_one_fmu_may_be_used_many_times_each_with_its_own_values(tmp_path):
    experiment = gains(tmp_path, system(GAINS, connection("a.y", "b.u")))
    a, b = experiment.composite.scenario.models.values()
    assert a.file == b.file
    assert a == b


@pytest.mark.parametrize("kind", ["application/x-ssp-package", ""])
def test_an_ssp_inside_an_ssp_is_a_level(tmp_path, kind):
    inner = ssd(
        system(
            component("g", "resources/gain.fmu"),
            connection("u", "g.u") + connection("g.y", "y"),
            connector("u", "input") + connector("y", "output"),
        )
    )
    packed = archive(tmp_path, inner, {"resources/gain.fmu": fmu("gain"), "B.ssd": inner}, "inner.ssp")
    outer = system(
        component("one", "resources/inner.ssp", type=kind) + component("two", "resources/inner.ssp#B.ssd"),
        connection("one.y", "two.u"),
        after=STEP,
    )
    experiment = read_ssp(archive(tmp_path, ssd(outer), {"resources/inner.ssp": packed.read_bytes()}))
    one, two = experiment.composite.scenario.models.values()
    assert isinstance(one, Composite)
    assert list(two.scenario.models) == ["g"]
    assert one.scenario.inputs == (Port("u", start=0.0),)  # nothing drives it: its FMU starts at 0
    assert two.scenario.inputs == (Port("u"),)


def test_a_description_and_a_system_may_be_referred_to(tmp_path):
    inner = system(component("g", "resources/gain.fmu"), connection("g.y", "y"), connector("y", "output"))
    other = ssd(inner, name="other")
    twice = f'<ssd:System name="defined" id="it">{inner}</ssd:System>'
    text = ssd(system(component("file", "Other.ssd") + twice + component("again", "#it")))
    files = {"resources/gain.fmu": fmu("gain"), "Other.ssd": other}
    models = read_ssp(archive(tmp_path, text, files)).composite.scenario.models
    assert list(models) == ["file", "defined", "again"]
    assert len(set(models.values())) == 1


def test_names_that_hocket_cannot_use_are_changed_and_kept(tmp_path):
    elements = component("My FMU", "resources/gain.fmu") + component("b.1", "resources/gain.fmu")
    elements += component("My_FMU", "resources/gain.fmu") + component("2", "resources/gain.fmu")
    links = '<ssd:Connection startElement="My FMU" startConnector="y" endElement="b.1" endConnector="u"/>'
    path = archive(tmp_path, ssd(system(elements, links)), {"resources/gain.fmu": fmu("gain")})
    found = import_ssp(path)
    scenario = found.experiment.composite.scenario
    assert list(scenario.models) == ["My_FMU_2", "b_1", "My_FMU", "_2"]
    assert scenario.connections == (Connection("My_FMU_2.y", "b_1.u"),)
    assert found.names == {"My_FMU_2": "My FMU", "b_1": "b.1", "_2": "2"}
    told = "`My FMU` is called `My_FMU_2` here: models have no dots and spaces in a name"
    assert told in found.experiment.notes


def test_a_connector_that_is_named_like_a_port_of_a_model_is_renamed(tmp_path):
    inside = system(
        component("a", "resources/gain.fmu"),
        connection("a.y", "y") + '<ssd:Connection startConnector="a.y" endElement="a" endConnector="u"/>',
        connector("a.y", "input") + connector("y", "output"),
    )
    experiment = gains(tmp_path, inside)
    assert [port.name for port in experiment.composite.scenario.inputs] == ["a_y"]
    assert experiment.composite.scenario.connections[1] == Connection("a_y", "a.u")


UNITS = """<ssd:Units>
<ssc:Unit name="cm"><ssc:BaseUnit m="1" factor="0.01"/></ssc:Unit>
<ssc:Unit name="el"><ssc:BaseUnit m="1" factor="0.5"/></ssc:Unit>
<ssc:Unit name="Celsius"><ssc:BaseUnit K="1" offset="273.15"/></ssc:Unit>
<ssc:Unit name="K"><ssc:BaseUnit K="1"/></ssc:Unit>
</ssd:Units>"""


def united(one, other):
    """Two gains whose connectors have units that their FMU does not know."""
    y = connector("y", "output", f'<ssc:Real unit="{one}"/>')
    u = connector("u", "input", f'<ssc:Real unit="{other}"/>')
    return component("a", "resources/gain.fmu", f"<ssd:Connectors>{y}</ssd:Connectors>") + component(
        "b", "resources/gain.fmu", f"<ssd:Connectors>{u}</ssd:Connectors>"
    )


@pytest.mark.parametrize(
    ("one", "other", "inside", "attributes", "gain", "offset"),
    [
        ("cm", "m", "", {}, 0.01, 0.0),
        ("el", "cm", "", {}, 50.0, 0.0),
        ("Celsius", "K", "", {}, 1.0, 273.15),
        ("cm", "m", '<ssc:LinearTransformation factor="3" offset="2"/>', {}, 0.03, 2.0),
        ("Celsius", "K", '<ssc:LinearTransformation factor="2"/>', {}, 2.0, 546.3),
        ("cm", "m", "", {"suppressUnitConversion": "true"}, 1.0, 0.0),
        ("cm", "s", '<ssc:LinearTransformation factor="3"/>', {"suppressUnitConversion": "1"}, 3.0, 0.0),
        ("cm", "cm", "", {}, 1.0, 0.0),
        ("furlong", "furlong", "", {}, 1.0, 0.0),
    ],
)
def test_units_are_converted_then_transformed(tmp_path, one, other, inside, attributes, gain, offset):
    links = connection("a.y", "b.u", inside, **attributes)
    experiment = gains(tmp_path, system(united(one, other), links), UNITS)
    assert experiment.composite.scenario.connections == (Connection("a.y", "b.u", None, gain, offset),)


def test_units_that_hocket_converts_by_itself_leave_nothing_to_the_connection(tmp_path):
    inner = system(
        component("mass", "resources/second.fmu"),
        connection("mass.x", "x") + connection("mass.v", "v"),
        connector("x", "output", '<ssc:Real unit="cm"/>') + connector("v", "output", '<ssc:Real unit="v"/>'),
        name="right",
    )
    outer = system(
        component("left", "resources/first.fmu") + inner,
        connection("right.x", "left.x") + connection("right.v", "left.v"),
    )
    units = UNITS.replace('"el"><ssc:BaseUnit m="1"', '"v"><ssc:BaseUnit m="1" s="-1"')
    scenario = read_ssp(archive(tmp_path, ssd(outer, units))).composite.scenario
    right = scenario.models["right"].scenario
    assert [port.unit for port in right.outputs] == ["cm", ""]  # nobody knows the unit `v`
    assert right.connections == (Connection("mass.x", "x"), Connection("mass.v", "v", None, 2.0))
    assert scenario.connections == (
        Connection("right.x", "left.x"),
        Connection("right.v", "left.v", None, 0.5),
    )


def test_the_unit_of_the_fmu_counts(tmp_path):
    force = connector("force", "output", '<ssc:Real unit="kN"/>')
    elements = component("left", "resources/first.fmu", f"<ssd:Connectors>{force}</ssd:Connectors>")
    elements += component("right", "resources/second.fmu")
    experiment = read_ssp(archive(tmp_path, ssd(system(elements, connection("left.force", "right.force")))))
    assert experiment.composite.scenario.connections == (Connection("left.force", "right.force"),)
    assert "`left.force` is in `N`, as its FMU says, not in `kN`, as the SSD says" in experiment.notes


def types(path, connections, more="", elements=None, version=2):
    given = elements or component("a", "resources/types.fmu") + component("b", "resources/types.fmu")
    files = {"resources/types.fmu": fmu("types", version)}
    return import_ssp(archive(path, ssd(system(given, connections), more), files)).experiment


def entries(kind, *pairs):
    inside = "".join(f'<ssc:MapEntry source="{one}" target="{other}"/>' for one, other in pairs)
    return f"<ssc:{kind}MappingTransformation>{inside}</ssc:{kind}MappingTransformation>"


@pytest.mark.parametrize(
    ("port", "inside", "table"),
    [
        ("int", entries("Integer", (1, 3), (2, 1)), [(1, 3), (2, 1)]),
        ("enum", entries("Integer", (1, 3)), [(1, 3)]),
        ("enum", entries("Enumeration", ("off", "high")), [(1, 3)]),
        ("bool", entries("Boolean", ("true", "false"), ("0", "1")), []),
    ],
)
def test_tables_of_values_become_a_small_model(tmp_path, port, inside, table):
    scenario = types(tmp_path, connection(f"a.y_{port}", f"b.u_{port}", inside)).composite.scenario
    name = f"to_b_u_{port}"
    line = (-1.0, 1.0) if port == "bool" else (1.0, 0.0)
    assert scenario.connections == (
        Connection(f"a.y_{port}", f"{name}.u", None, *line),
        Connection(f"{name}.y", f"b.u_{port}"),
    )
    assert scenario.models[name].parameters["table"] == table


def test_types_that_differ_are_cast_and_told(tmp_path):
    links = connection("a.y_real", "b.u_int") + connection("a.y_int", "b.u_bool")
    links += connection("a.y_int", "b.u_enum") + connection("a.y_bool", "b.u_real")
    experiment = types(tmp_path, links)
    assert [note for note in experiment.notes if "drives" in note] == [
        "`a.y_real` is a real and drives the integer `b.u_int`: it is rounded",
        "`a.y_int` is a integer and drives the boolean `b.u_bool`: it is zero or not",
    ]
    scenario = experiment.composite.scenario
    assert list(scenario.models) == ["a", "b", "to_b_u_int", "to_b_u_bool", "to_b_u_enum"]
    assert scenario.connections[-1] == Connection("a.y_bool", "b.u_real")


def test_a_variable_that_is_no_output_is_observed(tmp_path):
    inside = system(
        component("left", "resources/first.fmu"), connection("left.position", "x"), connector("x", "output")
    )
    experiment = read_ssp(archive(tmp_path, ssd(inside)))
    assert experiment.composite.scenario.models["left"].observe == ("position",)
    assert experiment.composite.scenario.connections == (Connection("left.position", "x"),)


def sized(name, kind, size):
    return connector(name, kind, f'<ssc:Real/><ssc:Dimension size="{size}"/>')


def test_arrays_are_connected_element_by_element(tmp_path):
    inner = system(
        component("m", "resources/arrays.fmu"),
        connection("u", "m.u") + connection("m.y", "y"),
        sized("u", "input", 3) + connector("y", "output", "<ssc:Real/><ssc:Dimension/>"),
        name="in",
    )
    outer = system(
        component("a", "resources/arrays.fmu") + inner,
        connection("a.y", "in.u") + connection("in.y", "a.u", startIndices="3", endIndices="1"),
    )
    path = archive(tmp_path, ssd(outer, version="2.0"), {"resources/arrays.fmu": fmu("arrays", 3)})
    scenario = read_ssp(path).composite.scenario
    assert scenario.connections == (
        *(Connection(f"a.y[{i}]", f"in.u[{i}]") for i in (1, 2, 3)),
        Connection("in.y[3]", "a.u[1]"),
    )
    inside = scenario.models["in"].scenario
    assert [port.name for port in (*inside.inputs, *inside.outputs)] == [
        f"{name}[{i}]" for name in "uy" for i in (1, 2, 3)
    ]


def entry(name, inside="<ssc:Real/>"):
    return f'<ssb:DictionaryEntry name="{name}">{inside}</ssb:DictionaryEntry>'


def bus(name, *signals):
    inside = "".join(connector(signal, "inout") for signal in signals)
    return (
        f'<ssd:SignalDictionaryReference name="{name}" dictionary="can">'
        f"<ssd:Connectors>{inside}</ssd:Connectors></ssd:SignalDictionaryReference>"
    )


def dictionary(*inside, attributes=""):
    return (
        f'<ssd:SignalDictionaries><ssd:SignalDictionary name="can"{attributes}>'
        f'<ssb:SignalDictionary version="1.0">{"".join(inside)}</ssb:SignalDictionary>'
        "</ssd:SignalDictionary></ssd:SignalDictionaries>"
    )


def test_signal_dictionaries_are_resolved(tmp_path):
    inner = system(
        component("g", "resources/gain.fmu") + bus("far", "speed"),
        connection("far.speed", "g.u", '<ssc:LinearTransformation factor="3"/>'),
        name="in",
    )
    outer = system(
        GAINS + inner + bus("near", "speed"),
        connection("a.y", "near.speed", '<ssc:LinearTransformation factor="2"/>')
        + connection("near.speed", "b.u"),
        after=dictionary(entry("speed")),
    )
    scenario = gains(tmp_path, outer).composite.scenario
    assert list(scenario.models) == ["a", "b", "in"]
    assert scenario.connections == (
        Connection("a.y", "in.can.speed", None, 2.0),
        Connection("a.y", "b.u", None, 2.0),
    )
    assert scenario.models["in"].scenario.inputs == (Port("can.speed"),)
    assert scenario.models["in"].scenario.connections == (Connection("can.speed", "g.u", None, 3.0),)


def test_a_dictionary_in_a_file_with_units(tmp_path):
    inside = entry("way", '<ssc:Real unit="cm"/>') + UNITS
    text = f'<ssb:SignalDictionary {NAMESPACES} version="2.0">{inside}</ssb:SignalDictionary>'
    y, u = (
        connector("y", "output", '<ssc:Real unit="el"/>'),
        connector("u", "input", '<ssc:Real unit="m"/>'),
    )
    elements = component("a", "resources/gain.fmu", f"<ssd:Connectors>{y}</ssd:Connectors>")
    elements += component("b", "resources/gain.fmu", f"<ssd:Connectors>{u}</ssd:Connectors>") + bus(
        "near", "way"
    )
    reference = (
        '<ssd:SignalDictionaries><ssd:SignalDictionary name="can" source="resources/can.ssb"/>'
        "</ssd:SignalDictionaries>"
    )
    links = connection("a.y", "near.way", '<ssc:LinearTransformation offset="7"/>') + connection(
        "near.way", "b.u"
    )
    files = {"resources/gain.fmu": fmu("gain"), "resources/can.ssb": text}
    path = archive(tmp_path, ssd(system(elements, links, after=reference), UNITS), files)
    # half a metre is 50 cm, 7 more are 57 cm, in metres
    assert read_ssp(path).composite.scenario.connections == (Connection("a.y", "b.u", None, 0.5, 0.07),)


def test_the_annotation_of_a_connection_and_of_a_run(tmp_path):
    links = connection("a.y", "b.u", level('extrapolation = "quadratic"', "Connection"))
    run = level('every = "50 ms"\nstop = "1/3 s"', "Run")
    more = f'<ssd:DefaultExperiment stopTime="1">{run}</ssd:DefaultExperiment>'
    experiment = gains(tmp_path, system(GAINS, links, after=STEP), more)
    assert experiment.composite.scenario.connections == (Connection("a.y", "b.u", Polynomial(2)),)
    assert (experiment.stop, experiment.every) == (Fraction(1, 3), Fraction(1, 20))


def test_the_annotation_of_a_component(tmp_path):
    inside = level('tolerance = 1e-4\nobserve = ["position"]', "Model")
    elements = component("left", "resources/first.fmu", inside, implementation="CoSimulation")
    left = read_ssp(archive(tmp_path, ssd(system(elements)))).composite.scenario.models["left"]
    assert left.options == {"interface": "co-simulation", "observe": ("position",), "tolerance": 1e-4}


def test_annotations_of_other_tools_are_left_alone(tmp_path):
    experiment = gains(tmp_path, system(GAINS, after=level("any <b/> thing", kind="org.example")))
    assert experiment.notes[-1] == "annotations of other tools are not read: `org.example`"


@pytest.mark.parametrize(
    ("asked", "experiment", "step", "told"),
    [
        ("0.002", 'stopTime="1"', Fraction(1, 500), "2 ms, which `a` asks for"),
        (
            "0.003",
            'stopTime="1"',
            Fraction(1, 334),
            "1/334 s, which `a` asks for, shortened to divide the run",
        ),
        (None, 'stopTime="1"', Fraction(1, 1000), "1 ms, about a thousandth of the run"),
        (None, 'startTime="1" stopTime="8"', Fraction(1, 200), "5 ms, about a thousandth of the run"),
        (None, "", Fraction(1, 1000), "1 ms, since nothing says how long the run is"),
    ],
)
def test_without_the_annotation_a_step_is_found_and_told(tmp_path, asked, experiment, step, told):
    experiment = gains(tmp_path, system(GAINS), f"<ssd:DefaultExperiment {experiment}/>", stepSize=asked)
    assert experiment.composite.step == step
    assert experiment.notes[:2] == (
        f"the SSP tells no step: it is {told}",
        "the SSP tells no algorithm: it is jacobi, extrapolation is hold",
    )


def test_the_smallest_step_counts_though_names_repeat(tmp_path):
    asked = {"left": "0.001", "right": "0.01"}
    files = {f"{side}.fmu": fmu("gain", stepSize=step) for side, step in asked.items()}
    inside = "".join(system(component("plant", f"{side}.fmu"), name=side) for side in asked)
    experiment = read_ssp(archive(tmp_path, ssd(system(inside)), files))
    assert experiment.composite.step == Fraction(1, 1000)
    assert experiment.notes[0] == "the SSP tells no step: it is 1 ms, which `left.plant` asks for"


@pytest.mark.parametrize(
    ("own", "stop", "step", "told"),
    [
        ("0.0003", "3", Fraction(15, 10000), "1.5 ms, a multiple of the 0.3 ms that `a` steps by inside"),
        ("0.25", "1", Fraction(1, 4), "0.25 s, a multiple of the 0.25 s that `a` steps by inside"),
        (
            "0.0003",
            "1",
            Fraction(9, 10000),
            "0.9 ms, a multiple of the 0.3 ms that `a` steps by inside",
        ),
    ],
)
def test_the_step_inside_an_fmu_is_obeyed(tmp_path, own, stop, step, told):
    files = {"resources/gain.fmu": fmu("gain", 3, stepSize=None, fixedInternalStepSize=own)}
    text = ssd(system(GAINS), f'<ssd:DefaultExperiment stopTime="{stop}"/>')
    experiment = read_ssp(archive(tmp_path, text, files))
    assert experiment.composite.step == step
    assert experiment.notes[0] == f"the SSP tells no step: it is {told}"


@pytest.mark.parametrize(
    ("told", "step"),
    [
        ({"stepSize": "0.002"}, Fraction(1, 500)),
        ({"stepSize": None}, Fraction(1, 500)),
        ({"stepSize": None, "fixedInternalStepSize": "0.0015"}, Fraction(3, 2000)),
    ],
)
def test_an_fmu_by_itself_has_the_step_that_it_has_in_an_ssp(tmp_path, told, step):
    data = fmu("gain", 3, stopTime="3", **told)
    (tmp_path / "gain.fmu").write_bytes(data)
    text = ssd(system(GAINS), '<ssd:DefaultExperiment stopTime="3"/>')
    coupled = read_ssp(archive(tmp_path, text, {"resources/gain.fmu": data}))
    alone = read_fmu(tmp_path / "gain.fmu")
    assert (alone.composite.step, alone.stop) == (coupled.composite.step, coupled.stop) == (step, 3)


def test_an_input_of_a_system_that_nothing_drives_keeps_what_its_fmu_starts_with(tmp_path):
    both = connection("u", "a.u") + connection("u", "b.u", '<ssc:LinearTransformation factor="2"/>')
    experiment = gains(tmp_path, system(GAINS, both, connector("u", "input")))
    assert experiment.composite.inputs == (Port("u", start=0.0),)


def test_an_input_that_would_disturb_what_it_leads_to_is_left_out(tmp_path):
    bound = binding(inline(parameter("u", 4)))
    elements = component("a", "resources/gain.fmu") + component("b", "resources/gain.fmu", bound)
    both = connection("u", "a.u") + connection("u", "b.u")
    experiment = gains(tmp_path, system(elements, both, connector("u", "input")))
    assert experiment.composite.inputs == ()
    assert experiment.composite.scenario.connections == ()
    told = "nothing drives the input `u`, and what it leads to starts at different values: it is left out"
    assert told in experiment.notes


def test_what_passes_straight_through_a_system_gets_a_model_of_its_own(tmp_path):
    inner = system(
        component("g", "resources/gain.fmu"),
        connection("u", "y"),
        connector("u", "input") + connector("y", "output"),
        name="in",
    )
    outer = system(GAINS + inner, connection("a.y", "in.u") + connection("in.y", "b.u"))
    inside = gains(tmp_path, outer).composite.scenario.models["in"].scenario
    assert inside.connections == (Connection("u", "to_y.u"), Connection("to_y.y", "y"))


def through(port, kind):
    """Connections and elements: `a` to `b` through a system that does nothing."""
    inside = f"<ssc:{kind}/>"
    inner = system(
        component("t", "resources/types.fmu"),
        connection("u", "y"),
        connector("u", "input", inside) + connector("y", "output", inside),
        name="in",
    )
    elements = component("a", "resources/types.fmu") + component("b", "resources/types.fmu") + inner
    return connection(f"a.y_{port}", "in.u") + connection("in.y", f"b.u_{port}"), "", elements


@pytest.mark.parametrize(
    ("port", "kind"), [("int", "Integer"), ("bool", "Boolean"), ("enum", 'Enumeration name="Level"')]
)
def test_it_keeps_its_type(tmp_path, port, kind):
    experiment = types(tmp_path, *through(port, kind))
    inside = experiment.composite.scenario.models["in"]
    between = inside.scenario.models["to_y"]
    assert {inside.outputs[0].type, between.outputs[0].type} == {kind.split()[0].lower()}
    prepared = with_direct_feedthrough(experiment.composite.scenario).models["in"]
    assert prepared.outputs[0].feedthrough == ("u",)
    assert list(experiment.composite.scenario.models) == ["a", "b", "in"]
    assert not [note for note in experiment.notes if "drives" in note]


def test_an_output_that_nothing_drives_is_no_port(tmp_path):
    assert gains(tmp_path, system(GAINS, "", connector("y", "output"))).composite.outputs == ()


def test_an_empty_system_is_left_out(tmp_path):
    experiment = gains(tmp_path, system(GAINS + '<ssd:System name="nothing"/>'))
    assert "the system `nothing` is left out: there is nothing in it" in experiment.notes


def test_files_that_others_have_written_carelessly(tmp_path):
    """No kinds, no types, backslashes, another case, no prefix, an unknown namespace, units in brackets."""
    text = f"""<SystemStructureDescription xmlns="{SSP}Description" xmlns:c="urn:x" version="1.0.1" name="x">
<System name="s"><Connectors><Connector name="f"/></Connectors><Elements>
<Component name="left" type="" source="resources\\First.fmu"><Connectors><Connector name="force"/>
<Connector name="m" kind="parameter"><c:Real unit="[kg]"/></Connector></Connectors></Component>
<Component name="right" source="./resources/second.fmu"/></Elements><Connections>
<Connection startElement="left" startConnector="force" endElement="right" endConnector="force"/>
<Connection startConnector="f" endElement="left" endConnector="force"/>
</Connections></System></SystemStructureDescription>"""
    experiment = read_ssp(archive(tmp_path, text))
    scenario = experiment.composite.scenario
    assert scenario.connections == (Connection("left.force", "right.force"), Connection("left.force", "f"))
    assert [(port.name, port.unit) for port in scenario.outputs] == [("f", "N")]
    assert experiment.notes[0] == (
        "`resources\\First.fmu` is taken to be `first.fmu`, which is written differently "
        "(demo.ssp: SystemStructure.ssd, line 3)"
    )


def test_an_fmu_that_another_tool_runs_by_proxy_gets_a_process_of_its_own(tmp_path):
    source = "proxyfmu://localhost?file=resources/gain.fmu"
    experiment = gains(tmp_path, system(component("a", source)))
    assert experiment.composite.scenario.models["a"].isolate is True
    assert f"`a` is run in a process of its own, in place of `{source}`" in experiment.notes


def test_a_missing_binary_is_told(tmp_path):
    experiment = gains(tmp_path, system(GAINS))
    assert "`b` cannot be run here: the FMU has no binary for this platform" in experiment.notes
