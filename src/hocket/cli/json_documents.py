"""What `--json` writes: one document for each verb, with a version, and the schema of all of them.

In:  the facts of a verb, as people name them
Out: keys in snake_case that stay as they are within a version; a JSON Schema
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

VERSION = 1
"""It grows when a key goes or means something else; new keys may come without."""
BY_NAME = ("spectral radius of levels", "limits", "now", "parameters", "final", "files", "versions")
"""Tables whose keys are names of the user's, and stay as they are."""
_NOT_IN_KEYS = re.compile(r"[^a-z0-9]+")


def json_document(verb: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts as a document. JSON has no infinity and no NaN: they are null."""
    names = facts.get("names", ())
    return {"hocket_json": VERSION, "verb": verb} | {
        snake_case(key): _json_value(value, key in BY_NAME, names) for key, value in facts.items()
    }


def snake_case(key: str) -> str:
    """Return what a key is called in JSON: `dwell time [s]` is dwell_time_s, `5 %` is percentile_5.

    The column of a table that has no heading marks what is chosen.
    """
    name = _NOT_IN_KEYS.sub("_", key.lower()).strip("_") or "chosen"
    return f"percentile_{name}" if name[0].isdigit() else name


def _json_value(value: Any, by_name: bool, names: Collection[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key if by_name or _is_name(str(key), names) else snake_case(str(key)): _json_value(
                each, key in BY_NAME, names
            )
            for key, each in value.items()
        }
    if isinstance(value, (list, tuple, set)):
        return [_json_value(each, by_name, names) for each in value]
    if isinstance(value, float):  # a share too: its text is for people
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


def _is_name(key: str, names: Collection[str]) -> bool:
    """Return whether a key is a path of the user's, such as `axle.step`, or a name that varies."""
    return key in names or bool(re.search(r"\w\.\w|\[\d+(, ?\d+)*\]", key))


_Schema: TypeAlias = dict[str, Any]
_TEXT: _Schema = {"type": "string"}
_NUMBER: _Schema = {"type": ["number", "null"]}
_TEXTS: _Schema = {"type": "array", "items": _TEXT}
_FLAG: _Schema = {"type": "boolean"}
_ROWS: _Schema = {"type": "array", "items": {"type": "object"}}
_SNAKE = "^[a-z][a-z0-9_]*$"
_MAP: _Schema = {"type": "object"}
_VERDICT: dict[str, _Schema] = {"good": _FLAG, "outcome": _TEXT, "verdict": _TEXTS}
KEYS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "run": {
        "name": _TEXT, "status": _TEXT, "good": _FLAG, "folder": _TEXT, "start": _NUMBER, "stop": _NUMBER,
        "reached": _NUMBER, "engine": _TEXT, "error": _TEXT, "wall_seconds": _NUMBER, "notes": _TEXTS,
        "ports": {
            "type": "array",
            "items": {
                "type": "object", "required": ["port", "unit", "last"],
                "properties": {"port": _TEXT, "unit": _TEXT, "last": _NUMBER},
            },
        },
    },
    "check": _VERDICT,
    "compare": {**_VERDICT, "differences": _ROWS, "reference": _TEXT, "other": _TEXT, "tolerance": _TEXT,
                "missing": _TEXTS, "extra": _TEXTS},
    "study": {**_VERDICT, "uncertainty": _ROWS, "runs": {"type": "integer"}},
    "fit": {**_VERDICT, "fitted_parameters": _ROWS, "residuals": _ROWS, "runs": {"type": "integer"},
            "converged": _FLAG},
    "nest": {"verdict": _TEXTS, "nested": _FLAG, "strengths": _ROWS, "compared": _ROWS},
    "compile": {"passes": _ROWS, "inserted": _ROWS, "idle": _TEXTS},
    "tune": {"objectives": _TEXTS, "limits": _MAP, "judged": {"type": "integer"}, "now": _MAP, "front": _ROWS,
             "notes": _TEXTS, "changes": _ROWS, "runs": _ROWS},
    "capabilities": {"capabilities": _ROWS, "needs": _ROWS},
    "sweep": {"folder": _TEXT, "good": _FLAG, "runs": _ROWS},
    "show": {"name": _TEXT, "levels": _ROWS, "models": _ROWS, "connections": _ROWS, "notes": _TEXTS},
    "plan": {"name": _TEXT, "levels": _ROWS, "simulator_steps": _MAP, "values_exchanged": _NUMBER,
             "macro_step": _NUMBER, "notes": _TEXTS},
    "describe": {"name": _TEXT, "terms": _ROWS, "notes": _TEXTS},
    "probe": {"good": _FLAG, "summary": _TEXT, "findings": _ROWS},
}  # fmt: skip
"""For each verb with `--json`: the keys that are always there, and their schemas."""


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `--json` writes."""
    head = {"hocket_json": {"const": VERSION}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "What hocket writes with --json",
        "type": "object",
        "required": ["hocket_json", "verb"],
        "propertyNames": {"pattern": _SNAKE},
        "oneOf": [
            {
                "title": verb,
                "properties": {**head, "verb": {"const": verb}, **keys},
                "required": ["hocket_json", "verb", *keys],
            }
            for verb, keys in KEYS.items()
        ],
    }


def document_schema_text() -> str:
    """Return the schema as it is published."""
    return json.dumps(document_schema(), indent=2) + "\n"
