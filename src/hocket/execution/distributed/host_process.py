"""A host as a process of this machine: begun with a task, watched by its words, ended whatever happens.

In:  a task: plain data, one line of JSON on its standard input, which stays open as long as it is wanted
Out: lines of JSON on its standard output: how far it is, how it ended

A process whose standard input ends knows that nobody wants it any more: it stops, and is gone a moment later.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import hocket._native as _native
from hocket import errors
from hocket.engine.host_exchange import Transport
from hocket.errors import Fault, HocketError, HostError, InternalError
from hocket.execution.distributed.helics_transport import HelicsTransport
from hocket.execution.distributed.one_host import host_names, run_host, whole_job
from hocket.execution.distributed.processes import (
    GRACE,
    end_process,
    live_while_wanted,
    start_process,
    watch_standard_input,
)
from hocket.execution.distributed.shared_memory import SharedMemory
from hocket.files.formats import read
from hocket.files.run_facts import read_facts
from hocket.simulators.fmu.isolated import describe_signal

_LONGEST = 1 << 24
"""Bytes of a line that a host may say."""


class HostProcess:
    """One host, seen from who has begun it."""

    def __init__(self, host: str, task: Mapping[str, Any], folder: Path):
        self.host, self.folder = host, folder
        self.time = self.exchange = 0.0
        self.ended: Exception | str | None = None
        """How its run went: an error, or its status; None: it has not said so yet."""
        self._words = b""
        self.process = start_process(__name__, "serve")
        self._tell(task)

    def _tell(self, task: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # it is gone: that is found where its words are read
            self.process.stdin.write(json.dumps(dict(task)).encode() + b"\n")
            self.process.stdin.flush()

    def listen(self) -> None:
        """Take in what it has said since the last time, and whether it is gone."""
        if self.ended is not None:
            return
        assert self.process.stdout is not None
        gone = self.process.poll() is not None
        while select.select([self.process.stdout], [], [], 0)[0]:
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more or len(self._words) > _LONGEST:
                break
            self._words += more
            *lines, self._words = self._words.split(b"\n")
            for line in lines:
                self._take(line)
        if gone and self.ended is None:
            self.ended = self._describe_end(self.process.returncode)

    def _take(self, line: bytes) -> None:
        try:
            said = json.loads(line)
            match said["kind"]:
                case "progress":
                    self.time, self.exchange = float(said["time"]), float(said["exchange"])
                case "warning":
                    warnings.warn(f"`{self.host}`: {said['text']}", RuntimeWarning, stacklevel=2)
                case "done":
                    self.ended = str(said["status"])
                case "error":
                    self.ended = decode_error(said)
        except (ValueError, KeyError, TypeError):
            self.ended = self._error("said what is not well formed")

    def _describe_end(self, code: int) -> HostError:
        facts: Mapping[str, Any] = {}
        with suppress(HocketError):
            facts = read_facts(self.folder) or {}
        words = str(facts.get("error") or "")
        how = describe_signal(-code) if code < 0 else f"exit code {code}"
        return self._error(f"its process ended ({words or how})")

    def _error(self, what: str) -> HostError:
        where = f"host `{self.host}`, exchange {self.exchange:.0f}, t = {self.time!r} s"
        hint = "its rows so far are kept; look at what it has said, and run it again"
        error = HostError(f"`{self.host}` is gone: {what}", where, "", hint)
        error.host = self.host
        return error

    def ask_to_stop(self) -> None:
        """Have it stop after its step."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def close(self, grace: float = GRACE) -> None:
        """End the process: at once if it does not go by itself."""
        end_process(self.process, grace)


def encode_error(error: BaseException) -> dict[str, Any]:
    """Return an error as plain data."""
    faults = error.faults if isinstance(error, HocketError) else ()
    told = {key: getattr(error, key, "") for key in ("host", "status")}
    parts = [[fault.what, fault.where, fault.expected, fault.hint] for fault in faults]
    return {"kind": "error", "name": type(error).__name__, "text": str(error), "faults": parts, **told}


def decode_error(said: Mapping[str, Any]) -> HocketError:
    """Return the error that plain data tell of."""
    known = getattr(errors, str(said["name"]), None)
    if not (isinstance(known, type) and issubclass(known, HocketError) and said["faults"]):
        return InternalError(f"{said['name']}: {said['text']}")
    error = known([Fault(*map(str, parts)) for parts in said["faults"]])
    if isinstance(error, HostError):
        error.host, error.status = str(said["host"]), str(said["status"])
    return error


# the process


def serve() -> None:
    """Run one host: the task is the first line of standard input."""
    stopping = live_while_wanted()
    _native.guard_process(quiet=True)
    task = json.loads(sys.stdin.buffer.readline() or b"null")
    if task is None:
        return
    told = threading.Lock()

    def tell(kind: str, **facts: Any) -> None:
        with told, suppress(OSError):
            os.write(1, json.dumps({"kind": kind, **facts}).encode() + b"\n")

    watch_standard_input(stopping)
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        try:
            status = run_task(task, stopping, lambda t, n: tell("progress", time=t, exchange=n))
            ended: dict[str, Any] = {"kind": "done", "status": status}
        except Exception as error:
            ended = encode_error(error)
    for warning in noticed:
        if issubclass(warning.category, RuntimeWarning):
            tell("warning", text=str(warning.message))
    tell(**ended)
    sys.stderr.flush()
    os._exit(0)  # threads of transports may hang, and nothing is left to do


def run_task(
    task: Mapping[str, Any], stopping: threading.Event, progress: Callable[[float, int], None]
) -> str:
    """Do what a task says; return the status of the run."""
    job = whole_job(read(Path(task["scenario"])), task["record"], bool(task["ledger"]))
    host = str(task["host"])
    link = make_transport(task["transport"], host_names(job.design), host)

    done = run_host(
        job,
        host,
        link,
        Path(task["folder"]),
        patience=float(task["patience"]),
        progress=progress,
        interrupted=stopping,
    )
    return str(done.info["status"])


def make_transport(told: Mapping[str, Any], hosts: list[str], host: str) -> Transport:
    """Return the transport that a task asks for."""
    if told["kind"] == "helics":
        return HelicsTransport(str(told["broker"]), str(told["federation"]), hosts, host)
    return SharedMemory(Path(told["folder"]), hosts, host)
