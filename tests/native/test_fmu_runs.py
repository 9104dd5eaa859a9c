"""FMUs that the native engine steps in one run, and leave midway: the same bits, the right one named."""

import os
import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from systems import ENGINES

COUNT = 7
PLACES = [0, 3, COUNT - 1]
"""Of the FMU that is different from its neighbours: the first of the run, amid it, the last."""
H = 0.1
"""The first eight macro steps find out whether threads pay, FMU by FMU; what is odd comes later."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def ring(folder, place, name, input="u", output="y", **how):
    """Return a ring of lags in which one FMU is another; the native engine steps all in one run."""
    lag = build("lag", 2, folder=folder)
    models = {f"m{k}": hk.Fmu(lag, y0=0.05 * (k + 1)) for k in range(COUNT)}
    models[f"m{place}"] = hk.Fmu(build(name, 2, folder=folder), **how)
    ports = [(input, output) if k == place else ("u", "y") for k in range(COUNT)]
    connections = {
        f"m{k}.{ports[k][0]}": f"m{k - 1 if k else COUNT - 1}.{ports[k - 1][1]}" for k in range(COUNT)
    }
    return hk.Composite(hk.Scenario(models, connections), H, "jacobi")


def euler(place, odd):
    """Return the rows of the ring: explicit Euler steps of the lags around what the odd FMU shows."""
    y = np.array([0.05 * (k + 1) for k in range(COUNT)])
    y[place] = odd[0]
    rows = [y]
    for value in odd[1:]:
        y = y + H * (np.roll(y, 1) - y) / 1.0
        y[place] = value
        rows.append(y)
    return np.array(rows)


def rows_of(run, place, output="y"):
    return np.array([run[f"m{k}.{output if k == place else 'y'}"].values for k in range(COUNT)]).T


def run_both(level, tmp_path, stop):
    """Run a level in both engines; return the error of each, if any, and its run."""
    outcomes = []
    for engine in ENGINES:
        error = None
        try:
            hk.run(level, stop, engine=engine, folder=tmp_path / engine)
        except hk.SimulatorError as caught:
            error = caught.faults[0]
        outcomes.append((error, hk.open_run(tmp_path / engine)))
    return outcomes


STUCK = "fmi2DoStep returned Error: step 16 at 1.5 s: the valve is stuck"
GONE = "fmi2DoStep returned Fatal: step 16 at 1.5 s: the valve is gone"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("name", "at", "what", "where", "last"),
    [
        ("fails", 1.5, STUCK, "`m{}`, step() at t = 1.5 s", 15),
        ("fatal", 1.5, GONE, "`m{}`, step() at t = 1.5 s", 15),
        ("nan", 1.5, "`m{}.y` is nan", "output at t = 1.5 s", 14),
        ("discards", 1.55, "`m{}` stopped at 1.55 s instead of 1.6 s", "step from t = 1.5 s by 0.1 s", 15),
    ],
)
def test_an_fmu_that_fails_in_a_run_is_named_and_the_rows_before_are_kept(
    folder, tmp_path, name, at, what, where, last, place
):
    for error, run in run_both(ring(folder, place, name, at=at), tmp_path, stop=2):
        assert (error.what, error.where) == (what.format(place), where.format(place))
        assert run.status == "failed"
        times = np.array([H * k for k in range(last + 1)])
        assert rows_of(run, place) == pytest.approx(euler(place, times), rel=1e-14, abs=1e-15)
    one, other = (rows_of(hk.open_run(tmp_path / engine), place) for engine in ENGINES)
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("top", "last", "words"), [(6.0, 15, ""), (7.0, 17, ", inside the step that follows")]
)
def test_an_fmu_that_asks_to_end_in_a_run_ends_it_well(folder, tmp_path, place, top, last, words):
    """At 1.5 s, where a step ends, and at 1.75 s, amid one: y counts the treads of 0.25 s."""
    outcomes = run_both(ring(folder, place, "landing", top=top), tmp_path, stop=2)
    for error, run in outcomes:
        assert error is None
        assert run.status == f"ended by `m{place}`"
        assert run.info["notes"] == [f"`m{place}` asked to end the simulation at t = {last / 10} s{words}"]
        treads = [2 * k // 5 for k in range(last + 1)]
        assert rows_of(run, place) == pytest.approx(euler(place, treads), rel=1e-14, abs=1e-15)
    one, other = (rows_of(run, place) for _, run in outcomes)
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("place", PLACES)
def test_an_event_of_an_fmu_in_a_run_lets_all_roll_back_and_step_to_it(folder, tmp_path, place):
    """The tank drains by 0.2 m/s and stops at 1 m, at 1.25 s: its neighbours have stepped, or not."""
    how = {"input": "valve", "output": "level", "level0": 1.25, "early_return": True}
    outcomes = run_both(ring(folder, place, "tank", **how), tmp_path, stop=1.5)
    for error, run in outcomes:
        assert error is None
        times = run["m1.y" if place != 1 else "m0.y"].t
        assert sorted(set(np.round(times, 12))) == sorted({1.25, *np.round(np.arange(16) / 10, 12)})
        rows = rows_of(run, place, "level")
        assert rows[:, place] == pytest.approx(1.25 - 0.2 * times, abs=1e-12)
        for (t, row), (after, found) in pairwise(zip(times, rows, strict=True)):
            expected = row + (after - t) * (np.roll(row, 1) - row)
            assert np.delete(found, place) == pytest.approx(np.delete(expected, place), abs=1e-12)
    one, other = (rows_of(run, place, "level") for _, run in outcomes)
    assert one.tobytes() == other.tobytes()


def test_an_event_of_another_simulator_shortens_the_steps_of_a_run(folder, tmp_path):
    """A saw tooth of 0.25 s drives a chain of lags; its event is behind the step that the run has made."""
    lag = build("lag", 2, folder=folder)
    saw = hk.Ode(
        lambda t, x, u: [-1.0],
        x0=[0.25],
        outputs=["h"],
        events=[hk.Event(lambda t, x, u: x[0], "falling", lambda t, x, u: [0.25])],
    )
    models = {f"m{k}": hk.Fmu(lag, y0=0.1 * k) for k in range(COUNT)} | {"saw": saw}
    connections = {f"m{k}.u": f"m{k - 1}.y" if k else "saw.h" for k in range(COUNT)}
    outcomes = run_both(hk.Composite(hk.Scenario(models, connections), H, "jacobi"), tmp_path, stop=2)
    for _, run in outcomes:
        times = run["saw.h"].t
        assert set(np.round(times, 9)) == {0.25, 0.75, 1.25, 1.75, *np.round(np.arange(21) / 10, 9)}
        rows, drive = rows_of(run, None), run["saw.h"].values
        for k, (t, after) in enumerate(pairwise(times)):
            before = np.array([drive[k], *rows[k][:-1]])
            assert rows[k + 1] == pytest.approx(rows[k] + (after - t) * (before - rows[k]), abs=1e-10)
    one, other = (rows_of(run, None) for _, run in outcomes)
    assert one.tobytes() == other.tobytes()


CRASH = """
import sys
import hocket as hk

lag, odd, place, folder = sys.argv[1:]
models = {f"m{k}": hk.Fmu(lag, isolate=False) for k in range(7)}
models[f"m{place}"] = hk.Fmu(odd, at=1.5, isolate=False)
connections = {f"m{k}.u": f"m{(k - 1) % 7}.y" for k in range(7)}
hk.run(hk.Composite(hk.Scenario(models, connections), 0.1, "jacobi"), 2, folder=folder, engine="native")
"""


@pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX")
@pytest.mark.parametrize(
    ("place", "name", "function"),
    [(0, "crashes", "DoStep"), (3, "unreadable", "GetReal"), (6, "leaves", "DoStep")],
)
def test_the_last_words_name_the_fmu_of_a_run_that_ends_python(folder, tmp_path, place, name, function):
    """Nothing is written down between the FMUs of a run but where they keep what they call."""
    paths = [build(model, 2, folder=folder) for model in ("lag", name)]
    done = subprocess.run(
        [sys.executable, "-c", CRASH, *map(str, [*paths, place, tmp_path / "run"])],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=120,
    )
    assert done.returncode
    assert re.search(rf"in fmi2{function} of the FMU `m{place}` ", done.stderr.splitlines()[0])
    assert hk.open_run(tmp_path / "run").status == "crashed"
