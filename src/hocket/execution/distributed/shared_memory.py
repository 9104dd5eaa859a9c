"""Hosts as processes of one machine: frames pass through memory that two of them share.

In:  a private folder with a ring and a bell for each ordered pair of hosts
Out: frames; a peer whose process is gone is noticed at once

The bytes are in a mapped file; the bell is a named pipe, which wakes the reader, and which the system closes
when the writer is gone, however it went.
"""

from __future__ import annotations

import errno
import mmap
import os
import select
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from hocket.engine.host_exchange import TransportError

RING = 1 << 20
"""Bytes of a ring; a longer frame passes in parts."""
_HEAD, _TAIL, _DATA = 0, 64, 128
"""Where the counts of bytes written and read are, in cache lines of their own, and where the bytes begin."""
_COUNT = struct.Struct("<Q")
_LOOK = 0.05
_PAUSE = 1e-4
_GONE = "its process has ended"


def prepare_folder(folder: Path, hosts: Sequence[str]) -> None:
    """Make the rings and bells of some hosts in a folder that is there."""
    for source in range(len(hosts)):
        for target in range(len(hosts)):
            if source != target:
                ring = folder / f"{source}-{target}.ring"
                ring.write_bytes(b"")
                os.truncate(ring, _DATA + RING)
                os.mkfifo(folder / f"{source}-{target}.bell", 0o600)


class _Ring:
    """One direction between two processes."""

    def __init__(self, folder: Path, name: str):
        self.bell_path = folder / f"{name}.bell"
        file = os.open(folder / f"{name}.ring", os.O_RDWR)
        try:
            self.memory = mmap.mmap(file, _DATA + RING)
        finally:
            os.close(file)
        self.bell = -1
        self.count = 0
        """Bytes that this side has written, or read."""

    def other(self, place: int) -> int:
        """Return the count of the other side."""
        return int(_COUNT.unpack_from(self.memory, place)[0])

    def close(self) -> None:
        """Let go of the memory and the bell."""
        if self.bell >= 0:
            os.close(self.bell)
            self.bell = -1
        with suppress(BufferError):
            self.memory.close()


class _Writer(_Ring):
    def ring_bell(self) -> None:
        """Wake the reader; raises where there is none any more."""
        try:
            os.write(self.bell, b".")
        except BlockingIOError:
            pass  # it has been woken often enough
        except OSError as error:
            raise TransportError(_GONE) from error

    def write(self, data: bytes, look: Callable[[], None]) -> None:
        """Write bytes, in parts where the reader must make room first."""
        at, looked = 0, time.monotonic()
        while at < len(data):
            free = RING - (self.count - self.other(_TAIL))
            if not free:
                self.ring_bell()
                time.sleep(_PAUSE)
                if time.monotonic() - looked > _LOOK:
                    looked = time.monotonic()
                    look()
                continue
            begin = self.count % RING
            part = data[at : at + min(free, RING - begin)]
            self.memory[_DATA + begin : _DATA + begin + len(part)] = part
            self.count += len(part)
            at += len(part)
            _COUNT.pack_into(self.memory, _HEAD, self.count)
        self.ring_bell()


class _Reader(_Ring):
    def read(self, size: int, look: Callable[[], None]) -> bytes:
        """Read so many bytes, and wait for them."""
        parts: list[bytes] = []
        while size:
            there = self.other(_HEAD) - self.count
            if not there:
                self._wait(look)
                continue
            begin = self.count % RING
            part = self.memory[_DATA + begin : _DATA + begin + min(size, there, RING - begin)]
            parts.append(part)
            size -= len(part)
            self.count += len(part)
            _COUNT.pack_into(self.memory, _TAIL, self.count)
        return b"".join(parts)

    def _wait(self, look: Callable[[], None]) -> None:
        if not select.select([self.bell], [], [], _LOOK)[0]:
            look()
            return
        try:
            heard = os.read(self.bell, 4096)
        except BlockingIOError:
            return
        if not heard and self.other(_HEAD) == self.count:
            if self.count:  # it had come, and has closed the bell
                raise TransportError(_GONE)
            time.sleep(_PAUSE)  # nobody has come yet
            look()


class SharedMemory:
    """The transport of one host; the folder was prepared for these hosts."""

    def __init__(self, folder: Path, hosts: Sequence[str], host: str):
        self._folder, self._hosts, self._host = folder, list(hosts), host
        self._writers: dict[str, _Writer] = {}
        self._readers: dict[str, _Reader] = {}

    def open(self, look: Callable[[], None]) -> None:
        """Open the bells to and from all others, and wait until they have done so."""
        own = self._hosts.index(self._host)
        others = [(number, name) for number, name in enumerate(self._hosts) if name != self._host]
        for number, name in others:
            reader = self._readers[name] = _Reader(self._folder, f"{number}-{own}")
            reader.bell = os.open(reader.bell_path, os.O_RDONLY | os.O_NONBLOCK)
        for number, name in others:
            writer = self._writers[name] = _Writer(self._folder, f"{own}-{number}")
            while writer.bell < 0:
                try:
                    writer.bell = os.open(writer.bell_path, os.O_WRONLY | os.O_NONBLOCK)
                except OSError as error:
                    if error.errno != errno.ENXIO:
                        raise
                    time.sleep(0.005)  # it does not listen yet
                    look()

    def send(self, target: str, frame: bytes, look: Callable[[], None]) -> None:
        """Write a frame behind its length."""
        writer = self._writers.get(target)
        if writer is None or writer.bell < 0:
            raise TransportError("there is no connection")
        writer.write(_COUNT.pack(len(frame)) + frame, look)

    def end_exchange(self, look: Callable[[], None]) -> None:
        """Frames are there as soon as they are sent."""

    def receive(self, source: str, look: Callable[[], None]) -> bytes:
        """Read the next frame."""
        reader = self._readers[source]
        size = int(_COUNT.unpack(reader.read(_COUNT.size, look))[0])
        return reader.read(size, look)

    def close(self) -> None:
        """Close all rings and bells."""
        for ring in [*self._writers.values(), *self._readers.values()]:
            ring.close()
        self._writers.clear()
