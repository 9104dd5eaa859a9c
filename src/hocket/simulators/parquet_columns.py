"""Parquet files as columns over time.

In:  a table whose fields have units, as metadata or in their names
Out: times in seconds and columns of numbers, or what is wrong, with its row
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hocket.errors import FileError, suggest_nearest
from hocket.model.ports import Port
from hocket.model.protocols import Array
from hocket.simulators.column_files import (
    ANOTHER_RATE,
    EXPECTED,
    ColumnFile,
    Heading,
    split_heading,
    suits,
)


class ParquetColumns(ColumnFile):
    """A Parquet file; units are metadata of its fields, as hocket writes them, or stand in names."""

    @cached_property
    def _schema(self) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        if not self.file.is_file():
            beside = sorted(file.name for file in self.file.parent.glob(f"*{self.file.suffix}"))
            hint = suggest_nearest(self.file.name, beside)
            raise FileError(f"there is no file `{self.file}`", "", "", hint)
        try:
            return parquet.read_schema(self.file)
        except (pa.ArrowException, OSError) as error:
            raise FileError(f"`{self.file}` cannot be read: {error}", str(self.file)) from None

    @property
    def headings(self) -> Sequence[Heading]:
        """The headings of all columns."""
        found = []
        for field in self._schema:
            heading = split_heading(field.name)
            unit = (field.metadata or {}).get(b"unit", b"").decode("utf-8", "replace")
            found.append(heading if heading.unit else heading._replace(unit=unit))
        return found

    def read(self, clock: int, wanted: Sequence[tuple[Port, int]]) -> tuple[Array, Array]:
        import pyarrow as pa
        from pyarrow import parquet

        names = self._schema.names
        if len(set(names)) < len(names):
            raise FileError("columns of the file share a name", str(self.file), "one column of each name")
        del self.__dict__["_schema"]
        if self._schema.names != names:
            raise FileError("the columns have changed", str(self.file))
        try:
            table = parquet.read_table(
                self.file, columns=[names[k] for k in {clock, *(k for _, k in wanted)}]
            )
        except (pa.ArrowException, OSError) as error:
            raise FileError(f"`{self.file}` cannot be read: {error}", str(self.file)) from None
        if not table.num_rows:
            raise FileError("there are no rows", str(self.file))
        times = self._times(table[names[clock]], self.headings[clock])
        columns = [self._column(table[names[number]], port) for port, number in wanted]
        late = np.flatnonzero(times[1:] < times[:-1])
        if len(late):
            row = int(late[0]) + 1
            what = f"the time decreases: {times[row]:.9g} s after {times[row - 1]:.9g} s"
            raise self.error(f"{what}, in row {row}, counted from 0", None, "times in order")
        return times, np.column_stack(columns or [np.empty((len(times), 0))])

    def _times(self, column: Any, heading: Heading) -> Array:
        import pyarrow as pa

        if not pa.types.is_timestamp(column.type):
            return self._column(column, Port("time")) / self.per_second(heading)
        if column.null_count:
            raise self.error(f"{column.null_count} times in `{heading.text}` are missing")
        zone = column.type.tz
        return self.seconds_of(column.cast(pa.timestamp("ns", zone)).to_numpy(), zone is not None)

    def _column(self, column: Any, port: Port) -> Array:
        import pyarrow as pa

        known = column.type
        numeric = pa.types.is_floating(known) or pa.types.is_integer(known) or pa.types.is_boolean(known)
        if not (numeric or pa.types.is_decimal(known)):
            raise self.error(f"the column of `{port.name}` holds {known}", None, "numbers")
        if column.null_count:
            raise self.error(f"the column of `{port.name}` has {column.null_count} cells without a value")
        if pa.types.is_boolean(known):
            column = column.cast(pa.uint8())
        values: Array = column.cast(pa.float64(), safe=True).to_numpy()
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            what = f"the column of `{port.name}` has {values[bad[0]]:g} in row {bad[0]}, counted from 0"
            raise self.error(what, None, "finite numbers", ANOTHER_RATE if np.isnan(values[bad[0]]) else "")
        misfits = (
            [value for value in values.tolist() if not suits(value, port)] if port.type != "real" else []
        )
        if misfits:
            what = f"{misfits[0]:g} in the column of `{port.name}` is not of the type {port.type}"
            raise self.error(what, None, EXPECTED[port.type])
        return values
