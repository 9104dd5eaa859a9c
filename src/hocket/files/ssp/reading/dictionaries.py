"""Signal dictionaries, resolved: who writes an entry is connected with everyone who reads it.

In:  connections to references of a dictionary, at any depth below the system that has it
Out: Wires, with connectors on the systems they pass through
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from hocket.errors import nearest
from hocket.files.ssp.findings import Findings
from hocket.files.ssp.reading.parts import Connector, Dictionary, End, Link, Reference, System, Wire
from hocket.files.ssp.reading.transformations import NONE


@dataclass(frozen=True, eq=False)
class Tap:
    """A connection to a reference: the end that is no reference, and the systems down to it."""

    end: End
    link: Link
    path: tuple[System, ...]
    """From the system that has the dictionary to the one with the connection."""


@dataclass(eq=False)
class Hubs:
    """The entries of the dictionaries of one system that are in use."""

    writers: dict[tuple[str, str], list[Tap]] = field(default_factory=lambda: defaultdict(list))
    readers: dict[tuple[str, str], list[Tap]] = field(default_factory=lambda: defaultdict(list))
    dictionaries: dict[str, Dictionary] = field(default_factory=dict)

    @staticmethod
    def of(system: System) -> Hubs:
        """Return those of a system."""
        if system.hubs is None:
            system.hubs = Hubs(dictionaries=system.dictionaries)
        assert isinstance(system.hubs, Hubs)
        return system.hubs

    @staticmethod
    def join(source: End, target: End, link: Link, stack: tuple[System, ...], findings: Findings) -> None:
        """Take note of a connection from or to a reference."""
        here = stack[-1]
        parts = [here.parts.get(end.element or "") for end in (source, target)]
        references = [part for part in parts if isinstance(part, Reference)]
        if len(references) == 2:
            findings.fault(link.node, f"`{source}` and `{target}` are both references to dictionaries")
            return
        wanted = references[0].dictionary
        depth = next((i for i in reversed(range(len(stack))) if wanted in stack[i].dictionaries), None)
        if depth is None:
            known = [name for system in stack for name in system.dictionaries]
            what = f"there is no signal dictionary `{wanted}`"
            findings.fault(references[0].node, what, "", nearest(wanted, known))
            return
        hubs = Hubs.of(stack[depth])
        reads = parts[0] is references[0]
        entry, end = (source, target) if reads else (target, source)
        known_entries = stack[depth].dictionaries[wanted].entries
        if entry.connector not in known_entries:
            what = f"the signal dictionary `{wanted}` has no entry `{entry.connector}`"
            findings.fault(link.node, what, "", nearest(entry.connector, known_entries))
            return
        taps = hubs.readers if reads else hubs.writers
        taps[wanted, entry.connector].append(Tap(end, link, stack[depth:]))

    def connect(self, findings: Findings) -> None:
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
                    _connect(writers[0], reader, f"{key[0]}.{key[1]}", entry)


def _connect(writer: Tap, reader: Tap, name: str, entry: Connector) -> None:
    """Lead a wire from the writer up to the lowest system that has both, and down to the reader."""
    depth = 0
    while depth + 1 < min(len(writer.path), len(reader.path)) and (
        writer.path[depth + 1] is reader.path[depth + 1]
    ):
        depth += 1
    middle = writer.path[depth]
    source = _led(writer, depth, name, entry, "output")
    target = _led(reader, depth, name, entry, "input")
    first = writer.link if writer.path[-1] is middle else _plain(writer.link)
    second = reader.link if reader.path[-1] is middle else None
    _add(middle, Wire(source, target, first, then=second, via=entry.unit))


def _led(tap: Tap, depth: int, name: str, entry: Connector, kind: str) -> End:
    """Return the end of a tap as the system at `depth` sees it, with connectors on the way there."""
    end = tap.end
    for system in reversed(tap.path[depth + 1 :]):
        made = End(None, name, ())
        system.connectors.setdefault(name, replace(entry, name=name, kind=kind))
        link = tap.link if system is tap.path[-1] else _plain(tap.link)
        ends = (end, made) if kind == "output" else (made, end)
        _add(system, Wire(*ends, link))
        end = End(system.name, name, ())
    return end


def _add(system: System, wire: Wire) -> None:
    """Add a wire, unless another reader has led it there already."""
    if not any(w.source == wire.source and w.target == wire.target for w in system.wires):
        system.wires.append(wire)


def _plain(link: Link) -> Link:
    """Return a connection that changes nothing."""
    return replace(link, transformation=NONE, suppress=False)
