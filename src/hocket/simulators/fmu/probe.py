"""Whether an FMU can do what it declares: it is loaded, stepped, and put to the test.

In:  an Fmu
Out: a Probe: for each ability a verdict, and a sentence with numbers

The checks run in a process of their own: an FMU that crashes or hangs there is a finding, not the end.
"""

from __future__ import annotations

import importlib
import json
import logging
import math
import mmap
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from hocket.clock import written
from hocket.errors import HocketError, InternalError, SimulatorError
from hocket.model import Array, Port
from hocket.signals import shifted
from hocket.simulators.fmu.binaries import exported
from hocket.simulators.fmu.facts import Interface, Variable
from hocket.simulators.fmu.logs import LOGGER, deliver
from hocket.simulators.fmu.recipe import Fmu

Verdict: TypeAlias = Literal["true", "false", "not declared", "untried"]
Found: TypeAlias = tuple[Verdict, str]
Inputs: TypeAlias = Callable[[int], Array]
Moved: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

_ROUNDING = 1e-9
"""What may differ after a rewind, for numbers of the size of one; the engine allows as much."""
_NOTE = 200
_OPENING = 60.0
"""Seconds that the other process may take to come up."""
_F = TypeVar("_F", bound=Fmu)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one ability."""

    name: str
    verdict: Verdict
    what: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found of an FMU; `probe["rewind"]` is one finding."""

    file: str
    findings: tuple[Finding, ...]

    def __getitem__(self, name: str) -> Finding:
        return {finding.name: finding for finding in self.findings}[name]

    def __str__(self) -> str:
        width = max(len(finding.name) for finding in self.findings)
        lines = (f"{found.name:{width}}  {found.verdict:12}  {found.what}" for found in self.findings)
        return "\n".join((*lines, self.summary))

    @property
    def false(self) -> tuple[str, ...]:
        """The names of what is not as it should be."""
        return tuple(finding.name for finding in self.findings if finding.verdict == "false")

    @property
    def summary(self) -> str:
        """One line: whether it can be trusted."""
        if self.false:
            return f"not to be trusted: {', '.join(self.false)}"
        return "all that it declares is true"


def probe(model: Fmu, *, here: bool = False) -> Probe:
    """Put an FMU to the test; with `here` in this process, which it may take down.

    Each check may take the `time_limit` of the model. Raises ScenarioError if it has no binary for this
    platform.
    """
    _ = model.binary
    plain = _remade(Fmu, model, isolate=False)
    findings = _findings(_Bench(plain), tuple(CHECKS)) if here else _apart(plain)
    return Probe(str(model.file), tuple(findings))


def _remade(kind: type[_F], model: Fmu, **changes: Any) -> _F:
    return kind(model.path, model.parameters, folder=model.folder, **{**model.options, **changes})


# the other process


def _apart(model: Fmu) -> Iterator[Finding]:
    """Yield the findings of other processes: after a crash the next one goes on with the next check."""
    left, late = tuple(CHECKS), 0
    failed: set[str] = set()
    while left:
        found, end, timed_out = _process(model, left, failed)
        yield from found
        failed |= {finding.name for finding in found if finding.verdict == "false"}
        left = left[len(found) :]
        if not left:
            return
        name, *rest = left
        left, late = tuple(rest), late + timed_out
        failed.add(name)
        yield Finding(name, "false", end)
        if name in ("loads", "steps") or late > 1:
            yield from (Finding(other, "untried", f"`{name}` ended the process") for other in left)
            return


def _process(model: Fmu, names: tuple[str, ...], failed: set[str]) -> tuple[list[Finding], str, bool]:
    """Return what a process found, and if that is not all, how it ended and whether that was by time."""
    with tempfile.TemporaryDirectory(prefix="hocket-probe-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        (place / "job").write_bytes(pickle.dumps((model, names, failed)))
        (place / "note").write_bytes(bytes(_NOTE))
        path = [entry for entry in sys.path if isinstance(entry, str)]
        code = f"import sys; sys.path[:] = {path!r}; from {__name__} import _serve; _serve({folder!r})"
        # -P: a file `numpy.py` beside the script of the user is not ours to run
        command = [sys.executable, "-P", "-c", code]
        with open(place / "said", "wb") as said:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, process_group=0
            )
        try:
            late = _watched(process, place / "found", len(names), float(model.time_limit))
        finally:
            _killed(process)
        if not (place / "found").exists() or not (place / "found").stat().st_size:
            raise InternalError(
                "the process of the probe did not come up", "", "", "; ".join(_lines(place / "said"))
            )
        lines = [json.loads(line) for line in _lines(place / "found")]
        for line in lines:
            if "internal" in line:
                raise InternalError(f"a check failed: {line['internal']}")
        words = [line for line in _lines(place / "said") if not line.startswith(("Fatal Python", "  File"))]
        doing = (place / "note").read_bytes().rstrip(b"\0").decode(errors="replace")
        end = _end(process.returncode, late, doing, words, model)
        return [Finding(**line) for line in lines], end, late


def _watched(process: subprocess.Popen[bytes], found: Path, wanted: int, limit: float) -> bool:
    """Wait for a process; return True if a check took too long."""
    seen, deadline = 0, time.monotonic() + _OPENING + limit
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            return False
        size = found.stat().st_size if found.exists() else 0
        if size != seen:
            seen, deadline = size, time.monotonic() + limit
            if len(_lines(found)) == wanted:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
                return False
        elif time.monotonic() > deadline:
            return True


def _killed(process: subprocess.Popen[bytes]) -> None:
    """End a process, and what it has started."""
    if process.poll() is None:
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


def _lines(file: Path) -> list[str]:
    text = file.read_text(errors="replace") if file.exists() else ""
    return [line for line in text.splitlines() if line.strip()]


def _end(code: int, late: bool, doing: str, words: list[str], model: Fmu) -> str:
    """Return how a process ended."""
    if late or (code < 0 and -code == getattr(signal, "SIGALRM", 0)):
        what = f"it took longer than {written(model.time_limit)}"
    elif code < 0:
        number = -code
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        what = f"it crashed: {(signal.strsignal(number) or 'a signal').lower()} ({name})"
    else:
        what = f"it ended the process, with exit code {code}"
    said = f"; its last words: {words[-1].strip()[:200]}" if words and not late else ""
    return f"{what}, in {doing or 'its binary'}{said}"


def _serve(folder: str) -> None:
    """Make the checks that the folder asks for, in this process, and leave the findings there."""
    place = Path(folder)
    model, names, failed = pickle.loads((place / "job").read_bytes())
    patience = math.ceil(float(model.time_limit)) + 5
    with (
        open(place / "note", "r+b") as file,
        mmap.mmap(file.fileno(), _NOTE) as memory,
        open(place / "found", "a") as found,
    ):

        def note(text: str) -> None:
            memory[:] = text.encode()[:_NOTE].ljust(_NOTE, b"\0")

        def tell(line: str) -> None:
            if hasattr(signal, "alarm"):  # ends this process should nobody watch it any more
                signal.alarm(patience)
            found.write(line + "\n")
            found.flush()

        try:
            bench = _Bench(model, note)
            bench.rewinds = "rewind" not in failed
            importlib.import_module(f"hocket.simulators.fmu.{'exchange' if model.exchange else 'live'}")
            tell("")  # from here on time is the FMU's
            for finding in _findings(bench, names):
                tell(json.dumps(asdict(finding)))
        except Exception:
            tell(json.dumps({"internal": traceback.format_exc()}))


# the bench


class _Short(SimulatorError):  # noqa: N818 - what happened is no error
    """A step ended before its time."""

    def __init__(self, t: float, end: float, reached: float):
        self.reached = reached
        super().__init__(f"the step from {t:.6g} s to {end:.6g} s ended at {reached:.6g} s")


class _Eager(Fmu):
    """The same FMU, inputs being set between steps whatever it declares."""

    @property
    def outputs(self) -> tuple[Port, ...]:
        names = tuple(port.name for port in self.inputs)
        return tuple(replace(port, feedthrough=names) for port in super().outputs)


class _Plain(Fmu):
    """The same FMU, its directional derivatives left alone."""

    @property
    def interface_used(self) -> Interface:
        return replace(super().interface_used, directional=False)


@dataclass
class _Course:
    """The first run, that others are compared with: a row per step, why it ended before its time."""

    rows: Array
    lasted: list[float]
    ended: str = ""
    short: bool = False


class _Bench:
    """An FMU, a grid of steps, and inputs that change."""

    def __init__(self, model: Fmu, note: Callable[[str], None] = lambda _: None):
        self.model, self.note = model, note
        self.used, self.major = model.interface_used, model.description.major
        self.limit = float(model.time_limit)
        self.said: list[str] = []
        self.lasted = 0.0  # seconds, of the newest step
        self.rewinds = True  # as far as is known
        self.t0, self.h, self.count, self.stop = _grid(model)
        self.names = [port.name for port in model.outputs]
        self.real = np.array([port.type == "real" for port in model.inputs], dtype=bool)
        starts = [port.start or 0.0 for port in model.inputs]
        self.base: Array = np.array(starts, dtype=float)
        self.other: Array = np.array([_another(model, port) for port in model.inputs], dtype=float)

    def u(self, n: int, tune: float = 0.0) -> Array:
        """Return the inputs of step n, somewhere between the start values and the others."""
        phase = n + 1.3 * np.arange(len(self.base)) + tune
        weight = np.where(self.real, 0.5 + 0.5 * np.sin(phase), np.floor(phase) % 3 == 1)
        values: Array = self.base + weight * (self.other - self.base)
        return values.reshape(1, -1)

    def time(self, n: float) -> float:
        """Return the time after n steps."""
        return self.t0 + n * self.h

    @contextmanager
    def simulator(self, model: Fmu | None = None, early: bool = False) -> Iterator[Any]:
        """Give a started simulator whose outputs were got once; close it afterwards."""
        self.note("loading it")
        simulator: Any = (model or self.model).open()
        try:
            simulator.stop_time = self.stop
            if early:
                simulator.early = True
            self.note("its start")
            simulator.start(self.t0)
            self.note("getting the first outputs")
            simulator.output(self.t0, self.u(0))
            yield simulator
        finally:
            self.note("closing it")
            simulator.close()
            deliver()

    def step(self, simulator: Any, t: float, h: float, u: Array) -> Array:
        """Make a step; return the outputs at its end."""
        self.note(f"a step from {t:.6g} s to {t + h:.6g} s")
        clock = time.perf_counter()
        reached = simulator.step(t, h, u)
        self.lasted = time.perf_counter() - clock
        if reached < t + h - 1e-9 * h:
            raise _Short(t, t + h, reached)
        return np.array(simulator.output(t + h, np.array(shifted(list(u), h))), dtype=float)

    def walk(
        self, simulator: Any, count: int, first: int = 0, parts: int = 1, u: Inputs | None = None
    ) -> Array:
        """Make steps, each in so many parts; return the outputs after each part."""
        rows = []
        for n in range(first, first + count):
            inputs = (u or self.u)(n)
            for part in range(parts):
                rows.append(self.step(simulator, self.time(n + part / parts), self.h / parts, inputs))
        return np.array(rows).reshape(len(rows), len(self.names))

    @cached_property
    def course(self) -> _Course:
        """The first run: over the default experiment, as far as it goes and time allows."""
        course = _Course(np.zeros((0, len(self.names))), [])
        rows: list[Array] = []
        begun = time.monotonic()
        with self.simulator() as simulator:
            for n in range(self.count):
                try:
                    row = self.step(simulator, self.time(n), self.h, self.u(n))
                except SimulatorError as error:
                    course.ended, course.short = _what(error), isinstance(error, _Short)
                    break
                course.lasted.append(self.lasted)
                if not np.all(np.isfinite(row)):
                    wrong = int(np.argmin(np.isfinite(row)))
                    course.ended = f"`{self.names[wrong]}` is {row[wrong]} at {self.time(n + 1):.6g} s"
                    break
                rows.append(row)
                if time.monotonic() - begun > self.limit / 4:
                    break
        course.rows = np.array(rows).reshape(len(rows), len(self.names))
        return course

    @cached_property
    def few(self) -> int:
        """How many steps a check may make several times; never more than went well."""
        return max(1, min(len(self.course.rows), 100, self.affordable(1 / 40)))

    def affordable(self, share: float) -> int:
        """Return how many steps can be made in that share of the time limit."""
        return int(share * self.limit / max(float(np.mean(self.course.lasted or [0.0])), 1e-9))

    @cached_property
    def reactions(self) -> _Reactions:
        """Which outputs follow which inputs at once."""
        return _reactions(self)

    def lacking(self, *functions: str) -> list[str]:
        """Return which functions the binary does not have."""
        prefix = f"{self.used.identifier}_" if self.major == 1 else ""
        there = exported(self.model.binary, [prefix + name for name in functions])
        return [name for name in functions if prefix + name not in there]

    def gap(self, ones: Array, others: Array) -> tuple[float, str]:
        """Return the largest difference for numbers of the size of one, and words for it."""
        apart = _apartness(ones, others)
        if not apart.size or not np.any(apart):
            return 0.0, "the same to the bit"
        row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
        name, one, other = self.names[column], ones[row, column], others[row, column]
        if apart[row, column] <= _ROUNDING:
            return float(apart[row, column]), f"the same up to {abs(one - other):.2g}"
        return float(apart[row, column]), f"`{name}` is {other:.9g} instead of {one:.9g}"


def _apartness(ones: Array, others: Array) -> Array:
    """Return the differences, in proportion to numbers above one."""
    apart = np.abs(ones - others) / np.maximum(1.0, np.maximum(np.abs(ones), np.abs(others)))
    return np.where(np.isnan(ones) & np.isnan(others), 0.0, np.nan_to_num(apart, nan=math.inf))


def _grid(model: Fmu) -> tuple[float, float, int, float | None]:
    """Return where steps begin, how long and how many they are, and where they end if that is declared."""
    description, fixed = model.description, model.interface_used.fixed_step
    start = description.start or 0.0
    stop = description.stop if description.stop is not None and description.stop > start else None
    h = description.step or (0.01 if stop is None else (stop - start) / 100)
    if fixed and not model.interface_used.variable_step:
        h = fixed * max(1, round(h / fixed))
    fits = 0 if stop is None else math.floor((stop - start) / h + 1e-6)
    return (start, h, min(fits, 1000), stop) if fits >= 10 else (start, h, 10, None)


def _variable(model: Fmu, port: Port) -> Variable:
    known = model.description.by_name
    return known[port.name] if port.name in known else known[port.name.rpartition("[")[0]]


def _another(model: Fmu, port: Port) -> float:
    """Return a value of an input other than its start value, within its limits."""
    start, variable = port.start or 0.0, _variable(model, port)
    low = -math.inf if variable.minimum is None else float(variable.minimum)
    high = math.inf if variable.maximum is None else float(variable.maximum)
    if port.type == "boolean":
        return 1.0 - start
    if port.type == "enumeration":
        return next((float(item) for item in variable.items.values() if item != start), start)
    if port.type == "integer":
        return start + 1 if start + 1 <= high else max(start - 1, low)
    nudge = 0.1 * max(abs(start), variable.nominal or 1.0)
    if high - low < math.inf:
        nudge = min(nudge, 0.25 * (high - low))
    return start + nudge if start + nudge <= high else max(start - nudge, low)


def _what(error: HocketError) -> str:
    return error.faults[0].what


@contextmanager
def _listening(said: list[str]) -> Iterator[None]:
    """Keep what FMUs say, instead of passing it on."""

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"{record.levelname.lower()}: {record.getMessage().partition(': ')[2]}")

    ear, level, passes = Ear(), LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(ear)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(ear)
        LOGGER.setLevel(level)
        LOGGER.propagate = passes


def _findings(bench: _Bench, names: Sequence[str]) -> Iterator[Finding]:
    """Yield what the checks of these names find, in this process."""
    dead = ""
    for name in names:
        if dead:
            yield Finding(name, "untried", dead)
            continue
        bench.said.clear()
        try:
            with _listening(bench.said):
                verdict, what = CHECKS[name](bench)
        except HocketError as error:
            hint = error.faults[0].hint if name == "loads" else ""
            verdict, what = "false", f"{_what(error)}; {hint}" if hint else _what(error)
        yield Finding(name, verdict, what)
        if name == "loads" and verdict == "false":
            dead = "it does not start"
        elif name == "steps" and not len(bench.course.rows):
            dead = "it makes no step"
        elif name == "rewind" and verdict == "false":
            bench.rewinds = False


# the checks

_ABSENT = "it has none"


def _loads(bench: _Bench) -> Found:
    clock = time.perf_counter()
    with bench.simulator() as simulator:
        ready = getattr(getattr(simulator, "native", None), "ready", None)
        if ready and not ready():
            raise simulator.fault()
        lasted = time.perf_counter() - clock
        lacking = bench.lacking(*_functions(bench.major, bench.model.exchange))
    kind = "model exchange" if bench.model.exchange else "co-simulation"
    what = f"FMI {bench.major}, {kind}: loaded and initialised in {_seconds(lasted)}"
    if lacking:
        what += f"; its binary lacks {_listed(lacking)}"
    return "true", what + _quoted(bench.said)


def _steps(bench: _Bench) -> Found:
    course = bench.course
    made = len(course.rows)
    what = f"{_count(made, 'step')} of {bench.h:.6g} s from {bench.t0:.6g} s, outputs finite"
    if made:
        usual = float(np.median(course.lasted))
        what += f", {_seconds(usual)} per step, at most {_seconds(max(course.lasted))}"
    if course.ended:
        what = f"{course.ended}; before that {what}"
    good = not course.ended or (course.short and made)
    return "true" if good else "false", what + _quoted(bench.said)


def _repeats(bench: _Bench) -> Found:
    count = bench.few
    with bench.simulator() as simulator:
        gap, words = bench.gap(bench.course.rows[:count], bench.walk(simulator, count))
    what = f"another instance, {_count(count, 'step')}: {words}"
    if gap > _ROUNDING and bench.used.only_once:
        return "not declared", f"{what}; it declares one instance per process"
    return "true" if gap <= _ROUNDING else "false", what


def _instances(bench: _Bench) -> Found:
    if bench.used.only_once:
        return "not declared", "it declares one instance per process"
    count = bench.few
    with bench.simulator() as one, bench.simulator() as other:
        rows = []
        for n in range(count):
            rows.append(bench.walk(one, 1, n))
            bench.walk(other, 1, n, u=lambda n: bench.u(n, 2.0))
    gap, words = bench.gap(bench.course.rows[:count], np.concatenate(rows))
    return "true" if gap <= _ROUNDING else "false", f"two at once, {_count(count, 'step')} each: {words}"


def _no_rewind(bench: _Bench) -> Found | None:
    """Return what is to be said where there is nothing to rewind."""
    if not bench.used.can_save:
        return "not declared", "it does not declare that its state can be saved"
    if not bench.rewinds:
        return "untried", "it does not rewind"
    lacking = bench.lacking(*_STATE[bench.major])
    return ("false", f"it says that its state can be saved, {_without(lacking)}") if lacking else None


def _saved(bench: _Bench, simulator: Any) -> Any:
    bench.note("saving its state")
    return simulator.save()


def _restored(bench: _Bench, simulator: Any, state: Any) -> None:
    """Go back; raises SimulatorError where hocket itself finds that the next step is not the same."""
    bench.note("restoring its state")
    simulator.restore(state)


def _rewind(bench: _Bench) -> Found:
    refused = _no_rewind(bench)
    if refused:
        return refused
    third, restores = bench.few // 3, 0
    worst = (0.0, "")

    def again(why: str, state: Any, first: int, wanted: Array) -> None:
        nonlocal worst, restores
        _restored(bench, simulator, state)
        gap, words = bench.gap(wanted, bench.walk(simulator, len(wanted), first))
        restores += 1
        if gap > worst[0]:
            worst = gap, f"{why}, {words}"

    with bench.simulator() as simulator:
        start = _saved(bench, simulator)
        first = bench.walk(simulator, max(third, 1))
        if third:
            state = _saved(bench, simulator)
            then = bench.walk(simulator, third, third)
            later = _saved(bench, simulator)
            again("after a restore", state, third, then)
            bench.walk(simulator, third, 2 * third, u=lambda n: bench.u(n, 2.0))
            again("after a second restore of the same state", state, third, then)
            del later
            later = _saved(bench, simulator)  # into the memory of the one before
            more = bench.walk(simulator, third, 2 * third)
            again("after a restore of a state whose memory was used before", later, 2 * third, more)
        again("after a restore of the state saved at the start", start, 0, first)
        again("after a second restore of the state saved at the start", start, 0, first)
    if worst[0] > _ROUNDING:
        return "false", worst[1]
    words = f"the same up to {worst[0]:.2g}" if worst[0] else "the same to the bit"
    made = f"{_count(restores, 'restore')}, {_count(len(first), 'step')} made again after each"
    return "true", f"{made}: {words}"


def _memory(bench: _Bench) -> Found:
    refused = _no_rewind(bench)
    if refused:
        return refused if refused[0] == "untried" else ("not declared", "nothing to save")
    if _resident() is None:
        return "untried", "this system does not tell how much memory is used"
    with bench.simulator() as simulator:
        u, begun, before, cycles = bench.u(0), time.monotonic(), 0, 0
        for cycles in range(1, 1001):
            state = _saved(bench, simulator)
            bench.step(simulator, bench.t0, bench.h, u)
            _restored(bench, simulator, state)
            if cycles == 100:  # what is kept for good has been allocated
                before = _resident() or 0
            if time.monotonic() - begun > bench.limit / 4:
                break
        grown = (_resident() or 0) - before
    if cycles <= 100:
        return "untried", f"only {_count(cycles, 'cycle')} of saving, a step and restoring could be made"
    what = f"resident memory grew by {max(grown, 0) / 1024:,.0f} kB"
    leaks = grown > 256 * (cycles - 100)
    return "false" if leaks else "true", f"{cycles:,} times saved, stepped and restored: {what}"


def _variable_step(bench: _Bench) -> Found:
    if bench.model.exchange:
        return "not declared", "hocket integrates it"
    if not bench.used.variable_step:
        return "not declared", f"only steps of {bench.h:.6g} s were made"
    count = min(bench.few, 10)

    def still(_: int) -> Array:
        return bench.u(1)

    with bench.simulator() as simulator:
        whole = bench.walk(simulator, count, u=still)
    with bench.simulator() as simulator:
        halves = bench.walk(simulator, count, parts=2, u=still)
    with bench.simulator() as simulator:
        for begin, part in ((0.0, 0.3), (0.3, 0.7)):
            bench.step(simulator, bench.time(begin), part * bench.h, still(0))
    gap, _ = bench.gap(whole, halves[1::2])
    if gap > _ROUNDING and bench.gap(whole, halves[:count])[0] <= _ROUNDING:
        return "false", f"a step of {bench.h / 2:.6g} s moves it as far as one of {bench.h:.6g} s"
    apart, span = np.abs(whole - halves[1::2]), np.ptp(whole, axis=0)
    share = np.max(np.divide(apart, span, out=np.zeros_like(apart), where=span > 0), initial=0.0)
    what = f"steps of {bench.h:.6g} s and of half that differ by {np.max(apart, initial=0.0):.2g}"
    return "true", f"{what}, {share:.2g} of what the outputs move" if share else what


@dataclass
class _Reactions:
    """Which outputs (rows) moved with which inputs (columns): in initialisation mode, and between steps."""

    first: Moved
    between: Moved
    tried: int
    failed: str = ""
    trace: str = ""
    """What is different later on, because inputs were tried between steps."""


def _reactions(bench: _Bench) -> _Reactions:
    """Try each input, the others unchanged, without a step."""
    model = _remade(_Eager, bench.model)
    shape = len(bench.names), len(bench.base)
    found = _Reactions(np.zeros(shape, bool), np.zeros(shape, bool), min(shape[1], 200))

    def tried(simulator: Any, t: float, u: Array, moved: Moved) -> None:
        bench.note(f"setting inputs and getting outputs at {t:.6g} s")
        before = np.array(simulator.output(t, u))
        begun = time.monotonic()
        for column in range(found.tried):
            for value in (bench.other[column], 0.7 * bench.base[column] + 0.3 * bench.other[column]):
                if bench.real[column] or value == bench.other[column]:
                    other = u.copy()
                    other[0, column] = value if value != u[0, column] else bench.base[column]
                    moved[:, column] |= np.array(simulator.output(t, other)) != before
            if time.monotonic() - begun > bench.limit / 4:
                found.tried = column + 1
                break
        simulator.output(t, u)

    middle = max(1, bench.few // 2)
    with bench.simulator(model) as simulator:
        if bench.major > 1:
            tried(simulator, bench.t0, bench.u(0), found.first)
        if not bench.model.reevaluate:
            return found
        bench.walk(simulator, middle)
        try:
            tried(simulator, bench.time(middle), bench.u(middle - 1), found.between)
        except SimulatorError as error:
            found.failed = _what(error)
            return found
        wanted = bench.course.rows[middle : bench.few]
        gap, words = bench.gap(wanted, bench.walk(simulator, len(wanted), middle))
        found.trace = words if gap > _ROUNDING else ""
    return found


def _feedthrough(bench: _Bench) -> Found:
    inputs, outputs = bench.model.inputs, bench.model.outputs
    if not inputs or not outputs:
        return "not declared", f"it has no {'inputs' if outputs else 'outputs'}"
    seen = bench.reactions
    description = bench.model.description
    lies, idle, declared, told = [], [], 0, False
    for row, output in enumerate(outputs):
        variable = _variable(bench.model, output)
        told = told or description.dependencies.get(variable.name) is not None
        # while it is initialised an output may depend on more
        at_first = description.initial_unknowns.get(variable.name, ())
        for column, port in enumerate(inputs[: seen.tried]):
            allowed = port.name in output.feedthrough
            freely = at_first is None or _variable(bench.model, port).name in at_first
            pair = f"`{output.name}` to `{port.name}`"
            declared += allowed
            if not allowed and (seen.between[row, column] or (seen.first[row, column] and not freely)):
                lies.append(pair)
            elif allowed and not (seen.between[row, column] or seen.first[row, column]):
                idle.append(pair)
    part = "" if seen.tried == len(inputs) else f"; only {seen.tried} of {len(inputs):,} inputs were tried"
    if lies:
        return "false", f"it reacts at once, which it does not declare: {_listed(lies, '')}{part}"
    reacted = declared - len(idle)
    if not told:
        what = "it declares no dependencies: every output is taken to react to every input"
        return "not declared", f"{what}; {reacted} of {_count(declared, 'reaction')} seen{part}"
    if not declared:
        return "true", f"it declares that no output reacts to an input at once, and none does{part}"
    what = f"{_count(reacted, 'reaction')} seen of {declared} declared, none besides"
    return "true", f"{what}; never seen: {_listed(idle, '')}{part}" if idle else f"{what}{part}"


def _reevaluate(bench: _Bench) -> Found:
    model, advice = bench.model, "use `Fmu(..., reevaluate=False)`"
    relied = any(port.feedthrough for port in model.outputs)
    if not model.inputs or not model.outputs:
        return "not declared", f"it has no {'inputs' if model.outputs else 'outputs'}"
    if not model.reevaluate:
        return "not declared", "switched off by `reevaluate=False`"
    seen = bench.reactions
    if seen.failed or seen.trace:
        what = f"inputs tried between steps leave a trace: {seen.trace}"
        if seen.failed:
            what = f"setting inputs and getting outputs between steps is an error: {seen.failed}"
        return ("false", f"{what}; {advice}") if relied else ("not declared", what)
    if np.any(seen.between):
        return "true", "outputs follow inputs between steps, and later steps are not disturbed"
    if np.any(seen.first):
        return "not declared", f"outputs do not follow inputs between steps, which FMI leaves open: {advice}"
    lost = f": {advice}, nothing is lost" if relied else ""
    return "not declared", f"no output reacts to an input at once{lost}"


def _input_slopes(bench: _Bench) -> Found:
    if bench.model.exchange:
        return "not declared", "hocket integrates it"
    if not (bench.used.interpolates_inputs or bench.used.intermediate_update):
        return "not declared", "inputs are held during a step"
    lacking = bench.lacking(*_INPUT_SLOPES.get(bench.major, ()))
    if lacking:
        return "false", f"it says that it interpolates its inputs, {_without(lacking)}"
    if not np.any(bench.real):
        return "untried", "it has no real inputs"
    if bench.model.abilities.input_degree == 0:
        return "untried", "some of its real inputs may not move during a step"
    count = min(bench.few, 10)
    span = count * bench.h
    slope = np.where(bench.real, bench.other - bench.base, 0.0) / span
    line, bow = np.array([bench.base, slope]), np.array([bench.base, 0.0 * slope, slope / span])

    def ends(rows: int, curve: Array, parts: int = 1, at: float = 0.0) -> Array:
        """Return outputs after each step; inputs in so many rows, expanded about a point of each part."""
        seen = []
        with bench.simulator() as simulator:
            for n in range(count * parts):
                begin, h = n * bench.h / parts, bench.h / parts
                u = np.array(shifted(list(curve), begin + at * h))[:rows]
                seen.append(bench.step(simulator, bench.t0 + begin, h, u))
        return np.array(seen)[parts - 1 :: parts]

    held, linear = ends(1, line), ends(2, line)
    if np.array_equal(held, linear):
        if np.array_equal(held, ends(1, np.array([bench.base]))):
            return "untried", f"no output depends on the inputs within {_count(count, 'step')}"
        return "false", "inputs that move are taken as held: no output changes"
    what, good = f"{_count(count, 'step')}: a linear input has an effect", True
    parts = min(20, bench.affordable(1 / 4) // count)
    if bench.used.variable_step and parts >= 4:
        fine = ends(1, line, parts, 0.5)
        coarse, better = (float(np.max(np.abs(rows - fine))) for rows in (held, linear))
        good = better < coarse
        what = f"against steps of h/{parts} a linear input errs by {better:.2g}, a held one by {coarse:.2g}"
    try:
        bends = not np.array_equal(ends(2, bow), ends(3, bow))
        what += "; parabolas are honoured" if bends else "; parabolas are taken as lines"
    except SimulatorError as error:
        what += f"; a parabola is an error: {_what(error)}"
    return "true" if good else "false", what


def _output_slopes(bench: _Bench) -> Found:
    if bench.model.exchange or bench.used.output_derivatives < 1:
        return "not declared", "hocket integrates it" if bench.model.exchange else "it does not tell slopes"
    lacking = bench.lacking(_OUTPUT_SLOPES[bench.major])
    if lacking:
        return "false", f"it says that it tells the slopes of outputs, {_without(lacking)}"
    if not bench.model.abilities.slopes:
        return "untried", "not all outputs are reals"
    count = max(0, min(bench.few, 10) - 3)
    e = 1e-4 * bench.h if bench.used.variable_step else bench.h
    with bench.simulator() as simulator:
        bench.walk(simulator, count)
        t, u = bench.time(count), bench.u(count)
        y = [bench.step(simulator, t + k * e, e, u) for k in range(3)]
        bench.note(f"getting slopes at {t + 3 * e:.6g} s")
        slope = np.array(simulator.slope(t + 3 * e, u), dtype=float)
    estimate = (3.0 * y[2] - 4.0 * y[1] + y[0]) / (2.0 * e)
    bend = np.abs(y[2] - 2.0 * y[1] + y[0]) / e
    noise = 1e-6 * np.max(np.abs(y)) / bench.h + 1e-12
    wrong = ~(np.abs(slope - estimate) <= 1e-3 * (np.abs(slope) + np.abs(estimate)) + 2.0 * bend + noise)
    worst = int(np.argmax(wrong if np.any(wrong) else np.abs(slope - estimate)))
    what = f"the slope of `{bench.names[worst]}` is {slope[worst]:.6g}"
    return "false" if np.any(wrong) else "true", f"{what}, differences show {estimate[worst]:.6g}"


def _directional(bench: _Bench) -> Found:
    if not bench.used.directional:
        return "not declared", "it does not give them"
    if not bench.model.exchange:
        return "untried", 'hocket asks for them in model exchange only: interface="model-exchange"'
    lacking = bench.lacking(_DIRECTIONAL[bench.major])
    if lacking:
        return "false", f"it says that it gives them, {_without(lacking)}"
    whole = []
    for kind in (Fmu, _Plain):
        with bench.simulator(_remade(kind, bench.model, method="heun")) as simulator:
            if not hasattr(simulator, "jacobian"):
                return "untried", "this version of hocket does not ask for them"
            t = bench.time(bench.walk(simulator, min(bench.few, 3)).shape[0])
            bench.note(f"getting directional derivatives at {t:.6g} s")
            a, b, c, d = simulator.jacobian(t, bench.u(2))
            whole.append(np.block([[a, b], [c, d]]))
    told, seen = whole
    if not told.size:
        return "untried", "there is nothing to differentiate"
    apart = _apartness(told, seen)
    row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
    if apart[row, column] <= 1e-5:
        return (
            "true",
            f"{told.shape[0]} x {told.shape[1]}; differences show the same up to {np.max(apart):.2g}",
        )
    what = f"entry ({row + 1}, {column + 1}) is {told[row, column]:.6g}"
    return "false", f"{what}, differences show {seen[row, column]:.6g}"


def _early_return(bench: _Bench) -> Found:
    if bench.model.exchange:
        return "not declared", "hocket integrates it"
    declared, course = bench.used.early_return, bench.course
    if not declared and not course.short:
        return "not declared", f"no step of {len(course.rows)} ended early"
    if _no_rewind(bench):
        seen = course.ended if course.short else "it may end steps early"
        return "untried" if declared else "not declared", f"{seen}; it cannot go back to meet that time"
    count = max(bench.few, len(course.rows) + 1 if course.short else 0)
    shorts: list[str] = []
    with bench.simulator(early=declared) as simulator:
        for n in range(count):
            _met(bench, simulator, bench.time(n), bench.time(n + 1), bench.u(n), shorts)
            if len(shorts) > 200:
                return "false", f"steps end early again and again: {shorts[-1]}"
    if not shorts:
        return "untried", f"none of {_count(count, 'step')} ended early"
    seen = f"{_count(len(shorts), 'time')} in {_count(count, 'step')}, always met by a shorter one"
    return "true" if declared else "not declared", f"{seen}; first {shorts[0]}"


def _met(bench: _Bench, simulator: Any, t: float, end: float, u: Array, shorts: list[str]) -> None:
    """Go to the end of a step; where one ends early, go back and meet it there."""
    aim = end
    while end - t > 1e-9 * bench.h and len(shorts) <= 200:
        state = _saved(bench, simulator)
        try:
            bench.step(simulator, t, aim - t, u)
        except _Short as short:
            shorts.append(_what(short))
            if not t - 1e-9 <= short.reached <= aim:
                raise SimulatorError(f"{_what(short)}, which is outside") from None
            _restored(bench, simulator, state)
            aim = short.reached if short.reached > t + 1e-9 * bench.h else t + (aim - t) / 2
        else:
            t, aim = aim, end


def _texts(bench: _Bench) -> Found:
    inputs, outputs = bench.model.texts
    if not inputs and not outputs:
        return "not declared", _ABSENT
    known, put = bench.model.description.by_name, 0
    with bench.simulator() as simulator:
        for number, name in enumerate(inputs):
            start = known[name].start if name in known else None
            if isinstance(start, str | bytes):
                bench.note(f"setting `{name}`")
                simulator.set_text(number, start.encode() if isinstance(start, str) else start)
                put += 1
        bench.walk(simulator, 1)
        bench.note("getting strings")
        got = [simulator.text(number) for number in range(len(outputs))]
    shown = f"; `{outputs[0]}` is {got[0][:40].decode(errors='replace')!r}" if got else ""
    return "true", f"{len(got)} of {len(outputs)} outputs read, {put} of {len(inputs)} inputs set{shown}"


def _arrays(bench: _Bench) -> Found:
    ports = (*bench.model.inputs, *bench.model.outputs)
    arrays = {v.name for v in (_variable(bench.model, port) for port in ports) if v.dimensions}
    if not arrays:
        return "not declared", _ABSENT
    count = sum(_variable(bench.model, port).name in arrays for port in ports)
    with bench.simulator() as simulator:
        bench.walk(simulator, 1)
    return "true", f"{_count(len(arrays), 'array')} with {_count(count, 'element')} set or read"


CHECKS: dict[str, Callable[[_Bench], Found]] = {
    "loads": _loads,
    "steps": _steps,
    "repeats": _repeats,
    "instances": _instances,
    "rewind": _rewind,
    "memory": _memory,
    "variable step": _variable_step,
    "feedthrough": _feedthrough,
    "reevaluate": _reevaluate,
    "input derivatives": _input_slopes,
    "output derivatives": _output_slopes,
    "directional derivatives": _directional,
    "early return": _early_return,
    "texts": _texts,
    "arrays": _arrays,
}
"""What is looked at, in this order."""


# words


def _count(number: int, thing: str, things: str = "") -> str:
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def _listed(names: Sequence[str], quote: str = "`") -> str:
    shown = ", ".join(f"{quote}{name}{quote}" for name in names[:4])
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _without(functions: Sequence[str]) -> str:
    return f"but its binary lacks {_listed(functions)}"


def _quoted(said: list[str]) -> str:
    if not said:
        return ""
    return f"; it said {_count(len(said), 'message')}, the first {said[0][:200]!r}"


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def _resident() -> int | None:
    """Return how many bytes of memory this process has."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


# the functions of FMI

_STATE = {
    1: (),
    2: ("fmi2GetFMUstate", "fmi2SetFMUstate", "fmi2FreeFMUstate"),
    3: ("fmi3GetFMUState", "fmi3SetFMUState", "fmi3FreeFMUState"),
}
_INPUT_SLOPES = {1: ("fmiSetRealInputDerivatives",), 2: ("fmi2SetRealInputDerivatives",)}
_OUTPUT_SLOPES = {
    1: "fmiGetRealOutputDerivatives",
    2: "fmi2GetRealOutputDerivatives",
    3: "fmi3GetOutputDerivatives",
}
_DIRECTIONAL = {1: "", 2: "fmi2GetDirectionalDerivative", 3: "fmi3GetDirectionalDerivative"}
_TYPES = {
    2: "Real Integer Boolean String",
    3: "Float32 Float64 Int8 UInt8 Int16 UInt16 Int32 UInt32 Int64 UInt64 Boolean String Binary Clock",
}
_INITIAL = "FreeInstance Terminate Reset EnterInitializationMode ExitInitializationMode"
_STATUS = "GetStatus GetRealStatus GetIntegerStatus GetBooleanStatus GetStringStatus"
_SLOPES = "SetRealInputDerivatives GetRealOutputDerivatives"
_SOLVING = (
    "SetTime SetContinuousStates GetContinuousStates GetEventIndicators GetNominalsOfContinuousStates "
    "EnterContinuousTimeMode CompletedIntegratorStep"
)
_ALWAYS = {
    1: "GetVersion SetDebugLogging GetTypesPlatform",
    2: f"GetVersion SetDebugLogging GetTypesPlatform Instantiate SetupExperiment {_INITIAL} "
    "GetFMUstate SetFMUstate FreeFMUstate SerializedFMUstateSize SerializeFMUstate DeSerializeFMUstate "
    "GetDirectionalDerivative",
    3: f"GetVersion SetDebugLogging {_INITIAL} EnterEventMode EvaluateDiscreteStates UpdateDiscreteStates "
    "GetFMUState SetFMUState FreeFMUState SerializedFMUStateSize SerializeFMUState DeserializeFMUState "
    "GetDirectionalDerivative GetAdjointDerivative EnterConfigurationMode ExitConfigurationMode "
    "GetNumberOfVariableDependencies GetVariableDependencies GetIntervalDecimal GetIntervalFraction "
    "SetIntervalDecimal SetIntervalFraction GetShiftDecimal GetShiftFraction SetShiftDecimal "
    "SetShiftFraction",
}
_STEPPING = {
    1: f"InstantiateSlave InitializeSlave TerminateSlave ResetSlave FreeSlaveInstance DoStep CancelStep "
    f"{_SLOPES} {_STATUS}",
    2: f"DoStep CancelStep {_SLOPES} {_STATUS}",
    3: "InstantiateCoSimulation EnterStepMode DoStep GetOutputDerivatives",
}
_EXCHANGE = {
    2: f"EnterEventMode NewDiscreteStates GetDerivatives {_SOLVING}",
    3: f"InstantiateModelExchange GetContinuousStateDerivatives GetNumberOfEventIndicators "
    f"GetNumberOfContinuousStates {_SOLVING}",
}


def _functions(major: int, exchange: bool) -> list[str]:
    """Return the functions that FMI wants in a binary."""
    access = [f"{verb}{kind}" for verb in ("Get", "Set") for kind in _TYPES[max(major, 2)].split()]
    own = (_EXCHANGE if exchange else _STEPPING)[major]
    prefix = "fmi" if major == 1 else f"fmi{major}"
    return [prefix + name for name in (*_ALWAYS[major].split(), *own.split(), *access)]
