"""Model descriptions that FMPy trips over, made readable: what it does not know goes, what is wrong is said.

In:  the XML as it is
Out: a copy for FMPy, and the problems found on the way
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from xml.etree.ElementTree import Element

_TYPE_ATTRIBUTES = {
    *("name", "description", "quantity", "unit", "displayUnit", "relativeQuantity"),
    *("min", "max", "nominal", "unbounded"),
}
_ITEM_ATTRIBUTES = {"name", "value", "description"}
_PARAMETERS = ("parameter", "calculatedParameter", "structuralParameter")
_CHANGING = {
    "discrete": ("input", "output", "local"),
    "continuous": ("input", "output", "local", "independent"),
}
_STILL = {
    "constant": ("output", "local"),
    "fixed": (*_PARAMETERS, "local"),
    "tunable": (*_PARAMETERS, "local"),
}
_ALLOWED = _CHANGING | _STILL


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
    if variable.get("initial") is not None or causality in _ALLOWED.get(variability or "continuous", ()):
        return
    told = f"variability `{variability}`" if variability else "no variability"
    problems.append(f"`{variable.get('name')}` is of causality `{causality}` with {told}, which FMI forbids")
    if causality in _PARAMETERS and variability != "constant":
        variable.set("variability", "fixed")
    elif causality == "independent":
        variable.set("variability", "continuous")
    else:
        variable.set("initial", "exact")
