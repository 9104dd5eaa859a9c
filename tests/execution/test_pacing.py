"""Keeping pace with the clock. Only lower bounds are asserted: a busy machine may be late."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import hocket as hk
from hocket.execution.pacing import RealTimePacer
from hocket.execution.session import interruptible
from systems import ENGINES, FREE_LAG


def lag(step="1 ms"):
    return hk.Composite(hk.Scenario({"lag": FREE_LAG}), step)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("stop", "factor", "least"), [(0.3, 1.0, 0.29), (0.6, 2, 0.29), (0.05, 0.25, 0.19)])
def test_a_run_takes_its_time(engine, stop, factor, least):
    begin = time.perf_counter()
    run = hk.run(lag(), stop, realtime=factor, engine=engine)
    assert time.perf_counter() - begin >= least
    facts = run.info["realtime"]
    assert set(facts) == {"factor", "overruns", "largest_lag"}
    assert facts["factor"] == factor
    assert facts["overruns"] >= 0
    assert facts["largest_lag"] >= 0
    free = hk.run(lag(), stop, engine=engine)
    assert "realtime" not in free.info
    assert free["lag.y"].values.tolist() == run["lag.y"].values.tolist(), "the numbers are the same"


class Slow:
    outputs = ("y",)

    def start(self, t):
        pass

    def output(self, t):
        return t

    def step(self, t, h, u):
        time.sleep(0.02)


def test_overruns_are_counted():
    run = hk.run(hk.Composite(hk.Scenario({"slow": hk.Python(Slow)}), "1 ms"), 0.01, realtime=1.0)
    assert run.info["realtime"]["overruns"] == 10
    assert run.info["realtime"]["largest_lag"] >= 0.19


def test_a_failed_run_tells_too(tmp_path):
    class Bad(Slow):
        def step(self, t, h, u):
            raise RuntimeError("broken")

    with pytest.raises(hk.SimulatorError):
        hk.run(
            hk.Composite(hk.Scenario({"bad": hk.Python(Bad)}), "1 ms"),
            1,
            realtime=1.0,
            folder=tmp_path / "run",
        )
    assert hk.open_run(tmp_path / "run").info["realtime"]["factor"] == 1.0


@pytest.mark.parametrize(("step", "chunk"), [(1e-5, 100), (1e-3, 1), (0.5, 1)])
def test_steps_are_released_a_millisecond_at_a_time(step, chunk):
    pace = RealTimePacer(1.0, step)
    asked = []

    def run(steps, _seconds):
        asked.append(steps)
        return steps

    stopping = threading.Event()
    assert pace.run(run, 2 * chunk + 1 if chunk > 1 else 1, 10.0, stopping) == sum(asked)
    assert max(asked) == chunk
    stopping.set()
    assert pace.run(run, 5, 10.0, stopping) == 0


@pytest.mark.parametrize("factor", [0, -1.0, float("nan"), float("inf"), "fast", True])
def test_factors_that_are_none(factor):
    with pytest.raises(hk.ScenarioError, match="`realtime` cannot be"):
        hk.run(lag(), 1, realtime=factor)


LONG = """
import hocket as hk
lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u = 0"], outputs=["y"])
run = hk.run(hk.Composite(hk.Scenario({"lag": lag}), "100 s"), "1000 s", realtime=1.0, folder="kept")
print(run.status, run.info["reached"])
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_is_heard_while_it_waits(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", LONG], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    try:
        while not list(tmp_path.glob("kept/samples/*.arrow")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert out == "stopped 100.0\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("ignored", [True, False])
def test_a_signal_that_is_ignored_stays_so(number, ignored):
    """A shell ignores Ctrl-C for what it starts in the background; that run is not the one meant."""
    before = signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        with interruptible() as interrupted:
            signal.raise_signal(number)
            assert interrupted.is_set() is not ignored
        assert signal.getsignal(number) is (signal.SIG_IGN if ignored else signal.SIG_DFL)
    finally:
        signal.signal(number, before)
