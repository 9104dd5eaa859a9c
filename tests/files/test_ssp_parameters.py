"""Parameter bindings of SSPs: sets and mappings, inline and in files, at every level, in every type."""

import pytest

from files.test_ssp import (
    NAMESPACES,
    UNITS,
    archive,
    binding,
    component,
    connection,
    connector,
    entries,
    fmu,
    gains,
    inline,
    parameter,
    ssd,
    system,
    types,
)
from fmus.build import build
from hocket.errors import FileError
from hocket.files.ssp import read_ssp
from hocket.model.ports import Port
from hocket.model.scenario import Connection

pytestmark = pytest.mark.usefixtures("fresh_cache")


def values(experiment, *path):
    scenario = experiment.composite.scenario
    for name in path[:-1]:
        scenario = scenario.models[name].scenario
    return scenario.models[path[-1]].parameters


def mapped(*lines):
    inside = "".join(lines)
    return (
        f'<ssd:ParameterMapping><ssm:ParameterMapping {NAMESPACES} version="1.0">{inside}'
        "</ssm:ParameterMapping></ssd:ParameterMapping>"
    )


def line(source, target, inside="", **attributes):
    told = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<ssm:MappingEntry source="{source}" target="{target}"{told}>{inside}</ssm:MappingEntry>'


def gain(name, *bindings):
    return component(name, "resources/gain.fmu", "".join(bindings))


def test_a_component_takes_an_inline_set(tmp_path):
    experiment = gains(tmp_path, system(gain("a", binding(inline(parameter("k", 3))))))
    assert values(experiment, "a") == {"k": 3.0}


def test_a_text_of_a_system_is_passed_on(tmp_path):
    inside = system(
        component("a", "resources/types.fmu"),
        connection("name", "a.p_string"),
        connector("name", "parameter", "<ssc:String/>"),
        binding(inline(parameter("name", "two words", "String"))),
    )
    files = {"resources/types.fmu": fmu("types")}
    experiment = read_ssp(archive(tmp_path, ssd(inside), files))
    assert values(experiment, "a") == {"p_string": "two words"}


def test_higher_levels_overrule_lower_ones_and_later_bindings_earlier_ones(tmp_path):
    """As the standard says: the system's binding counts, not the component's."""
    low = binding(inline(parameter("k", 1), parameter("u", 1)))
    inner = system(
        gain("g", low), before=binding(inline(parameter("g.k", 2), parameter("g.u", 2))), name="in"
    )
    twice = binding(inline(parameter("in.g.k", 3))).replace(
        "</ssd:ParameterBindings>",
        binding(inline(parameter("in.g.k", 4))).removeprefix("<ssd:ParameterBindings>"),
    )
    experiment = gains(tmp_path, system(inner, before=twice))
    assert values(experiment, "in", "g") == {"k": 4.0, "u": 2.0}
    assert not [note for note in experiment.notes if "nothing takes" in note]


def test_names_with_dots_reach_every_element_that_they_can_mean(tmp_path):
    inner = system(gain("b.c") + gain("x"), name="a")
    outer = system(inner + gain("a.b.c"), before=binding(inline(parameter("a.b.c.k", 7))))
    experiment = gains(tmp_path, outer)
    assert values(experiment, "a", "b_c") == values(experiment, "a_b_c") == {"k": 7.0}
    assert values(experiment, "a", "x") == {}


def test_sets_and_mappings_in_files_of_any_version(tmp_path):
    files = {
        "resources/gain.fmu": fmu("gain"),
        "resources/p.ssv": inline(parameter("gain", 3), parameter("other", 1), version="2.0"),
        "resources/p.ssm": mapped(line("gain", "a.k"), line("gain", "b.k"), line("", "b.u"))
        .removeprefix("<ssd:ParameterMapping>")
        .removesuffix("</ssd:ParameterMapping>"),
    }
    mapping = '<ssd:ParameterMapping source="resources/p.ssm"/>'
    inside = system(gain("a") + gain("b"), before=binding("", mapping, source="resources/p.ssv"))
    experiment = read_ssp(archive(tmp_path, ssd(inside), files))
    assert values(experiment, "a") == values(experiment, "b") == {"k": 3.0}


def test_a_prefix_stands_before_every_name(tmp_path):
    both = binding(inline(parameter("k", 5)), prefix="b.")
    experiment = gains(tmp_path, system(gain("a") + gain("b"), before=both))
    assert values(experiment, "a") == {}
    assert values(experiment, "b") == {"k": 5.0}


def test_a_set_inside_the_fmu(tmp_path):
    own = {"own.ssv": inline(parameter("k", 6))}
    made = build("gain", folder=tmp_path, binary=None, resources=own).read_bytes()
    elements = gain("a", binding(source="resources/own.ssv", sourceBase="component"))
    files = {"resources/gain.fmu": made}
    assert values(read_ssp(archive(tmp_path, ssd(system(elements)), files)), "a") == {"k": 6.0}


def test_the_bindings_of_a_component_that_is_an_ssp_come_last(tmp_path):
    inner = ssd(system(gain("g"), before=binding(inline(parameter("g.k", 1), parameter("g.u", 1)))))
    packed = archive(tmp_path, inner, {"resources/gain.fmu": fmu("gain")}, "inner.ssp").read_bytes()
    outer = system(component("in", "resources/inner.ssp", binding(inline(parameter("g.k", 2)))))
    experiment = read_ssp(archive(tmp_path, ssd(outer), {"resources/inner.ssp": packed}))
    assert values(experiment, "in", "g") == {"k": 2.0, "u": 1.0}


def test_what_is_mapped_is_converted_then_transformed(tmp_path):
    times = '<ssc:LinearTransformation factor="10" offset="1"/>'
    mapping = mapped(
        line("way", "left.x0"),
        line("way", "right.x0", times),
        line("way", "right.v0", suppressUnitConversion="true"),
    )
    given = inline(parameter("way", 30, unit="cm"), more=UNITS)
    elements = component("left", "resources/first.fmu") + component("right", "resources/second.fmu")
    experiment = read_ssp(archive(tmp_path, ssd(system(elements, before=binding(given, mapping)))))
    assert values(experiment, "left") == {"x0": 0.3}
    assert values(experiment, "right") == {"x0": 4.0, "v0": 30.0}


def test_units_of_a_set_may_be_those_of_the_description_or_in_brackets(tmp_path):
    one = binding(inline(parameter("x0", 3, unit="el"), parameter("m", 5, unit="[kg]")))
    two = binding(inline(parameter("x0", 3, unit="mm")))
    elements = component("left", "resources/first.fmu", one) + component("right", "resources/second.fmu", two)
    experiment = read_ssp(archive(tmp_path, ssd(system(elements), UNITS)))
    assert values(experiment, "left") == {"m": 5.0, "x0": 1.5}
    assert values(experiment, "right") == {"x0": 0.003}


def test_units_that_do_not_convert_are_a_fault(tmp_path):
    given = binding(inline(parameter("x0", 3, unit="kg")))
    with pytest.raises(FileError) as caught:
        read_ssp(archive(tmp_path, ssd(system(component("left", "resources/first.fmu", given)))))
    assert caught.value.faults[0].what.startswith("`left.x0`: `kg` cannot be converted to `m`")


@pytest.mark.parametrize("version", [2, 3])
def test_every_type_of_value(tmp_path, version):
    given = inline(
        parameter("p_real", "-2.5e0"),
        parameter("p_int", "-7", "Integer"),
        parameter("p_bool", "0", "Boolean"),
        parameter("p_enum", "high", "Enumeration"),
        parameter("p_string", " two words ", "String"),
        parameter("u_real", "3", "Integer"),
        parameter("u_int", "4.0"),
        parameter("u_bool", "1.0"),
        parameter("u_enum", "3", "Enumeration"),
    )
    elements = component("a", "resources/types.fmu", binding(given))
    experiment = types(tmp_path, "", elements=elements, version=version)
    assert values(experiment, "a") == {
        "p_real": -2.5,
        "p_int": -7,
        "p_bool": False,
        "p_enum": "high",
        "p_string": " two words ",
        "u_real": 3,
        "u_int": 4.0,
        "u_bool": True,
        "u_enum": 3,
    }
    starts = {port.name: port.start for port in experiment.composite.scenario.models["a"].inputs}
    assert (starts["u_real"], starts["u_int"], starts["u_bool"], starts["u_enum"]) == (3.0, 4.0, 1.0, 3.0)


def test_types_of_fmi_3_and_binary_values(tmp_path):
    given = inline(
        parameter("p_float32", "0.25", "Float32"),
        parameter("p_int64", str(2**53 + 1), "Int64"),
        parameter("p_uint8", "200", "UInt8"),
        parameter("p_binary", "cafe00", "Binary"),
        version="2.0",
    )
    experiment = types(
        tmp_path, "", elements=component("a", "resources/types.fmu", binding(given)), version=3
    )
    assert values(experiment, "a") == {
        "p_float32": 0.25,
        "p_int64": 2**53 + 1,
        "p_uint8": 200,
        "p_binary": b"\xca\xfe\x00",
    }


def test_arrays_of_values(tmp_path):
    size = '<ssc:Dimension size="2"/>'
    given = inline(
        parameter("n", 2, "UInt64"),
        parameter("A", "1 2 3 4", inside=size + size),
        parameter("u", "5 6", inside=size),
        version="2.0",
    )
    files = {"resources/arrays.fmu": fmu("arrays", 3)}
    inside = system(component("m", "resources/arrays.fmu", binding(given)))
    experiment = read_ssp(archive(tmp_path, ssd(inside, version="2.0"), files))
    assert values(experiment, "m") == {"n": 2, "A": ((1.0, 2.0), (3.0, 4.0)), "u": (5.0, 6.0)}
    assert [port.start for port in experiment.composite.scenario.models["m"].inputs] == [5.0, 6.0]


@pytest.mark.parametrize(
    ("written", "kind", "table", "expected"),
    [
        ("true", "Boolean", entries("Boolean", ("true", "false")), False),
        ("5", "Integer", entries("Integer", (5, 6)), 6),
        ("4", "Integer", entries("Integer", (5, 6)), 4),
        ("low", "Enumeration", entries("Enumeration", ("low", "off")), "off"),
    ],
)
def test_tables_apply_to_parameters_too(tmp_path, written, kind, table, expected):
    target = {"Boolean": "p_bool", "Integer": "p_int", "Enumeration": "p_enum"}[kind]
    given = binding(inline(parameter("it", written, kind)), mapped(line("it", target, table)))
    experiment = types(tmp_path, "", elements=component("a", "resources/types.fmu", given))
    assert values(experiment, "a") == {target: expected}


def test_a_parameter_of_a_system_is_passed_on_to_what_it_is_connected_with(tmp_path):
    inner = system(
        gain("g") + gain("h"),
        connection("p", "g.k", '<ssc:LinearTransformation factor="2"/>') + connection("p", "h.u"),
        connector("p", "parameter"),
        name="in",
    )
    experiment = gains(tmp_path, system(inner, before=binding(inline(parameter("in.p", 5)))))
    assert values(experiment, "in", "g") == {"k": 10.0}
    assert values(experiment, "in", "h") == {"u": 5.0}
    assert experiment.composite.scenario.models["in"].inputs == ()


def test_an_input_of_a_system_starts_where_a_binding_says(tmp_path):
    inside = system(
        gain("a"),
        connection("u", "a.u"),
        connector("u", "input"),
        binding(inline(parameter("u", -20))),
    )
    experiment = gains(tmp_path, inside)
    assert experiment.composite.inputs == (Port("u", start=-20.0),)
    assert experiment.composite.scenario.connections == (Connection("u", "a.u"),)


def test_what_nothing_takes_is_told_and_ignored(tmp_path):
    many = inline(*(parameter(f"a.nothing{i}", i) for i in range(5)), parameter("a.k", 1))
    experiment = gains(tmp_path, system(gain("a"), before=binding(many)))
    told = (
        "nothing takes `a.nothing0`, `a.nothing1`, `a.nothing2` and 2 more of demo.ssp: SystemStructure.ssd"
    )
    assert told in experiment.notes
    assert values(experiment, "a") == {"k": 1.0}


def test_what_an_fmu_calculates_is_not_set(tmp_path):
    experiment = gains(tmp_path, system(gain("a", binding(inline(parameter("y", 1))))))
    assert values(experiment, "a") == {}
    assert "the FMU of `a` calculates `y`: the values given are not set" in experiment.notes


def test_a_mapping_of_names_that_are_not_given_is_told(tmp_path):
    given = binding(inline(parameter("k", 1)), mapped(line("kk", "k"), line("", "u")))
    experiment = gains(tmp_path, system(gain("a", given)))
    told = "a mapping names `kk`, which no parameter is called (demo.ssp: SystemStructure.ssd)"
    assert told in experiment.notes
    assert values(experiment, "a") == {}


def both(first, second):
    """Two bindings of one element."""
    return first.removesuffix("</ssd:ParameterBindings>") + second.removeprefix("<ssd:ParameterBindings>")


def test_bindings_that_differ_tell_both_meanings(tmp_path):
    own = both(binding(inline(parameter("k", 1))), binding(inline(parameter("k", 2))))
    experiment = gains(tmp_path, system("\n" + gain("a", own), before=binding(inline(parameter("a.k", 3)))))
    assert values(experiment, "a") == {"k": 3.0}
    place = "demo.ssp: SystemStructure.ssd, line"
    told = [note for note in experiment.notes if "bound twice" in note]
    assert told == [
        f"`a.k` is bound twice: the binding that comes later counts, 2.0 ({place} 4); "
        f"for a tool that takes the first it is 1.0 ({place} 4)",
        f"`a.k` is bound twice: the binding of the level above counts, 3.0 ({place} 3); "
        f"for a tool that takes the own one it is 2.0 ({place} 4)",
    ]


def test_bindings_that_agree_need_no_note(tmp_path):
    own = both(binding(inline(parameter("k", 2))), binding(inline(parameter("k", "2.0"))))
    assert "bound twice" not in "".join(gains(tmp_path, system(gain("a", own))).notes)


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (
            mapped(line("k", "kk")),
            "the target `kk` of a mapping is not in `a`\n  where:    {}\n"
            "  expected: a parameter, an input or a connector of it\n  try:      did you mean `k`?",
        ),
        (
            mapped(line("k", "")),
            "a line of a mapping has no target\n  where:    {}\n  expected: the names of both",
        ),
        (
            mapped("<ssm:MapEntry source='k' target='k'/>"),
            "a <MapEntry> in a <ParameterMapping>\n  where:    {}\n  expected: <MappingEntry>\n"
            "  try:      did you mean `MappingEntry`?",
        ),
    ],
)
def test_a_mapping_that_leads_nowhere_is_refused(tmp_path, inside, told):
    given = gain("a", binding(inline(parameter("k", 1)), inside))
    with pytest.raises(FileError) as error:
        gains(tmp_path, system(given))
    assert str(error.value) == told.format("demo.ssp: SystemStructure.ssd, line 3")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no file `p.ssv`"),
        ("", "`p.ssv` is not well-formed XML: no element found"),
        ("<a/>", "`p.ssv` holds a <a>"),
        ('<ParameterSet version="1.0" name="p"/>', "a <ParameterSet> without <Parameters>"),
        (
            '<ParameterSet version="1.0"><Parameters/><Parameter name="k"><Real value="1"/></Parameter>'
            "</ParameterSet>",
            "a <Parameter> in a <ParameterSet>",
        ),
        (
            '<ParameterSet version="1.0" name="p"><Parameters><Param name="k"/></Parameters></ParameterSet>',
            "a <Param> in a <Parameters>",
        ),
        (
            '<ParameterSet version="1.0"><Parameters><Parameter name="k"><Reel value="1"/></Parameter>'
            "</Parameters></ParameterSet>",
            "the parameter `k` has no value",
        ),
    ],
)
def test_a_set_that_is_referred_to_must_be_one(tmp_path, content, told):
    files = {"gain.fmu": fmu("gain")} | ({} if content is None else {"p.ssv": content})
    text = ssd(system(component("a", "gain.fmu", binding(source="p.ssv")) + component("b", "gain.fmu")))
    with pytest.raises(FileError) as error:
        read_ssp(archive(tmp_path, text, files))
    assert error.value.faults[0].what == told
    assert error.value.faults[0].place.line is not None
    assert len(error.value.faults) == 1


def test_whole_numbers_may_be_written_with_a_point(tmp_path):
    given = inline(
        parameter("p_int", "3.0", "Integer"),
        parameter("p_enum", "2.0", "Enumeration"),
        parameter("u_int", "4.0"),
    )
    text = ssd(system(component("a", "resources/types.fmu", binding(given))))
    experiment = read_ssp(archive(tmp_path, text, {"resources/types.fmu": fmu("types")}))
    found = values(experiment, "a")
    assert found == {"p_int": 3, "p_enum": 2, "u_int": 4}
    assert all(isinstance(each, int) for each in found.values())
