"""The folder of a sweep, in which it can go on; and the parts that a sweep is cut into.

In:  a folder, and what is swept there
Out: which of its runs need not be made again
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from hocket.errors import FileError, HocketError, ScenarioError
from hocket.files.atomic_files import write_text
from hocket.files.checkpoint import checkpoints_of
from hocket.files.run_folder import Run
from hocket.files.toml import dumps
from hocket.model.arguments import is_whole
from hocket.model.experiment import Experiment

SWEEP = "sweep.json"
"""The file in the folder of a sweep that says what is swept."""


def parse_shard(shard: str | tuple[int, int] | None) -> tuple[int, int]:
    """Return which of how many parts, from 1 on: "3/10" is (3, 10)."""
    if shard is None:
        return 1, 1
    parts: Sequence[Any] = shard.split("/") if isinstance(shard, str) else shard
    try:
        part, parts_in_all = (int(each) if isinstance(each, str) else each for each in parts)
        fits = is_whole(part, 1) and is_whole(parts_in_all, 1) and part <= parts_in_all
    except (TypeError, ValueError):
        fits = False
    if not fits:
        what = f"{shard!r:.40} is not a shard"
        raise ScenarioError(what, "shard", '"3/10": the third of ten parts', "1/10 to 10/10")
    return part, parts_in_all


def digest_experiment(experiment: Experiment) -> str:
    """Return what tells one scenario from another; code is known by its name only."""
    try:
        text = dumps(experiment)
    except HocketError:  # it holds what has no name in a file
        text = repr(experiment.composite)
    return sha256(text.encode()).hexdigest()


def digest_file(path: Path) -> str:
    """Return what tells one file from another; of a run folder, its newest checkpoint."""
    file = next(iter(checkpoints_of(path)), path) if path.is_dir() else path
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        what = f"`{path.name}` cannot be read: {error.strerror}"
        raise FileError(
            what, str(path), "a checkpoint, or the folder of a run that has written one"
        ) from None


def begin_sweep_folder(place: Path, facts: Mapping[str, Any], file_name: str, kind: str) -> bool:
    """Write down what is made in a folder; return whether the same was begun there before.

    Raises ScenarioError where the folder holds another one.
    """
    file = place / file_name
    if file.exists():
        try:
            before = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, OSError):
            before = None
        if before != facts:
            hint = "another folder, or remove this one"
            raise ScenarioError(f"{place} holds another {kind}", "folder", "the same arguments again", hint)
        return True
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the folder `{place}` cannot be made: {error.strerror}", str(place)) from None
    write_text(file, json.dumps(facts, indent=1))
    return False


def completed_runs(folder: Path, sets: Sequence[Mapping[str, Any]]) -> dict[int, Run]:
    """Return the runs in a folder that have come to their end with these parameters, by number."""
    found: dict[int, Run] = {}
    for number, parameters in enumerate(sets):
        path = folder / f"{number + 1:03}"
        if not path.is_dir():
            continue
        try:
            run = Run(path.absolute())
            wanted = json.loads(json.dumps(dict(parameters), default=str))
            if run.is_complete and run.info.get("parameters", {}) == wanted:
                found[number] = run
        except (HocketError, OSError):
            continue
    return found
