"""A run: the composite is opened, started, stepped to the end and recorded, whatever happens on the way.

In:  a Composite and a stop time
Out: a Run; on a failure or Ctrl-C every row so far is kept
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Literal, Protocol

from hocket.clock import Duration, seconds, written
from hocket.engine.blueprint import Blueprint, blueprint, clock_of, opened
from hocket.engine.collector import collector_paused
from hocket.engine.composite import Composite, prepared
from hocket.engine.initialise import initialise
from hocket.engine.interpreter import Level
from hocket.engine.native import NativeEngine, obstacle
from hocket.engine.plain import PlainEngine
from hocket.engine.recording import ArrowRecorder
from hocket.engine.selection import Recorded, bind, choose, keep_start
from hocket.errors import HocketError, ScenarioError
from hocket.files.run import Run, Status
from hocket.files.run_folder import RunFolder
from hocket.files.study import Study
from hocket.files.toml import dumps
from hocket.model import Array

CHUNK = 0.1
"""Seconds between two looks at the keyboard, the progress bar and the rows."""

Progress = Callable[[float, float], None]
"""Called with the time reached and the stop time, about ten times a second."""


class Engine(Protocol):
    """What both engines can do."""

    name: str

    def run(self, steps: int, seconds: float) -> int:
        """Run up to so many steps for about so long; return how many were done."""

    @property
    def now(self) -> int:
        """The tick reached."""

    def rows(self, index: int) -> Array:
        """Return the rows that wait for a table, and forget them."""


@dataclass
class Started:
    """A tree of levels after its start, with an engine to run it."""

    level: Level
    engine: Engine
    recorded: list[Recorded]
    steps: int
    label: str
    """The engine, and why it is not the one asked for."""


def run(
    composite: Composite,
    stop: Duration,
    *,
    start: Duration = 0,
    every: Duration | Literal["micro"] | None = None,
    record: Iterable[str] | None = None,
    folder: Path | str | None = None,
    overwrite: bool = False,
    name: str = "run",
    engine: Literal["native", "interpreter"] = "native",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run a composite from start to stop and return what was recorded.

    `every` is the time between rows (default: each step; "micro": also the micro steps of the simulators
    that hocket integrates), `record` overrides the ports that the scenario records, `folder` keeps the run
    (default: a temporary folder that goes with the returned Run). `threads`: None decides by measured cost.
    Ctrl-C ends the run between two steps; a second one ends it at once.
    """
    begin, stopping = _times(start, stop)
    interval = _interval(every)
    with collector_paused():
        design = blueprint(prepared(composite))
    steps = _whole_steps(design, begin, stopping)
    clock = clock_of(design, *([interval] if isinstance(interval, Fraction) else []), start=begin)
    patterns = design.composite.scenario.record if record is None else tuple(record)
    chosen = choose(design, clock, patterns, interval)
    output = RunFolder.create(folder, name, overwrite)
    phases: dict[str, float] = {}
    recorder = ArrowRecorder(output.path)
    started: Started | None = None
    level: Level | None = None
    try:
        with _timed(phases, "start"), collector_paused():
            level = opened(design, clock)
            initialise(level, clock.time(0))
            recorded = bind(level, chosen)
            keep_start(recorded)
            engine_of = _engine(level, recorded, steps, engine, threads)
        tables = [entry.table for entry in recorded]
        recorder.open(tables)
        output.begin(
            tables,
            scenario=_text(Study(design.composite, start=begin, stop=stopping, every=interval, name=name)),
            plan=str(design.plan) + "\n",
            engine=engine_of.label,
            start=float(begin),
            stop=float(stopping),
        )
        started = engine_of
        with _timed(phases, "steps"), _interruptible() as interrupted:
            finished = _loop(started, recorder, progress, interrupted, float(stopping))
        counts = {"steps": started.engine.now // level.length, "simulators": _leaves(level)}
        reached = clock.time(started.engine.now)
        return output.end(
            "finished" if finished else "stopped", reached=reached, counts=counts, phases=phases
        )
    except BaseException as error:
        _keep_what_there_is(output, recorder, started, phases, error)
        if started is not None and folder is not None and isinstance(error, HocketError):
            reached = clock.time(started.engine.now)
            error.add_note(f"rows up to t = {reached!r} s are kept in {output.path}")
        raise
    finally:
        recorder.close()
        if level is not None:
            _close(level)


def _keep_what_there_is(
    output: RunFolder,
    recorder: ArrowRecorder,
    started: Started | None,
    phases: dict[str, float],
    error: BaseException,
) -> None:
    """Write the rows that wait, and how it ended; what goes wrong here must not hide the error itself."""
    reached = 0.0
    with suppress(HocketError):
        if started is not None:
            reached = started.level.clock.time(started.engine.now)
            _drain(started, recorder)
    with suppress(HocketError):
        status: Status = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
        output.end(status, reached=reached, phases=phases, error=str(error) or type(error).__name__)


def _close(level: Level) -> None:
    """Close every simulator; what they say then is a warning: the run is over, and its rows are there."""
    try:
        level.close()
    except Exception as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=3)


def _times(start: Duration, stop: Duration) -> tuple[Fraction, Fraction]:
    begin, end = _duration(start, "start"), _duration(stop, "stop")
    if end < begin:
        raise ScenarioError(
            f"the run stops at {written(end)}, before it starts at {written(begin)}", where="stop"
        )
    return begin, end


def _duration(value: Duration, where: str) -> Fraction:
    try:
        length = seconds(value)
    except ValueError as error:
        raise ScenarioError(str(error), where=where) from None
    if where == "every" and length <= 0:
        raise ScenarioError(f"rows every {written(length)}", where=where, expected="a duration above zero")
    return length


def _interval(every: Duration | None) -> Fraction | Literal["micro"] | None:
    if every is None:
        return None
    return "micro" if every == "micro" else _duration(every, "every")


def _whole_steps(design: Blueprint, start: Fraction, stop: Fraction) -> int:
    step = design.composite.step
    count = (stop - start) / step
    if count.denominator != 1:
        below = start + step * count.__floor__()
        raise ScenarioError(
            f"the step {written(step)} does not divide the run from {written(start)} to {written(stop)}",
            where="stop",
            expected="a whole number of steps",
            hint=f"stop at {written(below)} or {written(below + step)}",
        )
    return count.numerator


def _engine(level: Level, recorded: list[Recorded], steps: int, wanted: str, threads: int | None) -> Started:
    if wanted not in ("native", "interpreter"):
        raise ScenarioError(f"there is no engine `{wanted}`", expected='"native" or "interpreter"')
    why = obstacle(level)
    chosen: Engine
    if wanted == "interpreter" or why:
        chosen = PlainEngine(level, recorded)
    else:
        chosen = NativeEngine(level, recorded, threads)
    reason = f", because {why}" if why and wanted == "native" else ""
    return Started(level, chosen, recorded, steps, chosen.name + reason)


def _loop(
    started: Started,
    recorder: ArrowRecorder,
    progress: Progress | None,
    interrupted: threading.Event,
    stop: float,
) -> bool:
    """Step to the end; return False if the user asked to stop."""
    left = started.steps
    while left and not interrupted.is_set():
        left -= started.engine.run(left, CHUNK)
        _drain(started, recorder)
        if progress is not None:
            progress(started.level.clock.time(started.engine.now), stop)
    _drain(started, recorder)
    return not left


def _drain(started: Started, recorder: ArrowRecorder) -> None:
    for index in range(len(started.recorded)):
        block = started.engine.rows(index)
        if len(block):
            recorder.write(index, block)


def _leaves(level: Level) -> int:
    return sum(_leaves(child) if isinstance(child, Level) else 1 for child in level.children)


def _text(study: Study) -> str:
    """Return the scenario as resolved; what cannot be written as text (a lambda) is said so."""
    try:
        return dumps(study, strict=False)
    except HocketError as error:
        return "".join(f"# {line}\n" for line in f"not written: {error}".splitlines())


@contextmanager
def _timed(phases: dict[str, float], name: str) -> Iterator[None]:
    begin = perf_counter()
    try:
        yield
    finally:
        phases[name] = perf_counter() - begin


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event that is looked at between steps."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = signal.getsignal(signal.SIGINT)

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
