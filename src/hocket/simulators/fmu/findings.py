"""What was found out about FMUs, kept by the hash of their content: a file each in the cache.

In:  an Fmu; a topic, and facts that JSON can hold
Out: the same facts, also in later processes; none where the file is damaged or of another version
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from hocket.simulators.fmu.archive import DESCRIPTION, cache_folder

VERSION = 1
"""Of the files: those of another version are as if they were not there."""
PROBED, SAVING = "probe", "saving"
"""The topics of what probes found untrue, and of how a saved state stops an FMU."""
_MARK = "hocket_findings"

_hashes: dict[tuple[tuple[str, int, int], ...], str] = {}


class FmuFiles(Protocol):
    """The files of an FMU: what its hash is made of."""

    @property
    def file(self) -> Path: ...
    @property
    def unpacked_folder(self) -> Path: ...
    @property
    def binary(self) -> Path: ...


def content_hash(model: FmuFiles) -> str:
    """Return the hash of model description and binary; raises FileError where there is no binary."""
    paths = (model.unpacked_folder / DESCRIPTION, model.binary)
    status = [path.stat() for path in paths]
    key = tuple((str(path), s.st_mtime_ns, s.st_size) for path, s in zip(paths, status, strict=True))
    if key not in _hashes:
        parts = []
        for path in paths:
            with path.open("rb") as file:
                parts.append(hashlib.file_digest(file, "sha256").digest())
        _hashes[key] = hashlib.sha256(b"".join(parts)).hexdigest()
    return _hashes[key]


def read_findings(model: FmuFiles, topic: str) -> dict[str, Any]:
    """Return what was kept of an FMU under a topic; empty: nothing."""
    found = _read(_file(model)).get(topic)
    return found if isinstance(found, dict) else {}


def keep_findings(model: FmuFiles, topic: str, facts: dict[str, Any]) -> None:
    """Keep facts of an FMU in place of those of the same topic. A cache that cannot be written keeps none."""
    path = _file(model)
    whole = {_MARK: VERSION, "file": model.file.name, **_read(path), topic: facts}
    with suppress(OSError):
        handle, fresh = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(whole, file, indent=1)
            os.replace(fresh, path)
        except BaseException:
            os.unlink(fresh)
            raise


def _file(model: FmuFiles) -> Path:
    return cache_folder("findings") / f"{content_hash(model)}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return whole if isinstance(whole, dict) and whole.get(_MARK) == VERSION else {}
