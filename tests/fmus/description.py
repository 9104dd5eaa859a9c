"""Writes the modelDescription.xml of a model for FMI 1, 2 or 3."""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from fmus.table import Model, Variable

OLD_TYPES = {"Float64": "Real", "Int32": "Integer", "Boolean": "Boolean", "String": "String"}


# The attributes that tell of a capability, in FMI 1, 2 and 3.
CAPABILITIES: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str]]] = {
    "state": ({}, {"canGetAndSetFMUstate": "true"}, {"canGetAndSetFMUState": "true"}),
    "serialize": ({}, {"canSerializeFMUstate": "true"}, {"canSerializeFMUState": "true"}),
    "variable step": ({"canHandleVariableCommunicationStepSize": "true"},) * 3,
    "directional derivatives": (
        {},
        {"providesDirectionalDerivative": "true"},
        {"providesDirectionalDerivatives": "true", "providesAdjointDerivatives": "true"},
    ),
    "interpolated inputs": (
        {"canInterpolateInputs": "true"},
        {"canInterpolateInputs": "true"},
        {"providesIntermediateUpdate": "true"},
    ),
    "output derivatives": ({"maxOutputDerivativeOrder": "1"},) * 3,
    "events": ({}, {}, {"hasEventMode": "true"}),
    "early return": ({}, {}, {"mightReturnEarlyFromDoStep": "true"}),
    "only once": ({"canBeInstantiatedOnlyOncePerProcess": "true"},) * 3,
}
COSIMULATION_ONLY = {"variable step", "interpolated inputs", "output derivatives", "events", "early return"}

# Exponents of the base units.
UNITS = {
    "s": {"s": 1},
    "m": {"m": 1},
    "m/s": {"m": 1, "s": -1},
    "m/s2": {"m": 1, "s": -2},
    "kg": {"kg": 1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "N/m": {"kg": 1, "s": -2},
    "N.s/m": {"kg": 1, "s": -1},
}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe(model: Model, interfaces: tuple[str, ...], overrides: Mapping[str, Any]) -> str:
    root = {1: _description_1, 2: _description_2, 3: _description_3}[model.version](model, interfaces)
    faces = [e for e in root.iter() if e.tag in ("CoSimulation", "ModelExchange", "Capabilities")]
    experiment = root.find("DefaultExperiment")
    assert experiment is not None
    for key, value in overrides.items():
        if key in root.attrib or (key == "modelIdentifier" and model.version == 1):
            targets = [root]
        elif key in ("startTime", "stopTime", "tolerance", "stepSize"):
            targets = [experiment]
        else:
            targets = faces
        for target in targets:
            target.attrib.pop(key, None)
            if value is not None:
                target.set(key, _text(value))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _root(model: Model, **attributes: str) -> ET.Element:
    description = str(model.options["description"])
    names = {"modelName": model.name, "description": description, "generationTool": "hocket's tests"}
    return ET.Element("fmiModelDescription", {**attributes, **names, "variableNamingConvention": "flat"})


def _interfaces(root: ET.Element, model: Model, interfaces: tuple[str, ...]) -> None:
    for word, tag in (("me", "ModelExchange"), ("cs", "CoSimulation"), ("se", "ScheduledExecution")):
        if word in interfaces:
            face = ET.SubElement(root, tag, modelIdentifier=model.name)
            for capability in model.capabilities:
                if word == "cs" or capability not in COSIMULATION_ONLY:
                    face.attrib |= CAPABILITIES[capability][model.version - 1]


def _units(root: ET.Element, model: Model) -> None:
    used = sorted({v.options["unit"] for v in model.variables if "unit" in v.options and v.index})
    if used:
        definitions = ET.SubElement(root, "UnitDefinitions")
        for unit in used:
            if model.version == 1:
                ET.SubElement(definitions, "BaseUnit", unit=unit)
            else:
                element = ET.SubElement(definitions, "Unit", name=unit)
                if unit in UNITS:
                    ET.SubElement(element, "BaseUnit", {k: str(n) for k, n in UNITS[unit].items()})


def _types(root: ET.Element, model: Model) -> None:
    if "types" not in model.options:
        return
    definitions = ET.SubElement(root, "TypeDefinitions")
    for name, items in model.options["types"].items():
        if model.version == 3:
            holder = ET.SubElement(definitions, "EnumerationType", name=name)
        else:
            holder = ET.SubElement(definitions, "SimpleType" if model.version == 2 else "Type", name=name)
            holder = ET.SubElement(holder, "Enumeration" if model.version == 2 else "EnumerationType")
        for number, item in enumerate(items, 1):
            value = {} if model.version == 1 else {"value": str(number)}
            ET.SubElement(holder, "Item", {"name": item, **value})


def _log_categories(root: ET.Element) -> None:
    categories = ET.SubElement(root, "LogCategories")
    for kind in ("Warning", "Discard", "Error", "Fatal"):
        ET.SubElement(categories, "Category", name=f"logStatus{kind}")


def _limits(v: Variable) -> dict[str, str]:
    return {k: _text(v.options[k]) for k in ("min", "max", "unit", "quantity") if k in v.options}


def _description_1(model: Model, interfaces: tuple[str, ...]) -> ET.Element:
    root = _root(model, fmiVersion="1.0", modelIdentifier=model.name, guid=model.token)
    exchange = interfaces == ("me",)
    counts = len(model.states) * exchange, len(model.indicators) * exchange
    names = ("numberOfContinuousStates", "numberOfEventIndicators")
    root.attrib |= {name: str(count) for name, count in zip(names, counts, strict=True)}
    _units(root, model)
    _types(root, model)
    ET.SubElement(root, "DefaultExperiment", startTime="0", stopTime="1")
    table = ET.SubElement(root, "ModelVariables")
    for v in model.variables[1:]:
        variability = "parameter" if v.causality == "parameter" else v.variability
        causality = v.causality if v.causality in ("input", "output") else "internal"
        row = ET.SubElement(table, "ScalarVariable", name=v.name, valueReference=str(v.reference))
        row.attrib |= {"variability": variability, "causality": causality}
        start = {"start": _text(v.start)} if v.has_start else {}
        if start and v.causality != "input" and v.variability != "constant":
            start["fixed"] = "true"
        if v.declared:
            ET.SubElement(row, "Enumeration", {"declaredType": v.declared, **start})
        else:
            ET.SubElement(row, OLD_TYPES[v.type], {**_limits(v), **start})
        if causality == "output" and "from" in v.options:
            dependency = ET.SubElement(row, "DirectDependency")
            for name in v.options["from"]:
                if model[name].causality == "input":
                    ET.SubElement(dependency, "Name").text = name
    if exchange:
        return root
    stand_alone = ET.SubElement(ET.SubElement(root, "Implementation"), "CoSimulation_StandAlone")
    capabilities = ET.SubElement(stand_alone, "Capabilities")
    for capability in model.capabilities:
        capabilities.attrib |= CAPABILITIES[capability][0]
    return root


def _description_2(model: Model, interfaces: tuple[str, ...]) -> ET.Element:
    root = _root(model, fmiVersion="2.0", guid=model.token)
    root.set("numberOfEventIndicators", str(len(model.indicators)))
    _interfaces(root, model, interfaces)
    _units(root, model)
    _types(root, model)
    _log_categories(root)
    ET.SubElement(root, "DefaultExperiment", startTime="0", stopTime="1", stepSize="0.1")
    table = ET.SubElement(root, "ModelVariables")
    for v in model.variables[1:]:
        row = ET.SubElement(table, "ScalarVariable", name=v.name, valueReference=str(v.reference))
        row.attrib |= {"causality": v.causality, "variability": v.variability}
        row.attrib |= {"initial": v.initial} if v.initial else {}
        inner = _limits(v) | ({"start": _text(v.start)} if v.has_start else {})
        if v.derivative_of:
            inner["derivative"] = str(model[v.derivative_of].index)
        if "reinit" in v.options and "me" in interfaces:
            inner["reinit"] = "true"
        if v.declared:
            ET.SubElement(row, "Enumeration", {"declaredType": v.declared, **inner})
        else:
            ET.SubElement(row, OLD_TYPES[v.type], inner)
    structure = ET.SubElement(root, "ModelStructure")
    for tag, group in (
        ("Output", "Outputs"),
        ("ContinuousStateDerivative", "Derivatives"),
        ("InitialUnknown", "InitialUnknowns"),
    ):
        unknowns = _structure(model)[tag]
        holder = ET.SubElement(structure, group) if unknowns else structure
        for v in unknowns:
            unknown = ET.SubElement(holder, "Unknown", index=str(v.index))
            if tag == "Output" and "from" in v.options:
                indices = sorted(model[name].index for name in v.options["from"])
                unknown.set("dependencies", " ".join(map(str, indices)))
    return root


def _structure(model: Model) -> dict[str, list[Variable]]:
    """The unknowns that the model structure lists, by their tags in FMI 3."""
    outputs = [v for v in model.variables if v.causality == "output"]
    continuous = [v for pair in model.states for v in pair]
    unknowns = {v.index: v for v in (*outputs, *continuous) if v.initial == "calculated"}
    return {
        "Output": outputs,
        "ContinuousStateDerivative": [dx for _, dx in model.states],
        "InitialUnknown": [unknowns[index] for index in sorted(unknowns)],
        "EventIndicator": model.indicators,
    }


def _description_3(model: Model, interfaces: tuple[str, ...]) -> ET.Element:
    root = _root(model, fmiVersion="3.0", instantiationToken=model.token)
    _interfaces(root, model, interfaces)
    _units(root, model)
    _types(root, model)
    _log_categories(root)
    ET.SubElement(root, "DefaultExperiment", startTime="0", stopTime="1", stepSize="0.1")
    table = ET.SubElement(root, "ModelVariables")
    for v in model.variables:
        attributes = {"causality": v.causality, "variability": v.variability, **_limits(v)}
        attributes |= {"initial": v.initial} if v.initial else {}
        attributes |= {"declaredType": v.declared} if v.declared else {}
        if v.type == "Clock":
            ticks = v.options.get("ticks", {"intervalVariability": "triggered"})
            attributes |= {key: _text(value) for key, value in ticks.items()}
        if "clocks" in v.options:
            attributes["clocks"] = " ".join(str(model[name].reference) for name in v.options["clocks"])
        if v.options.get("intermediate"):
            attributes["intermediateUpdate"] = "true"
        if v.derivative_of:
            attributes["derivative"] = str(model[v.derivative_of].reference)
        if "reinit" in v.options and "me" in interfaces:
            attributes["reinit"] = "true"
        if v.has_start and v.type not in ("String", "Binary"):
            attributes["start"] = _text(v.start)
        tag = "Enumeration" if v.declared else v.type
        row = ET.SubElement(table, tag, {"name": v.name, "valueReference": str(v.reference)} | attributes)
        for dimension in v.options.get("dimensions", ()):
            ET.SubElement(row, "Dimension", valueReference=str(model[dimension].reference))
        if v.has_start and v.type in ("String", "Binary"):
            text = v.start if v.type == "String" else v.start.encode("latin-1").hex()
            ET.SubElement(row, "Start", value=text)
    structure = ET.SubElement(root, "ModelStructure")
    for tag, unknowns in _structure(model).items():
        for v in unknowns if tag != "EventIndicator" or "me" in interfaces else ():
            unknown = ET.SubElement(structure, tag, valueReference=str(v.reference))
            if tag == "Output" and "from" in v.options:
                unknown.set(
                    "dependencies", " ".join(str(model[name].reference) for name in v.options["from"])
                )
    return root
