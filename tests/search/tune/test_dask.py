"""A Dask cluster finds the same, whatever happens to its workers."""

import os
import pickle
import signal

import pytest

from hocket.errors import ScenarioError
from hocket.model.code_loading import is_code_refused, no_code
from hocket.search.tune.evaluation_pool import judge_chunks
from hocket.search.tune.tune import tune
from systems import two_masses

distributed = pytest.importorskip("distributed")

OVER = {"two.F.alpha": "0:1:10", "step": "0.1:9:20:log"}
TWO = two_masses("Control21", 0.1, (0.0, 0.0, 0.5))

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning:distributed"),
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:distributed"),
]


def _tell_refusal(points):
    return [(float(is_code_refused()),) for _ in points]


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process."""
    before = dict(os.environ)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as made:
        yield made
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def alone():
    return tune(TWO, OVER, ["rho", "delta"], workers=1)


def test_it_finds_the_same(cluster, alone):
    told = []
    made = tune(
        TWO, OVER, ["rho", "delta"], dask=cluster.scheduler_address, progress=lambda *each: told.append(each)
    )
    assert made.points == alone.points
    assert made.numbers == alone.numbers
    assert made.rows() == alone.rows()
    assert told[-1] == (200, 200)


def test_the_refusal_of_code_reaches_the_workers(cluster):
    """They have the environment of whoever started them."""
    with distributed.Client(cluster.scheduler_address) as client:
        pool = client.get_executor(pure=False)
        packed = pickle.dumps(_tell_refusal)
        assert [found for _, found in judge_chunks(pool, packed, [[(0,)]])] == [[(0.0,)]]
        with no_code():
            assert [found for _, found in judge_chunks(pool, packed, [[(0,)]])] == [[(1.0,)]]
        assert [found for _, found in judge_chunks(pool, packed, [[(0,)]])] == [[(0.0,)]]


def test_a_genetic_search_finds_the_same(cluster):
    how = {"search": "genetic", "budget": 60, "seed": 2}
    here = tune(TWO, OVER, ["rho", "delta"], workers=1, **how)
    there = tune(TWO, OVER, ["rho", "delta"], dask=cluster.scheduler_address, **how)
    assert (there.points, there.numbers) == (here.points, here.numbers)


def test_a_worker_that_is_killed_loses_nothing(cluster, alone, tmp_path):
    killed = []

    def kill(done, total):
        if not killed and done < total:
            with distributed.Client(cluster.scheduler_address) as client:
                pids = client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    made = tune(TWO, OVER, ["rho", "delta"], dask=cluster.scheduler_address, progress=kill, folder=tmp_path)
    assert killed
    assert made.points == alone.points
    assert made.numbers == alone.numbers
    assert (tmp_path / "judged.jsonl").read_text().count("\n") == 1 + 200, "each was kept once"


def test_an_address_where_nobody_answers_is_told(monkeypatch):
    monkeypatch.setattr("hocket.execution.dask_cluster.WAIT", "1s")
    with pytest.raises(ScenarioError, match="no Dask scheduler answers"):
        tune(TWO, OVER, ["rho"], dask="tcp://127.0.0.1:9")
