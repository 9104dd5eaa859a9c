"""The recipe of an FMU: its ports, its options, and the capabilities that description and binary agree on."""

import builtins
import copy
import pickle
import platform
import struct
import sys
from dataclasses import replace
from fractions import Fraction

import pytest

from fmus.build import build
from hocket.errors import FileError, ScenarioError
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities
from hocket.simulators.fmu import binaries
from hocket.simulators.fmu.ports import ValueGroup, group_calls
from hocket.simulators.fmu.recipe import Fmu
from simulators.fmu_xml import HEADS, TIME, folder, scalar, written

pytestmark = pytest.mark.usefixtures("fresh_cache")


@pytest.fixture
def linux(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    real = struct.calcsize
    monkeypatch.setattr(struct, "calcsize", lambda form: 8 if form == "P" else real(form))
    binaries.platforms.cache_clear()
    yield
    binaries.platforms.cache_clear()


# ports


def test_ports_of_every_type(tmp_path):
    fmu = Fmu(build("types", 2, folder=tmp_path, binary=b""))
    assert [(port.name, port.type, port.start) for port in fmu.inputs] == [
        ("u_real", "real", 0.0),
        ("u_int", "integer", 0.0),
        ("u_bool", "boolean", 0.0),
        ("u_enum", "enumeration", 1.0),
    ]
    assert fmu.texts == (("u_string",), ("y_string",))
    references = {variable.name: variable.reference for variable in fmu.description.variables}
    assert group_calls(fmu.description, fmu.port_layout.input_ranges) == (
        ValueGroup("real", (references["u_real"],), (0,)),
        ValueGroup("integer", (references["u_int"], references["u_enum"]), (1, 3)),
        ValueGroup("boolean", (references["u_bool"],), (2,)),
    )
    assert fmu.port_layout.text_outputs == (fmu.description.by_name["y_string"],)


def test_ports_of_every_type_of_fmi_3(tmp_path):
    fmu = Fmu(build("types", 3, folder=tmp_path, binary=b""))
    calls = group_calls(fmu.description, fmu.port_layout.output_ranges)
    groups = {group.type: group.places for group in calls}
    order = [port.name.removeprefix("y_") for port in fmu.outputs]
    assert {kind: order[places[0]] for kind, places in groups.items()} == {
        "real": "real",
        "int32": "int",
        "enumeration": "enum",
        "boolean": "bool",
        **{
            kind: kind
            for kind in ("float32", "int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64")
        },
    }
    assert {port.type for port in fmu.outputs} == {"real", "integer", "boolean", "enumeration"}
    assert fmu.texts == (("u_string", "u_binary"), ("y_string", "y_binary"))
    assert [variable.type for variable in fmu.port_layout.text_inputs] == ["string", "binary"]


def test_arrays_are_expanded(tmp_path):
    path = build("arrays", 3, folder=tmp_path, binary=b"")
    fmu = Fmu(path)
    assert [port.name for port in fmu.inputs] == ["u[1]", "u[2]", "u[3]"]
    assert fmu.outputs[1] == Port("y[2]", "", None, ("u[1]", "u[2]", "u[3]"))
    (group,) = group_calls(fmu.description, fmu.port_layout.input_ranges)
    assert (len(group.references), group.places) == (1, (0, 1, 2))
    larger = Fmu(path, n=4)
    assert [port.name for port in larger.inputs] == ["u[1]", "u[2]", "u[3]", "u[4]"]
    assert [port.start for port in larger.inputs] == [None] * 4  # the start values are for another size
    assert group_calls(larger.description, larger.port_layout.output_ranges)[0].places == (0, 1, 2, 3)
    assert [port.start for port in Fmu(path, n=2, u=[5, 6]).inputs] == [5.0, 6.0]


def test_matrices_run_row_by_row(tmp_path):
    variables = TIME + '<Float64 name="A" valueReference="1" causality="input" start="1 2 3 4 5 6">'
    variables += '<Dimension start="2"/><Dimension start="3"/></Float64>'
    fmu = Fmu(folder(tmp_path, written(3, variables)))
    assert [(port.name, port.start) for port in fmu.inputs] == [
        ("A[1,1]", 1.0),
        ("A[1,2]", 2.0),
        ("A[1,3]", 3.0),
        ("A[2,1]", 4.0),
        ("A[2,2]", 5.0),
        ("A[2,3]", 6.0),
    ]


def test_too_many_ports(tmp_path):
    variables = TIME + '<UInt64 name="n" valueReference="1" causality="structuralParameter" start="2"/>'
    variables += '<Float64 name="u" valueReference="2" causality="input" start="0">'
    variables += '<Dimension valueReference="1"/></Float64>'
    with pytest.raises(ScenarioError, match=r"it has 1,000,000,000,000 ports"):
        Fmu(folder(tmp_path, written(3, variables)), n=10**12)


def feedthrough_case():
    variables = (
        scalar("u", 0, causality="input")
        + scalar("k", 1, '<Integer start="1"/>', causality="input", variability="discrete")
        + scalar("s", 2, '<String start=""/>', causality="input", variability="discrete")
        + scalar("x", 3, '<Real start="0"/>', initial="exact")
        + scalar("dx", 4, '<Real derivative="4"/>')
        + scalar("none", 5, "<Real/>", causality="output")
        + scalar("some", 6, "<Real/>", causality="output")
        + scalar("every", 7, "<Real/>", causality="output")
        + scalar("unlisted", 8, "<Real/>", causality="output")
        + scalar("inner", 9, "<Real/>")
        + scalar("p", 10, causality="parameter", variability="fixed")
        + scalar("again", 6, "<Real/>")
    )
    structure = (
        '<Outputs><Unknown index="6" dependencies="4"/><Unknown index="7" dependencies="1 3 4"/>'
        '<Unknown index="8"/></Outputs><Derivatives><Unknown index="5" dependencies="2"/></Derivatives>'
    )
    return written(2, variables, structure)


def test_feedthrough(tmp_path):
    observe = ["inner", "x", "dx", "p", "u", "again", "none"]
    fmu = Fmu(folder(tmp_path, feedthrough_case()), observe=observe)
    assert {port.name: port.feedthrough for port in fmu.outputs} == {
        "none": (),
        "some": ("u",),
        "every": ("u", "k"),
        "unlisted": ("u", "k"),
        # what is only observed is as it was at the end of the step
        **dict.fromkeys(["inner", "x", "dx", "p", "u", "again"], ()),
    }
    assert [port.name for port in fmu.outputs][4:] == ["inner", "x", "dx", "p", "u", "again"]


def test_what_cannot_be_observed(tmp_path):
    variables = (
        TIME + '<Clock name="c" valueReference="1" causality="local" intervalVariability="triggered"/>'
    )
    variables += '<Float64 name="v" valueReference="2" causality="local" variability="discrete" clocks="1"/>'
    variables += '<Float64 name="x" valueReference="3"><Dimension start="2"/></Float64>'
    place = folder(tmp_path, written(3, variables))
    with pytest.raises(ScenarioError) as caught:
        Fmu(place, observe=["tim", "c", "v", "x[1]"])
    assert [(fault.what, fault.hint) for fault in caught.value.faults] == [
        ("there is no variable `tim` to observe", "did you mean `time`?"),
        ("`c` cannot be observed: it is a clock", ""),
        ("`v` cannot be observed: it is clocked", ""),
        ("there is no variable `x[1]` to observe", "observe the whole array `x`"),
    ]
    assert [port.name for port in Fmu(place, observe="x").outputs] == ["x[1]", "x[2]"]


def test_names_that_meet(tmp_path):
    variables = (
        TIME + '<Float64 name="x" valueReference="1" causality="input" start="0"><Dimension start="1"/>'
    )
    variables += '</Float64><Float64 name="x[1]" valueReference="2" causality="input" start="0"/>'
    with pytest.raises(ScenarioError, match=r"two inputs are named `x\[1\]`"):
        Fmu(folder(tmp_path, written(3, variables)))


def test_a_negated_alias_is_a_port_of_a_call_of_its_own(tmp_path):
    variables = scalar("y", 1, "<Real/>", causality="output", alias="negatedAlias")
    implementation = "<CoSimulation_StandAlone><Capabilities/></CoSimulation_StandAlone>"
    xml = f"{HEADS[1]}<ModelVariables>{variables}</ModelVariables><Implementation>{implementation}"
    xml += "</Implementation></fmiModelDescription>"
    model = Fmu(folder(tmp_path, xml))
    assert [port.name for port in model.outputs] == ["y"]
    (group,) = group_calls(model.description, model.port_layout.output_ranges)
    assert group.negated


def test_an_alias_is_another_name_not_another_port(tmp_path):
    variables = TIME + '<Float64 name="u" valueReference="1" causality="input" start="0"><Alias name="v"/>'
    place = folder(tmp_path, written(3, variables + "</Float64>"))
    assert [port.name for port in Fmu(place).inputs] == ["u"]
    assert Fmu(place, v=3.0).inputs[0].start == 3.0


# the recipe


def test_a_recipe(tmp_path):
    build("lag", 2, folder=tmp_path, binary=b"")
    fmu = Fmu("lag.fmu", {"T": 2.0}, folder=tmp_path, y0=1.0)
    assert fmu.file == tmp_path / "lag.fmu"
    assert fmu.path == "lag.fmu"
    assert fmu.parameters == {"T": 2.0, "y0": 1.0}
    assert fmu.inputs == (Port("u", "", 0.0),)
    assert fmu.outputs == (Port("y"),)
    assert repr(fmu) == "Fmu('lag.fmu', T=2.0, y0=1.0)"
    assert fmu.time_limit == 60
    assert not fmu.is_isolated
    assert not fmu.exchange
    same = Fmu("lag.fmu", T=2.0, y0=1.0, folder=tmp_path)
    assert fmu == same
    assert hash(fmu) == hash(same)
    assert fmu != Fmu("lag.fmu", T=3.0, y0=1.0, folder=tmp_path)
    again = pickle.loads(pickle.dumps(fmu))
    assert again == fmu
    assert again.inputs == fmu.inputs
    assert copy.copy(fmu) == fmu
    assert again.settings == fmu.settings


def test_options_remake_a_recipe(tmp_path):
    path = build("lag", 2, folder=tmp_path, binary=b"")
    assert Fmu(path).options == {}
    given = {
        "interface": "model-exchange", "isolate": True, "observe": ("der_y",), "reevaluate": False,
        "tolerance": 1e-4, "logging": True, "method": "rk4", "step": "10 ms", "rtol": 1e-5, "atol": 1e-7,
        "time_limit": "2 s",
    }  # fmt: skip
    fmu = Fmu(path, **given)
    assert fmu.options == given
    assert fmu.step == Fraction(1, 100)
    assert Fmu(path, fmu.parameters, **fmu.options) == fmu


def test_tolerances_of_model_exchange(tmp_path):
    path = build("lag", 2, folder=tmp_path, binary=b"", tolerance="1e-4")
    fmu = Fmu(path, interface="model-exchange")
    assert (fmu.method, fmu.rtol, fmu.atol) == ("adaptive", 1e-4, pytest.approx(1e-7))
    assert Fmu(path, interface="model-exchange", tolerance=1e-3).rtol == 1e-3


def test_the_interface(tmp_path):
    both = build("lag", 2, folder=tmp_path, binary=b"")
    assert Fmu(both).interface_used is Fmu(both).description.cs
    assert Fmu(both, interface="model-exchange").interface_used is Fmu(both).description.me
    only = build("lag", 2, folder=tmp_path, binary=b"", interfaces=["me"], file="me.fmu")
    assert Fmu(only).exchange
    with pytest.raises(ScenarioError) as caught:
        Fmu(only, interface="co-simulation")
    (fault,) = caught.value.faults
    assert fault.what == "it has no interface for co-simulation"
    assert fault.expected == "model-exchange"
    with pytest.raises(ScenarioError, match="did you mean `co-simulation`"):
        Fmu(only, interface="cosimulation")


def test_wrong_options_are_told_together(tmp_path):
    path = build("lag", 2, folder=tmp_path, binary=b"")
    with pytest.raises(ScenarioError) as caught:
        Fmu(path, method="rk5", rtol=-1, tolerance="x", isolate="yes", observe=["no"], T=-1, k=1)
    assert [fault.what for fault in caught.value.faults] == [
        "`method` is given, but the FMU has a solver of its own",
        "`rtol` is given, but the FMU has a solver of its own",
        "`rk5` is not a method",
        "`tolerance` is 'x'",
        "`rtol` is -1",
        "`isolate` is 'yes'",
        "there is no variable `k`",
        "`T` is -1.0",
        "there is no variable `no` to observe",
    ]
    assert all(str(path) in fault.where for fault in caught.value.faults)


def test_wrong_parameters(tmp_path):
    path = build("lag", 2, folder=tmp_path, binary=b"")
    with pytest.raises(ScenarioError, match="`parameters` is"):
        Fmu(path, 3.0)
    with pytest.raises(ScenarioError, match="`T` is given twice"):
        Fmu(path, {"T": 1.0}, T=2.0)
    with pytest.raises(ScenarioError, match="1 is not a name"):
        Fmu(path, {1: 1.0})
    with pytest.raises(ScenarioError, match="`step` is 0"):
        Fmu(path, step=0)


def test_a_missing_file_is_told_when_the_recipe_is_made(tmp_path):
    build("lag", 2, folder=tmp_path, binary=b"")
    with pytest.raises(FileError, match=r"did you mean `lag\.fmu`\?"):
        Fmu("lagg.fmu", folder=tmp_path)


def test_clocks_are_ports_where_they_tick_and_else_refused_by_name(tmp_path):
    for interface in ("cs", "me"):
        model = Fmu(build("clocked", 3, folder=tmp_path, binary=b"", interfaces=(interface,)))
        assert [(p.name, p.type) for p in model.inputs] == [("tick", "clock")]
    with pytest.raises(ScenarioError, match="no event mode in which they tick: `tick`"):
        Fmu(build("clocked", 3, folder=tmp_path, binary=b"", hasEventMode="false"))


def test_clocked_ports_are_refused_by_name_where_no_clock_ticks(tmp_path):
    variables = (
        TIME + '<Clock name="c" valueReference="1" causality="output" intervalVariability="triggered"/>'
    )
    variables += '<Float64 name="y" valueReference="2" causality="output" variability="discrete" clocks="1"/>'
    with pytest.raises(ScenarioError, match="no event mode in which they tick: `y`"):
        Fmu(folder(tmp_path, written(3, variables)))
    inner = variables.replace('causality="output" variability', 'causality="local" variability')
    assert Fmu(folder(tmp_path, written(3, inner))).outputs == ()


def test_notes(tmp_path):
    path = build("lag", 2, folder=tmp_path, binary=b"", needsExecutionTool="true")
    assert Fmu(path).notes == ("it needs hocket's tests on this computer to run",)


def test_one_instance_per_process_is_isolated(tmp_path):
    path = build("single", 2, folder=tmp_path, binary=b"")
    assert Fmu(path).is_isolated
    assert not Fmu(path, isolate=False).is_isolated
    assert Fmu(build("lag", 2, folder=tmp_path, binary=b""), isolate=True).is_isolated


STATE = {
    2: b"\0fmi2GetFMUstate\0fmi2SetFMUstate\0fmi2FreeFMUstate\0",
    3: b"\0fmi3GetFMUState\0fmi3SetFMUState\0fmi3FreeFMUState\0",
}


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize("version", [2, 3])
def test_rewinding_needs_the_flag_and_the_functions(tmp_path, version):
    def rewinds(name, **options):
        return Fmu(
            build("lag", version, folder=tmp_path, file=f"{name}.fmu", **options)
        ).capabilities.rollback

    flag = "canGetAndSetFMUstate" if version == 2 else "canGetAndSetFMUState"
    assert rewinds("good", binary=STATE[version])
    assert not rewinds("bare", binary=b"\0")
    assert not rewinds("half", binary=STATE[version].replace(b"Free", b"Keep"))
    assert not rewinds("silent", binary=STATE[version], **{flag: "false"})
    assert rewinds("elsewhere", binary=b"", platform="win64")  # believed until it is opened


@pytest.mark.usefixtures("linux")
def test_capabilities(tmp_path):
    functions = STATE[2] + b"fmi2GetRealOutputDerivatives\0fmi2SetRealInputDerivatives\0"
    path = build("ramp", 2, folder=tmp_path, binary=functions)
    settles = Capabilities(initial_inputs="settle")
    assert Fmu(path).capabilities == replace(settles, rollback=True, input_degree=None, slopes=True)
    assert not Fmu(path, reevaluate=False).capabilities.reevaluates
    fixed = build("lag", 2, folder=tmp_path, binary=b"", canHandleVariableCommunicationStepSize=None)
    assert Fmu(fixed).capabilities == replace(settles, variable_step=False, input_degree=0)
    exchange = Fmu(fixed, interface="model-exchange", method="rk4")
    assert exchange.capabilities == replace(settles, order=4)
    without = build("ramp", 2, folder=tmp_path, binary=STATE[2], file="without.fmu")
    assert Fmu(without).capabilities == replace(settles, rollback=True, input_degree=0)


@pytest.mark.usefixtures("linux")
def test_slopes_are_of_real_outputs_only(tmp_path):
    options = {"binary": b"\0fmi2GetRealOutputDerivatives\0", "maxOutputDerivativeOrder": "1"}
    assert Fmu(build("lag", 2, folder=tmp_path, **options)).capabilities.slopes
    assert Fmu(tmp_path / "lag.fmu", observe=["y"]).capabilities.slopes
    beside = Fmu(tmp_path / "lag.fmu", observe=["der_y"]).capabilities
    assert (beside.slopes, beside.slopeless, beside.all_slopes) == (True, ("der_y",), False)
    types = Fmu(build("types", 2, folder=tmp_path, **options))
    assert types.capabilities.slopeless == tuple(p.name for p in types.outputs if p.name != "y_real")


@pytest.mark.usefixtures("linux")
def test_inputs_that_move_during_a_step_of_fmi_3(tmp_path):
    interface = '<CoSimulation modelIdentifier="m" providesIntermediateUpdate="true"/>'
    moving = '<Float64 name="u" valueReference="1" causality="input" start="0" intermediateUpdate="true"/>'
    still = '<Float64 name="v" valueReference="2" causality="input" start="0"/>'
    fmu = Fmu(folder(tmp_path, written(3, TIME + moving, interface=interface)))
    assert fmu.capabilities.input_degree is None
    fmu = Fmu(folder(tmp_path, written(3, TIME + moving + still, interface=interface)))
    assert fmu.capabilities.input_degree == 0


@pytest.mark.usefixtures("linux")
def test_fmi_1_functions_have_a_prefix(tmp_path):
    functions = b"\0ramp_fmiGetRealOutputDerivatives\0ramp_fmiSetRealInputDerivatives\0"
    path = build("ramp", 1, folder=tmp_path, binary=functions)
    expected = Capabilities(rollback=False, input_degree=None, slopes=True, initial_inputs="once")
    assert Fmu(path).capabilities == expected


def test_nothing_is_loaded_before_it_is_opened(tmp_path, monkeypatch):
    path = build("lag", 2, folder=tmp_path, binary=b"no library at all")
    real = builtins.__import__

    def watched(name, *rest, **more):
        assert "_native" not in name
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", watched)
    fmu = Fmu(path)
    assert (fmu.inputs, fmu.outputs, fmu.capabilities.rollback) == (
        (Port("u", "", 0.0),),
        (Port("y"),),
        False,
    )


@pytest.mark.parametrize(
    ("options", "module"),
    [({}, "live"), ({"interface": "model-exchange"}, "exchange"), ({"isolate": True}, "isolated")],
)
def test_open_asks_the_right_module(tmp_path, monkeypatch, options, module):
    class Stub:
        open_simulator = staticmethod(lambda model: ("opened", model))

    monkeypatch.setitem(sys.modules, f"hocket.simulators.fmu.{module}", Stub)
    fmu = Fmu(build("lag", 2, folder=tmp_path, binary=b""), **options)
    assert fmu.open() == ("opened", fmu)


def test_recipes_of_one_file_share_what_was_read(tmp_path):
    path = build("lag", 2, folder=tmp_path, binary=b"")
    first = Fmu(path)
    for number in range(1, 1001):
        fmu = Fmu(path, T=number)
        assert fmu.description is first.description
        assert fmu.unpacked_folder == first.unpacked_folder
        assert fmu.inputs
        assert fmu.outputs
