"""A run as a whole: its options, its folder, and what is left of it when it ends early."""

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from hocket.engine.recording import ArrowRecorder
from systems import ENGINES

LAG = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u = 0"], outputs=["y [m]"])


def lag(step="0.1 s", **options) -> hk.Composite:
    return hk.Composite(hk.Scenario({"lag": LAG}, **options), step)


def test_rows_are_exact_and_at_exact_times():
    t, y = hk.run(lag(), stop=1)["lag.y"]
    assert t.tolist() == [k / 10 for k in range(11)]
    assert y == pytest.approx(np.exp(-t), rel=1e-14)


def test_time_does_not_drift_over_many_steps():
    t, _ = hk.run(lag("0.1 ms"), stop=30, every="1 s")["lag.y"]
    assert t.tolist() == [float(k) for k in range(31)]


def test_a_run_may_start_anywhere():
    run = hk.run(lag(), start="1/3 s", stop=Fraction(1, 3) + 1)
    t, y = run["lag.y"]
    assert t[0] == 1 / 3
    assert t[-1] == 4 / 3
    assert y[-1] == pytest.approx(np.exp(-1), rel=1e-14)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_come_at_the_output_interval(engine):
    t, _ = hk.run(lag(), stop=2, every="0.5 s", engine=engine)["lag.y"]
    assert t.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_rows_further_apart_than_any_run_is_long():
    run = hk.run(lag(), stop=2, every=1e30)
    assert run.info["engine"] == "native"
    assert run["lag.y"].t.tolist() == [0.0, 2.0]
    assert run["lag.y"].values[-1] == pytest.approx(np.exp(-2), rel=1e-14)


class Ends:
    inputs, outputs = (), ("y",)

    def start(self, t):
        pass

    def output(self, t):
        return [t]

    def step(self, t, h, u):
        if t > 2.5:
            raise RuntimeError("enough")


def test_as_many_steps_as_floats_can_count_are_begun_and_one_more_is_not(tmp_path):
    endless = hk.Composite(hk.Scenario({"ends": hk.Python(Ends)}), 1)
    with pytest.raises(hk.SimulatorError, match="enough"):
        hk.run(endless, 2**53, folder=tmp_path / "run")
    assert hk.open_run(tmp_path / "run")["ends.y"].values.tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(hk.ScenarioError, match="the run would make 1e30 steps of 1 s"):
        hk.run(endless, 1e30)


def test_ports_are_chosen_by_pattern_and_inputs_by_name():
    two = hk.Scenario({"a": LAG, "b": LAG}, {"b.u": "a.y"}, record=["a.*", "b.u"])
    run = hk.run(hk.Composite(two, 0.1), 1)
    assert run.ports == ("a.y", "b.u")
    assert hk.run(hk.Composite(two, 0.1), 1, record=["*"]).ports == ("a.y", "b.y")


def test_a_level_inside_may_keep_its_ports_to_itself():
    inner = hk.Composite(hk.Scenario({"a": LAG, "b": LAG}, {"b.u": "a.y"}, record=["b.*"]), 0.1)
    outer = hk.Composite(hk.Scenario({"level": inner}), 0.1)
    assert hk.run(outer, 1).ports == ("level.b.y",)
    assert hk.run(outer, 1, record=["level.a.y"]).ports == ("level.a.y",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop": 0.25}, "the step 0.1 s does not divide the run from 0 s to 0.25 s"),
        ({"stop": -1}, "the run stops at -1 s, before it starts at 0 s"),
        ({"stop": "soon"}, "`soon` is not a duration"),
        ({"stop": 1, "every": 0.25}, "the output interval 0.25 s is not a multiple of the step 0.1 s"),
        ({"stop": 1, "every": 0}, "rows every 0 s"),
        ({"stop": 1, "record": ["lag.z"]}, "there is no port `lag.z` to record"),
        ({"stop": 1, "engine": "fast"}, "`engine` cannot be 'fast'"),
        ({"stop": float("nan")}, "is not a finite duration"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(hk.ScenarioError) as caught:
        hk.run(lag(), **options)
    assert message in str(caught.value)


class Failing:
    """Fails at a given time."""

    inputs = ("u = 0",)
    outputs = ("y",)

    def __init__(self, at):
        self.at = at

    def start(self, t):
        self.closed = False

    def output(self, t):
        return [t]

    def step(self, t, h, u):
        if t >= self.at:
            raise RuntimeError("the pump is dry")

    def close(self):
        CLOSED.append(self)


CLOSED: list = []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failed_run_keeps_its_rows_and_closes_everything(tmp_path, engine):
    CLOSED.clear()
    composite = hk.Composite(hk.Scenario({"pump": hk.Python(Failing, at=0.45), "lag": LAG}), 0.1)
    with pytest.raises(hk.SimulatorError, match="`pump` raised RuntimeError: the pump is dry") as caught:
        hk.run(composite, 1, folder=tmp_path / "run", engine=engine)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert "step() at t = 0.5 s" in str(caught.value)
    assert "rows up to t = 0.5 s are kept" in caught.value.__notes__[0]
    run = hk.open_run(tmp_path / "run")
    assert run.status == "failed"
    assert "the pump is dry" in run.info["error"]
    assert run["pump.y"].t.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert len(CLOSED) == 1


def test_progress_is_told_and_ends_at_the_stop_time():
    told = []
    hk.run(lag("1 ms"), 2, progress=lambda t, stop: told.append((t, stop)))
    assert told[-1] == (2.0, 2.0)
    assert [t for t, _ in told] == sorted(t for t, _ in told)


def test_the_folder_tells_what_was_run(tmp_path):
    run = hk.run(lag(), 1, folder=tmp_path / "kept", name="lag")
    facts = json.loads((tmp_path / "kept" / "run.json").read_text())
    assert (facts["status"], facts["name"], facts["engine"]) == ("finished", "lag", "native")
    assert facts["counts"] == {"steps": 10, "simulators": 1}
    assert facts["reached"] == 1.0
    again = hk.read(tmp_path / "kept" / "scenario.toml")
    assert again.composite == lag()
    assert again.stop == 1
    assert "step lag" in run.plan_text


LONG = """
import sys
import hocket as hk
lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u = 0"], outputs=["y"])
scenario = hk.Scenario({"lag": lag, "next": lag}, {"next.u": "lag.y"})
hk.run(hk.Composite(scenario, "1 ms"), stop="1000000 s", folder=sys.argv[1])
"""


def test_a_killed_run_can_be_opened(tmp_path):
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", LONG, str(folder)])
    samples = folder / "samples" / "000-outermost.arrow"
    sizes: list[int] = []
    deadline = time.monotonic() + 60
    while len(set(sizes)) < 4 and time.monotonic() < deadline:  # until some blocks were written
        if samples.exists():
            sizes.append(samples.stat().st_size)
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(set(sizes)) >= 4
    run = hk.open_run(folder)
    assert run.status == "killed"  # nobody was left to say so in run.json
    t, y = run["lag.y"]
    # every block that had been written is there: three columns of 8 bytes per row
    assert len(t) * 24 <= samples.stat().st_size
    assert len(t) * 24 > 0.9 * sizes[-1] - 4096
    assert np.array_equal(t, np.arange(len(t)) / 1000)
    assert y[:1000] == pytest.approx(np.exp(-t[:1000]), rel=1e-12)
    assert "step lag, next" in run.plan_text


class Alone:
    """Has no inputs at all."""

    outputs = ("y",)

    def start(self, t):
        pass

    def output(self, t):
        return t

    def step(self, t, h, u):
        assert u.shape == (1, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_simulator_without_inputs(engine):
    run = hk.run(hk.Composite(hk.Scenario({"alone": hk.Python(Alone)}), 0.25), 1, engine=engine)
    assert run["alone.y"].values.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


class Wrong:
    """Answers something else than asked for."""

    inputs = ("u = 0",)
    outputs = ("y",)

    def __init__(self, answer, at=0.45):
        self.answer, self.at = answer, at

    def start(self, t):
        pass

    def output(self, t):
        return [0.0] if t < self.at else self.answer

    def step(self, t, h, u):
        pass

    def close(self):
        if self.answer == "close":
            raise OSError("the line is busy")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "expected 1 numbers"),
        ([1.0, 2.0], "2 outputs were returned, expected 1"),
        (["high"], "`wrong` raised"),
        ([float("inf")], "`wrong.y` is inf"),
    ],
)
def test_wrong_outputs_are_named(answer, message, engine):
    composite = hk.Composite(hk.Scenario({"wrong": hk.Python(Wrong, answer=answer)}), 0.1)
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(composite, 1, engine=engine)
    assert message in str(caught.value)
    assert "`wrong" in str(caught.value)
    assert "t = 0.5 s" in str(caught.value)


def test_a_simulator_that_cannot_be_closed_does_not_cost_the_run():
    composite = hk.Composite(hk.Scenario({"wrong": hk.Python(Wrong, answer="close", at=9)}), 0.1)
    with pytest.warns(RuntimeWarning, match="the line is busy"):
        run = hk.run(composite, 1)
    assert run.status == "finished"


class Returning:
    """Returns something odd from step or slope."""

    inputs = ("u = 0",)
    outputs = ("y",)

    def __init__(self, reached=None, slope=0.0):
        self.reached, self.answer = reached, slope

    def start(self, t):
        pass

    def output(self, t):
        return 1.0

    def slope(self, t, u):
        if self.answer == "raise":
            raise RuntimeError("no slope here")
        return self.answer

    def step(self, t, h, u):
        return self.reached


def returning(**parameters) -> hk.Composite:
    models = {"odd": hk.Python(Returning, **parameters), "lag": LAG}
    wires = [("odd.y", "lag.u", hk.Hermite())]
    return hk.Composite(hk.Scenario(models, wires), 0.1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"reached": float("nan")}, "`odd` stopped at nan s instead of 0.1 s"),
        ({"reached": 0.05}, "`odd` stopped at 0.05 s instead of 0.1 s"),
        ({"reached": "soon"}, "`odd` raised"),
        ({"slope": "raise"}, "`odd` raised RuntimeError: no slope here"),
        ({"slope": None}, "`odd` raised TypeError"),
    ],
)
def test_odd_answers_are_blamed_on_their_simulator(parameters, message, engine):
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(returning(**parameters), 1, engine=engine)
    assert message in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_single_slope_needs_no_list(engine):
    t, y = hk.run(returning(), 1, engine=engine)["lag.y"]
    assert y == pytest.approx(np.ones_like(t), rel=1e-14)


def test_a_recorder_that_cannot_be_opened_is_the_error_and_the_run_has_failed(tmp_path, monkeypatch):
    """It was an IndexError, and run.json said "running" for ever."""
    folder, proper = tmp_path / "run", ArrowRecorder.open

    def occupied(recorder, tables):
        (folder / "samples").mkdir()
        (folder / "samples" / tables[0].file_name(0)).write_bytes(b"of another run")
        proper(recorder, tables)

    monkeypatch.setattr(ArrowRecorder, "open", occupied)
    with pytest.raises(
        hk.HocketError, match=r"cannot write `000-outermost.arrow`: File exists(.|\n)*choose a new folder"
    ):
        hk.run(lag(), 1, folder=folder)
    run = hk.open_run(folder)
    assert run.status == "failed"
    assert "File exists" in run.info["error"]


def test_a_run_that_would_never_end_is_refused():
    lag = hk.StateSpace([[-1.0]], C=[[1.0]], outputs=["y"])
    for step in ("1e-30 s", "1e-300 ms"):
        with pytest.raises(hk.ScenarioError, match="never ends") as caught:
            hk.run(hk.Composite(hk.Scenario({"lag": lag}), step), "1 s")
        assert caught.value.faults[0].expected == "at most 2^53 steps"
    with pytest.raises(hk.ScenarioError, match="would make 1e611 steps"):
        hk.run(hk.Composite(hk.Scenario({"lag": lag}), "1e-303 s"), 1e308)
    inside = hk.Composite(hk.Scenario({"lag": lag}), "1e-30 s")
    with pytest.raises(hk.ScenarioError, match="`inside` would make 1e30 steps"):
        hk.run(hk.Composite(hk.Scenario({"inside": inside}), "1 s"), "1 s")


def test_times_that_repeat_are_told():
    """Near 1e9 s two floats are 2^-23 s apart, 119 ns: a hundred steps of 1 ns have two times, or one."""
    lag = hk.StateSpace([[-1.0]], C=[[1.0]], outputs=["y"])
    run = hk.run(hk.Composite(hk.Scenario({"lag": lag}), "1 ns"), Fraction(10**16 + 1, 10**7), start=10**9)
    (note,) = run.info["notes"]
    assert "steps of 1 ns are shorter than the distance of two floats, 1.2e-07 s at 1e+09 s" in note
    assert "times repeat" in note
    assert len(np.unique(run["lag.y"].t)) <= 2
    assert not hk.run(hk.Composite(hk.Scenario({"lag": lag}), "1 ms"), 0.1, start=0).info["notes"]
