"""What the compiler inserted, in a file: `[inserted]` with the pass and the reason of each element.

In:  a table of tables, with its place
Out: Inserted by name of a model or target of a connection, and back
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hocket.files.toml.forms import TEXT
from hocket.files.toml.kinds import Field, Kind, kind
from hocket.files.toml.layout import Section
from hocket.files.toml.place import WRONG, Place
from hocket.model import Inserted

INSERTED = kind(
    "an insertion",
    Inserted,
    Field("by", TEXT, "the pass of the compiler"),
    Field("reason", TEXT, "why it is there"),
    tagged=False,
)


class Insertions:
    """By name of a model, or target of a connection."""

    name = "inserted"
    kind: Kind = INSERTED

    def read(self, value: Any, place: Place) -> Any:
        if not isinstance(value, dict):
            return place.unexpected(value, 'a table: loop = { by = "loops", reason = "..." }')
        found = {name: self.kind.read(table, place / name) for name, table in value.items()}
        return WRONG if any(each is WRONG for each in found.values()) else found

    def write(self, value: Mapping[str, Inserted], place: Place) -> Any:
        return Section({name: self.kind.write(each, place / name) for name, each in value.items()}) or None

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {"type": "object", "additionalProperties": self.kind.schema()}


INSERTIONS = Insertions()
