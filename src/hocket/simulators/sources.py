"""Signals that come from outside: tables, files of measurements, functions of time.

In:  times and values, the path of a CSV file, or a function of t
Out: Models without inputs or state
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from hocket.errors import (
    Fault,
    FileError,
    Place,
    ScenarioError,
    SimulatorError,
    raise_faults,
    suggest_nearest,
)
from hocket.model.arguments import as_path, choice_faults, expect, set_fields
from hocket.model.clock import seconds
from hocket.model.ports import Port, PortLike, PortType, parse_ports, parse_value_ports, refuse_events
from hocket.model.protocols import Array, Capabilities, Simulator
from hocket.model.units import conversion
from hocket.simulators.methods import to_floats
from hocket.simulators.recipes import Recipe, load, qualified_name, with_feedthrough

Interpolation: TypeAlias = Literal["linear", "hold"]
Outside: TypeAlias = Literal["hold", "error"]


@dataclass(frozen=True, init=False, eq=False)
class Table(Recipe):
    """Columns of values over times: `Table([0, 1], {"force [N]": [0.0, 3.0]})`.

    `columns` may be rows and columns of numbers too, with `outputs` to name the columns. A time that is
    repeated is a jump: the later value holds from that time on. Before the first and after the last time
    the end values hold, unless `outside` is "error". `types` says which columns are not reals, as
    {"gear": "integer"}: they drive inputs of that type, and are held whatever the interpolation; columns of
    truths are boolean.
    """

    times: Array
    values: Array
    """One row per time, one column per output."""
    outputs: tuple[Port, ...]
    interpolation: Interpolation
    outside: Outside
    inputs = ()

    @property
    def capabilities(self) -> Capabilities:
        """It announces its jumps, if it has any."""
        jumps = bool(self._jumps())
        return Capabilities(rollback=True, slopes=True, events=jumps, catches_up=jumps)

    def _jumps(self) -> list[int]:
        held = [port.discrete or self.interpolation == "hold" for port in self.outputs]
        return _jump_rows(self.times.tolist(), self.values, held)

    def __init__(
        self,
        t: Sequence[float] | Array,
        columns: Mapping[str, Sequence[float] | Array] | Sequence[Sequence[float]] | Array,
        interpolation: Interpolation = "linear",
        outputs: Iterable[PortLike] | None = None,
        outside: Outside = "hold",
        types: Mapping[str, PortType] | None = None,
    ):
        _check_options(interpolation, outside)
        if isinstance(columns, Mapping):
            names: Iterable[PortLike] = columns if outputs is None else outputs
            body = list(columns.values())
            truths = [_are_truths(column) for column in body]
            body = [
                list(map(float, column)) if true else column
                for column, true in zip(body, truths, strict=True)
            ]
        elif outputs is None:
            what = "the columns of a `Table` have no names"
            raise ScenarioError(what, expected='outputs=["force [N]", ...]')
        else:
            names, body, truths = outputs, columns, []  # type: ignore[assignment]
        try:
            times, values = to_floats(t), to_floats(body)
        except (TypeError, ValueError):
            what = "a `Table` has columns of unequal length, or an entry that is not a number"
            raise ScenarioError(what) from None
        values = values.T if isinstance(columns, Mapping) else values
        ports = parse_ports(names)
        found = {port.name: "boolean" for port, true in zip(ports, truths, strict=False) if true}
        written = with_feedthrough(_typed_ports(_typed_ports(ports, found), types), (), {}, "`Table`")
        if times.ndim != 1 or not len(times) or values.shape != (len(times), len(written)):
            what = f"a `Table` has {times.size} times, and values of shape {values.shape}"
            expected = f"one row per time, and a column for each of {len(written)} outputs"
            raise ScenarioError(what, expected=expected)
        if not (np.isfinite(times).all() and np.isfinite(values).all()):
            raise ScenarioError("a `Table` has an entry that is not a finite number")
        backwards = np.flatnonzero(times[1:] < times[:-1])
        if len(backwards):
            row = int(backwards[0]) + 1
            what = f"the times of a `Table` decrease: {times[row]:g} s after {times[row - 1]:g} s"
            raise ScenarioError(what, f"row {row}, counted from 0", "times in order; equal times are a jump")
        for number, port in enumerate(written):
            misfits = [value for value in values[:, number].tolist() if not _suits(value, port)]
            if misfits:
                what = f"the column `{port.name}` of a `Table` has the value {misfits[0]:g}"
                raise ScenarioError(what, expected=_EXPECTED[port.type])
        for array in (times, values):
            array.setflags(write=False)
        options = {"interpolation": interpolation, "outside": outside}
        set_fields(self, times=times, values=values, outputs=written, **options)

    def open(self) -> Simulator:
        held = [port.discrete for port in self.outputs]
        return _TableSource(self.times.tolist(), self.values.tolist(), self.interpolation, self.outside, held)


@dataclass(frozen=True, init=False)
class Csv:
    """A `Table` from a file with a header row; units in the header (`force [N]`) are understood.

    `time` names the column of times, in seconds unless its header has another unit. `columns` lists the
    columns to put out, or maps ports to them: `{"speed [m/s]": "wheel speed"}`; None: all. The header is read
    here, the rows when a simulator is opened. Paths start in `folder`. `types` are those of a `Table`, by
    port; a boolean column may be written `true` and `false`.
    """

    path: str
    time: str
    columns: tuple[tuple[Port, int], ...]
    """What is put out, each with the number of its column in the file."""
    interpolation: Interpolation
    outside: Outside
    folder: str
    inputs = ()
    capabilities = Capabilities(rollback=True, slopes=True, events=True, catches_up=True)

    def __init__(
        self,
        path: str | Path,
        time: str = "time",
        columns: Iterable[str] | Mapping[str, str] | None = None,
        interpolation: Interpolation = "linear",
        outside: Outside = "hold",
        types: Mapping[str, PortType] | None = None,
        *,
        folder: str | Path = "",
    ):
        _check_options(interpolation, outside)
        options = {"interpolation": interpolation, "outside": outside}
        expect(isinstance(time, str), "time", time, "the heading of a column")
        fits = columns is None or isinstance(columns, Iterable)
        expect(fits, "columns", columns, "headings, or ports with their headings, or None")
        set_fields(self, path=str(as_path(path)), time=time, folder=str(folder), **options)
        header = next(self._lines())[1]
        clock = self._column(header, time)
        if columns is None:
            columns = [text for number, text in enumerate(header) if number != clock]
        chosen = []
        for written, text in columns.items() if isinstance(columns, Mapping) else ((c, c) for c in columns):
            number = self._column(header, text)
            chosen.append((self._port(header[number] if written == text else written), number))
        ports = _typed_ports(tuple(port for port, _ in chosen), types)
        with_feedthrough(ports, (), {}, str(self.file))
        set_fields(self, columns=tuple(zip(ports, (number for _, number in chosen), strict=True)))

    @property
    def file(self) -> Path:
        return Path(self.folder) / self.path

    @property
    def outputs(self) -> tuple[Port, ...]:
        return tuple(port for port, _ in self.columns)

    def open(self) -> Simulator:
        times: list[float] = []
        rows: list[list[float]] = []
        lines = self._lines()
        header = next(lines)[1]
        clock = self._column(header, self.time)
        per_second = self._per_second(header[clock])
        wanted = [number for _, number in self.columns]
        if max([clock, *wanted]) >= len(header):
            raise self._error("the header has changed", 1, f"{max(wanted) + 1} columns")
        for line, fields in lines:
            if len(fields) != len(header):
                raise self._error(f"{len(fields)} fields", line, f"{len(header)}, as in the header")
            moment = self._number(fields[clock], header[clock], line) / per_second
            row = [self._value(fields[number], header[number], line, port) for port, number in self.columns]
            if times and moment < times[-1]:
                what = f"the time decreases: {moment:.9g} s after {times[-1]:.9g} s"
                raise self._error(what, line, "times in order; equal times are a jump")
            times.append(moment)
            rows.append(row)
        if not times:
            raise FileError("there are no rows beneath the header", str(self.file))
        held = [port.discrete for port in self.outputs]
        return _TableSource(times, rows, self.interpolation, self.outside, held)

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the lines that are not empty, with their numbers; the header first."""
        if self.file.exists() and not self.file.is_file():  # a device may never end
            raise FileError(f"`{self.file}` is not a file", str(self.file), "a file with rows of numbers")
        try:
            with self.file.open(newline="", encoding="utf-8-sig") as file:
                first = file.readline(_LONGEST_LINE)
                file.seek(0)
                separator = max(",;\t", key=first.count)
                reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
                seen = False
                for fields in reader:
                    if any(fields) or len(fields) > 1:
                        seen = True
                        yield reader.line_num, [field.strip() for field in fields]
        except FileNotFoundError:
            beside = sorted(file.name for file in self.file.parent.glob("*.csv"))
            hint = suggest_nearest(self.file.name, beside)
            raise FileError(f"there is no file `{self.file}`", "", "", hint) from None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise FileError(f"`{self.file}` cannot be read: {error}", str(self.file)) from None
        if not seen:
            raise FileError("the file is empty", str(self.file), "a header row and rows of numbers")

    def _error(self, what: str, line: int, expected: str = "", hint: str = "") -> FileError:
        return FileError(what, Place(file=str(self.file), line=line), expected, hint)

    def _column(self, header: list[str], wanted: str) -> int:
        """Return the number of a column by its header, or by the header without its unit."""
        for known in (header, [_split_header(text)[0] for text in header]):
            if wanted in known:
                return known.index(wanted)
        raise self._error(f"there is no column `{wanted}`", 1, "", suggest_nearest(wanted, header))

    def _port(self, written: str) -> Port:
        try:
            return Port.of(written)
        except ScenarioError:
            what, hint = f"`{written}` cannot name a port", f'name it: columns={{"name": "{written}"}}'
            raise self._error(what, 1, "no spaces", hint) from None

    def _per_second(self, header: str) -> float:
        """Return how many of the file's units of time make a second: dividing by it rounds once."""
        try:
            gain, _ = conversion(_split_header(header)[1], "s")
        except ValueError as error:
            raise FileError(
                str(error), Place(file=str(self.file), line=1, detail=f"column `{header}`"), "a unit of time"
            ) from None
        whole = round(1.0 / gain)
        return float(whole) if abs(whole * gain - 1.0) < 1e-12 else 1.0 / gain

    def _value(self, text: str, header: str, line: int, port: Port) -> float:
        if port.type == "boolean" and text.lower() in _TRUTHS:
            return float(_TRUTHS.index(text.lower()))
        value = self._number(text, header, line, _EXPECTED.get(port.type, ""))
        if not _suits(value, port):
            what = f"`{text}` in column `{header}` is not of the type {port.type}"
            raise self._error(what, line, _EXPECTED[port.type])
        return value

    def _number(self, text: str, header: str, line: int, expected: str = "") -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            what = f"`{text}` in column `{header}` is not a finite number"
            hint = _ANOTHER_RATE if text.lower() == "nan" else ""
            raise self._error(what, line, expected or "a number with a decimal point", hint)
        return value


_ANOTHER_RATE = (
    "if hocket wrote the file, this port has another rate than its neighbours and no sample at this time: "
    "export ports of one rate to a file of their own"
)


_LONGEST_LINE = 1 << 24
_TRUTHS = ("false", "true")
_EXPECTED = {
    "integer": "whole numbers",
    "boolean": "0 and 1, or false and true",
    "enumeration": "the numbers of its items, which are whole",
}


def _are_truths(column: Any) -> bool:
    """Return whether a column consists of true and false."""
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return (
        isinstance(values, (list, tuple)) and bool(values) and all(isinstance(each, bool) for each in values)
    )


def _typed_ports(ports: tuple[Port, ...], types: Mapping[str, Any] | None) -> tuple[Port, ...]:
    """Return the ports with the types that are said by name; None: none are."""
    types = {} if types is None else types
    expect(isinstance(types, Mapping), "types", types, '{"gear": "integer"}')
    known = [port.name for port in ports]
    faults = [
        Fault(f"there is no column `{name}`", "types", "", suggest_nearest(str(name), known))
        for name in types
        if name not in known
    ]
    raise_faults(faults)
    typed = tuple(replace(port, type=types[port.name]) if port.name in types else port for port in ports)
    refuse_events(typed, "a table")
    return typed


def _suits(value: float, port: Port) -> bool:
    """Return whether a number is a value of the port's type."""
    if port.type == "boolean":
        return value in (0.0, 1.0)
    return port.type == "real" or value.is_integer()


def _split_header(header: str) -> tuple[str, str]:
    name, bracket, unit = header.partition("[")
    return name.strip(), unit.rstrip("] ").strip() if bracket else ""


def _check_options(interpolation: str, outside: str) -> None:
    faults = choice_faults("interpolation", interpolation, get_args(Interpolation))
    raise_faults([*faults, *choice_faults("outside", outside, get_args(Outside))])


@dataclass(frozen=True, init=False)
class Function:
    """A function of time as a source: f(t) returns a number, or one for each output."""

    f: Callable[[float], Any] | str
    outputs: tuple[Port, ...]
    folder: str
    inputs = ()
    capabilities = Capabilities(rollback=True)

    def __init__(
        self, f: Callable[[float], Any] | str, outputs: Iterable[PortLike], *, folder: str | Path = ""
    ):
        if not callable(f) and not isinstance(f, str):
            expected = "a function of t, or text that names one"
            raise ScenarioError(f"`{f!r}` is not a function", "f", expected)
        where = f"`Function` of `{qualified_name(f)}`"
        ports = with_feedthrough(parse_value_ports(outputs, where), (), {}, where)
        set_fields(self, f=f, outputs=ports, folder=str(folder))

    def open(self) -> Simulator:
        found = load(self.f, self.folder) if isinstance(self.f, str) else self.f
        if not callable(found):
            raise ScenarioError(f"`{qualified_name(self.f)}` is not a function", "f", "a function of t")
        return _FunctionSource(found)


class _Source:
    """What all sources share: time passes, nothing is kept."""

    def start(self, t: float) -> None:
        """Keep nothing."""

    def step(self, t: float, h: float, u: Array) -> float:
        return t + h

    def save(self) -> None:
        """Keep nothing."""

    def restore(self, state: None) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Hold nothing."""


class _FunctionSource(_Source):
    def __init__(self, f: Callable[[float], Any]):
        self.f = f

    def output(self, t: float, u: Array) -> Any:
        return self.f(t)


class _TableSource(_Source):
    """Lists, not arrays: a row has few numbers."""

    def __init__(
        self, times: list[float], rows: list[list[float]], interpolation: str, outside: str, held: list[bool]
    ):
        self.times = times
        self.rows = rows
        self.last = len(times) - 1
        self.linear = interpolation == "linear" and not all(held)
        self.held = held if any(held) else None
        """Per column, whether it is not interpolated; None: none is so."""
        self.strict = outside == "error"
        constant = [still or interpolation == "hold" for still in held]
        self.jumps = _jump_rows(times, np.array(rows), constant)
        """The rows at whose times a column jumps."""
        self.next = 0
        """Which of them is to come."""
        self.event_grid = 0.0
        """Above 0 where the level takes instants: then a jump at the end of a step is left to them."""
        self.end = -math.inf
        """Where the last step ended: there the values are those before a jump, until it is committed."""

    def start(self, t: float) -> None:
        self.next, self.end = 0, -math.inf
        self._pass_jumps(t)

    def step(self, t: float, h: float, u: Array) -> float:
        self._pass_jumps(t)  # those that nobody has committed
        if self.event_grid > 0.0:
            self.end = t + h
        return t + h

    def save(self) -> Any:
        return self.next, self.end

    def restore(self, state: Any) -> None:
        self.next, self.end = state

    def due(self) -> Fraction | None:
        """Return the time of the next jump."""
        return seconds(self.times[self.jumps[self.next]]) if self.next < len(self.jumps) else None

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> None:
        """Wait for the end of the instant."""
        self.at = t

    def commit(self) -> bool:
        """Go over to the values after the jump."""
        self.end = -math.inf
        if self.next < len(self.jumps):  # the one that was due, though its time may be a rounding later
            self._pass_jumps(max(self.at, self.times[self.jumps[self.next]]))
        return False

    def _pass_jumps(self, t: float) -> None:
        while self.next < len(self.jumps) and self.times[self.jumps[self.next]] <= t:
            self.next += 1

    def output(self, t: float, u: Array) -> Any:
        row = self._row(t)
        if not self.linear or not 0 <= row < self.last:
            return self.rows[max(row, 0)]
        before, after = self.times[row], self.times[row + 1]
        weight = max(t - before, 0.0) / (after - before) if after > before else 0.0
        between = [a + (b - a) * weight for a, b in zip(self.rows[row], self.rows[row + 1], strict=True)]
        return between if self.held is None else self._hold(between, self.rows[row])

    def slope(self, t: float, u: Array) -> Any:
        """Return the slopes to the right of t."""
        row = self._row(t)
        if not self.linear or not 0 <= row < self.last:
            return [0.0] * len(self.rows[0])
        length = self.times[row + 1] - self.times[row] or math.inf
        slopes = [(b - a) / length for a, b in zip(self.rows[row], self.rows[row + 1], strict=True)]
        return slopes if self.held is None else self._hold(slopes, [0.0] * len(slopes))

    def _hold(self, moving: list[float], held: list[float]) -> list[float]:
        assert self.held is not None
        return [b if still else a for a, b, still in zip(moving, held, self.held, strict=True)]

    def _row(self, t: float) -> int:
        """Return the number of the last row whose time is not after t; -1 before the first."""
        if self.strict and not self.times[0] <= t <= self.times[-1]:
            expected = f"{self.times[0]:.9g} s to {self.times[-1]:.9g} s"
            hint = 'a longer table, or outside="hold"'
            raise SimulatorError(f"the table has no value at t = {t:.9g} s", "", expected, hint)
        row = bisect_right(self.times, t) - 1
        if self.event_grid > 0.0 and self.next > 0:  # a jump that is over, though a rounding later than t
            row = max(row, self.jumps[self.next - 1])
        waits = t <= self.end and self.next < len(self.jumps)
        return min(row, self.jumps[self.next] - 1) if waits else row


def _jump_rows(times: list[float], values: Array, constant: Sequence[bool]) -> list[int]:
    """Return the rows at whose times a column jumps: times that repeat, and held columns that change."""
    if len(times) < 2:
        return []
    instants = np.array(times)
    again = instants[1:] == instants[:-1]
    held = np.array(constant, dtype=bool)
    changed = values[1:] != values[:-1]
    jumping = again & changed.any(axis=1) | (changed & held).any(axis=1)
    return [int(row) + 1 for row in np.flatnonzero(jumping)]
