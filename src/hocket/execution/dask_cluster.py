"""A Dask cluster: its client, and the runs of a sweep that its workers make.

In:  the address of a scheduler
Out: runs in folders here; a worker that dies loses nothing
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hocket.errors import HocketError, ScenarioError, SimulatorError
from hocket.execution.sweep_process import RunTask, make_run
from hocket.files.run_folder import mark_stopped
from hocket.model.code_loading import is_code_refused, no_code

WAIT = "10s"
LOOK = 0.05


class DaskCluster:
    """A client of a cluster."""

    def __init__(self, address: str):
        try:
            from dask.distributed import Client
        except ImportError:
            what, hint = "Dask is not installed", "pip install 'hocket[dask]'"
            raise ScenarioError(what, "--dask", "the package `distributed`", hint) from None
        make: Any = Client
        try:
            self.client: Any = make(address, timeout=WAIT)
        except (OSError, ValueError, TypeError) as error:
            what = f"no Dask scheduler answers at `{address}`: {error}"
            expected = "an address such as tcp://127.0.0.1:8786"
            raise ScenarioError(what, "--dask", expected, "dask scheduler, and dask worker ADDRESS") from None
        self.address = address

    @property
    def size(self) -> int:
        """How many tasks are done at a time; at least one, for workers may still come."""
        return max(1, sum(int(count) for count in self.client.nthreads().values()))

    def close(self) -> None:
        """Leave the cluster."""
        self.client.close()


class DaskHand:
    """Makes one run of a sweep at a time on a cluster; many of them share it."""

    def __init__(self, cluster: DaskCluster, packed: bytes):
        self.cluster, self.packed = cluster, packed

    def run(self, task: RunTask, update: Callable[[float], None], interrupted: threading.Event) -> None:
        """Have a worker make a run, and keep its files; raises what went wrong."""
        from dask.distributed import KilledWorker

        refused = is_code_refused()
        facts = (task.number, dict(task.parameters), refused)
        future = self.cluster.client.submit(_make_run_there, self.packed, *facts, pure=False)
        try:
            while not future.done():
                if interrupted.wait(LOOK):
                    future.cancel()
                    task.folder.mkdir(parents=True, exist_ok=True)
                    mark_stopped(task.folder)
                    return
            files, error = future.result()
        except KilledWorker:
            what = f"the workers of the cluster at `{self.cluster.address}` that made it died again and again"
            raise SimulatorError(
                what, f"run {task.number + 1:03}", "", "models that do not end a process"
            ) from None
        finally:
            future.release()
        for name, content in files.items():
            path = task.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if error is not None:
            raise error
        update(1.0)

    def close(self) -> None:
        """Nothing is held."""


def _make_run_there(
    packed: bytes, number: int, parameters: dict[str, Any], refused: bool
) -> tuple[dict[str, bytes], Exception | None]:
    """Make a run on a worker; return its files, and its error if it has one."""
    error: Exception | None = None
    with TemporaryDirectory(prefix="hocket-dask-") as name, no_code() if refused else nullcontext():
        folder = Path(name) / "run"
        try:
            experiment, options, _ = pickle.loads(packed)
            task = RunTask(number, parameters, folder)
            make_run(experiment, options, task, None, threading.Event())
        except HocketError as found:
            error = found
        except Exception as found:
            error = RuntimeError(f"{type(found).__name__}: {found}")
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    return files, error
