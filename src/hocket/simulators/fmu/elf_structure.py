"""Whether a shared library (ELF, 64 bits) is whole: what the loader would follow without looking.

In:  the path of a shared library
Out: what is damaged in it; nothing is loaded

The loader of Linux believes what it reads: a relocation beyond the library writes into the memory of others,
and whether that ends the process is chance. All that it follows is followed here first, within bounds.
Code itself is not judged: an FMU is tried before it runs in this process (`first_contact.py`).
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOAD, _DYNAMIC, _EH_FRAME, _RELRO = 1, 2, 0x6474E550, 0x6474E552
_EXECUTABLE = 1
_PAGE = 1 << 16
"""Bytes of the largest page of memory that linkers count with."""
_SLACK = 1 << 20
"""Bytes beside a library that a pointer may lead to: some programs count arrays from 1."""
_NAMES = {1: "NEEDED", 14: "SONAME", 15: "RPATH", 29: "RUNPATH"}
_TABLES = {
    5: ("STRTAB", 10, 1),
    7: ("RELA", 8, 24),
    23: ("JMPREL", 2, 24),
    25: ("INIT_ARRAY", 27, 8),
    26: ("FINI_ARRAY", 28, 8),
    36: ("RELR", 35, 8),
}
"""By tag: a table of the loader, the tag of its length in bytes, and the bytes of an entry."""
_PLACES = {3: "PLTGOT", 4: "HASH", 6: "SYMTAB", 0x6FFFFEF5: "GNU_HASH", 0x6FFFFFF0: "VERSYM"}
_FUNCTIONS = {12: "INIT", 13: "FINI"}
_VERNEED, _VERDEF = (0x6FFFFFFE, 0x6FFFFFFF), (0x6FFFFFFC, 0x6FFFFFFD)
_RELATIVE = {62: (8, 37), 183: (1027, 1032)}
"""By machine: the relocations that add the address of the library, and that call a function."""
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_RELOCATION = np.dtype([("place", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])


class _DamageError(Exception):
    """Says what is damaged."""


@lru_cache(maxsize=256)
def find_damage(path: str, _changed: int, size: int) -> str:
    """Return what is damaged in a 64-bit ELF file; empty: nothing, or it is another kind of file."""
    if size < 64:
        return ""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[:6] != b"\x7fELF\x02\x01":
            return ""
        try:
            _Library(content).check()
        except _DamageError as damage:
            return str(damage)
        except (struct.error, IndexError, ValueError, OverflowError):
            return "one of its tables leads out of the file"
    return ""


@dataclass(frozen=True, slots=True)
class _Segment:
    """A part of the file, as it is loaded."""

    offset: int
    begin: int
    in_file: int
    in_memory: int
    executable: bool

    @property
    def end(self) -> int:
        return self.begin + self.in_memory


@dataclass
class _Library:
    content: mmap.mmap
    segments: list[_Segment] = field(default_factory=list)
    tags: dict[int, int] = field(default_factory=dict)

    def check(self) -> None:
        (self.machine,) = struct.unpack_from("<H", self.content, 18)
        others = self.read_segments()
        dynamic = [each for each in others if each[0] == _DYNAMIC]
        if not self.segments or len(dynamic) != 1:
            raise _DamageError("it has no dynamic section: a shared library has one")
        for kind, begin, length in others:
            if kind in (_DYNAMIC, _EH_FRAME):
                self.expect_inside(begin, length, "a segment")
            elif kind == _RELRO:  # it is made read-only by pages, and some linkers write down whole ones
                self.expect_inside(begin, 1, "a segment")
                if begin + length > max(segment.end for segment in self.segments) + _PAGE:
                    raise _DamageError("what is made read-only leads out of the library")
        self.read_tags(*dynamic[0][1:])
        self.check_tables()
        names = self.read(self.tags[5], self.tags[10], "STRTAB")
        if not len(names) or names[-1]:
            raise _DamageError("its table of names does not end")
        for tag, name in _NAMES.items():
            if self.tags.get(tag, 0) >= len(names):
                raise _DamageError(f"{name} leads out of its table of names")
        count = self.count_symbols()
        symbols = self.read(self.tags[6], 24 * count, "SYMTAB").view(_SYMBOL)
        self.check_symbols(symbols, len(names))
        self.check_relocations(count)
        self.check_versions(count)

    # segments

    def read_segments(self) -> list[tuple[int, int, int]]:
        """Read what is loaded; return the other segments: kind, address and bytes in memory."""
        size = len(self.content)
        (begin,) = struct.unpack_from("<Q", self.content, 32)
        entry, count = struct.unpack_from("<HH", self.content, 54)
        if entry < 56 or begin + entry * count > size:
            raise _DamageError(f"cut off at {size:,} bytes, its table of segments ends later")
        others = []
        for number in range(count):
            kind, flags, offset, address, _, in_file, in_memory, _ = struct.unpack_from(
                "<IIQQQQQQ", self.content, begin + entry * number
            )
            if kind != _LOAD:
                others.append((kind, address, in_memory))
                continue
            if offset + in_file > size:
                end = offset + in_file
                raise _DamageError(f"cut off at {size:,} bytes, a segment ends at {end:,}")
            segment = _Segment(offset, address, in_file, in_memory, bool(flags & _EXECUTABLE))
            if in_memory < in_file or (self.segments and address < self.segments[-1].end):
                raise _DamageError("its segments overlap")
            self.segments.append(segment)
        return others

    def expect_inside(self, begin: int, length: int, what: str, executable: bool = False) -> None:
        for segment in self.segments:
            if segment.begin <= begin and begin + length <= segment.end:
                if executable and not segment.executable:
                    break
                return
        raise _DamageError(f"{what} at {begin:#x} leads out of {'its code' if executable else 'the library'}")

    def are_inside(
        self, begins: NDArray[np.uint64], length: int, executable: bool = False
    ) -> NDArray[np.bool_]:
        """Return which addresses are in the library, each with the bytes behind it."""
        inside = np.zeros(len(begins), bool)
        for segment in self.segments:
            if segment.in_memory >= length and (segment.executable or not executable):
                last = segment.end - length
                inside |= (begins >= segment.begin) & (begins <= last)
        return inside

    def read(self, address: int, length: int, what: str) -> NDArray[np.uint8]:
        """Return bytes of the file by their address."""
        for segment in self.segments:
            if segment.begin <= address and address + length <= segment.begin + segment.in_file:
                start = segment.offset + address - segment.begin
                return np.frombuffer(self.content[start : start + length], np.uint8)
        raise _DamageError(f"{what} at {address:#x} leads out of the library")

    # tables

    def read_tags(self, address: int, length: int) -> None:
        for tag, value in (
            self.read(address, length - length % 16, "DYNAMIC").view("<u8").reshape(-1, 2).tolist()
        ):
            if tag == 0:
                return
            if tag in _NAMES:  # several libraries may be needed
                value = max(value, self.tags.get(tag, 0))
            self.tags[tag] = value
        raise _DamageError("its dynamic section does not end")

    def check_tables(self) -> None:
        if not {5, 6} <= self.tags.keys():
            raise _DamageError("it has no table of symbols")
        for tag, (name, length, entry) in _TABLES.items():
            if (tag in self.tags) != (length in self.tags):
                raise _DamageError(f"{name} is without its length, or its length without it")
            if tag in self.tags:
                if self.tags[length] % entry:
                    raise _DamageError(f"{name} does not hold whole entries")
                self.expect_inside(self.tags[tag], self.tags[length], name)
        for tag, name in _PLACES.items():
            if tag in self.tags:
                self.expect_inside(self.tags[tag], 8, name)
        for tag, name in _FUNCTIONS.items():
            if tag in self.tags:
                self.expect_inside(self.tags[tag], 1, name, executable=True)
        if self.tags.get(11, 24) != 24 or self.tags.get(9, 24) != 24 or self.tags.get(20, 7) != 7:
            raise _DamageError("its tables have entries of another size than 64-bit libraries")

    def words(self, address: int, count: int, what: str) -> NDArray[np.uint32]:
        return self.read(address, 4 * count, what).view("<u4")

    def count_symbols(self) -> int:
        """Return how many symbols there are, by the tables that the loader finds them with."""
        if 4 in self.tags:
            buckets, count = self.words(self.tags[4], 2, "HASH").tolist()
            table = self.words(self.tags[4] + 8, buckets + count, "HASH")
            if not buckets or (len(table) and int(table.max()) >= max(count, 1)):
                raise _DamageError("its HASH leads out of the table of symbols")
            if 0x6FFFFEF5 not in self.tags:
                return int(count)
        if 0x6FFFFEF5 not in self.tags:
            raise _DamageError("its symbols cannot be looked up: it has neither HASH nor GNU_HASH")
        return self.count_by_gnu_hash(self.tags[0x6FFFFEF5])

    def count_by_gnu_hash(self, at: int) -> int:
        count, first, blooms, _ = self.words(at, 4, "GNU_HASH").tolist()
        if not count or not blooms or blooms & (blooms - 1):
            raise _DamageError("the head of its GNU_HASH is damaged")
        buckets = self.words(at + 16 + 8 * blooms, count, "GNU_HASH")
        used = buckets[buckets > 0]
        if not len(used):  # it exports nothing: the names stand behind the symbols, as linkers lay them out
            return max(int(first), (self.tags[5] - self.tags[6]) // 24)
        if int(used.min()) < first:
            raise _DamageError("its GNU_HASH leads out of the table of symbols")
        number, chains = int(used.max()), at + 16 + 8 * blooms + 4 * count
        while not int(self.words(chains + 4 * (number - first), 1, "GNU_HASH")[0]) & 1:
            number += 1
        return number + 1

    def check_symbols(self, symbols: Any, names: int) -> None:
        if len(symbols) and int(symbols["name"].max()) >= names:
            raise _DamageError("the name of a symbol leads out of its table of names")
        kinds = symbols["info"] & 15
        here = (symbols["section"] != 0) & (symbols["section"] < 0xFF00)
        functions = here & ((kinds == 2) | (kinds == 10))
        if not self.are_inside(symbols["value"][functions], 1, executable=True).all():
            raise _DamageError("a function leads out of its code")
        if not self.are_inside(symbols["value"][here & (kinds == 1)], 0).all():
            raise _DamageError("a variable leads out of the library")

    def check_relocations(self, symbols: int) -> None:
        begin, end = self.segments[0].begin - _SLACK, self.segments[-1].end + _SLACK
        base, called = _RELATIVE.get(self.machine, (-1, -1))
        for tag in (7, 23):
            if tag not in self.tags:
                continue
            name, length, _ = _TABLES[tag]
            table: Any = self.read(self.tags[tag], self.tags[length], name).view(_RELOCATION)
            if not len(table):
                continue
            if not self.are_inside(table["place"][table["kind"] != 0], 8).all():
                raise _DamageError("a relocation leads out of the library: it would write over other memory")
            if int(table["symbol"].max()) >= max(symbols, 1):
                raise _DamageError("a relocation names a symbol that is not there")
            relative = table["addend"][table["kind"] == base]
            if len(relative) and not (begin <= relative.min() and relative.max() <= end):
                raise _DamageError("a pointer leads far out of the library")
            arrays = self.in_arrays(table["place"])
            jumps = table["addend"][((table["kind"] == base) & arrays) | (table["kind"] == called)]
            if len(jumps) and not self.are_inside(jumps.astype(np.uint64), 1, executable=True).all():
                raise _DamageError("a function that is called on loading leads out of its code")

    def in_arrays(self, places: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which relocations are those of functions to be called on loading and unloading."""
        found = np.zeros(len(places), bool)
        for tag in (25, 26):
            if tag in self.tags:
                begin, length = self.tags[tag], self.tags[_TABLES[tag][1]]
                found |= (places >= begin) & (places < begin + length)
        return found

    # versions of symbols

    def check_versions(self, symbols: int) -> None:
        if 0x6FFFFFF0 not in self.tags:
            return
        known = {0, 1, *self.needed_versions(), *self.defined_versions()}
        told = np.unique(self.read(self.tags[0x6FFFFFF0], 2 * symbols, "VERSYM").view("<u2") & 0x7FFF)
        if not known.issuperset(told.tolist()):
            raise _DamageError("a symbol is of a version that is not there")

    def needed_versions(self) -> list[int]:
        found = []
        place = self.tags.get(_VERNEED[0], 0)
        for _ in range(self.tags.get(_VERNEED[1], 0)):
            _, count, name, inner, step = self.record("<HHIII", place)
            self.expect_name(name)
            entry = place + inner
            for _ in range(count):
                _, _, number, name, onward = self.record("<IHHII", entry)
                self.expect_name(name)
                found.append(number & 0x7FFF)
                entry += onward
            place += step
        return found

    def defined_versions(self) -> list[int]:
        found = []
        place = self.tags.get(_VERDEF[0], 0)
        for _ in range(self.tags.get(_VERDEF[1], 0)):
            _, _, number, _, _, inner, step = self.record("<HHHHIII", place)
            self.expect_name(self.record("<II", place + inner)[0])
            found.append(number & 0x7FFF)
            place += step
        return found

    def record(self, layout: str, address: int) -> tuple[int, ...]:
        return struct.unpack(layout, self.read(address, struct.calcsize(layout), "its versions").tobytes())

    def expect_name(self, place: int) -> None:
        if place >= self.tags[10]:
            raise _DamageError("the name of a version leads out of its table of names")
