"""A Dask cluster that judges couplings.

In:  the address of its scheduler; chunks of points
Out: their numbers, as they come; a worker that dies loses nothing
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from hocket.errors import ScenarioError
from hocket.tuning.judge import Numbers, PointJudge
from hocket.tuning.space import Point

RETRIES = 3
"""Times that a chunk is tried again whose worker died."""
WAIT = "10s"


class DaskCluster:
    """A client of a cluster. `judging` is sent along with every chunk, so that no worker must keep it."""

    def __init__(self, address: str, judging: bytes):
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
        self.judging, self.address = judging, address

    @property
    def size(self) -> int:
        """How many chunks are judged at a time; at least one, for workers may still come."""
        return max(1, sum(int(count) for count in self.client.nthreads().values()))

    def judge_chunks(
        self, chunks: Sequence[Sequence[Point]]
    ) -> Iterator[tuple[Sequence[Point], list[Numbers]]]:
        """Yield chunks with their numbers, as they come."""
        from concurrent.futures import CancelledError

        from dask.distributed import KilledWorker, as_completed

        arriving: Any = as_completed
        futures = {
            self.client.submit(
                _judge_on_cluster, self.judging, list(chunk), pure=False, retries=RETRIES
            ): chunk
            for chunk in chunks
        }
        try:
            for future in arriving(list(futures)):
                yield futures[future], future.result()
        except KilledWorker:
            what = f"the workers of the cluster at `{self.address}` died again and again"
            raise ScenarioError(what, "--dask", "models that do not end the process") from None
        except (CancelledError, OSError) as error:
            what = f"the cluster at `{self.address}` went away: {error or 'no scheduler'}"
            raise ScenarioError(
                what, "--dask", "", "the same search again: what is in its folder is kept"
            ) from None

    def close(self) -> None:
        """Leave the cluster as it was."""
        self.client.close()


_CLUSTER_JUDGES: dict[str, PointJudge] = {}


def _judge_on_cluster(sent: bytes, points: Sequence[Point]) -> list[Numbers]:
    mark = sha256(sent).hexdigest()
    judging: PointJudge | None = _CLUSTER_JUDGES.get(mark)
    if judging is None:
        judging = pickle.loads(sent)
        _CLUSTER_JUDGES.clear()
        _CLUSTER_JUDGES[mark] = judging
    return judging(points)
