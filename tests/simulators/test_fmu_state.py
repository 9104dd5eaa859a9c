"""FMUs whose state is not what they say: frozen by a save, NULL, not restored, forgetful; each is named."""

import re
import shutil

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.simulators.fmu.probe import probe
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.wrappers.replay import Replay
from systems import ENGINES

pytestmark = pytest.mark.usefixtures("fresh_cache")

U = np.array([[1.0]])
EULER = 1.0 - 0.9 ** np.arange(4)  # of T y' = 1 - y with T = 1 s, steps of 0.1 s


def lag(tmp_path, version=2, *defines, **options):
    return Fmu(build("lag", version, folder=tmp_path, defines=defines), u=1.0, T=1.0, **options)


def composite(model, orchestrator="iterate", **options):
    gain = hk.StateSpace(D=[[1.0]], inputs=["u"], outputs=["y"])
    models = {"lag": model, "gain": gain} if orchestrator == "iterate" else {"lag": model}
    connections = {"gain.u": "lag.y"} if orchestrator == "iterate" else {}
    return hk.Composite(hk.Scenario(models, connections), "100 ms", orchestrator, **options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", [2, 3])
def test_a_state_of_this_very_time_is_not_before_it(tmp_path, version, engine, monkeypatch):
    """noSetFMUStatePriorToCurrentPoint is true: the state that iterations restore is that of this point."""
    file = tmp_path / "trace.txt"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(file))
    model = Fmu(build("lag", version, folder=tmp_path, trace=True), u=1.0)
    hk.run(composite(model), stop=0.3, engine=engine)
    steps = [line for line in file.read_text().splitlines() if "DoStep" in line]
    assert len(steps) > 3
    assert all("final=1" in line for line in steps)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", [2, 3])
def test_an_fmu_that_stands_still_while_an_earlier_state_is_kept_moves(tmp_path, version, engine):
    run = hk.run(composite(lag(tmp_path, version, "FREEZES_WHILE_SAVED")), stop=0.3, engine=engine)
    assert np.array(run["lag.y"]) == pytest.approx(EULER, abs=1e-14)


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_a_state_that_is_null_is_named(tmp_path, version, isolate):
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(composite(lag(tmp_path, version, "NULL_STATE", isolate=isolate)), stop=0.3)
    fault = caught.value.faults[0]
    assert "hands out none: the call returns OK and the state is NULL" in fault.what
    assert "`lag`" in fault.where
    assert "Replay" in fault.hint


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", [2, 3])
def test_a_restore_that_does_nothing_is_named(tmp_path, version, engine):
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(composite(lag(tmp_path, version, "RESTORE_DOES_NOTHING")), stop=0.3, engine=engine)
    fault = caught.value.faults[0]
    assert "restoring does nothing, output number 1 stays at 0.1: the same step from t = 0 s" in fault.what
    assert "Replay" in fault.hint


def test_a_restore_that_does_nothing_is_found_when_something_moves_at_last(tmp_path):
    """At rest, and by direct feedthrough, it looks as if it worked."""
    simulator = lag(tmp_path, 2, "RESTORE_DOES_NOTHING").open()
    simulator.start(0.0)
    rest, t = np.zeros((1, 1)), 0.0
    for _ in range(5):
        state = simulator.save()
        simulator.step(t, 0.1, rest)
        simulator.restore(state)
        t += 0.1
    state = simulator.save()
    simulator.step(t, 0.1, U)
    with pytest.raises(hk.SimulatorError, match=r"restoring does nothing, output number 1 stays at 0\.1"):
        simulator.restore(state)
    simulator.close()


def test_a_state_that_forgets_later_is_found_later(tmp_path):
    """Rewinds are tried out again when their number has doubled; the first ones were good."""
    model = Fmu(build("lag", 2, folder=tmp_path, defines=["FORGETS_LATE"]), u=1.0)
    simulator = model.open()
    simulator.start(0.0)

    def rewind_each_step():
        for k in range(20):
            state = simulator.save()
            simulator.step(0.1 * k, 0.1, U)
            simulator.restore(state)
            simulator.step(0.1 * k, 0.1, U)

    with pytest.raises(hk.SimulatorError, match=r"the same step from t = \S+ s ended at"):
        rewind_each_step()
    simulator.close()


# events that a state forgets

BOUNCE = (2 / 9.81) ** 0.5


def balls(tmp_path, name, **options):
    return Fmu(build(name, 3, folder=tmp_path, trace=True), **options)


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("name", ["ball", "forgetful"])
def test_a_lone_fmu_is_not_rolled_back_at_its_events(tmp_path, name, isolate, monkeypatch):
    """It stands where it stopped and goes on; the row of the event is there, after the bounce."""
    file = tmp_path / "trace.txt"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(file))
    model = balls(tmp_path, name, isolate=isolate)
    run = hk.run(hk.Composite(hk.Scenario({"ball": model}), "0.1 s"), stop=2)
    assert "FMUState" not in file.read_text()
    near = np.argmin(np.abs(run["ball.h"].t - BOUNCE))
    near = np.flatnonzero(run["ball.h"].t == run["ball.h"].t[near])[-1]
    assert run["ball.h"].t[near] == pytest.approx(BOUNCE, abs=1e-3)
    assert run["ball.v"].values[near] == pytest.approx(0.7 * 9.81 * BOUNCE, rel=5e-3)
    assert np.min(run["ball.h"].values) > -5e-3


def test_an_event_that_is_gone_when_the_step_is_made_again_is_an_error(tmp_path):
    models = {"ball": balls(tmp_path, "forgetful"), "lag": Fmu(build("lag", 3, folder=tmp_path))}
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(hk.Composite(hk.Scenario(models, {"lag.u": "ball.h"}), "0.1 s"), stop=2)
    fault = caught.value.faults[0]
    assert "it stopped at t = 0.45" in fault.what
    assert "the event was gone: its saved state lacks what tells events" in fault.what
    assert "`ball`" in fault.where
    assert "Replay" in fault.hint


def test_the_probe_finds_that_a_state_forgets_its_events(tmp_path):
    found = probe(balls(tmp_path, "forgetful"), here=True)
    assert found["rollback"].verdict == "false"
    assert "the event was gone" in found["rollback"].what


# frozen by a save


@pytest.mark.parametrize("version", [2, 3])
def test_the_probe_finds_that_an_fmu_stands_still_after_a_save(tmp_path, version):
    """An instance that saves beside one that does not: T = 1 s, u between 0 and 0.1."""
    model = lag(tmp_path, version, "FREEZES_AFTER_SAVE")
    found = probe(model, here=True)
    assert found.failed_checks == ("rollback",)
    assert (
        "it stands still once its state was saved: in 10 steps `y` stays at 0, and" in found["rollback"].what
    )
    with pytest.raises(hk.ScenarioError, match="declares it, but a trial found: it stands still"):
        hk.run(composite(copied(model.file, tmp_path / "elsewhere")), stop=0.3)


# what a probe has found is remembered


def copied(path, folder):
    folder.mkdir()
    return Fmu(shutil.copy(path, folder), u=1.0)


@pytest.mark.parametrize("orchestrator", ["iterate", hk.Adaptive(estimate="richardson")])
def test_an_fmu_that_a_probe_found_unable_is_refused_by_name(tmp_path, orchestrator):
    model = lag(tmp_path, 2, "RESTORE_DOES_NOTHING")
    assert model.capabilities.rollback
    assert probe(model, here=True)["rollback"].verdict == "false"
    again = copied(model.file, tmp_path / "elsewhere")  # the same bytes
    assert not again.capabilities.rollback
    with pytest.raises(hk.ScenarioError) as caught:
        hk.run(composite(again, orchestrator), stop=0.3)
    fault = caught.value.faults[0]
    assert "`lag` declares it, but a trial found:" in fault.what
    assert "restoring does nothing" in fault.what
    assert "probe it again" in fault.what
    assert "Replay" in fault.hint
    run = hk.run(composite(Replay(again), "iterate"), stop=0.3)
    assert np.array(run["lag.y"]) == pytest.approx(EULER, abs=1e-14)


def test_what_was_found_is_forgotten_where_it_cannot_be_read(tmp_path):
    model = lag(tmp_path, 2, "RESTORE_DOES_NOTHING")
    probe(model, here=True)
    (kept,) = (tmp_path / "cache" / "findings").iterdir()
    text = kept.read_text()
    assert "rollback" in model.refuted
    for damaged in (text[:-9], text.replace('"hocket_findings": 1', '"hocket_findings": 2'), "[]", ""):
        kept.write_text(damaged)
        assert model.refuted == {}


def test_an_honest_fmu_stays_trusted(tmp_path):
    model = lag(tmp_path)
    assert probe(model, here=True).failed_checks == ()
    assert copied(model.file, tmp_path / "elsewhere").capabilities.rollback


# the stop time


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("lists_time", [False, True])
def test_an_fmu_that_goes_to_the_stop_time_in_its_first_step_is_named(tmp_path, engine, isolate, lists_time):
    def without_time(xml):
        return re.sub(r'causality="independent"', 'causality="local"', xml)

    path = build(
        "lag", 2, folder=tmp_path, defines=["RUNS_TO_STOP"], xml=None if lists_time else without_time
    )
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(
            hk.Composite(hk.Scenario({"lag": Fmu(path, u=1.0, isolate=isolate)}), "0.1 s"),
            stop=1,
            engine=engine,
        )
    fault = caught.value.faults[0]
    assert (
        "it goes to the stop time in its first step: its own time is 1 s after a step to t = 0.2 s"
        in fault.what
    )
    assert "stop_time = false" in fault.hint
    model = Fmu(path, u=1.0, isolate=isolate, stop_time=False)
    run = hk.run(hk.Composite(hk.Scenario({"lag": model}), "0.1 s"), stop=0.3, engine=engine)
    assert np.array(run["lag.y"]) == pytest.approx(EULER, abs=1e-14)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_at_rest_after_its_first_step_is_not_blamed(tmp_path, version):
    """T = h: explicit Euler arrives in one step, and stays; the time of the FMU is what it should be."""
    model = Fmu(build("lag", version, folder=tmp_path), u=1.0, T=0.1)
    run = hk.run(hk.Composite(hk.Scenario({"lag": model}), "0.1 s"), stop=1)
    assert run["lag.y"].values[1:] == pytest.approx(np.ones(10), abs=1e-14)


# frozen by a save, noticed in the run: nothing was tried beforehand

RICHARDSON = hk.Adaptive(estimate="richardson")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_a_run_notices_that_nothing_moves_since_a_state_was_saved(tmp_path, version, isolate, engine):
    """1 - 0.9^3 = 0.271: three steps of 0.1 s of T y' = 1 - y, that it makes without a state."""
    model = lag(tmp_path, version, "FREEZES_AFTER_SAVE", isolate=isolate)
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(composite(model), stop=0.5, engine=engine)
    fault = caught.value.faults[0]
    assert (
        "it stands still once its state was saved: in 3 steps `y` stays at 0, and goes to 0.271" in fault.what
    )
    assert "`lag`" in fault.where
    assert "Replay" in fault.hint
    with pytest.raises(hk.ScenarioError, match="declares it, but a trial found: it stands still"):
        hk.run(composite(Fmu(model.file, u=1.0)), stop=0.5, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("define", ["FREEZES_AFTER_SAVE", "FREEZES_WHILE_SAVED"])
def test_step_control_notices_what_stands_still(tmp_path, define, engine):
    """In halves of steps behind a state, too; it rolls back where nothing is behind one, and may there."""
    model = lag(tmp_path, 2, define, isolate=False)
    with pytest.raises(hk.SimulatorError, match="it stands still once its state was saved") as caught:
        hk.run(composite(model, RICHARDSON), stop=2, engine=engine)
    assert "`lag`" in caught.value.faults[0].where
    if define == "FREEZES_WHILE_SAVED":
        run = hk.run(composite(model), stop=0.3, engine=engine)
        assert np.array(run["lag.y"]) == pytest.approx(EULER, abs=1e-14)


@pytest.mark.parametrize("engine", ENGINES)
def test_direct_feedthrough_does_not_hide_that_it_stands_still(tmp_path, engine):
    """q = sin z + 0.6 w z of the plant moves with w while z stands still; z0 = 0.5, and w never rests."""
    path = build("plant", 2, folder=tmp_path, defines=["FREEZES_AFTER_SAVE"])
    sine = hk.Function(lambda t: 2.0 + np.sin(5.0 * t), outputs=["y"])
    models = {"plant": Fmu(path, p=0.6, z0=0.5, isolate=False), "sine": sine}
    connections = {"plant.w": "sine.y", "plant.u": "sine.y"}
    level = hk.Composite(hk.Scenario(models, connections), "100 ms", "iterate")
    with pytest.raises(hk.SimulatorError, match="it stands still once its state was saved"):
        hk.run(level, stop=2, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "values"), [("lag", {}), ("gain", {"u": 1.0}), ("plant", {})])
def test_what_is_at_rest_is_not_called_frozen(tmp_path, name, values, engine):
    """Nothing moves in the run; the trial pushes it, and it moves there with a state and without."""
    model = Fmu(build(name, 2, folder=tmp_path), isolate=False, **values)
    run = hk.run(hk.Composite(hk.Scenario({"m": model}), "100 ms", "iterate"), stop=5, engine=engine)
    assert run.status == "finished"
    assert run.info["notes"] == []


def test_where_no_state_is_saved_nothing_is_tried(tmp_path, monkeypatch):
    from hocket.simulators.fmu import first_contact

    monkeypatch.setattr(first_contact, "_compare_saving", None)
    hk.run(hk.Composite(hk.Scenario({"lag": Fmu(build("lag", 2, folder=tmp_path))}), "100 ms"), stop=5)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_isolated_fmu_is_taken_back_by_step_control(tmp_path, engine):
    """The native engine said that it was asked for a step it was not prepared for."""
    run = hk.run(composite(lag(tmp_path, isolate=True), RICHARDSON), stop=0.2, engine=engine)
    here = hk.run(composite(lag(tmp_path, isolate=False), RICHARDSON), stop=0.2, engine=engine)
    assert np.array_equal(run["lag.y"].values, here["lag.y"].values)


# outputs that begin with the first step


def heated(path, isolate, engine, step="100 ms", stop=1, **values):
    """Return the run of an FMU under the constant input 149."""
    constant = hk.Function(lambda t: 149.0, outputs=["y"])
    models = {"heat": Fmu(path, isolate=isolate, **values), "constant": constant}
    return hk.run(hk.Composite(hk.Scenario(models, {"heat.u": "constant.y"}), step), stop=stop, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_outputs_that_begin_when_initialisation_is_left_are_in_the_first_row(
    tmp_path, version, isolate, engine
):
    """v' = mu (1 - x^2) v - x = -2 for x = 2 and v = 0, in an FMU without inputs and in what it drives."""
    path = build("vanderpol", version, folder=tmp_path, defines=["OUTPUTS_AFTER_INITIALISATION"])
    models = {
        "source": Fmu(path, isolate=isolate, observe=["der_v"]),
        "driven": Fmu(build("gain", version, folder=tmp_path), k=3, isolate=isolate),
    }
    level = hk.Composite(hk.Scenario(models, {"driven.u": "source.der_v"}), "10 ms")
    run = hk.run(level, stop="20 ms", engine=engine)
    assert [run[name].values[0] for name in ("source.der_v", "driven.y")] == [-2.0, -6.0]
    assert run.info["notes"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_outputs_that_begin_with_the_first_step_are_noted(tmp_path, version, isolate, engine):
    """y = 2 u = 298, but 0 in the first row."""
    path = build("gain", version, folder=tmp_path, defines=["OUTPUTS_FROM_STEPS"])
    run = heated(path, isolate, engine)
    assert list(run["heat.y"].values[:2]) == [0.0, 298.0]
    (note,) = run.info["notes"]
    assert note == (
        "`heat`: it computes outputs from its first step on: the first row, and what it drives in the first "
        "step, does not have them (`y` is 0 and then 298)"
    )
    plain = heated(build("gain", version, folder=tmp_path / "plain"), isolate, engine)
    assert plain["heat.y"].values[0] == 298.0
    assert plain.info["notes"] == []


def test_what_moves_fast_in_its_first_step_is_not_late(tmp_path):
    """q = sin z, T z' = w - z with T = 25 ms settles in a step of 100 ms: a shorter one shows the way."""
    path = build("plant", 2, folder=tmp_path)
    constant = hk.Function(lambda t: 0.5, outputs=["y"])
    models = {"m": Fmu(path, T=0.025, isolate=False), "constant": constant}
    run = hk.run(hk.Composite(hk.Scenario(models, {"m.w": "constant.y"}), "100 ms"), stop=1)
    q = run["m.q"].values
    assert abs(q[1] - q[0]) > 20 * abs(q[2] - q[1]), "it jumps in its first step"
    assert run.info["notes"] == []


def test_an_input_that_jumps_in_the_first_step_is_not_the_fmus(tmp_path):
    step = hk.Function(lambda t: 1.0 if t > 0.0 else 0.0, outputs=["y"])
    models = {"m": Fmu(build("gain", 2, folder=tmp_path), isolate=False), "step": step}
    run = hk.run(hk.Composite(hk.Scenario(models, {"m.u": "step.y"}), "100 ms"), stop=1)
    assert list(run["m.y"].values[:3]) == [0.0, 2.0, 2.0]
    assert run.info["notes"] == []
