"""What a file says about somebody's code: its name, where it is, the parameters it gets.

In:  texts such as "plant.py:Tank", tables of parameters
Out: the same, once the code is known to be there; and back from classes and functions
"""

from __future__ import annotations

import datetime
import os.path
from typing import Any

import numpy as np

from hocket.errors import HocketError
from hocket.files.toml.forms import MappingForm
from hocket.files.toml.place import WRONG, FilePlace
from hocket.simulators.loading import load, qualified_name


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
        folder = place.sibling_value("folder")
        start = FolderForm().read(folder, place) if isinstance(folder, str) else place.source.folder
        return WRONG if place.attempt(lambda: load(value, start)) is WRONG else value

    def write(self, value: Any, place: FilePlace) -> Any:
        if isinstance(value, str) or value is None:
            return value
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
VALUES = MappingForm(AnyValueForm(), "a table of parameters: { mass = 2.5 }")
