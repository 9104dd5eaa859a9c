"""A simulator that asks to end the simulation ends the run well: rows kept, the status says which one."""

import itertools
import json

import numpy as np
import pytest

import hocket as hk
from command_line import good
from fmus.build import build
from hocket.execution.run import run
from hocket.execution.sweep import sweep
from hocket.model.composite import Composite
from hocket.model.scenario import Scenario
from hocket.orchestrators import GaussSeidel, Iterate
from hocket.simulators.fmu.recipe import Fmu

KINDS = [
    *itertools.product(("stair", "landing"), (2, 3), ("co-simulation", "model-exchange"), (False, True)),
]
ENGINES = ("native", "interpreter")


def climbing(folder, name="stair", version=2, **options):
    told = {"needsCompletedIntegratorStep": "true"} if version == 3 else {}
    return Fmu(build(name, version, folder=folder, **told), **options)


def level(stair, step="50 ms", **more):
    return Composite(Scenario({"gain": stair_gain(), "stair": stair}, {"gain.u": "stair.x"}), step, **more)


def stair_gain():
    return hk.StateSpace([], [], [], [[2.0]], inputs=["u"], outputs=["y"])


@pytest.mark.parametrize(("name", "version", "interface", "isolate"), KINDS)
def test_a_run_ends_where_an_fmu_asks_for_it(tmp_path, name, version, interface, isolate):
    stair = climbing(tmp_path, name, version, interface=interface, isolate=isolate)
    seen = []
    for engine in ENGINES:
        done = run(level(stair), 2, engine=engine)
        assert done.status == "ended by `stair`"
        assert (done.info["status"], done.info["ended_by"], done.is_complete) == ("ended", "stair", True)
        assert done.info["reached"] == 0.75
        t, x = done["stair.x"].t, done["stair.x"].values
        np.testing.assert_allclose(np.unique(t), np.arange(16) * 0.05, atol=1e-12)
        np.testing.assert_allclose(x, t, atol=1e-9)
        twice = t[1:][np.diff(t) == 0.0]  # before and after an event, where it takes part in instants
        assert twice.tolist() == ([0.25, 0.5, 0.75] if stair.capabilities.events else [])
        assert "`stair` asked to end the simulation at t = 0.75 s" in done.info["notes"]
        seen.append(done["gain.y"].values)
    np.testing.assert_array_equal(*seen)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_end_inside_a_step_keeps_the_rows_before_it(tmp_path, version, engine):
    interface = "co-simulation" if version == 2 else "model-exchange"
    done = run(level(climbing(tmp_path, version=version, interface=interface), "200 ms"), 2, engine=engine)
    assert (done.status, done.info["reached"]) == ("ended by `stair`", pytest.approx(0.6))
    np.testing.assert_allclose(done["stair.x"].values, [0.0, 0.2, 0.4, 0.6], atol=1e-9)
    told = "`stair` asked to end the simulation at t = 0.6 s, inside the step that follows"
    assert told in done.info["notes"]
    assert not [note for note in done.info["notes"] if note.startswith("stopped")], "it was not stopped"
    assert done.info["within_step"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_level_that_handles_early_returns_ends_where_the_fmu_does(tmp_path, engine):
    done = run(climbing(tmp_path, "stair", 3, early_return=True), 2, step="200 ms", engine=engine)
    assert done.status == "ended by `stair`"
    assert done.info["reached"] == pytest.approx(0.75)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("every", "reached"), [("50 ms", 0.7), ("250 ms", 0.75)])
def test_a_level_inside_ends_the_run(tmp_path, engine, every, reached):
    """In steps of the outermost level: an end inside one of them is not one of its times."""
    inner = level(climbing(tmp_path), every)
    outer = Composite(Scenario({"inner": inner, "gain": stair_gain()}, {"gain.u": "inner.stair.x"}), "100 ms")
    outer = outer.with_changes(step="350 ms") if every == "50 ms" else outer.with_changes(step=every)
    done = run(outer, outer.step * 8, engine=engine)
    assert (done.status, done.info["reached"]) == ("ended by `inner.stair`", pytest.approx(reached))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("orchestrator", [GaussSeidel(), Iterate(tolerance=1e-9)])
def test_steps_that_are_made_again_end_it_once(tmp_path, engine, orchestrator):
    done = run(level(climbing(tmp_path), orchestrator=orchestrator), 2, engine=engine)
    assert (done.status, done.info["reached"]) == ("ended by `stair`", 0.75)


def test_the_last_row_is_kept_though_none_is_due(tmp_path):
    for engine in ENGINES:
        done = run(level(climbing(tmp_path)), 2, every="200 ms", engine=engine)
        np.testing.assert_allclose(done["stair.x"].t, [0.0, 0.2, 0.4, 0.6, 0.75], atol=1e-12)


def test_an_end_at_the_stop_time_is_the_end(tmp_path):
    assert run(level(climbing(tmp_path)), 0.75).status == "finished"


def test_a_paced_run_ends_too(tmp_path):
    done = run(level(climbing(tmp_path)), 2, realtime=100.0)
    assert (done.status, done.info["reached"]) == ("ended by `stair`", 0.75)


def test_each_run_of_a_sweep_ends_by_itself(tmp_path):
    tops = [1.0, 2.0, 3.0, 100.0]
    stair = climbing(tmp_path)
    found = sweep(level(stair), [{"stair.top": top} for top in tops], 2, workers=2)
    assert [done.info["reached"] for done in found] == [0.25, 0.5, 0.75, 2.0]
    assert [done.status for done in found] == ["ended by `stair`"] * 3 + ["finished"]


def test_a_python_class_may_ask_for_it(tmp_path):
    (tmp_path / "tired.py").write_text(
        "from hocket.errors import EndRequestError\n"
        "class Tired:\n    outputs = ('y',)\n    def start(self, t): self.t = t\n"
        "    def output(self, t, u): return [t]\n"
        "    def step(self, t, h, u):\n"
        "        if t > 0.45: raise EndRequestError('enough')\n"
    )
    model = hk.Python("tired:Tired", folder=tmp_path)
    for engine in ENGINES:
        done = run(Composite(Scenario({"tired": model}), "100 ms"), 2, engine=engine)
        assert (done.status, done.info["reached"]) == ("ended by `tired`", 0.5)


def test_the_command_line_says_so_and_is_content(tmp_path):
    file = build("stair", folder=tmp_path)
    told = good("run", file, "--stop", 2, "--step", "50ms", "--folder", tmp_path / "run")
    assert "stair ended by `stair`: 15 steps from 0 to 0.75 s of 2 s" in told
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "ended"
    words = ("--stop", 2, "--step", "50ms", "--vary", "top=1,2", "--folder", tmp_path / "sweep")
    assert good("sweep", file, *words).count("ended by `stair`") == 2
    good("report", tmp_path / "run", "--out", tmp_path / "page.html")


@pytest.mark.parametrize("method", ["adaptive", "cvode"])
@pytest.mark.parametrize("name", ["stair", "landing"])
def test_solvers_in_python_end_it_too(tmp_path, name, method):
    stair = climbing(tmp_path, name, interface="model-exchange", method=method)
    done = run(level(stair), 2)
    assert (done.status, done.info["reached"]) == ("ended by `stair`", 0.75)
    done = run(level(stair, "200 ms"), 2)
    assert done.status == "ended by `stair`"
    assert 0.6 <= done.info["reached"] + 1e-9 <= 0.8 + 1e-6
