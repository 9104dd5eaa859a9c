"""First contact: an FMU that is new is tried elsewhere, once; what ended the trial stays isolated."""

import ctypes
import json
import math
import os
import platform
import subprocess
import sys

import pytest

import hocket as hk
from command_line import invoked
from fmus.build import build
from hocket.simulators.fmu import findings, first_contact, isolated
from hocket.simulators.fmu.isolated import IsolatedFmu
from hocket.simulators.fmu.probe import probe
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.wrappers.replay import Replay
from systems import ENGINES

pytestmark = [
    pytest.mark.usefixtures("fresh_cache"),
    pytest.mark.skipif(os.name != "posix", reason="FMUs are isolated by means of POSIX"),
]


@pytest.fixture(autouse=True)
def wanted(monkeypatch):
    """Let FMUs be tried; nothing is known of any."""
    monkeypatch.setenv(first_contact.SWITCH, "1")
    first_contact._known.clear()
    first_contact._sharing.clear()
    first_contact._freezes.clear()
    first_contact._unfinished.clear()


@pytest.fixture
def trials(monkeypatch):
    """The files that were tried."""
    tried, real = [], first_contact._try_out

    def counted(model):
        tried.append(model.file.name)
        return real(model)

    monkeypatch.setattr(first_contact, "_try_out", counted)
    return tried


def kept():
    """What the files say."""
    files = findings.cache_folder("findings").glob("*.json")
    return [json.loads(file.read_text())["first contact"] for file in files]


def test_a_good_fmu_is_tried_once_and_runs_here(tmp_path, trials, monkeypatch):
    path = build("lag", 2, folder=tmp_path)
    for _ in range(2):
        run = hk.run(path, 0.1, step=0.1)
        assert run.info["notes"] == []
    first_contact._known.clear()  # as in another process
    build("lag", 2, folder=tmp_path / "copy")
    hk.run(tmp_path / "copy" / "lag.fmu", 0.1, step=0.1)
    assert trials == ["lag.fmu"]
    assert kept() == [{"co-simulation": ""}]
    assert not Fmu(path).is_isolated
    hk.run(Fmu(path, interface="model-exchange"), 0.1, step=0.1)
    assert trials == ["lag.fmu", "lag.fmu"], "another interface, other functions"


# instances that share something


def two_lags(path, **options):
    models = {"low": Fmu(path, u=1.0, **options), "high": Fmu(path, u=2.0, **options)}
    return hk.Composite(hk.Scenario(models), "100 ms")


@pytest.mark.parametrize("interface", ["co-simulation", "model-exchange"])
@pytest.mark.parametrize("version", [2, 3])
def test_instances_that_share_their_state_are_kept_apart(tmp_path, version, interface):
    """0.271 = 1 - 0.9^3 of u: steps of 0.1 s of T y' = u - y, as one alone makes them."""
    path = build("lag", version, folder=tmp_path, defines=["SHARES_STATE"])
    run = hk.run(two_lags(path, interface=interface), stop=0.3)
    exact = 0.271 if interface == "co-simulation" else 1.0 - math.exp(-0.3)
    assert run.final("low.y") == pytest.approx(exact, rel=1e-7)
    assert run.final("high.y") == pytest.approx(2.0 * exact, rel=1e-7)
    assert len(run.info["notes"]) == 2
    assert all("instances of it disturb each other in one process: `y` is" in n for n in run.info["notes"])
    assert Fmu(path, interface=interface).is_isolated
    if interface == "co-simulation":  # hocket sets the states of the other itself
        here = hk.run(two_lags(path, interface=interface, isolate=False), stop=0.3)
        assert here.final("low.y") != pytest.approx(exact, rel=1e-3)


def test_a_second_instance_that_is_refused_gets_a_process_of_its_own(tmp_path):
    path = build("single", 2, folder=tmp_path, canBeInstantiatedOnlyOncePerProcess=None)
    run = hk.run(hk.Composite(hk.Scenario({"one": Fmu(path), "other": Fmu(path)}), "100 ms"), stop=0.3)
    assert any("a second instance in its process reports an error" in note for note in run.info["notes"])


@pytest.mark.parametrize(("name", "version"), [("lag", 1), ("ball", 2), ("arrays", 3), ("types", 3)])
def test_honest_instances_do_not_disturb_each_other(tmp_path, name, version):
    model = Fmu(build(name, version, folder=tmp_path))
    first_contact.meet(model)
    assert first_contact.recorded_sharing(model) == ""
    assert not model.is_isolated


def rounds_to_nearest():
    """Return whether this thread does, and not upwards: in arithmetic, and where texts become numbers."""
    return 1.0 + float.fromhex("0x1p-60") == 1.0 and ctypes.CDLL(None).fegetround() == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_fmu_that_changes_how_its_process_rounds_gets_one_of_its_own(tmp_path, version, engine):
    path = build("lag", version, folder=tmp_path, defines=["ROUNDS_UP"])
    run = hk.run(Fmu(path, u=1.0), stop=0.3, step=0.1, engine=engine)
    (note,) = run.info["notes"]
    assert "it changes how its process computes with floating-point numbers" in note
    assert rounds_to_nearest()
    first_contact._known.clear()
    run = hk.run(Fmu(path, u=1.0, isolate=False), stop=0.3, step=0.1, engine=engine)
    assert rounds_to_nearest(), "it was set back"
    assert run.final("lag.y") == pytest.approx(0.271, rel=1e-12)


def test_what_is_random_in_each_process_is_not_called_shared(tmp_path, monkeypatch):
    model = Fmu(build("lag", 2, folder=tmp_path, defines=["SHARES_STATE"]))
    monkeypatch.setattr(first_contact, "_repeats", lambda _: False)
    first_contact.meet(model)
    assert first_contact.recorded_sharing(model) == ""


# frozen by a save

FROZEN = "it stands still once its state was saved: in 3 steps `y` stays at 0, and goes to 0.271 without that"


def coupled(model, orchestrator):
    gain = hk.StateSpace(D=[[1.0]], inputs=["u"], outputs=["y"])
    return hk.Composite(
        hk.Scenario({"lag": model, "gain": gain}, {"gain.u": "lag.y"}), "100 ms", orchestrator
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("orchestrator", "isolate"), [("iterate", None), (hk.Adaptive(estimate="richardson"), True)]
)
def test_an_fmu_that_stands_still_after_a_save_is_an_error_at_its_first_save(
    tmp_path, engine, isolate, orchestrator
):
    """1 - 0.9^3 = 0.271: steps of 0.1 s of T y' = 1 - y. What does not save runs."""
    path = build("lag", 2, folder=tmp_path, defines=["FREEZES_AFTER_SAVE"])
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(coupled(Fmu(path, u=1.0, isolate=isolate), orchestrator), stop=0.3, engine=engine)
    fault = caught.value.faults[0]
    assert FROZEN in fault.what
    assert "`lag`" in fault.where
    assert "Replay" in fault.hint
    with pytest.raises(hk.ScenarioError, match="declares it, but a trial found: it stands still"):
        hk.run(coupled(Fmu(path, u=1.0, isolate=isolate), orchestrator), stop=0.3, engine=engine)
    for model, algorithm in ((Fmu(path, u=1.0), "jacobi"), (Replay(Fmu(path, u=1.0)), orchestrator)):
        run = hk.run(coupled(model, algorithm), stop=0.3, engine=engine)
        assert run["lag.y"].values[-1] == pytest.approx(0.271, abs=0.02)


def test_an_fmu_at_rest_is_moved_by_other_inputs(tmp_path):
    """u = 0 leaves it at rest; the trial takes u = 0.1 then."""
    path = build("lag", 3, folder=tmp_path, defines=["FREEZES_AFTER_SAVE"])
    with pytest.raises(hk.SimulatorError, match=r"`y` stays at 0, and goes to 0\.0271 without"):
        hk.run(coupled(Fmu(path), "iterate"), stop=0.3)


@pytest.mark.parametrize("name", ["lag", "gain", "ball", "single", "discards", "chatty"])
def test_what_moves_or_never_does_is_not_called_frozen(tmp_path, name):
    assert first_contact.find_freeze(Fmu(build(name, 2, folder=tmp_path))) == ""


def test_a_probe_that_finds_nothing_lets_it_save_again(tmp_path, monkeypatch):
    model = Fmu(build("lag", 2, folder=tmp_path), u=1.0)
    monkeypatch.setattr(first_contact, "_compare_saving", lambda _: (True, "it stands still"))
    assert first_contact.find_freeze(model) == "it stands still"
    assert not Fmu(model.file).capabilities.rollback
    probe(model, here=True)
    assert Fmu(model.file).capabilities.rollback
    assert first_contact.find_freeze(Fmu(model.file)) == ""


# what ends the process


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stillborn", "segmentation fault (SIGSEGV) in fmi2Instantiate"),
        ("badstart", "segmentation fault (SIGSEGV) in fmi2ExitInitializationMode"),
        ("crashes", "segmentation fault (SIGSEGV) in fmi2DoStep"),
        ("leaves", "exit code 0 in fmi2DoStep"),
        ("badend", "segmentation fault (SIGSEGV) in fmi2FreeInstance"),
    ],
)
def test_what_ends_its_trial_stays_isolated(tmp_path, caplog, trials, name, words):
    model = Fmu(build(name, 2, folder=tmp_path), **({"at": 0.0} if name in ("crashes", "leaves") else {}))
    level = hk.Composite(hk.Scenario({"m": model}), step=0.01)
    told = f"in its first contact its process ended: {words}; it runs in a process of its own"
    assert not model.is_isolated
    for _ in range(2):
        if name == "badend":  # all rows are there: what its end says is a warning
            with pytest.warns(RuntimeWarning, match="fmi2FreeInstance"):
                run = hk.run(level, 0.1, folder=tmp_path / "run", overwrite=True)
            assert run.info["notes"] == [f"`m`: {told} (isolate=False: here)"]
        else:
            with pytest.raises(hk.SimulatorError) as caught:
                hk.run(level, 0.1, folder=tmp_path / "run", overwrite=True)
            assert words in caught.value.faults[0].what
    assert trials == [f"{name}.fmu"]
    assert model.is_isolated
    assert [record.getMessage() for record in caplog.records if "first contact" in record.getMessage()] == [
        f"{name}: {told} (isolate=False: here)"
    ]
    assert not Fmu(model.path, isolate=False).is_isolated
    state = hk.open_run(tmp_path / "run").status
    assert state == ("finished" if name == "badend" else "failed")


def test_a_trial_ends_with_the_binary_unloaded(tmp_path):
    """What a binary does when it is unloaded is beyond every function of FMI, and ends a process as well."""
    model = Fmu(build("lag", 2, folder=tmp_path, defines=["CRASHES_AT_UNLOAD"]), u=1.0)
    for _ in range(2):
        run = hk.run(model, 0.1, step=0.1)
        assert run.status == "finished"
        assert run.info["notes"] == [
            "`lag`: in its first contact its process ended: segmentation fault (SIGSEGV) in dlclose; "
            "it runs in a process of its own (isolate=False: here)"
        ]


def test_what_is_reported_is_left_to_the_run(tmp_path, trials):
    path = build("badinit", 2, folder=tmp_path)
    for _ in range(2):
        with pytest.raises(hk.SimulatorError, match="no steady state found"):
            hk.run(path, 0.1, step=0.1)
    assert len(trials) == 2
    assert kept() == []


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is watched by means of glibc")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_writes_beyond_its_memory_stays_isolated_though_it_reports_an_error(tmp_path, version):
    """One byte behind 20 of 24 that were had: it goes unnoticed unless memory is watched."""
    model = Fmu(build("overruns", version, folder=tmp_path))
    with pytest.raises(hk.SimulatorError, match="no steady state found"):
        hk.run(model, 0.1, step=0.1)
    free = {1: "fmiFreeSlaveInstance", 2: "fmi2FreeInstance", 3: "fmi3FreeInstance"}[version]
    assert kept() == [{"co-simulation": f"its process ended: aborted (SIGABRT) in {free}"}]
    assert model.is_isolated


def test_what_is_preloaded_is_so_in_a_trial_as_well(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "first.so second.so")
    assert isolated._trial_environment()["LD_PRELOAD"].split()[:2] == ["first.so", "second.so"]


def test_an_fmu_that_did_not_finish_its_trial_is_isolated_until_it_does(tmp_path, trials):
    path = build("fails", 2, folder=tmp_path)
    model = Fmu(path, at=0.0)
    with pytest.raises(hk.SimulatorError, match="the valve is stuck"):
        hk.run(model, 0.1, step=0.1)
    assert isinstance(model.open(), IsolatedFmu)
    assert model.contact_note == (
        "in its first contact it reported an error; it runs in a process of its own (isolate=False: here)"
    )
    assert not Fmu(path, at=0.0, isolate=False).is_isolated
    good = Fmu(path, at=1.0)
    assert hk.run(good, 0.1, step=0.1).info["notes"] == []
    assert not good.is_isolated
    assert len(trials) == 3


@pytest.mark.parametrize("at", [0.0, 0.05])
def test_check_of_a_crashing_fmu_survives(tmp_path, monkeypatch, at):
    """In its first steps, and in later ones."""
    monkeypatch.chdir(tmp_path)
    fmu = Fmu(build("crashes", 2, folder=tmp_path), at=at)
    level = hk.Composite(hk.Scenario({"m": fmu}), step=0.01)
    hk.write(level, tmp_path / "crashes.toml")
    told = invoked("check", "crashes.toml")
    assert told.exit_code == 3
    assert "not judged: `m`: its process ended: segmentation fault (SIGSEGV) in fmi2DoStep" in told.stdout


def test_left_out(tmp_path, trials, monkeypatch):
    path = build("lag", 2, folder=tmp_path)
    hk.run(Fmu(path, isolate=False), 0.1, step=0.1)
    hk.run(Fmu(path, isolate=True), 0.1, step=0.1)
    hk.run(build("single", 2, folder=tmp_path), 0.1, step=0.1)
    monkeypatch.setenv(first_contact.SWITCH, "0")
    hk.run(Fmu(path), 0.1, step=0.1)
    assert trials == []


def test_findings_that_are_damaged_or_of_another_version_are_made_anew(tmp_path, trials):
    path = build("lag", 2, folder=tmp_path)
    hk.run(path, 0.1, step=0.1)
    (file,) = findings.cache_folder("findings").glob("*.json")
    good = file.read_text()
    for damaged in ("", "[]", good[:-5], good.replace('findings": 1', 'findings": 2'), '{"a": ' * 5000):
        first_contact._known.clear()
        file.write_text(damaged)
        hk.run(path, 0.1, step=0.1)
        assert json.loads(file.read_text())["first contact"] == {"co-simulation": ""}
    assert len(trials) == 6


def test_topics_do_not_touch_each_other(tmp_path):
    model = Fmu(build("lag", 2, folder=tmp_path))
    findings.keep_findings(model, "probe", {"rollback": True})
    first_contact.meet(model)
    assert findings.read_findings(model, "probe") == {"rollback": True}
    assert findings.read_findings(model, "first contact") == {"co-simulation": ""}


def test_what_a_trial_says_is_for_nobody(tmp_path, caplog, capfd):
    hk.run(build("chatty", 2, folder=tmp_path), 0.3, step=0.1)
    assert len([record for record in caplog.records if "all is well" in record.getMessage()]) == 3
    assert capfd.readouterr().out == ""


# binaries that are damaged


def test_a_binary_that_is_cut_off_is_refused_before_it_is_loaded(tmp_path, trials):
    whole = build("lag", 2, folder=tmp_path)
    binary = Fmu(whole).binary.read_bytes()
    for share in (0.3, 0.6):
        length = int(share * len(binary))
        path = build("lag", 2, folder=tmp_path / "cut", binary=binary[:length])
        for isolate in (None, False):
            with pytest.raises(hk.SimulatorError, match=f"the file is damaged: cut off at {length:,} bytes"):
                Fmu(path, isolate=isolate).open().start(0.0)


def test_binaries_with_bits_that_flipped_end_in_an_error(tmp_path):
    """Whatever the loader does with them, this process lives on."""
    import random

    binary = Fmu(build("lag", 2, folder=tmp_path)).binary.read_bytes()
    draw = random.Random(18)
    outcomes = {"ran": 0, "refused": 0}
    for number in range(12):
        damaged = bytearray(binary)
        for _ in range(40):  # most of them where headers and tables are
            place = draw.randrange(min(len(binary), 4096))
            damaged[place] ^= 1 << draw.randrange(8)
        path = build("lag", 2, folder=tmp_path / str(number), binary=bytes(damaged))
        try:
            hk.run(path, 0.1, step=0.1)
            outcomes["ran"] += 1
        except hk.HocketError:
            outcomes["refused"] += 1
    assert sum(outcomes.values()) == 12
    assert outcomes["refused"] > 6


# what ends Python after its trial

LATER = """
import sys
import hocket as hk

path, folder, engine = sys.argv[1:]
level = hk.Composite(hk.Scenario({"m": hk.Fmu(path)}), step=0.1)
hk.run(level, 1, folder=folder, overwrite=True, engine=engine)
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("crashes", "segmentation fault (SIGSEGV) in fmi2DoStep"),
        ("aborts", "aborted (SIGABRT) in fmi2DoStep"),
        ("leaves", "exit(0) in fmi2DoStep"),
    ],
)
def test_what_ends_python_after_its_trial_is_isolated_in_the_next_run(tmp_path, name, words, engine):
    """At 0.5 s, far behind the three steps of the trial: Python is gone once, and never again."""
    path = build(name, 2, folder=tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LATER, path, tmp_path / "run", engine]
    assert not Fmu(path).is_isolated
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert f"hocket: {words} of the FMU `m`" in ended.stderr
    assert "SimulatorError" not in ended.stderr
    again = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert again.returncode == 1
    assert "hocket.errors.SimulatorError: its process ended" in again.stderr
    assert hk.open_run(tmp_path / "run").info["notes"] == [
        f"`m`: in an earlier run it ended Python: {words}; "
        "it runs in a process of its own (isolate=False: here)"
    ]
    assert Fmu(path).is_isolated
    assert not Fmu(path, isolate=False).is_isolated


def test_a_run_that_goes_well_leaves_no_mark(tmp_path):
    path = build("lag", 2, folder=tmp_path)
    hk.run(path, 0.1, step=0.1)
    assert not list(findings.cache_folder("findings").glob("*.crash"))


def test_another_process_knows(tmp_path):
    path = build("stillborn", 2, folder=tmp_path)
    with pytest.raises(hk.SimulatorError):
        hk.run(path, 0.1, step=0.1)
    code = f"from hocket.simulators.fmu.recipe import Fmu; print(Fmu({str(path)!r}).is_isolated)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout == "True\n"
    assert isinstance(Fmu(path).open(), IsolatedFmu)
