"""FMUs that end the process they run in: what is said before, and what is kept."""

import os
import re
import signal
import subprocess
import sys

import pytest

import hocket as hk
from fmus.build import build

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX")

SCRIPT = """
import faulthandler, sys
import hocket as hk

path, folder, engine, threads, when = sys.argv[1:]
if when == "before":
    faulthandler.enable()
fmu = hk.Fmu(path, isolate=False)
models = {"m": fmu, "n": fmu} if int(threads) > 1 else {"m": fmu}
level = hk.Composite(hk.Scenario(models), step=0.01)
if when == "after":
    hk.Fmu(path, isolate=False).open().close()
    faulthandler.enable()
hk.run(level, 1, folder=folder, engine=engine, threads=int(threads))
"""

SEGMENTATION = "segmentation fault (SIGSEGV)", -signal.SIGSEGV


def end(tmp_path, name, version=2, engine="native", threads=1, when=""):
    """Run an FMU in a process that it ends; return how that ended and what was said, and the run."""
    path = build(name, version, folder=tmp_path)
    command = [sys.executable, "-c", SCRIPT, path, tmp_path / "run", engine, threads, when]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    return done, hk.open_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "version", "engine", "ending", "function", "rows"),
    [
        ("crashes", 1, "native", SEGMENTATION, "fmiDoStep", 51),
        ("crashes", 2, "native", SEGMENTATION, "fmi2DoStep", 51),
        ("unreadable", 2, "native", SEGMENTATION, "fmi2GetReal", 50),
        ("unreadable", 2, "interpreter", SEGMENTATION, "fmi2GetReal", 50),
        ("aborts", 3, "interpreter", ("aborted (SIGABRT)", -signal.SIGABRT), "fmi3DoStep", 51),
        ("bottomless", 2, "interpreter", SEGMENTATION, "fmi2DoStep", 51),
        ("leaves", 2, "native", ("exit(0)", 1), "fmi2DoStep", 51),
        ("exits", 3, "native", ("exit(3)", 3), "fmi3DoStep", 51),
        ("stillborn", 2, "native", SEGMENTATION, "fmi2Instantiate", 0),
        ("badstart", 3, "native", SEGMENTATION, "fmi3ExitInitializationMode", 0),
        ("badend", 2, "native", SEGMENTATION, "fmi2FreeInstance", 101),
    ],
)
def test_the_last_words_of_a_process(tmp_path, name, version, engine, ending, function, rows):
    words, code = ending
    done, run = end(tmp_path, name, version, engine)
    assert done.returncode == code
    told = f"{words} in {function} of the FMU `m` ({tmp_path / name}.fmu)"
    assert done.stderr.splitlines() == [
        f"hocket: {told}",
        f"hocket: the rows of the run are kept in {tmp_path / 'run'}",
        "hocket: isolate=True (--isolate) gives an FMU a process of its own, and Python lives on",
    ]
    assert (run.status, run.info["error"]) == ("crashed", told)
    assert run.info["name"] == "run"
    if rows:
        assert run["m.y"].t == pytest.approx([0.01 * k for k in range(rows)])
        assert run["m.y"].values == pytest.approx(run["m.y"].t)
    assert sum(run.table(table.name).num_rows for table in run.tables) == rows


@pytest.mark.parametrize("when", ["before", "after"])
def test_handlers_of_others_have_their_turn(tmp_path, when):
    done, run = end(tmp_path, "crashes", when=when)
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.count("hocket: segmentation fault (SIGSEGV) in fmi2DoStep") == 1
    assert done.stderr.count("Fatal Python error: Segmentation fault") == 1
    assert "in run_experiment" in done.stderr
    assert run["m.y"].t[-1] == 0.5


def test_a_stack_that_overflows_in_a_thread(tmp_path):
    done, run = end(tmp_path, "bottomless", threads=2)
    assert done.returncode == -signal.SIGSEGV
    assert re.search(r"SIGSEGV\) in fmi2DoStep of the FMU `[mn]` ", done.stderr)  # the faster one
    assert run["m.y"].t[-1] == 0.5


def test_rescued_rows_that_are_damaged_are_not_read(tmp_path):
    _, run = end(tmp_path, "crashes")
    (file,) = (tmp_path / "run" / "samples").glob("*.rows")
    content = file.read_bytes()
    assert len(run["m.y"].t) == 51
    for damaged in (content[:-1], content + b"x", content[:100] + b"\x01" + content[101:], b"", content[:7]):
        file.write_bytes(damaged)
        assert len(hk.open_run(tmp_path / "run")["m.y"].t) == 0
    hk.run(tmp_path / "crashes.fmu", 0.1, step=0.1, folder=tmp_path / "run", overwrite=True)
    assert not file.exists()


def test_instances_of_one_binary_are_made_and_initialised_one_at_a_time(tmp_path):
    """It aborts when two are at the same time; other threads of Python go on meanwhile."""
    script = f"""
import threading
import numpy as np
import hocket as hk
def start(simulator):
    for _ in range(3):
        simulator.start(0.0)
        simulator.output(0.0, np.zeros((1, 1)))
        simulator.ready()
fmu = hk.Fmu({str(build("crowded", 2, folder=tmp_path))!r}, isolate=False)
threads = [threading.Thread(target=start, args=[fmu.open()]) for _ in range(4)]
for thread in threads:
    thread.start()
turns = 0
while any(thread.is_alive() for thread in threads):
    threads[0].join(0.001)
    turns += 1
print("done", turns > 50)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.stdout, done.stderr) == ("done True\n", "")


def test_a_crash_of_nobody_keeps_the_rows(tmp_path):
    script = f"""
import os, signal
import hocket as hk
fmu = hk.Fmu({str(build("lag", 2, folder=tmp_path))!r})
def stop(t, end):
    os.kill(os.getpid(), signal.SIGSEGV)
hk.run(fmu, 1, step=0.01, folder={str(tmp_path / "run")!r}, progress=stop)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment, check=False)
    assert done.returncode == -signal.SIGSEGV
    run = hk.open_run(tmp_path / "run")
    assert (run.status, run.info["error"]) == ("crashed", "segmentation fault (SIGSEGV)")
    assert len(run["lag.y"].t) == 101
