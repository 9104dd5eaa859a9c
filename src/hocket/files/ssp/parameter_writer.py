"""Parameter sets as XML: what an FMU or a system starts with.

In:  values by name, with the variables they belong to
Out: <ParameterBindings> with one inline <ParameterSet>
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement

from hocket.files.ssp.vocabulary import SSC, SSD, SSV, TAGS, Needs
from hocket.model.ports import Port
from hocket.simulators.fmu.ports import shape
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import FmuVariable


class ParameterValue(NamedTuple):
    """A value to be written: flat, with the sizes of its array."""

    name: str
    tag: str
    values: list[Any]
    sizes: tuple[int, ...] = ()


def write_bindings(parent: Element, values: Iterable[ParameterValue], name: str, needs: Needs) -> None:
    """Append the bindings of an element; nothing for no values."""
    written = list(values)
    if not written:
        return
    binding = SubElement(SubElement(parent, f"{SSD}ParameterBindings"), f"{SSD}ParameterBinding")
    inline = SubElement(SubElement(binding, f"{SSD}ParameterValues"), f"{SSV}ParameterSet", name=name)
    needs.versioned.append(inline)
    parameters = SubElement(inline, f"{SSV}Parameters")
    for value in written:
        parameter = SubElement(parameters, f"{SSV}Parameter", name=value.name)
        typed = SubElement(parameter, f"{SSV}{needs.tag(value.tag)}")
        texts = [_format_value(value.tag, each) for each in value.values]
        if value.tag in ("String", "Enumeration", "Binary") and len(texts) != 1:
            for text in texts:
                SubElement(typed, f"{SSV}Value", value=text)
        else:
            typed.set("value", " ".join(texts))
        for size in value.sizes:
            needs.require_version_2("an array of parameters")
            SubElement(parameter, f"{SSC}Dimension", size=str(size))


def _format_value(tag: str, value: Any) -> str:
    if tag == "Boolean":
        return "true" if value else "false"
    if tag == "Binary":
        return bytes(value).hex()
    return repr(float(value)) if tag in ("Real", "Float32") else str(value)


def port_values(ports: Iterable[Port]) -> Iterator[ParameterValue]:
    for port in ports:
        if port.start is not None:
            whole = port.type != "real" and float(port.start).is_integer()
            tag = ("Boolean" if port.type == "boolean" else "Integer") if whole else "Real"
            yield ParameterValue(port.name, tag, [int(port.start) if whole else port.start])


def fmu_values(fmu: Fmu) -> Iterator[ParameterValue]:
    """Yield what an FMU is given, arrays whole."""
    for name, values in fmu.settings.given.items():
        variable = fmu.description.by_name[name]
        yield _typed_value(variable, list(values), shape(variable, fmu.settings.sizes))


def _typed_value(variable: FmuVariable, values: list[Any], of: tuple[int, ...]) -> ParameterValue:
    tag = TAGS[variable.type]
    if variable.type == "enumeration":
        items = {number: item for item, number in variable.items.items()}
        named = [items.get(value) for value in values]
        tag, values = ("Integer", values) if None in named else (tag, named)
    return ParameterValue(variable.name, tag, values, of)
