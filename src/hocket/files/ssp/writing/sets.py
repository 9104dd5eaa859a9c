"""Parameter sets as XML: what an FMU or a system starts with.

In:  values by name, with the variables they belong to
Out: <ParameterBindings> with one inline <ParameterSet>
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement

from hocket.files.ssp.writing.schema import SSC, SSD, SSV, TAGS, Needs
from hocket.model import Port
from hocket.simulators.fmu.facts import Variable
from hocket.simulators.fmu.ports import element, indices, shape, start_values
from hocket.simulators.fmu.recipe import Fmu


class Value(NamedTuple):
    """A value to be written: flat, with the sizes of its array."""

    name: str
    tag: str
    values: list[Any]
    sizes: tuple[int, ...] = ()


def bound(parent: Element, values: Iterable[Value], name: str, needs: Needs) -> None:
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
        texts = [_text(value.tag, each) for each in value.values]
        if value.tag in ("String", "Enumeration", "Binary") and len(texts) != 1:
            for text in texts:
                SubElement(typed, f"{SSV}Value", value=text)
        else:
            typed.set("value", " ".join(texts))
        for size in value.sizes:
            needs.second("an array of parameters")
            SubElement(parameter, f"{SSC}Dimension", size=str(size))


def _text(tag: str, value: Any) -> str:
    if tag == "Boolean":
        return "true" if value else "false"
    if tag == "Binary":
        return bytes(value).hex()
    return repr(float(value)) if tag in ("Real", "Float32") else str(value)


def of_ports(ports: Iterable[Port]) -> Iterator[Value]:
    """Yield the start values of a system's inputs."""
    for port in ports:
        if port.start is not None:
            whole = port.type != "real" and float(port.start).is_integer()
            tag = ("Boolean" if port.type == "boolean" else "Integer") if whole else "Real"
            yield Value(port.name, tag, [int(port.start) if whole else port.start])


def of_fmu(fmu: Fmu) -> Iterator[Value]:
    """Yield what an FMU is given, arrays whole."""
    known, sizes = fmu.description.by_name, fmu.settings.sizes
    arrays: dict[str, dict[tuple[int, ...], Any]] = {}
    for name, value in fmu.parameters.items():
        base, _, inside = name.rpartition("[")
        if name in known:
            variable = known[name]
            of = shape(variable, sizes)
            yield _value(variable, name, _flat(value) if of else [value], of)
        elif base in known and known[base].dimensions:
            index = tuple(int(number) for number in inside.rstrip("]").split(","))
            arrays.setdefault(base, {})[index] = value
        else:
            yield from _elements(fmu, name, value)
    for name, given in arrays.items():
        if name in fmu.parameters:
            continue
        of = shape(known[name], sizes)
        starts = start_values(known[name], of) or (0,) * len(list(indices(of)))
        values = [given.get(index, start) for index, start in zip(indices(of), starts, strict=True)]
        yield _value(known[name], name, values, of)


def _elements(fmu: Fmu, name: str, value: Any, index: tuple[int, ...] = ()) -> Iterator[Value]:
    """Yield the variables `x[1]`, `x[2]` ... that a list for `x` sets in FMI 1 and 2."""
    if isinstance(value, (list, tuple)):
        for number, inner in enumerate(value, 1):
            yield from _elements(fmu, name, inner, (*index, number))
        return
    written = element(name, index)
    yield _value(fmu.description.by_name[written], written, [value], ())


def _flat(value: Any) -> list[Any]:
    return [each for item in value for each in _flat(item)] if isinstance(value, (list, tuple)) else [value]


def _value(variable: Variable, name: str, values: list[Any], of: tuple[int, ...]) -> Value:
    tag = TAGS[variable.type]
    if variable.type == "enumeration":
        items = {number: item for item, number in variable.items.items()}
        named = [value if isinstance(value, str) else items.get(int(value)) for value in values]
        if None in named:
            return Value(name, "Integer", [int(value) for value in values], of)
        values = named
    elif tag not in ("Real", "Float32", "Boolean", "String", "Binary"):
        values = [int(value) for value in values]
    elif variable.type == "binary":
        values = [bytes.fromhex(value) if isinstance(value, str) else value for value in values]
    return Value(name, tag, values, of)
