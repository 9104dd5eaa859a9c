"""hocket run: a scenario file is run and what it computed is kept.

In:  a scenario file; options that win over its [run] table
Out: a run folder, and a summary
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

import hocket
from hocket.cli.progress import shown
from hocket.cli.screen import say, tell
from hocket.cli.summary import summary
from hocket.cli.targets import check_file, check_picture
from hocket.clock import Duration
from hocket.engine.recording import unwritable
from hocket.errors import FileError, HocketError, ScenarioError

_RUN_KEYS = ("start", "stop", "every", "record")


class Engine(StrEnum):
    """Who runs the plan."""

    native = "native"
    interpreter = "interpreter"


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A scenario file.", show_default=False)],
    stop: Annotated[
        str | None, typer.Option(metavar="TIME", help='When to stop: 10, "500 ms", "2 min".')
    ] = None,
    start: Annotated[str | None, typer.Option(metavar="TIME", help="When to start.")] = None,
    every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help='Time between rows; "micro": micro steps too.'),
    ] = None,
    record: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help='Ports to keep, as "axle.*"; may be repeated.'),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to keep the run, if not in runs/FILE-001."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", metavar="", help="Replace the run in --folder.")
    ] = False,
    engine: Annotated[
        Engine, typer.Option(metavar="NAME", help="native, or interpreter: slow, the same numbers.")
    ] = Engine.native,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="If not as many as pay off.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", metavar="", help="Print the folder of the run only.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(metavar="PNG", help="Then draw what was recorded.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Then write what was recorded.")] = None,
) -> None:
    """Run a scenario and keep what it computed; options win over the file.

    Ctrl-C ends the run after the current step: every row so far is kept, and the exit code is 1. It is 1
    too when the run fails, and 2 when the scenario or the command is wrong.
    """
    study = hocket.read(file)
    begin: Duration = study.start if start is None else start
    end: Duration | None = study.stop if stop is None else stop
    if end is None:
        hint = f"`hocket run {file} --stop 10`, or in the file: a table [run] with `stop = 10`"
        raise ScenarioError("nothing says when the run stops", str(file), "a stop time", hint)
    if overwrite and folder is None:
        hint = "leave it out: without --folder every run gets a new folder in runs/"
        raise ScenarioError("`--overwrite` needs `--folder`", "", "the folder whose run is replaced", hint)
    if csv:
        check_file(csv)
    if plot:
        check_picture(plot)
    typed = {"start": start, "stop": stop, "every": every, "record": record}
    step = float(study.composite.step)
    with (
        _kept(folder, file.stem, overwrite) as place,
        _placed(file, [name for name, value in typed.items() if value]),
        shown(study.name, begin, step, quiet) as progress,
    ):
        done = hocket.run(
            study.composite,
            end,
            start=begin,
            every=study.every if every is None else every,
            record=record or None,
            folder=place,
            overwrite=overwrite,
            name=study.name,
            engine=engine.value,
            threads=threads,
            progress=progress,
        )
    if done.status == "stopped":
        tell(f"stopped by Ctrl-C at t = {done.info['reached']:g} s; every row so far is kept")
    if quiet:
        say(str(place))
    else:
        summary(done, place)
    if csv:
        done.to_csv(csv)
    if plot:
        done.plot(path=plot)
    if not quiet:
        say(*(f"wrote {written}" for written in (csv, plot) if written))
    if done.status != "finished":
        raise typer.Exit(1)


@contextmanager
def _placed(file: Path, typed: Sequence[str]) -> Iterator[None]:
    """Let faults of the run say whether they come from an option or from the file."""
    try:
        yield
    except ScenarioError as error:
        places = {name: f"--{name}" if name in typed else f"`{name}` in {file}" for name in _RUN_KEYS}
        faults = [replace(fault, where=places.get(fault.where, fault.where)) for fault in error.faults]
        error.faults = tuple(faults)
        raise


@contextmanager
def _kept(folder: Path | None, stem: str, overwrite: bool) -> Iterator[Path]:
    """Give the folder of the run; if it is new and nothing was recorded, a faulty scenario leaves none."""
    if folder is not None and not overwrite and _opened(folder):
        hint = "choose another folder, or replace that run with --overwrite"
        raise FileError(f"`{folder.name}` holds a run already", str(folder), "", hint)
    new = folder is None or not folder.exists()
    place = _next(stem) if folder is None else folder
    try:
        yield place
    except ScenarioError:
        run = _opened(place)
        if new and not (run and run.ports):
            shutil.rmtree(place, ignore_errors=True)
            if folder is None:
                with suppress(OSError):
                    place.parent.rmdir()
        raise
    except KeyboardInterrupt as error:
        error.add_note(f"every row that was written is kept in {place}")
        raise


def _opened(folder: Path) -> hocket.Run | None:
    try:
        return hocket.open_run(folder)
    except HocketError:
        return None


def _next(stem: str) -> Path:
    """Make the next of the folders runs/stem-001, runs/stem-002 ..."""
    runs = Path("runs")
    numbered = re.compile(re.escape(stem) + r"-(\d{3,})")
    try:
        names = (numbered.fullmatch(path.name) for path in (runs.iterdir() if runs.is_dir() else ()))
        newest = max((int(name[1]) for name in names if name), default=0)
        for number in count(newest + 1):
            folder = runs / f"{stem}-{number:03}"
            with suppress(FileExistsError):  # another run may have begun just now
                folder.mkdir(parents=True)
                return folder
    except OSError as error:
        raise unwritable(runs, error) from error
    raise AssertionError("numbers do not end")
