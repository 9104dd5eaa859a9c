"""What run.json says of a run: its shape, its checksum, and the process that wrote it.

In:  the folder of a run
Out: facts that have the form they should, or an error that says what is damaged
"""

from __future__ import annotations

import json
import math
import os
import platform
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from hocket.errors import FileError
from hocket.files.atomic_files import read_text

Status: TypeAlias = Literal[
    "running", "finished", "diverged", "ended", "stopped", "failed", "crashed", "killed"
]
"""`diverged`: it came to its end, with values that no digit of its start is left in. `stopped` is Ctrl-C.
`crashed`: its process ended by a signal or inside an FMU, of which `error` tells;
`killed`: its process is gone without a word."""
UNFINISHED: tuple[Status, ...] = ("running", "crashed", "killed")
"""Of a run that was not ended in order; what stands last of it may be torn."""

FACTS = "run.json"
MARK, FORMAT = "hocket_run", 2
SEALED = 2
"""The first format with checksums."""
CHECKSUM = "checksum"
_WRITTEN = "a folder as hocket wrote it"


def checksum(content: bytes | str) -> str:
    """Return the CRC-32 of a text or of bytes, as it stands in files."""
    return f"crc32:{zlib.crc32(content.encode() if isinstance(content, str) else content):08x}"


def seal(
    facts: Mapping[str, Any], default: Callable[[Any], Any] | None = None, indent: int | None = 1
) -> str:
    """Return facts as the text of a JSON file that ends with its own checksum.

    The checksum is that of the values: spaces and line breaks may change. None as `indent` is fast.
    """
    plain = json.loads(json.dumps(facts, default=default))
    return json.dumps({**plain, CHECKSUM: _seal_of(plain)}, indent=indent, ensure_ascii=False) + "\n"


def _seal_of(plain: Mapping[str, Any]) -> str:
    """Return the checksum of the values but for itself; the words of a crash are written as it happens."""
    open_ended = (CHECKSUM, "error") if plain.get("status") == "crashed" else (CHECKSUM,)
    return checksum(json.dumps({key: value for key, value in plain.items() if key not in open_ended}))


def parse_sealed(
    text: str, where: str, mark: str = MARK, check: Callable[[Mapping[str, Any]], None] | None = None
) -> dict[str, Any] | None:
    """Return what a JSON file says; None: it is not one of hocket's. Raises FileError if it is damaged.

    `mark` is the key of its format; files of format 1 have no checksum. `check` looks at the shape first: it
    can say more than that something was changed. A key that stands twice is damage, whatever it says.
    """
    repeated: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        repeated.extend(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        return table

    try:
        facts = json.loads(text, object_pairs_hook=collect)
        known = isinstance(facts, dict) and type(facts.get(mark)) is int
    except (ValueError, RecursionError):
        return None
    if not known:
        return None
    if facts[mark] > FORMAT:
        return dict(facts)  # whatever a newer hocket makes of it
    name = Path(where).name
    if repeated:
        what = f"`{name}` is damaged: `{repeated[0]}` stands in it twice"
        raise FileError(what, where, _WRITTEN, "a copy of it, if there is one")
    if check is not None:
        check(facts)
    told = facts.get(CHECKSUM)
    if told is None and facts[mark] < SEALED:
        return dict(facts)
    if told != _seal_of(facts):
        what = f"`{name}` is damaged: it was changed since hocket wrote it"
        raise FileError(what, where, _WRITTEN, "a copy of it, if there is one")
    return dict(facts)


def read_facts(folder: Path) -> dict[str, Any] | None:
    """Return what run.json says; None if there is none of hocket's; raises FileError if it is damaged."""
    try:
        text = read_text(folder / FACTS)
    except FileError:
        return None
    return parse_sealed(text, str(folder / FACTS), check=lambda facts: _check_shape(facts, folder))


def _is_number(value: Any) -> bool:
    with suppress(OverflowError):
        return type(value) in (int, float) and not math.isinf(float(value))
    return False


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _is_table_of(item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(item, value.values()))


def _is_list_of(item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(item, value))


def _has(**fields: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return what tells whether a value is a table with these fields, and perhaps more."""

    def fits(value: Any) -> bool:
        return isinstance(value, dict) and all(
            key in value and is_(value[key]) for key, is_ in fields.items()
        )

    return fits


def _is_counts(value: Any) -> bool:
    inner = _is_table_of(_is_number)
    nested = _is_table_of(lambda each: _is_number(each) or inner(each))
    return isinstance(value, dict) and all(_is_number(each) or nested(each) for each in value.values())


def _is_sample_file(value: Any) -> bool:
    """Return whether it names a file in the folder of samples, and none elsewhere."""
    return _is_text(value) and value.startswith("samples/") and Path(value).name == value[len("samples/") :]


_SHAPE: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "status": lambda value: value in get_args(Status),
    "error": _is_text,
    "begun": _is_text,
    "host": _is_text,
    "process": lambda value: type(value) is int and 0 <= value < 1 << 31,
    "process_start": _is_text,
    "versions": _is_table_of(_is_text),
    "engine": _is_text,
    "why_interpreted": _is_text,
    "start": _is_number,
    "stop": _is_number,
    "reached": _is_number,
    "tables": _is_list_of(_has(name=_is_text, file=_is_sample_file, columns=_is_count)),
    "notes": _is_list_of(_is_text),
    "counts": _is_counts,
    "timings": _has(wall=_is_number, phases=_is_table_of(_is_number)),
    "bonds": _is_table_of(_has(given=_is_number, taken=_is_number, gained=_is_number, unit=_is_text)),
    "stored": _is_table_of(_has(start=_is_number, end=_is_number)),
    "realtime": _has(overruns=_is_count, largest_lag=_is_number, factor=_is_number),
    "parameters": lambda value: isinstance(value, dict),
    "checkpoint_every": _is_number,
    "resumed": _is_list_of(_is_number),
    "files": _is_table_of(_is_text),
    "sources": _is_list_of(_has(model=_is_text, path=_is_text, sha256=_is_text)),
    "origin": _is_text,
    "ended_by": _is_text,
    "torn": lambda value: value is True,
    "checksums": _has(bytes=_is_count, crc=_is_text),
}
"""What each entry of run.json must be, if it is there."""
_ALWAYS = ("name", "status", "process", "versions")
_AT_THE_END = ("reached", "timings", "counts")


def _check_shape(facts: Mapping[str, Any], folder: Path) -> None:
    ended = facts.get("status") not in UNFINISHED
    needed = (*_ALWAYS, *(_AT_THE_END if ended else ()))
    for key, fits in _SHAPE.items():
        if (key not in facts and key not in needed) or (key in facts and fits(facts[key])):
            continue
        told = f"is {facts[key]!r:.40}" if key in facts else "is missing"
        what = f"the {FACTS} of `{folder.name}` is damaged: `{key}` {told}"
        raise FileError(what, str(folder / FACTS), _WRITTEN)


# the process of a run: a number may be given to another process once it is free


def process_start(number: int) -> str:
    """Return when a process was started, which no other of its number has in common with it.

    Empty: there is none, or that cannot be known on this platform.
    """
    try:
        stat = Path(f"/proc/{number}/stat").read_text(errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    # the name of the program stands in brackets, and may hold anything
    fields = stat.rpartition(")")[2].split()
    return f"{boot}:{fields[19]}" if len(fields) > 19 else ""


@cache
def _start_of_own(number: int) -> str:
    return process_start(number)


def own_start() -> str:
    """Return when this process was started; asked of the system once."""
    return _start_of_own(os.getpid())


if hasattr(os, "register_at_fork"):  # a child may get the number of an ancestor that is gone
    os.register_at_fork(after_in_child=_start_of_own.cache_clear)


def process_is_gone(facts: Mapping[str, Any]) -> bool:
    """Return whether the process that wrote a run on this machine is no longer there."""
    if os.name != "posix" or facts.get("host") != platform.node() or "process" not in facts:
        return False
    number, began = facts["process"], facts.get("process_start")
    if began and (now := process_start(number)):
        return bool(now != began)
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def process_tag(number: int) -> str:
    """Return what tells a process from all others, as part of a name: machine, number and start."""
    began = own_start() if number == os.getpid() else process_start(number)
    return f"{_machine_tag()}-{number}-{zlib.crc32(began.encode()):08x}"


def _machine_tag() -> str:
    """Return a mark of this machine, or container: processes elsewhere may have the same numbers."""
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{zlib.crc32(f'{platform.node()} {space}'.encode()):08x}"


def is_abandoned(tag: Sequence[str]) -> bool:
    """Return whether the process of a tag, in its three parts, is gone; False where that cannot be known."""
    machine, number, _ = tag
    if (
        os.name != "posix"
        or machine != _machine_tag()
        or not number.isdecimal()
        or not process_start(os.getpid())
    ):
        return False
    return process_tag(int(number)) != "-".join(tag)
