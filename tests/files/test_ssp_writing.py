"""Experiments as SSPs: other tools open them, and hocket reads back what it wrote."""

import hashlib
import zipfile
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import fmpy.ssp
import pytest
from fmpy.ssp.ssd import read_ssd
from lxml import etree

from files.test_ssp import (
    SSP,
    archive,
    binding,
    component,
    connection,
    connector,
    entries,
    fmu,
    inline,
    level,
    parameter,
    ssd,
    system,
    through,
    types,
)
from hocket.coupling.level_ports import with_level_ports
from hocket.errors import FileError, ScenarioError
from hocket.files.ssp import read_ssp, write_ssp
from hocket.files.ssp.vocabulary import LOOKUP
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.extrapolators import Nepce, Polynomial
from hocket.model.ports import Port
from hocket.model.scenario import Connection, Scenario
from hocket.orchestrators import GaussSeidel, Jacobi
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.python import Python
from hocket.simulators.sources import Function
from hocket.simulators.state_space import Gain, StateSpace

pytestmark = pytest.mark.usefixtures("fresh_cache")


@pytest.fixture
def made(tmp_path):
    """A test FMU as a file."""

    def make(name, version=2, **overrides):
        path = tmp_path / f"fmi{version}" / f"{name}.fmu"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(fmu(name, version, **overrides))
        return path

    return make


def facts(model):
    """What makes a model equal to another, wherever its file is."""
    if isinstance(model, Fmu):
        content = hashlib.sha256(model.file.read_bytes()).hexdigest()
        return content, model.settings, model.options, model.inputs, model.outputs
    if isinstance(model, Composite):
        scenario = model.scenario
        how = model.step, model.orchestrator, model.extrapolation, model.start, model.sampled
        what = scenario.connections, scenario.inputs, scenario.outputs, scenario.record
        return how, what, [(name, facts(inner)) for name, inner in scenario.models.items()]
    return model


def returned(experiment, path):
    """The experiment that comes back, after it was compared."""
    write_ssp(experiment, path)
    back = read_ssp(path)
    assert facts(back.composite) == facts(experiment.composite)
    assert (back.start, back.stop, back.every, back.name) == (
        experiment.start,
        experiment.stop,
        experiment.every,
        experiment.name or path.stem,
    )
    return back


def description(path):
    with zipfile.ZipFile(path) as packed:
        return ElementTree.fromstring(packed.read("SystemStructure.ssd"))


def valid(path):
    """Whether a description of version 1.0 is what the standard's schema says."""
    schemas = Path(fmpy.ssp.__file__).parent / "schema"
    with zipfile.ZipFile(path) as packed:
        root = etree.fromstring(packed.read("SystemStructure.ssd"))
    schema = etree.XMLSchema(file=str(schemas / "SystemStructureDescription.xsd"))
    sets = etree.XMLSchema(file=str(schemas / "SystemStructureParameterValues.xsd"))
    inside = [
        etree.fromstring(etree.tostring(node)) for node in root.iter(f"{{{SSP}ParameterValues}}ParameterSet")
    ]
    return schema.validate(root) and all(map(sets.validate, inside))


def nested(made):
    inner = Composite(
        Scenario(
            {"mass": Fmu(made("second"), m=5.0), "g": Fmu(made("gain"), {"k": -1.0})},
            [
                Connection("force", "mass.force"),
                Connection("mass.x", "x"),
                Connection("mass.v", "v"),
                Connection("mass.x", "g.u", Polynomial(2), 2.0, 0.5),
            ],
            inputs=[Port("force", "kN")],
            outputs=[Port("x", "m"), Port("v", "km/h")],
            record=["mass.*"],
        ),
        "5 ms",
        GaussSeidel(["mass", "g"], outputs="stale"),
        Nepce(0.25),
        "cold",
    )
    outer = Scenario(
        {"left": Fmu(made("first"), c=2.0, observe=["position"], interface="co-simulation"), "right": inner},
        [
            Connection("right.x", "left.x", Polynomial(1)),
            Connection("right.v", "left.v"),
            Connection("left.force", "right.force"),
        ],
    )
    return Experiment(
        Composite(outer, "10 ms", Jacobi(inputs="delayed")),
        Fraction(1, 2),
        Fraction(10),
        Fraction(1, 10),
        "masses",
    )


def test_what_is_written_is_read_back(tmp_path, made):
    path = tmp_path / "masses.ssp"
    back = returned(nested(made), path)
    assert back.notes == tuple(
        f"`{name}` cannot be run here: the FMU has no binary for this platform"
        for name in ("left", "mass", "g")
    )
    assert description(path).get("version") == "1.0"
    assert valid(path)


def test_the_same_experiment_gives_the_same_bytes(tmp_path, made):
    one, two = tmp_path / "one.ssp", tmp_path / "two.ssp"
    write_ssp(nested(made), one)
    write_ssp(nested(made), two)
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as packed:
        names = ["SystemStructure.ssd", *(f"resources/{name}.fmu" for name in ("first", "second", "gain"))]
        assert packed.namelist() == names


def test_fmpy_reads_it(tmp_path, made):
    write_ssp(nested(made), tmp_path / "masses.ssp")
    root = read_ssd(str(tmp_path / "masses.ssp")).system
    left, right = root.elements
    assert [(c.name, c.kind) for c in left.connectors] == [
        ("x", "input"),
        ("v", "input"),
        ("force", "output"),
    ]
    assert [element.name for element in right.elements] == ["mass", "g"]
    assert [(c.name, c.kind) for c in right.connectors] == [
        ("force", "input"),
        ("x", "output"),
        ("v", "output"),
    ]


def test_one_file_is_packed_once_and_files_of_one_name_apart(tmp_path, made):
    other = tmp_path / "other" / "gain.fmu"
    other.parent.mkdir()
    other.write_bytes(fmu("gain", modelName="another"))
    models = {"a": Fmu(made("gain")), "b": Fmu(made("gain"), k=3.0), "c": Fmu(other)}
    path = tmp_path / "x.ssp"
    returned(Experiment(Composite(Scenario(models), "1 ms"), stop=Fraction(1)), path)
    with zipfile.ZipFile(path) as packed:
        assert packed.namelist()[1:] == ["resources/gain.fmu", "resources/gain_2.fmu"]


def test_a_folder_is_packed_as_an_fmu(tmp_path, made):
    with zipfile.ZipFile(made("gain")) as packed:
        packed.extractall(tmp_path / "unpacked")
    write_ssp(Composite(Scenario({"a": Fmu(tmp_path / "unpacked")}), "1 ms"), tmp_path / "x.ssp")
    back = read_ssp(tmp_path / "x.ssp").composite.scenario.models["a"]
    assert back.file.name == "unpacked.fmu"
    assert back.inputs == Fmu(made("gain")).inputs


def test_connections_through_levels_get_connectors_there(tmp_path, made):
    inner = Composite(Scenario({"mass": Fmu(made("second"))}), "5 ms")
    scenario = Scenario(
        {"left": Fmu(made("first")), "right": inner},
        {"right.mass.force": "left.force", "left.x": "right.mass.x", "left.v": "right.mass.v"},
    )
    path = tmp_path / "x.ssp"
    write_ssp(Experiment(Composite(scenario, "10 ms")), path)
    back = read_ssp(path).composite.scenario
    assert back.connections == with_level_ports(scenario).connections
    right = back.models["right"].scenario
    assert [port.name for port in (*right.inputs, *right.outputs)] == ["mass.force", "mass.x", "mass.v"]
    assert right.connections == tuple(Connection(name, name) for name in ("mass.force", "mass.x", "mass.v"))
    assert right.models["mass"].parameters == {}
    assert valid(path)


def test_values_of_every_type(tmp_path, made):
    values = {
        "p_real": -2.5,
        "p_int": 7,
        "p_bool": False,
        "p_enum": "high",
        "p_string": " two <words> ",
        "u_enum": 3,
        "u_real": 1e-300,
    }
    links = {f"b.u_{kind}": f"a.y_{kind}" for kind in ("real", "int", "bool", "enum")}
    experiment = Experiment(
        Composite(Scenario({"a": Fmu(made("types"), values), "b": Fmu(made("types"))}, links), "1 ms")
    )
    path = tmp_path / "x.ssp"
    returned(experiment, path)
    assert valid(path)
    items = [item.attrib for item in description(path).iter(f"{{{SSP}Common}}Item")]
    assert items == [{"name": name, "value": str(i)} for i, name in enumerate(("off", "low", "high"), 1)]


@pytest.mark.parametrize(("version", "kind"), [(2, "string"), (3, "binary")])
def test_texts_come_back(tmp_path, made, version, kind):
    models = {name: Fmu(made("types", version)) for name in "ab"}
    links = {f"b.u_{kind}": f"a.y_{kind}", f"a.u_{kind}": f"b.y_{kind}"}
    path = tmp_path / "x.ssp"
    returned(Experiment(Composite(Scenario(models, links), "1 ms")), path)
    tags = [node.tag for node in description(path).iter() if node.tag.endswith(kind.title())]
    assert len(tags) == 4
    assert version == 3 or valid(path)


def test_types_of_fmi_3_and_arrays_need_version_2(tmp_path, made):
    values = {"p_int64": 2**60, "p_uint8": 200, "p_float32": 0.25, "p_binary": b"\x00\xff", "p_real": 1.0}
    wide = Experiment(Composite(Scenario({"a": Fmu(made("types", 3), values)}), "1 ms"))
    returned(wide, tmp_path / "wide.ssp")
    assert description(tmp_path / "wide.ssp").get("version") == "2.0"
    one = Fmu(made("arrays", 3), {"n": 2, "A": [[1, 2], [3, 4]]})
    two = Fmu(made("arrays", 3), {"A[1,2]": 5.0, "u[2]": 1.5})
    arrays = Scenario({"a": one, "b": two}, {"b.u[1]": "a.y[2]", "a.u[1]": "b.y[1]", "a.u[2]": "b.y[2]"})
    returned(Experiment(Composite(arrays, "1 ms")), tmp_path / "arrays.ssp")
    assert description(tmp_path / "arrays.ssp").get("version") == "2.0"


def test_elements_are_laid_over_the_whole(tmp_path, made):
    values = {"n": 2, "u": [0, 0], "A": [[1, 2], [3, 4]], "A[1,1]": 99, "A[2, 1]": 5}
    model = Fmu(made("arrays", 3), values)
    experiment = Experiment(Composite(Scenario({"a": model}), "1 ms"))
    returned(experiment, tmp_path / "x.ssp")
    back = read_ssp(tmp_path / "x.ssp").composite.scenario.models["a"]
    assert back.parameters["A"] == ((99.0, 2.0), (5.0, 4.0))


def test_a_list_sets_variables_with_a_blank_in_their_name(tmp_path, made):
    path = made("gain", xml=lambda text: text.replace('name="k"', 'name="k[1, 1]"'))
    experiment = Experiment(Composite(Scenario({"a": Fmu(path, k=[[3.0]])}), "1 ms"))
    returned(experiment, tmp_path / "x.ssp")
    both = Fmu(path, {"k": [[3.0]], "k[1, 1]": 4.0})
    returned(Experiment(Composite(Scenario({"a": both}), "1 ms")), tmp_path / "y.ssp")


def test_fmi_3_without_them_fits_into_version_1(tmp_path, made):
    models = {"a": Fmu(made("gain", 3), k=3.0), "b": Fmu(made("lag", 3), T=0.5)}
    returned(Experiment(Composite(Scenario(models, {"b.u": "a.y"}), "1 ms")), tmp_path / "x.ssp")
    assert description(tmp_path / "x.ssp").get("version") == "1.0"
    assert valid(tmp_path / "x.ssp")


def test_inputs_of_the_outermost_level_keep_their_start_values(tmp_path, made):
    scenario = Scenario(
        {"a": Fmu(made("gain")), "m": Fmu(made("second"))},
        [Connection("u", "a.u"), Connection("f", "m.force")],
        inputs=[Port("u", start=0.3), Port("f", "kN", 2.0)],
    )
    returned(
        Experiment(Composite(scenario, "1 ms"), Fraction(1, 3), Fraction(2, 3), name="x"), tmp_path / "x.ssp"
    )
    assert valid(tmp_path / "x.ssp")


def test_a_port_without_a_unit_takes_none_from_what_it_leads_to(tmp_path, made):
    inner = Composite(
        Scenario({"mass": Fmu(made("second"))}, {"mass.force": "f", "x": "mass.x"}, [Port("f")], [Port("x")]),
        "1 ms",
    )
    outer = Scenario({"left": Fmu(made("first")), "in": inner}, {"in.f": "left.force", "left.x": "in.x"})
    returned(Experiment(Composite(outer, "1 ms")), tmp_path / "x.ssp")


def test_a_factor_becomes_a_part_of_its_connection(tmp_path, made):
    models = {"left": Fmu(made("first")), "turn": Gain(-0.5, "N", "kN"), "right": Fmu(made("second"))}
    links = {"turn.u": "left.force", "right.force": ("turn.y", Polynomial(1)), "left.x": "right.x"}
    order = GaussSeidel(["left", "turn", "right"])
    path = tmp_path / "x.ssp"
    write_ssp(Composite(Scenario(models, links), "1 ms", order), path)
    back = read_ssp(path).composite
    assert list(back.scenario.models) == ["left", "right"]
    assert back.scenario.connections[0] == Connection("left.force", "right.force", Polynomial(1), -500.0)
    assert back.orchestrator == GaussSeidel(["left", "right"])


def test_what_an_import_has_put_in_is_written_as_it_was(tmp_path):
    inner = system(
        component("t", "resources/types.fmu"),
        connection("u", "y") + connection("u", "t.u_int"),
        connector("u", "input") + connector("y", "output"),
        name="in",
    )
    links = connection("a.y_enum", "b.u_enum", entries("Integer", (1, 3))) + connection("a.y_real", "in.u")
    links += connection("in.y", "b.u_real") + connection(
        "a.y_bool", "b.u_bool", entries("Boolean", (1, 0), (0, 1))
    )
    elements = component("a", "resources/types.fmu") + component("b", "resources/types.fmu") + inner
    order = level('step = "1 ms"\norchestrator = { type = "gauss-seidel", order = ["a", ["b", "in"]] }')
    given = archive(
        tmp_path, ssd(system(elements, links, after=order)), {"resources/types.fmu": fmu("types")}
    )
    experiment = read_ssp(given)
    assert experiment.composite.orchestrator == GaussSeidel(["a", "to_b_u_enum", "to_b_u_bool", ["b", "in"]])
    returned(experiment, tmp_path / "again.ssp")
    assert valid(tmp_path / "again.ssp")


@pytest.mark.parametrize(("port", "kind"), [("int", "Integer"), ("bool", "Boolean")])
def test_what_passes_straight_through_comes_back_with_its_type(tmp_path, port, kind):
    experiment = types(tmp_path, *through(port, kind))
    returned(experiment, tmp_path / "again.ssp")


def test_items_pass_through_levels(tmp_path, made):
    inner = Composite(
        Scenario(
            {"t": Fmu(made("types"))},
            {"t.u_enum": "u", "t.u_bool": "b", "y": "t.y_enum"},
            [Port("u", type="enumeration"), Port("b", type="boolean")],
            [Port("y", type="enumeration")],
        ),
        "1 ms",
    )
    links = {"in.u": "a.y_enum", "in.b": "a.y_bool", "a.u_enum": "in.y"}
    returned(
        Experiment(Composite(Scenario({"a": Fmu(made("types")), "in": inner}, links), "1 ms")),
        tmp_path / "x.ssp",
    )
    assert valid(tmp_path / "x.ssp")


def test_a_port_is_held_where_that_of_its_fmu_is(tmp_path, made):
    jumping = Fmu(made("gain", xml=lambda text: text.replace('"continuous"', '"discrete"')))
    inner = Composite(Scenario({"g": jumping}, {"g.u": "u"}, [Port("u", held=True)]), "1 ms")
    links = {"in.u": "a.y"}
    returned(Experiment(Composite(Scenario({"a": jumping, "in": inner}, links), "1 ms")), tmp_path / "x.ssp")


def test_a_text_that_xml_cannot_hold_is_refused(tmp_path, made):
    with pytest.raises(ScenarioError, match="a name or text cannot be written as XML"):
        write_ssp(Composite(Scenario({"a": Fmu(made("types"), p_string="\x01")}), "1 ms"), tmp_path / "x.ssp")


def test_models_that_are_no_fmus_are_refused_by_name(tmp_path, made):
    inner = Composite(Scenario({"plant": StateSpace(A=[[0]], C=[[1]], outputs=["x"])}), "1 ms")
    loose = StateSpace(D=[[2.0]], inputs=["u = 1"], outputs=["y"])
    scenario = Scenario({"a": Fmu(made("gain")), "in": inner, "wind": Function(abs, ["v"]), "k": loose})
    with pytest.raises(ScenarioError) as caught:
        write_ssp(Composite(scenario, "1 ms"), tmp_path / "x.ssp")
    assert [fault.what for fault in caught.value.faults] == [
        "`in.plant` is a StateSpace, and an SSP holds FMUs",
        "`wind` is a Function, and an SSP holds FMUs",
        "`k` is a StateSpace, and an SSP holds FMUs",
    ]
    assert not list(tmp_path.glob("*.ssp*"))


def test_a_table_and_a_factor_in_one_connection_are_refused(tmp_path, made):
    table = Python(LOOKUP, outputs=[Port("y", type="integer")], table=[(1, 3)])
    models = {"a": Fmu(made("types")), "t": table}
    links = [Connection("a.y_int", "t.u", gain=2.0), Connection("t.y", "a.u_int")]
    with pytest.raises(ScenarioError, match=r"`a\.y_int` goes through a table of values and a factor"):
        write_ssp(Composite(Scenario(models, links), "1 ms"), tmp_path / "x.ssp")


def test_a_scenario_with_faults_is_refused(tmp_path, made):
    with pytest.raises(ScenarioError, match="`a` has no input `v`"):
        write_ssp(Composite(Scenario({"a": Fmu(made("gain"))}, {"a.v": "a.y"}), "1 ms"), tmp_path / "x.ssp")


def test_what_files_have_no_word_for_is_refused(tmp_path, made):
    class Own(Jacobi):
        pass

    with pytest.raises(ScenarioError, match="cannot be written to a file"):
        write_ssp(Composite(Scenario({"a": Fmu(made("gain"))}), "1 ms", Own()), tmp_path / "x.ssp")


def test_a_place_that_cannot_be_written_to(tmp_path, made):
    with pytest.raises(FileError, match=r"cannot write `x\.ssp`: No such file or directory"):
        write_ssp(Composite(Scenario({"a": Fmu(made("gain"))}), "1 ms"), tmp_path / "nowhere" / "x.ssp")


def test_other_extrapolations_and_options_come_back(tmp_path, made):
    model = Fmu(made("first"), tolerance=1e-4, reevaluate=False, isolate=True, time_limit="5 s")
    solved = Fmu(made("second"), interface="model-exchange", method="rk4", step="1 ms")
    scenario = Scenario(
        {"a": model, "b": solved}, [Connection("b.x", "a.x"), Connection("a.force", "b.force", Polynomial(3))]
    )
    returned(
        Experiment(Composite(scenario, "1 ms", extrapolation=Polynomial(2)), every="micro"),
        tmp_path / "x.ssp",
    )


def test_values_of_bindings_survive_a_second_round(tmp_path):
    text = ssd(system(component("a", "resources/gain.fmu", binding(inline(parameter("k", 0.1))))))
    experiment = read_ssp(archive(tmp_path, text, {"resources/gain.fmu": fmu("gain")}))
    returned(experiment, tmp_path / "one.ssp")
    returned(read_ssp(tmp_path / "one.ssp"), tmp_path / "two.ssp")
