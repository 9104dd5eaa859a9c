"""Ports in a file: texts such as `force [N] = 0.5`, or tables.

In:  a list of texts and tables
Out: Ports, and back
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hocket.errors import ScenarioError
from hocket.files.toml.forms import NUMBER, TEXT, TEXTS
from hocket.files.toml.kinds import Field, TableKind, table_kind
from hocket.files.toml.place import WRONG, FilePlace
from hocket.model import Port


def port_text(port: Port) -> str:
    """Return a port as text; `Port.of` reads it back unless its name or unit is odd."""
    unit = f" [{port.unit}]" if port.unit else ""
    start = "" if port.start is None else f" = {float(port.start)!r}"
    return f"{port.name}{unit}{start}"


@dataclass(frozen=True)
class PortsForm:
    """A list of ports, each a text (`force [N] = 0.5`) or a table."""

    name: str
    kind: TableKind

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, list):
            return place.report_unexpected(value, 'a list of ports: ["force [N]", "x [m] = 0.5"]')
        ports = []
        for number, port in enumerate(value):
            here = place / number
            if isinstance(port, str):
                ports.append(here.attempt(lambda port=port: Port.of(port)))  # type: ignore[misc]
            elif isinstance(port, dict):
                ports.append(self.kind.read(port, here))
            else:
                ports.append(
                    here.report_unexpected(
                        port, f'text such as "force [N]", or a table: {self.kind.example()}'
                    )
                )
        return WRONG if any(port is WRONG for port in ports) else tuple(ports)

    def write(self, value: Iterable[Port], place: FilePlace) -> Any:
        return [self._write_port(port, place / number) for number, port in enumerate(value)]

    def _write_port(self, port: Port, place: FilePlace) -> Any:
        table, text = self.kind.write(port, place), port_text(port)
        try:
            read = self.kind.write(Port.of(text), place)
        except ScenarioError:
            return table
        return text if repr(read) == repr(table) else table

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {"type": "array", "items": {"anyOf": [{"type": "string"}, self.kind.schema()]}}


_NAME = Field("name", TEXT), Field("unit", TEXT, "a physical unit: m/s"), Field("start", NUMBER)
_FEEDTHROUGH = Field("feedthrough", TEXTS, "the inputs an output reacts to at once")
PORTS = PortsForm("ports", table_kind("a port", Port, *_NAME, _FEEDTHROUGH, tagged=False))
OUTPUTS = PortsForm("outputs", table_kind("an output", Port, *_NAME, tagged=False))
"""Of models that know themselves what their outputs react to."""
