"""The terminals of an FMU: `terminalsAndIcons.xml` becomes members with the ports of their variables.

In:  the unpacked folder of an FMU, and its ports
Out: Terminals; what cannot be used is left out, with the reason
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from hocket.errors import ScenarioError, list_names
from hocket.model.terminals import Terminal, TerminalMember, twice_named
from hocket.simulators.fmu.description_xml import parse_xml
from hocket.simulators.fmu.ports import PortLayout
from hocket.simulators.fmu.variables import Description

FILE = Path("terminalsAndIcons", "terminalsAndIcons.xml")


class TerminalTable(NamedTuple):
    """The terminals of an FMU, and why some are left out."""

    terminals: tuple[Terminal, ...] = ()
    problems: tuple[str, ...] = ()


def has_terminal_file(folder: Path) -> bool:
    """Return whether an FMU has a file of terminals; it may hold icons only."""
    return (folder / FILE).is_file()


def read_terminals(folder: Path, description: Description, layout: PortLayout, where: str) -> TerminalTable:
    """Return the terminals of an FMU whose names are not those of ports."""
    try:
        root = parse_xml(folder / FILE, where)
    except ScenarioError as error:
        return TerminalTable(problems=(f"its terminals cannot be read: {error.faults[0].what}",))
    reader = _TerminalReader(description, layout)
    found = [reader.read(element, "") for element in root.iterfind("Terminals/Terminal")]
    names = [each.name for each in found if each is not None]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        reader.problems.append(f"two of its terminals are named {list_names(twice, 4)}: they are left out")
    kept = [each for each in found if each is not None and each.name not in twice]
    return TerminalTable(tuple(kept), tuple(reader.problems))


class _TerminalReader:
    def __init__(self, description: Description, layout: PortLayout):
        self.known = description.by_name
        self.inputs, self.outputs = _ports_by_variable(layout)
        self.names = {port.name for port in (*layout.inputs, *layout.outputs)}
        self.names |= {each.name for each in (*layout.text_inputs, *layout.text_outputs)}
        self.problems: list[str] = []

    def read(self, element: Element, around: str) -> Terminal | None:
        """Return a terminal with those inside it; None, with the reason: it cannot be used."""
        name = f"{around}{element.get('name', '')}"
        variables = [each.get("variableName", "") for each in element.iterfind("TerminalMemberVariable")]
        unknown = [each for each in variables if each not in self.known]
        members = tuple(
            self._member(each, number)
            for number, each in enumerate(element.iterfind("TerminalMemberVariable"))
        )
        twice = twice_named(members)
        reason = (
            "a port has its name"
            if name in self.names
            else "it has no name"
            if not element.get("name")
            else f"it names {list_names(unknown, 4)}, which the model description does not have"
            if unknown
            else f"two members are named {list_names(twice, 4)}"
            if twice
            else ""
        )
        if reason:
            self.problems.append(f"its terminal `{name}` is left out: {reason}")
            return None
        inside = (self.read(each, f"{name}.") for each in element.iterfind("Terminal"))
        return Terminal(
            name,
            element.get("matchingRule", ""),
            element.get("terminalKind", ""),
            members,
            tuple(each for each in inside if each is not None),
            streams=element.find("TerminalStreamMemberVariable") is not None,
        )

    def _member(self, element: Element, number: int) -> TerminalMember:
        variable = element.get("variableName", "")
        return TerminalMember(
            element.get("memberName", f"#{number}"),  # a sequence needs no names
            variable,
            self.inputs.get(variable, ()),
            self.outputs.get(variable, ()),
            element.get("variableKind", "signal"),
        )


def _ports_by_variable(layout: PortLayout) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    """Return the names of the input and output ports of each variable, texts and clocks included."""
    found: list[dict[str, tuple[str, ...]]] = []
    for ports, ranges, others in (
        (layout.inputs, layout.input_ranges, (*layout.text_inputs, *layout.triggers)),
        (layout.outputs, layout.output_ranges, (*layout.text_outputs, *layout.clock_outputs)),
    ):
        side = {variable.name: tuple(ports[place].name for place in places) for variable, places in ranges}
        side |= {variable.name: (variable.name,) for variable in others}
        found.append(side)
    return tuple(found)
