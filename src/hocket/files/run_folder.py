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
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hocket.engine.recording import SAMPLES, Samples, Table, unwritable
from hocket.errors import FileError, HocketError, ScenarioError, nearest
from hocket.model import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Status: TypeAlias = Literal["running", "finished", "stopped", "failed"]
"""A process that was killed leaves its run `running`; `stopped` is Ctrl-C."""

Time: TypeAlias = float | Fraction

_FACTS, _SCENARIO, _PLAN = "run.json", "scenario.toml", "plan.txt"
_MARK, _FORMAT = "hocket_run", 1
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#8C6D1F")
_LABELS = 12
_BINS = 2000  # pairs of points in a line at the most: more than a screen can show
_HUGE = 1e100  # an unstable run may leave numbers for which Matplotlib finds no scale


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
        folder = Path(tempfile.gettempdir() if path is None else path).absolute()
        try:
            if path is None:
                temporary = _Temporary(name)
                return RunFolder(temporary.path, name, temporary)
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                _clear(folder, overwrite)
        except OSError as error:
            raise unwritable(folder, error) from error
        return RunFolder(folder, name)

    def begin(
        self, tables: Sequence[Table], *, scenario: str, plan: str, engine: str, start: Time, stop: Time
    ) -> None:
        """Write down what is about to be run, from when to when in seconds."""
        _write(self.path / _SCENARIO, scenario)
        _write(self.path / _PLAN, plan)
        listed = [
            {"name": table.name, "file": f"{SAMPLES}/{table.file_name(i)}", "columns": len(table.columns)}
            for i, table in enumerate(tables)
        ]
        self._facts |= {"engine": engine, "start": start, "stop": stop, "tables": listed}
        self._save()

    def end(
        self,
        status: Status,
        *,
        reached: Time,
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
        _write(self.path / _FACTS, text + "\n")


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
        expected = "a new folder, an empty one, or one that holds a run"
        raise FileError(f"`{folder.name}` has other files in it", where=str(folder), expected=expected)
    if not overwrite:
        hint = "choose another folder, or replace that run with overwrite=True"
        raise FileError(f"`{folder.name}` holds a run already", where=str(folder), hint=hint)
    samples = folder / SAMPLES
    for path in samples.glob("[0-9][0-9][0-9]*-*.arrow"):
        path.unlink()
    if samples.is_dir() and not any(samples.iterdir()):
        samples.rmdir()
    # run.json goes last: should this be interrupted, the folder is still known as a run.
    for name in (_SCENARIO, _PLAN, _FACTS):
        (folder / name).unlink(missing_ok=True)


@contextmanager
def _writing(path: Path | str) -> Iterator[IO[bytes]]:
    """Write a file so that nobody ever sees half of it."""
    whole = Path(path)
    half = whole.with_name(whole.name + ".new")
    try:
        with half.open("wb") as file:
            yield file
        os.replace(half, whole)
    except OSError as error:
        raise unwritable(whole, error) from error
    finally:
        with suppress(OSError):
            half.unlink()


def _write(path: Path, text: str) -> None:
    with _writing(path) as file:
        file.write(text.encode())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read `{path.name}`: {error.strerror or error}", where=str(path)) from error


def _facts(folder: Path) -> dict[str, Any] | None:
    """Return what run.json says; None if there is none of hocket's."""
    try:
        facts = json.loads(_read(folder / _FACTS))
    except (FileError, ValueError):
        return None
    return facts if isinstance(facts, dict) and isinstance(facts.get(_MARK), int) else None


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


class UnknownPortError(ScenarioError, KeyError):
    """Nothing was recorded under that name."""

    def __str__(self) -> str:
        return self.text()  # a KeyError would show it quoted, on one line


@dataclass(frozen=True, eq=False, repr=False)
class Series:
    """One port over time, in seconds: `t, x = run["axle.x"]`."""

    t: Array
    values: Array
    unit: str
    name: str

    def __iter__(self) -> Iterator[Array]:
        return iter((self.t, self.values))

    def __repr__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        span = f", {self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else ""
        return f"<Series {self.name}{unit}: {len(self.t)} samples{span}>"


class Run:
    """A run that can be looked at, while it runs or after. Samples are read from disk when asked for.

    A port that was recorded at several rates is read at the finest. Where several ports are asked for,
    `*` and `?` stand for anything: `run.plot("axle.*")`.
    """

    def __init__(self, path: Path, keep: object = None):
        facts = _facts(path)
        if facts is None:
            what = f"`{path.name}` is not a run" if path.exists() else f"there is no `{path.name}`"
            raise FileError(what, where=str(path), expected=f"a folder with a {_FACTS} that hocket wrote")
        if facts[_MARK] > _FORMAT:
            hint = "pip install --upgrade hocket"
            raise FileError(f"`{path.name}` was written by a newer hocket", where=str(path), hint=hint)
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
        return _read(self.path / _SCENARIO)

    @property
    def plan_text(self) -> str:
        """The plan that was run (plan.txt)."""
        return _read(self.path / _PLAN)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables, one per rate."""
        return tuple(samples.table for samples in self._samples.values())

    @cached_property
    def ports(self) -> tuple[str, ...]:
        """Everything that was recorded."""
        return tuple(dict.fromkeys(port for table in self.tables for port in table.columns))

    @cached_property
    def _samples(self) -> dict[str, Samples]:
        files = sorted((self.path / SAMPLES).glob("*.arrow"))
        return {found.table.name: found for found in map(Samples.open, files) if found}

    @cached_property
    def _finest(self) -> dict[str, Samples]:
        coarse_first = sorted(self._samples.values(), key=lambda samples: samples.rows)
        return {port: samples for samples in coarse_first for port in samples.table.columns}

    def __iter__(self) -> Iterator[str]:
        return iter(self.ports)

    def __contains__(self, port: object) -> bool:
        return port in self._finest

    def __getitem__(self, port: str) -> Series:
        samples = self._with(port)
        t, values = samples.read([port])
        return Series(t, values, samples.table.units[samples.table.columns.index(port)], port)

    def __repr__(self) -> str:
        blocks = [block for samples in self._samples.values() for block in samples.blocks()]
        span = ""
        if blocks:
            first = min(block.column(0)[0].as_py() for block in blocks)
            last = max(block.column(0)[-1].as_py() for block in blocks)
            span = f"{first:g} to {last:g} s, "
        rows = sum(block.num_rows for block in blocks)
        return f"<Run {self.name}: {self.status}, {span}{rows} rows>"

    def final(self, port: str) -> float:
        """Return the last value."""
        newest = deque(self._with(port).blocks([port]), maxlen=1)
        if not newest:
            raise ScenarioError(f"no row of `{port}` was recorded", where=repr(self))
        return float(newest[0].column(1)[-1].as_py())

    def table(self, name: str = "") -> pa.Table:
        """Return one rate, time first. It is memory mapped: nothing is loaded before it is used."""
        if name not in self._samples:
            what = f"there is no table `{name}`"
            raise UnknownPortError(what, where=repr(self), hint=nearest(name, self._samples))
        samples = self._samples[name]
        return pa.Table.from_batches(samples.blocks(samples.table.columns), schema=samples.table.schema)

    def to_pandas(self, table: str = "") -> pd.DataFrame:
        """Return one rate as a frame, by time; `frame.attrs["units"]` has the units."""
        pandas = _extra("pandas", "pandas")
        arrow = self.table(table)
        head = self._samples[table].table
        t, *columns = (column.to_numpy() for column in arrow.columns)
        index = pandas.Index(t, name="time")
        frame: pd.DataFrame = pandas.DataFrame(dict(zip(head.columns, columns, strict=True)), index=index)
        frame.attrs["units"] = dict(zip(head.columns, head.units, strict=True))
        return frame

    def to_csv(self, path: Path | str, ports: Iterable[str] | None = None) -> None:
        """Write ports (None: all) as columns after the time, in digits that read back exactly.

        Ports of several rates share one time column, with the times of all of them; where a port has no
        sample there is a `nan`.
        """
        from pyarrow import csv

        table = self._merged(ports)
        with _writing(path) as file:
            csv.write_csv(table, file)

    def to_parquet(self, path: Path | str, ports: Iterable[str] | None = None) -> None:
        """Write the same columns as `to_csv`; each has its unit as metadata."""
        from pyarrow import parquet

        table = self._merged(ports)
        with _writing(path) as file:
            parquet.write_table(table, file)

    def plot(self, *ports: str, path: Path | str | None = None) -> Figure:
        """Draw ports (none given: all) over time, one axes per unit; `path` also saves the picture."""
        figures = _extra("matplotlib.figure", "plot")
        drawn: dict[str, list[Series]] = {}
        for port in self._select(ports or None):
            series = self[port]
            drawn.setdefault(series.unit, []).append(series)
        figure: Figure = figures.Figure(figsize=(9, 0.9 + 2.1 * len(drawn)), layout="constrained")
        stack = figure.subplots(len(drawn), 1, sharex=True, squeeze=False)[:, 0]
        for axes, lines in zip(stack, drawn.values(), strict=True):
            _draw(axes, lines)
        title = self.name if self.status == "finished" else f"{self.name} ({self.status})"
        stack[0].set_title(_label(title), loc="left", fontsize="medium", fontweight="bold")
        stack[-1].set_xlabel("time [s]")
        figure.align_ylabels()
        if path is not None:
            kinds, kind = figure.canvas.get_supported_filetypes(), Path(path).suffix[1:].lower()
            if kind not in kinds:
                raise FileError(f"cannot draw a `{kind}` file", where=str(path), hint=nearest(kind, kinds))
            with _writing(path) as file:
                figure.savefig(file, format=kind, dpi=150)
        return figure

    def _with(self, port: str) -> Samples:
        if port not in self._finest:
            same_end = [known for known in self.ports if known.endswith(f".{port}")]
            hint = nearest(port, same_end or self.ports)
            raise UnknownPortError(f"`{port}` was not recorded", where=repr(self), hint=hint)
        return self._finest[port]

    def _select(self, wanted: Iterable[str] | None) -> tuple[str, ...]:
        if not self.ports:
            raise UnknownPortError("nothing was recorded", where=repr(self))
        if wanted is None:
            return self.ports
        found: dict[str, None] = {}
        for port in [wanted] if isinstance(wanted, str) else wanted:
            alike = [known for known in self.ports if fnmatchcase(known, port)]
            found |= dict.fromkeys([port] if port in self or not alike else alike)
        for port in found:
            self._with(port)
        return tuple(found)

    def _merged(self, wanted: Iterable[str] | None) -> pa.Table:
        """Return ports as one table on the union of their times, NaN where there is no sample."""
        ports = self._select(wanted)
        groups: dict[str, list[str]] = {}
        for port in ports:
            groups.setdefault(self._finest[port].table.name, []).append(port)
        if len(groups) == 1:
            (name,) = groups
            return self.table(name).select([self._samples[name].table.clock, *ports])
        read = [self._samples[name].read(group) for name, group in groups.items()]
        times, places = np.unique(np.concatenate([_instants(t) for t, *_ in read]), return_inverse=True)
        merged: dict[str, Array] = {}
        for group, (t, *columns) in zip(groups.values(), read, strict=True):
            here, places = places[: len(t)], places[len(t) :]
            for port, column in zip(group, columns, strict=True):
                merged[port] = np.full(len(times), np.nan)
                merged[port][here] = column
        tables = [self._finest[port].table for port in ports]
        units = tuple(
            table.units[table.columns.index(port)] for table, port in zip(tables, ports, strict=True)
        )
        arrays = [pa.array(column) for column in (times.real, *(merged[port] for port in ports))]
        return pa.Table.from_arrays(arrays, schema=Table("", ports, units).schema)


def open_run(path: Path | str) -> Run:
    """Open the run in a folder; it may still be running, or have been killed."""
    folder = Path(path).absolute()
    return Run(folder.parent if folder.name == _FACTS else folder)


def _instants(t: Array) -> NDArray[np.complex128]:
    """Number the rows that share a time (event iterations), so that the n-th of one rate meets the n-th
    of another: complex numbers sort by their real part, the time, then by their imaginary part, n.
    """
    return t + 1j * (np.arange(len(t)) - np.searchsorted(t, t))


def _extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise HocketError(f"`{name}` is not installed", hint=f"pip install hocket[{extra}]") from None


def _draw(axes: Axes, lines: Sequence[Series]) -> None:
    for i, series in enumerate(lines):
        style = ("-", "--", ":", "-.")[i // len(_COLOURS) % 4]
        marker = "." if len(series.t) == 1 else ""
        axes.plot(*_thinned(series), marker + style, color=_COLOURS[i % len(_COLOURS)], linewidth=1.3)
    last_names = {series.name.rpartition(".")[2] for series in lines}
    shared = f"{last_names.pop()} " if len(last_names) == 1 else ""
    axes.set_ylabel(_label(f"{shared}[{lines[0].unit or '-'}]"))
    axes.margins(x=0)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    labels = [_label(series.name) for series in lines]
    handles = list(axes.lines)
    if len(labels) > _LABELS:
        labels[_LABELS - 1 :] = [f"and {len(labels) - _LABELS + 1} more"]
        handles[_LABELS - 1 :] = axes.plot([], [], " ")
    outside = (1.0, 1.03)
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=outside, frameon=False, fontsize="small")


def _thinned(series: Series) -> tuple[Array, Array]:
    """Return the lowest and the highest value in each of many short spans, if there are more samples."""
    t, x = series.t, np.where(np.abs(series.values) < _HUGE, series.values, np.nan)
    if len(t) <= 2 * _BINS:
        return t, x
    edges = np.linspace(0, len(t), _BINS, endpoint=False).astype(np.intp)
    envelope = np.stack([np.fmin.reduceat(x, edges), np.fmax.reduceat(x, edges)], axis=1)
    return t[edges].repeat(2), envelope.ravel()


def _label(text: str) -> str:
    """Return text that fits beside the axes and that Matplotlib does not take for a formula."""
    return (text if len(text) <= 40 else f"…{text[-39:]}").replace("$", r"\$")
