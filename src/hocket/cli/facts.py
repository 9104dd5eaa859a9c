"""What a verb found, as JSON.

In:  facts, and where they shall go: a file, or - for the screen
Out: JSON there
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hocket.engine.recording import unwritable
from hocket.files.whole import write_text


def keep(target: Path, facts: Mapping[str, Any]) -> None:
    """Write facts as JSON, or print them.

    What is no file (a pipe, a device) is written into: only files are replaced whole.
    """
    text = json.dumps(_plain(facts), indent=2, allow_nan=False) + "\n"
    if str(target) == "-":
        print(text, end="")
    elif target.exists() and not target.is_file():
        try:
            with target.open("w", encoding="utf-8") as pipe:
                pipe.write(text)
        except OSError as error:
            raise unwritable(target, error) from error
    else:
        write_text(target.resolve(), text)


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: it has no infinity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
