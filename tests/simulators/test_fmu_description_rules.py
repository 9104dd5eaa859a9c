"""Rules of FMI 2 and 3 that a model description breaks are named: errors where a run would be wrong."""

import pytest

from fmus.build import NAMES, build
from fmus.table import versions
from hocket.errors import FileError
from hocket.simulators.fmu import description
from hocket.simulators.fmu.description import read_description
from hocket.simulators.fmu.recipe import Fmu
from simulators.fmu_xml import CS, TIME, folder, scalar, written

ME = '<ModelExchange modelIdentifier="m"/>'
Y = '<Float64 name="y" valueReference="1" causality="output"/>'
U = '<Float64 name="u" valueReference="2" causality="input" start="0"/>'
CLOCK = '<Clock name="c" valueReference="5" causality="local" intervalVariability="triggered"/>'
OUTPUT = '<Output valueReference="1"/>'


def notes(tmp_path, version, *parts, interface=CS, more=""):
    variables, structure = (*parts, "")[:2]
    time = TIME if version == 3 else ""
    return read_description(
        folder(tmp_path, written(version, time + variables, structure, interface, more))
    ).problems


def units(text):
    return f"<UnitDefinitions>{text}</UnitDefinitions>"


def test_nothing_is_said_of_what_is_right(tmp_path):
    assert notes(tmp_path, 3, Y + U, '<Output valueReference="1" dependencies="2"/>') == ()


MODERN = {
    "lengths": (
        (Y + U, '<Output valueReference="1" dependencies="2" dependenciesKind="constant fixed"/>'),
        "`dependencies` and `dependenciesKind` have different lengths, of: `y`",
    ),
    "causality of outputs": (
        (Y + U, f'{OUTPUT}<Output valueReference="2"/>'),
        "`ModelStructure` lists as outputs what is not of this causality: `u`",
    ),
    "missing outputs": ((Y,), "outputs are missing in `ModelStructure`: `y`"),
    "twice": ((Y, OUTPUT * 2), "`ModelStructure` lists twice as Output: `y`"),
    "own previous": (
        (f'{CLOCK}<Float64 name="x" valueReference="3" variability="discrete" clocks="5" previous="3"/>',),
        "variables are declared to be their own previous value: `x`",
    ),
    "previous without clocks": (
        (
            '<Float64 name="x" valueReference="3" variability="discrete" previous="4"/>'
            '<Float64 name="w" valueReference="4" variability="discrete"/>',
        ),
        "`previous` is declared without clocks: `x`",
    ),
    "reinit": (
        ('<Float64 name="x" valueReference="3" variability="discrete" reinit="true"/>',),
        "`reinit` is declared of what is not a continuous state: `x`",
    ),
    "own derivative": (
        ('<Float64 name="x" valueReference="3" derivative="3"/>',),
        "variables are declared to be their own derivative: `x`",
    ),
    "derivative of what is discrete": (
        (
            '<Float64 name="x" valueReference="3" variability="discrete"/>'
            '<Float64 name="dx" valueReference="4" derivative="3"/>',
        ),
        "derivatives are declared of what is not continuous: `dx`",
    ),
    "structural parameter": (
        (
            '<UInt64 name="n" valueReference="3" causality="structuralParameter" start="1 1">'
            '<Dimension start="2"/></UInt64>',
        ),
        "structural parameters have dimensions: `n`",
    ),
    "not clocks": (
        (U + '<Float64 name="x" valueReference="3" variability="discrete" clocks="2"/>',),
        "`clocks` names variables that are not clocks: `x`",
    ),
    "no interval": (
        ('<Clock name="c" valueReference="5" causality="local" intervalVariability="constant"/>',),
        "clocks have no interval: `c`",
    ),
    "range": (
        ('<Float64 name="x" valueReference="3" min="2" max="1"/>',),
        "the smallest value is above the largest: `x`",
    ),
    "nominal": (('<Float64 name="x" valueReference="3" nominal="0"/>',), "the nominal value is 0: `x`"),
}


@pytest.mark.parametrize("kind", MODERN)
def test_rules_of_fmi_3(kind, tmp_path):
    parts, note = MODERN[kind]
    assert note in notes(tmp_path, 3, *parts)


OLD = {
    "lengths": (
        (
            scalar("y", 1, "<Real/>", causality="output") + scalar("u", 2, causality="input"),
            '<Outputs><Unknown index="1" dependencies="2" dependenciesKind="constant fixed"/></Outputs>',
        ),
        "`dependencies` and `dependenciesKind` have different lengths, of: `y`",
    ),
    "causality of outputs": (
        (scalar("u", 2, causality="input"), '<Outputs><Unknown index="1"/></Outputs>'),
        "`ModelStructure` lists as outputs what is not of this causality: `u`",
    ),
    "reinit": (
        (scalar("x", 1, '<Real reinit="true"/>'),),
        "`reinit` is declared of what is not a continuous state: `x`",
    ),
    "own derivative": (
        (scalar("x", 1, '<Real derivative="1"/>'),),
        "variables are declared to be their own derivative: `x`",
    ),
}


@pytest.mark.parametrize("kind", OLD)
def test_rules_of_fmi_2(kind, tmp_path):
    parts, note = OLD[kind]
    assert note in notes(tmp_path, 2, *parts)


@pytest.mark.parametrize("version", [2, 3])
def test_units_that_cannot_be_converted(version, tmp_path):
    """They count by their names alone: nothing is multiplied by 0."""
    more = units(
        '<Unit name="bad"><BaseUnit m="1" factor="0"/></Unit>'
        '<Unit name="good"><BaseUnit m="1" factor="2"/></Unit>'
    )
    xml = written(version, TIME if version == 3 else scalar("p"), more=more)
    found = read_description(folder(tmp_path, xml))
    assert "units with a factor of 0, or none, are not converted: `bad`" in found.problems
    assert (found.units["bad"].exponents, found.units["good"].factor) == ((), 2.0)


def test_an_inverse_display_unit_with_an_offset(tmp_path):
    inverse = '<DisplayUnit name="1/m" inverse="true" offset="1"/>'
    more = units(f'<Unit name="m"><BaseUnit m="1"/>{inverse}</Unit>')
    assert "display units are inverse and have an offset: `m`" in notes(tmp_path, 3, "", more=more)


def test_structured_names(tmp_path):
    good = ("a", "a.b[1].c", "der(a.b)", "der(x,2)", "a[1,2]", "'any thing'.b", "_x9", "previous(x)")
    bad = ("a..b", "9a", "a b", "a[x]", "a.", "der(a")
    rows = "".join(scalar(name, k, "<Real/>") for k, name in enumerate((*good, *bad)))
    xml = written(2, rows).replace('guid="g"', 'guid="g" variableNamingConvention="structured"')
    told = read_description(folder(tmp_path, xml)).problems
    (note,) = [each for each in told if each.startswith("names are not well formed")]
    assert note.endswith(": `a..b`, `9a`, `a b`, `a[x]`, `a.`, `der(a`")


def test_many_that_break_one_rule_are_one_note(tmp_path):
    rows = "".join(f'<Float64 name="x{k}" valueReference="{k}" nominal="0"/>' for k in range(40))
    told = [note for note in notes(tmp_path, 3, rows) if note.startswith("the nominal value is 0")]
    assert told == ["the nominal value is 0: `x0`, `x1`, `x2`, `x3`, `x4`, `x5` and 34 more"]


def test_what_fmpy_tells_is_told_of_large_descriptions_too(tmp_path, monkeypatch):
    rows = (
        scalar("a", 1, '<Real unit="furlong"/>', causality="input")
        + scalar("b", 2, '<Real start="1"/>', causality="output", initial="calculated")
        + scalar(
            "c", 3, '<Real start="1"/>', causality="parameter", variability="continuous", initial="exact"
        )
    )
    monkeypatch.setattr(description, "VALIDATED", 2)
    told = notes(tmp_path, 2, rows)
    for note in (
        "units are used that are not defined, by: `a`",
        "start values are missing that FMI demands: `a`",
        "start values are given of what is calculated: `b`",
        "causality and variability do not go together: `c`",
    ):
        assert note in told


# errors


def refusals(tmp_path, xml):
    with pytest.raises(FileError) as caught:
        read_description(folder(tmp_path, xml), "m.fmu")
    assert all(fault.where.startswith("m.fmu, modelDescription.xml") for fault in caught.value.faults)
    return [fault.what for fault in caught.value.faults]


def test_inputs_that_share_a_value_reference(tmp_path):
    """What is set of one would be overwritten by the other."""
    rows = scalar("a", 4, causality="input") + scalar("b", 4, causality="input")
    assert refusals(tmp_path, written(2, rows)) == ["the inputs `a`, `b` share the value reference 4"]
    whole = scalar("b", 4, '<Integer start="1"/>', causality="input", variability="discrete")
    rows = scalar("a", 4, causality="input") + whole
    assert not notes(tmp_path, 2, rows)  # FMI 2 counts them by type


def test_its_own_derivative_cannot_be_integrated(tmp_path):
    row = '<Float64 name="x" valueReference="3" derivative="3"/>'
    structure = '<ContinuousStateDerivative valueReference="3"/>'
    told = refusals(tmp_path, written(3, TIME + row, structure, ME))
    assert told == ["`x` is declared to be its own derivative"]


def test_a_size_that_is_an_array(tmp_path):
    rows = (
        '<UInt64 name="n" valueReference="3" causality="structuralParameter" variability="fixed" start="1">'
        '<Dimension start="1"/></UInt64>'
        '<Float64 name="x" valueReference="4"><Dimension valueReference="3"/></Float64>'
    )
    assert refusals(tmp_path, written(3, TIME + rows)) == ["`n`, a dimension of `x`, has dimensions itself"]


def test_the_test_fmus_break_no_rule(tmp_path):
    for name in ("lag", "ball", "vanderpol", "types", "sampler", "oscillator"):
        assert name in NAMES
        for version in versions(name):
            file = build(name, version, folder=tmp_path / f"{name}{version}")
            assert Fmu(file).description.problems == (), (name, version)
