"""An FMU in a process of its own: what crashes or hangs there does not take this one with it.

In:  an Fmu
Out: a live simulator with the same numbers; `native` is what a level steps without Python

`serving.py` runs in the other process. The two share memory; in a step no Python runs on either side. What
comes from there is plain data (numbers, texts, JSON), checked before it is used: an FMU may have written it.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import hocket._native as _native
from hocket.errors import EndRequestError, SimulatorError
from hocket.model.clock import format_duration
from hocket.model.plain_state import SerialisedState, as_bytes
from hocket.model.protocols import Array
from hocket.simulators.fmu.live import contiguous_array
from hocket.simulators.fmu.log_messages import deliver
from hocket.simulators.fmu.suspicions import Doubt, FirstRows, Suspicions, look_into

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu


_DOING = {
    "open": ("loading it", "while it was loaded"),
    "start": ("its start", "during its start"),
    "ready": ("its initialisation", "during its initialisation"),
    "step": ("a step", "during a step"),
    "output": ("evaluating its outputs", "while its outputs were evaluated"),
    "slope": ("evaluating its output derivatives", "while its output derivatives were evaluated"),
    "jacobian": ("evaluating its derivatives", "while its derivatives were evaluated"),
    "save": ("saving its state", "while its state was saved"),
    "restore": ("restoring its state", "while its state was restored"),
    "text": ("getting a text", "while a text was got"),
    "set_text": ("setting a text", "while a text was set"),
    "close": ("closing it", "while it was closed"),
}
_LONGER = "if it may take that long, a greater `time_limit` of the FMU"
_MEMORY = "the system does this when memory runs out"
MALFORMED = "code in its process has written over what hocket keeps there: the FMU is broken, or hostile"


def process_end_error(door: Any, limit: Fraction) -> SimulatorError:
    """Return the error for a process that is gone; `limit` is what the last call was allowed, in seconds."""
    if door.end == "closed":
        return SimulatorError("it is closed")
    subject, during = _DOING.get(door.asked, ("a call", "during a call"))
    if door.end == "malformed":
        return SimulatorError(
            f"its process sent what is not well formed {during}, and was ended", hint=MALFORMED
        )
    function = door.function.decode(errors="replace")
    said = door.said.decode(errors="replace")
    if door.end == "late":
        what = f"{subject} took longer than {format_duration(limit)}"
        if door.took > 9 * limit:
            what = f"{subject} did not end in {door.took:.3g} s, in which it hardly had a processor"
        what += f": {function} did not return" if function else ""
        return SimulatorError(what, hint=_LONGER)
    causes = {"exited": f"exit code {door.code}", "vanished": "cause unknown,"}
    cause = causes.get(door.end) or describe_signal(door.code)
    what = f"its process ended: {cause} {f'in {function}' if function else during}"
    killed = door.end == "signalled" and door.code == signal.SIGKILL
    return SimulatorError(f"{what}: {said}" if said else what, hint=_MEMORY if killed else "")


def describe_signal(code: int) -> str:
    """Return words for a signal, such as `segmentation fault (SIGSEGV)`."""
    words = (signal.strsignal(code) or "a signal").lower()
    try:
        return f"{words} ({signal.Signals(code).name})"
    except ValueError:
        return f"{words} (signal {code})"


_PACKAGES = ("hocket", "hocket.simulators", "hocket.simulators.fmu")
_DERIVED = (
    "file", "unpacked_folder", "description", "settings", "port_layout", "inputs", "outputs", "texts",
    "exchange",
    "scheduled",
    "ticks", "interface_used", "binary",
)  # fmt: skip
_ROOM = 64 << 20
"""Bytes for questions and answers; only those that are used take memory."""
_WORDS = 1 << 20
"""Bytes of an answer in JSON, at the most."""


def launch_process(model: Fmu, quiet: bool = False) -> tuple[subprocess.Popen[bytes], Any]:
    """Start a process that loads the FMU; nothing is waited for."""
    boot = pickle.dumps(
        {
            "path": [entry for entry in sys.path if isinstance(entry, str)],
            "packages": {name: list(sys.modules[name].__path__) for name in _PACKAGES},
            "model": pickle.dumps(_model_snapshot(model)),
        }
    )
    sizes = len(model.inputs), len(model.outputs)
    fd = _memory(_native.Isolated.needed(*sizes, max(_ROOM, len(boot))))
    try:
        door = _native.Isolated(fd, *sizes, float(model.time_limit))
        door.quiet = quiet
        door.put(boot)
        process = _start_server(fd, door.payload_at, len(boot), str(model.file), quiet)
    finally:
        os.close(fd)
    door.attach(process.pid)
    return process, door


def _model_snapshot(model: Fmu) -> SimpleNamespace:
    """Return what the live simulator asks of its model: the recipe itself would import far more."""
    names = (*(field.name for field in fields(model) if field.name != "values"), *_DERIVED)
    # what ends that process is known here without a file
    return SimpleNamespace(**{name: getattr(model, name) for name in names}, crash_file="")


def _memory(size: int) -> int:
    """Return the file descriptor of memory to share: it has no name, and goes with its last holder."""
    if hasattr(os, "memfd_create"):
        import fcntl

        fd = os.memfd_create("hocket", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.truncate(fd, size)  # and so it stays: what is mapped here cannot be cut off there
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return fd
    with tempfile.TemporaryFile() as file:
        fd = os.dup(file.fileno())
    os.truncate(fd, size)
    return fd


_WATCHED = {"MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3"}
"""Fills memory as it is handed out and given back, as in a process that has run for long (glibc).

Ends the process if something was written behind it."""
_WATCHING = "libc_malloc_debug.so.0"
"""The library of glibc that watches; the loader goes on without it where there is none."""


def _trial_environment() -> dict[str, str]:
    """Return the environment of a trial."""
    preloaded = os.environ.get("LD_PRELOAD", "")
    return os.environ | _WATCHED | {"LD_PRELOAD": f"{preloaded} {_WATCHING}".strip()}


def _start_server(fd: int, at: int, length: int, where: str, quiet: bool) -> subprocess.Popen[bytes]:
    # -P: a file `numpy.py` beside the user's script is not ours to run;
    # a group of its own: Ctrl-C at the terminal is for this process only
    script = Path(__file__).with_name("serving.py")
    command = [sys.executable, "-P", str(script), *map(str, (fd, os.getpid(), at, length))]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if quiet else None,
            stderr=subprocess.DEVNULL if quiet else None,
            env=_trial_environment() if quiet else None,
            pass_fds=(fd,),
            process_group=0,
        )
    except (OSError, ValueError) as error:
        what = f"a process for it cannot be started: {error}"
        raise SimulatorError(what, where, f"a Python at `{sys.executable}`") from None


def abandon_process(process: subprocess.Popen[bytes], door: Any, owner: int) -> None:
    """End a process whose simulator was not closed."""
    if os.getpid() == owner:  # not in a copy that was forked off
        door.detach()
        process.kill()
        process.wait()


_OPENING = Fraction(60)
"""Seconds that a process may take to come up, whatever the time limit."""
_EXITING = 1.0
"""Seconds that it may take to end, once the FMU is freed."""


def open_simulator(model: Fmu) -> IsolatedFmu:
    """Start a process for the FMU; it comes up while others do, and is waited for by start()."""
    return IsolatedExchange(model) if model.exchange else IsolatedFmu(model)


Answer = TypeVar("Answer")


def _read_json(answer: bytes) -> Any:
    """Return what an answer says; raises ValueError if it is not JSON."""
    if len(answer) > _WORDS:
        raise ValueError
    try:
        return json.loads(answer)
    except RecursionError:
        raise ValueError from None


def _reader(kind: type[Answer]) -> Callable[[bytes], Answer]:
    """Return what reads an answer of one type; it raises ValueError for any other."""

    def read(answer: bytes) -> Answer:
        value = _read_json(answer)
        if type(value) is not kind:
            raise ValueError
        return value

    return read


_read_nothing, _read_truth, _read_number = _reader(type(None)), _reader(bool), _reader(int)


def _read_words(answer: bytes) -> list[str]:
    """Return what, where, expected and hint of an error."""
    words = _reader(list)(answer)
    if len(words) != 4 or not all(isinstance(word, str) for word in words):
        raise ValueError
    return words


def _read_sentences(answer: bytes) -> list[str]:
    sentences = _reader(list)(answer)
    if not all(isinstance(sentence, str) for sentence in sentences):
        raise ValueError
    return sentences


def _read_numbers(value: Any) -> list[float]:
    if type(value) is not list or not all(type(each) in (int, float) for each in value):
        raise ValueError
    return [float(each) for each in value]


def _read_rows(answer: bytes) -> FirstRows | None:
    """Return time and step, outputs and inputs."""
    value = _read_json(answer)
    if value is None:
        return None
    if type(value) is not list or len(value) != 4 or not all(type(each) is list for each in value[2:]):
        raise ValueError
    t, h = _read_numbers(value[:2])
    y, u = ([_read_numbers(row) for row in rows] for rows in value[2:])
    return t, h, y, u


def _read_doubt(answer: bytes) -> Doubt | None:
    value = _read_json(answer)
    if value is None:
        return None
    if type(value) is not list or len(value) != 3 or type(value[2]) is not bool:
        raise ValueError
    return _read_numbers(value[0]), _read_numbers(value[1:2])[0], value[2]


def open_quietly(model: Fmu) -> IsolatedFmu:
    """Open the FMU for a trial: what it prints and logs is for nobody."""
    return IsolatedFmu(model, trial=True)


class RemoteState:
    """A state that is kept in the other process, until nothing refers to this any more."""

    def __init__(self, number: int, forgotten: list[int], dump: Callable[[int], bytes]):
        self.number = number
        self.forgotten = forgotten
        self._dump = dump

    def serialise(self) -> bytes:
        """Return it as bytes, by the FMU's own functions."""
        return self._dump(self.number)

    def __del__(self) -> None:
        self.forgotten.append(self.number)


class IsolatedFmu:
    """A live FMU in a process of its own."""

    settles = True

    def __init__(self, model: Fmu, trial: bool = False):
        self.model = model
        self.trial = trial
        self.stop_time: float | None = None
        """When the run will end, if that is known: FMUs are told."""
        self.early = False
        """Whether its level handles steps that end early; set before the start."""
        self.native: Any = None
        """What a level of the native engine steps without Python; known once the FMU is loaded."""
        self._limit = float(model.time_limit)
        self._opening = max(model.time_limit, _OPENING)
        self.instance_name = model.interface_used.identifier
        """The name of its instance: the path of the model, set before the start."""
        self.was_ended = False
        """Whether it has ended a process, or a call took too long."""
        self.suspicions = Suspicions(model)
        self._has_saved = False
        self._launch()

    @property
    def ended(self) -> bool:
        """Whether it has asked to end the simulation."""
        return bool(self._door.ended)

    def _launch(self) -> None:
        self._process, self._door = launch_process(self.model, self.trial)
        self._up = False
        self._forgotten: list[int] = []
        self._finalizer = weakref.finalize(self, abandon_process, self._process, self._door, os.getpid())

    def _wait_up(self) -> None:
        """Wait until the FMU is loaded; raises what went wrong with that."""
        if self._up:
            return
        if not self._door.wait_opened(float(self._opening)):
            error = self.fault()
            self._end_process()
            raise error
        self._up = True
        if self._read(_read_truth):
            self.native = self._door

    def _read(self, read: Callable[[bytes], Answer]) -> Answer:
        """Return the last answer; one that is not what was asked for ends the process."""
        try:
            return read(self._door.payload)
        except ValueError:
            self._door.reject()
            self.was_ended = True
            raise process_end_error(self._door, self.model.time_limit) from None

    def _call(self, name: str, *arguments: Any, read: Callable[[bytes], Answer]) -> Answer:
        self._wait_up()
        if not self._door.call(name, pickle.dumps((name, arguments)), self._limit):
            raise self.fault()
        return self._read(read)

    def start(self, t: float) -> None:
        """Start the FMU anew; in a new process if the last one has ended."""
        if self._door.end:
            self._end_process()
            self._launch()
        self._call("start", float(t), self.stop_time, self.early, self.instance_name, read=_read_nothing)
        deliver()

    def ready(self) -> None:
        """Leave initialisation: the inputs are as they shall be."""
        self._call("ready", read=_read_nothing)

    def notes(self) -> list[str]:
        """Return what it could not do as it declares; nothing, if its process has ended.

        Raises SimulatorError if it stands still because its state was saved.
        """
        if not self._up or self._door.end:
            return []
        return [*self._call("driver_notes", read=_read_sentences), *look_into(self, self.suspicions)]

    def begins_smoothly(self, ratio: float) -> bool:
        """Return whether its first steps are made, and no output moves so much more in the first of them."""
        return self._call("begins_smoothly", ratio, read=_read_truth)

    def first_rows(self) -> FirstRows | None:
        """Return what its first steps were like, once they are made."""
        return self._call("first_rows", read=_read_rows)

    def doubts_saving(self) -> Doubt | None:
        """Return why it may stand still because its state was saved; None: nothing says so."""
        return self._call("doubts_saving", read=_read_doubt) if self._has_saved else None

    def trust_saving(self) -> None:
        self._call("trust_saving", read=_read_nothing)

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Return what compiled code answers by itself."""
        self._wait_up()
        answer = question(*arguments)
        if answer is None:
            raise self.fault()
        return answer

    def output(self, t: float, u: Array) -> Array:
        y: Array = self._ask(self._door.output, t, contiguous_array(u))
        return y

    def step(self, t: float, h: float, u: Array) -> float:
        reached: float = self._ask(self._door.step, t, h, contiguous_array(u))
        return reached

    def slope(self, t: float, u: Array) -> Array:
        slopes: Array = self._ask(self._door.slope, t, contiguous_array(u))
        return slopes

    def save(self) -> RemoteState:
        """Keep the state there; those that were forgotten meanwhile are freed."""
        self._has_saved = True
        forgotten = self._forgotten[:]
        del self._forgotten[: len(forgotten)]
        number = self._call("save", forgotten, read=_read_number)
        return RemoteState(number, self._forgotten, self._dump)

    def _dump(self, number: int) -> bytes:
        return self._call("dump", number, read=bytes)

    def run_beside(
        self, t: float, h: float, steps: int, inputs: list[list[float]]
    ) -> tuple[Array, Array] | str | None:
        """Return rows of another instance in its process, alone and beside a third, or the words of an error.

        None: nothing moves under any of the inputs.
        """

        def read(answer: bytes) -> tuple[Array, Array] | str | None:
            value = _read_json(answer)
            if value is None or type(value) is str:
                return value
            if type(value) is not list or len(value) != 2 or not all(type(rows) is list for rows in value):
                raise ValueError
            alone, beside = (np.array([_read_numbers(row) for row in rows]) for rows in value)
            if alone.shape != beside.shape or alone.ndim != 2:
                raise ValueError
            return alone, beside

        return self._call("run_beside", t, h, steps, inputs, read=read)

    def changes_arithmetic(self) -> bool:
        """Return whether it has changed how its process computes with floating-point numbers."""
        return self._call("changes_arithmetic", read=_read_truth)

    def refuse_saving(self, why: str) -> None:
        """Make every save an error from now on."""
        self._call("refuse_saving", why, read=_read_nothing)

    def restore(self, state: RemoteState | SerialisedState) -> None:
        """Roll back to a state; that of an earlier process is not known any more, unless it was dumped."""
        if isinstance(state, SerialisedState):
            self._call("load", as_bytes(state), read=_read_nothing)
            return
        number = state.number if state.forgotten is self._forgotten else None
        self._call("restore", number, read=_read_nothing)

    def close(self) -> None:
        """Terminate and free the FMU and end its process, by force if it does not end within a second."""
        try:
            if not self._up:
                self._process.kill()
            elif not self._door.end:
                self._call("close", self.trial, read=_read_nothing)
        finally:
            self._end_process()
            deliver()

    def _end_process(self) -> None:
        self._finalizer.detach()
        self._door.detach()
        try:
            self._process.wait(_EXITING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def text(self, port: int) -> bytes:
        return self._call("text", port, read=bytes)

    def set_text(self, port: int, value: bytes) -> None:
        self._call("set_text", port, value, read=_read_nothing)

    def fault(self) -> SimulatorError:
        """Return the error for the call that failed last; raises what a Ctrl-C meanwhile has raised."""
        door = self._door
        if not (door.problem or door.end or door.worded):
            door.call("fault", pickle.dumps(("fault", ())), self._limit)
        deliver()
        if door.problem:
            return SimulatorError(door.problem)
        if door.end == "interrupted":
            raise _native.take_raised() or KeyboardInterrupt
        if door.end:
            self.was_ended = door.end != "closed"
            limit = self._opening if door.asked == "open" else self.model.time_limit
            return process_end_error(door, limit)
        if door.failed_by_end:
            return EndRequestError("it asks to end the simulation")
        try:
            return SimulatorError(*self._read(_read_words))
        except SimulatorError as error:
            return error


class IsolatedExchange(IsolatedFmu):
    """A live model exchange FMU in a process of its own, where hocket integrates it."""

    def jacobian(self, t: float, u: Array) -> tuple[Array, Array, Array, Array]:
        inputs, outputs = len(self.model.inputs), len(self.model.outputs)

        def read(answer: bytes) -> tuple[int, Array]:
            if len(answer) < 8:
                raise ValueError
            (states,) = struct.unpack_from("=Q", answer)
            shape = states + outputs, states + inputs
            if len(answer) != 8 * (1 + shape[0] * shape[1]):
                raise ValueError
            return states, np.frombuffer(answer, float, offset=8).reshape(shape).copy()

        n, whole = self._call("jacobian", t, contiguous_array(u), read=read)
        return whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:]
