"""The XML of a model description: variables as rows of attributes, and what must be there to be of any use.

In:  the XML file
Out: its elements and its rows, or every fault at once
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from hocket.errors import Fault, FileError, Place
from hocket.simulators.fmu.variable_kinds import VariableKind, find_kind
from hocket.simulators.fmu.variables import SIZED

_OLD_TYPES = frozenset({"Real", "Integer", "Boolean", "String", "Enumeration"})
_NEW_TYPES = frozenset({*SIZED, "Boolean", "String", "Enumeration", "Binary", "Clock"})
_STRUCTURE = ("Output", "ContinuousStateDerivative", "ClockedState", "InitialUnknown", "EventIndicator")
_GROUPS = {
    "Outputs": "Output",
    "Derivatives": "ContinuousStateDerivative",
    "InitialUnknowns": "InitialUnknown",
}
"""The groups of `ModelStructure` in FMI 2, and what FMI 3 calls what is in them."""
_AT_ONCE = 12
"""Faults shown of one file."""


_DEPTH = 100
"""Levels of elements: annotations may nest, and what is deeper ends the process that frees it."""


_UNKNOWN = VariableKind("local", "continuous", None)


@dataclass(slots=True)
class VariableRow:
    """A variable as it is written; a million of them are kept at once."""

    tag: str
    """Its type, as FMI writes it; empty: none that FMI 1 or 2 knows."""
    given: dict[str, str]
    """Its attributes; in FMI 1 and 2 those of the element that is its type as well."""
    inside: list[Element] | tuple[()] = ()
    """The other elements in it: dimensions, aliases, start values of texts, direct dependencies."""
    name: str = ""
    reference: int = -1
    """The value reference."""
    kind: VariableKind = _UNKNOWN

    def children(self, tag: str) -> Iterable[Element]:
        """Return the elements of a kind."""
        return [element for element in self.inside if element.tag == tag] if self.inside else ()


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """What a type definition says of all variables of the type."""

    attributes: Mapping[str, str]
    items: tuple[tuple[str, str | None], ...] = ()
    """Of an enumeration: the names, and the numbers that are told."""


@dataclass(frozen=True)
class DescriptionXml:
    """A model description, as it is written."""

    version: str
    """1.0, 2.0 or 3.0."""
    root: Element
    """All but the variables."""
    rows: list[VariableRow]

    @cached_property
    def types(self) -> dict[str, DeclaredType]:
        """The declared types by their names."""
        found: dict[str, DeclaredType] = {}
        for definition in self.root.iterfind("TypeDefinitions/*"):
            element = definition
            if self.version != "3.0":
                element = next(iter(definition), definition)
            items = enumerate(element.iterfind("Item"), 1)
            listed = [
                (item.get("name", ""), str(number) if self.version == "1.0" else item.get("value"))
                for number, item in items
            ]
            found[definition.get("name", "")] = DeclaredType(element.attrib, tuple(listed))
        return found

    def by_number(self, wanted: Iterable[int] | None = None) -> Mapping[int, VariableRow]:
        """Return variables by what others call them: in FMI 3 by value reference, before by index."""
        if self.version != "3.0":
            numbers = range(1, len(self.rows) + 1) if wanted is None else wanted
            return {number: self.rows[number - 1] for number in numbers if 1 <= number <= len(self.rows)}
        chosen = None if wanted is None else set(wanted)
        return {row.reference: row for row in self.rows if chosen is None or row.reference in chosen}

    @cached_property
    def unknowns(self) -> list[tuple[str, Element]]:
        """What `ModelStructure` lists, each with its group, named as in FMI 3."""
        if self.version == "3.0":
            return [(element.tag, element) for element in self.root.iterfind("ModelStructure/*")]
        return [
            (_GROUPS.get(group.tag, group.tag), element)
            for group in self.root.iterfind("ModelStructure/*")
            for element in group.iterfind("Unknown")
        ]


class _Builder:
    """Builds elements, as `ElementTree.TreeBuilder` does, but no deep ones."""

    def __init__(self) -> None:
        self._tree = ElementTree.TreeBuilder()
        self._depth = 0
        self.data = self._tree.data
        self.close = self._tree.close

    def start(self, tag: str, attributes: dict[str, str]) -> Any:
        """Open an element, unless it is in too many others."""
        self._depth += 1
        if self._depth > _DEPTH:
            raise ValueError(f"its elements are more than {_DEPTH} levels deep")
        return self._tree.start(tag, attributes)

    def end(self, tag: str) -> Any:
        """Close an element."""
        self._depth -= 1
        return self._tree.end(tag)

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Refuse it: entities can name other files, and grow without bound."""
        raise ValueError("it has a DOCTYPE, which a model description never has")


class _RowBuilder(_Builder):
    """Builds elements; of variables rows, which take a third of the memory and of the time."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[VariableRow] | None = None
        self._rows: list[VariableRow] | None = None
        """While the variables are read: the same."""
        self._modern = False
        """FMI 3: variables are elements of their types; before, they have one inside."""
        self._typed = False
        """Whether the element that is open is the type of a variable."""

    def start(self, tag: str, attributes: dict[str, str]) -> Any:
        """Open an element, or take down a variable or its type."""
        if self._rows is None:
            opened = super().start(tag, attributes)
            if self._depth == 1:
                self._modern = attributes.get("fmiVersion", "").startswith("3")
            elif self._depth == 2 and tag == "ModelVariables" and self.rows is None:
                self.rows = self._rows = []
            return opened
        depth = self._depth
        if depth == 2:
            self._rows.append(VariableRow(tag if self._modern else "", attributes))
        elif depth == 3 and tag in _OLD_TYPES and not self._rows[-1].tag:
            row = self._rows[-1]
            attributes.update(row.given)
            row.tag, row.given, self._typed = tag, attributes, True
        else:
            return super().start(tag, attributes)
        self._depth = depth + 1
        return None

    def end(self, tag: str) -> Any:
        """Close an element."""
        if self._rows is not None:
            depth = self._depth
            if depth == 3 or (depth == 4 and self._typed):
                self._depth, self._typed = depth - 1, False
                return None
            if depth == 4:
                element, row = super().end(tag), self._rows[-1]
                row.inside = [*row.inside, element]
                return element
            if depth == 2:
                self._rows = None
                variables = super().end(tag)
                variables.clear()  # what is inside is in the rows
                return variables
        return super().end(tag)


def parse_xml(file: Path, where: str) -> Element:
    """Return the root of a file; raises FileError."""
    return _feed(file, where, _Builder())


def _feed(file: Path, where: str, target: _Builder) -> Element:
    inside = f"{where}, {file.name}"
    try:
        return ElementTree.parse(file, ElementTree.XMLParser(target=target)).getroot()
    except ElementTree.ParseError as error:
        line, column = error.position
        what = f"it is not XML: {error.msg.partition(':')[0]}"
        raise FileError(what, Place(file=inside, line=line, detail=f"column {column}")) from None
    except (ValueError, LookupError) as error:
        raise FileError(f"it cannot be read: {error}", inside) from None
    except OSError as error:
        raise FileError(f"it cannot be read: {error.strerror}", inside) from None


def read_essentials(file: Path, where: str) -> DescriptionXml:
    """Return what is written, once it is known that it can be used; raises FileError."""
    inside = f"{where}, {file.name}"
    target = _RowBuilder()
    root = _feed(file, where, target)
    if root.tag != "fmiModelDescription":
        raise FileError(f"its root is `{root.tag}`", inside, "`fmiModelDescription`")
    version = _version(root, inside)
    faults = list(_interface_faults(root, version))
    if target.rows is None:
        faults.append(Fault("it has no `ModelVariables`"))
    elif not faults:
        faults += _variable_faults(target.rows, version)
        # the rest refers to variables: it can only be judged when these are right
        faults += [] if faults else _reference_faults(root, target.rows, version)
    if faults:
        more = [Fault(f"and {len(faults) - _AT_ONCE} faults more", inside)] if len(faults) > _AT_ONCE else []
        raise FileError([*(Fault(f.what, inside, f.expected, f.hint) for f in faults[:_AT_ONCE]), *more])
    return DescriptionXml(version, root, target.rows or [])


def _version(root: Element, inside: str) -> str:
    written = root.get("fmiVersion")
    if written is None:
        raise FileError("it has no `fmiVersion`", inside, "1.0, 2.0 or 3.0")
    if written in ("1.0", "2.0") or re.fullmatch(r"3\.0(\.\d+)?", written):
        return written[:3]
    hint = "a draft of the standard: export the FMU anew" if re.match(r"\d\.\d-", written) else ""
    raise FileError(f"its FMI version is `{written}`", inside, "1.0, 2.0 or 3.0", hint)


def _interface_faults(root: Element, version: str) -> Iterator[Fault]:
    if version == "1.0":
        exchange = root.find("Implementation") is None
        for name in ("numberOfContinuousStates", "numberOfEventIndicators") if exchange else ():
            told = root.get(name)
            if told is None or not told.strip().isdecimal():
                what = f"it has no `{name}`" if told is None else f"`{name}` is `{told}`"
                yield Fault(what, "", "a whole number, for model exchange")
        yield from _identifier_faults(root, "it")
        return
    known = ("CoSimulation", "ModelExchange", "ScheduledExecution")
    interfaces = [root.find(name) for name in (known if version == "3.0" else known[:2])]
    if not any(element is not None for element in interfaces):
        yield Fault("it has no interface", "", "`CoSimulation` or `ModelExchange`")
    for element in interfaces:
        if element is not None:
            yield from _identifier_faults(element, f"`{element.tag}`")


def _identifier_faults(element: Element, owner: str) -> Iterator[Fault]:
    identifier = element.get("modelIdentifier")
    if not identifier:
        yield Fault(f"{owner} has no `modelIdentifier`", "", "the name of the binary")
    elif re.search(r"[/\\:\0]|^\.", identifier):
        yield Fault(f"the modelIdentifier is `{identifier}`", "", "the name of a file, without folders")


def _variable_faults(rows: list[VariableRow], version: str) -> Iterator[Fault]:
    """Yield what is wrong with single variables; give those that are right their names and references."""
    names: dict[str, int] = {}
    types = _NEW_TYPES if version == "3.0" else _OLD_TYPES
    for number, row in enumerate(rows, 1):
        given = row.given
        name = given.get("name")
        if name is None:
            yield Fault(f"variable {number} has no name")
            continue
        row.name = name
        if row.inside or name in names:
            yield from _name_faults(rows, row, number, names)
        else:
            names[name] = number
        reference = given.get("valueReference")
        if reference is None:
            yield Fault(f"`{name}` has no value reference")
        elif not 0 <= (value := parse_reference(reference)) < 2**32:
            yield Fault(f"`{name}` has the value reference `{reference}`", "", "a number of 32 bits")
        else:
            row.reference = value
        told = given.get("causality"), given.get("variability"), given.get("initial")
        row.kind = find_kind(version, row.tag, *told)
        if row.tag not in types:
            if version == "3.0":
                yield Fault(f"`{name}` is of type `{row.tag}`, which FMI 3 does not know")
            else:
                yield Fault(f"`{name}` has no type", "", ", ".join(sorted(_OLD_TYPES)))


def _name_faults(
    rows: list[VariableRow], row: VariableRow, number: int, names: dict[str, int]
) -> Iterator[Fault]:
    for known in (row.name, *(alias.get("name") for alias in row.children("Alias"))):
        if known is None:
            yield Fault(f"an alias of `{row.name}` has no name")
        elif known not in names:
            names[known] = number
        elif not (_internal(row) and _internal(rows[names[known] - 1])):
            yield Fault(f"variables {names[known]} and {number} are both named `{known}`")


def _internal(row: VariableRow) -> bool:
    """Return whether a variable need not be known outside: two of one name then do no harm."""
    inner = row.given.get("causality", "local") in ("local", "internal", "none")
    return inner and row.given.get("variability") != "parameter"


_REFERRING = frozenset({"derivative", "previous", "clocks"})
"""The attributes of a variable that name others."""


def _reference_faults(root: Element, rows: list[VariableRow], version: str) -> Iterator[Fault]:
    """Yield what refers to variables that do not exist: by index in FMI 2, by value reference in FMI 3."""
    if version == "2.0":
        known: range | set[int] = range(1, len(rows) + 1)
        unknowns: Iterable[Element] = root.findall("ModelStructure/*/Unknown")
        attribute, word = "index", "index"
    elif version == "3.0":
        known = {row.reference for row in rows}
        unknowns = [element for tag in _STRUCTURE for element in root.findall(f"ModelStructure/{tag}")]
        attribute, word = "valueReference", "value reference"
        yield from _dimension_faults(rows)
    else:
        return

    def stranger_faults(owner: str, numbers: str) -> Iterator[Fault]:
        for number in numbers.split():
            if parse_reference(number) not in known:
                yield Fault(f"{owner} names the {word} {number}, which no variable has")

    for unknown in unknowns:
        owner, own = f"`{unknown.tag}` in `ModelStructure`", unknown.get(attribute)
        if own is None:
            yield Fault(f"{owner} has no `{attribute}`")
        yield from stranger_faults(owner, f"{own or ''} {unknown.get('dependencies', '')}")
    for row in rows:
        if not _REFERRING.isdisjoint(row.given) and (version == "3.0" or row.tag == "Real"):
            for role in ("derivative", "previous", "clocks"):
                yield from stranger_faults(f"`{role}` of `{row.name}`", row.given.get(role, ""))


def _dimension_faults(rows: list[VariableRow]) -> Iterator[Fault]:
    sized = [(row, dimension) for row in rows if row.inside for dimension in row.children("Dimension")]
    wanted = {parse_reference(dimension.get("valueReference")) for _, dimension in sized}
    by_reference = {row.reference: row for row in rows if row.reference in wanted} if sized else {}
    for row, dimension in sized:
        fixed = dimension.get("start")
        if fixed is not None:
            if not fixed.isdecimal():
                yield Fault(f"a dimension of `{row.name}` is `{fixed}`", "", "a whole number")
            continue
        size = by_reference.get(parse_reference(dimension.get("valueReference")))
        if size is None:
            yield Fault(f"a dimension of `{row.name}` names no variable that exists")
            continue
        declared = size.given.get("causality"), size.given.get("variability")
        if declared[0] != "structuralParameter" and declared[1] != "constant":
            yield Fault(f"`{size.name}`, a dimension of `{row.name}`, is not a structural parameter")
        elif not size.given.get("start", "").strip().isdecimal():
            yield Fault(f"`{size.name}`, a dimension of `{row.name}`, has no start value")


def parse_reference(text: str | None) -> int:
    """Return an index or a value reference; -1: it is none."""
    if text is None or len(text) > _DIGITS or not text.strip().isdecimal():
        return -1
    return int(text)


_DIGITS = 40
"""Characters of a number, blanks among them: what is longer is none that could be meant."""
