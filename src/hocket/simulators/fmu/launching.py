"""A process for an isolated FMU: started, and known by the memory that it shares with this one.

In:  an Fmu
Out: a running `serving.py`, and the door to it
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hocket import _native
from hocket.errors import SimulatorError

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

_PACKAGES = ("hocket", "hocket.simulators", "hocket.simulators.fmu")
_DERIVED = (
    "file", "unpacked", "description", "settings", "faces", "inputs", "outputs", "texts", "exchange",
    "interface_used", "binary",
)  # fmt: skip
_ROOM = 64 << 20
"""Bytes for texts and pickles; only those that are used take memory."""


def launched(model: Fmu, number: int) -> tuple[subprocess.Popen[bytes], Any]:
    """Start a process that loads the FMU, the instance of that number; nothing is waited for."""
    boot = pickle.dumps(
        {
            "path": [entry for entry in sys.path if isinstance(entry, str)],
            "packages": {name: list(sys.modules[name].__path__) for name in _PACKAGES},
            "model": pickle.dumps(_facts(model)),
            "number": number,
        }
    )
    sizes = len(model.inputs), len(model.outputs)
    fd = _memory(_native.Isolated.needed(*sizes, max(_ROOM, len(boot))))
    try:
        door = _native.Isolated(fd, *sizes, float(model.time_limit))
        door.put(boot)
        process = _started(fd, door.payload_at, len(boot), str(model.file))
    finally:
        os.close(fd)
    door.attach(process.pid)
    return process, door


def _facts(model: Fmu) -> SimpleNamespace:
    """Return what the live simulator asks of its model: the recipe itself would import far more."""
    names = (*(field.name for field in fields(model) if field.name != "values"), *_DERIVED)
    return SimpleNamespace(**{name: getattr(model, name) for name in names})


def _memory(size: int) -> int:
    """Return the file descriptor of memory to share: it has no name, and goes with the last who holds it."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("hocket")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.truncate(fd, size)
    return fd


def _started(fd: int, at: int, length: int, where: str) -> subprocess.Popen[bytes]:
    # -P: a file `numpy.py` beside the user's script is not ours to run;
    # a group of its own: Ctrl-C at the terminal is for this process only
    script = Path(__file__).with_name("serving.py")
    command = [sys.executable, "-P", str(script), *map(str, (fd, os.getpid(), at, length))]
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(fd,), process_group=0)
    except (OSError, ValueError) as error:
        what = f"a process for it cannot be started: {error}"
        raise SimulatorError(what, where, f"a Python at `{sys.executable}`") from None


def abandoned(process: subprocess.Popen[bytes], door: Any, owner: int) -> None:
    """End a process whose simulator was not closed."""
    if os.getpid() == owner:  # not in a copy that was forked off
        door.detach()
        process.kill()
        process.wait()
