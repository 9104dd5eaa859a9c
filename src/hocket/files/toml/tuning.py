"""What `hocket tune` may choose and what counts, in a file: the table `[tune]`.

In:  a table such as `step = "1 ms:100 ms:9:log"`, `objectives = ["rho", "delta"]`, `limits = { rho = 1 }`
Out: a Tuning, and back
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hocket.files.study import Tuning
from hocket.files.toml.forms import NUMBER, TEXTS
from hocket.files.toml.layout import Section
from hocket.files.toml.place import WRONG, FilePlace

OBJECTIVES, LIMITS = "objectives", "limits"


class TuneForm:
    """Texts by name; `two.F.alpha` without quotes is a table in a table, and meant as a name."""

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, 'a table of what may be chosen: step = "1 ms:100 ms:9:log"')
        rest = {key: each for key, each in value.items() if key not in (OBJECTIVES, LIMITS)}
        over = dict(self._flatten_texts(rest, place))
        goals = TEXTS.read(value.get(OBJECTIVES, []), place / OBJECTIVES)
        limits = self._read_limits(value.get(LIMITS, {}), place / LIMITS)
        if WRONG in (goals, limits, *over.values()):
            return WRONG
        return Tuning(over, tuple(goals), limits)

    def _flatten_texts(
        self, table: Mapping[str, Any], place: FilePlace, before: str = ""
    ) -> Iterator[tuple[str, Any]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from self._flatten_texts(value, place / key, f"{before}{key}.")
            else:
                yield f"{before}{key}", _join_values(value, place / key)

    def _read_limits(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, "a table of numbers: limits = { rho = 1, work = 2 }")
        found = {name: NUMBER.read(each, place / name) for name, each in value.items()}
        return WRONG if WRONG in found.values() else found

    def write(self, value: Tuning, place: FilePlace) -> Any:  # noqa: ARG002
        made = Section(value.over)
        if value.objectives:
            made[OBJECTIVES] = list(value.objectives)
        if value.limits:
            made[LIMITS] = dict(value.limits)
        return made or None

    def schema(self) -> dict[str, Any]:
        one = {"anyOf": [{"type": "string"}, {"type": "number"}]}
        several = {"type": "array", "items": {"anyOf": [*one["anyOf"], {"type": "array"}]}}
        return {
            "type": "object",
            "properties": {
                OBJECTIVES: TEXTS.schema() | {"description": "what counts, such as error and work"},
                LIMITS: {
                    "type": "object",
                    "additionalProperties": NUMBER.schema(),
                    "description": "what may not be passed",
                },
            },
            "additionalProperties": {"anyOf": [*one["anyOf"], several, {"type": "object"}]},
        }


def _join_values(value: Any, place: FilePlace) -> Any:
    """Return values as one text; a list is one with commas, a list in it, as an order is, one with blanks."""
    if isinstance(value, list) and value:
        texts = [" ".join(map(str, each)) if isinstance(each, list) else _scalar_text(each) for each in value]
        if None not in texts:
            return ", ".join(map(str, texts))
    found = _scalar_text(value)
    if found is None:
        return place.report_unexpected(value, 'values: "1 ms:100 ms:9:log", "hold, linear", or a list')
    return found


def _scalar_text(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None


CHOICES = TuneForm()
