"""Keeps the rows of a run: each rate has its own table, each table is one Arrow stream on disk.

In:  blocks of rows, as the engine accepts its steps
Out: samples/*.arrow, readable up to the last block even if the process was killed
"""

from __future__ import annotations

import errno
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from hocket.errors import FileError, HocketError, InternalError
from hocket.model.protocols import Array

SAMPLES = "samples"
RESCUED = ".rows"
"""What a table's file of rows ends with that compiled code wrote when the process crashed."""
_NAME, _UNIT = b"hocket.table", b"unit"
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

    def __post_init__(self) -> None:
        if self.units and len(self.units) != len(self.columns):
            counts = f"{len(self.units)} units for {len(self.columns)} columns"
            raise InternalError(f"table `{self.name}` has {counts}")
        object.__setattr__(self, "units", self.units or ("",) * len(self.columns))

    @property
    def time_heading(self) -> str:
        """The heading of the time column: `time`, unless a port is called so."""
        return "time" if "time" not in self.columns else "time [s]"

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema: the time, then the columns, each with its unit as metadata."""
        fields = [
            pa.field(name, pa.float64(), nullable=False, metadata={_UNIT: unit})
            for name, unit in zip((self.time_heading, *self.columns), ("s", *self.units), strict=True)
        ]
        return pa.schema(fields, metadata={_NAME: self.name})

    @staticmethod
    def from_schema(schema: pa.Schema) -> SampleTable | None:
        """Return the table that a schema was made from; None if it is not one of hocket's."""
        name = (schema.metadata or {}).get(_NAME)
        if name is None:
            return None
        units = tuple((field.metadata or {}).get(_UNIT, b"").decode() for field in schema)
        return SampleTable(name.decode(), tuple(schema.names[1:]), units[1:])

    def file_name(self, index: int) -> str:
        """Return the name of its file; the index keeps apart what a file system may not (case, length)."""
        readable = re.sub(r"[^\w.@-]", "_", self.name or "outermost")[:60]
        return f"{index:03}-{readable}.arrow"


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

    def open(self, tables: Sequence[SampleTable]) -> None:
        """Get ready for blocks of these tables; called once, first."""
        samples = self.folder / SAMPLES
        try:
            samples.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(samples, error) from error
        for index, table in enumerate(tables):
            path, schema = samples / table.file_name(index), table.schema
            try:
                path.touch(exist_ok=False)
                self._ends.append(_append_message(path, 0, schema.serialize()))
            except OSError as error:
                raise write_error(path, error) from error
            self._paths.append(path)
            self._schemas.append(schema)

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
            self._ends[table] = _append_message(path, self._ends[table], message)
        except OSError as error:
            raise write_error(path, error, "; all rows written before are kept") from error

    def close(self) -> None:
        """Let go of everything held; what was written stays."""
        # An Arrow stream needs no end mark: it may end with its file.
        self._paths, self._schemas, self._ends = [], [], []


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
    """A table as it is on disk: it may still grow, and it may end in the middle of a block."""

    path: Path
    table: SampleTable

    @staticmethod
    def open(path: Path) -> Samples | None:
        """Return None if not even the heading is whole, or if the file is not one of hocket's."""
        with _map_samples(path) as file:
            try:
                table = SampleTable.from_schema(pa.ipc.open_stream(file).schema)
            except _TORN:
                return None
        return Samples(path, table) if table else None

    def blocks(self, ports: Iterable[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield the whole blocks, oldest first, with the time and these ports, in the order of the file.

        The blocks are mapped into memory: what is not looked at is not loaded.
        """
        columns = sorted({1 + self.table.columns.index(port) for port in ports})
        options = pa.ipc.IpcReadOptions(included_fields=[0, *columns])
        with _map_samples(self.path) as file, pa.ipc.open_stream(file, options=options) as stream:
            while True:
                try:
                    block = stream.read_next_batch()
                    block.validate()  # a power cut may have left zeros
                except (StopIteration, *_TORN):
                    break
                yield block
        rescued = _read_rescued(self.path.with_suffix(RESCUED), 1 + len(self.table.columns))
        if len(rescued):
            fields = [self.table.schema.field(place) for place in (0, *columns)]
            arrays = [pa.array(rescued[:, place]) for place in (0, *columns)]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, self.table.schema.metadata))

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
        return sum(block.num_rows for block in self.blocks())


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
