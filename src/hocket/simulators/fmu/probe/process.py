"""The process in which checks are made: started, watched, and replaced when an FMU has ended it.

In:  an Fmu, the names of checks
Out: findings, also of what ended a process

The two sides share a folder: `job` goes in; `found` has a finding per line, `note` what is being done,
`said` what was printed.
"""

from __future__ import annotations

import importlib
import json
import logging
import math
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
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from hocket.errors import HocketError, InternalError, SimulatorError
from hocket.model.clock import format_duration
from hocket.model.code_loading import permit_code
from hocket.simulators.fmu.findings import PROBED, keep_findings, read_findings
from hocket.simulators.fmu.first_contact import SWITCH, forget_freeze
from hocket.simulators.fmu.isolated import describe_signal
from hocket.simulators.fmu.log_messages import LOGGER
from hocket.simulators.fmu.probe import execution_checks, response_checks
from hocket.simulators.fmu.probe.driver import Finding, Found, Probe, ProbeBench, Verdict
from hocket.simulators.fmu.recipe import Fmu, remake_fmu

CHECKS: dict[str, Callable[[ProbeBench], Found]] = {
    "loads": execution_checks.check_loading,
    "steps": execution_checks.check_stepping,
    "repeats": execution_checks.check_repeatability,
    "instances": execution_checks.check_instances,
    "rollback": execution_checks.check_rollback,
    "memory": execution_checks.check_memory,
    "variable step": execution_checks.check_variable_step,
    "feedthrough": response_checks.check_feedthrough,
    "reevaluate": response_checks.check_reevaluation,
    "input derivatives": response_checks.check_input_derivatives,
    "output derivatives": response_checks.check_output_derivatives,
    "directional derivatives": response_checks.check_directional,
    "early return": execution_checks.check_early_return,
    "texts": execution_checks.check_texts,
    "arrays": execution_checks.check_arrays,
    "stop time": execution_checks.check_stop_time,
}
"""What is looked at, in this order."""
_CO_SIMULATION = ("variable step", "input derivatives", "output derivatives", "early return")
"""What only co-simulation declares."""
_INTEGRATED: Found = "not declared", "hocket integrates it"


def probe(model: Fmu, *, here: bool = False) -> Probe:
    """Put an FMU to the test; with `here` in this process, which it may take down.

    What is found untrue is kept by the hash of the FMU: it is then not used for that in any run. Each check
    may take the `time_limit` of the model. Raises ScenarioError if it has no binary for this platform.
    """
    _ = model.binary
    permit_code(model.file.name, str(model.file), announced=False)
    plain, names = remake_fmu(model, isolate=False), tuple(CHECKS)
    found = tuple(_run_checks(ProbeBench(plain), names) if here else _probe_in_process(plain, names))
    kept = {finding.name: finding.what for finding in found if finding.verdict == "false"}
    keep_findings(model, PROBED, {**read_findings(model, PROBED), model.interface_kind: kept})
    if "rollback" not in kept and any(each.name == "rollback" and each.verdict == "true" for each in found):
        forget_freeze(model)
    return Probe(str(model.file), found)


def _run_checks(bench: ProbeBench, names: Sequence[str]) -> Iterator[Finding]:
    dead = ""
    for name in names:
        if dead:
            yield Finding(name, "untried", dead)
            continue
        bench.said.clear()
        try:
            with _capture_messages(bench.said):
                integrated = bench.model.exchange and name in _CO_SIMULATION
                verdict, what = _INTEGRATED if integrated else CHECKS[name](bench)
        except HocketError as error:
            fault = error.faults[0]
            verdict, what = "false", fault.what
            if name == "loads" and fault.hint:
                what += f"; {fault.hint}"
        yield Finding(name, verdict, what)
        if name == "loads" and verdict == "false":
            dead = "it does not start"
        elif name == "steps" and not len(bench.course.rows):
            dead = "it makes no step"
        elif name == "rollback" and verdict == "false":
            bench.rollbacks = False


@contextmanager
def _capture_messages(said: list[str]) -> Iterator[None]:
    """Keep what FMUs say, instead of passing it on."""

    class MessageHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"{record.levelname.lower()}: {record.getMessage().partition(': ')[2]}")

    ear, level, passes = MessageHandler(), LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(ear)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(ear)
        LOGGER.setLevel(level)
        LOGGER.propagate = passes


_NOTE = 200
"""Bytes of a note."""
_OPENING = 60.0
"""Seconds that the other process may take to come up."""


def _probe_in_process(model: Fmu, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the findings of other processes: after a crash the next one goes on with the next check."""
    left, late = names, 0
    failed: set[str] = set()
    alone = remake_fmu(model, isolate=True)
    while left:
        found, end, timed_out = _run_process(model, left, failed)
        yield from found
        failed |= {finding.name for finding in found if finding.verdict == "false"}
        left = left[len(found) :]
        if not left:
            return
        name, *rest = left
        left, late = tuple(rest), late + timed_out
        if name not in _SEVERAL and not timed_out:
            # what goes well with a process for each instance is not to blame for the crash
            again, _, _ = _run_process(alone, (name,), failed)
            if again and again[0].verdict in ("true", "not declared"):
                yield Finding(name, again[0].verdict, f"{again[0].what}; {_ALONE}")
                yield from _probe_alone(model, alone, left, failed)
                return
        failed.add(name)
        yield Finding(name, "false", end)
        if name in ("loads", "steps") or late > 1:
            yield from (Finding(other, "untried", f"`{name}` ended the process") for other in left)
            return


_SEVERAL = ("loads", "repeats", "instances")
"""The checks of one instance after another, or beside it, in one process; and of the first."""
_ALONE = "each instance had a process of its own: a second one ends it"


def _probe_alone(model: Fmu, alone: Fmu, names: tuple[str, ...], failed: set[str]) -> Iterator[Finding]:
    """Yield findings of an FMU that does not bear a second instance in its process."""
    found: dict[str, Finding] = {}
    others = tuple(name for name in names if name not in _SEVERAL)
    parts = ((name,) for name in names if name in _SEVERAL)
    for kind, part in ((alone, others), *((model, part) for part in parts)):
        made, end, _ = _run_process(kind, part, failed) if part else ([], "", False)
        rest = part[len(made) :]
        made += [Finding(name, "false", end) for name in rest[:1]]
        made += [Finding(name, "untried", f"`{rest[0]}` ended the process") for name in rest[1:]]
        found |= {finding.name: finding for finding in made}
    yield from (found[name] for name in names)


def _run_process(model: Fmu, names: tuple[str, ...], failed: set[str]) -> tuple[list[Finding], str, bool]:
    """Return what a process found, and if that is not all, how it ended and whether that was by time."""
    with tempfile.TemporaryDirectory(prefix="hocket-probe-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        job, found, note, said = (place / name for name in ("job", "found", "note", "said"))
        job.write_bytes(pickle.dumps((model, names, failed)))
        note.write_bytes(bytes(_NOTE))
        found.touch()
        process = _start_process(place)
        try:
            late = _watch_process(process, found, len(names), float(model.time_limit))
        finally:
            _kill_process(process)
        if not _read_plain(found):
            words = "; ".join(_lines(said))
            raise InternalError("the process of the probe did not come up", "", "", words)
        findings = [_read_finding(line) for line in _lines(found)[: len(names)]]
        last = [line for line in _lines(said) if not line.startswith(("Fatal Python", "  File", "hocket: "))]
        doing = _read_plain(note)[:_NOTE].rstrip(b"\0").decode(errors="replace")
        end = _describe_end(process.returncode, late, doing, last, model)
        return findings, end, late


def _read_finding(line: str) -> Finding:
    """Return a finding as the other process wrote it, or what ran in it: its shape is checked."""
    try:
        told = json.loads(line)
        if isinstance(told, dict) and isinstance(told.get("internal"), str):
            raise InternalError(f"a check failed: {told['internal']}")
        if told["verdict"] in get_args(Verdict) and isinstance(told["what"], str) and told["name"] in CHECKS:
            return Finding(told["name"], told["verdict"], told["what"])
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    what = "the process of the probe sent what is not well formed"
    raise SimulatorError(what, "", "", "its FMU is broken, or hostile: it wrote where hocket writes")


def _start_process(place: Path) -> subprocess.Popen[bytes]:
    path = [entry for entry in sys.path if isinstance(entry, str)]
    code = f"import sys; sys.path[:] = {path!r}; from {__name__} import serve; serve({str(place)!r})"
    # -P: a file `numpy.py` beside the script of the user is not ours to run
    command = [sys.executable, "-P", "-c", code]
    with open(place / "said", "wb") as said:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, process_group=0)


def _watch_process(process: subprocess.Popen[bytes], found: Path, wanted: int, limit: float) -> bool:
    """Wait for a process; return True if a check took too long."""
    seen, deadline = 0, time.monotonic() + _OPENING + limit
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            return False
        size = len(_read_plain(found))
        if size != seen:
            seen, deadline = size, time.monotonic() + limit
            if len(_lines(found)) == wanted:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
                return False
        elif time.monotonic() > deadline:
            return True


def _kill_process(process: subprocess.Popen[bytes]) -> None:
    """End a process, and what it has started."""
    if process.poll() is None:
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


_MOST = 1 << 22
"""Bytes of a file of the other process that are read."""
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A link is not followed, and a pipe not waited for: what lies in the folder may be the work of an FMU."""


def _read_plain(file: Path) -> bytes:
    try:
        fd = os.open(file, os.O_RDONLY | _PLAIN)
    except OSError:
        return b""
    with open(fd, "rb") as opened, suppress(OSError):
        return opened.read(_MOST) or b""
    return b""


def _lines(file: Path) -> list[str]:
    return [line for line in _read_plain(file).decode(errors="replace").splitlines() if line.strip()]


def _describe_end(code: int, late: bool, doing: str, words: list[str], model: Fmu) -> str:
    if late or (code < 0 and -code == getattr(signal, "SIGALRM", 0)):
        what = f"it took longer than {format_duration(model.time_limit)}"
    elif code < 0:
        what = f"it crashed: {describe_signal(-code)}"
    else:
        what = f"it ended the process, with exit code {code}"
    said = f"; its last words: {words[-1].strip()[:200]}" if words and not late else ""
    return f"{what}, in {doing or 'its binary'}{said}"


def serve(folder: str) -> None:
    """Make the checks that the folder asks for, in this process, and leave the findings there."""
    place = Path(folder)
    model, names, failed = pickle.loads((place / "job").read_bytes())
    patience = math.ceil(float(model.time_limit)) + 5
    with open(place / "note", "r+b", buffering=0) as file, open(place / "found", "a") as found:

        def note(text: str) -> None:
            file.seek(0)
            file.write(text.encode()[:_NOTE].ljust(_NOTE, b"\0"))

        def tell(line: str) -> None:
            if hasattr(signal, "alarm"):  # ends this process should it not be watched any more
                signal.alarm(patience)
            found.write(line + "\n")
            found.flush()

        try:
            os.environ[SWITCH] = "0"  # this is the trial
            bench = ProbeBench(model, note)
            bench.rollbacks = "rollback" not in failed
            importlib.import_module(f"hocket.simulators.fmu.{'exchange' if model.exchange else 'live'}")
            tell("")  # from here on time is the FMU's
            for finding in _run_checks(bench, names):
                tell(json.dumps(asdict(finding)))
        except Exception:
            tell(json.dumps({"internal": traceback.format_exc()}))
