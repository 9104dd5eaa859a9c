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

from hocket.files.whole import write_text


def write_json(target: Path, facts: Mapping[str, Any]) -> None:
    """Write facts as JSON, or print them."""
    text = json.dumps(_json_value(facts), indent=2, allow_nan=False) + "\n"
    if str(target) == "-":
        print(text, end="")
    else:
        write_text(target, text)


def _json_value(value: Any) -> Any:
    """Return a value as JSON can hold it: it has no infinity."""
    if isinstance(value, Mapping):
        return {str(key): _json_value(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
