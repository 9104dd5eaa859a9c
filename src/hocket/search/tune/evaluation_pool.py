"""Workers that judge couplings, in this process, in others or on a Dask cluster, and the journal they keep.

In:  points, and what judges them
Out: their numbers, as they come; a worker that dies loses nothing, and a search goes on where it stopped
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from hocket.errors import FileError, ScenarioError
from hocket.execution.dask_cluster import DaskCluster
from hocket.files import toml
from hocket.files.run_facts import CHECKSUM, checksum
from hocket.model.code_loading import is_code_refused, no_code
from hocket.search.tune.point_judge import Numbers, PointJudge
from hocket.search.tune.space import Point

RETRIES = 3
"""Times that a chunk is tried again whose worker died."""

Chunk: TypeAlias = Sequence[Point]
Judged: TypeAlias = list[Numbers] | None


class JudgingCluster(DaskCluster):
    """A cluster whose workers judge couplings."""

    def judge_chunks(self, packed: bytes, chunks: Sequence[Chunk]) -> Iterator[tuple[Chunk, Judged]]:
        """Yield chunks with their numbers, as they come."""
        from dask.distributed import KilledWorker

        try:
            yield from judge_chunks(self.client.get_executor(pure=False, retries=RETRIES), packed, chunks)
        except KilledWorker:
            what = f"the workers of the cluster at `{self.address}` died again and again"
            raise ScenarioError(what, "--dask", "models that do not end the process") from None
        except (CancelledError, OSError) as error:
            what = f"the cluster at `{self.address}` went away: {error or 'no scheduler'}"
            hint = "the same search again: what is in its folder is kept"
            raise ScenarioError(what, "--dask", "", hint) from None


def judge_chunks(pool: Executor, packed: bytes, chunks: Sequence[Chunk]) -> Iterator[tuple[Chunk, Judged]]:
    """Yield chunks with their numbers, as they come; None: their process died.

    What judges is sent along with every chunk, so that no worker must keep it.
    """
    waiting: dict[Future[list[Numbers]], Chunk] = {}
    refused = is_code_refused()
    for chunk in chunks:
        try:
            with _worker_environment():  # a process may be started by this
                waiting[pool.submit(_judge_in_worker, packed, list(chunk), refused)] = chunk
        except BrokenProcessPool:
            yield chunk, None
    for future in as_completed(waiting):
        try:
            yield waiting[future], future.result()
        except BrokenProcessPool:
            yield waiting[future], None


_JUDGES: dict[str, PointJudge] = {}


def _judge_in_worker(packed: bytes, points: Chunk, refused: bool) -> list[Numbers]:
    """Judge points; `refused`: without code that files name. A worker elsewhere has another environment."""
    mark = sha256(packed).hexdigest()
    with no_code() if refused else nullcontext():
        if mark not in _JUDGES:
            _JUDGES.clear()
            _JUDGES[mark] = pickle.loads(packed)
        return _JUDGES[mark](points)


def search_identity(judging: PointJudge) -> str:
    """Return what a search is about, as a text that differs where the search does."""
    variables = [(each.name, each.words) for each in judging.space.variables]
    names = [each.name for each in judging.wanted]
    files = [Path(name.rpartition(":")[0]) for name in names if ".py:" in name]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    return repr(
        (toml.dumps(judging.composite, strict=False), variables, names, texts, judging.start, judging.stop)
    )


def _sealed_line(facts: dict[str, Any]) -> str:
    """Return a line of a journal: facts that end with their checksum."""
    return json.dumps({**facts, CHECKSUM: checksum(json.dumps(facts))}) + "\n"


def _check_seal(facts: dict[str, Any], path: Path, line: int) -> None:
    """Take the checksum off the facts of a line; refuse facts that are not as they were written."""
    told = facts.pop(CHECKSUM)
    if told != checksum(json.dumps(facts)):
        what = f"`{path.name}` is damaged: line {line} was changed since hocket wrote it"
        raise FileError(what, f"{path}, line {line}", "what `hocket tune` wrote", "another folder: --folder")


class Journal:
    """Points with their numbers; in a file, a line for each, if there is a file.

    `facts` were found out before the search and stay the same when it goes on.
    """

    def __init__(self, path: Path | None, about: str, facts: Callable[[], Any] = lambda: None):
        self.known: dict[Point, Numbers] = {}
        self.facts: Any = None
        self._file: TextIO | None = None
        if path is None:
            self.facts = facts()
            return
        mark = sha256(about.encode()).hexdigest()
        if path.exists() and b"\n" in path.read_bytes():
            self._read(path, mark)
        else:
            self.facts = facts()
            head = {"hocket_tune": 2, "about": mark, "facts": self.facts}
            path.write_text(_sealed_line(head), encoding="utf-8")
        self._file = path.open("a", encoding="utf-8")

    def _read(self, path: Path, mark: str) -> None:
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
            head = json.loads(lines[0])
            sealed = head["hocket_tune"] > 1 or CHECKSUM in head
            if sealed:
                _check_seal(head, path, 1)
            self.facts = head["facts"]
            if head["about"] != mark:
                what = f"`{path.name}` is about another search"
                raise FileError(
                    what, str(path), "the same scenario, space and objectives", "another folder: --folder"
                )
            for number, line in enumerate(lines[1:-1], 2):  # the last one may have been cut off
                facts: dict[str, Any] = json.loads(line)
                if sealed:
                    _check_seal(facts, path, number)
                self.known[tuple(facts["point"])] = tuple(map(float, facts["numbers"]))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise FileError(f"`{path.name}` cannot be read", str(path), "what `hocket tune` wrote") from None
        if lines[-1]:
            path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")

    def add(self, points: Sequence[Point], numbers: Sequence[Numbers]) -> None:
        """Keep what was judged, at once."""
        self.known.update(zip(points, numbers, strict=True))
        if self._file is not None:
            for point, each in zip(points, numbers, strict=True):
                told = [repr(value) for value in each]
                self._file.write(_sealed_line({"point": list(point), "numbers": told}))
            self._file.flush()

    def missing(self, points: Sequence[Point]) -> list[Point]:
        """Return those that are not known, each once."""
        return [point for point in dict.fromkeys(points) if point not in self.known]

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


Done: TypeAlias = Callable[[Chunk, Sequence[Numbers]], None]

CHUNK = 25
"""Points that are handed out at a time, at the most."""
FEW = 50
"""Points up to which no processes are started for them."""
THREADS = "OPENBLAS_NUM_THREADS"
TRIES = 3
"""Times that a chunk is handed out whose process died."""


class Workers:
    """The workers that judge; processes are started when they are first needed, and live until the end.

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
        self.packed, self.cluster = packed, JudgingCluster(dask) if dask else None
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
        chunks: list[Chunk] = [points[k : k + size] for k in range(0, len(points), size)]
        if hands > 1 or self.cluster:
            self._hand_out(chunks, done)
        else:
            for chunk in chunks:
                done(chunk, self.judging(chunk))

    def _hand_out(self, chunks: list[Chunk], done: Done) -> None:
        left = chunks
        for _ in range(TRIES):
            lost: list[Chunk] = []
            try:
                for chunk, numbers in self._judged_chunks(left):
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

    def _judged_chunks(self, chunks: list[Chunk]) -> Iterator[tuple[Chunk, Judged]]:
        if self.cluster:
            return self.cluster.judge_chunks(self.packed, chunks)
        if self._pool is None:
            spawn = get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, mp_context=spawn, initializer=_begin_worker)
        return judge_chunks(self._pool, self.packed, chunks)

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


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started the search
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however that ended."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
