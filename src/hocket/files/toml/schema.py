"""The JSON Schema of scenario files, for editors: completion, descriptions, red lines under mistakes.

In:  the codec
Out: docs/hocket.schema.json

A scenario file names it in its first line: `#:schema https://.../hocket.schema.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hocket.files.toml.codec import DEFINED, FILE


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file."""
    return {
        # the TOML plug-ins of editors understand draft 7
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hocket scenario",
        **FILE.schema(),
        "$defs": {defined.name: defined.definition() for defined in DEFINED},
    }


def schema_text() -> str:
    """Return the schema as it is published."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def publish(path: Path | str = "docs/hocket.schema.json") -> None:
    """Write the schema to a file."""
    Path(path).write_text(schema_text(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    publish()
