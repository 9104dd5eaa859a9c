"""Sweeps that go on: resumed, sharded, from a checkpoint, with workers that are killed; their one table."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest

import hocket as hk
from hocket.execution import sweep_process
from systems import lag


def lags(**options: Any) -> hk.Composite:
    """Return two lags in a row; `a.A[1,1]` is the rate of the first."""
    scenario = hk.Scenario({"a": lag(), "b": lag()}, {"b.u": "a.y", "a.u": "b.y"})
    return hk.Composite(scenario, "1/10", **options)


SETS = [{"a.A[1,1]": -1.0 - 0.1 * number} for number in range(1, 9)]


def finals(runs: Any) -> list[float]:
    return [run.final("b.y") for run in runs]


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = hk.sweep(lags(), SETS, 2)
    hk.sweep(lags(), SETS, 2, folder=tmp_path / "s", shard="1/2")
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "s").glob("*/run.json")}
    assert len(written) == 4
    (tmp_path / "s" / "003" / "run.json").write_text("{")  # torn
    runs = hk.sweep(lags(), SETS, 2, folder=tmp_path / "s", again=True)
    assert finals(runs) == finals(whole)
    kept = [path for path, when in written.items() if path.stat().st_mtime_ns == when]
    assert sorted(path.parent.name for path in kept) == ["001", "005", "007"]


def test_a_folder_of_another_sweep_is_refused(tmp_path: Path) -> None:
    hk.sweep(lags(), SETS[:2], 2, folder=tmp_path / "s")
    with pytest.raises(hk.ScenarioError, match="another sweep"):
        hk.sweep(lags(), SETS[:2], 3, folder=tmp_path / "s", again=True)
    with pytest.raises(hk.ScenarioError, match="another sweep"):
        hk.sweep(lags(extrapolation="linear"), SETS[:2], 2, folder=tmp_path / "s", again=True)
    other = hk.sweep(lags(), [SETS[5], SETS[1]], 2, folder=tmp_path / "s", again=True)
    assert finals(other) == finals(hk.sweep(lags(), [SETS[5], SETS[1]], 2))


@pytest.mark.parametrize("parts", [1, 3, 8, 11])
def test_shards_are_all_of_it_and_nothing_twice(parts: int) -> None:
    found = [hk.sweep(lags(), SETS, 1, shard=(part, parts)) for part in range(1, parts + 1)]
    numbers = [number for runs in found for number in runs.numbers]
    assert sorted(numbers) == list(range(len(SETS)))
    by_number = {n: run.final("b.y") for runs in found for n, run in zip(runs.numbers, runs, strict=True)}
    assert [by_number[n] for n in range(len(SETS))] == finals(hk.sweep(lags(), SETS, 1))


@pytest.mark.parametrize("shard", ["3", "4/3", "0/3", "a/b", (1, 2, 3), 3, "1/0", "1.5/2"])
def test_what_is_not_a_shard(shard: Any) -> None:
    with pytest.raises(hk.ScenarioError, match="is not a shard"):
        hk.sweep(lags(), SETS, 1, shard=shard)


def test_runs_begin_at_a_checkpoint(tmp_path: Path) -> None:
    hk.run(lags(), stop=2, folder=tmp_path / "r", checkpoint_every="1 h")
    runs = hk.sweep(lags(), SETS[:3], 3, checkpoint=tmp_path / "r")
    for one, run in zip(SETS, runs, strict=False):
        alone = hk.resume(tmp_path / "r", lags(), stop=3, parameters=one, folder=tmp_path / "alone")
        assert run["b.y"].t.tolist() == alone["b.y"].t.tolist()
        assert run["b.y"].values.tobytes() == alone["b.y"].values.tobytes()
        assert run["b.y"].t[0] == 2.0
        shutil.rmtree(tmp_path / "alone")
    with pytest.raises(hk.HocketError):
        hk.sweep(lags(), SETS[:1], 3, checkpoint=tmp_path / "nothing")


def test_one_table(tmp_path: Path) -> None:
    runs = hk.sweep(lags(), SETS[:3], 2)
    frame = runs.to_pandas()
    assert runs.numbers == (0, 1, 2)
    assert frame["a.A[1,1]"].tolist() == [one["a.A[1,1]"] for one in SETS[:3]]
    assert frame["b.y"].tolist() == finals(runs)
    runs.to_parquet(tmp_path / "t.parquet")
    table = parquet.read_table(tmp_path / "t.parquet")
    assert table["b.y"].to_pylist() == finals(runs)
    assert table["status"].to_pylist() == ["finished"] * 3
    with pytest.raises(hk.HocketError, match="cannot be written"):
        runs.to_parquet(tmp_path / "none" / "t.parquet")


def test_a_run_that_failed_has_its_row(tmp_path: Path) -> None:
    ode = hk.Ode(_rate, x0=[1.0], outputs=["x"], k=1.0, method="rk4", step="1/10")
    runs = hk.sweep(
        hk.Composite(hk.Scenario({"o": ode}, {}), "1/10"), [{"o.k": 1.0}, {"o.k": -1.0}], 1, errors="return"
    )
    runs.to_parquet(tmp_path / "t.parquet")
    table = parquet.read_table(tmp_path / "t.parquet")
    assert table["status"].to_pylist() == ["finished", "failed"]
    assert table["o.x"][0].as_py() == pytest.approx(np.exp(-1), rel=1e-5)
    assert table["o.x"][1].as_py() is None
    assert "o" in table["error"][1].as_py()


def _rate(t: float, x: Any, u: Any, k: float) -> Any:
    if k < 0:
        raise ValueError("k is below zero")
    return [-k * x[0]]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_worker_that_is_killed_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    killed: list[int] = []
    begin = sweep_process.SweepProcess._start

    def start(self: Any) -> Any:
        process = begin(self)
        begun.append(process.pid)
        if len(killed) < 2:
            killed.append(process.pid)
            threading.Timer(0.05, os.kill, (process.pid, signal.SIGKILL)).start()
        return process

    monkeypatch.setattr(sweep_process.SweepProcess, "_start", start)
    runs = hk.sweep(lags(), SETS, 2, processes=True, workers=1)
    assert len(begun) == 3, "two that were killed as they started, and one that has made all"
    assert finals(runs) == finals(hk.sweep(lags(), SETS, 2))


KILLED = """
import sys; sys.path[:] = {path!r}
import hocket as hk
from execution.test_sweeps_that_go_on import SETS, lags
hk.sweep(lags(), SETS, 20_000, folder="s", again=True, workers=1)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_after_sigkill_nothing_is_run_twice(tmp_path: Path) -> None:
    code = KILLED.format(path=[*sys.path])
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "s" / "003" / "run.json").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    complete = {path: path.stat().st_mtime_ns for path in (tmp_path / "s").glob("00[12]/run.json")}
    assert len(complete) == 2
    runs = hk.sweep(lags(), SETS[:4], 20_000, folder=tmp_path / "s", again=True)
    assert [run.status for run in runs] == ["finished"] * 4
    assert all(path.stat().st_mtime_ns == when for path, when in complete.items())
    assert runs[2].final("b.y") == hk.sweep(lags(), SETS[2:3], 20_000)[0].final("b.y")


@pytest.mark.filterwarnings("ignore::ResourceWarning:distributed")
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:distributed")
def test_a_dask_cluster_makes_the_same_whoever_is_killed(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    alone = hk.sweep(lags(), SETS, 2)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as made:
        victim = next(iter(made.workers.values())).process.pid
        killed: list[float] = []

        def kill(done: float, _all: float) -> None:
            if done >= 1 and not killed:
                killed.append(done)
                os.kill(victim, signal.SIGKILL)

        runs = hk.sweep(lags(), SETS, 2, dask=made.scheduler_address, folder=tmp_path / "s", progress=kill)
        assert finals(runs) == finals(alone)
        for run, one in zip(runs, alone, strict=True):
            assert run["b.y"].values.tobytes() == one["b.y"].values.tobytes()
        drawn, here = (
            hk.study(lags(), {"a.A[1,1]": "normal(-1, 0.1)"}, 2, runs=6, estimate=False, dask=dask)
            for dask in (made.scheduler_address, None)
        )
        assert finals(drawn.runs) == finals(here.runs)
        with pytest.raises(hk.ScenarioError, match="cannot be sent"):
            hk.sweep(
                hk.Composite(hk.Scenario({"f": hk.Function(lambda t: t, outputs=["y"])}, {}), 1),
                [{}],
                2,
                dask=made.scheduler_address,
            )
