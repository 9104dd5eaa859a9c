"""The processes that make the runs of a sweep: an FMU that crashes there ends one run, not the sweep.

In:  an experiment, and one set of parameters after the other
Out: a run in a folder; a crash or an error there becomes an error here

What comes back is plain data (a line of JSON each), never a pickle: FMUs run in these processes.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import queue
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import hocket._native as _native
from hocket import errors
from hocket.errors import Fault, HocketError, SimulatorError
from hocket.execution.resume import run_from_checkpoint
from hocket.execution.run import run_experiment
from hocket.execution.session import Progress
from hocket.files.experiments import vary_experiment
from hocket.files.run_clearing import clear_unfinished
from hocket.files.run_facts import read_facts
from hocket.files.run_folder import Run, mark_stopped
from hocket.model.experiment import Experiment
from hocket.simulators.fmu.isolated import MALFORMED, describe_signal
from hocket.simulators.fmu.log_messages import LOGGER

GRACE = 1.0
"""Seconds that a run may take to end between two steps once it is asked to."""
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a process from outside: no simulator does that by a fault."""
_LOOK = 0.05
_LONGEST = 1 << 24
"""Bytes of a line that comes back."""


@dataclass(frozen=True)
class RunTask:
    """One run of a sweep."""

    number: int
    parameters: Mapping[str, Any]
    folder: Path
    overwrite: bool = False
    """A run that is in the folder already is replaced: it did not come to its end."""


class LostProcessError(SimulatorError):
    """The process of a run was ended from outside: another one may make the run again."""


def make_run(
    experiment: Experiment,
    options: Mapping[str, Any],
    task: RunTask,
    progress: Progress | None,
    interrupted: threading.Event,
) -> Run:
    """Make one run of a sweep, in this process; `experiment` has not got the parameters yet."""
    if "checkpoint" not in options:
        varied = vary_experiment(experiment, task.parameters, f"parameters[{task.number}]")
        return make_varied_run(varied, options, task, progress, interrupted)
    return make_varied_run(experiment, options, task, progress, interrupted)


def make_varied_run(
    experiment: Experiment,
    options: Mapping[str, Any],
    task: RunTask,
    progress: Progress | None,
    interrupted: threading.Event,
) -> Run:
    """Make one run whose experiment has its parameters; at a checkpoint they are set there."""
    if task.overwrite:
        clear_unfinished(task.folder)
    rest = dict(options)
    checkpoint, overwrite = rest.pop("checkpoint", None), rest.pop("overwrite", False) or task.overwrite
    kept: dict[str, Any] = {
        "folder": task.folder,
        "overwrite": overwrite,
        "progress": progress,
        "interrupted": interrupted,
    }
    if checkpoint is not None:
        return run_from_checkpoint(experiment, task.parameters, checkpoint, **kept, **rest)
    return run_experiment(experiment, task.parameters, **kept, **rest)


def pack_experiment(experiment: Experiment, options: Mapping[str, Any]) -> bytes | None:
    """Return what the processes need to know; None where it holds what has no name in another process.

    Those are functions inside functions, and what the script itself defines: to import a script is to run it.
    """
    level = LOGGER.getEffectiveLevel()
    try:
        packed = pickle.dumps((experiment, dict(options), level))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    return None if b"__main__" in packed else packed


class SweepProcess:
    """One process, which makes one run at a time; begun when it is first needed, and anew after a crash."""

    def __init__(self, packed: bytes):
        self.packed = packed
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting = b""

    def run(self, task: RunTask, update: Callable[[float], None], interrupted: threading.Event) -> None:
        """Make a run in its folder, to the end or until it is interrupted; raises what went wrong."""
        process = self._process or self._start()
        self._send(("run", task.number, dict(task.parameters), str(task.folder), task.overwrite))
        ends = killed = None
        while True:
            line = self._read_line()
            if line is None:  # the process is gone, or says what is not well formed
                self.close()
                code = process.returncode
                if ends is not None:
                    mark_stopped(task.folder)
                    return
                raise _describe_end(task, code)
            if line:
                try:
                    over = self._handle(line, update)
                except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                    self.close()
                    what = "its process sent what is not well formed, and was ended"
                    raise SimulatorError(what, f"run {task.number + 1:03}", "", MALFORMED) from None
                if over:
                    return
            elif interrupted.is_set():
                now = time.monotonic()
                if ends is None:
                    ends = now + GRACE
                    self._send(("stop",))
                elif now > ends and killed is None:
                    killed = now + GRACE
                    process.send_signal(signal.SIGABRT)  # its rows are kept by the crash guard
                elif killed is not None and now > killed:
                    process.kill()

    def _handle(self, line: bytes, update: Callable[[float], None]) -> bool:
        """Handle an answer; return whether the run is over. Raises the error of a run."""
        try:
            kind, told = _decode_answer(line)
        except ValueError:
            if self._process is not None:
                self._process.kill()
            return False  # that the process is gone is read next
        match kind:
            case "share":
                update(told)
            case "log":
                level, name, text, category = told
                LOGGER.log(level, "%s: %s", name, text, extra={"instance": name, "category": category})
            case "warning":
                warnings.warn(told, RuntimeWarning, stacklevel=2)
            case "error":
                raise told
        return kind == "done"

    def close(self) -> None:
        """End the process."""
        process, self._process, self._waiting = self._process, None, b""
        if process is None:
            return
        with suppress(OSError):
            self._tasks.close()  # it ends when nothing can come any more
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(self._answers)

    def _start(self) -> subprocess.Popen[bytes]:
        path = [entry for entry in sys.path if isinstance(entry, str)]
        code = f"import sys; sys.path[:] = {path!r}; import {__name__} as it; it.serve(*sys.argv[1:])"
        (task_end, tasks), (self._answers, answer_end) = os.pipe(), os.pipe()
        try:
            # -P: a file `numpy.py` beside the user's script is not ours to run;
            # a group of its own: Ctrl-C at the terminal is for the process of the user only
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code, str(task_end), str(answer_end)],
                stdin=subprocess.DEVNULL,
                pass_fds=(task_end, answer_end),
                process_group=0,
            )
        finally:
            os.close(task_end)
            os.close(answer_end)
        self._tasks = os.fdopen(tasks, "wb")
        self._send(self.packed)
        return self._process

    def _send(self, message: Any) -> None:
        packed = message if isinstance(message, bytes) else pickle.dumps(message)
        with suppress(OSError):  # it is gone: what is read next tells
            self._tasks.write(struct.pack("=Q", len(packed)) + packed)
            self._tasks.flush()

    def _read_line(self) -> bytes | None:
        """Return the next answer; empty: none has come within a moment; None: the process is gone."""
        while b"\n" not in self._waiting:
            if not select.select([self._answers], [], [], _LOOK)[0]:
                return b""
            more = os.read(self._answers, 1 << 16)
            if not more or len(self._waiting) > _LONGEST:
                return None
            self._waiting += more
        line, _, self._waiting = self._waiting.partition(b"\n")
        return line


def _describe_end(task: RunTask, code: int) -> SimulatorError:
    """Return the error for a process that is gone; the run's own words, if it left any, say it best."""
    facts = read_facts(task.folder) or {}
    words = str(facts.get("error") or "")
    how = describe_signal(-code) if code < 0 else f"exit code {code}"
    where = f"run {task.number + 1:03}"
    kind = LostProcessError if -code in FROM_OUTSIDE and not words else SimulatorError
    return kind(f"its process ended: {words or how}", where)


def _decode_answer(line: bytes) -> tuple[str, Any]:
    """Return the kind of an answer and what it tells; raises ValueError for what is not one."""
    try:
        answer = json.loads(line)
        match answer["kind"]:
            case "share":
                return "share", float(answer["share"])
            case "log":
                return "log", (
                    int(answer["level"]),
                    *(str(answer[key]) for key in ("name", "text", "category")),
                )
            case "warning":
                return "warning", str(answer["text"])
            case "error":
                return "error", _decode_error(answer)
            case "done":
                return "done", None
    except (KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None
    raise ValueError(f"{answer['kind']!r:.40} is not an answer")


_ERRORS: Mapping[str, type[Exception]] = {
    each.__name__: each
    for each in (*vars(errors).values(), TypeError, ValueError, RuntimeError, MemoryError)
    if isinstance(each, type) and issubclass(each, Exception)
}
"""What a run may raise; anything else is told as a RuntimeError."""


def _decode_error(answer: Mapping[str, Any]) -> Exception:
    """Return the error that a run has told of."""
    name, text = str(answer["name"]), str(answer["text"])
    known = _ERRORS.get(name)
    if known is None:
        error: Exception = RuntimeError(f"{name}: {text}")
    elif issubclass(known, HocketError):
        error = known([Fault(*map(str, parts)) for parts in answer["faults"]])
    else:
        error = known(text)
    for note in answer["notes"]:
        error.add_note(str(note))
    return error


# the process


def serve(tasks: str, answers: str) -> None:
    """Make the runs that are asked for, until nothing can come any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _native.guard_process(quiet=True)
    with open(int(tasks), "rb") as source, open(int(answers), "wb", buffering=0) as target:
        _Service(source, target).run()


class _Service:
    def __init__(self, source: BinaryIO, target: BinaryIO):
        self.source, self.target = source, target
        self.tasks: queue.Queue[tuple[int, dict[str, Any], str, bool] | None] = queue.Queue()
        self.stopping = threading.Event()
        self.experiment, self.options, level = pickle.loads(self._receive() or b"")
        LOGGER.setLevel(level)
        LOGGER.propagate = False
        LOGGER.addHandler(_LogRelay(self))

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while (task := self.tasks.get()) is not None:
            self._make_run(*task)

    def _receive(self) -> bytes | None:
        head = self.source.read(8)
        return self.source.read(struct.unpack("=Q", head)[0]) if len(head) == 8 else None

    def _listen(self) -> None:
        """Take what is asked for, also while a run lasts; whoever asks may be gone by then."""
        while (message := self._receive()) is not None:
            what, *task = pickle.loads(message)
            if what == "stop":
                self.stopping.set()
            else:
                self.tasks.put(tuple(task))
        self.stopping.set()
        self.tasks.put(None)
        time.sleep(GRACE)
        os._exit(1)  # it hangs, and nobody waits for it any more

    def tell(self, kind: str, **facts: Any) -> None:
        self.target.write(json.dumps({"kind": kind, **facts}).encode() + b"\n")

    def _make_run(self, number: int, parameters: dict[str, Any], folder: str, overwrite: bool) -> None:
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            try:
                experiment = self.experiment
                assert experiment.stop is not None
                start, span = float(experiment.start), float(experiment.stop - experiment.start) or 1.0

                def update(t: float, _stop: float) -> None:
                    self.tell("share", share=(t - start) / span)

                task = RunTask(number, parameters, Path(folder), overwrite)
                make_run(experiment, self.options, task, update, self.stopping)
            except Exception as error:
                ended: dict[str, Any] = _encode_error(error)
            else:
                ended = {"kind": "done"}
        for warning in noticed:
            if issubclass(warning.category, RuntimeWarning):
                self.tell("warning", text=str(warning.message))
        self.tell(**ended)


def _encode_error(error: Exception) -> dict[str, Any]:
    faults = error.faults if isinstance(error, HocketError) else ()
    return {
        "kind": "error",
        "name": type(error).__name__,
        "text": str(error),
        "faults": [[fault.what, fault.where, fault.expected, fault.hint] for fault in faults],
        "notes": list(getattr(error, "__notes__", ())),
    }


class _LogRelay(logging.Handler):
    """What FMUs say, for whoever has started the sweep."""

    def __init__(self, service: _Service):
        super().__init__()
        self.service = service

    def emit(self, record: logging.LogRecord) -> None:
        facts = vars(record)
        name = str(facts.get("instance", ""))
        text = record.getMessage().removeprefix(f"{name}: ")
        category = str(facts.get("category", ""))
        self.service.tell("log", level=record.levelno, name=name, text=text, category=category)
