"""What was recorded, for other programs: frames, spans of time, and files of other formats.

In:  the columns of a run, by rate
Out: pandas, xarray; CSV, Parquet, HDF5, MATLAB

No port is left out unless that is asked for. What is not always needed is imported where it is used.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hocket.engine.recording import EVENT, SampleTable
from hocket.errors import ScenarioError, raise_faults
from hocket.files.atomic_files import replace_file
from hocket.files.plotting import import_extra
from hocket.files.rates import HOWS, Pieces, Rate, Rows, bin_column, grid_times, union_rows, values_at
from hocket.model.arguments import choice_faults, expect, is_flag, is_number
from hocket.model.calendar import Moment, parse_moment
from hocket.model.clock import Duration, seconds
from hocket.model.protocols import Array

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_ROWS = 1 << 27
"""Of a frame: more would fit into no memory, and were not meant."""
_PERIODS = {"day": "D", "week": "W-MON", "month": "MS", "year": "YS"}
_LONGEST = 9_000_000_000
"""Seconds from an origin that nanoseconds in 64 bits can hold."""


@dataclass(frozen=True, eq=False)
class RecordedRate(Rate):
    """Ports that share their times, with names and units."""

    table: str = ""
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Axis:
    """Ports on one time axis, in the order in which they were asked for."""

    t: Array
    names: tuple[str, ...]
    columns: list[Array]
    units: tuple[str, ...]


class RunFrames:
    """What a Run hands over to other programs.

    `ports` are names and patterns; None: all that was recorded. `rate` says which rows there are: "union",
    one for each time of any rate; "outermost", those of the outermost level; or an interval such as "2 ms".
    Between its own rows a port that moves is a straight line, one that is held or sampled keeps its value, an
    event is absent. `interpolate` None: on the union a port is NaN where it has no row, other rates are
    filled. `origin` is the moment of the calendar at which time is 0, by default that of the scenario.
    """

    info: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What was run."""
        raise NotImplementedError

    def select(self, wanted: Iterable[str] | None) -> tuple[str, ...]:
        """Return the recorded ports that names and patterns stand for."""
        raise NotImplementedError

    def table(self, name: str = "") -> pa.Table:
        """Return one rate as it was recorded."""
        raise NotImplementedError

    def read_rates(self, ports: Sequence[str]) -> list[RecordedRate]:
        """Return ports by rate, each where it was recorded finest."""
        raise NotImplementedError

    def to_pandas(
        self,
        table: str | None = None,
        *,
        ports: Iterable[str] | None = None,
        rate: Duration = "union",
        interpolate: bool | None = None,
        origin: Moment | None = None,
    ) -> pd.DataFrame:
        """Return everything that was recorded as a frame, by time; `frame.attrs["units"]` has the units.

        `table` asks for one rate as it was recorded, and nothing else: "" is that of the outermost level.
        With an origin the index has dates in place of seconds.
        """
        expect(
            table is None or isinstance(table, str),
            "table",
            table,
            "the name of a rate; ports are given as ports=[...]",
        )
        axis = self._table_axis(table, ports) if table is not None else self._axis(ports, rate, interpolate)
        return self._frame(axis, self._index(axis.t, origin))

    def to_xarray(
        self,
        *,
        ports: Iterable[str] | None = None,
        rate: Duration = "union",
        interpolate: bool | None = None,
        origin: Moment | None = None,
    ) -> xr.Dataset:
        """Return a Dataset with a variable for each port over `time`; units are attributes."""
        xarray = import_extra("xarray", "xarray")
        axis = self._axis(ports, rate, interpolate)
        start = self._origin(origin)
        if start is None:
            times: Any = ("time", axis.t, {"units": "s"})
        else:
            zone = str(start.tzinfo or "")
            times = (
                "time",
                _stamps(axis.t, start),
                {"time_zone": "UTC", "origin_zone": zone} if zone else {},
            )
        columns = zip(axis.names, axis.columns, axis.units, strict=True)
        variables = {
            name: ("time", values, {"units": unit} if unit else {}) for name, values, unit in columns
        }
        found: xr.Dataset = xarray.Dataset(variables, {"time": times}, {"name": self.name})
        return found

    def resample(
        self,
        every: Duration,
        how: str = "mean",
        ports: Iterable[str] | None = None,
        *,
        origin: Moment | None = None,
    ) -> pd.DataFrame:
        """Return a frame with one row for each span of time, named after its begin.

        `every` is a duration, or "day", "week", "month" or "year" of the calendar, which need an origin.
        `how` is "mean" or "integral" over time (rows that are close together count no more than others),
        "min", "max", "first" or "last" value in the span, or "count" of its rows. A span that the run fills
        in part is judged by that part. Events have no mean: NaN.
        """
        raise_faults(choice_faults("how", how, HOWS))
        names = self.select(ports)
        rates = self.read_rates(names)
        edges, labels = self._edges(every, rates, origin)
        found, units = {}, {}
        for rate, column, name, unit in _columns(rates):
            kind = rate.kinds[column]
            found[name] = bin_column(rate.t, rate.values[:, column], kind, edges, how)
            units[name] = _unit_of(how, unit)
        axis = Axis(edges[:-1], names, [found[name] for name in names], tuple(units[name] for name in names))
        return self._frame(axis, labels)

    def aggregate(self, *ports: str, above: float | None = None) -> pd.DataFrame:
        """Return a frame with a row for each port: mean and integral over time, least, largest, last value.

        With `above`: for how many seconds it was above that level, in its own unit. Events have neither.
        """
        expect(above is None or is_number(above), "above", above, "a number, in the unit of the ports")
        above = None if above is None else float(above)
        pandas = import_extra("pandas", "pandas")
        names = self.select(ports or None)
        rows = {}
        for rate, column, name, unit in _columns(self.read_rates(names)):
            t, values, kind = rate.t, rate.values[:, column], rate.kinds[column]
            present = values[~np.isnan(values)] if kind == EVENT else values
            row: dict[str, object] = {"unit": unit}
            for how in ("mean", "integral"):
                span = np.array([t[0], t[-1]]) if len(t) else np.zeros(2)
                row[how] = float(bin_column(t, values, kind, span, how)[0])
            ends = (present.min(), present.max(), present[-1]) if len(present) else (np.nan,) * 3
            row |= dict(zip(("min", "max", "last"), map(float, ends), strict=True))
            if above is not None:
                whole = len(t) > 1 and kind != EVENT
                cut = Pieces.cut(t, values, kind, np.array([t[0], t[-1]])) if whole else None
                row[f"time above {above:g}"] = float(cut.above(above)[0]) if cut else np.nan
            rows[name] = row
        found: pd.DataFrame = pandas.DataFrame.from_dict({name: rows[name] for name in names}, orient="index")
        found.index.name = "port"
        return found

    def to_csv(
        self,
        path: Path | str | IO[bytes],
        ports: Iterable[str] | None = None,
        *,
        rate: Duration = "union",
        interpolate: bool | None = None,
        origin: Moment | None = None,
    ) -> None:
        """Write ports as columns after the time, in digits that read back exactly; `path` may be open.

        The header has the units (`axle.x [m]`), so that a `Csv` reads them back. Ports of several rates share
        one time column, with the times of all of them; where a port has no sample there is a `nan`. With an
        origin of its own the time is written as dates.
        """
        from pyarrow import csv

        table = self._arrow(ports, rate, interpolate, origin)
        dated = not pa.types.is_floating(table.schema.field(0).type)
        head = "time" if dated else "time [s]"
        table = table.rename_columns([head, *map(_column_heading, list(table.schema)[1:])])
        if isinstance(path, (str, Path)):
            with replace_file(path) as file:
                csv.write_csv(table, file)
        else:
            expect(isinstance(path, io.IOBase), "path", path, "a path, or a file that is open for bytes")
            csv.write_csv(table, path)

    def to_parquet(
        self,
        path: Path | str,
        ports: Iterable[str] | None = None,
        *,
        rate: Duration = "union",
        interpolate: bool | None = None,
        origin: Moment | None = None,
    ) -> None:
        """Write the same columns as `to_csv`; each has its unit as metadata."""
        from pyarrow import parquet

        table = self._arrow(ports, rate, interpolate, origin)
        with replace_file(path) as file:
            parquet.write_table(table, file)

    def to_hdf5(self, path: Path | str, ports: Iterable[str] | None = None) -> None:
        """Write ports as they were recorded: a group for each rate, in it `time` and `ports`, with units."""
        h5py = import_extra("h5py", "hdf5")
        rates = self.read_rates(self.select(ports))
        memory = io.BytesIO()
        with h5py.File(memory, "w") as file:
            file.attrs.update(self._heading())
            for number, rate in enumerate(rates):
                group = file.create_group(f"rates/{number:03}")
                group.attrs["table"] = rate.table
                group.create_dataset("time", data=rate.t).attrs["unit"] = "s"
                for column, name in enumerate(rate.names):
                    data = group.create_dataset(f"ports/{column:06}", data=rate.values[:, column])
                    data.attrs.update(port=name, unit=rate.units[column], kind=rate.kinds[column])
        with replace_file(path) as out:
            out.write(memory.getbuffer())

    def to_mat(self, path: Path | str, ports: Iterable[str] | None = None) -> None:
        """Write ports as they were recorded, for MATLAB: `run.rates{1}` has time, names, units and values."""
        from scipy.io import savemat

        rates = self.read_rates(self.select(ports))
        size = max((rate.values.nbytes for rate in rates), default=0)
        if size >= 1 << 31:
            what = f"{size / 1e9:.1f} GB at one rate do not fit into a .mat file"
            raise ScenarioError(
                what, str(path), "less than 2.1 GB", "fewer ports, or HDF5, which MATLAB reads"
            )
        cells = np.empty(len(rates), dtype=object)
        for number, rate in enumerate(rates):
            texts = {key: np.array(list(getattr(rate, key)), dtype=object) for key in ("names", "units")}
            cells[number] = {"table": rate.table, "time": rate.t, "values": rate.values, **texts}
        memory = io.BytesIO()
        file: Any = memory
        savemat(file, {"run": {**self._heading(), "rates": cells}}, long_field_names=True, oned_as="column")
        with replace_file(path) as out:
            out.write(memory.getbuffer())

    def _heading(self) -> dict[str, Any]:
        known = ("status", "start", "stop", "reached", "origin", "engine")
        return {"name": self.name, **{key: self.info[key] for key in known if key in self.info}}

    def _frame(self, axis: Axis, index: Any) -> pd.DataFrame:
        pandas = import_extra("pandas", "pandas")
        columns = dict(zip(axis.names, axis.columns, strict=True))
        frame: pd.DataFrame = pandas.DataFrame(columns, index=index, columns=list(axis.names))
        frame.attrs["units"] = dict(zip(axis.names, axis.units, strict=True))
        return frame

    def _table_axis(self, name: str, ports: Iterable[str] | None) -> Axis:
        """Return one rate as it was recorded."""
        arrow = self.table(name)
        known = SampleTable.from_schema(arrow.schema)
        assert known is not None
        units = dict(zip(known.columns, known.units, strict=True))
        wanted = known.columns if ports is None else self.select(ports)
        missing = [port for port in wanted if port not in units]
        if missing:
            what = f"`{missing[0]}` is not in the table `{name}`"
            raise ScenarioError(what, "ports", "ports of this rate", "leave `table` out: all rates are in it")
        columns = [arrow.column(1 + known.columns.index(port)).to_numpy() for port in wanted]
        return Axis(arrow.column(0).to_numpy(), wanted, columns, tuple(units[port] for port in wanted))

    def _axis(self, ports: Iterable[str] | None, rate: Duration, interpolate: bool | None) -> Axis:
        """Return ports on one time axis."""
        expect(interpolate is None or is_flag(interpolate), "interpolate", interpolate, "True, False or None")
        names = self.select(ports)
        rates = self.read_rates(names)
        union = isinstance(rate, str) and rate == "union"
        alone = union and len(rates) == 1  # as it was recorded, bit for bit
        rows = Rows.of(rates[0].t) if alone else self._rows(rates, rate)
        fills = not union if interpolate is None else interpolate
        found: dict[str, Array] = {}
        for each in rates:
            values = each.values if alone else values_at(each, rows, fills)
            found |= {name: values[:, column] for column, name in enumerate(each.names)}
        units = {name: unit for _, _, name, unit in _columns(rates)}
        return Axis(rows.t, names, [found[name] for name in names], tuple(units[name] for name in names))

    def _rows(self, rates: Sequence[RecordedRate], rate: Duration) -> Rows:
        if isinstance(rate, str) and rate == "union":
            return union_rows(rates)
        if isinstance(rate, str) and rate == "outermost":
            try:
                return Rows.of(self.table("").column(0).to_numpy())
            except KeyError:
                what = "nothing of the outermost level was recorded"
                hint = 'rate="union", or an interval such as "10 ms"'
                raise ScenarioError(what, "rate", "", hint) from None
        step = _interval(rate, "rate", '"union", "outermost" or an interval such as "2 ms"')
        start, stop = self._span(rates)
        if (stop - start) / step > MOST_ROWS:
            what = f"a row every {rate} would make {float((stop - start) / step):.3g} rows"
            raise ScenarioError(what, "rate", f"at most {MOST_ROWS:,}", "a longer interval")
        return Rows.after(grid_times(start, step, stop))

    def _span(self, rates: Sequence[Rate]) -> tuple[Fraction, Fraction]:
        """Return from when to when there are rows."""
        filled = [rate.t for rate in rates if len(rate.t)]
        if not filled:
            raise ScenarioError("no row was recorded", where=repr(self))
        return min(seconds(float(t[0])) for t in filled), max(seconds(float(t[-1])) for t in filled)

    def _origin(self, origin: Moment | None) -> datetime | None:
        told = self.info.get("origin") or None if origin is None else origin
        return None if told is None else parse_moment(told, "origin")

    def _index(self, t: Array, origin: Moment | None) -> Any:
        """Return times as the index of a frame: seconds, or dates."""
        pandas = import_extra("pandas", "pandas")
        start = self._origin(origin)
        if start is None:
            return pandas.Index(t, name="time")
        index = pandas.DatetimeIndex(_stamps(t, start), name="time")
        return index if start.tzinfo is None else index.tz_localize("UTC").tz_convert(start.tzinfo)

    def _edges(self, every: Duration, rates: Sequence[Rate], origin: Moment | None) -> tuple[Array, Any]:
        """Return the edges of spans of time in seconds, and what the spans are called."""
        begin, end = self._span(rates)
        if isinstance(every, str) and every in _PERIODS:
            return self._calendar_edges(_PERIODS[every], begin, end, origin)
        words = ", ".join(f'"{word}"' for word in _PERIODS)
        step = _interval(every, "every", f'a duration such as "1 h", or {words}')
        count = max(1, -((begin - end) // step))
        if count > MOST_ROWS:
            raise ScenarioError(f"{count:,} spans of {every}", "every", f"at most {MOST_ROWS:,}")
        edges = grid_times(begin, step, begin + step * count)
        return edges, self._index(edges[:-1], origin)

    def _calendar_edges(
        self, period: str, begin: Fraction, end: Fraction, origin: Moment | None
    ) -> tuple[Array, Any]:
        pandas = import_extra("pandas", "pandas")
        start = self._origin(origin)
        if start is None:
            what = "spans of the calendar need to know which date time 0 is"
            hint = 'origin="2024-01-01", or `origin` in the table [run] of the file'
            raise ScenarioError(what, "origin", "a date", hint)
        first, last = self._index(np.array([float(begin), float(end)]), start)
        # back to the begin of its period, on the clock of the zone
        plain, offset = first.tz_localize(None).normalize(), pandas.tseries.frequencies.to_offset(period)
        stop = last.tz_localize(None).normalize() + offset
        dates = pandas.date_range(offset.rollback(plain), offset.rollforward(stop), freq=offset)
        if start.tzinfo is not None:
            early = np.ones(len(dates), bool)
            dates = dates.tz_localize(start.tzinfo, nonexistent="shift_forward", ambiguous=early)
        zero = self._index(np.zeros(1), start)[0]
        edges = ((dates - zero) / pandas.Timedelta(1, "s")).to_numpy()
        used = max(2, int(np.searchsorted(edges, float(end))) + 1)
        return edges[:used], dates[: used - 1].rename("time")

    def _arrow(
        self, ports: Iterable[str] | None, rate: Duration, interpolate: bool | None, origin: Moment | None
    ) -> pa.Table:
        """Return ports as one table, time first: seconds, or dates if an origin is given."""
        axis = self._axis(ports, rate, interpolate)
        schema = SampleTable("", axis.names, axis.units).schema
        times = pa.array(axis.t)
        if origin is not None:
            start = parse_moment(origin, "origin")
            zone = None if start.tzinfo is None else "UTC"
            times = pa.array(_stamps(axis.t, start)).cast(pa.timestamp("ns", zone))
            schema = schema.set(0, pa.field(schema.names[0], times.type))
        return pa.Table.from_arrays([times, *map(pa.array, axis.columns)], schema=schema)


def _interval(written: Duration, where: str, expected: str) -> Fraction:
    try:
        step = seconds(written)
    except ValueError as error:
        raise ScenarioError(str(error), where, expected) from None
    if step <= 0:
        raise ScenarioError(f"`{where}` is not above zero", where, expected)
    return step


def _columns(rates: Iterable[RecordedRate]) -> Iterator[tuple[RecordedRate, int, str, str]]:
    """Yield each column with its rate, number, name and unit."""
    for rate in rates:
        for column, (name, unit) in enumerate(zip(rate.names, rate.units, strict=True)):
            yield rate, column, name, unit


def _unit_of(how: str, unit: str) -> str:
    """Return the unit of an aggregate."""
    if how == "count":
        return ""
    return (f"({unit})*s" if "/" in unit else f"{unit}*s" if unit else "s") if how == "integral" else unit


def _stamps(t: Array, origin: datetime) -> Any:
    """Return times as dates, to the nanosecond; those of a zone in UTC."""
    if len(t) and np.max(np.abs(t)) > _LONGEST:
        raise ScenarioError(f"dates cannot be {np.max(np.abs(t)):g} s away from an origin", "origin")
    zero = np.datetime64(
        origin if origin.tzinfo is None else origin.astimezone(UTC).replace(tzinfo=None), "ns"
    )
    whole = np.floor(t)
    parts = whole.astype(np.int64) * 10**9 + np.rint((t - whole) * 1e9).astype(np.int64)
    return zero + parts.astype("timedelta64[ns]")


def _column_heading(field: pa.Field) -> str:
    unit = (field.metadata or {}).get(b"unit", b"").decode()
    return f"{field.name} [{unit}]" if unit else str(field.name)
