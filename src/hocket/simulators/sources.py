"""Signals that come from outside: tables, files of measurements, functions of time.

In:  times and values, the path of a CSV file, or a function of t
Out: Models without inputs or state
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

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
from hocket.model.arguments import as_path, choice_faults, expect, expect_texts, is_blank, set_fields
from hocket.model.calendar import Moment, format_moment, parse_moment
from hocket.model.calendar import time_zone as zone_of
from hocket.model.clock import seconds
from hocket.model.ports import Port, PortLike, PortType, parse_ports, parse_value_ports, refuse_events
from hocket.model.protocols import Array, Capabilities, Simulator
from hocket.model.registry import load_place
from hocket.simulators.column_files import (
    EXPECTED,
    ColumnFile,
    Heading,
    Reading,
    seconds_from_origin,
    split_heading,
    suits,
)
from hocket.simulators.methods import to_floats
from hocket.simulators.recipes import Recipe, load, qualified_name, with_feedthrough

if TYPE_CHECKING:
    import pandas as pd

Interpolation: TypeAlias = Literal["linear", "hold"]
Outside: TypeAlias = Literal["hold", "error"]


@dataclass(frozen=True, init=False, eq=False)
class Table(Recipe):
    """Columns of values over times: `Table([0, 1], {"force [N]": [0.0, 3.0]})`.

    `columns` may be rows and columns of numbers too, with `outputs` to name the columns. `Table(frame)` takes
    a DataFrame over time, with units in its headings or in `frame.attrs["units"]`, as `run.to_pandas()` has
    them; where its index has dates, `origin` says which one is time 0. A time that is
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
        return _jump_rows(self.times, self.values, held)

    def __init__(
        self,
        t: Sequence[float] | Array | pd.DataFrame,
        columns: Mapping[str, Sequence[float] | Array] | Sequence[Sequence[float]] | Array | None = None,
        interpolation: Interpolation = "linear",
        outputs: Iterable[PortLike] | None = None,
        outside: Outside = "hold",
        types: Mapping[str, PortType] | None = None,
        *,
        origin: Moment = "",
    ):
        _check_options(interpolation, outside)
        if columns is None:
            t, columns = _frame_columns(t, None if is_blank(origin) else parse_moment(origin, "origin"))
            outputs = [split_heading(name).as_port() for name in columns] if outputs is None else outputs
        elif not is_blank(origin):
            raise ScenarioError(
                "an origin is for a DataFrame, whose times are dates", "origin", "leave it out"
            )
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
            misfits = [value for value in values[:, number].tolist() if not suits(value, port)]
            if misfits:
                what = f"the column `{port.name}` of a `Table` has the value {misfits[0]:g}"
                raise ScenarioError(what, expected=EXPECTED[port.type])
        for array in (times, values):
            array.setflags(write=False)
        options = {"interpolation": interpolation, "outside": outside}
        set_fields(self, times=times, values=values, outputs=written, **options)

    def open(self) -> Simulator:
        held = [port.discrete for port in self.outputs]
        return _TableSource(self.times, self.values, self.interpolation, self.outside, held)


@dataclass(frozen=True, init=False)
class Csv:
    """A `Table` from a file: CSV, Parquet (`.parquet`) or a year of weather (`.epw`).

    CSV files have a header row; units stand in it (`force [N]`) or in a row of their own below it. `time`
    names the column of times, in seconds unless it has another unit. `columns` lists the columns to put out,
    or maps ports to them: `{"speed [m/s]": "wheel speed"}`; None: all. The header is read here, the rows when
    a simulator is opened. Paths start in `folder`. `types` are those of a `Table`, by port; a boolean column
    may be written `true` and `false`.

    Times may be dates: `origin` is the one that is time 0, `time_zone` that of dates that name none,
    `time_format` how they are written, if not as 2024-01-31T08:00. `decimal` is the sign before decimals.
    """

    path: str
    time: str
    columns: tuple[tuple[Port, int], ...]
    """What is put out, each with the number of its column in the file."""
    interpolation: Interpolation
    outside: Outside
    folder: str
    origin: str
    time_zone: str
    time_format: str
    decimal: str
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
        origin: Moment = "",
        time_zone: str = "",
        time_format: str = "",
        decimal: str = ".",
    ):
        _check_options(interpolation, outside)
        raise_faults(choice_faults("decimal", decimal, (".", ",")))
        options = {"interpolation": interpolation, "outside": outside, "decimal": decimal}
        expect(isinstance(time, str), "time", time, "the heading of a column")
        fits = columns is None or isinstance(columns, Iterable)
        expect(fits, "columns", columns, "headings, or ports with their headings, or None")
        expect_texts(time_zone=time_zone, time_format=time_format)
        if time_zone:
            zone_of(time_zone, "time_zone")
        moment = (
            "" if is_blank(origin) else format_moment(_with_zone(parse_moment(origin, "origin"), time_zone))
        )
        set_fields(self, path=str(as_path(path)), time=time, folder=str(folder), **options)
        set_fields(self, origin=moment, time_zone=time_zone, time_format=time_format)
        file = self.column_file
        headings, clock = file.headings, file.column(time)
        if columns is None:
            columns = [each.text for number, each in enumerate(headings) if number != clock]
        chosen = []
        for written, text in columns.items() if isinstance(columns, Mapping) else ((c, c) for c in columns):
            number = file.column(text)
            chosen.append((self._port(headings[number] if written == text else written), number))
        ports = _typed_ports(tuple(port for port, _ in chosen), types)
        with_feedthrough(ports, (), {}, str(self.file))
        set_fields(self, columns=tuple(zip(ports, (number for _, number in chosen), strict=True)))

    @property
    def file(self) -> Path:
        return Path(self.folder) / self.path

    @property
    def column_file(self) -> ColumnFile:
        """The file, whose headings are read anew."""
        origin = parse_moment(self.origin, "origin") if self.origin else None
        reading = Reading(origin, self.time_zone, self.time_format, self.decimal)
        reader: type[ColumnFile] = load_place(_READERS.get(self.file.suffix.lower(), _TEXT))
        return reader(self.file, reading)

    @property
    def headings(self) -> list[str]:
        """The headings of what is put out, as they are written in the file."""
        known = self.column_file.headings
        return [known[number].text for _, number in self.columns]

    @property
    def outputs(self) -> tuple[Port, ...]:
        return tuple(port for port, _ in self.columns)

    def open(self) -> Simulator:
        file = self.column_file
        clock = file.column(self.time)
        numbers = [number for _, number in self.columns]
        if max([clock, *numbers]) >= len(file.headings):
            raise file.error("the header has changed", 1, f"{max(numbers) + 1} columns")
        times, rows = file.read(clock, self.columns)
        held = [port.discrete for port in self.outputs]
        return _TableSource(times, rows, self.interpolation, self.outside, held)

    def _port(self, written: str | Heading) -> Port:
        """Return the port of a column; its name may have spaces."""
        heading = split_heading(written) if isinstance(written, str) else written
        try:
            return heading.as_port()
        except ScenarioError as error:
            fault, hint = error.faults[0], f'name it: columns={{"name": "{heading.text}"}}'
            raise FileError(fault.what, Place(file=str(self.file), line=1), fault.expected, hint) from None


_TEXT = "hocket.simulators.text_columns:TextColumns"
_READERS = {
    ".parquet": "hocket.simulators.parquet_columns:ParquetColumns",
    ".epw": "hocket.simulators.weather_columns:WeatherColumns",
}
"""What reads a file, by the ending of its name, imported when there is one; what is not known is text."""


def _with_zone(moment: datetime, zone: str) -> datetime:
    """Return an origin in the time zone of the dates of a file, if it names none."""
    return moment.replace(tzinfo=zone_of(zone, "time_zone")) if zone and moment.tzinfo is None else moment


def _frame_columns(frame: Any, origin: datetime | None) -> tuple[Array, dict[str, Any]]:
    """Return the times and columns of a DataFrame, by heading with unit."""
    if not all(hasattr(frame, name) for name in ("index", "columns", "attrs", "dtypes")):
        expected = "times and columns, or a DataFrame with the time as its index"
        raise ScenarioError("a `Table` has no columns", "columns", expected)
    names = [str(name) if isinstance(name, str) else name for name in frame.columns]
    odd = [name for name in names if not isinstance(name, str)]
    if odd or len(set(names)) < len(names):
        what = f"`{odd[0]}` cannot name a port" if odd else "columns of the DataFrame share a name"
        raise ScenarioError(what, "columns", "one text as the name of each column", "frame.columns = [...]")
    index, units = frame.index, frame.attrs.get("units", {})
    if index.nlevels > 1:
        raise ScenarioError("the index of the DataFrame has several levels", "t", "one time per row")
    columns: dict[str, Any] = {}
    for name in names:
        values = frame[name].to_numpy()
        if values.dtype.kind not in "fiub":
            raise ScenarioError(f"the column `{name}` holds {values.dtype}", "columns", "numbers")
        if not np.isfinite(values.astype(float)).all():
            what = f"the column `{name}` has cells that are not a finite number"
            hint = 'fill them: of a run, `run.to_pandas(rate="outermost")` has no holes'
            raise ScenarioError(what, "columns", "a number in each row", hint)
        heading = name if "[" in name or not units.get(name) else f"{name} [{units[name]}]"
        columns[heading] = values.tolist() if values.dtype.kind == "b" else values
    if index.dtype.kind != "M":
        return index.to_numpy(), columns
    zoned = index.tz is not None
    stamps = (index.tz_convert("UTC").tz_localize(None) if zoned else index).to_numpy()
    if not len(stamps) or np.isnat(stamps).any():
        raise ScenarioError(
            "the index of the DataFrame has no times, or a time that is missing", "t", "dates"
        )
    return seconds_from_origin(stamps, zoned, origin, "origin"), columns


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


_MANY = 20_000
_ROUNDINGS = 4.0 * float(np.finfo(float).eps)


class _RowsOnDemand:
    """Many rows as lists, each made when it is asked for: half a million lists take longer than the file."""

    def __init__(self, values: Array):
        self.values = values

    def __getitem__(self, row: int) -> list[float]:
        found: list[float] = self.values[row].tolist()
        return found


class _TableSource(_Source):
    """Lists, not arrays: a row has few numbers."""

    def __init__(self, times: Array, values: Array, interpolation: str, outside: str, held: list[bool]):
        self.times: list[float] = times.tolist()
        self.rows: Any = values.tolist() if len(values) <= _MANY else _RowsOnDemand(values)
        self.last = len(self.times) - 1
        self.linear = interpolation == "linear" and not all(held)
        self.held = held if any(held) else None
        """Per column, whether it is not interpolated; None: none is so."""
        self.strict = outside == "error"
        constant = [still or interpolation == "hold" for still in held]
        self.jumps = _jump_rows(times, values, constant)
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
        if self.event_grid > 0.0:  # the level may count the end a rounding later
            self.end = t + h + max(self.event_grid, _ROUNDINGS * abs(t + h))
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


def _jump_rows(instants: Array, values: Array, constant: Sequence[bool]) -> list[int]:
    """Return the rows at whose times a column jumps: times that repeat, and held columns that change."""
    if len(instants) < 2:
        return []
    again = instants[1:] == instants[:-1]
    held = np.array(constant, dtype=bool)
    changed = values[1:] != values[:-1]
    jumping = again & changed.any(axis=1) | (changed & held).any(axis=1)
    return [int(row) + 1 for row in np.flatnonzero(jumping)]
