"""The run folder, the only seam between running and looking, while it is written.

In:  the scenario and the plan as text, and how the run went
Out: run.json, scenario.toml and plan.txt beside the samples
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from hocket.engine.recording import SAMPLES, SampleTable, write_error
from hocket.errors import FileError
from hocket.files.run import FACTS, FORMAT, MARK, PLAN, REPORT, SCENARIO, Run, Status, read_facts
from hocket.files.trust import BANDS, TRUST
from hocket.files.whole import write_text

Time: TypeAlias = float | Fraction


class RunFolder:
    """A run being written: `create`, then `begin`, the recorder's blocks, and `end`."""

    def __init__(self, path: Path, name: str, keep: object = None):
        self.path = path
        self._keep = keep
        self._since = time.perf_counter()
        self._facts: dict[str, Any] = {
            MARK: FORMAT,
            "name": name,
            "status": "running",
            "error": "",
            "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "host": platform.node(),
            "process": os.getpid(),
            "versions": _software_versions(),
        }
        self._save()

    @staticmethod
    def create(path: Path | str | None, name: str, overwrite: bool = False) -> RunFolder:
        """Make the folder; None: a temporary one, removed with the last RunFolder or Run that holds it.

        With `overwrite` a run that is there already is deleted, but nothing else that is in the folder.
        """
        folder = Path(tempfile.gettempdir() if path is None else path).absolute()
        try:
            if path is None:
                temporary = _TemporaryFolder(name)
                return RunFolder(temporary.path, name, temporary)
            if folder.exists() and not folder.is_dir():
                expected = "a new folder, an empty one, or one that holds a run"
                raise FileError(f"`{folder.name}` is a file", where=str(folder), expected=expected)
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                _clear_folder(folder, overwrite)
        except OSError as error:
            raise write_error(folder, error) from error
        return RunFolder(folder, name)

    def begin(
        self,
        tables: Sequence[SampleTable],
        *,
        scenario: str,
        plan: str,
        engine: str,
        start: Time,
        stop: Time,
        notes: Sequence[str] = (),
    ) -> None:
        """Write down what is about to be run, from when to when in seconds."""
        write_text(self.path / SCENARIO, scenario)
        write_text(self.path / PLAN, plan)
        listed = [
            {"name": table.name, "file": f"{SAMPLES}/{table.file_name(i)}", "columns": len(table.columns)}
            for i, table in enumerate(tables)
        ]
        self._facts |= {"engine": engine, "start": start, "stop": stop, "tables": listed}
        self._facts["notes"] = list(notes)
        self._save()

    def add(self, facts: Mapping[str, Any]) -> None:
        """Add to run.json, the next time it is written."""
        self._facts |= facts

    def end(
        self,
        status: Status,
        *,
        reached: Time,
        counts: Mapping[str, Any] = MappingProxyType({}),
        phases: Mapping[str, float] = MappingProxyType({}),
        error: str = "",
    ) -> Run:
        """Write down how it went; phases are in seconds of real time. Return what can be looked at."""
        wall = time.perf_counter() - self._since
        self._facts |= {"status": status, "error": error, "reached": reached, "counts": dict(counts)}
        self._facts["timings"] = {"wall": wall, "phases": dict(phases)}
        self._save()
        return Run(self.path, self._keep)

    def _save(self) -> None:
        text = json.dumps(self._facts, indent=1, ensure_ascii=False, default=_plain_number)
        write_text(self.path / FACTS, text + "\n")


class _TemporaryFolder:
    """A folder that goes when nothing holds this object any more, or when the interpreter ends."""

    def __init__(self, name: str):
        readable = re.sub(r"[^\w.-]", "_", name)[:40]
        self.path = Path(tempfile.mkdtemp(prefix=f"hocket-{readable}-"))
        weakref.finalize(self, _remove_folder, self.path, os.getpid())


def _remove_folder(path: Path, owner: int) -> None:
    # A forked child holds a copy of every Run, but the folder is its parent's.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def _clear_folder(folder: Path, overwrite: bool) -> None:
    """Delete the run in a folder, and only that."""
    if read_facts(folder) is None:
        expected = "a new folder, an empty one, or one that holds a run"
        raise FileError(f"`{folder.name}` has other files in it", where=str(folder), expected=expected)
    if not overwrite:
        hint = "choose another folder, or replace that run with overwrite=True"
        raise FileError(f"`{folder.name}` holds a run already", where=str(folder), hint=hint)
    samples = folder / SAMPLES
    for path in samples.glob("[0-9][0-9][0-9]*-*.arrow"):
        path.unlink()
    if samples.is_dir() and not any(samples.iterdir()):
        samples.rmdir()
    # run.json goes last: should this be interrupted, the folder is still known as a run.
    for name in (REPORT, TRUST, BANDS, SCENARIO, PLAN, FACTS):
        (folder / name).unlink(missing_ok=True)


def _plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else float(value)


def _software_versions() -> dict[str, str]:
    try:
        hocket = version("hocket")
    except PackageNotFoundError:
        hocket = "not installed"
    return {
        "hocket": hocket,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "platform": platform.platform(),
    }
