"""What `hocket tune` may choose, in a file: `[tune]` with a text for each name.

In:  a table such as `step = "1 ms:100 ms:9:log"`, names with dots quoted or not
Out: texts by name, and back
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hocket.files.toml.forms import TEXT
from hocket.files.toml.layout import Section
from hocket.files.toml.place import WRONG, Place


class Choices:
    """Texts by name; `two.F.alpha` without quotes is a table in a table, and meant as a name."""

    def read(self, value: Any, place: Place) -> Any:
        if not isinstance(value, dict):
            return place.unexpected(value, 'a table of what may be chosen: step = "1 ms:100 ms:9:log"')
        found = dict(self._texts(value, place))
        return WRONG if WRONG in found.values() else found

    def _texts(self, table: Mapping[str, Any], place: Place, before: str = "") -> Iterator[tuple[str, Any]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from self._texts(value, place / key, f"{before}{key}.")
            else:
                yield f"{before}{key}", TEXT.read(value, place / key)

    def write(self, value: Mapping[str, str], place: Place) -> Any:  # noqa: ARG002
        return Section(value) if value else None

    def schema(self) -> dict[str, Any]:
        texts = {"anyOf": [TEXT.schema(), {"type": "object"}]}
        return {"type": "object", "additionalProperties": texts}


CHOICES = Choices()
