"""What is wrong with an SSP is told in words, with file and line, and all of it at once."""

import copy
import zipfile
from xml.etree import ElementTree

import pytest

from files.test_ssp import (
    COUPLED,
    GAINS,
    MASSES,
    NAMESPACES,
    UNITS,
    archive,
    binding,
    bus,
    component,
    connection,
    connector,
    dictionary,
    entries,
    entry,
    fmu,
    inline,
    level,
    parameter,
    sized,
    ssd,
    system,
    united,
)
from files.test_ssp_parameters import line, mapped
from hocket.errors import FileError, HocketError
from hocket.files.ssp import read_ssp

pytestmark = pytest.mark.usefixtures("fresh_cache")


GAIN = {"resources/gain.fmu": fmu("gain")}
TYPES = {"resources/types.fmu": fmu("types")}
TWO = component("a", "resources/types.fmu") + component("b", "resources/types.fmu")
SSD = "demo.ssp: SystemStructure.ssd"


def told(path, text, files=None):
    with pytest.raises(FileError) as caught:
        read_ssp(archive(path, text, files))
    return str(caught.value)


def test_everything_is_told_at_once(tmp_path):
    links = [
        connection("left.force", "right.force"),
        connection("third.force", "right.force"),
        connection("lefft.force", "right.force"),
        connection("left.forse", "right.force"),
        connection("left.force", "right.x"),
        connection("fourth.y", "left.x"),
    ]
    elements = [
        component("left", "resources/first.fmu"),
        component("right", "resources/second.fmu"),
        component("third", "resources/first.fmu"),
        component("fourth", "resources/frist.fmu"),
        component("fifth", "brake.mo", type="text/x-modelica"),
        '<ssd:Component name="sixth"/>',
    ]
    text = ssd(system("\n".join(elements), "\n".join(links), before=binding(source="resources/p.ssv")))
    assert told(tmp_path, text) == (
        "8 faults:\n"
        "1. there is no file `resources/p.ssv`\n"
        f"     where:    {SSD}, line 3\n"
        "2. there is no file `resources/frist.fmu`\n"
        f"     where:    {SSD}, line 6\n"
        "     try:      did you mean `resources/first.fmu`?\n"
        "3. `fifth` is a component of the type `text/x-modelica`\n"
        f"     where:    {SSD}, line 7\n"
        "     expected: an FMU, an SSP or an SSD\n"
        "4. the component `sixth` has no source: there is nothing to run\n"
        f"     where:    {SSD}, line 8\n"
        "     expected: an FMU\n"
        "5. `right.force` has two sources, `left.force` and `third.force`\n"
        f"     where:    {SSD}, line 9\n"
        "     expected: one source per input\n"
        "6. there is no element `lefft` in `root`\n"
        f"     where:    {SSD}, line 10\n"
        "     try:      did you mean `left`?\n"
        "7. the FMU of `left` has no variable `forse`\n"
        f"     where:    {SSD}, line 11\n"
        "     try:      did you mean `force`?\n"
        "8. `left.force` and `right.x` are connected, and both are outputs\n"
        f"     where:    {SSD}, line 12\n"
        "     expected: an output and an input"
    )


CASES = {
    "not XML": (
        ssd(system(MASSES) + "\n<oops>"),
        None,
        f"`SystemStructure.ssd` is not well-formed XML: mismatched tag\n  where:    {SSD}, line 5",
    ),
    "an entity": (
        '<!DOCTYPE a [<!ENTITY b "c">]>\n<a/>',
        None,
        "`SystemStructure.ssd` is not well-formed XML: it has a document type, which SSP files do not have\n"
        f"  where:    {SSD}, line 1",
    ),
    "an encoding of several bytes": (
        ssd(system(MASSES)).replace("?>", ' encoding="gb2312"?>', 1),
        None,
        "`SystemStructure.ssd` cannot be read: multi-byte encodings are not supported\n"
        f"  where:    {SSD}\n  expected: an encoding such as UTF-8",
    ),
    "an unknown encoding": (
        ssd(system(MASSES)).replace("?>", ' encoding="utf-99"?>', 1),
        None,
        "`SystemStructure.ssd` cannot be read: unknown encoding: utf-99\n"
        f"  where:    {SSD}\n  expected: an encoding such as UTF-8",
    ),
    "something else": (
        "<a/>",
        None,
        f"`SystemStructure.ssd` holds a <a>\n  where:    {SSD}, line 1\n"
        "  expected: a <SystemStructureDescription>",
    ),
    "an unknown version": (
        ssd(system(MASSES), version="3.0"),
        None,
        f'the version is `3.0`\n  where:    {SSD}, line 2\n  expected: "1.0" or "2.0"',
    ),
    "nothing in it": (
        ssd(""),
        None,
        f"there is nothing in the system `root`\n  where:    {SSD}, line 2\n  expected: an FMU",
    ),
    "no system": (
        f'<ssd:SystemStructureDescription {NAMESPACES} version="1.0" name="x"/>',
        None,
        f"there is no <System> in it\n  where:    {SSD}, line 1\n  expected: the outermost system",
    ),
    "out of the archive": (
        ssd(system(component("a", "../other.fmu"))),
        None,
        f"`../other.fmu` leads out of the archive\n  where:    {SSD}, line 3\n  expected: a path inside\n"
        "  try:      unpack the archive and open its folder, if you trust it",
    ),
    "somewhere else": (
        ssd(system(component("a", "https://example.org/x.fmu"))),
        None,
        "`https://example.org/x.fmu` is not a file: hocket does not fetch `https:`\n"
        f"  where:    {SSD}, line 3\n  expected: a path",
    ),
    "a path with a zero byte": (
        ssd(system(component("a", "a%00.fmu"))),
        None,
        f"`a%00.fmu` is not a path: embedded null byte\n  where:    {SSD}, line 3\n  expected: a path",
    ),
    "a path that is too long": (
        ssd(system(component("a", f"{'a' * 300}.fmu"))),
        None,
        f"`{'a' * 300}.fmu` is not a path: File name too long\n  where:    {SSD}, line 3\n  expected: a path",
    ),
    "a file with stars": (
        ssd(system(component("a", "a.f**"))),
        None,
        f"there is no file `a.f**`\n  where:    {SSD}, line 3",
    ),
    "a damaged FMU": (
        ssd(system(component("a", "resources/gain.fmu"))),
        {"resources/gain.fmu": b"PK and no more"},
        f"`a`: the archive is damaged: File is not a zip file\n  where:    {SSD}, line 3\n"
        "  expected: a whole zip archive\n  try:      copy or export the file again",
    ),
    "scheduled execution": (
        ssd(system(component("a", "resources/gain.fmu", implementation="ScheduledExecution"))),
        GAIN,
        f"`a` is to be run by `ScheduledExecution`\n  where:    {SSD}, line 3\n"
        "  expected: CoSimulation or ModelExchange",
    ),
    "a file that holds itself": (
        ssd(system(component("a", "SystemStructure.ssd"))),
        {},
        f"`SystemStructure.ssd` holds itself\n  where:    {SSD}, line 3\n"
        "  expected: files that do not hold themselves",
    ),
    "one name twice": (
        ssd(system(component("a", "resources/gain.fmu") * 2)),
        GAIN,
        f"two elements are named `a`\n  where:    {SSD}, line 3\n"
        "  expected: a name for each element of a system",
    ),
    "another kind than the FMU has": (
        ssd(
            system(
                component(
                    "left",
                    "resources/first.fmu",
                    f"<ssd:Connectors>{connector('force', 'input')}</ssd:Connectors>",
                )
                + component("right", "resources/second.fmu"),
                COUPLED,
            )
        ),
        None,
        f"`left.force` is called an input, and in the FMU it is an output\n  where:    {SSD}, line 3",
    ),
    "inputs": (
        ssd(system(MASSES, connection("left.x", "right.force"))),
        None,
        f"`left.x` and `right.force` are connected, and both are inputs\n  where:    {SSD}, line 3\n"
        "  expected: an output and an input",
    ),
    "a connector the system has not": (
        ssd(system(GAINS, connection("in", "a.u"), connector("inn", "input"))),
        GAIN,
        f"the system `root` has no connector `in`\n  where:    {SSD}, line 3\n"
        "  try:      did you mean `inn`?",
    ),
    "an unknown kind": (
        ssd(system(GAINS, "", connector("u", "inptu"))),
        GAIN,
        f"the connector `u` is of the kind `inptu`\n  where:    {SSD}, line 3\n"
        "  expected: input, output, inout, unspecified, local, constant, parameter, calculatedParameter, "
        "structuralParameter",
    ),
    "a clock": (
        ssd(system(GAINS, "", connector("tick", "input", "<ssc:Clock/>")), version="2.0"),
        GAIN,
        f"the connector `tick` is a clock or has one, which hocket does not tick\n  where:    {SSD}, line 3",
    ),
    "a text": (
        ssd(system(TWO, connection("a.y_string", "b.u_real"))),
        TYPES,
        f"`a.y_string` (string) is connected to `b.u_real` (real)\n  where:    {SSD}, line 3\n"
        "  expected: texts of one type",
    ),
    "a text through a system": (
        ssd(system(TWO, connection("a.y_string", "y"), connector("y", "output", "<ssc:String/>"))),
        TYPES,
        "`a.y_string` is a string, which is not passed on from system to system\n"
        f"  where:    {SSD}, line 3\n  expected: two FMUs of one system",
    ),
    "a text with a factor": (
        ssd(system(TWO, connection("a.y_string", "b.u_string", '<ssc:LinearTransformation factor="2"/>'))),
        TYPES,
        f"`a.y_string` is a string, which cannot be transformed\n  where:    {SSD}, line 3\n"
        "  expected: a connection without a transformation",
    ),
    "two sources of a text": (
        ssd(system(TWO, connection("a.y_string", "b.u_string") + connection("b.y_string", "b.u_string"))),
        TYPES,
        f"`b.u_string` has two sources, `a.y_string` and `b.y_string`\n  where:    {SSD}, line 3\n"
        "  expected: one source per input",
    ),
    "a parameter that an output drives": (
        ssd(system(GAINS, connection("a.y", "b.k"))),
        GAIN,
        "the parameter `b.k` is connected to `a.y`, which is known during the run only\n"
        f"  where:    {SSD}, line 3\n  expected: an input, or a parameter of the system as its source",
    ),
    "units": (
        ssd(system(united("kg", "m"), connection("a.y", "b.u"))),
        GAIN,
        "`a.y` to `b.u`: `kg` cannot be converted to `m`: [mass] against [length]\n"
        f"  where:    {SSD}, line 3\n  expected: units that convert\n"
        '  try:      suppressUnitConversion="true", if the numbers are meant as they are',
    ),
    "a table of unknown items": (
        ssd(system(TWO, connection("a.y_enum", "b.u_enum", entries("Enumeration", ("off", "hihg"))))),
        TYPES,
        "`a.y_enum` to `b.u_enum`: there is no item `hihg`; did you mean `high`?\n"
        f"  where:    {SSD}, line 3\n  expected: items of both enumerations",
    ),
    "as many values": (
        ssd(
            system(
                component("a", "resources/arrays.fmu") + component("b", "resources/gain.fmu"),
                connection("a.y", "b.u"),
            ),
            version="2.0",
        ),
        {"resources/arrays.fmu": fmu("arrays", 3), **GAIN},
        f"`a.y` and `b.u` are connected: 3 to 1 values\n  where:    {SSD}, line 3\n"
        "  expected: as many on both sides",
    ),
    "an element of an array": (
        ssd(
            system(
                component("a", "resources/arrays.fmu") + component("b", "resources/gain.fmu"),
                connection("a.y", "b.u", startIndices="4"),
            ),
            version="2.0",
        ),
        {"resources/arrays.fmu": fmu("arrays", 3), **GAIN},
        f"there is no `a.y[4]` in an array of 3\n  where:    {SSD}, line 3\n  expected: indices from 1",
    ),
    "too many values": (
        ssd(
            system(GAINS, connection("w", "a.u", startIndices="1"), sized("w", "input", 2000000)),
            version="2.0",
        ),
        GAIN,
        f"`w` has 2000000 values\n  where:    {SSD}, line 3\n  expected: at most 1000000",
    ),
    "too many values inside": (
        ssd(
            system(
                GAINS
                + system(component("g", "resources/gain.fmu"), "", sized("w", "output", 2000000), name="in"),
                connection("in.w", "a.u", startIndices="1"),
            ),
            version="2.0",
        ),
        GAIN,
        f"`w` has 2000000 values\n  where:    {SSD}, line 3\n  expected: at most 1000000",
    ),
    "an element of nothing": (
        ssd(system(GAINS, connection("w", "a.u", startIndices="1"), sized("w", "input", 0)), version="2.0"),
        GAIN,
        f"there is no `w[1]` in an array of 0\n  where:    {SSD}, line 3\n  expected: indices from 1",
    ),
    "a size that is no number": (
        ssd(system(GAINS, "", sized("w", "input", "\u00b2")), version="2.0"),
        GAIN,
        f"nothing says how many values the connector `w` has\n  where:    {SSD}, line 3\n"
        '  expected: such as <Dimension size="3"/>',
    ),
    "a table and a factor through a dictionary": (
        ssd(
            system(
                TWO + bus("n", "state"),
                connection("a.y_int", "n.state", entries("Integer", (1, 3)))
                + connection("n.state", "b.u_int", '<ssc:LinearTransformation factor="2"/>'),
                after=dictionary(entry("state", "<ssc:Integer/>")),
            )
        ),
        TYPES,
        "`a.y_int` to `b.u_int`: a table of values, and a factor or a conversion of units\n"
        f"  where:    {SSD}, line 3\n  expected: one of them",
    ),
    "two tables through a dictionary": (
        ssd(
            system(
                TWO + bus("n", "state"),
                connection("a.y_int", "n.state", entries("Integer", (1, 3)))
                + connection("n.state", "b.u_int", entries("Integer", (3, 1))),
                after=dictionary(entry("state", "<ssc:Integer/>")),
            )
        ),
        TYPES,
        "`a.y_int` to `b.u_int`: two tables of values in a row\n"
        f"  where:    {SSD}, line 3\n  expected: one of them",
    ),
    "a set that is not XML": (
        ssd(system(GAINS, before=binding(source="resources/p.ssv"))),
        {**GAIN, "resources/p.ssv": "<ParameterSet>\n<Parameters>\n</ParameterSet>"},
        "`p.ssv` is not well-formed XML: mismatched tag\n  where:    demo.ssp: resources/p.ssv, line 3",
    ),
    "a binding without anything": (
        ssd(system(GAINS, before=binding())),
        GAIN,
        f"a <ParameterBinding> without a source and without content\n  where:    {SSD}, line 3\n"
        "  expected: a <ParameterSet>",
    ),
    "a value that is no number": (
        ssd(system(GAINS, before=binding(inline(parameter("a.k", "big"))))),
        GAIN,
        f"`a.k` is `big`\n  where:    {SSD}, line 3\n  expected: a number",
    ),
    "a value that the FMU refuses": (
        ssd(system(GAINS, before=binding(inline(parameter("a.k", 1000))))),
        GAIN,
        f"`a`: `k` is 1000.0\n  where:    {SSD}, line 3\n  expected: at most 100.0",
    ),
    "a dictionary that nobody writes": (
        ssd(
            system(GAINS + bus("n", "speed"), connection("n.speed", "b.u"), after=dictionary(entry("speed")))
        ),
        GAIN,
        f"nothing is written to `speed` of the signal dictionary `can`\n  where:    {SSD}, line 3\n"
        "  expected: one source",
    ),
    "an output of nothing": (
        ssd(
            system(
                GAINS + system(component("g", "resources/gain.fmu"), "", connector("y", "output"), name="in"),
                connection("in.y", "a.u"),
            )
        ),
        GAIN,
        f"`in.y` is an output that nothing drives inside\n  where:    {SSD}, line 3\n"
        "  expected: a connection to it",
    ),
    "an annotation": (
        ssd(system(GAINS, after=level('step = "10 m"\norchestrator = "jacob"'))),
        GAIN,
        '2 faults:\n1. `step` is the text "10 m"\n'
        f"     where:    {SSD}, line 3\n"
        '     expected: a duration such as "2.5 ms", "1/3 s" or 0.01\n'
        f"2. there is no orchestrator `jacob`\n     where:    {SSD}, line 4\n"
        "     try:      did you mean `jacobi`?",
    ),
    "an order": (
        ssd(system(GAINS, after=level('orchestrator = { type = "gauss-seidel", order = ["a"] }'))),
        GAIN,
        f"the order leaves out `b`\n  where:    {SSD}, order",
    ),
    "times": (
        ssd(system(GAINS), '<ssd:DefaultExperiment startTime="2" stopTime="1"/>'),
        GAIN,
        f"the run stops at 1 s and starts at 2 s\n  where:    {SSD}, line 4\n"
        "  expected: a stop after the start",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_told_with_its_line(tmp_path, case):
    text, files, message = CASES[case]
    assert told(tmp_path, text, files) == message


def test_archives_that_are_none(tmp_path):
    path = tmp_path / "x.ssp"
    with pytest.raises(FileError, match="there is no file `"):
        read_ssp(path)
    path.write_bytes(b"text")
    with pytest.raises(FileError, match=r"the file is not a zip archive(.|\n)*as every .ssp is"):
        read_ssp(path)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("inner/SystemStructure.ssd", "")
    with pytest.raises(FileError, match="zip what is in that folder, not the folder"):
        read_ssp(path)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("SystemStructure.ssd", ssd(""))
        made.writestr("../evil", "")
    with pytest.raises(FileError, match=r"the archive holds `\.\./evil`, which leads out of its folder"):
        read_ssp(path)


def rich():
    """A description with something of everything."""
    mass = component(
        "mass",
        "resources/second.fmu",
        binding(inline(parameter("m", 3, unit="kg")), mapped(line("m", "m"))),
    )
    ports = connector("force", "input", '<ssc:Real unit="kN"/>') + connector("x", "output")
    ports += connector("p", "parameter") + sized("w", "input", 3)
    links = connection("force", "mass.force") + connection("mass.x", "x") + connection("p", "mass.c")
    inner = system(mass, links, ports, name="right", after=level('step = "5 ms"'))
    links = connection("left.force", "right.force") + connection("right.x", "left.x")
    links += connection("t.y_enum", "t.u_enum", entries("Enumeration", ("off", "high")))
    links += connection("right.x", "near.x") + connection("near.x", "t.u_real")
    elements = component("left", "resources/first.fmu") + inner + component("t", "resources/types.fmu")
    after = dictionary(entry("x")) + level('step = "10 ms"')
    before = binding(inline(parameter("p", 3)), prefix="right.")
    inside = system(elements + bus("near", "x"), links, before=before, after=after)
    return ssd(inside, UNITS + '<ssd:DefaultExperiment startTime="0" stopTime="1"/>', version="2.0")


def test_no_damage_does_harm(tmp_path):
    """Elements taken away or doubled, attributes taken away or spoilt: an experiment or faults only."""
    (tmp_path / "resources").mkdir()
    for name in ("first", "second", "types"):
        (tmp_path / "resources" / f"{name}.fmu").write_bytes(fmu(name))
    file = tmp_path / "SystemStructure.ssd"
    whole = ElementTree.fromstring(rich())

    def opens(root):
        file.write_bytes(ElementTree.tostring(root))
        try:
            return bool(read_ssp(file))
        except HocketError:
            return False

    assert opens(whole)
    results = []
    for number, element in enumerate(whole.iter()):
        for spoilt in (None, "", "1e400"):
            for name in element.attrib:
                root = copy.deepcopy(whole)
                attributes = list(root.iter())[number].attrib
                attributes.update({name: spoilt} if spoilt is not None else {})
                _ = attributes.pop(name) if spoilt is None else None
                results.append(opens(root))
        for parent_number, parent in enumerate(whole.iter()):
            if element in parent:
                root = copy.deepcopy(whole)
                nodes = list(root.iter())
                nodes[parent_number].remove(nodes[number])
                results.append(opens(root))
                nodes[parent_number].extend([nodes[number], copy.deepcopy(nodes[number])])
                results.append(opens(root))
    assert len(results) >= 400
    assert 0 < sum(results) < len(results)


def test_many_notes_of_one_kind_are_one(tmp_path):
    elements = "".join(component(f"g{k}", "resources/first.fmu") for k in range(40))
    notes = read_ssp(archive(tmp_path, ssd(system(elements)))).notes
    told = [note for note in notes if "cannot be run here" in note]
    assert len(told) == 1
    assert told[0].endswith("(the same of 39 more: `g1`, `g2`, `g3` and 36 more)")
