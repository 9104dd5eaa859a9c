"""Which end of a connection is the source: asked of the FMUs, then of the kinds that the SSD gives.

In:  the connections of a system, with the elements they connect
Out: its connections with their directions; what cannot be a connection is noted
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Literal, TypeAlias

from hocket.errors import suggest_nearest
from hocket.files.ssp.connection_ports import find_owning_variable, find_variable
from hocket.files.ssp.document import (
    Component,
    ConnectionEnd,
    Connector,
    DictionaryReference,
    DirectedConnection,
    SignalDictionary,
    SspConnection,
    System,
    SystemElement,
    Tap,
)
from hocket.files.ssp.parameter_values import NONE


def _tap_dictionary(
    source: ConnectionEnd, target: ConnectionEnd, link: SspConnection, systems: tuple[System, ...]
) -> None:
    """Take note of a connection from or to a reference in the last of the systems."""
    parts = [_part_at(end, systems[-1]) for end in (source, target)]
    references = [part for part in parts if isinstance(part, DictionaryReference)]
    if len(references) == 2:
        link.node.fault(f"`{source}` and `{target}` are both references to dictionaries")
        return
    wanted = references[0].dictionary
    depth = next((i for i in reversed(range(len(systems))) if wanted in systems[i].dictionaries), None)
    if depth is None:
        known = [name for system in systems for name in system.dictionaries]
        what = f"there is no signal dictionary `{wanted}`"
        references[0].node.fault(what, "", suggest_nearest(wanted, known))
        return
    dictionary = systems[depth].dictionaries[wanted]
    reads = parts[0] is references[0]
    entry, end = (source.connector, target) if reads else (target.connector, source)
    if entry not in dictionary.entries:
        what = f"the signal dictionary `{wanted}` has no entry `{entry}`"
        link.node.fault(what, "", suggest_nearest(entry, dictionary.entries))
        return
    taps = dictionary.readers if reads else dictionary.writers
    taps.setdefault(entry, []).append(Tap(end, link, systems[depth:]))


def _connect_dictionary(dictionary: SignalDictionary) -> None:
    """Connect the writer of every entry with its readers."""
    for entry, readers in dictionary.readers.items():
        writers = dictionary.writers.get(entry, [])
        name = f"`{entry}` of the signal dictionary `{dictionary.name}`"
        if not writers:
            readers[0].link.node.fault(f"nothing is written to {name}", "one source")
        elif len(writers) > 1:
            listed = " and ".join(f"`{tap.end}`" for tap in writers)
            writers[1].link.node.fault(f"{name} is written to by {listed}", "one source")
        else:
            for reader in readers:
                path = f"{dictionary.name}.{entry}"
                _connect_taps(writers[0], reader, path, dictionary.entries[entry])


def _connect_taps(writer: Tap, reader: Tap, name: str, entry: Connector) -> None:
    """Lead a wire from the writer up to the lowest system that has both, and down to the reader."""
    shared = zip(writer.path, reader.path, strict=False)
    depth = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1], shared)) - 1
    middle = writer.path[depth]
    source = _route_end(writer, depth, name, entry, "output")
    target = _route_end(reader, depth, name, entry, "input")
    first = writer.link if writer.path[-1] is middle else _neutral_link(writer.link)
    second = reader.link if reader.path[-1] is middle else None
    _add_wire(middle, DirectedConnection(source, target, first, then=second, via=entry.unit))


def _route_end(tap: Tap, depth: int, name: str, entry: Connector, kind: str) -> ConnectionEnd:
    """Return the end of a tap as the system at `depth` sees it, with connectors on the way there."""
    end = tap.end
    for system in reversed(tap.path[depth + 1 :]):
        made = ConnectionEnd(None, name, ())
        system.connectors.setdefault(name, replace(entry, name=name, kind=kind))
        link = tap.link if system is tap.path[-1] else _neutral_link(tap.link)
        ends = (end, made) if kind == "output" else (made, end)
        _add_wire(system, DirectedConnection(*ends, link))
        end = ConnectionEnd(system.name, name, ())
    return end


def _add_wire(system: System, wire: DirectedConnection) -> None:
    """Add a wire, unless another reader has led it there already."""
    if not any(w.source == wire.source and w.target == wire.target for w in system.wires):
        system.wires.append(wire)


def _neutral_link(link: SspConnection) -> SspConnection:
    """Return a connection that changes nothing."""
    return replace(link, transformation=NONE, suppress=False)


Role: TypeAlias = Literal["source", "target", "parameter", "constant", "open"]
"""parameter: takes a value before the start; constant: gives one; open: whatever the other end is not."""

_OUTSIDE: dict[str, Role] = {
    "input": "target", "parameter": "parameter", "structuralParameter": "parameter", "output": "source",
    "local": "source", "constant": "source", "calculatedParameter": "source",
}  # fmt: skip
_TURNED: dict[Role, Role] = {"source": "target", "target": "source", "parameter": "constant"}
_INSIDE = {kind: _TURNED[role] for kind, role in _OUTSIDE.items()}
_WORDS: dict[Role, str] = {"source": "output", "constant": "parameter", "target": "input"}


def direct_connections(system: System, around: tuple[System, ...] = ()) -> None:
    """Fill in the wires of a system and of those in it, innermost first."""
    systems = (*around, system)
    for part in system.parts.values():
        if isinstance(part, System):
            direct_connections(part, systems)
    for link in system.links:
        _direct_link(link, systems)
    for dictionary in system.dictionaries.values():
        _connect_dictionary(dictionary)


def _direct_link(link: SspConnection, systems: tuple[System, ...]) -> None:
    system, node = systems[-1], link.node
    ends, roles = [link.start, link.end], [_role(end, link, system) for end in (link.start, link.end)]
    if None in roles:
        return
    if roles == ["open", "open"]:
        what = f"nothing says which of `{link.start}` and `{link.end}` is the source"
        node.fault(what, 'connectors with a kind, such as kind="output"')
        return
    if "open" in roles:
        _settle(ends, roles, system)
    one, other = roles
    gives = [role in ("source", "constant") for role in roles]
    if gives[0] == gives[1]:
        word = "source" if gives[0] else "target"
        if one == other and one is not None:
            word = _WORDS.get(one, "parameter")
        what = f"`{link.start}` and `{link.end}` are connected, and both are {_describe_roles(ends, word)}"
        node.fault(what, "an output and an input")
        return
    if gives[1]:
        ends.reverse()
        one, other = other, one
    source, target = ends
    wrong = _text_fault(ends, link, system) if one != "constant" else None
    if wrong:
        node.fault(*wrong)
    elif any(isinstance(_part_at(end, system), DictionaryReference) for end in ends):
        _tap_dictionary(source, target, link, systems)
    elif other == "parameter" and one != "constant":
        what = f"the parameter `{target}` is connected to `{source}`, which is known during the run only"
        node.fault(what, "an input, or a parameter of the system as its source")
    elif one == "constant" and target.element is None:
        what = f"the parameter `{source}` is put out as `{target}`"
        node.fault(what, "an output of an element", "leave the connection out")
    else:
        _observe(source, system)
        system.wires.append(DirectedConnection(source, target, link, constant=one == "constant"))


def _describe_roles(ends: list[ConnectionEnd], word: str) -> str:
    """Return the word for two ends of one role; an input of the system is a source to what is inside."""
    if all(end.element is not None for end in ends):
        return f"{word}s"
    return "sources to what is inside" if word in ("output", "source") else "driven from inside"


def _part_at(end: ConnectionEnd, system: System) -> SystemElement | None:
    return system if end.element is None else system.parts.get(end.element)


def _role(end: ConnectionEnd, link: SspConnection, system: System) -> Role | None:
    """Return what an end is, seen from inside the system; None after noting that there is no such thing."""
    if end.element is not None and end.element not in system.parts:
        what = f"there is no element `{end.element}` in `{system.name}`"
        link.node.fault(what, "", suggest_nearest(end.element, system.parts))
        return None
    part = _part_at(end, system)
    if isinstance(part, Component) and part.fmu is not None:
        return _variable_role(part, end, link)
    assert part is not None
    connector = part.connectors.get(end.connector)
    if connector is None:
        if isinstance(part, Component):
            return None  # its FMU could not be read: that is the fault
        owner = f"the system `{system.name}`" if end.element is None else f"`{end.element}`"
        what = f"{owner} has no connector `{end.connector}`"
        link.node.fault(what, "", suggest_nearest(end.connector, part.connectors))
        return None
    if isinstance(part, DictionaryReference):
        return "open"
    kind = part.kinds.get(end.connector, connector.kind)
    return (_INSIDE if end.element is None else _OUTSIDE).get(kind, "open")


def _text_fault(ends: list[ConnectionEnd], link: SspConnection, system: System) -> tuple[str, str] | None:
    """Return why a text cannot go this way, and what is expected; None if it can, or is none."""
    parts = [_part_at(end, system) for end in ends]
    known = [
        (end, each)
        for end, part in zip(ends, parts, strict=True)
        if isinstance(part, Component) and (each := find_owning_variable(part, end.connector))
    ]
    texts = [(end, each) for end, each in known if not each.numeric]
    if not texts:
        return None
    end, text = texts[0]
    what = f"`{end}` is a {text.type}"
    if not all(isinstance(part, Component) for part in parts):
        return f"{what}, which is not passed on from system to system", "two FMUs of one system"
    if len({each.type for _, each in known}) > 1:
        told = [f"`{end}` ({each.type})" for end, each in known]
        return f"{told[0]} is connected to {told[1]}", "texts of one type"
    if any(each.dimensions for _, each in texts):
        return f"{what} array, which hocket does not pass on", "single texts"
    if link.transformation != NONE:
        return f"{what}, which cannot be transformed", "a connection without a transformation"
    return None


def _variable_role(component: Component, end: ConnectionEnd, link: SspConnection) -> Role | None:
    found = find_owning_variable(component, end.connector)
    if found is None:
        assert component.fmu is not None
        listed = [port.name for port in (*component.fmu.inputs, *component.fmu.outputs)]
        what = f"the FMU of `{component.name}` has no variable `{end.connector}`"
        link.node.fault(what, "", suggest_nearest(end.connector, listed))
        return None
    if found.type == "clock":
        link.node.fault(f"`{end}` is a clock, which hocket does not tick")
        return None
    role = _OUTSIDE.get(found.causality, "source")
    connector = component.connectors.get(end.connector)
    written = _OUTSIDE.get(connector.kind, role) if connector else role
    if {role, written} == {"source", "target"}:
        word = "an input" if role == "target" else "an output"
        what = f"`{end}` is called an {connector.kind if connector else ''}, and in the FMU it is {word}"
        link.node.fault(what)
        return None
    return role


def _settle(ends: list[ConnectionEnd], roles: list[Role | None], system: System) -> None:
    """Give an open end the role that the other one leaves it, and remember it."""
    index = roles.index("open")
    gives = roles[1 - index] in ("source", "constant")
    roles[index] = "target" if gives else "source"
    part = _part_at(ends[index], system)
    if isinstance(part, System):
        inside = part is system
        part.kinds[ends[index].connector] = "output" if gives == inside else "input"


def _observe(source: ConnectionEnd, system: System) -> None:
    """Let an FMU put out a variable that is not one of its outputs."""
    part = _part_at(source, system)
    if isinstance(part, Component) and part.fmu is not None:
        found = find_variable(part, source.connector)
        if found is not None and found.causality != "output" and found.alias_of is None:
            part.observed[found.name] = None
