"""A macro step may last for hours: rows are written and Ctrl-C is heard within it; what is kept is final."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

import hocket as hk
from hocket.engine.recording import ArrowRecorder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
ENGINES = ["native", "interpreter"]
HOURS = 3600


class Oscillator:
    """x'' = u - x by explicit Euler; asks to stop in one of its steps, and is slow from then on."""

    calls = 0
    stop_in = None

    def start(self, t):
        self.x, self.v = 1.0, 0.0

    def step(self, t, h, u):
        Oscillator.calls += 1
        if Oscillator.stop_in is not None and Oscillator.calls >= Oscillator.stop_in:
            if Oscillator.calls == Oscillator.stop_in:
                signal.raise_signal(signal.SIGINT)
            time.sleep(0.002)
        self.x, self.v = self.x + h * self.v, self.v + h * (u[0, 0] - self.x)

    def output(self, t, u):
        return [self.x]

    def save(self):
        return self.x, self.v

    def restore(self, state):
        self.x, self.v = state


@pytest.fixture(autouse=True)
def patient(heeds_ctrl_c):
    Oscillator.calls, Oscillator.stop_in = 0, None


def body() -> hk.Python:
    return hk.Python(Oscillator, inputs=["u"], outputs=["x"])


SPRING = hk.StateSpace([[-1.0]], [[1.0]], [[-0.5]], x0=[0.3], inputs=["u"], outputs=["f"])


def inner(step="1 ms") -> hk.Composite:
    wires = {"body.u": "spring.f", "spring.u": "body.x"}
    return hk.Composite(hk.Scenario({"body": body(), "spring": SPRING}, wires), step=step)


def rows(run: hk.Run, table: str) -> np.ndarray:
    return run.to_pandas(table).reset_index().to_numpy()


def same_beginning(some: np.ndarray, all_rows: np.ndarray) -> bool:
    return np.array_equal(some, all_rows[: len(some)])


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_levels_inside_an_unfinished_step_are_kept(engine, tmp_path):
    level = inner()
    whole = hk.run(level, stop=2, engine=engine)
    Oscillator.calls, Oscillator.stop_in = 0, 300
    outer = hk.Composite(hk.Scenario({"level": level}, {}), step=HOURS)
    stopped = hk.run(outer, stop=HOURS, engine=engine, folder=tmp_path / "run")
    kept = rows(stopped, "level")
    assert stopped.status == "stopped"
    assert stopped.info["reached"] == 0.0
    assert stopped.info["within_step"]
    assert 300 <= len(kept) <= 2000
    assert same_beginning(kept, rows(whole, ""))


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_an_unfinished_iteration_are_not_final(engine):
    """Rows of the first step stay, as they are after its last sweep; those of the second are dropped."""
    late = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"])
    wires = {"late.u": "level.body.x", "level.spring.extra": "late.y"}
    spring = hk.StateSpace([[-1.0]], [[1.0, 0.1]], [[-0.5]], x0=[0.3], inputs=["u", "extra"], outputs=["f"])
    scenario = hk.Scenario({"body": body(), "spring": spring}, {"body.u": "spring.f", "spring.u": "body.x"})
    level = hk.Composite(scenario, step="1 ms")
    three = hk.Iterate(tolerance=None, at_most=3)
    outer = hk.Composite(hk.Scenario({"level": level, "late": late}, wires), step=1, orchestrator=three)
    first = hk.run(outer, stop=1, engine=engine)
    sweeps = Oscillator.calls // 1000
    assert sweeps == 3
    Oscillator.calls, Oscillator.stop_in = 0, 3000 + 1000 + 300  # in the second sweep of the second step
    stopped = hk.run(outer, stop=HOURS, engine=engine)
    assert stopped.status == "stopped"
    for table in ("", "level"):
        assert np.array_equal(rows(stopped, table), rows(first, table))


@pytest.mark.parametrize("engine", ENGINES)
def test_accepted_steps_of_an_adaptive_level_are_final(engine):
    control = hk.Adaptive(tolerance=1e-3, quantum="1/100000", first="1/100000")
    wires = {"body.u": "spring.f", "spring.u": "body.x"}
    level = hk.Composite(
        hk.Scenario({"body": body(), "spring": SPRING}, wires), step=10, orchestrator=control
    )
    whole = hk.run(level, stop=10, engine=engine)
    Oscillator.calls, Oscillator.stop_in = 0, 150
    stopped = hk.run(level, stop=10, engine=engine)
    kept = rows(stopped, "")
    assert stopped.status == "stopped"
    assert 50 < len(kept) < len(rows(whole, ""))
    assert same_beginning(kept, rows(whole, ""))
    assert kept[-1, 0] == stopped.info["reached"]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_written_while_the_step_lasts(engine, tmp_path):
    seen: list[tuple[float, int]] = []

    def look(reached: float, _stop: float) -> None:
        files = (tmp_path / "run").glob("**/*.arrow*")
        seen.append((reached, sum(each.stat().st_size for each in files)))
        if len(seen) == 6:
            signal.raise_signal(signal.SIGINT)

    tiny = hk.Composite(hk.Scenario({"spring": SPRING}, {"spring.u": "spring.f"}), step="1 us")
    outer = hk.Composite(hk.Scenario({"level": tiny}, {}), step=HOURS)
    run = hk.run(outer, stop=HOURS, engine=engine, folder=tmp_path / "run", progress=look)
    assert run.status == "stopped"
    times, sizes = zip(*seen, strict=True)
    assert set(times) == {0.0}
    assert sizes[5] > sizes[0]
    assert len(rows(run, "level")) > 1000


def test_threads_stand_still_while_their_rows_are_taken():
    """Two levels on two threads: the rows that were written are those of one thread."""
    tiny = hk.Composite(hk.Scenario({"spring": SPRING}, {"spring.u": "spring.f"}), step="1 us")
    both = hk.Composite(hk.Scenario({"a": tiny, "b": tiny}, {}), step="20 ms")
    outer = hk.Composite(hk.Scenario({"both": both}, {}), step=HOURS)
    looks = 0

    def look(_reached: float, _stop: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 8:
            signal.raise_signal(signal.SIGINT)

    run = hk.run(outer, stop=HOURS, threads=2, progress=look)
    assert run.status == "stopped"
    alone = hk.run(tiny, stop="0.1 s", threads=1)
    for table in ("both.a", "both.b"):
        kept = rows(run, table)[:100_001]
        assert same_beginning(kept, rows(alone, ""))
        assert len(kept) > 10_000


def test_micro_steps_of_one_simulator_are_a_long_step_too():
    lag = hk.StateSpace(
        [[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u = 0"], outputs=["y"], method="rk4", step="1 us"
    )
    level = hk.Composite(hk.Scenario({"lag": lag}, {}), step=HOURS)
    looks = 0

    def look(_reached: float, _stop: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            signal.raise_signal(signal.SIGINT)

    run = hk.run(level, stop=HOURS, every="micro", progress=look)
    assert run.status == "stopped"
    kept = rows(run, "lag@micro")
    first = kept[:1_000_000]  # in each step rounding adds up to 1e-16, and a fast machine makes many more
    np.testing.assert_allclose(first[:, 1], np.exp(-first[:, 0]), rtol=1e-9)
    assert len(kept) > 1000


@pytest.mark.parametrize("engine", ENGINES)
def test_what_goes_wrong_while_rows_are_written_within_a_step_is_told(engine, monkeypatch):
    def full(self, index, block):
        raise hk.HocketError("no room")

    monkeypatch.setattr(ArrowRecorder, "write", full)
    tiny = hk.Composite(hk.Scenario({"spring": SPRING}, {"spring.u": "spring.f"}), step="1 us")
    outer = hk.Composite(hk.Scenario({"level": tiny}, {}), step=HOURS)
    with pytest.raises(hk.HocketError, match="no room"):
        hk.run(outer, stop=HOURS, engine=engine)
