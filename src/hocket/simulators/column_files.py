"""Files of columns over time: what their readers share.

In:  a path, how cells are read, dates
Out: headings with units, times in seconds
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocket.errors import FileError, Place, ScenarioError, suggest_nearest
from hocket.model.calendar import time_zone
from hocket.model.ports import Port
from hocket.model.protocols import Array
from hocket.model.units import conversion

EXPECTED = {
    "integer": "whole numbers",
    "boolean": "0 and 1, or false and true",
    "enumeration": "the numbers of its items, which are whole",
}
ANOTHER_RATE = (
    "if hocket wrote the file, this port has another rate than its neighbours and no sample at this time: "
    "export ports of one rate to a file of their own, or with one rate for all"
)


class Heading(NamedTuple):
    """The heading of a column: as it is written, and its name and unit."""

    text: str
    name: str
    unit: str

    def as_port(self) -> Port:
        """Return the port that it names; its name may have spaces."""
        if not self.name or set("[]=") & set(self.name) or not self.name.isprintable():
            expected = "a name without brackets and equals signs"
            raise ScenarioError(f"`{self.text}` cannot name a port", "columns", expected)
        return Port(self.name, self.unit)


@dataclass(frozen=True)
class Reading:
    """How cells are read."""

    origin: datetime | None = None
    """The date that is time 0."""
    zone: str = ""
    """The time zone of dates that name none."""
    time_format: str = ""
    """How dates are written, if not as ISO 8601 has it, in the directives of `strptime`."""
    decimal: str = "."


def split_heading(text: str) -> Heading:
    """Return the heading that `force [N]` is."""
    name, bracket, unit = text.partition("[")
    closed = bracket and unit.rstrip().endswith("]")
    if not closed:
        return Heading(text, text.strip(), "")
    return Heading(text, name.strip(), unit.rstrip().removesuffix("]").strip())


def suits(value: float, port: Port) -> bool:
    """Return whether a number is a value of the port's type."""
    if port.type == "boolean":
        return value in (0.0, 1.0)
    return port.type == "real" or value.is_integer()


class ColumnFile:
    """A file of columns; its headings are read when they are asked for, its rows by `read`."""

    def __init__(self, file: Path, reading: Reading):
        self.file = file
        self.reading = reading

    @property
    def headings(self) -> Sequence[Heading]:
        """The headings of all columns."""
        raise NotImplementedError

    def read(self, clock: int, wanted: Sequence[tuple[Port, int]]) -> tuple[Array, Array]:
        """Return times in seconds, and one row per time with a column for each port."""
        raise NotImplementedError

    def column(self, wanted: str) -> int:
        """Return the number of a column by its heading, or by its name without the unit."""
        headings = self.headings
        for known in ([each.text for each in headings], [each.name for each in headings]):
            if known.count(wanted) > 1:
                raise self.error(
                    f"{known.count(wanted)} columns are called `{wanted}`", 1, "one of each name"
                )
            if wanted in known:
                return known.index(wanted)
        names = [each.text for each in headings]
        raise self.error(f"there is no column `{wanted}`", 1, "", suggest_nearest(wanted, names))

    def error(self, what: str, line: int | None = None, expected: str = "", hint: str = "") -> FileError:
        """Return the error that something is wrong in a line."""
        return FileError(what, Place(file=str(self.file), line=line), expected, hint)

    def per_second(self, heading: Heading) -> float:
        """Return how many of the column's units of time make a second: dividing by it rounds once."""
        try:
            gain, _ = conversion(heading.unit, "s")
        except ValueError as error:
            place = Place(file=str(self.file), line=1, detail=f"column `{heading.text}`")
            raise FileError(str(error), place, "a unit of time") from None
        whole = round(1.0 / gain)
        return float(whole) if abs(whole * gain - 1.0) < 1e-12 else 1.0 / gain

    def seconds_of(self, stamps: NDArray[Any], zoned: bool) -> Array:
        """Return dates, those of a zone in UTC, as seconds from the origin."""
        if not zoned and self.reading.zone:
            stamps, zoned = self.local_to_utc(stamps), True
        return seconds_from_origin(stamps, zoned, self.reading.origin, Place(file=str(self.file)))

    def local_to_utc(self, stamps: NDArray[Any]) -> NDArray[Any]:
        """Return in UTC what a clock on the wall showed: the hour that comes twice, by the order of rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        name = self.reading.zone
        time_zone(name, "time_zone")
        clock = pa.array(stamps.astype("datetime64[ns]"))
        try:
            early, late = (
                pc.assume_timezone(clock, name, ambiguous=which, nonexistent="raise")
                .cast(pa.timestamp("ns"))
                .to_numpy()
                for which in ("earliest", "latest")
            )
        except pa.ArrowInvalid as error:
            what = f"a time does not exist in {name}: {str(error).partition(':')[0]}"
            raise self.error(what, None, "times of the wall clock", "times in UTC, or with offsets") from None
        found: NDArray[Any] = early.copy()
        twice = np.flatnonzero(early != late)
        second = False
        for row in twice.tolist():
            before = found[row - 1] if row else None
            second = before is not None and early[row] <= before
            found[row] = late[row] if second else early[row]
        if len(twice) and not second and twice[-1] + 1 < len(early):
            shown = np.datetime_as_string(stamps[twice[0]], unit="s")
            what = f"{shown} comes twice in {name}, and once in the file: it cannot be known which it is"
            raise self.error(what, None, "both hours of that night", "times in UTC, or with offsets")
        return found


def seconds_from_origin(
    stamps: NDArray[Any], zoned: bool, origin: datetime | None, place: Place | str
) -> Array:
    """Return dates, those of a zone in UTC, as seconds from an origin; raises FileError if there is none."""
    if origin is None:
        first = f"{np.datetime_as_string(stamps[0], unit='s')}{'Z' if zoned else ''}"
        what = f"the times are dates, such as {first}, and nothing says which date is time 0"
        raise FileError(what, place, "an origin", f'origin="{first}" makes the first row time 0')
    if zoned != (origin.tzinfo is not None):
        kinds = ("have a time zone", "has none") if zoned else ("have no time zone", "has one")
        hint = 'origin="2024-01-01 00:00 Europe/Berlin"' if zoned else 'time_zone="Europe/Berlin"'
        raise FileError(f"the dates {kinds[0]}, and the origin {kinds[1]}", place, "", hint)
    zero = np.datetime64(origin.astimezone(UTC).replace(tzinfo=None) if zoned else origin, "ns")
    apart = (stamps.astype("datetime64[ns]") - zero).astype(np.int64)
    return apart / 1e9  # one rounding
