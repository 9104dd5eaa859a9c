"""How often simulators step, in a file: `rates = { fast = 10 }`.

In:  a table of whole numbers, with its place
Out: the rates by name, and back
"""

from __future__ import annotations

from typing import Any

from hocket.files.toml.forms import WHOLE, MappingForm
from hocket.files.toml.place import FilePlace


class RatesForm(MappingForm):
    """Whole numbers by name; faults that the scenario finds in them are shown at this place."""

    def __init__(self) -> None:
        super().__init__(WHOLE, "a table of whole numbers: { fast = 10 }")

    def read(self, value: Any, place: FilePlace) -> Any:
        place.findings.places[f"{place.level}rates"] = place
        return super().read(value, place)

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}
