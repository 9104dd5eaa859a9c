"""Weather files of EnergyPlus (.epw) as columns over time.

In:  8,760 hours of a typical year, or 8,784
Out: times in seconds and columns such as dry_bulb, half hour by half hour
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hocket.errors import FileError, suggest_nearest
from hocket.model.ports import Port
from hocket.model.protocols import Array
from hocket.simulators.column_files import ColumnFile, Heading

_EPW = {
    "dry_bulb": (6, "degC", 99.9), "dew_point": (7, "degC", 99.9), "relative_humidity": (8, "percent", 999.0),
    "pressure": (9, "Pa", 999999.0), "horizontal_infrared": (12, "W/m^2", 9999.0),
    "global_horizontal": (13, "W/m^2", 9999.0), "direct_normal": (14, "W/m^2", 9999.0),
    "diffuse_horizontal": (15, "W/m^2", 9999.0), "wind_direction": (20, "deg", 999.0),
    "wind_speed": (21, "m/s", 999.0), "total_sky_cover": (22, "", 99.0), "opaque_sky_cover": (23, "", 99.0),
}  # fmt: skip
"""Columns of weather by name: where they stand, counted from 0, their unit, what says that one is missing."""
_OVER_THE_HOUR = ("horizontal_infrared", "global_horizontal", "direct_normal", "diffuse_horizontal")
_HEADER_LINES, _HOUR = 8, 3600.0


class WeatherColumns(ColumnFile):
    """A year of weather in EnergyPlus' format, hour by hour; time 0 is the begin of the file's first day.

    What is measured at the end of an hour stands there; what is a mean over the hour, radiation, stands in
    its middle, so that the hour has its energy. Half hours are filled by straight lines. The value of the
    begin is that of the end, as in a typical year; with an origin the year begins there, and goes on after
    its last hour with its first.
    """

    @property
    def headings(self) -> Sequence[Heading]:
        """The headings of all columns: the time is first."""
        units = {"time": "s"} | {name: unit for name, (_, unit, _) in _EPW.items()}
        return [Heading(name, name, unit) for name, unit in units.items()]

    def read(self, clock: int, wanted: Sequence[tuple[Port, int]]) -> tuple[Array, Array]:
        if clock != 0:
            raise self.error("the time of a weather file is `time`", None, "time")
        rows = self._rows()
        names = [heading.name for heading in self.headings]
        hours = len(rows)
        shift = self._shift(rows)
        grid: Array = np.arange(2 * hours + 1, dtype=float) * (_HOUR / 2)
        columns = []
        for _, number in wanted:
            name = names[number]
            place, _, missing = _EPW[name]
            values = np.array([self._number(line, fields, place, name, missing) for line, fields in rows])
            values = np.roll(values, -shift)
            at = (np.arange(hours) + (0.5 if name in _OVER_THE_HOUR else 1.0)) * _HOUR
            around = np.r_[at[-1] - hours * _HOUR, at, at[0] + hours * _HOUR]
            columns.append(np.interp(grid, around, np.r_[values[-1], values, values[0]]))
        return grid, np.column_stack(columns or [np.empty((len(grid), 0))])

    def _rows(self) -> list[tuple[int, list[str]]]:
        try:
            text = self.file.read_text(encoding="latin-1")
        except FileNotFoundError:
            beside = sorted(file.name for file in self.file.parent.glob("*.epw"))
            hint = suggest_nearest(self.file.name, beside)
            raise FileError(f"there is no file `{self.file}`", "", "", hint) from None
        except OSError as error:
            raise FileError(f"`{self.file}` cannot be read: {error}", str(self.file)) from None
        lines = text.splitlines()
        if len(lines) <= _HEADER_LINES or lines[0].partition(",")[0] != "LOCATION":
            raise self.error(
                "it does not begin as a weather file does", 1, "LOCATION, and eight lines of header"
            )
        rows = [(k, line.split(",")) for k, line in enumerate(lines, 1) if k > _HEADER_LINES and line.strip()]
        for count, (line, fields) in enumerate(rows):
            if len(fields) < 24:
                raise self.error(f"{len(fields)} fields", line, "35, as a weather file has")
            if fields[3].strip() != str(count % 24 + 1):
                what = f"the hour `{fields[3]}` stands where hour {count % 24 + 1} should"
                raise self.error(what, line, "24 rows a day, one for each hour", "resample it to hours")
        if len(rows) % 24:
            raise self.error(f"the last day has {len(rows) % 24} hours", rows[-1][0], "24")
        return rows

    def _shift(self, rows: Sequence[tuple[int, list[str]]]) -> int:
        """Return at which hour of the file the origin is, by month and day: its years are those of many."""
        origin = self.reading.origin
        if origin is None:
            return 0
        if origin.tzinfo is not None or origin.minute or origin.second or origin.microsecond:
            raise self.error("a weather file counts in whole hours of its own place", None, "a local date")
        day = (str(origin.month), str(origin.day))
        for number, (_, fields) in enumerate(rows):
            if (fields[1].strip(), fields[2].strip()) == day:
                return number + origin.hour
        raise self.error(f"the file has no day {origin.month}/{origin.day} for the origin")

    def _number(self, line: int, fields: Sequence[str], place: int, name: str, missing: float) -> float:
        try:
            value = float(fields[place])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f"`{fields[place]}` for `{name}` is not a number", line, "a number")
        if value >= missing:
            raise self.error(
                f"`{name}` is missing: the file says {value:g}", line, "a value", "fill it first"
            )
        return value
