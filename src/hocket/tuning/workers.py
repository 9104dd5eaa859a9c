"""Many couplings judged at once: by processes of this machine, or by a Dask cluster.

In:  what judges a list of points; points
Out: their numbers, as they come; the same whoever judges them
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import Any, TypeAlias

from hocket.errors import ScenarioError
from hocket.tuning.cluster import DaskCluster
from hocket.tuning.judge import Numbers, PointJudge
from hocket.tuning.space import Point

Done: TypeAlias = Callable[[Sequence[Point], Sequence[Numbers]], None]

CHUNK = 25
"""Points that are handed out at a time, at the most."""
FEW = 50
"""Points up to which no processes are started for them."""
THREADS = "OPENBLAS_NUM_THREADS"
TRIES = 3
"""Times that a chunk is handed out whose process died."""


class Workers:
    """Those who judge; processes are started when they are first needed, and live until the end.

    `count`: processes of this machine; None: one per core. `dask`: the address of a cluster's scheduler.
    `expected`: points in all, about.
    """

    def __init__(self, judging: PointJudge, count: int | None, dask: str | None, expected: int):
        self.judging = judging
        alone = count is None and not dask and (expected <= FEW or not _pickle_judge(judging))
        self.count = 1 if alone else count or os.cpu_count() or 1
        packed = _pickle_judge(judging) if dask or self.count > 1 else b""
        if packed is None:
            what = "the scenario cannot be sent to other processes: it holds what has no name there"
            hint = "what it is made of in a file of its own, or one worker"
            raise ScenarioError(what, "workers", "models that can be pickled", hint)
        self.cluster = DaskCluster(dask, packed) if dask else None
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self.cluster:
            self.cluster.close()

    def judge(self, points: Sequence[Point], done: Done) -> None:
        """Judge points, and call `done` with each chunk of them that is ready."""
        if not points:
            return
        points = self.judging.judging_order(points)
        hands = self.cluster.size if self.cluster else self.count
        size = max(1, min(CHUNK, -(-len(points) // (2 * hands))))
        chunks: list[Sequence[Point]] = [points[k : k + size] for k in range(0, len(points), size)]
        if self.cluster:
            for chunk, numbers in self.cluster.judge_chunks(chunks):
                done(chunk, numbers)
        elif self.count == 1:
            for chunk in chunks:
                done(chunk, self.judging(chunk))
        else:
            self._in_processes(chunks, done)

    def _in_processes(self, chunks: list[Sequence[Point]], done: Done) -> None:
        left = chunks
        for _ in range(TRIES):
            lost: list[Sequence[Point]] = []
            try:
                for chunk, numbers in _gather_numbers(self._process_pool(), left, self.count):
                    if numbers is None:
                        lost.append(chunk)
                    else:
                        done(chunk, numbers)
            except BaseException:
                self._stop()
                raise
            if not lost:
                return
            self._stop()
            left = lost
        what = f"the processes that judge couplings died {TRIES} times"
        raise ScenarioError(what, f"point {left[0][0]}", "models that do not end the process", "--workers 1")

    def _process_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.count, mp_context=get_context("spawn"), initializer=_keep, initargs=(self.judging,)
            )
        return self._pool

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _pickle_judge(judging: PointJudge) -> bytes | None:
    """Return what judges as bytes; None where it holds what has no name elsewhere.

    Those are functions inside functions, and what the script itself defines: to import a script is to run it.
    """
    try:
        packed = pickle.dumps(judging)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    return None if b"__main__" in packed else packed


@contextmanager
def _worker_environment() -> Iterator[None]:
    """Let processes that are started now have one thread each for matrices, and leave the script alone."""
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    main: Any = sys.modules["__main__"]
    kept = {name: main.__dict__.pop(name) for name in ("__file__", "__spec__") if name in main.__dict__}
    main.__spec__ = None
    try:
        yield
    finally:
        main.__dict__.update(kept)
        if before is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = before


def _gather_numbers(
    pool: ProcessPoolExecutor, chunks: list[Sequence[Point]], count: int
) -> Iterator[tuple[Sequence[Point], list[Numbers] | None]]:
    """Yield chunks with their numbers, a few at a time in the making; None: their process died."""
    waiting: dict[Future[list[Numbers]], Sequence[Point]] = {}
    rest = iter(chunks)
    broken = False
    while True:
        while len(waiting) < 2 * count and not broken:
            chunk = next(rest, None)
            if chunk is None:
                break
            try:
                with _worker_environment():  # a process may be started by this
                    waiting[pool.submit(_judge_in_worker, chunk)] = chunk
            except BrokenProcessPool:
                broken = True
                yield chunk, None
        if not waiting:
            yield from ((chunk, None) for chunk in rest if broken)
            return
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            chunk = waiting.pop(future)
            try:
                yield chunk, future.result()
            except BrokenProcessPool:
                broken = True
                yield chunk, None


_PROCESS_JUDGES: list[PointJudge] = []


def _keep(judging: PointJudge) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started the search
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _PROCESS_JUDGES[:] = [judging]


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however that ended."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _judge_in_worker(points: Sequence[Point]) -> list[Numbers]:
    return _PROCESS_JUDGES[0](points)
