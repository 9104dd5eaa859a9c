"""A model description as text: FMI 2.0 and FMI 3.0, from plain facts.

In:  variables in the order of their value references, and what the FMU can do
Out: the XML of modelDescription.xml
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from hocket.model.units import base_unit

FmiVersion = Literal["2.0", "3.0"]
Causality = Literal["independent", "input", "output", "parameter"]


@dataclass(frozen=True)
class DescribedVariable:
    """A variable; its place in the list is its value reference."""

    name: str
    causality: Causality
    type: Literal["real", "integer", "boolean"] = "real"
    unit: str = ""
    start: float | None = None
    discrete: bool = False
    depends: tuple[int, ...] | None = None
    """Of an output: the value references of what it follows at once; None: not known."""


@dataclass(frozen=True)
class FmuFacts:
    """What a model description says beside its variables."""

    name: str
    identifier: str
    token: str
    description: str
    date: str
    """When it was made, as in 2026-01-31T12:00:00Z."""
    tool: str
    start: float
    stop: float | None
    step: float
    saves: bool
    """The state of everything can be saved, and written down."""
    adaptive: bool
    """Steps may have any length; else they are whole numbers of `step`."""
    needs_tool: bool = False


def write_description(facts: FmuFacts, variables: Sequence[DescribedVariable], version: FmiVersion) -> bytes:
    """Return the text of modelDescription.xml."""
    made = _describe_2(facts, variables) if version == "2.0" else _describe_3(facts, variables)
    indent(made)
    text: bytes = tostring(made, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _number(value: float, kind: str) -> str:
    if kind == "boolean":
        return _flag(bool(value))
    return str(int(value)) if kind == "integer" else repr(float(value))


def _root(facts: FmuFacts, version: FmiVersion, token: str) -> Element:
    root = Element("fmiModelDescription")
    for key, value in {
        "fmiVersion": version,
        "modelName": facts.name,
        token: facts.token,
        "description": facts.description,
        "generationTool": facts.tool,
        "generationDateAndTime": facts.date,
        "variableNamingConvention": "structured",
    }.items():
        if value:
            root.set(key, value)
    return root


def _add_units(root: Element, variables: Iterable[DescribedVariable]) -> None:
    units = sorted({each.unit for each in variables if each.unit and each.type == "real"})
    if not units:
        return
    defined = SubElement(root, "UnitDefinitions")
    for unit in units:
        named = SubElement(defined, "Unit", name=unit)
        known = base_unit(unit)
        if known is not None:
            exponents, factor, offset = known
            base = {name: str(exponent) for name, exponent in exponents.items()}
            if factor != 1.0:
                base["factor"] = repr(factor)
            if offset != 0.0:
                base["offset"] = repr(offset)
            SubElement(named, "BaseUnit", base)


def _add_experiment(root: Element, facts: FmuFacts) -> None:
    experiment = SubElement(root, "DefaultExperiment", startTime=repr(facts.start))
    if facts.stop is not None:
        experiment.set("stopTime", repr(facts.stop))
    experiment.set("stepSize", repr(facts.step))


_CATEGORIES = {"logStatusError": "What went wrong, with the path of the simulator and the time."}


def _add_categories(root: Element) -> None:
    categories = SubElement(root, "LogCategories")
    for name, text in _CATEGORIES.items():
        SubElement(categories, "Category", name=name, description=text)


def _variable_facts(reference: int, variable: DescribedVariable) -> dict[str, str]:
    """Return what both versions say of a variable, its type aside."""
    facts = {
        "name": variable.name,
        "valueReference": str(reference),
        "causality": variable.causality,
        "variability": _variability(variable),
    }
    return facts | ({"initial": "exact"} if variable.causality == "parameter" else {})


def _type_facts(variable: DescribedVariable) -> dict[str, str]:
    """Return unit and start value."""
    facts = {"unit": variable.unit} if variable.unit and variable.type == "real" else {}
    return facts if variable.start is None else facts | {"start": _number(variable.start, variable.type)}


def _describe_2(facts: FmuFacts, variables: Sequence[DescribedVariable]) -> Element:
    root = _root(facts, "2.0", "guid")
    interface = {
        "modelIdentifier": facts.identifier,
        "needsExecutionTool": _flag(facts.needs_tool),
        "canHandleVariableCommunicationStepSize": _flag(facts.adaptive),
        "canInterpolateInputs": _flag(any(each.causality == "input" for each in variables)),
        "canNotUseMemoryManagementFunctions": "true",
        "canGetAndSetFMUstate": _flag(facts.saves),
        "canSerializeFMUstate": _flag(facts.saves),
    }
    SubElement(root, "CoSimulation", interface)
    _add_units(root, variables)
    _add_categories(root)
    _add_experiment(root, facts)
    listed = SubElement(root, "ModelVariables")
    kinds = {"real": "Real", "integer": "Integer", "boolean": "Boolean"}
    for reference, each in enumerate(variables):
        variable = SubElement(listed, "ScalarVariable", _variable_facts(reference, each))
        SubElement(variable, kinds[each.type], _type_facts(each))
    structure = SubElement(root, "ModelStructure")
    outputs = [place for place, each in enumerate(variables) if each.causality == "output"]
    if outputs:
        follows, initial = SubElement(structure, "Outputs"), SubElement(structure, "InitialUnknowns")
        for place in outputs:
            unknown = SubElement(follows, "Unknown", index=str(place + 1))
            depends = variables[place].depends
            if depends is not None:
                unknown.set("dependencies", " ".join(str(each + 1) for each in depends))
            SubElement(initial, "Unknown", index=str(place + 1))
    return root


def _describe_3(facts: FmuFacts, variables: Sequence[DescribedVariable]) -> Element:
    root = _root(facts, "3.0", "instantiationToken")
    interface = {
        "modelIdentifier": facts.identifier,
        "needsExecutionTool": _flag(facts.needs_tool),
        "canGetAndSetFMUState": _flag(facts.saves),
        "canSerializeFMUState": _flag(facts.saves),
        "canHandleVariableCommunicationStepSize": _flag(facts.adaptive),
    }
    fixed = {} if facts.adaptive else {"fixedInternalStepSize": repr(facts.step)}
    SubElement(root, "CoSimulation", interface | fixed)
    _add_units(root, variables)
    _add_categories(root)
    _add_experiment(root, facts)
    listed = SubElement(root, "ModelVariables")
    kinds = {"real": "Float64", "integer": "Int32", "boolean": "Boolean"}
    for reference, each in enumerate(variables):
        SubElement(listed, kinds[each.type], _variable_facts(reference, each) | _type_facts(each))
    structure = SubElement(root, "ModelStructure")
    outputs = [place for place, each in enumerate(variables) if each.causality == "output"]
    for place in outputs:
        unknown = SubElement(structure, "Output", valueReference=str(place))
        depends = variables[place].depends
        if depends is not None:
            unknown.set("dependencies", " ".join(map(str, depends)))
    for place in outputs:
        SubElement(structure, "InitialUnknown", valueReference=str(place))
    return root


def _variability(variable: DescribedVariable) -> str:
    if variable.causality == "parameter":
        return "fixed"
    return "discrete" if variable.discrete or variable.type != "real" else "continuous"
