"""CSV files as columns over time.

In:  a text with a header row; separators, units, dates and decimals as people write them
Out: times in seconds and columns of numbers, or what is wrong, with its line

Rows are read by pyarrow. What that does not take is read again line by line, which says what is wrong.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Generator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from hocket.errors import FileError, suggest_nearest
from hocket.model.ports import Port
from hocket.model.protocols import Array
from hocket.model.units import is_unit
from hocket.simulators.column_files import (
    ANOTHER_RATE,
    EXPECTED,
    ColumnFile,
    Heading,
    split_heading,
    suits,
)

_LONGEST_LINE = 1 << 24
_TRUTHS = ("false", "true")


class TextColumns(ColumnFile):
    """A CSV file: commas, semicolons or tabs; units in the header, or in a row of their own below it."""

    @cached_property
    def _head(self) -> tuple[list[Heading], int, str, bool]:
        """Headings, the number of the last line of the header, the separator, whether times are dates."""
        lines = self.lines()
        line, fields = next(lines)
        headings = [split_heading(text) for text in fields]
        below = next(lines, None)
        lines.close()
        if below is not None and len(below[1]) == len(fields) and self._is_units_row(below[1]):
            headings = [self._with_unit(*pair) for pair in zip(headings, below[1], strict=True)]
            line = below[0]
        return headings, line, self._separator, below is not None

    @property
    def headings(self) -> Sequence[Heading]:
        """The headings of all columns, with the units of a row below them."""
        return self._head[0]

    def _is_units_row(self, fields: Sequence[str]) -> bool:
        """Return whether a row holds units and nothing else: no number, no date, no word that is no unit."""
        cells = [field.strip().removeprefix("[").removesuffix("]").strip() for field in fields]
        if any(self._is_value(cell) for cell in cells) or not any(cells):
            return False
        return all(cell in ("", "-") or is_unit(cell) for cell in cells)

    def _is_value(self, cell: str) -> bool:
        if not cell:
            return False
        with suppress(ValueError):
            float(cell.replace(self.reading.decimal, "."))
            return True
        return cell.lower() in _TRUTHS

    def _with_unit(self, heading: Heading, cell: str) -> Heading:
        unit = cell.strip().removeprefix("[").removesuffix("]").strip()
        unit = "" if unit == "-" else unit
        if unit and heading.unit and unit != heading.unit:
            what = f"the column `{heading.text}` has the unit `{unit}` in the row below"
            raise self.error(what, None, "one unit for each column")
        return heading._replace(unit=unit or heading.unit)

    def lines(self) -> Generator[tuple[int, list[str]]]:
        """Yield the lines that are not empty, with their numbers; the header first."""
        if self.file.exists() and not self.file.is_file():  # a device may never end
            raise FileError(f"`{self.file}` is not a file", str(self.file), "a file with rows of numbers")
        try:
            with self.file.open(newline="", encoding="utf-8-sig") as file:
                first = file.readline(_LONGEST_LINE)
                file.seek(0)
                self._separator = max(",;\t", key=first.count)
                reader = csv.reader(file, delimiter=self._separator, skipinitialspace=True)
                seen = False
                for fields in reader:
                    if any(fields) or len(fields) > 1:
                        seen = True
                        yield reader.line_num, [field.strip() for field in fields]
        except FileNotFoundError:
            beside = sorted(file.name for file in self.file.parent.glob(f"*{self.file.suffix or '.csv'}"))
            hint = suggest_nearest(self.file.name, beside)
            raise FileError(f"there is no file `{self.file}`", "", "", hint) from None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise FileError(f"`{self.file}` cannot be read: {error}", str(self.file)) from None
        if not seen:
            raise FileError("the file is empty", str(self.file), "a header row and rows of numbers")

    def read(self, clock: int, wanted: Sequence[tuple[Port, int]]) -> tuple[Array, Array]:
        plain = not any(port.type == "boolean" for port, _ in wanted) and not self.reading.time_format
        found = self._read_fast(clock, [number for _, number in wanted]) if plain else None
        if found is not None and all(
            port.type == "real" or np.equal(np.mod(column, 1), 0).all()
            for (port, _), column in zip(wanted, found[1].T, strict=True)
        ):
            return found
        return self._read_slowly(clock, wanted)

    def _read_fast(self, clock: int, wanted: Sequence[int]) -> tuple[Array, Array] | None:
        """Return what pyarrow reads; None: something is not as it should be."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        headings, line, separator, _ = self._head
        names = [f"c{number}" for number in range(len(headings))]
        types: dict[str, Any] = {names[number]: pa.float64() for number in {clock, *wanted}}
        options = {
            "read_options": arrow.ReadOptions(skip_rows=line, column_names=names),
            "parse_options": arrow.ParseOptions(delimiter=separator),
        }
        cells = {"null_values": [], "include_columns": list(types), "decimal_point": self.reading.decimal}
        for kind in (pa.float64(), pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
            types[names[clock]] = kind
            with suppress(pa.ArrowException, OSError):
                convert = arrow.ConvertOptions(column_types=types, **cells)
                table = arrow.read_csv(self.file, convert_options=convert, **options)
                break
        else:
            return None
        stamps = table[names[clock]].to_numpy()
        values = np.column_stack(
            [table[names[number]].to_numpy() for number in wanted] or [stamps[:, None][:, :0]]
        )
        if pa.types.is_timestamp(kind):
            times = self.seconds_of(stamps, kind.tz is not None)
        else:
            times = stamps / self.per_second(headings[clock])
        good = len(times) and np.isfinite(times).all() and np.isfinite(values).all()
        return (times, values) if good and not (times[1:] < times[:-1]).any() else None

    def _read_slowly(self, clock: int, wanted: Sequence[tuple[Port, int]]) -> tuple[Array, Array]:
        """Return the rows, read one by one; raises FileError with the line of what is wrong."""
        headings, header_line, _, _ = self._head
        clocks: list[tuple[int, str, float | datetime]] = []
        rows: list[list[float]] = []
        for line, fields in self.lines():
            if line <= header_line:
                continue
            if len(fields) != len(headings):
                raise self.error(f"{len(fields)} fields", line, f"{len(headings)}, as in the header")
            clocks.append((line, fields[clock], self._time_of(line, fields[clock], headings[clock])))
            rows.append([self._value(fields[k], headings[k].text, line, port) for port, k in wanted])
        if not rows:
            raise FileError("there are no rows beneath the header", str(self.file))
        times = self._times_of(clocks)
        late = np.flatnonzero(times[1:] < times[:-1])
        if len(late):
            row = int(late[0]) + 1
            what = f"the time decreases: {times[row]:.9g} s after {times[row - 1]:.9g} s"
            dated = self._date(clocks[row][1]) is not None
            hint = 'time_zone="Europe/Berlin", if clocks were put back' if dated else ""
            raise self.error(what, clocks[row][0], "times in order; equal times are a jump", hint)
        return times, np.array(rows).reshape(len(rows), len(wanted))

    def _times_of(self, clocks: Sequence[tuple[int, str, float | datetime]]) -> Array:
        kinds = [isinstance(each, datetime) and (each.tzinfo is not None) + 1 for _, _, each in clocks]
        for (line, text, _), kind in zip(clocks, kinds, strict=True):
            if kind != kinds[0]:
                raise self.error(f"`{text}` is not a time as those before it", line, "times of one kind")
        dates = [each for _, _, each in clocks if isinstance(each, datetime)]
        if not dates:
            return np.array([each for _, _, each in clocks], dtype=float)
        zoned = dates[0].tzinfo is not None
        plain = [each.astimezone(UTC).replace(tzinfo=None) if zoned else each for each in dates]
        return self.seconds_of(np.array(plain, dtype="datetime64[us]").astype("datetime64[ns]"), zoned)

    def _time_of(self, line: int, text: str, heading: Heading) -> float | datetime:
        """Return a time in seconds, or a date."""
        if (date := self._date(text)) is not None:
            return date
        return self._number(text, heading.text, line) / self.per_second(heading)

    def _date(self, text: str) -> datetime | None:
        """Return a cell as a date; None: it is none. Digits alone are a number, whatever ISO 8601 says."""
        given = self.reading.time_format
        if not given and not any(sign in text[1:] for sign in "-:"):
            return None
        try:
            return datetime.strptime(text, given) if given else datetime.fromisoformat(text)
        except ValueError:
            return None

    def _value(self, text: str, heading: str, line: int, port: Port) -> float:
        if port.type == "boolean" and text.lower() in _TRUTHS:
            return float(_TRUTHS.index(text.lower()))
        value = self._number(text, heading, line, EXPECTED.get(port.type, ""))
        if not suits(value, port):
            what = f"`{text}` in column `{heading}` is not of the type {port.type}"
            raise self.error(what, line, EXPECTED[port.type])
        return value

    def _number(self, text: str, heading: str, line: int, expected: str = "") -> float:
        point = self.reading.decimal
        try:
            value = float(text if point == "." else text.replace(".", "x").replace(point, "."))
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or "_" in text:
            what = f"`{text}` in column `{heading}` is not a finite number"
            raise self.error(what, line, expected or _expected_number(point), self._number_hint(text))
        return value

    def _number_hint(self, text: str) -> str:
        if text.lower() == "nan":
            return ANOTHER_RATE
        comma = self.reading.decimal == "." and text.count(",") == 1 and "." not in text
        if comma and text.replace(",", "").lstrip("+-").isdecimal():
            return 'decimal=",", if that is a decimal comma'
        dated = self._date(text) is None and sum(sign.isdecimal() for sign in text) >= 4
        return 'time_format="%d.%m.%Y %H:%M", if that is a date' if dated and text.count(".") == 2 else ""


def _expected_number(point: str) -> str:
    return "a number with a decimal point" if point == "." else f"a number with `{point}` before its decimals"
