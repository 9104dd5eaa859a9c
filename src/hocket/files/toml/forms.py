"""How single values look in a file: numbers, texts, durations, matrices, one of a few words.

In:  what TOML gives, with its place
Out: what Python wants, and back; and the JSON Schema of what is accepted
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os.path
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, get_args

import numpy as np

from hocket.errors import HocketError, suggest_nearest
from hocket.files.toml.syntax import WRONG, FilePlace
from hocket.model.clock import format_duration, seconds
from hocket.model.code_loading import is_code_refused
from hocket.model.registry import load_place


class Form(Protocol):
    """How a value is written."""

    def read(self, value: Any, place: FilePlace) -> Any:
        """Return the value as Python wants it; WRONG after noting a fault."""

    def write(self, value: Any, place: FilePlace) -> Any:
        """Return the value as TOML has it; None: leave the key out."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of what `read` accepts."""


class DefinedForm:
    """A form whose JSON Schema is referred to by its name."""

    name: str

    def schema(self) -> dict[str, Any]:
        """Return a reference to the definition."""
        return {"$ref": f"#/$defs/{self.name}"}


@dataclass(frozen=True)
class ScalarForm:
    """A value of one type."""

    type: type
    expected: str
    schema_type: str

    def read(self, value: Any, place: FilePlace) -> Any:
        return value if type(value) is self.type else place.report_unexpected(value, self.expected)

    def write(self, value: Any, place: FilePlace) -> Any:  # noqa: ARG002
        return self.type(value)

    def schema(self) -> dict[str, Any]:
        return {"type": self.schema_type}


class NumberForm(ScalarForm):
    """A float; whole numbers are welcome."""

    def read(self, value: Any, place: FilePlace) -> Any:
        if type(value) is not int:
            return super().read(value, place)
        try:
            return float(value)
        except OverflowError:
            return place.report_unexpected(math.inf if value > 0 else -math.inf, "a number below 1.8e308")


@dataclass(frozen=True)
class FractionForm:
    """An exact fraction, as text or as a number: 0.1 is a tenth."""

    parse: Callable[[str], Fraction]
    format: Callable[[Fraction], str]
    expected: str
    pattern: str
    examples: tuple[str, ...]

    def read(self, value: Any, place: FilePlace) -> Any:
        with contextlib.suppress(ValueError, ZeroDivisionError):
            if isinstance(value, str):
                return self.parse(value)
            if type(value) in (int, float):
                return seconds(value)
        return place.report_unexpected(value, self.expected)

    def write(self, value: Fraction, place: FilePlace) -> Any:  # noqa: ARG002
        return self.format(value)

    def schema(self) -> dict[str, Any]:
        text = {"type": "string", "pattern": self.pattern, "examples": list(self.examples)}
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

    choice: tuple[str, ...] | str
    """The words; or where they stand, as a tuple or a Literal, if that is imported when a file needs it."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words themselves."""
        found = load_place(self.choice) if isinstance(self.choice, str) else self.choice
        return get_args(found) or tuple(found)

    def read(self, value: Any, place: FilePlace) -> Any:
        words = self.words
        if isinstance(value, str) and value in words:
            return value
        *others, last = (f'"{word}"' for word in words)
        expected = f"{', '.join(others)} or {last}" if others else last
        hint = suggest_nearest(value, words, listing=False) if isinstance(value, str) else ""
        return place.report_unexpected(value, expected, hint)

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


NUMBER = NumberForm(float, "a number", "number")
WHOLE = ScalarForm(int, "a whole number", "integer")
TRUTH = ScalarForm(bool, "true or false", "boolean")
TEXT = ScalarForm(str, "a text in quotes", "string")
DURATION = FractionForm(
    seconds,
    format_duration,
    'a duration such as "2.5 ms", "1/3 s" or 0.01',
    "^\\s*[-+]?[0-9.]",
    ("2.5 ms", "1/3 s"),
)
PART = FractionForm(Fraction, str, 'a part of the step such as "1/64" or 0.25', "^\\s*[0-9.]", ("1/64",))
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
        default = "leave it out and let the code have a default"
        return place.report_unwritable(value, default if value is None else "numbers, texts, lists, dicts")

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
        from hocket.simulators.recipes import load, locate

        folder = place.sibling_value("folder")
        start = FolderForm().read(folder, place) if isinstance(folder, str) else place.source.folder
        find = locate if is_code_refused() else load
        return WRONG if place.attempt(lambda: find(value, start)) is WRONG else value

    def write(self, value: Any, place: FilePlace) -> Any:
        if isinstance(value, str) or value is None:
            return value
        from hocket.simulators.recipes import load, qualified_name

        name = qualified_name(value)
        try:
            known = getattr(value, "__module__", "__main__") != "__main__" and load(name) is value
        except HocketError:
            known = False
        hint = "give it a name in a module or file of its own"
        return name if known else place.report_unwritable(value, hint)

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
