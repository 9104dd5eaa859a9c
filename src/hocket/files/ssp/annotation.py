"""What SSP has no words for, in an annotation of our own: step, orchestrator, bonds, equations.

In:  <Annotation type="org.hocket.level"> with the keys of scenario files in it
Out: the values of its keys, and back
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from hocket.files.ssp.package import Node
from hocket.files.ssp.vocabulary import SSC, SSD
from hocket.files.toml import layout
from hocket.files.toml.codec import FILE, LEVEL, MODELS
from hocket.files.toml.registered_kinds import EXTRAPOLATIONS
from hocket.files.toml.syntax import WRONG, FilePlace, Source, TomlFindings, parse_document
from hocket.files.toml.table_kinds import REACTIVITY, Field, Section, TableKind
from hocket.simulators.fmu.recipe import Fmu

TYPE = "org.hocket.level"
NAMESPACE = "urn:hocket:ssp"

_ELSEWHERE = ("path", "parameters", "interface", "folder")
"""What SSP has words for."""
_KEYS = ("step", "orchestrator", "extrapolation", "start", "sampled", "record", "bonds", "constraints")


def _optional_kind(name: str, fields: tuple[Field, ...]) -> TableKind:
    """Return a kind that is read as a dict; nothing is required."""
    return TableKind(name, dict, tuple(replace(entry, required=False) for entry in fields), tagged=False)


_FMU = next(entry for entry in MODELS.kinds if entry.cls is Fmu)
_RUN = next(entry.form for entry in FILE.fields if entry.name == "run")
assert isinstance(_RUN, TableKind)
KINDS = {
    "Level": _optional_kind("a level", tuple(entry for entry in LEVEL.fields if entry.name in _KEYS)),
    "Connection": _optional_kind("a connection", (Field("extrapolation", EXTRAPOLATIONS),)),
    "Connector": _optional_kind("a connector", (REACTIVITY,)),
    "Run": _optional_kind("a run", _RUN.fields),
    "Model": _optional_kind("a model", tuple(entry for entry in _FMU.fields if entry.name not in _ELSEWHERE)),
}
"""By element: what may stand in it."""


def read_annotation(node: Node | None, element: str) -> dict[str, Any]:
    """Return what hocket's annotation of a node says; {} if it has none."""
    own = [note for note in node.all("Annotations", "Annotation") if note.get("type") == TYPE] if node else []
    for written in (inner for note in own for inner in note.children if inner.tag == element):
        toml = TomlFindings()
        # as many lines in front as there are in the file, so that faults name those of the file
        place = parse_document(Source(written.file, "\n" * (written.line - 1) + written.text), toml)
        read = WRONG if place is WRONG else KINDS[element].read(place.source.table, place)
        written.findings.told.update(dict.fromkeys(toml.sorted_faults()))
        return {} if read is WRONG else dict(read)
    return {}


def annotate(parent: Element, element: str, table: dict[str, Any]) -> None:
    """Append an annotation to an element of an SSD; nothing for an empty table."""
    if table:
        annotations = SubElement(parent, f"{SSD}Annotations")
        annotation = SubElement(annotations, f"{SSC}Annotation", type=TYPE)
        text = layout.format_document(Section(table))
        text = f"\n{text}" if len(table) > 1 else text.strip()
        SubElement(annotation, f"{{{NAMESPACE}}}{element}").text = text


def encode_annotation(thing: Any, element: str, place: str) -> tuple[dict[str, Any], list[Any]]:
    """Return what the annotation of an object has to say, and the faults found on the way."""
    toml = TomlFindings()
    table = KINDS[element].write(thing, FilePlace(toml, Source(), (place,)))
    return table, toml.sorted_faults()
