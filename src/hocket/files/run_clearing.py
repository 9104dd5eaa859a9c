"""Run folders are cleared: the files of a run are deleted, and nothing else that is there.

In:  a folder
Out: the same without its run; what is not the folder of a run is refused
"""

from __future__ import annotations

from pathlib import Path

from hocket.engine.recording import CHECKSUMS, RESCUED, SAMPLES
from hocket.errors import FileError
from hocket.files.checkpoint import CHECKPOINT, NEXT, PREVIOUS
from hocket.files.run_facts import FACTS, read_facts

SCENARIO, PLAN, REPORT = "scenario.toml", "plan.txt", "report.html"
TRUST, BANDS = "trust.json", "trust.arrow"
RUN_FILES = (REPORT, TRUST, BANDS, CHECKPOINT, PREVIOUS, NEXT, SCENARIO, PLAN, FACTS)
"""run.json goes last: should the deletion be interrupted, the folder is still known as a run."""


def clear_unfinished(folder: Path) -> None:
    """Delete what a process has left that was killed while it began a run, in a folder of ours."""
    known = {*RUN_FILES, SAMPLES}
    if folder.is_dir() and all(path.name in known or path.suffix == ".new" for path in folder.iterdir()):
        _delete_run(folder)
        for path in folder.glob("*.new"):
            path.unlink()


def clear_folder(folder: Path, overwrite: bool) -> None:
    """Delete the run in a folder, and only that."""
    if not _is_run(folder):
        expected = "a new folder, an empty one, or one that holds a run"
        raise FileError(f"`{folder.name}` has other files in it", where=str(folder), expected=expected)
    if not overwrite:
        hint = "choose another folder, or replace that run with overwrite=True"
        raise FileError(f"`{folder.name}` holds a run already", where=str(folder), hint=hint)
    _delete_run(folder)


def _delete_run(folder: Path) -> None:
    samples = folder / SAMPLES
    for suffix in (".arrow", RESCUED):
        for path in samples.glob(f"[0-9][0-9][0-9]*-*{suffix}"):
            path.unlink()
    (samples / CHECKSUMS).unlink(missing_ok=True)
    if samples.is_dir() and not any(samples.iterdir()):
        samples.rmdir()
    for name in RUN_FILES:
        (folder / name).unlink(missing_ok=True)


def _is_run(folder: Path) -> bool:
    """Return whether a folder holds a run, be it damaged."""
    try:
        return read_facts(folder) is not None
    except FileError:
        return True
