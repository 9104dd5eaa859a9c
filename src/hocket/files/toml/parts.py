"""A part of a step in a file: `quantum = "1/1024"`.

In:  a text or a number, with its place
Out: a Fraction, and back
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hocket.clock import seconds
from hocket.files.toml.place import FilePlace


class FractionForm:
    """A part of something, without a unit."""

    def read(self, value: Any, place: FilePlace) -> Any:
        """Return an exact fraction: 0.1 is a tenth."""
        try:
            return Fraction(value) if isinstance(value, str) else seconds(value)
        except (ValueError, ZeroDivisionError):
            return place.report_unexpected(value, 'a part of the step such as "1/64" or 0.25')

    def write(self, value: Fraction, place: FilePlace) -> Any:  # noqa: ARG002
        """Return the fraction as text."""
        return str(value)

    def schema(self) -> dict[str, Any]:
        """Return what is accepted."""
        text = {"type": "string", "pattern": "^\\s*[0-9.]", "examples": ["1/64"]}
        return {"anyOf": [text, {"type": "number"}]}


PART = FractionForm()
