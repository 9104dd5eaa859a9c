"""Model descriptions: what is read, let pass and refused; and the binary for this platform."""

import platform
import re
import struct

import pytest

from fmus.build import build
from hocket.errors import FileError
from hocket.model.units import conversion
from hocket.simulators.fmu import binaries, description
from hocket.simulators.fmu.binaries import exported_names, find_binary
from hocket.simulators.fmu.description import read_description
from hocket.simulators.fmu.ports import layout_ports
from hocket.simulators.fmu.recipe import Fmu
from simulators.fmu_xml import CS, HEADS, TIME, folder, scalar, written

pytestmark = pytest.mark.usefixtures("fresh_cache")


def one(tmp_path, version, variables="", structure="", interface=CS, more=""):
    return read_description(folder(tmp_path, written(version, variables, structure, interface, more)))


def refusals(tmp_path, xml):
    with pytest.raises(FileError) as caught:
        read_description(folder(tmp_path, xml), "lag.fmu")
    assert all(fault.where.startswith("lag.fmu, modelDescription.xml") for fault in caught.value.faults)
    return [fault.what for fault in caught.value.faults]


# what is read


def test_fmi_2(tmp_path):
    found = read_description(Fmu(build("lag", 2, folder=tmp_path, binary=b"")).unpacked_folder)
    assert (found.version, found.major, found.name) == ("2.0", 2, "lag")
    assert found.token.startswith("{")
    assert found.tool == "hocket's tests"
    assert found.about.startswith("T y' = u - y")
    assert found.platforms == ("linux64",)
    assert found.problems == ()
    assert found.states == (("y", "der_y"),)
    assert found.dependencies["y"] == ()
    assert set(found.by_name) == {"u", "y", "der_y", "T", "y0"}
    T = found.by_name["T"]
    assert (T.type, T.causality, T.variability, T.initial) == ("real", "parameter", "fixed", "exact")
    assert (T.start, T.unit, T.minimum, T.maximum) == (1.0, "s", 1e-6, None)
    assert found.units["s"].exponents == (0, 0, 1, 0, 0, 0, 0, 0)
    assert found.cs.identifier == "lag"
    assert (found.cs.can_save, found.cs.can_serialise, found.cs.variable_step) == (True, True, True)
    assert (found.cs.output_derivatives, found.cs.interpolates_inputs, found.cs.only_once) == (
        0,
        False,
        False,
    )
    assert found.me.completed_step


def test_fmi_1(tmp_path):
    capabilities = (
        '<Capabilities canHandleVariableCommunicationStepSize="true" canInterpolateInputs="1" '
        'maxOutputDerivativeOrder="2" canBeInstantiatedOnlyOncePerProcess="true"/>'
    )
    implementation = f"<Implementation><CoSimulation_Tool>{capabilities}<Model entryPoint='x' type='y' "
    implementation += "manualStart='false'/></CoSimulation_Tool></Implementation>"
    variables = (
        scalar("u", 0, "<Real/>", causality="input")
        + scalar("p", 1, '<Integer start="3"/>', variability="parameter")
        + scalar("x", 2, '<Real start="4" fixed="false"/>')
        + scalar("z", 3, '<Real start="5"/>', causality="internal")
        + scalar("free", 4, "<Real/>", causality="output")
        + scalar("y", 5, "<Real/><DirectDependency><Name>u</Name></DirectDependency>", causality="output")
        + scalar("w", 6, "<Real/><DirectDependency/>", causality="output")
        + scalar("minus", 2, "<Real/>", alias="negatedAlias")
        + scalar("odd", 7, "<Boolean/>", causality="none", variability="discrete")
    )
    xml = HEADS[1] + f"<ModelVariables>{variables}</ModelVariables>{implementation}</fmiModelDescription>"
    found = read_description(folder(tmp_path, xml))
    assert found.me is None
    assert found.cs.needs_execution_tool
    assert found.cs.only_once
    assert (found.cs.variable_step, found.cs.interpolates_inputs, found.cs.output_derivatives) == (
        True,
        True,
        2,
    )
    assert not found.cs.can_save
    assert found.dependencies == {"free": None, "y": ("u",), "w": ()}
    known = found.by_name
    assert known["u"].start is None
    assert known["u"].settable
    assert (known["p"].causality, known["p"].variability, known["p"].start) == ("parameter", "fixed", 3)
    assert [known[name].initial for name in ("x", "z", "free")] == ["approx", "exact", "calculated"]
    assert known["minus"].negated
    assert known["odd"].causality == "local"


def test_fmi_3(tmp_path):
    variables = (
        TIME
        + '<UInt64 name="n" valueReference="1" causality="structuralParameter" start="2" min="1" max="9"/>'
        + '<Float64 name="u" valueReference="2" causality="input" start="1 2" intermediateUpdate="true">'
        + '<Dimension valueReference="1"/></Float64>'
        + '<Float32 name="A" valueReference="3" causality="parameter" start="7">'
        + '<Dimension start="2"/><Dimension start="3"/></Float32>'
        + '<String name="s" valueReference="4" causality="parameter">'
        + '<Dimension start="2"/><Start value="a b"/><Start value="c"/></String>'
        + '<Binary name="b" valueReference="5" causality="parameter"><Start value="CAFE"/></Binary>'
        + '<Float64 name="x" valueReference="6" causality="output" initial="exact" start="0" reinit="true">'
        + '<Alias name="same"/></Float64>'
        + '<Float64 name="der(x)" valueReference="7" derivative="6"/>'
        + '<Enumeration name="e" valueReference="8" causality="parameter" declaredType="Gear" start="2"/>'
        + '<Boolean name="flag" valueReference="10" causality="parameter" start="true"/>'
        + '<Float64 name="z" valueReference="9" variability="continuous"/>'
    )
    structure = (
        '<Output valueReference="6"/><ContinuousStateDerivative valueReference="7" dependencies="2 6"/>'
        '<InitialUnknown valueReference="7" dependencies="6"/><EventIndicator valueReference="9"/>'
    )
    types = '<TypeDefinitions><EnumerationType name="Gear"><Item name="up" value="1"/>'
    types += '<Item name="down" value="2"/></EnumerationType></TypeDefinitions>'
    interface = (
        '<CoSimulation modelIdentifier="m" canGetAndSetFMUState="true" providesDirectionalDerivatives="true" '
        'hasEventMode="true" mightReturnEarlyFromDoStep="true" providesIntermediateUpdate="true" '
        'fixedInternalStepSize="0.01" maxOutputDerivativeOrder="1"/>'
    )
    experiment = '<DefaultExperiment startTime="1" stopTime="2" tolerance="1e-5" stepSize="0.1"/>'
    categories = '<LogCategories><Category name="warnings"/></LogCategories>'
    found = one(tmp_path, 3, variables, structure, interface, types + categories + experiment)
    assert found.problems == ()
    known = found.by_name
    assert known["n"].type == "uint64"
    assert (known["n"].minimum, known["n"].maximum, known["n"].start) == (1, 9, 2)
    assert (known["u"].dimensions, known["u"].start) == (("n",), (1.0, 2.0))
    assert known["u"].intermediate_update
    assert (known["A"].dimensions, known["A"].start, known["A"].type) == ((2, 3), (7.0,), "float32")
    assert known["s"].start == ("a b", "c")
    assert known["b"].start == b"\xca\xfe"
    assert known["flag"].start is True
    assert known["same"].alias_of == "x"
    assert (known["e"].items, known["e"].start) == ({"up": 1, "down": 2}, 2)
    assert found.sizes == {"n": 2}
    assert found.states == (("x", "der(x)"),)
    assert found.event_indicators == 1
    assert found.dependencies == {"x": None, "der(x)": ("u", "x")}
    assert found.initial_unknowns == {"der(x)": ("x",)}
    assert (found.start, found.stop, found.tolerance, found.step) == (1.0, 2.0, 1e-5, 0.1)
    cs = found.cs
    assert (cs.can_save, cs.directional, cs.event_mode, cs.early_return) == (True, True, True, True)
    assert (cs.intermediate_update, cs.fixed_step, cs.output_derivatives) == (True, 0.01, 1)


def test_limits_and_units_of_declared_types(tmp_path):
    types = (
        '<UnitDefinitions><Unit name="km/h"><BaseUnit m="1" s="-1" factor="0.25" offset="1"/></Unit>'
        '</UnitDefinitions><TypeDefinitions><SimpleType name="Speed"><Real unit="km/h" min="0" max="300"/>'
        "</SimpleType></TypeDefinitions>"
    )
    value = '<Real declaredType="Speed" start="1" max="200"/>'
    found = one(tmp_path, 2, scalar("v", 0, value, causality="input"), more=types)
    v = found.by_name["v"]
    assert (v.unit, v.minimum, v.maximum) == ("km/h", 0.0, 200.0)
    assert found.units["km/h"].factor == 0.25
    assert found.units["km/h"].offset == 1.0


def test_units_that_it_defines_and_differences(tmp_path):
    more = (
        '<UnitDefinitions><Unit name="tick"><BaseUnit s="1" factor="0.5"/></Unit></UnitDefinitions>'
        '<TypeDefinitions><SimpleType name="Rise"><Real unit="degC" relativeQuantity="true"/></SimpleType>'
        "</TypeDefinitions>"
    )
    values = {
        "t": '<Real unit="tick" start="1"/>',
        "own": '<Real unit="degC" relativeQuantity="true" start="1"/>',
        "rise": '<Real declaredType="Rise" start="1"/>',
        "heat": '<Real unit="degC" start="1"/>',
    }
    listed = "".join(scalar(name, k, values[name], causality="input") for k, name in enumerate(values))
    ports = layout_ports(one(tmp_path, 2, listed, more=more), {}).inputs
    assert [port.unit for port in ports] == ["tick", "delta_degC", "delta_degC", "degC"]
    others = ("s", "K", "K", "K")
    found = [conversion(port.unit, other) for port, other in zip(ports, others, strict=True)]
    assert found == [(0.5, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 273.15)]


def test_a_description_is_read_once_per_file(tmp_path):
    place = folder(tmp_path, written(2, scalar("u", causality="input")))
    first = read_description(place)
    assert read_description(place) is first
    (place / "modelDescription.xml").write_text(written(2, scalar("other", causality="input")))
    assert "other" in read_description(place).by_name


def test_a_version_with_a_patch_number(tmp_path):
    xml = written(3, TIME).replace('"3.0"', '"3.0.2"')
    assert read_description(folder(tmp_path, xml)).version == "3.0"


# what is let pass


def test_problems_are_kept(tmp_path):
    found = one(tmp_path, 2, scalar("u", value='<Real unit="furlong" start="1"/>', causality="input"))
    assert found.problems == ("units are used that are not defined, by: `u`",)
    assert found.by_name["u"].unit == "furlong"


def test_schema_problems_are_kept(tmp_path):
    found = one(tmp_path, 2, scalar("u", causality="input", colour="red"))
    assert any("attribute 'colour'" in problem for problem in found.problems)


def test_a_display_unit_that_is_not_defined(tmp_path):
    value = '<Real unit="m" displayUnit="mm" start="1"/>'
    more = '<UnitDefinitions><Unit name="m"><BaseUnit m="1"/></Unit></UnitDefinitions>'
    found = one(tmp_path, 2, scalar("u", value=value, causality="input"), more=more)
    assert found.problems == ("display units are used that are not defined, by: `u`",)


def test_the_unit_of_a_declared_type_is_defined_too(tmp_path):
    more = '<TypeDefinitions><SimpleType name="T"><Real unit="furlong"/></SimpleType></TypeDefinitions>'
    value = '<Real declaredType="T" start="1"/>'
    found = one(tmp_path, 2, scalar("u", value=value, causality="input"), more=more)
    assert found.problems == ("units are used that are not defined, by: `u`",)


@pytest.mark.parametrize(
    ("attributes", "problem", "facts"),
    [
        (
            {"causality": "parameter", "variability": "constant"},
            "causality `parameter` goes with variability `constant`, which FMI forbids, of: `p`",
            ("constant", False),
        ),
        (
            {"causality": "parameter"},
            "causality `parameter` goes with no variability, which FMI forbids, of: `p`",
            ("fixed", True),
        ),
        (
            {"causality": "input", "variability": "fixed"},
            "causality `input` goes with variability `fixed`, which FMI forbids, of: `p`",
            ("fixed", True),
        ),
    ],
)
def test_forbidden_combinations(tmp_path, attributes, problem, facts):
    found = one(tmp_path, 2, scalar("p", **attributes))
    assert problem in found.problems
    p = found.by_name["p"]
    assert (p.variability, p.settable) == facts


def test_a_type_that_is_not_defined(tmp_path):
    found = one(tmp_path, 2, scalar("u", value='<Real declaredType="T" start="1"/>', causality="input"))
    assert found.problems == ("declared types are used that are not defined, by: `u`",)


def test_types_that_fmpy_does_not_know(tmp_path):
    types = '<TypeDefinitions><BinaryType name="Image" mimeType="image/png" maxSize="9"/>'
    types += '<ClockType name="Tick" intervalVariability="triggered"/></TypeDefinitions>'
    variables = TIME + '<Binary name="b" valueReference="1" causality="input" declaredType="Image">'
    variables += '<Start value=""/></Binary><Clock name="c" valueReference="2" causality="local" '
    variables += 'declaredType="Tick" intervalVariability="triggered"/>'
    found = one(tmp_path, 3, variables, more=types)
    assert found.by_name["b"].type == "binary"
    assert found.by_name["c"].type == "clock"


def test_lists_with_many_blanks(tmp_path):
    variables = scalar("u", 0, causality="input") + scalar("v", 1, causality="input")
    variables += scalar("y", 2, "<Real/>", causality="output")
    structure = '<Outputs><Unknown index="3" dependencies=" 1   2 "/></Outputs>'
    assert one(tmp_path, 2, variables, structure).dependencies == {"y": ("u", "v")}


def test_internal_variables_of_one_name(tmp_path):
    found = one(tmp_path, 2, scalar("a", 1, "<Real/>") + scalar("a", 2, "<Real/>"))
    assert [variable.reference for variable in found.variables] == [1]
    assert found.problems == ("variables of one name: the first counts: `a`",)


def test_a_wrong_default_experiment(tmp_path):
    found = one(tmp_path, 2, scalar("u", causality="input"), more='<DefaultExperiment stepSize="0"/>')
    assert found.step is None
    assert found.problems == ("the stepSize of the default experiment is 0",)


def test_start_values_of_the_wrong_number(tmp_path):
    variables = TIME + '<Float64 name="u" valueReference="1" causality="input" start="1 2">'
    found = one(tmp_path, 3, variables + '<Dimension start="3"/></Float64>')
    assert found.by_name["u"].start is None
    assert found.problems == ("`u` has 2 start values, not 1 or 3: they are left out",)


def test_a_derivative_of_nothing_forbids_model_exchange_only(tmp_path):
    structure = '<Derivatives><Unknown index="1"/></Derivatives>'
    both = CS + '<ModelExchange modelIdentifier="m"/>'
    # the schema wants model exchange first; order does no harm
    found = one(tmp_path, 2, scalar("dx", 0, "<Real/>"), structure, interface=both)
    assert found.me is None
    assert "`dx` does not say of which state it is the derivative" in found.problems
    xml = written(2, scalar("dx", 0, "<Real/>"), structure, interface='<ModelExchange modelIdentifier="m"/>')
    told = "a state derivative does not say of which state: model exchange is not possible"
    assert refusals(tmp_path, xml) == [told]


# what is refused


def test_not_xml(tmp_path):
    with pytest.raises(FileError) as caught:
        read_description(folder(tmp_path, "<fmiModelDescription>\n <a"), "lag.fmu")
    (fault,) = caught.value.faults
    assert fault.what == "it is not XML: unclosed token"
    assert fault.where == "lag.fmu, modelDescription.xml, line 2 (column 1)"


def test_another_root(tmp_path):
    assert refusals(tmp_path, "<html/>") == ["its root is `html`"]


def test_a_doctype(tmp_path):
    bomb = '<!DOCTYPE a [<!ENTITY x "y">]>' + written(2, scalar("u", causality="input"))
    told = "it cannot be read: it has a DOCTYPE, which a model description never has"
    assert refusals(tmp_path, bomb) == [told]


def test_an_encoding_nobody_knows(tmp_path):
    (told,) = refusals(tmp_path, '<?xml version="1.0" encoding="klingon"?><a/>')
    assert told.startswith(("it is not XML: unknown encoding", "it cannot be read: unknown encoding"))


@pytest.mark.parametrize("version", ["", "2.5", "3.1", "2.0.1", "4.0"])
def test_unknown_versions(tmp_path, version):
    xml = written(2).replace('"2.0"', f'"{version}"')
    assert refusals(tmp_path, xml) == [f"its FMI version is `{version}`"]


def test_a_draft_version(tmp_path):
    with pytest.raises(FileError) as caught:
        read_description(folder(tmp_path, written(3).replace('"3.0"', '"3.0-beta.2"')))
    assert caught.value.faults[0].expected == "1.0, 2.0 or 3.0"
    assert caught.value.faults[0].hint == "a draft of the standard: export the FMU anew"


def test_xml_without_bottom(tmp_path):
    """Three million levels would end the process that frees them."""
    depth = 200_000
    xml = written(2, more="<a>" * depth + "</a>" * depth)
    assert refusals(tmp_path, xml) == ["it cannot be read: its elements are more than 100 levels deep"]


def test_a_large_description_is_not_compared_with_the_schema(tmp_path, monkeypatch):
    rows = "".join(scalar(f"v{k}", k, causality="input") for k in range(30))
    assert not one(tmp_path, 2, rows).problems
    monkeypatch.setattr(description, "VALIDATED", 20)
    found = one(tmp_path, 2, rows)
    assert found.problems == ("it has 30 variables, and is not compared with the schema of FMI",)
    assert len(found.variables) == 30


def test_no_version(tmp_path):
    assert refusals(tmp_path, "<fmiModelDescription/>") == ["it has no `fmiVersion`"]


def test_fmi_1_model_exchange(tmp_path):
    """Its states are counted, not named; it always wants to be told of completed steps."""
    xml = written(1, interface="")
    counts = ("numberOfContinuousStates", "numberOfEventIndicators")
    numbers = dict(zip(counts, (3, 2), strict=True))
    told = re.sub(rf'({"|".join(counts)})="\d+"', lambda found: f'{found[1]}="{numbers[found[1]]}"', xml)
    described = read_description(folder(tmp_path, told))
    assert (described.cs, described.states, described.unnamed_states) == (None, (), 3)
    assert described.event_indicators == 2
    assert described.me.completed_step
    assert described.me.variable_step
    untold = re.sub(rf' ({"|".join(counts)})="\d+"', "", xml)
    assert refusals(tmp_path, untold) == [f"it has no `{name}`" for name in counts]


def test_scheduled_execution_only(tmp_path):
    xml = written(3, TIME, interface='<ScheduledExecution modelIdentifier="m"/>')
    found = read_description(folder(tmp_path, xml))
    assert (found.cs, found.me) == (None, None)
    assert found.se.identifier == "m"


def test_no_interface(tmp_path):
    assert refusals(tmp_path, written(2, interface="")) == ["it has no interface"]


def test_no_identifier(tmp_path):
    xml = written(2, interface='<CoSimulation/><ModelExchange modelIdentifier=""/>')
    told = ["`CoSimulation` has no `modelIdentifier`", "`ModelExchange` has no `modelIdentifier`"]
    assert refusals(tmp_path, xml) == told


@pytest.mark.parametrize("identifier", ["../../evil", "a/b", "a\\b", "c:x", ".."])
def test_an_identifier_that_leads_elsewhere(tmp_path, identifier):
    xml = written(2, interface=f'<CoSimulation modelIdentifier="{identifier}"/>')
    assert refusals(tmp_path, xml) == [f"the modelIdentifier is `{identifier}`"]


def test_no_variables(tmp_path):
    xml = HEADS[2] + CS + "</fmiModelDescription>"
    assert refusals(tmp_path, xml) == ["it has no `ModelVariables`"]


def test_wrong_variables_are_told_together(tmp_path):
    variables = (
        scalar("a", 1, causality="input")
        + scalar("a", 2, causality="input")
        + '<ScalarVariable valueReference="3"><Real/></ScalarVariable>'
        + '<ScalarVariable name="c"><Real/></ScalarVariable>'
        + scalar("d", "x")
        + scalar("e", 4, "")
    )
    assert refusals(tmp_path, written(2, variables)) == [
        "variables 1 and 2 are both named `a`",
        "variable 3 has no name",
        "`c` has no value reference",
        "`d` has the value reference `x`",
        "`e` has no type",
    ]


def test_many_faults_are_counted(tmp_path):
    variables = "".join(scalar(f"x{n}", n, "") for n in range(30))
    told = refusals(tmp_path, written(2, variables))
    assert len(told) == 13
    assert told[-1] == "and 18 faults more"


def test_an_unknown_type_of_fmi_3(tmp_path):
    xml = written(3, '<Float16 name="x" valueReference="1"/>')
    assert refusals(tmp_path, xml) == ["`x` is of type `Float16`, which FMI 3 does not know"]


def test_structure_by_index(tmp_path):
    structure = '<Outputs><Unknown index="0"/><Unknown index="1" dependencies="1 7"/><Unknown/></Outputs>'
    variables = scalar("y", value='<Real derivative="9"/>', causality="output")
    assert refusals(tmp_path, written(2, variables, structure)) == [
        "`Unknown` in `ModelStructure` names the index 0, which no variable has",
        "`Unknown` in `ModelStructure` names the index 7, which no variable has",
        "`Unknown` in `ModelStructure` has no `index`",
        "`derivative` of `y` names the index 9, which no variable has",
    ]


def test_structure_by_reference(tmp_path):
    variables = '<Float64 name="x" valueReference="1" derivative="4" clocks="5"/>'
    structure = '<Output valueReference="2" dependencies="1 3"/>'
    assert refusals(tmp_path, written(3, TIME + variables, structure)) == [
        "`Output` in `ModelStructure` names the value reference 2, which no variable has",
        "`Output` in `ModelStructure` names the value reference 3, which no variable has",
        "`derivative` of `x` names the value reference 4, which no variable has",
        "`clocks` of `x` names the value reference 5, which no variable has",
    ]


def test_dimensions(tmp_path):
    variables = TIME + '<UInt64 name="n" valueReference="1" causality="structuralParameter"/>'
    variables += '<UInt64 name="p" valueReference="3" causality="parameter" start="2"/>'
    variables += '<Float64 name="x" valueReference="2" causality="input" start="1">'
    variables += '<Dimension valueReference="1"/><Dimension valueReference="8"/><Dimension start="-1"/>'
    variables += '<Dimension valueReference="3"/></Float64>'
    assert refusals(tmp_path, written(3, variables)) == [
        "`n`, a dimension of `x`, has no start value",
        "a dimension of `x` names no variable that exists",
        "a dimension of `x` is `-1`",
        "`p`, a dimension of `x`, is not a structural parameter",
    ]


def test_start_values_of_the_wrong_type(tmp_path):
    variables = (
        scalar("a", 1, '<Real start="many"/>', causality="input")
        + scalar("b", 2, '<Integer start="1.5"/>', causality="input", variability="discrete")
        + scalar("c", 3, '<Boolean start="yes"/>', causality="input", variability="discrete")
        + scalar("d", 4, '<Real start="1" min="low"/>', causality="input")
    )
    assert refusals(tmp_path, written(2, variables)) == [
        "`start` of `a` is `many`",
        "`start` of `b` is `1.5`",
        "`start` of `c` is `yes`",
        "`min` of `d` is `low`",
    ]


def test_without_fmpy(tmp_path, monkeypatch):
    """It brings the schemas: without them an FMU is read, and it is said that it was not compared."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    description._load_schema.cache_clear()
    try:
        found = one(tmp_path, 2, scalar("u", causality="input", colour="red"))
    finally:
        description._load_schema.cache_clear()
    hint = 'pip install "hocket[fmi]"'
    assert found.problems == (f"it is not compared with the schema of FMI, which FMPy brings: {hint}",)


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ('<Unit name="m"><BaseUnit m="one"/></Unit>', "`m` of `unit m` is `one`"),
        ('<Unit name="m"><BaseUnit m="1" offset="none"/></Unit>', "`offset` of `unit m` is `none`"),
    ],
)
def test_units_with_texts_for_numbers(tmp_path, told, fault):
    xml = written(2, scalar("u", causality="input"), more=f"<UnitDefinitions>{told}</UnitDefinitions>")
    assert refusals(tmp_path, xml) == [fault]


def test_a_number_of_event_indicators_that_is_none(tmp_path):
    xml = written(2, scalar("u", causality="input")).replace(
        'guid="g"', 'guid="g" numberOfEventIndicators="x"'
    )
    assert refusals(tmp_path, xml) == ["`numberOfEventIndicators` of `the model` is `x`"]


def test_a_variable_that_is_its_type_as_in_fmi_3(tmp_path):
    row = '<Real name="u" valueReference="0" causality="input" start="1"/>'
    assert refusals(tmp_path, written(2, row)) == ["`u` has no type"]


def test_definitions_behind_the_variables(tmp_path):
    """The schema wants them first; order does no harm."""
    types = '<TypeDefinitions><SimpleType name="T"><Real min="2"/></SimpleType></TypeDefinitions>'
    value = '<Real declaredType="T" start="3"/>'
    xml = written(2, scalar("u", value=value, causality="input"))
    found = read_description(folder(tmp_path, xml.replace("</ModelVariables>", f"</ModelVariables>{types}")))
    assert found.by_name["u"].minimum == 2.0


def test_no_description(tmp_path):
    with pytest.raises(FileError, match=r"there is no `modelDescription\.xml`"):
        read_description(tmp_path)


# binaries


def host(monkeypatch, system, machine, bits=64):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    real = struct.calcsize
    monkeypatch.setattr(struct, "calcsize", lambda f: bits // 8 if f == "P" else real(f))
    binaries.platforms.cache_clear()


@pytest.mark.parametrize(
    ("system", "machine", "bits", "old", "new"),
    [
        ("Linux", "x86_64", 64, "linux64/m.so", "x86_64-linux/m.so"),
        ("Linux", "i686", 32, "linux32/m.so", "x86-linux/m.so"),
        ("Linux", "aarch64", 64, "aarch64-linux/m.so", "aarch64-linux/m.so"),
        ("Windows", "AMD64", 64, "win64/m.dll", "x86_64-windows/m.dll"),
        ("Windows", "AMD64", 32, "win32/m.dll", "x86-windows/m.dll"),
        ("Windows", "ARM64", 64, "aarch64-windows/m.dll", "aarch64-windows/m.dll"),
        ("Darwin", "x86_64", 64, "darwin64/m.dylib", "x86_64-darwin/m.dylib"),
        ("Darwin", "arm64", 64, "aarch64-darwin/m.dylib", "aarch64-darwin/m.dylib"),
    ],
)
def test_platforms(tmp_path, monkeypatch, system, machine, bits, old, new):
    host(monkeypatch, system, machine, bits)
    for version, place in ((2, old), (3, new)):
        found = one(tmp_path, version, TIME if version == 3 else scalar("u", causality="input"))
        with pytest.raises(FileError) as caught:
            find_binary(tmp_path / "unpacked", found, found.cs)
        assert caught.value.faults[0].expected == f"`binaries/{place}`"
        file = tmp_path / "unpacked" / "binaries" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
        assert find_binary(tmp_path / "unpacked", found, found.cs) == file
        file.unlink()
        file.parent.rmdir()


@pytest.fixture
def linux(monkeypatch):
    host(monkeypatch, "Linux", "x86_64")
    yield
    binaries.platforms.cache_clear()


@pytest.fixture(autouse=True)
def this_platform():
    yield
    binaries.platforms.cache_clear()


@pytest.mark.usefixtures("linux")
def test_no_binary_for_this_platform(tmp_path):
    fmu = Fmu(build("lag", 2, folder=tmp_path, binary=b"", platform="win64"))
    with pytest.raises(FileError) as caught:
        _ = fmu.binary
    (fault,) = caught.value.faults
    assert fault.what == "the FMU has no binary for this platform"
    assert fault.where == str(fmu.file)
    assert fault.expected == "`binaries/linux64/lag.so`"
    assert fault.hint.startswith("it is for Windows only (`win64`): run it there, or ask its author for")


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"binary": None}, "ask its author for an export with binaries"),
        (
            {"binary": b"", "modelIdentifier": "gal"},
            "that folder holds `lag.so`: the file must be named after the modelIdentifier",
        ),
    ],
)
def test_no_binary(tmp_path, options, hint):
    fmu = Fmu(build("lag", 2, folder=tmp_path, **options))
    with pytest.raises(FileError) as caught:
        _ = fmu.binary
    assert caught.value.faults[0].hint == hint


@pytest.mark.usefixtures("linux")
def test_sources_only(tmp_path):
    found = one(tmp_path, 2, scalar("u", causality="input"))
    (tmp_path / "unpacked" / "sources").mkdir()
    with pytest.raises(FileError, match="it brings its source code: `--build`"):
        find_binary(tmp_path / "unpacked", found, found.cs)


@pytest.mark.usefixtures("linux")
def test_the_folder_name_of_another_version_serves(tmp_path):
    path = build("lag", 2, folder=tmp_path, binary=b"", platform="x86_64-linux")
    assert Fmu(path).binary.parent.name == "x86_64-linux"


def test_exported_names(tmp_path):
    file = tmp_path / "lib.so"
    file.write_bytes(b"\0fmi2DoStep\0m_fmiDoStep\0fmi2GetRealStatus\0fmi2SetReal: failed\0")
    names = ("fmi2DoStep", "fmiDoStep", "fmi2GetReal", "fmi2SetReal", "fmi2Reset")
    assert exported_names(file, names) == {"fmi2DoStep", "fmiDoStep"}
    file.write_bytes(b"")
    assert exported_names(file, names) == set()
