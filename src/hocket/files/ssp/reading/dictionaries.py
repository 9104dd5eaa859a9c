"""Signal dictionaries, resolved: who writes an entry is connected with everyone who reads it.

In:  connections to references of a dictionary, at any depth below the system that has it
Out: Wires, with connectors on the systems they pass through
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from hocket.errors import suggest_nearest
from hocket.files.ssp.findings import ImportFindings
from hocket.files.ssp.reading.parts import (
    ConnectionEnd,
    Connector,
    DictionaryReference,
    DirectedConnection,
    SignalDictionary,
    SspConnection,
    System,
)
from hocket.files.ssp.reading.transformations import NONE


@dataclass(frozen=True, eq=False)
class Tap:
    """A connection to a reference: the end that is no reference, and the systems down to it."""

    end: ConnectionEnd
    link: SspConnection
    path: tuple[System, ...]
    """From the system that has the dictionary to the one with the connection."""


@dataclass(eq=False)
class Hubs:
    """The entries of the dictionaries of one system that are in use."""

    writers: dict[tuple[str, str], list[Tap]] = field(default_factory=lambda: defaultdict(list))
    readers: dict[tuple[str, str], list[Tap]] = field(default_factory=lambda: defaultdict(list))
    dictionaries: dict[str, SignalDictionary] = field(default_factory=dict)

    @staticmethod
    def of(system: System) -> Hubs:
        """Return those of a system."""
        if system.hubs is None:
            system.hubs = Hubs(dictionaries=system.dictionaries)
        assert isinstance(system.hubs, Hubs)
        return system.hubs

    @staticmethod
    def add_connection(
        source: ConnectionEnd,
        target: ConnectionEnd,
        link: SspConnection,
        stack: tuple[System, ...],
        findings: ImportFindings,
    ) -> None:
        """Take note of a connection from or to a reference."""
        here = stack[-1]
        parts = [here.parts.get(end.element or "") for end in (source, target)]
        references = [part for part in parts if isinstance(part, DictionaryReference)]
        if len(references) == 2:
            findings.fault(link.node, f"`{source}` and `{target}` are both references to dictionaries")
            return
        wanted = references[0].dictionary
        depth = next((i for i in reversed(range(len(stack))) if wanted in stack[i].dictionaries), None)
        if depth is None:
            known = [name for system in stack for name in system.dictionaries]
            what = f"there is no signal dictionary `{wanted}`"
            findings.fault(references[0].node, what, "", suggest_nearest(wanted, known))
            return
        hubs = Hubs.of(stack[depth])
        reads = parts[0] is references[0]
        entry, end = (source, target) if reads else (target, source)
        known_entries = stack[depth].dictionaries[wanted].entries
        if entry.connector not in known_entries:
            what = f"the signal dictionary `{wanted}` has no entry `{entry.connector}`"
            findings.fault(link.node, what, "", suggest_nearest(entry.connector, known_entries))
            return
        taps = hubs.readers if reads else hubs.writers
        taps[wanted, entry.connector].append(Tap(end, link, stack[depth:]))

    def connect(self, findings: ImportFindings) -> None:
        """Connect the writer of every entry with its readers."""
        for key, readers in self.readers.items():
            writers = self.writers.get(key, [])
            name = f"`{key[1]}` of the signal dictionary `{key[0]}`"
            if not writers:
                findings.fault(readers[0].link.node, f"nothing is written to {name}", "one source")
            elif len(writers) > 1:
                listed = " and ".join(f"`{tap.end}`" for tap in writers)
                what = f"{name} is written to by {listed}"
                findings.fault(writers[1].link.node, what, "one source")
            else:
                entry = self.dictionaries[key[0]].entries[key[1]]
                for reader in readers:
                    _connect_taps(writers[0], reader, f"{key[0]}.{key[1]}", entry)


def _connect_taps(writer: Tap, reader: Tap, name: str, entry: Connector) -> None:
    """Lead a wire from the writer up to the lowest system that has both, and down to the reader."""
    depth = 0
    while depth + 1 < min(len(writer.path), len(reader.path)) and (
        writer.path[depth + 1] is reader.path[depth + 1]
    ):
        depth += 1
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
