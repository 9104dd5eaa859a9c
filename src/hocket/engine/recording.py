"""Keeps the rows of a run: each rate has its own table, each table is one Arrow stream on disk.

In:  blocks of rows, as the engine accepts its steps
Out: samples/*.arrow, readable up to the last block even if the process was killed; their checksums

`samples/checksums` has a record for each message of each file, in the order of writing: its table, its rows,
where it ends, and its CRC-32. What is read is compared with it. The data are written first: what has no
record yet is not read.
"""

from __future__ import annotations

import errno
import os
import re
import struct
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hocket.errors import FileError, HocketError, InternalError
from hocket.model.protocols import Array

SAMPLES, CHECKSUMS = "samples", "checksums"
MOVING, HELD, EVENT = "moving", "held", "event"
"""Kinds of columns: what they are between two rows."""
RESCUED = ".rows"
"""What a table's file of rows ends with that compiled code wrote when the process crashed."""
_NAME, _UNIT, _KIND = b"hocket.table", b"unit", b"kind"
_AT_ONCE = 1 << 30  # macOS refuses to write 2 GiB in one call
_TORN = (pa.ArrowException, OSError, EOFError)


@dataclass(frozen=True, slots=True)
class SampleTable:
    """The rows of one rate. Columns are port paths (`axle.wheel.force`), without the time.

    The name is the path of its level, "" for the outermost one, or `axle.wheel@micro`.
    """

    name: str
    columns: tuple[str, ...]
    units: tuple[str, ...] = ()
    """One per column; left out: none has a unit."""
    kinds: tuple[str, ...] = ()
    """One per column: MOVING between its rows, HELD there, or an EVENT, absent there; empty: not known."""

    def __post_init__(self) -> None:
        for name, given in (("units", self.units), ("kinds", self.kinds)):
            if given and len(given) != len(self.columns):
                counts = f"{len(given)} {name} for {len(self.columns)} columns"
                raise InternalError(f"table `{self.name}` has {counts}")
            object.__setattr__(self, name, given or ("",) * len(self.columns))

    @property
    def time_heading(self) -> str:
        """The heading of the time column: `time`, unless a port is called so."""
        return "time" if "time" not in self.columns else "time [s]"

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema: the time, then the columns, each with its unit as metadata."""
        names, units = (self.time_heading, *self.columns), ("s", *self.units)
        fields = [
            pa.field(
                name, pa.float64(), nullable=False, metadata={_UNIT: unit} | ({_KIND: kind} if kind else {})
            )
            for name, unit, kind in zip(names, units, ("", *self.kinds), strict=True)
        ]
        return pa.schema(fields, metadata={_NAME: self.name})

    @staticmethod
    def from_schema(schema: pa.Schema) -> SampleTable | None:
        """Return the table that a schema was made from; None if it is not one of hocket's."""
        name = (schema.metadata or {}).get(_NAME)
        if name is None:
            return None
        units = tuple((field.metadata or {}).get(_UNIT, b"").decode() for field in schema)
        kinds = tuple((field.metadata or {}).get(_KIND, b"").decode() for field in schema)
        return SampleTable(name.decode(), tuple(schema.names[1:]), units[1:], kinds[1:])

    def file_name(self, index: int) -> str:
        """Return the name of its file; the index keeps apart what a file system may not (case, length)."""
        readable = re.sub(r"[^\w.@-]", "_", self.name or "outermost")[:60]
        return f"{index:03}-{readable}.arrow"


_RECORD = np.dtype([("table", "<u4"), ("rows", "<u4"), ("end", "<u8"), ("crc", "<u4"), ("guard", "<u4")])
"""A record of the checksums; `guard` is that of the record itself."""


_PACKED = struct.Struct("<IIQII")


def _guard(table: Any, rows: Any, end: Any, crc: Any) -> Any:
    """Return the guard of a record, or those of many: each field counts, and zeros have another than zero."""
    low, high = end & 0xFFFFFFFF, end >> 32
    mixed = 0x9E3779B1 ^ (crc * 0x85EBCA77) ^ (low * 0xC2B2AE3D) ^ (high * 0x27D4EB2F)
    return (mixed ^ (table * 0x165667B1) ^ (rows * 0x2545F491)) & 0xFFFFFFFF


def _guards(records: Any) -> Any:
    """Return the guards that records should have."""
    return _guard(*(records[name].astype(np.uint64) for name in ("table", "rows", "end", "crc"))).astype(
        "<u4"
    )


class Checksums:
    """The checksums of a run, as they are on disk; they grow while it runs.

    `unfinished`: it was not ended in order, and what stands last may be torn.
    """

    def __init__(self, path: Path, unfinished: bool):
        self.path = path
        self.unfinished = unfinished
        self._size = -1
        self._records: dict[int, Any] = {}

    def of(self, table: int) -> Any:
        """Return the records of a table, oldest first."""
        try:
            size = self.path.stat().st_size
            if size != self._size:
                self._records, self._size = self._read(), size
        except OSError as error:
            what = f"cannot read `{SAMPLES}/{self.path.name}`: {error.strerror or error}"
            raise FileError(what, str(self.path), "the checksums of the samples") from error
        return self._records.get(table, np.empty(0, _RECORD))

    def _read(self) -> dict[int, Any]:
        raw = self.path.read_bytes()
        whole = np.frombuffer(raw[: len(raw) // _RECORD.itemsize * _RECORD.itemsize], _RECORD)
        bad = np.flatnonzero(_guards(whole) != whole["guard"])
        good = int(bad[0]) if len(bad) else len(whole)
        torn = good < len(whole) or len(raw) % _RECORD.itemsize
        later = len(bad) < len(whole) - good  # a good one stands after a bad one
        if torn and (later or not self.unfinished):
            raise damage_error(self.path, f"record {good + 1} of {len(whole)} is not as it was written")
        records = whole[:good]
        return {int(table): records[records["table"] == table] for table in np.unique(records["table"])}


def damage_error(path: Path, what: str) -> FileError:
    """Return the error for samples that are not as they were written."""
    hint = "a copy of the run, if there is one; or run it again"
    return FileError(f"`{path.name}` is damaged: {what}", str(path), "samples as hocket wrote them", hint)


class ArrowRecorder:
    """Writes each table to `folder/samples` as an Arrow IPC stream, each block as one record batch.

    It is called between macro steps, always from one thread. A file is open only while a block is appended,
    so a thousand tables need no thousand file handles, and the system has every block as soon as `write`
    returns.
    """

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        self._schemas: list[pa.Schema] = []
        self._paths: list[Path] = []
        self._ends: list[int] = []
        self._checksums: int | None = None
        self._written = 0

    def open(self, tables: Sequence[SampleTable]) -> None:
        """Get ready for blocks of these tables; called once, first."""
        samples = self.folder / SAMPLES
        try:
            samples.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(samples, error) from error
        try:
            self._checksums = os.open(samples / CHECKSUMS, _NEW_FILE, 0o666)
        except OSError as error:
            raise write_error(samples / CHECKSUMS, error) from error
        self._finalizer = weakref.finalize(self, os.close, self._checksums)
        for index, table in enumerate(tables):
            path, schema = samples / table.file_name(index), table.schema
            try:
                path.touch(exist_ok=False)
                message = schema.serialize()
                self._ends.append(_append_message(path, 0, message))
                self._note_checksum(index, 0, message)
            except OSError as error:
                raise write_error(path, error) from error
            self._paths.append(path)
            self._schemas.append(schema)

    @property
    def position(self) -> list[int]:
        """How far it is: bytes of the checksums, then of each table."""
        return [self._written, *self._ends]

    def reopen(self, tables: Sequence[SampleTable], position: Sequence[int]) -> None:
        """Go on behind what an earlier process has written up to a position; what it wrote then is cut off.

        `check_position` was asked before.
        """
        samples = self.folder / SAMPLES
        written, *ends = position
        flags = os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            self._checksums = os.open(samples / CHECKSUMS, flags)
            self._finalizer = weakref.finalize(self, os.close, self._checksums)
            os.ftruncate(self._checksums, written)
            os.lseek(self._checksums, written, os.SEEK_SET)
            self._written = written
            for (index, table), end in zip(enumerate(tables), ends, strict=True):
                path = samples / table.file_name(index)
                os.truncate(path, end)
                path.with_suffix(RESCUED).unlink(missing_ok=True)
                self._ends.append(end)
                self._paths.append(path)
                self._schemas.append(table.schema)
        except OSError as error:
            raise write_error(samples, error) from error

    def written_blocks(self) -> Iterator[tuple[int, Array]]:
        """Yield what is on disk, table by table: the number of the table, and rows with the time first."""
        checksums = Checksums(self.folder / SAMPLES / CHECKSUMS, unfinished=True)
        for index, path in enumerate(self._paths):
            samples = Samples.open(path, checksums, index)
            for block in samples.blocks(samples.table.columns) if samples else ():
                columns = [column.to_numpy() for column in block.columns]
                yield index, np.array(columns).reshape(len(columns), -1).T

    @property
    def rescue_paths(self) -> list[Path]:
        """Where the rows of each table go that still wait when the process crashes."""
        return [path.with_suffix(RESCUED) for path in self._paths]

    @property
    def count(self) -> int:
        """How many tables are ready for blocks: fewer than there should be where `open` failed."""
        return len(self._paths)

    def write(self, table: int, block: Array) -> None:
        """Keep rows of the table with that index: whole or, if this raises, not at all.

        The block has one row per time and 1 + columns columns, the first of which is the time in seconds.
        """
        if not len(block):
            return
        path, schema = self._paths[table], self._schemas[table]
        # from buffers: pa.array() would import pandas
        columns = [
            pa.Array.from_buffers(pa.float64(), len(column), [None, pa.py_buffer(column)])
            for column in np.array(block.T, dtype=float, order="C")
        ]
        message = pa.RecordBatch.from_arrays(columns, schema=schema).serialize()
        try:
            before, self._ends[table] = self._ends[table], _append_message(path, self._ends[table], message)
            try:
                self._note_checksum(table, len(block), message)
            except BaseException:  # what has no checksum is not kept
                self._ends[table] = before
                os.truncate(path, before)
                raise
        except OSError as error:
            raise write_error(path, error, "; all rows written before are kept") from error

    def _note_checksum(self, table: int, rows: int, message: pa.Buffer) -> None:
        """Append the record of a message that was written, whole or not at all."""
        assert self._checksums is not None
        fields = table, rows, self._ends[table], zlib.crc32(message)
        raw = _PACKED.pack(*fields, _guard(*fields))
        try:
            if os.write(self._checksums, raw) != len(raw):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._checksums, self._written)
                os.lseek(self._checksums, self._written, os.SEEK_SET)
            raise
        self._written += len(raw)

    def sync(self) -> None:
        """Have all that was written on the disk itself, and not only with the system."""
        for path in self._paths:
            with suppress(OSError), path.open("r+b") as file:
                os.fsync(file.fileno())
        if self._checksums is not None:
            with suppress(OSError):
                os.fsync(self._checksums)

    def close(self) -> None:
        """Let go of everything held; what was written stays."""
        if self._checksums is not None:
            self._finalizer()
            self._checksums = None
        # An Arrow stream needs no end mark: it may end with its file.
        self._paths, self._schemas, self._ends = [], [], []


_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def check_position(folder: Path, tables: Sequence[SampleTable], position: Sequence[int]) -> None:
    """Refuse a position up to which the rows of a run are not there, or not as they were written."""
    samples = folder / SAMPLES
    try:
        raw = (samples / CHECKSUMS).read_bytes()
    except OSError as error:
        raise damage_error(samples / CHECKSUMS, error.strerror or str(error)) from None
    size = _RECORD.itemsize
    if len(position) != 1 + len(tables) or position[0] % size or position[0] > len(raw):
        raise damage_error(samples / CHECKSUMS, "rows that were written before the checkpoint are missing")
    records = np.frombuffer(raw[: position[0]], _RECORD)
    if len(records) and (_guards(records) != records["guard"]).any():
        raise damage_error(samples / CHECKSUMS, "a record is not as it was written")
    for index, table in enumerate(tables):
        path = samples / table.file_name(index)
        own = records[records["table"] == index]
        data = _map_bytes(path)
        starts = [0, *(int(end) for end in own["end"])]
        if not len(own) or starts[-1] != position[1 + index]:
            raise damage_error(path, "it does not end where the checkpoint says")
        if not all(_is_as_written(data, start, record) for start, record in zip(starts, own, strict=False)):
            raise damage_error(path, "a block before the checkpoint is not as it was written")


def _append_message(path: Path, end: int, message: pa.Buffer) -> int:
    """Append the whole message to a file that ends at `end`, or nothing of it; return the new end."""
    with path.open("r+b", buffering=0) as file:
        if file.seek(0, os.SEEK_END) != end:
            raise HocketError(
                "another program has changed the samples of this run",
                where=str(path),
                hint="give each run a folder of its own; all rows written before are kept",
            )
        rest = memoryview(message)
        try:
            while rest:
                rest = rest[file.write(rest[:_AT_ONCE]) :]
        except BaseException:  # Ctrl-C may come between two pieces
            file.truncate(end)
            raise
        return end + int(message.size)


_HINTS = {
    errno.ENOSPC: "make room on this disk, record fewer ports, or choose a folder on another disk",
    errno.EFBIG: "files may not grow so large here (see `ulimit -f`): raise the limit, or record fewer ports",
    errno.ENOTDIR: "a part of this path is a file: choose another folder",
    errno.EMFILE: "too many files are open (see `ulimit -n`)",
}


def write_error(path: Path, error: OSError, and_yet: str = "") -> HocketError:
    """Return the error that says why a file cannot be written, and what to do.

    `and_yet` says what is kept of a file that was there before.
    """
    hint = _HINTS.get(error.errno or 0, "check that the folder exists and that you may write to it")
    if error.errno == errno.ENOENT:
        moved = "there is no such folder any more: was it moved or deleted during the run?"
        hint = moved if and_yet else "there is no such folder: make it first, or choose another"
    elif error.errno == errno.EEXIST:
        samples = path.parent.name == SAMPLES
        hint = "it holds samples already: choose a new folder" if samples else "a file is called so already"
    reason = error.strerror or str(error)
    return HocketError(f"cannot write `{path.name}`: {reason}{and_yet}", where=str(path), hint=hint)


@dataclass(frozen=True, slots=True)
class Samples:
    """A table as it is on disk: it may still grow, and it may end in the middle of a block.

    Each block is compared with its checksum before it is handed out, once for each of these objects. Runs of
    older versions have no checksums: what they hold is taken as it is.
    """

    path: Path
    table: SampleTable
    checksums: Checksums | None = None
    index: int = 0
    """The number of the table in the checksums."""
    verified: set[int] = field(default_factory=set, compare=False, repr=False)
    """Where the blocks end that were found to be as they were written."""

    @staticmethod
    def open(path: Path, checksums: Checksums | None = None, index: int = 0) -> Samples | None:
        """Return None if not even the heading is whole, or if the file is not one of hocket's.

        A file with checksums must be there and be whole, unless its run was not ended in order.
        """
        if checksums is not None and not _is_heading_whole(path, checksums, index):
            return None
        with _map_samples(path) as file:
            try:
                table = SampleTable.from_schema(pa.ipc.open_stream(file).schema)
            except (*_TORN, ValueError):
                table = None
        return Samples(path, table, checksums, index) if table else None

    def blocks(self, ports: Iterable[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield the whole blocks, oldest first, with the time and these ports, in the order of the file.

        The blocks are mapped into memory: what is not looked at is not loaded. Raises FileError where a block
        is not as it was written; of a run that was not ended in order the last ones may be torn.
        """
        columns = sorted({1 + self.table.columns.index(port) for port in ports})
        options = pa.ipc.IpcReadOptions(included_fields=[0, *columns])
        checks = self._verified_rows()
        with _map_samples(self.path) as file, pa.ipc.open_stream(file, options=options) as stream:
            while True:
                try:
                    rows = next(checks)
                    block = stream.read_next_batch()
                    block.validate()  # a power cut may have left zeros
                except (StopIteration, *_TORN):
                    break
                if rows is not None and block.num_rows != rows:
                    raise damage_error(self.path, f"a block has {block.num_rows} rows instead of {rows}")
                yield block
        rescued = self._rescued_rows()
        if len(rescued):
            fields = [self.table.schema.field(place) for place in (0, *columns)]
            arrays = [pa.array(rescued[:, place]) for place in (0, *columns)]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, self.table.schema.metadata))

    def _verified_rows(self) -> Iterator[int | None]:
        """Yield how many rows each block has that is as it was written; None, for ever: nobody knows."""
        if self.checksums is None:
            while True:
                yield None
        records = self.checksums.of(self.index)
        data = _map_bytes(self.path)
        ends = [int(end) for end in records["end"]]
        for number, (start, end) in enumerate(pairwise(ends), 1):
            if end not in self.verified:
                if not _is_as_written(data, start, records[number]):
                    if self._is_torn_tail(data, records, number):
                        return
                    what = f"block {number} of {len(ends) - 1} is not as it was written"
                    raise damage_error(self.path, what)
                self.verified.add(end)
            yield int(records[number]["rows"])
        if len(data) != ends[-1] and not self.checksums.unfinished:
            raise damage_error(self.path, f"it has {len(data)} bytes instead of {ends[-1]}")

    def _rescued_rows(self) -> Array:
        """Return the rows that were written as the process crashed, if they follow the last block."""
        width = 1 + len(self.table.columns)
        if self.checksums is not None:
            ends = self.checksums.of(self.index)["end"]
            if len(ends) > 1 and int(ends[-1]) not in self.verified:
                return np.empty((0, width))
        return _read_rescued(self.path.with_suffix(RESCUED), width)

    def _is_torn_tail(self, data: Any, records: Any, number: int) -> bool:
        """Return whether a run that was not ended in order ends here: no later block is whole."""
        assert self.checksums is not None
        later = range(number + 1, len(records))
        whole = any(_is_as_written(data, int(records[k - 1]["end"]), records[k]) for k in later)
        return self.checksums.unfinished and not whole

    def read(self, ports: Sequence[str]) -> list[Array]:
        """Return the time in seconds, and these ports in the order asked for."""
        blocks = list(self.blocks(ports))
        columns = self.table.columns
        place = {port: 1 + i for i, port in enumerate(sorted(set(ports), key=columns.index))}
        return [
            np.concatenate([np.empty(0), *(block.column(i).to_numpy() for block in blocks)])
            for i in (0, *(place[port] for port in ports))
        ]

    @property
    def rows(self) -> int:
        """How many there are, now."""
        if self.checksums is not None:
            return int(self.checksums.of(self.index)["rows"].sum()) + len(self._rescued_rows())
        return sum(block.num_rows for block in self.blocks())

    @property
    def torn_bytes(self) -> int:
        """How many bytes at the end are left out: they are not a whole block."""
        if self.checksums is None:
            return 0
        for _ in self._verified_rows():
            pass
        first = int(self.checksums.of(self.index)["end"][0])
        return self.path.stat().st_size - max(self.verified, default=first)


def _is_heading_whole(path: Path, checksums: Checksums, index: int) -> bool:
    """Return False for a run that was ended before it was; raises FileError for one that lost it."""
    records, there = checksums.of(index), path.is_file()
    data = _map_bytes(path) if there else b""
    if len(records) and _is_as_written(data, 0, records[0]) and not records[0]["rows"]:
        return True
    if len(records) > 1 or not checksums.unfinished:
        raise damage_error(path, "its heading is not as it was written" if there else "the file is missing")
    return False


def _is_as_written(data: Any, start: int, record: Any) -> bool:
    end = int(record["end"])
    return start < end <= len(data) and zlib.crc32(data[start:end]) == int(record["crc"])


def _map_bytes(path: Path) -> Any:
    try:
        return np.memmap(path, np.uint8, "r") if path.stat().st_size else b""
    except OSError as error:
        what = f"cannot read `{path.name}`: {error.strerror or error}"
        raise FileError(what, where=str(path), hint="was the run moved or deleted?") from error


def _read_rescued(path: Path, width: int) -> Array:
    """Return the rows that were written as the process crashed; none of a file that is torn, or not there."""
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    if len(content) < _HEAD.size:
        return np.empty((0, width))
    mark, checksum, columns, rows = _HEAD.unpack_from(content)
    numbers = content[_HEAD.size :]
    whole = mark == b"hkrows1\0" and columns == width and len(numbers) == 8 * columns * rows
    if not whole or zlib.crc32(numbers) != checksum:
        return np.empty((0, width))
    return np.frombuffer(numbers, dtype=float).reshape(rows, columns)


_HEAD = struct.Struct("=8sQQQ")
"""Of rescued rows: mark, checksum, columns, rows."""


def _map_samples(path: Path) -> pa.MemoryMappedFile:
    try:
        return pa.memory_map(str(path))
    except OSError as error:
        what = f"cannot read `{path.name}`: {error.strerror or error}"
        raise FileError(what, where=str(path), hint="was the run moved or deleted?") from error
