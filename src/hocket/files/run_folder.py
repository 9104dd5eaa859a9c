"""The run folder, the only seam between running and looking: written by the engine, read as a Run.

In:  the scenario and the plan as text, and how the run went
Out: run.json, scenario.toml and plan.txt beside the samples; a Run that reads them all
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import platform
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from hocket.engine.recording import SAMPLES, Samples, Table, unwritable
from hocket.errors import FileError, HocketError, ScenarioError, nearest
from hocket.model import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Status: TypeAlias = Literal["running", "finished", "stopped", "failed"]
"""A process that was killed leaves its run `running`; `stopped` is Ctrl-C."""

_FACTS, _SCENARIO, _PLAN = "run.json", "scenario.toml", "plan.txt"
_MARK, _FORMAT = "hocket_run", 1
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#8C6D1F")
_BINS = 2000
"""A line is drawn with this many pairs of points at the most: more than a screen can show."""


class RunFolder:
    """A run being written: `create`, then `begin`, the recorder's blocks, and `end`."""

    def __init__(self, path: Path, name: str, keep: object = None):
        self.path = path
        self._keep = keep
        self._since = time.perf_counter()
        self._facts: dict[str, Any] = {
            _MARK: _FORMAT,
            "name": name,
            "status": "running",
            "error": "",
            "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "versions": _versions(),
        }
        self._save()

    @staticmethod
    def create(path: Path | str | None, name: str, overwrite: bool = False) -> RunFolder:
        """Make the folder; None: a temporary one, removed with the last RunFolder or Run that holds it.

        With `overwrite` a run that is there already is deleted, but nothing else that is in the folder.
        """
        if path is None:
            temporary = _Temporary(name)
            return RunFolder(temporary.path, name, temporary)
        folder = Path(path).absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                _clear(folder, overwrite)
        except OSError as error:
            raise unwritable(folder, error) from error
        return RunFolder(folder, name)

    def begin(
        self, tables: Sequence[Table], *, scenario: str, plan: str, engine: str, start: float, stop: float
    ) -> None:
        """Write down what is about to be run, from when to when in seconds."""
        _replace(self.path / _SCENARIO, scenario)
        _replace(self.path / _PLAN, plan)
        listed = [
            {
                "name": table.name,
                "file": f"{SAMPLES}/{table.file_name(index)}",
                "columns": len(table.columns),
            }
            for index, table in enumerate(tables)
        ]
        self._facts |= {"engine": engine, "start": start, "stop": stop, "tables": listed}
        self._save()

    def end(
        self,
        status: Status,
        *,
        reached: float,
        counts: Mapping[str, int] = MappingProxyType({}),
        phases: Mapping[str, float] = MappingProxyType({}),
        error: str = "",
    ) -> Run:
        """Write down how it went; phases are in seconds of real time. Return what can be looked at."""
        wall = time.perf_counter() - self._since
        self._facts |= {"status": status, "error": error, "reached": reached, "counts": dict(counts)}
        self._facts["timings"] = {"wall": wall, "phases": dict(phases)}
        self._save()
        return Run(self.path, self._keep)

    def _save(self) -> None:
        text = json.dumps(self._facts, indent=1, ensure_ascii=False, default=_plain)
        _replace(self.path / _FACTS, text + "\n")


class _Temporary:
    """A folder that goes when nothing holds this object any more, or when the interpreter ends."""

    def __init__(self, name: str):
        readable = re.sub(r"[^\w.-]", "_", name)[:40]
        self.path = Path(tempfile.mkdtemp(prefix=f"hocket-{readable}-"))
        weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path: Path, owner: int) -> None:
    # A forked child holds a copy of every Run, but the folder is its parent's.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def _clear(folder: Path, overwrite: bool) -> None:
    """Delete the run in a folder, and only that."""
    if _facts(folder) is None:
        raise FileError(
            f"`{folder.name}` has other files in it", where=str(folder), expected="a new or empty folder, or a run"
        )
    if not overwrite:
        raise FileError(
            f"`{folder.name}` holds a run already",
            where=str(folder),
            hint="choose another folder, or pass overwrite=True to replace that run",
        )
    samples = folder / SAMPLES
    for path in samples.glob("*.arrow"):
        path.unlink()
    if samples.is_dir() and not any(samples.iterdir()):
        samples.rmdir()
    # run.json goes last: should this be interrupted, the folder is still known as a run.
    for name in (_SCENARIO, _PLAN, _FACTS):
        (folder / name).unlink(missing_ok=True)


def _replace(path: Path, text: str) -> None:
    """Write a file so that nobody ever sees half of it."""
    half = path.with_name(path.name + ".new")
    try:
        half.write_text(text, encoding="utf-8", newline="\n")
        os.replace(half, path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise unwritable(path, error) from error


def _facts(folder: Path) -> dict[str, Any] | None:
    """Return what run.json says; None if there is none of hocket's."""
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and _MARK in facts else None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else float(value)


def _versions() -> dict[str, str]:
    try:
        hocket = version("hocket")
    except PackageNotFoundError:
        hocket = "not installed"
    return {
        "hocket": hocket,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "platform": platform.platform(),
    }


class UnknownPort(ScenarioError, KeyError):
    """Nothing was recorded under that name."""

    def __str__(self) -> str:
        return self.text()  # a KeyError would show it quoted, on one line


@dataclass(frozen=True, eq=False, repr=False)
class Series:
    """One port over time: `t, x = run["axle.x"]`."""

    name: str
    unit: str
    t: Array
    """Seconds."""
    values: Array

    def __iter__(self) -> Iterator[Array]:
        return iter((self.t, self.values))

    def __repr__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        span = f", {self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else ""
        return f"<Series {self.name}{unit}: {len(self.t)} samples{span}>"


class Run:
    """A run that can be looked at, while it runs or after. Samples are read from disk when asked for.

    Where ports are asked for, `*` and `?` in a name stand for anything: `run.plot("axle.*")`.
    A port that was recorded at several rates is read at the finest.
    """

    def __init__(self, path: Path, keep: object = None):
        facts = _facts(path)
        if facts is None:
            raise FileError(f"`{path}` is not a run", expected=f"a folder with a {_FACTS} that hocket wrote")
        if facts[_MARK] > _FORMAT:
            raise FileError(f"`{path}` was written by a newer hocket", hint="pip install --upgrade hocket")
        self.path = path
        self.info: Mapping[str, Any] = MappingProxyType(facts)
        self._keep = keep

    @property
    def name(self) -> str:
        """What was run."""
        return str(self.info["name"])

    @property
    def status(self) -> Status:
        """How it went, as it stood when this Run was opened."""
        status: Status = self.info["status"]
        return status

    @property
    def scenario_text(self) -> str:
        """The scenario as it was resolved (scenario.toml)."""
        return (self.path / _SCENARIO).read_text(encoding="utf-8")

    @property
    def plan_text(self) -> str:
        """The plan that was run (plan.txt)."""
        return (self.path / _PLAN).read_text(encoding="utf-8")

    @cached_property
    def _samples(self) -> dict[str, Samples]:
        files = sorted((self.path / SAMPLES).glob("*.arrow"))
        return {found.table.name: found for found in map(Samples.open, files) if found}

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables, one per rate."""
        return tuple(samples.table for samples in self._samples.values())

    @property
    def ports(self) -> tuple[str, ...]:
        """Everything that was recorded."""
        return tuple(dict.fromkeys(port for table in self.tables for port in table.columns))

    def __iter__(self) -> Iterator[str]:
        return iter(self.ports)

    def __contains__(self, port: object) -> bool:
        return port in self.ports

    def __getitem__(self, port: str) -> Series:
        samples = self._finest(port)
        column = samples.table.columns.index(port)
        t, values = _columns(samples, [column])
        return Series(port, samples.table.units[column], t, values)

    def final(self, port: str) -> float:
        """Return the last value."""
        samples = self._finest(port)
        value = None
        for block in samples.blocks([samples.table.columns.index(port)]):
            value = block.column(1)[-1].as_py()
        if value is None:
            raise ScenarioError(f"no row of `{port}` was recorded", where=f"run `{self.name}`, {self.status}")
        return float(value)

    def table(self, name: str) -> pa.Table:
        """Return all columns of one rate, time first, memory mapped: nothing is loaded until it is used."""
        samples = self._table(name)
        every = range(len(samples.table.columns))
        return pa.Table.from_batches(list(samples.blocks(every)), schema=samples.table.schema)

    def to_pandas(self, table: str = "") -> pd.DataFrame:
        """Return one rate as a frame, by time; `frame.attrs["units"]` has the units."""
        pandas = _extra("pandas", "pandas")
        samples = self._table(table)
        ports = samples.table.columns
        t, *columns = _columns(samples, range(len(ports)))
        frame: pd.DataFrame = pandas.DataFrame(
            dict(zip(ports, columns, strict=True)), index=pandas.Index(t, name="time")
        )
        frame.attrs["units"] = dict(zip(ports, samples.table.units, strict=True))
        return frame

    def to_csv(self, path: Path | str, ports: Iterable[str] | None = None) -> None:
        """Write ports (None: all) as columns after the time, in digits that read back exactly.

        Ports of several rates share one time column that has the times of all; where a port has no
        sample there is a `nan`.
        """
        csv = importlib.import_module("pyarrow.csv")
        with _writing(path) as file:
            csv.write_csv(self._merged(ports), file)

    def to_parquet(self, path: Path | str, ports: Iterable[str] | None = None) -> None:
        """Write the same columns as `to_csv`; the units are metadata of the columns."""
        parquet = importlib.import_module("pyarrow.parquet")
        with _writing(path) as file:
            parquet.write_table(self._merged(ports), file)

    def plot(self, *ports: str, path: Path | str | None = None) -> Figure:
        """Draw ports (none given: all) over time, one axes per unit; `path` also saves the picture."""
        figures = _extra("matplotlib.figure", "plot")
        drawn: dict[str, list[Series]] = {}
        for port in self._select(ports or None):
            series = self[port]
            drawn.setdefault(series.unit, []).append(series)
        height = 0.9 + 2.2 * max(1, len(drawn))
        figure: Figure = figures.Figure(figsize=(9, height), layout="constrained")
        rows = figure.subplots(max(1, len(drawn)), 1, sharex=True, squeeze=False)[:, 0]
        for axes, lines in zip(rows, drawn.values(), strict=False):
            _draw(axes, lines)
        rows[-1].set_xlabel("time [s]")
        title = self.name if self.status == "finished" else f"{self.name} ({self.status})"
        rows[0].set_title(_literal(title), loc="left", fontsize="medium", fontweight="bold")
        if path is not None:
            with _writing(path) as file:
                figure.savefig(file, format=Path(path).suffix[1:] or "png", dpi=150)
        return figure
