"""Parameter sets as XML: what an FMU or a system starts with.

In:  values by name, with the variables they belong to
Out: <ParameterBindings> with one inline <ParameterSet>
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement

from hocket.files.ssp.vocabulary import SSC, SSD, SSV, TAGS, Needs, flatten_array
from hocket.model.ports import Port
from hocket.simulators.fmu.ports import element_name, indices, shape, start_values
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
    """Yield the start values of a system's inputs."""
    for port in ports:
        if port.start is not None:
            whole = port.type != "real" and float(port.start).is_integer()
            tag = ("Boolean" if port.type == "boolean" else "Integer") if whole else "Real"
            yield ParameterValue(port.name, tag, [int(port.start) if whole else port.start])


def fmu_values(fmu: Fmu) -> Iterator[ParameterValue]:
    """Yield what an FMU is given, arrays whole."""
    given: dict[str, dict[tuple[int, ...], Any]] = {}
    known = fmu.description.by_name
    for name, value in fmu.parameters.items():
        for called, index, inner in _resolve_name(known, name, value):
            given.setdefault(known[called].alias_of or called, {})[index] = inner
    for name, values in given.items():
        of = shape(known[name], fmu.settings.sizes)
        yield _typed_value(known[name], name, _merge_elements(known[name], values, of), of)


def _resolve_name(
    known: Mapping[str, FmuVariable], name: str, value: Any
) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    """Yield the variables that a name means, with the index of an element; () is the whole."""
    base, _, inside = name.rpartition("[")
    if name in known:
        yield name, (), value
    elif base in known and known[base].dimensions:
        yield base, tuple(int(number) for number in inside.rstrip("]").split(",")), value
    else:
        # a list for `x` sets the variables `x[1]`, `x[2]` ... of FMI 1 and 2, perhaps with blanks in them
        names = {_without_blanks(text): text for text in known}
        for index, inner in _elements(value):
            yield names[_without_blanks(element_name(name, index))], (), inner


def _without_blanks(text: str) -> str:
    return re.sub(r"\s", "", text)


def _elements(value: Any, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if isinstance(value, (list, tuple)):
        for number, inner in enumerate(value, 1):
            yield from _elements(inner, (*index, number))
    else:
        yield index, value


def _merge_elements(
    variable: FmuVariable, given: Mapping[tuple[int, ...], Any], of: tuple[int, ...]
) -> list[Any]:
    """Return all values of a variable, elements laid over the whole or over the start values."""
    if not of:
        return [given[()]]
    whole = flatten_array(given[()]) if () in given else start_values(variable, of)
    whole = whole or [0] * math.prod(of)
    return [given.get(index, value) for index, value in zip(indices(of), whole, strict=True)]


def _typed_value(variable: FmuVariable, name: str, values: list[Any], of: tuple[int, ...]) -> ParameterValue:
    tag = TAGS[variable.type]
    if variable.type == "enumeration":
        items = {number: item for item, number in variable.items.items()}
        named = [value if isinstance(value, str) else items.get(int(value)) for value in values]
        if None in named:
            return ParameterValue(name, "Integer", [int(value) for value in values], of)
        values = named
    elif tag not in ("Real", "Float32", "Boolean", "String", "Binary"):
        values = [int(value) for value in values]
    elif variable.type == "binary":
        values = [bytes.fromhex(value) if isinstance(value, str) else value for value in values]
    return ParameterValue(name, tag, values, of)
