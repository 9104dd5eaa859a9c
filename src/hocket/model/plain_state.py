"""States as plain data: numbers, texts, lists, tables and arrays as bytes, and back without running anything.

In:  what simulators and levels save
Out: bytes for a file; from bytes, that may be anything, the same values or a StateError

What a simulator saves may hold objects: those that know how (`StoredState`) say in plain data what they are,
and come back as `SerialisedState`, which the `restore` of the same simulator accepts. Of hocket's own records
(named tuples, dataclasses) those that are listed with `is_record` are known by their names. Nothing else is
taken, and nothing is ever called by its name: a file can hold wrong numbers, no code.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

DEEPEST = 200
"""How deep lists may stand inside each other."""
RECORDS: dict[str, type] = {}
"""The records that are known, by their names."""
_NUMBERS = "biufc"
"""The kinds of arrays that are taken: whole numbers, floats, complex numbers, truth values."""

Class = TypeVar("Class", bound=type)


class StateError(Exception):
    """What cannot be written as plain data, or bytes that are not what was written."""


@runtime_checkable
class StoredState(Protocol):
    """A state that is kept elsewhere, or is more than plain data: it can say what it is."""

    def serialise(self) -> Any:
        """Return it as plain data, for another process."""


@dataclass(frozen=True)
class SerialisedState:
    """A state from another process, as its `serialise` has said it."""

    content: Any


def as_bytes(state: SerialisedState) -> bytes:
    """Return the bytes of a state that is one; raises StateError."""
    if not isinstance(state.content, bytes):
        raise StateError(f"a state of type {type(state.content).__name__} in place of bytes")
    return state.content


def is_record(kind: Class) -> Class:
    """List a class of records (a named tuple or a dataclass) among those that files may hold."""
    RECORDS[_record_name(kind)] = kind
    return kind


def _record_name(kind: type) -> str:
    return f"{kind.__module__.removeprefix('hocket.')}:{kind.__qualname__}"


# writing

_SIZE, _FLOAT, _COMPLEX = struct.Struct("<Q"), struct.Struct("<d"), struct.Struct("<dd")


def encode(value: Any) -> bytes:
    """Return plain data as bytes; raises StateError for what is not plain, with its path."""
    parts: list[bytes] = []
    _write(value, parts.append, "", 0)
    return b"".join(parts)


def _write(value: Any, put: Callable[[bytes], None], place: str, depth: int) -> None:
    if depth > DEEPEST:
        raise StateError(f"{place or 'it'} is nested more than {DEEPEST} deep")
    kind = type(value)
    if value is None or kind is bool:
        put({None: b"N", True: b"T", False: b"F"}[value])
    elif kind is float:
        put(b"f" + _FLOAT.pack(value))
    elif kind is int:
        _write_sized(b"i", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True), put)
    elif kind is str:
        _write_sized(b"s", value.encode("utf-8", "surrogatepass"), put)
    elif kind is bytes or kind is bytearray:
        _write_sized(b"b" if kind is bytes else b"B", bytes(value), put)
    elif kind is complex:
        put(b"c" + _COMPLEX.pack(value.real, value.imag))
    elif kind is Fraction:
        put(b"q")
        _write(value.numerator, put, place, depth + 1)
        _write(value.denominator, put, place, depth + 1)
    elif kind is np.ndarray:
        _write_array(b"a", value, put, place)
    elif isinstance(value, np.generic):
        _write_array(b"g", np.asarray(value), put, place)
    elif kind is range:
        put(b"R")
        _write([value.start, value.stop, value.step], put, place, depth + 1)
    elif kind in _LISTS:
        put(_LISTS[kind] + _SIZE.pack(len(value)))
        items = sorted(value, key=repr) if kind in (set, frozenset) else value
        for number, each in enumerate(items):
            _write(each, put, f"{place}[{number}]", depth + 1)
    elif kind is deque:
        put(b"d" + _SIZE.pack(len(value)))
        _write(value.maxlen, put, place, depth + 1)
        for number, each in enumerate(value):
            _write(each, put, f"{place}[{number}]", depth + 1)
    elif kind is dict:
        put(b"m" + _SIZE.pack(len(value)))
        for key, each in value.items():
            _write(key, put, f"a key of {place or 'it'}", depth + 1)
            _write(each, put, f"{place}[{key!r:.40}]", depth + 1)
    elif RECORDS.get(_record_name(kind)) is kind:
        put(b"r")
        _write(_record_name(kind), put, place, depth + 1)
        _write(list(_record_fields(value)), put, f"{place}.{kind.__name__}", depth + 1)
    elif isinstance(value, StoredState):
        put(b"o")
        _write(value.serialise(), put, place, depth + 1)
    else:
        where = f" at {place}" if place else ""
        raise StateError(f"a value of type {kind.__qualname__}{where}")


_LISTS: dict[type, bytes] = {list: b"l", tuple: b"t", set: b"S", frozenset: b"Z"}
_MADE: dict[bytes, Callable[[Any], Any]] = {mark: kind for kind, mark in _LISTS.items()}


def _write_sized(mark: bytes, content: bytes, put: Callable[[bytes], None]) -> None:
    put(mark + _SIZE.pack(len(content)))
    put(content)


def _write_array(mark: bytes, array: Any, put: Callable[[bytes], None], place: str) -> None:
    if array.dtype.kind not in _NUMBERS:
        raise StateError(f"an array of {array.dtype} at {place or 'it'}")
    put(mark)
    _write_sized(b"s", array.dtype.str.encode(), put)
    _write(tuple(array.shape), put, place, 0)
    put(b"T" if array.flags.writeable else b"F")
    _write_sized(b"b", array.tobytes(), put)


def _record_fields(value: Any) -> Iterator[Any]:
    if isinstance(value, Enum):
        yield value.value
    elif isinstance(value, tuple):
        yield from value
    elif is_dataclass(value):
        yield from (getattr(value, each.name) for each in fields(value))
    else:
        yield vars(value)


# reading


def decode(content: bytes) -> Any:
    """Return what bytes say; raises StateError for those that are not what `encode` wrote."""
    reader = _Reader(content)
    try:
        value = reader.read(0)
    except StateError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError, ArithmeticError) as error:
        raise StateError(f"it is damaged at byte {reader.at}: {error}") from error
    if reader.at != len(content):
        raise StateError(f"it has {len(content) - reader.at} bytes too many")
    return value


class _Reader:
    def __init__(self, content: bytes):
        self.content = content
        self.at = 0

    def take(self, size: int) -> bytes:
        if size > len(self.content) - self.at:
            raise StateError(f"it ends at byte {len(self.content)}, within a value")
        found = self.content[self.at : self.at + size]
        self.at += size
        return found

    def size(self, least: int = 1) -> int:
        """Return how many there are of what takes so many bytes at least."""
        (count,) = _SIZE.unpack(self.take(8))
        if count * least > len(self.content) - self.at:
            raise StateError(f"a length of {count} at byte {self.at}")
        return int(count)

    def read(self, depth: int) -> Any:
        if depth > DEEPEST + 10:
            raise StateError(f"it is nested more than {DEEPEST} deep")
        mark = self.take(1)
        if mark in _PLAIN:
            return _PLAIN[mark]
        if mark in _MADE:
            return _MADE[mark]([self.read(depth + 1) for _ in range(self.size())])
        match mark:
            case b"f":
                return _FLOAT.unpack(self.take(8))[0]
            case b"i":
                return int.from_bytes(self.take(self.size()), "little", signed=True)
            case b"s":
                return self.take(self.size()).decode("utf-8", "surrogatepass")
            case b"b":
                return self.take(self.size())
            case b"B":
                return bytearray(self.take(self.size()))
            case b"c":
                return complex(*_COMPLEX.unpack(self.take(16)))
            case b"q":
                return Fraction(self.whole(depth), self.whole(depth))
            case b"R":
                return range(*self.read(depth + 1))
            case b"a":
                return self.array(depth)
            case b"g":
                return self.array(depth)[()]
            case b"d":
                count = self.size()
                most = self.read(depth + 1)
                return deque((self.read(depth + 1) for _ in range(count)), most)
            case b"m":
                return {self.read(depth + 1): self.read(depth + 1) for _ in range(self.size(2))}
            case b"r":
                return self.record(depth)
            case b"o":
                return SerialisedState(self.read(depth + 1))
        raise StateError(f"an unknown mark {mark!r} at byte {self.at - 1}")

    def whole(self, depth: int) -> int:
        value = self.read(depth + 1)
        if type(value) is not int:
            raise StateError("a fraction of what is not a whole number")
        return value

    def array(self, depth: int) -> Any:
        name, shape = self.read(depth + 1), self.read(depth + 1)
        writeable, raw = self.read(depth + 1), self.read(depth + 1)
        kind = np.dtype(name)
        if kind.kind not in _NUMBERS or kind.fields or not isinstance(raw, bytes):
            raise StateError(f"an array of {kind}")
        array = np.frombuffer(raw, kind).reshape(shape).copy()
        array.flags.writeable = bool(writeable)
        return array

    def record(self, depth: int) -> Any:
        name, content = self.read(depth + 1), self.read(depth + 1)
        kind = RECORDS.get(name) if isinstance(name, str) else None
        if kind is None or not isinstance(content, list):
            raise StateError(f"a record `{name!r:.40}` that is not known here")
        if issubclass(kind, (Enum, tuple)) or is_dataclass(kind):
            return kind(*content)
        made = kind.__new__(kind)
        vars(made).update(content[0])
        return made


_PLAIN: dict[bytes, Any] = {b"N": None, b"T": True, b"F": False}
