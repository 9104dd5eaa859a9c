"""How single values look in a file: numbers, texts, durations, matrices, one of a few words.

In:  what TOML gives, with its place
Out: what Python wants, and back; and the JSON Schema of what is accepted
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os.path
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from hocket.errors import HocketError, suggest_nearest
from hocket.files.toml.syntax import WRONG, FilePlace
from hocket.model.clock import format_duration, seconds
from hocket.model.registry import load_place


class Form(Protocol):
    """How a value is written."""

    def read(self, value: Any, place: FilePlace) -> Any:
        """Return the value as Python wants it; WRONG after noting a fault."""

    def write(self, value: Any, place: FilePlace) -> Any:
        """Return the value as TOML has it; None: leave the key out."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of what `read` accepts."""


class NumberForm:
    """A float; whole numbers are welcome."""

    def read(self, value: Any, place: FilePlace) -> Any:
        if not _is_number(value):
            return place.report_unexpected(value, "a number")
        try:
            return float(value)
        except OverflowError:
            return place.report_unexpected(math.copysign(math.inf, value), "a number below 1.8e308")

    def write(self, value: Any, place: FilePlace) -> Any:  # noqa: ARG002
        return float(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "number"}


class IntegerForm:
    """An int."""

    def read(self, value: Any, place: FilePlace) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return place.report_unexpected(value, "a whole number")

    def write(self, value: Any, place: FilePlace) -> Any:  # noqa: ARG002
        return int(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "integer"}


class BooleanForm:
    """A bool."""

    def read(self, value: Any, place: FilePlace) -> Any:
        return value if isinstance(value, bool) else place.report_unexpected(value, "true or false")

    def write(self, value: Any, place: FilePlace) -> Any:  # noqa: ARG002
        return bool(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class TextForm:
    """A str."""

    def read(self, value: Any, place: FilePlace) -> Any:
        return value if isinstance(value, str) else place.report_unexpected(value, "a text in quotes")

    def write(self, value: Any, place: FilePlace) -> Any:  # noqa: ARG002
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


class DurationForm:
    """A time span as people write it; a bare number is in seconds."""

    def read(self, value: Any, place: FilePlace) -> Any:
        expected = 'a duration such as "2.5 ms", "1/3 s" or 0.01'
        if not isinstance(value, str) and not _is_number(value):
            return place.report_unexpected(value, expected)
        try:
            return seconds(value)
        except ValueError:
            return place.report_unexpected(value, expected)

    def write(self, value: Fraction, place: FilePlace) -> Any:  # noqa: ARG002
        return format_duration(value)

    def schema(self) -> dict[str, Any]:
        text = {"type": "string", "pattern": "^\\s*[-+]?[0-9.]", "examples": ["2.5 ms", "1/3 s"]}
        return {"anyOf": [text, {"type": "number"}]}


@dataclass(frozen=True)
class LaterForm:
    """A form that is imported when a file first uses it: `module:NAME`."""

    place: str

    @property
    def form(self) -> Any:
        """The form itself."""
        return load_place(self.place)

    def read(self, value: Any, place: FilePlace) -> Any:
        return self.form.read(value, place)

    def write(self, value: Any, place: FilePlace) -> Any:
        return self.form.write(value, place) if value else None

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = self.form.schema()
        return schema


@dataclass(frozen=True)
class ChoiceForm:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Any, place: FilePlace) -> Any:
        if isinstance(value, str) and value in self.words:
            return value
        listed = [f'"{word}"' for word in self.words]
        expected = " or ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)
        return place.report_unexpected(value, expected, _suggest_word(value, self.words))

    def write(self, value: Any, place: FilePlace) -> Any:  # noqa: ARG002
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class ListForm:
    """An array whose items have one form."""

    of: Form
    expected: str
    make: type[tuple[Any, ...]] | type[list[Any]] = tuple

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, list):
            return place.report_unexpected(value, self.expected)
        items = [self.of.read(item, place / number) for number, item in enumerate(value)]
        return WRONG if any(item is WRONG for item in items) else self.make(items)

    def write(self, value: Iterable[Any], place: FilePlace) -> Any:
        return [self.of.write(item, place / number) for number, item in enumerate(value)]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.of.schema()}


class NumbersForm(ListForm):
    """An array of floats; long ones are read at once."""

    def read(self, value: Any, place: FilePlace) -> Any:
        if isinstance(value, list) and all(type(item) in (float, int) for item in value):
            with contextlib.suppress(OverflowError):
                return self.make(map(float, value))
        return super().read(value, place)

    def write(self, value: Iterable[Any], place: FilePlace) -> Any:  # noqa: ARG002
        return list(map(float, value))


@dataclass(frozen=True)
class MappingForm:
    """A table with keys of the user's choosing, whose values have one form."""

    of: Form
    expected: str

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, self.expected)
        items = {key: self.of.read(item, place / key) for key, item in value.items()}
        return WRONG if any(item is WRONG for item in items.values()) else items

    def write(self, value: Mapping[str, Any], place: FilePlace) -> Any:
        return {key: self.of.write(item, place / key) for key, item in dict(value).items()}

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.of.schema()}


@dataclass(frozen=True)
class EitherForm:
    """One form where the value is of a certain type, else another."""

    type: type
    one: Form
    other: Form

    def read(self, value: Any, place: FilePlace) -> Any:
        return (self.one if isinstance(value, self.type) else self.other).read(value, place)

    def write(self, value: Any, place: FilePlace) -> Any:
        return (self.one if isinstance(value, self.type) else self.other).write(value, place)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.one.schema(), self.other.schema()]}


@dataclass(frozen=True)
class WordOrForm:
    """A certain word, or else a form."""

    word: str
    form: Form

    def read(self, value: Any, place: FilePlace) -> Any:
        return value if value == self.word else self.form.read(value, place)

    def write(self, value: Any, place: FilePlace) -> Any:
        return value if value == self.word else self.form.write(value, place)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"const": self.word}, self.form.schema()]}


@dataclass(frozen=True)
class NoneWordForm(WordOrForm):
    """A word that stands for None, or else a form."""

    def read(self, value: Any, place: FilePlace) -> Any:
        return None if value == self.word else self.form.read(value, place)


@dataclass(frozen=True)
class ZerosForm:
    """Numbers that are left out where all are zero."""

    of: Form

    def read(self, value: Any, place: FilePlace) -> Any:
        return self.of.read(value, place)

    def write(self, value: Any, place: FilePlace) -> Any:
        numbers = np.array(value, dtype=float)
        return self.of.write(value, place) if numbers.any() or np.signbit(numbers).any() else None

    def schema(self) -> dict[str, Any]:
        return self.of.schema()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _suggest_word(value: Any, words: Iterable[str]) -> str:
    return suggest_nearest(value, words, listing=False) if isinstance(value, str) else ""


NUMBER, WHOLE, TRUTH, TEXT, DURATION = NumberForm(), IntegerForm(), BooleanForm(), TextForm(), DurationForm()
TEXTS = ListForm(TEXT, "a list of texts")
VECTOR = NumbersForm(NUMBER, "a list of numbers")
MATRIX = ListForm(VECTOR, "a list of rows, each a list of numbers: [[1, 0], [0, 1]]")


class AnyValueForm:
    """Whatever TOML can hold, as it is: the parameters of somebody's code."""

    def read(self, value: Any, place: FilePlace) -> Any:  # noqa: ARG002
        return value

    def write(self, value: Any, place: FilePlace) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        match value:
            case bool() | int() | float() | str() | datetime.date() | datetime.time():
                return value
            case list():
                return [self.write(item, place / number) for number, item in enumerate(value)]
            case dict() if all(isinstance(key, str) for key in value):
                return {key: self.write(item, place / key) for key, item in value.items()}
        hint = (
            "leave it out and let the code have a default"
            if value is None
            else "numbers, texts, lists, dicts"
        )
        return place.report_unwritable(value, hint)

    def schema(self) -> dict[str, Any]:
        return {}


class CodeForm:
    """A class or function by its name: "package.module:Name" or "path/to/file.py:Name"."""

    def read(self, value: Any, place: FilePlace) -> Any:
        expected = 'text such as "plant.py:Tank" or "package.module:Tank"'
        if not isinstance(value, str):
            return place.report_unexpected(value, expected)
        if not place.findings.check:
            return value
        from hocket.simulators.recipes import load

        folder = place.sibling_value("folder")
        start = FolderForm().read(folder, place) if isinstance(folder, str) else place.source.folder
        return WRONG if place.attempt(lambda: load(value, start)) is WRONG else value

    def write(self, value: Any, place: FilePlace) -> Any:
        if isinstance(value, str) or value is None:
            return value
        from hocket.simulators.recipes import load, qualified_name

        name = qualified_name(value)
        try:
            known = getattr(value, "__module__", "__main__") != "__main__" and load(name) is value
        except HocketError:
            known = False
        return (
            name if known else place.report_unwritable(value, "give it a name in a module or file of its own")
        )

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": ":", "examples": ["plant.py:Tank", "package.module:Tank"]}


class FolderForm:
    """Where the paths of one model start, if not in the folder of the file."""

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, str):
            return place.report_unexpected(value, "the path of a folder")
        start = place.source.folder
        return os.path.normpath(os.path.join(start, value)) if start else value

    def write(self, value: str | None, place: FilePlace) -> Any:
        start = place.source.folder
        if value is None or value == start:
            return None
        return os.path.relpath(value, start) if start else value

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


CODE, FOLDER = CodeForm(), FolderForm()
RATES = MappingForm(TEXT, 'a table of outputs and their time derivatives: { "left.x" = "left.v" }')
VALUES = MappingForm(AnyValueForm(), "a table of parameters: { mass = 2.5 }")


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
