"""Things of one kind by name, in a file: `[bonds.joint]`, `[constraints.link]`.

In:  a table of tables, with its place
Out: the things by name, and back; each is kept with its place
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hocket.files.toml.kinds import TableKind
from hocket.files.toml.layout import Section
from hocket.files.toml.place import WRONG, FilePlace


@dataclass(frozen=True)
class NamedTablesForm:
    """A table of tables; `what` is one of them in words, with its article."""

    name: str
    kind: TableKind
    what: str
    example: str
    inline: bool = False
    """Whether each is written in one line."""

    @property
    def expected_text(self) -> str:
        """What a user should write."""
        return f"a table for each {self.what.partition(' ')[2]}: {self.example}"

    def with_name(self, name: str, thing: Any, models: Collection[str]) -> Any:  # noqa: ARG002
        """Return a thing with its name; raises ScenarioError if it cannot have that beside these models."""
        return thing

    def read(self, value: Any, place: FilePlace) -> Any:
        """Return the things by name."""
        if not isinstance(value, dict):
            return place.report_unexpected(value, self.expected_text)
        keys = [entry.name for entry in self.kind.fields]
        bare = [key for key, inner in value.items() if key in keys and not isinstance(inner, dict)]
        if bare:
            return (place / bare[0]).fault(f"{self.what} has no name", self.expected_text)
        models = place.sibling_value("models")
        found: dict[str, Any] = {}
        for name, table in value.items():
            here = place / name
            given = [key for key in keys if isinstance(table, dict) and key in table]
            for key in ("", *given):
                spot = here / key if key else here
                place.findings.places[f"{place.level}{self.name}.{name}{'.' if key else ''}{key}"] = spot
            thing = self.kind.read(table, here)
            taken = models if isinstance(models, dict) else ()
            made = here.attempt(lambda: self.with_name(name, thing, taken))  # noqa: B023
            if WRONG not in (thing, made):
                found[name] = made
        return found

    def write(self, value: Mapping[str, Any], place: FilePlace) -> Any:
        """Return the tables; None where there are none."""
        tables = {name: self.kind.write(each, place / name) for name, each in value.items()}
        return (
            Section(tables if self.inline else {name: Section(each) for name, each in tables.items()}) or None
        )

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the whole, by reference."""
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {"type": "object", "additionalProperties": self.kind.schema()}
