"""Many couplings judged at once: by processes of this machine, or by a Dask cluster.

In:  what judges a list of points; points
Out: their numbers, as they come; the same whoever judges them
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import get_context
from typing import Any, TypeAlias

from hocket.engine.composite import Composite
from hocket.errors import HocketError, ScenarioError
from hocket.tune.objectives import Case, Objective, judged
from hocket.tune.settings import applied
from hocket.tune.space import Point, Space
from hocket.tune.work import Work

Numbers: TypeAlias = tuple[float, ...]
Done: TypeAlias = Callable[[Sequence[Point], Sequence[Numbers]], None]

CHUNK = 25
"""Points that are handed out at a time."""
FEW = 2 * CHUNK
"""Points up to which no processes are started for them."""
TRIES = 3
"""Times that a chunk is handed out whose process died."""


@dataclass(frozen=True)
class Judging:
    """Everything it takes to judge a point; it is sent to those who do."""

    composite: Composite
    space: Space
    wanted: tuple[Objective, ...]
    stop: Fraction | None
    start: Fraction = Fraction(0)
    now: Work | None = None

    def __call__(self, points: Sequence[Point]) -> list[Numbers]:
        """Return the numbers of some points; nan where a point is no coupling."""
        return [self._numbers(point) for point in points]

    def _numbers(self, point: Point) -> Numbers:
        try:
            made = applied(self.composite, self.space.values(point))
        except HocketError:
            return (float("nan"),) * len(self.wanted)
        return judged(Case(made, self.stop, self.start, self.now), self.wanted)


def evaluate(
    judging: Judging, points: Sequence[Point], done: Done, workers: int | None = None, dask: str | None = None
) -> None:
    """Judge points and call `done` with each chunk of them that is ready.

    `workers`: processes of this machine; None: one per core. `dask`: the address of a cluster's scheduler.
    """
    chunks = [points[k : k + CHUNK] for k in range(0, len(points), CHUNK)]
    if dask:
        _on_dask(judging, chunks, done, dask)
        return
    count = min(workers or os.cpu_count() or 1, len(chunks))
    if count <= 1 or (workers is None and len(points) <= FEW):
        for chunk in chunks:
            done(chunk, judging(chunk))
        return
    left = list(chunks)
    for _ in range(TRIES):
        left = _in_processes(judging, left, done, count)
        if not left:
            return
    what = f"the processes that judge couplings died {TRIES} times"
    raise ScenarioError(what, f"point {left[0][0]}", "models that do not end the process", "--workers 1")


def _in_processes(
    judging: Judging, chunks: list[Sequence[Point]], done: Done, count: int
) -> list[Sequence[Point]]:
    """Return the chunks that were lost when a process died."""
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when a process starts
    lost: list[Sequence[Point]] = []
    with ProcessPoolExecutor(
        count, mp_context=get_context("spawn"), initializer=_keep, initargs=(judging,)
    ) as pool:
        try:
            for chunk, numbers in _gathered(pool, chunks, count):
                if numbers is None:
                    lost.append(chunk)
                else:
                    done(chunk, numbers)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            if before is None:
                del os.environ["OPENBLAS_NUM_THREADS"]
            else:
                os.environ["OPENBLAS_NUM_THREADS"] = before
    return lost


def _gathered(
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
                waiting[pool.submit(_judge, chunk)] = chunk
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


_KEPT: list[Judging] = []


def _keep(judging: Judging) -> None:
    _KEPT[:] = [judging]


def _judge(points: Sequence[Point]) -> list[Numbers]:
    return _KEPT[0](points)


def _on_dask(judging: Judging, chunks: list[Sequence[Point]], done: Done, address: str) -> None:
    try:
        from dask.distributed import Client, as_completed
    except ImportError:
        what = "Dask is not installed"
        raise ScenarioError(
            what, "--dask", "the package `distributed`", "pip install 'hocket[dask]'"
        ) from None
    with _client(Client, address) as client:
        sent = client.scatter(judging, broadcast=True)
        futures = {client.submit(_judged, sent, chunk, pure=False, retries=TRIES): chunk for chunk in chunks}
        arriving: Any = as_completed
        for future in arriving(futures):
            done(futures[future], future.result())


def _client(make: Any, address: str) -> Any:
    try:
        return make(address, timeout="10s")
    except (OSError, ValueError) as error:
        what = f"no Dask scheduler answers at `{address}`: {error}"
        raise ScenarioError(
            what, "--dask", "an address such as tcp://127.0.0.1:8786", "dask scheduler"
        ) from None


def _judged(judging: Judging, points: Sequence[Point]) -> list[Numbers]:
    return judging(points)
