"""What a model description must hold to be of any use; FMPy, which reads the rest, trips without it.

In:  the XML file
Out: its root element, or every fault at once
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from hocket.errors import Fault, FileError, Place
from hocket.simulators.fmu.description_rules import ALLOWED
from hocket.simulators.fmu.variables import SIZED

_OLD_TYPES = {"Real", "Integer", "Boolean", "String", "Enumeration"}
_NEW_TYPES = {*SIZED, "Boolean", "String", "Enumeration", "Binary", "Clock"}
_STRUCTURE = ("Output", "ContinuousStateDerivative", "ClockedState", "InitialUnknown", "EventIndicator")
_AT_ONCE = 12
"""Faults shown of one file."""


_DEPTH = 100
"""Levels of elements: annotations may nest, and what is deeper ends the process that frees it."""


class _Builder(ElementTree.TreeBuilder):
    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def start(self, tag: str, attributes: dict[Any, Any], /) -> Element:
        """Open an element, unless it is in too many others."""
        self._depth += 1
        if self._depth > _DEPTH:
            raise ValueError(f"its elements are more than {_DEPTH} levels deep")
        return super().start(tag, attributes)

    def end(self, tag: str, /) -> Element:
        """Close an element."""
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Refuse it: entities can name other files, and grow without bound."""
        raise ValueError("it has a DOCTYPE, which a model description never has")


def parse_xml(file: Path, where: str) -> Element:
    """Return the root of a file; raises FileError."""
    inside = f"{where}, {file.name}"
    try:
        return ElementTree.parse(file, ElementTree.XMLParser(target=_Builder())).getroot()
    except ElementTree.ParseError as error:
        line, column = error.position
        what = f"it is not XML: {error.msg.partition(':')[0]}"
        raise FileError(what, Place(file=inside, line=line, detail=f"column {column}")) from None
    except (ValueError, LookupError) as error:
        raise FileError(f"it cannot be read: {error}", inside) from None
    except OSError as error:
        raise FileError(f"it cannot be read: {error.strerror}", inside) from None


def read_essentials(file: Path, where: str) -> tuple[str, Element]:
    """Return the FMI version (1.0, 2.0 or 3.0) and the root; raises FileError."""
    inside = f"{where}, {file.name}"
    root = parse_xml(file, where)
    if root.tag != "fmiModelDescription":
        raise FileError(f"its root is `{root.tag}`", inside, "`fmiModelDescription`")
    version = _version(root, inside)
    faults = list(_interface_faults(root, version))
    variables = root.find("ModelVariables")
    if variables is None:
        faults.append(Fault("it has no `ModelVariables`"))
    elif not faults:
        faults += _variable_faults(list(variables), version)
        # the rest refers to variables: it can only be judged when these are right
        faults += [] if faults else _reference_faults(root, list(variables), version)
    if faults:
        more = [Fault(f"and {len(faults) - _AT_ONCE} faults more", inside)] if len(faults) > _AT_ONCE else []
        raise FileError([*(Fault(f.what, inside, f.expected, f.hint) for f in faults[:_AT_ONCE]), *more])
    return version, root


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


def _variable_faults(variables: list[Element], version: str) -> Iterator[Fault]:
    names: dict[str, int] = {}
    for number, variable in enumerate(variables, 1):
        name = variable.get("name")
        if name is None:
            yield Fault(f"variable {number} has no name")
            continue
        for known in (name, *(alias.get("name") for alias in variable.findall("Alias"))):
            if known is None:
                yield Fault(f"an alias of `{name}` has no name")
            elif known not in names:
                names[known] = number
            elif not (_internal(variable) and _internal(variables[names[known] - 1])):
                yield Fault(f"variables {names[known]} and {number} are both named `{known}`")
        reference = variable.get("valueReference")
        if reference is None:
            yield Fault(f"`{name}` has no value reference")
        elif not reference.strip().isdecimal() or int(reference) >= 2**32:
            yield Fault(f"`{name}` has the value reference `{reference}`", "", "a number of 32 bits")
        if version == "3.0" and variable.tag not in _NEW_TYPES:
            yield Fault(f"`{name}` is of type `{variable.tag}`, which FMI 3 does not know")
        if version != "3.0" and not any(child.tag in _OLD_TYPES for child in variable):
            yield Fault(f"`{name}` has no type", "", ", ".join(sorted(_OLD_TYPES)))


def _internal(variable: Element) -> bool:
    """Return whether a variable need not be known outside: two of one name then do no harm."""
    inner = variable.get("causality", "local") in ("local", "internal", "none")
    return inner and variable.get("variability") != "parameter"


def _reference_faults(root: Element, variables: list[Element], version: str) -> Iterator[Fault]:
    """Yield what refers to variables that do not exist: by index in FMI 2, by value reference in FMI 3."""
    if version == "2.0":
        known = {str(index) for index in range(1, len(variables) + 1)}
        unknowns: Iterable[Element] = root.findall("ModelStructure/*/Unknown")
        attribute, word = "index", "index"
        holders = [(variable, variable.find("Real")) for variable in variables]
    elif version == "3.0":
        known = {str(int(variable.get("valueReference", ""))) for variable in variables}
        unknowns = [element for tag in _STRUCTURE for element in root.findall(f"ModelStructure/{tag}")]
        attribute, word = "valueReference", "value reference"
        holders = [(variable, variable) for variable in variables]
        yield from _dimension_faults(variables)
    else:
        return

    def stranger_faults(owner: str, numbers: str) -> Iterator[Fault]:
        for number in numbers.split():
            if _normalise_reference(number) not in known:
                yield Fault(f"{owner} names the {word} {number}, which no variable has")

    for unknown in unknowns:
        owner, own = f"`{unknown.tag}` in `ModelStructure`", unknown.get(attribute)
        if own is None:
            yield Fault(f"{owner} has no `{attribute}`")
        yield from stranger_faults(owner, f"{own or ''} {unknown.get('dependencies', '')}")
    for variable, holder in holders:
        told = {} if holder is None else holder.attrib
        for role in ("derivative", "previous", "clocks"):
            yield from stranger_faults(f"`{role}` of `{variable.get('name')}`", told.get(role, ""))


def _dimension_faults(variables: list[Element]) -> Iterator[Fault]:
    by_reference = {str(int(variable.get("valueReference", ""))): variable for variable in variables}
    for variable in variables:
        for dimension in variable.findall("Dimension"):
            name, fixed = variable.get("name"), dimension.get("start")
            if fixed is not None:
                if not fixed.isdecimal():
                    yield Fault(f"a dimension of `{name}` is `{fixed}`", "", "a whole number")
                continue
            size = by_reference.get(_normalise_reference(dimension.get("valueReference", "none")))
            if size is None:
                yield Fault(f"a dimension of `{name}` names no variable that exists")
            elif size.get("causality") != "structuralParameter" and size.get("variability") != "constant":
                yield Fault(f"`{size.get('name')}`, a dimension of `{name}`, is not a structural parameter")
            elif not (size.get("start") or "").strip().isdecimal():
                yield Fault(f"`{size.get('name')}`, a dimension of `{name}`, has no start value")


def _normalise_reference(number: str) -> str:
    """Return a reference as it is compared: without signs, blanks or leading zeros."""
    return str(int(number)) if number.strip().isdecimal() else number


_TYPE_ATTRIBUTES = {
    *("name", "description", "quantity", "unit", "displayUnit", "relativeQuantity"),
    *("min", "max", "nominal", "unbounded"),
}
_ITEM_ATTRIBUTES = {"name", "value", "description"}
_PARAMETERS = ("parameter", "calculatedParameter", "structuralParameter")


def repair_description(root: Element, version: str) -> tuple[Element, list[str]]:
    """Return a copy that FMPy can read, where that is possible, and what had to be put right."""
    root = copy.deepcopy(root)
    problems: list[str] = []
    if version == "1.0" and not root.get("numberOfContinuousStates", "").isdecimal():
        root.set("numberOfContinuousStates", "0")
        problems.append("it does not say how many states it has")
    known = _mend_types(root, version)
    for variable in root.iterfind("ModelVariables/*"):
        holder = variable
        if version != "3.0":
            holder = next(child for child in variable if child.tag != "Annotations")
        _mend_declared_type(variable, holder, known, problems)
        if version != "1.0":
            _mend_combination(variable, version, problems)
    for element in root.iter():
        for name in ("dependencies", "dependenciesKind", "clocks"):
            if name in element.attrib:
                element.set(name, " ".join(element.attrib[name].split()))
    return root, problems


def _mend_types(root: Element, version: str) -> set[str]:
    """Leave of the type definitions what FMPy takes; return their names, those it skips among them."""
    definitions = root.find("TypeDefinitions")
    known: set[str] = set()
    for definition in () if definitions is None else list(definitions):
        inner: Iterable[Element] = definition[:1] if version != "3.0" else [definition]
        for element in inner:
            _keep(element, _TYPE_ATTRIBUTES)
            for item in element.findall("Item"):
                _keep(item, _ITEM_ATTRIBUTES)
        if version != "3.0" and not len(definition) and definitions is not None:
            definitions.remove(definition)
        known.add(definition.get("name", ""))
    return known


def _keep(element: Element, names: set[str]) -> None:
    for name in set(element.attrib) - names:
        del element.attrib[name]


def _mend_declared_type(variable: Element, holder: Element, known: set[str], problems: list[str]) -> None:
    """FMPy does not read the types of clocks; a type that is not defined is left out."""
    declared = holder.get("declaredType")
    if declared is None:
        return
    if declared not in known:
        problems.append(f"`{variable.get('name')}` has the type `{declared}`, which is not defined")
        del holder.attrib["declaredType"]
    elif variable.tag == "Clock":
        del holder.attrib["declaredType"]


def _mend_combination(variable: Element, version: str, problems: list[str]) -> None:
    """Let pass what the standard does not allow, if it can only mean one thing."""
    causality, variability = variable.get("causality", "local"), variable.get("variability")
    if variability is None and version == "3.0":
        return
    if variable.get("initial") is not None or causality in ALLOWED.get(variability or "continuous", ()):
        return
    told = f"variability `{variability}`" if variability else "no variability"
    problems.append(f"`{variable.get('name')}` is of causality `{causality}` with {told}, which FMI forbids")
    if causality in _PARAMETERS and variability != "constant":
        variable.set("variability", "fixed")
    elif causality == "independent":
        variable.set("variability", "continuous")
    else:
        variable.set("initial", "exact")
