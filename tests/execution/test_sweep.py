"""Sweeps: many runs at a time, in order, whatever happens to some of them."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.errors import FileError
from hocket.execution import sweep_process
from systems import FREE_LAG

pytestmark = pytest.mark.usefixtures("fresh_cache")


def decay(t, x, u, rate):
    return -rate * x


def decaying(step=0.1):
    return hk.Composite(
        hk.Scenario({"ode": hk.Ode(decay, x0=[1.0], outputs=["x"], rate=1.0), "lag": FREE_LAG}), step
    )


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("workers", [None, 1, 5])
def test_an_fmu_in_many_ways(tmp_path, version, workers):
    fmu = hk.Fmu(build("lag", version, folder=tmp_path), y0=1.0)
    wanted = [{"T": float(T)} for T in range(1, 13)]
    runs = hk.sweep(fmu, wanted, stop=1, step="10 ms", workers=workers)
    assert [run.info["parameters"] for run in runs] == wanted
    finals = [run.final("lag.y") for run in runs]
    assert finals == pytest.approx([(1 - 0.01 / one["T"]) ** 100 for one in wanted], rel=1e-12)
    alone = [hk.run(fmu, 1, step="10 ms", parameters=one).final("lag.y") for one in wanted]
    assert finals == alone


def test_fmus_that_are_coupled(tmp_path):
    first, second = (hk.Fmu(build(name, 2, folder=tmp_path)) for name in ("first", "second"))
    wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    inner = hk.Composite(hk.Scenario({"first": first, "second": second}, wires), "10 ms")
    outer = hk.Composite(hk.Scenario({"pair": inner}), "10 ms")
    hk.write(inner, tmp_path / "pair.toml")
    wanted = [0.1, 0.2, 0.4]
    finals = []
    for what, path in (
        (inner, "second.x0"),
        (outer, "pair.second.x0"),
        (tmp_path / "pair.toml", "second.x0"),
    ):
        runs = hk.sweep(what, [{path: x0} for x0 in wanted], 1)
        finals.append([run.final(path.removesuffix("0")) for run in runs])
    assert finals[0] == finals[1] == finals[2]
    steps = np.diff(finals[0])
    assert steps[1] == pytest.approx(2 * steps[0], rel=1e-9), "the system is linear"


def test_models_in_python():
    runs = hk.sweep(decaying(), [{"ode.rate": rate} for rate in (1.0, 2.0, 3.0)], 1, record="ode.x")
    assert [run.final("ode.x") for run in runs] == pytest.approx(np.exp([-1, -2, -3]), rel=1e-3)
    assert all(run.ports == ("ode.x",) for run in runs)


def test_folders_count_up(tmp_path):
    sets = [{"ode.rate": 1.0}, {"ode.rate": 2.0}]
    hk.sweep(decaying(), sets, 1, folder=tmp_path / "many")
    assert sorted(path.name for path in (tmp_path / "many").iterdir()) == ["001", "002", "sweep.json"]
    assert hk.open_run(tmp_path / "many" / "002").info["parameters"] == {"ode.rate": 2.0}
    with pytest.raises(FileError, match="`001` holds a run already"):
        hk.sweep(decaying(), sets, 1, folder=tmp_path / "many")
    hk.sweep(decaying(), sets, 2, folder=tmp_path / "many", overwrite=True)
    assert hk.open_run(tmp_path / "many" / "001").info["stop"] == 2


def test_nothing_to_run():
    assert hk.sweep(decaying(), [], 1) == []


def test_one_set_needs_no_list():
    (run,) = hk.sweep(decaying(), {"ode.rate": 2.0}, 1)
    assert run.status == "finished"


def test_errors_are_raised_when_all_is_done_or_returned(tmp_path):
    fmu = hk.Fmu(build("fails", 2, folder=tmp_path))
    sets = [{"at": 5.0}, {"at": 0.25}, {"at": 0.75}, {"at": 9.0}]
    results = hk.sweep(fmu, sets, 1, errors="return", folder=tmp_path / "kept")
    assert [isinstance(result, hk.SimulatorError) for result in results] == [False, True, True, False]
    assert [hk.open_run(tmp_path / "kept" / f"{n:03}").status for n in (1, 2, 3, 4)] == [
        "finished",
        "failed",
        "failed",
        "finished",
    ]
    with pytest.raises(hk.SimulatorError, match=r"t = 0\.3 s"):
        hk.sweep(fmu, sets, 1)


def test_what_is_wrong_is_known_before_anything_runs(tmp_path):
    fmu = hk.Fmu(build("gain", 2, folder=tmp_path))
    with pytest.raises(hk.ScenarioError) as caught:
        hk.sweep(fmu, [{"k": 1}, {"k": 200}, {"g": 1}, {"g": 2}], 1, folder=tmp_path / "none")
    assert [(fault.what, fault.where) for fault in caught.value.faults] == [
        ("`k` is 200.0", "parameters[1], `gain`"),
        ("there is no variable `g`", "parameters[2], `gain`"),
    ]
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameters": ["k"]}, "`parameters` cannot be 'k'"),
        ({"errors": "ignore"}, "`errors` cannot be 'ignore'"),
        ({"workers": 0}, "`workers` cannot be 0"),
        ({"stop": None}, "nothing says when the run stops"),
        ({"engine": "fast"}, "`engine` cannot be 'fast'"),
        ({"realtime": -1}, "`realtime` cannot be -1"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(hk.ScenarioError, match=message):
        hk.sweep(decaying(), **{"parameters": [{"ode.rate": 1.0}], "stop": 1, **arguments})


def test_options_that_do_not_exist():
    with pytest.raises(TypeError, match="sotp"):
        hk.sweep(decaying(), [{"ode.rate": 1.0}], 1, sotp=3)


def test_progress_ends_with_all():
    told = []
    hk.sweep(decaying(), [{"ode.rate": 1.0}] * 5, 1, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (5, 5)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_in_a_thread():
    results = []
    thread = threading.Thread(target=lambda: results.extend(hk.sweep(decaying(), [{"ode.rate": 1.0}] * 3, 1)))
    thread.start()
    thread.join(60)
    assert [run.status for run in results] == ["finished"] * 3


LONG = """
import sys
import hocket as hk
sets = [{"T": T} for T in (1.0, 2.0, 3.0, 4.0)]
runs = hk.sweep(sys.argv[1], sets, "1e9 s", every=1000, workers=2, folder="many")
print([run.status for run in runs], all(run.final("lag.y") >= 0 for run in runs))
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_stops_all_and_keeps_the_rows(tmp_path):
    path = build("lag", 2, folder=tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", LONG, str(path)], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    try:
        while len(list(tmp_path.glob("many/*/samples/*.arrow"))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert out == "['stopped', 'stopped'] True\n"
    assert sorted(path.name for path in (tmp_path / "many").iterdir()) == ["001", "002", "sweep.json"]
    run = hk.open_run(tmp_path / "many" / "001")
    assert run["lag.y"].t[-1] == run.info["reached"] > 0


# processes and threads


@pytest.mark.parametrize("name", ["lag", "types"])
def test_processes_and_threads_give_the_same_bits(tmp_path, name):
    path = build(name, 2, folder=tmp_path)
    sets = [{"T": T} for T in (0.5, 1.0, 2.0)] if name == "lag" else [{"p_real": p} for p in (0.1, 0.2)]
    tables = []
    for processes in (None, False, True):
        runs = hk.sweep(path, sets, 1, step="10 ms", processes=processes)
        tables.append([run.table().to_pydict() for run in runs])
        assert [run.info["parameters"] for run in runs] == sets
        here = [run.info["process"] == os.getpid() for run in runs]
        assert here == [processes is False] * len(sets)
    assert tables[0] == tables[1] == tables[2]


def test_an_fmu_that_crashes_ends_its_run_only(tmp_path):
    path = build("crashes", 2, folder=tmp_path)
    sets = [{"at": at} for at in (5.0, 0.25, 9.0, 0.75, 7.0)]
    for folder in (tmp_path / "kept", None):
        results = hk.sweep(path, sets, 1, step=0.1, workers=2, errors="return", folder=folder)
        assert [isinstance(result, hk.SimulatorError) for result in results] == [
            False,
            True,
            False,
            True,
            False,
        ]
        words = "its process ended: segmentation fault (SIGSEGV) in fmi2DoStep of the FMU `crashes`"
        assert str(results[1]) == f"{words} ({path})\n  where:    run 002"
        assert [results[k].final("crashes.y") for k in (0, 2, 4)] == pytest.approx([1.0] * 3)
    broken = hk.open_run(tmp_path / "kept" / "004")
    assert broken.status == "crashed"
    assert broken["crashes.y"].t == pytest.approx([0.1 * k for k in range(9)])


def test_an_fmu_that_exits_ends_its_run_only(tmp_path):
    results = hk.sweep(
        build("leaves", 2, folder=tmp_path), [{"at": 0.5}, {"at": 2.0}], 1, step=0.1, errors="return"
    )
    assert "exit(0) in fmi2DoStep" in str(results[0])
    assert results[1].status == "finished"


@pytest.mark.parametrize("processes", [False, True])
def test_fmus_that_must_not_be_initialised_at_once_take_turns(tmp_path, processes):
    """It aborts when two instances are made or initialised at the same time."""
    path = build("crowded", 3, folder=tmp_path)
    script = f"""
import hocket as hk
sets = [{{"at": float(k)}} for k in range(12)]
runs = hk.sweep({str(path)!r}, sets, 1, step=0.1, workers=4, processes={processes})
print({{run.status for run in runs}}, len(runs))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.stdout, done.stderr) == ("{'finished'} 12\n", "")


def test_what_has_no_name_elsewhere_runs_in_threads(tmp_path):
    fmu = hk.Fmu(build("lag", 2, folder=tmp_path))
    local = hk.Function(lambda t: t, outputs=["y"])
    level = hk.Composite(hk.Scenario({"lag": fmu, "f": local}, {"lag.u": "f.y"}), 0.1)
    (run,) = hk.sweep(level, [{"lag.T": 2.0}], 1)
    assert run.info["process"] == os.getpid()
    with pytest.raises(hk.ScenarioError, match="it holds what has no name there"):
        hk.sweep(level, [{"lag.T": 2.0}], 1, processes=True)


def test_what_fmus_say_in_processes_arrives(tmp_path, caplog):
    hk.sweep(build("chatty", 2, folder=tmp_path), [{"at": 1.0}, {"at": 2.0}], 1, step=0.1)
    words = [record.getMessage() for record in caplog.records]
    assert len([each for each in words if "all is well" in each]) == 20
    assert words[0] == "chatty: step 1 at 0 s: u = 0.000, all is well"


def test_errors_of_processes_have_their_parts(tmp_path):
    path = build("fails", 2, folder=tmp_path)
    both = []
    for processes in (True, False):
        folder = tmp_path / str(processes)
        (error,) = hk.sweep(
            path, {"at": 0.5}, 1, step=0.1, errors="return", processes=processes, folder=folder
        )
        both.append((type(error), error.faults[0].what, error.faults[0].where, len(error.__notes__)))
    assert both[0] == both[1]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nonsense",
        b"[]",
        b"7",
        b'{"kind": "attack"}',
        b'{"kind": "share"}',
        b'{"kind": "share", "share": "x"}',
        b'{"kind": "log", "level": []}',
        b'{"kind": "error", "name": "SimulatorError", "text": "", "faults": 3, "notes": []}',
        b'{"kind": "error", "name": ["SystemExit"]}',
        b'{"kind": ' * 10000,
    ],
)
def test_answers_of_processes_are_not_believed(line):
    with pytest.raises(ValueError, match=r"\w*"):
        sweep_process._decode_answer(line)


def test_errors_of_processes_are_of_known_kinds():
    line = b'{"kind": "error", "name": "SystemExit", "text": "0", "faults": [], "notes": []}'
    kind, error = sweep_process._decode_answer(line)
    assert (kind, type(error), str(error)) == ("error", RuntimeError, "SystemExit: 0")


HANGING = """
import sys, time
import hocket as hk
fmu = hk.Fmu(sys.argv[1], isolate=sys.argv[2] == "isolated" or None)
runs = hk.sweep(fmu, [{"at": 0.5}] * 6, 1, step=0.01, workers=2, folder="many", processes=eval(sys.argv[3]))
print([(run.status, float(run["hangs.y"].t[-1])) for run in runs])
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize(
    ("where", "processes"), [("isolated", True), ("isolated", False), ("in the worker", None)]
)
def test_one_ctrl_c_ends_a_sweep_of_fmus_that_hang(tmp_path, where, processes):
    path = build("hangs", 2, folder=tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, str(path), where, str(processes)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    try:
        while len(list(tmp_path.glob("many/*/plan.txt"))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "[('stopped', 0.5), ('stopped', 0.5)]\n", "")


def test_a_sweep_is_a_table_and_starts_are_parameters():
    """A lag from x0 = a towards 0 at rate k: exp(-k) a after 1 s, a (1 - exp(-k)) / k on average."""
    lag = hk.StateSpace([[-1.0]], [[]], [[1.0]], x0=[1.0], outputs=["y"])
    level = hk.Composite(hk.Scenario({"lag": lag}), "1 ms")
    cases = [{"lag.A[1,1]": -k, "lag.x0[1]": a} for k in (1.0, 2.0) for a in (1.0, 3.0)]
    runs = hk.sweep(level, cases, "1 s", processes=False)
    assert isinstance(runs, list)
    frame = runs.to_pandas()
    assert list(frame.columns) == ["lag.A[1,1]", "lag.x0[1]", "lag.y", "status"]
    assert frame["lag.y"].to_list() == pytest.approx([a * math.exp(-k) for k in (1, 2) for a in (1, 3)])
    exact = [a * (1 - math.exp(-k)) / k for k in (1, 2) for a in (1, 3)]
    assert runs.to_pandas("mean", ["*.y"])["lag.y"].to_list() == pytest.approx(exact, rel=1e-6)
    assert "<table" in runs._repr_html_()
    with pytest.raises(hk.ScenarioError, match="quantity"):
        runs.to_pandas("median")
    with pytest.raises(hk.ScenarioError, match=r"no element \[2\]"):
        hk.run(level, 1, parameters={"lag.x0[2]": 0.0})


def test_a_run_that_fails_has_a_row_without_values():
    def far(t, x, u, limit):
        if t > limit:
            raise ValueError("too far")
        return [0.0]

    level = hk.Composite(hk.Scenario({"m": hk.Ode(far, x0=[1.0], limit=5.0)}), "0.1 s")
    cases = [{"m.limit": 5.0}, {"m.limit": 0.5}]
    found = hk.sweep(level, cases, 1, processes=False, errors="return").to_pandas()
    assert found["status"].to_list() == ["finished", "failed"]
    assert found["m.x1"].isna().to_list() == [False, True]
