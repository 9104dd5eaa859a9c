"""What a sweep returns: its runs, and a table of them.

In:  the parameters of each run, and what became of it
Out: a list of runs; a frame of parameters beside final values, or other aggregates
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from hocket.errors import FileError, raise_faults
from hocket.files.plotting import import_extra
from hocket.files.run_folder import Run
from hocket.model.arguments import as_path, choice_faults
from hocket.model.html import html_table, html_view

if TYPE_CHECKING:
    import pandas as pd

Quantity: TypeAlias = Literal["final", "mean", "min", "max", "integral"]


class SweepResults(list[Any]):
    """The runs of a sweep, in the order of their parameters; with `errors="return"` also errors."""

    def __init__(
        self,
        results: Iterable[Run | Exception],
        parameters: Sequence[Mapping[str, Any]],
        numbers: Sequence[int] | None = None,
    ):
        super().__init__(results)
        self.parameters = tuple(parameters[: len(self)])
        self.numbers = tuple(range(len(self)) if numbers is None else numbers[: len(self)])
        """Which of all parameters each was made with, from 0 on: a shard has some of them."""

    def to_pandas(self, quantity: Quantity = "final", ports: Iterable[str] | None = None) -> pd.DataFrame:
        """Return a row for each run: its parameters, a quantity of each port, and its status.

        `quantity` is the final value, or the mean, integral, minimum or maximum over the run; `ports` are
        patterns. Of a run that failed the ports are missing.
        """
        raise_faults(list(choice_faults("quantity", quantity, get_args(Quantity))))
        pandas = import_extra("pandas", "pandas")
        chosen = None if ports is None else list(ports)
        frame: pd.DataFrame = pandas.DataFrame(self._rows(quantity, chosen))
        return frame

    def to_parquet(self, path: Path | str) -> None:
        """Write the table into one Parquet file: the number of each run, from 1 on, its row, its error."""
        import pyarrow as pa
        import pyarrow.parquet as parquet

        rows = self._rows("final", None)
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {"run": pa.array([number + 1 for number in self.numbers])}
        columns |= {name: _column([row.get(name) for row in rows]) for name in names}
        errors = [str(each).partition("\n")[0] if isinstance(each, Exception) else "" for each in self]
        columns["error"] = pa.array(errors)
        file = as_path(path)
        try:
            parquet.write_table(pa.table(columns), file)
        except OSError as error:
            what = f"`{file.name}` cannot be written: {error.strerror or error}"
            raise FileError(what, str(file)) from None

    def _repr_html_(self) -> str:
        return html_view("Sweep", {"runs": len(self)}, html_table(self._rows("final", None)))

    def _rows(self, quantity: Quantity, ports: list[str] | None) -> list[dict[str, Any]]:
        return [
            {**one, **_values(result, quantity, ports), "status": _status(result)}
            for one, result in zip(self.parameters, self, strict=True)
        ]


def _values(result: Run | Exception, quantity: Quantity, ports: list[str] | None) -> dict[str, float]:
    if isinstance(result, Exception):
        return {}
    names = result.ports if ports is None else result.select(ports)
    if quantity == "final":
        return {name: result.final(name) for name in names}
    found = result.aggregate(*names)[quantity]
    return {name: float(found[name]) for name in names}


def _column(values: list[Any]) -> Any:
    """Return a column; values of several kinds are text."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


def _status(result: Run | Exception) -> str:
    return "failed" if isinstance(result, Exception) else result.status
