"""The run folder, the only seam between running and looking: as it is written, and as it is looked at.

In:  the scenario and the plan as text, and how the run went; or a folder
Out: run.json, scenario.toml and plan.txt beside the samples; or a Run
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import shutil
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from hocket.engine.ledger import COLUMNS
from hocket.engine.recording import (
    CHECKSUMS,
    EVENT,
    MOVING,
    SAMPLES,
    Checksums,
    Samples,
    SampleTable,
    damage_error,
    write_error,
)
from hocket.errors import FileError, ScenarioError, count, suggest_nearest
from hocket.files.atomic_files import read_text, write_text
from hocket.files.plotting import Series, draw_series
from hocket.files.run_clearing import BANDS, PLAN, REPORT, SCENARIO, TRUST, clear_folder
from hocket.files.run_facts import (
    FACTS,
    FORMAT,
    MARK,
    SEALED,
    UNFINISHED,
    Status,
    checksum,
    is_abandoned,
    own_start,
    process_is_gone,
    process_tag,
    read_facts,
    seal,
)
from hocket.files.run_frames import RecordedRate, RunFrames
from hocket.model.arguments import as_path, as_texts, expect, is_one_of
from hocket.model.ports import matches
from hocket.model.protocols import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LONG = 1.0
"""Seconds of real time from which on a run is worth waiting for the disk at its end."""


class UnknownPortError(ScenarioError, KeyError):
    """Nothing was recorded under that name."""

    def __str__(self) -> str:
        return self.text()  # a KeyError would show it quoted, on one line


class Run(RunFrames):
    """A run that can be looked at, while it runs or after. Samples are read from disk when asked for.

    A port that was recorded at several rates is read at the finest. Where several ports are asked for,
    `*` and `?` stand for anything: `run.plot("axle.*")`.
    """

    def __init__(self, path: Path, keep: object = None):
        path = as_path(path)
        facts = read_facts(path)
        if facts is None:
            what = f"`{path.name}` is not a run" if path.exists() else f"there is no `{path.name}`"
            hint = f"`hocket run {path.name}` makes one" if path.suffix == ".toml" and path.is_file() else ""
            raise FileError(what, str(path), f"a folder with a {FACTS} that hocket wrote", hint)
        if facts[MARK] > FORMAT:
            hint = "pip install --upgrade hocket"
            raise FileError(f"`{path.name}` was written by a newer hocket", where=str(path), hint=hint)
        self.path = path
        self.info: Mapping[str, Any] = MappingProxyType(facts)
        self._keep = keep

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self.path,)  # a temporary folder stays with the process that ran

    @property
    def name(self) -> str:
        """What was run."""
        return str(self.info["name"])

    @property
    def size_text(self) -> str:
        """How much was recorded, in words."""
        rows = sum(self.table(table.name).num_rows for table in self.tables)
        rates = f" at {len(self.tables)} rates" if len(self.tables) > 1 else ""
        return f"{count(rows, 'row')}{rates}, {count(len(self.ports), 'port')}"

    @property
    def status(self) -> str:
        """How it went, as it stood when this Run was opened: "finished", "ended by `stair`" ..."""
        status: Status = self.info["status"]
        if status == "running" and process_is_gone(self.info):
            return "killed"
        return f"ended by `{self.info.get('ended_by', '')}`" if status == "ended" else status

    @property
    def is_complete(self) -> bool:
        """Whether it came to its end: the stop time, or where a simulator asked to end the simulation."""
        return self.info["status"] in ("finished", "ended")

    @property
    def scenario_text(self) -> str:
        """The scenario as it was resolved (scenario.toml)."""
        return self._kept_text(SCENARIO)

    @property
    def plan_text(self) -> str:
        """The plan that was run (plan.txt)."""
        return self._kept_text(PLAN)

    def _kept_text(self, name: str) -> str:
        text, told = read_text(self.path / name), self.info.get("files", {}).get(name)
        if told is not None and told != checksum(text):
            what = f"`{name}` is damaged: it was changed since hocket wrote it"
            raise FileError(what, str(self.path / name), "the file as hocket wrote it")
        return text

    @property
    def integrity_notes(self) -> tuple[str, ...]:
        """What is to be known of how whole the samples are: nothing, if they are as they were written."""
        if self.info[MARK] < SEALED:
            return ("it has no checksums, as an older hocket wrote it: damage would not be noticed",)
        torn = {samples.path.name: samples.torn_bytes for samples in self._samples.values()}
        if self.status == "running":
            return ()
        return tuple(
            f"`{name}` ends in {count(size, 'byte')} that are not a whole block, and are left out"
            for name, size in torn.items()
            if size
        )

    @property
    def tables(self) -> tuple[SampleTable, ...]:
        """The tables, one per rate."""
        return tuple(samples.table for samples in self._samples.values())

    @cached_property
    def ports(self) -> tuple[str, ...]:
        """Everything that was recorded."""
        return tuple(dict.fromkeys(port for table in self.tables for port in table.columns))

    @cached_property
    def accounts(self) -> tuple[str, ...]:
        """Those of what was recorded that are accounts of power bonds: `joint.given`, `joint.taken` ..."""
        columns: dict[str, set[str]] = {}
        for port in self.ports:
            owner, _, name = port.rpartition(".")
            columns.setdefault(owner, set()).add(name)
        # a run that failed says nothing of its bonds: what has all columns, and no others, is one
        known = self.info.get("bonds") or {name for name, has in columns.items() if has == set(COLUMNS)}
        every = {f"{bond}.{what}" for bond in known for what in COLUMNS}
        return tuple(port for port in self.ports if port in every)

    def without_accounts(self) -> Run:
        """Return the same run as if accounts of bonds and residuals of equations had not been recorded."""
        other, left_out = Run(self.path, self._keep), {*self.accounts, *self.info.get("gaps", ())}
        other.ports = tuple(port for port in self.ports if port not in left_out)
        return other

    @cached_property
    def _samples(self) -> dict[str, Samples]:
        samples = self.path / SAMPLES
        if self.info[MARK] < SEALED:
            found = map(Samples.open, sorted(samples.glob("*.arrow")))
            return {each.table.name: each for each in found if each}
        unfinished = self.info["status"] in UNFINISHED or bool(self.info.get("torn"))
        checksums = Checksums(samples / CHECKSUMS, unfinished)
        if not (unfinished and not checksums.path.exists()):
            self._check_checksums(checksums.path)
        known = {}
        files = [self.path / listed["file"] for listed in self.info.get("tables", ())]
        files = files or sorted(samples.glob("*.arrow"))
        for index, file in enumerate(files if checksums.path.exists() else ()):
            if each := Samples.open(file, checksums, index):
                known[each.table.name] = each
        return known

    def _check_checksums(self, file: Path) -> None:
        """Refuse checksums that are fewer than, or others than, there were when the run ended."""
        told = self.info.get("checksums")
        if told is None:
            return
        try:
            with file.open("rb") as opened:
                whole = checksum(opened.read(told["bytes"])) == told["crc"]
        except OSError as error:
            raise damage_error(file, error.strerror or str(error)) from None
        if not whole:
            raise damage_error(file, "it is not as it was when the run ended")

    @cached_property
    def _finest(self) -> dict[str, Samples]:
        coarse_first = sorted(self._samples.values(), key=lambda samples: samples.rows)
        return {port: samples for samples in coarse_first for port in samples.table.columns}

    def __iter__(self) -> Iterator[str]:
        return iter(self.ports)

    def __contains__(self, port: object) -> bool:
        return port in self._finest

    def __getitem__(self, port: str) -> Series:
        t, values = self._finest_samples(port).read([port])
        return Series(t, values, self._unit(port), port)

    def __repr__(self) -> str:
        blocks = [block for samples in self._samples.values() for block in samples.blocks()]
        span = ""
        if blocks:
            first = min(block.column(0)[0].as_py() for block in blocks)
            last = max(block.column(0)[-1].as_py() for block in blocks)
            span = f"{first:g} to {last:g} s, "
        rows = sum(block.num_rows for block in blocks)
        return f"<Run {self.name}: {self.status}, {span}{rows} rows>"

    def _repr_html_(self) -> str:
        from hocket.files.run_view import view_run  # here: notebooks only

        facts = {"status": self.status, "recorded": self.size_text, "folder": self.path}
        return view_run(self.name, facts, self.ports, self.__getitem__, self.info.get("notes", ()))

    def final(self, port: str) -> float:
        """Return the last value."""
        newest = deque(self._finest_samples(port).blocks([port]), maxlen=1)
        if not newest:
            raise ScenarioError(f"no row of `{port}` was recorded", where=repr(self))
        return float(newest[0].column(1)[-1].as_py())

    def table(self, name: str = "") -> pa.Table:
        """Return one rate, time first. It is memory mapped: nothing is loaded before it is used."""
        if not is_one_of(name, self._samples):
            what = f"there is no table `{name}`"
            raise UnknownPortError(what, where=repr(self), hint=suggest_nearest(name, self._samples))
        samples = self._samples[name]
        return pa.Table.from_batches(samples.blocks(samples.table.columns), schema=samples.table.schema)

    def plot(
        self,
        *ports: str,
        path: Path | str | None = None,
        ax: Axes | None = None,
        beside: Iterable[Run] | Mapping[str, Run] = (),
    ) -> Figure:
        """Draw ports (none given: all) over time, one axes per unit; `path` also saves the picture.

        `ax` takes the lines in place of a new figure. `beside` are other runs to be drawn too, perhaps by
        what the legend shall call them; ports that these have not are left out of theirs.
        """
        title = self.name if self.status == "finished" else f"{self.name} ({self.status})"
        names = self.select(ports or None)
        series = [self[port] for port in names]
        others = _runs_by_name(beside)
        if others:
            called = [self.name, *others]
            own = self.name if called.count(self.name) == 1 else f"{self.name} (this)"
            series = [replace(each, name=f"{each.name}: {own}") for each in series]
            for name, run in others.items():
                shared = [port for port in names if port in run]
                if not shared:
                    what = f"`{name}` has none of these ports"
                    raise UnknownPortError(what, "beside", "a run that recorded the same ports")
                series += [replace(run[port], name=f"{port}: {name}") for port in shared]
        return draw_series(series, title, path, ax)

    def _finest_samples(self, port: str) -> Samples:
        if not is_one_of(port, self._finest):
            same_end = [known for known in self.ports if known.endswith(f".{port}")]
            hint = suggest_nearest(port, same_end or self.ports)
            raise UnknownPortError(f"`{port}` was not recorded", where=str(self.path), hint=hint)
        return self._finest[port]

    def _unit(self, port: str) -> str:
        table = self._finest[port].table
        return table.units[table.columns.index(port)]

    def select(self, wanted: Iterable[str] | None) -> tuple[str, ...]:
        """Return the recorded ports that names and patterns stand for; None: all."""
        if not self.ports:
            raise UnknownPortError("nothing was recorded", where=repr(self))
        if wanted is None:
            return self.ports
        found: dict[str, None] = {}
        for port in as_texts(wanted, "ports", "names of ports, or patterns"):
            alike = [known for known in self.ports if matches(known, port)]
            found |= dict.fromkeys([port] if port in self or not alike else alike)
        if not found:
            raise UnknownPortError("no port was asked for", where=repr(self), expected="one port at least")
        for port in found:
            self._finest_samples(port)
        return tuple(found)

    def read_rates(self, ports: Sequence[str]) -> list[RecordedRate]:
        groups: dict[str, list[str]] = {}
        for port in ports:
            groups.setdefault(self._finest_samples(port).table.name, []).append(port)
        found = []
        for name, group in groups.items():
            table = self._samples[name].table
            at = [table.columns.index(port) for port in group]
            t, *columns = self._samples[name].read(group)
            kinds = tuple(
                table.kinds[k] or _guess_kind(values) for k, values in zip(at, columns, strict=True)
            )
            units = tuple(table.units[k] for k in at)
            found.append(RecordedRate(t, np.column_stack(columns), kinds, name, tuple(group), units))
        return found


def open_run(path: Path | str) -> Run:
    """Open the run in a folder; it may still be running, or have been killed."""
    folder = as_path(path).absolute()
    return Run(folder.parent if folder.name == FACTS else folder)


def _runs_by_name(beside: object) -> dict[str, Run]:
    """Return runs by what they are called, each once."""
    expect(isinstance(beside, Iterable) and not isinstance(beside, str), "beside", beside, "runs")
    given: Iterable[Any] = beside.items() if isinstance(beside, Mapping) else beside  # type: ignore[assignment]
    found: dict[str, Run] = {}
    for number, each in enumerate(given, 2):
        name, run = each if isinstance(each, tuple) else ("", each)
        expect(isinstance(run, Run) and isinstance(name, str), "beside", beside, "runs, perhaps by name")
        called = name or run.name
        found[called if called not in found else f"{called} ({number})"] = run
    return found


def _guess_kind(values: Array) -> str:
    """Return what a column of an older run is, which does not say: an absent value is not a number."""
    return EVENT if np.isnan(values).any() else MOVING


def mark_stopped(folder: Path) -> None:
    """Call a run stopped whose process had to be ended because it did not stop by itself."""
    facts = read_facts(folder)
    if facts is None:
        return
    run = Run(folder)
    last = [
        run.table(each.name).column(0)[-1].as_py() for each in run.tables if run.table(each.name).num_rows
    ]
    facts |= {"status": "stopped", "error": "", "reached": min(last, default=facts.get("start", 0.0))}
    facts.setdefault("counts", {})
    facts.setdefault("timings", {"wall": 0.0, "phases": {}})
    write_text(folder / FACTS, seal(facts | {"torn": True}, _plain_number))


Time: TypeAlias = float | Fraction


_WORDS = "hocket-words-of-a-crash"


class RunFolder:
    """A run being written: `create`, then `begin`, the recorder's blocks, and `end`."""

    def __init__(
        self, path: Path, name: str, keep: object = None, kept: Mapping[str, Any] = MappingProxyType({})
    ):
        self.path = path
        self._keep = keep
        self._since = time.perf_counter()
        self._facts: dict[str, Any] = {
            MARK: FORMAT,
            "name": name,
            "status": "running",
            "error": "",
            "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "host": platform.node(),
            "process": os.getpid(),
            "process_start": own_start(),
            "versions": dict(_installed_versions()),
            **kept,
        }
        self._save()

    @staticmethod
    def reopen(path: Path, resumed: float) -> RunFolder:
        """Go on with a run that is there, from a time in seconds; its rows and what it was asked for stay."""
        before = Run(path).info
        said = ("begun", "parameters", "engine", "start", "stop", "tables", "notes", "files")
        kept = {key: before[key] for key in said if key in before}
        for name in (REPORT, TRUST, BANDS):
            (path / name).unlink(missing_ok=True)
        kept["resumed"] = [*before.get("resumed", ()), resumed]
        return RunFolder(path, before["name"], None, kept)

    @staticmethod
    def create(path: Path | str | None, name: str, overwrite: bool = False) -> RunFolder:
        """Make the folder; None: a temporary one, removed with the last RunFolder or Run that holds it.

        With `overwrite` a run that is there already is deleted, but nothing else that is in the folder.
        """
        folder = Path(tempfile.gettempdir() if path is None else path).absolute()
        try:
            if path is None:
                temporary = TemporaryFolder(name)
                return RunFolder(temporary.path, name, temporary)
            if folder.exists() and not folder.is_dir():
                expected = "a new folder, an empty one, or one that holds a run"
                raise FileError(f"`{folder.name}` is a file", where=str(folder), expected=expected)
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                clear_folder(folder, overwrite)
        except OSError as error:
            raise write_error(folder, error) from error
        return RunFolder(folder, name)

    def begin(
        self,
        tables: Sequence[SampleTable],
        *,
        scenario: str,
        plan: str,
        engine: str,
        why_interpreted: str = "",
        start: Time,
        stop: Time,
        notes: Sequence[str] = (),
    ) -> None:
        """Write down what is about to be run, from when to when in seconds.

        `why_interpreted` says why the native engine, which was asked for, cannot run it.
        """
        self._write(SCENARIO, scenario)
        self._write(PLAN, plan)
        listed = [
            {"name": table.name, "file": f"{SAMPLES}/{table.file_name(i)}", "columns": len(table.columns)}
            for i, table in enumerate(tables)
        ]
        self._facts |= {"engine": engine, "why_interpreted": why_interpreted}
        self._facts |= {"start": start, "stop": stop, "tables": listed}
        self._facts["notes"] = list(notes)
        self._facts["files"] = {SCENARIO: checksum(scenario), PLAN: checksum(plan)}
        self._save()

    def add(self, facts: Mapping[str, Any]) -> None:
        """Add to run.json, the next time it is written."""
        self._facts |= facts

    def end(
        self,
        status: Status,
        *,
        reached: Time,
        counts: Mapping[str, Any] = MappingProxyType({}),
        phases: Mapping[str, float] = MappingProxyType({}),
        error: str = "",
    ) -> Run:
        """Write down how it went; phases are in seconds of real time. Return what can be looked at."""
        wall = time.perf_counter() - self._since
        self._facts |= {"status": status, "error": error, "reached": reached, "counts": dict(counts)}
        self._facts["timings"] = {"wall": wall, "phases": dict(phases)}
        with suppress(OSError):  # a run that failed early has none
            content = (self.path / SAMPLES / CHECKSUMS).read_bytes()
            self._facts["checksums"] = {"bytes": len(content), "crc": checksum(content)}
        self._save(sync=self.is_long)
        return Run(self.path, self._keep)

    @property
    def is_long(self) -> bool:
        """Whether the run is kept, and took so long that it shall survive a power cut once it has ended."""
        return self._keep is None and time.perf_counter() - self._since >= LONG

    def crash_facts(self) -> tuple[str, str]:
        """Return the run.json of a crash: the text before and after the words of its error."""
        facts = self._facts | {"status": "crashed", "error": _WORDS}
        before, after = seal(facts, _plain_number, None).encode("utf-8", "replace").decode().split(_WORDS)
        return before, after

    def _save(self, sync: bool = False) -> None:
        over = self._facts["status"] != "running"  # until then it is written often, and seldom read
        if over or self._keep is None:
            self._write(FACTS, seal(self._facts, _plain_number, 1 if over else None), sync)

    def _write(self, name: str, text: str, sync: bool = False) -> None:
        """Write a file of the folder, whole or not at all; nobody else sees a temporary one."""
        if self._keep is None:
            write_text(self.path / name, text, sync=sync)
            return
        try:
            (self.path / name).write_bytes(text.encode())
        except (OSError, UnicodeEncodeError):
            write_text(self.path / name, text)


class TemporaryFolder:
    """A folder that goes when nothing holds this object any more, or when the interpreter ends.

    Its name tells whose it is: one whose process was killed is removed by the next process that makes one.
    """

    def __init__(self, name: str):
        _remove_abandoned_folders(tempfile.gettempdir())
        readable = re.sub(r"[^\w.-]", "_", name)[:40]
        self.path = Path(tempfile.mkdtemp(prefix=f"hocket-{process_tag(os.getpid())}-{readable}-"))
        weakref.finalize(self, _remove_folder, self.path, os.getpid())


@cache
def _remove_abandoned_folders(place: str) -> None:
    """Remove the temporary folders of processes that are gone, once for each process and place."""
    for folder in Path(place).glob("hocket-*-*-*-*"):
        with suppress(OSError):
            if is_abandoned(folder.name.split("-")[1:4]) and folder.lstat().st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)


def _remove_folder(path: Path, owner: int) -> None:
    # A forked child holds a copy of every Run, but the folder is its parent's.
    if os.getpid() == owner:
        try:
            for folder in (path / SAMPLES, path):  # as it was written, in a fifth of the time of rmtree
                for entry in list(os.scandir(folder)):  # one that is left half way stays open
                    os.unlink(entry)
                os.rmdir(folder)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)


def _plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else float(value)


@cache
def _installed_versions() -> tuple[tuple[str, str], ...]:
    """Return what this process runs with, read once: it takes as long as a small run."""
    try:
        hocket = version("hocket")
    except PackageNotFoundError:
        hocket = "not installed"
    return (
        ("hocket", hocket),
        ("python", platform.python_version()),
        ("numpy", np.__version__),
        ("pyarrow", pa.__version__),
        ("platform", platform.platform()),
    )
