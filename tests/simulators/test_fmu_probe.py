"""The probe: honest FMUs are believed, lies are found, crashes and endless steps are findings."""

import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fmus.build import build
from hocket.cli import app
from hocket.errors import FileError, InternalError
from hocket.simulators.fmu import live
from hocket.simulators.fmu import probe as probing
from hocket.simulators.fmu.probe import Finding, Probe, execution_checks, probe
from hocket.simulators.fmu.probe.process import CHECKS
from hocket.simulators.fmu.recipe import Fmu

pytestmark = pytest.mark.usefixtures("fresh_cache")

VERSIONS = (1, 2, 3)


def probed(tmp_path, name, version=2, *, options=None, **overrides) -> Probe:
    path = build(name, version, folder=tmp_path, **overrides)
    return probe(Fmu(path, **(options or {})), here=True)


def verdicts(found: Probe) -> dict[str, str]:
    return {finding.name: finding.verdict for finding in found.findings}


# the honest


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["lag", "first", "gain", "ball", "ramp", "vanderpol", "types", "single"])
def test_what_an_honest_fmu_declares_is_true(tmp_path, name, version):
    found = probed(tmp_path, name, version)
    assert found.failed_checks == ()
    assert found.summary == "all that it declares is true"
    assert [finding.name for finding in found.findings] == list(CHECKS)
    for capability in ("loads", "steps", "repeats", "variable step"):
        assert found[capability].verdict == "true"
    if version > 1 and name != "single":
        assert found["rollback"].verdict == found["memory"].verdict == "true"
        assert "the same to the bit" in found["rollback"].what


def test_numbers_are_told(tmp_path):
    found = probed(tmp_path, "lag")
    assert found["steps"].what.startswith("10 steps of 0.1 s from 0 s, outputs finite, ")
    assert "µs per step" in found["steps"].what
    assert found["memory"].what.startswith("1,000 times saved, stepped and restored: ")
    assert found["rollback"].what == "5 restores, 3 steps made again after each: the same to the bit"
    assert str(found).splitlines()[-1] == "all that it declares is true"


def test_without_a_step_a_hundredth_of_the_default_experiment_is_taken(tmp_path):
    found = probed(tmp_path, "lag", stepSize=None, stopTime=2)
    assert found["steps"].what.startswith("100 steps of 0.02 s from 0 s")
    found = probed(tmp_path, "lag", stepSize=1, startTime=3, stopTime=5, file="long.fmu")
    assert found["steps"].what.startswith("10 steps of 1 s from 3 s")


@pytest.mark.parametrize("version", VERSIONS)
def test_inputs_that_move_are_compared_with_small_steps(tmp_path, version):
    finding = probed(tmp_path, "ramp", version)["input derivatives"]
    assert finding.verdict == "true"
    assert "against steps of h/20" in finding.what
    assert finding.what.endswith("parabolas are honoured")


@pytest.mark.parametrize("version", VERSIONS)
def test_slopes_of_outputs_are_compared_with_differences(tmp_path, version):
    assert probed(tmp_path, "ramp", version)["output derivatives"].verdict == "true"


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", ["vanderpol", "lag", "first", "ball"])
def test_model_exchange(tmp_path, name, version):
    found = probed(tmp_path, name, version, options={"interface": "model-exchange"})
    assert found.failed_checks == ()
    assert found["variable step"].what == "hocket integrates it"
    assert found["directional derivatives"].verdict == ("true" if name == "vanderpol" else "not declared")


def test_steps_that_end_early_are_met(tmp_path):
    finding = probed(tmp_path, "ball", 3)["early return"]
    assert finding.verdict == "true"
    assert "first the step from 0.4 s to 0.5 s ended at 0.451524 s" in finding.what


@pytest.mark.parametrize(("version", "verdict"), [(1, "not declared"), (2, "not declared"), (3, "true")])
def test_discarded_steps_are_met_where_it_can_rewind(tmp_path, version, verdict):
    found = probed(tmp_path, "discards", version, options={"at": 0.551})
    assert found.failed_checks == ()
    assert found["early return"].verdict == verdict
    assert "ended at 0.551 s" in found["early return"].what
    assert ("it cannot roll back" in found["early return"].what) == (version == 1)


def test_texts_and_arrays_are_read(tmp_path):
    found = probed(tmp_path, "types", 3)
    assert found["texts"].what == "2 of 2 outputs read, 2 of 2 inputs set; `y_string` is 'hello '"
    assert probed(tmp_path, "arrays", 3)["arrays"].what == "2 arrays with 6 elements set or read"


def test_one_instance_per_process_is_respected(tmp_path):
    found = probed(tmp_path, "single")
    assert found["instances"].verdict == "not declared"
    assert found["repeats"].verdict == "true"


def test_what_it_says_is_quoted(tmp_path):
    found = probed(tmp_path, "chatty")
    assert found.failed_checks == ()
    assert "it said 10 messages, the first 'warning: step 1 at 0 s: u = " in found["steps"].what


# the liars


@pytest.mark.parametrize("version", [2, 3])
def test_a_state_that_is_not_saved_whole(tmp_path, version):
    found = probed(tmp_path, "liar", version)
    assert found.failed_checks == ("rollback",)
    assert found.summary == "not to be trusted: rollback"
    assert "the same step from t = 0.3 s ended at 0.629" in found["rollback"].what
    assert found["memory"] == Finding("memory", "untried", "it does not roll back")


def test_a_state_that_is_almost_saved(tmp_path, monkeypatch):
    def restore(self, original, state):
        original(self, state)
        self.drift = getattr(self, "drift", 0.0) + 1e-3

    instead(monkeypatch, "restore", restore)
    instead(
        monkeypatch, "output", lambda self, original, t, u: original(self, t, u) + getattr(self, "drift", 0.0)
    )
    finding = probed(tmp_path, "lag")["rollback"]
    assert finding.verdict == "false"
    assert finding.what.startswith("after a second restore of the state saved at the start, `y` is ")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_undeclared_reaction(tmp_path, version):
    found = probed(tmp_path, "gain", version, variables={"y": {"from": []}})
    assert found.failed_checks == ("feedthrough",)
    assert found["feedthrough"].what == "it has direct feedthrough that it does not declare: `u` to `y`"


def test_a_declared_reaction_that_is_never_seen(tmp_path):
    found = probed(tmp_path, "gain", options={"k": 0.0})
    assert found["feedthrough"].what.endswith("never seen: `u` to `y`")
    assert found["reevaluate"].what.endswith("(in a file `reevaluate = false`), nothing is lost")


def test_no_dependencies_declared(tmp_path):
    found = probed(tmp_path, "gain", xml=lambda text: text.replace(' dependencies="1"', ""))
    assert found["feedthrough"].verdict == "not declared"
    assert "1 of 1 pair seen" in found["feedthrough"].what


def test_functions_that_a_declared_capability_needs(tmp_path):
    found = probed(tmp_path, "bare")
    assert found.failed_checks == ("rollback",)
    assert "its binary lacks `fmi2GetFMUstate`" in found["rollback"].what
    assert "its binary lacks `" in found["loads"].what
    found = probed(tmp_path, "ramp", lacks=["*Derivatives"])
    assert found.failed_checks == ("input derivatives", "output derivatives")
    options = {"interface": "model-exchange"}
    found = probed(tmp_path, "vanderpol", lacks=["*Directional*"], file="v.fmu", options=options)
    assert "directional derivatives" in found.failed_checks


def test_directional_derivatives_that_are_wrong(tmp_path):
    options = {"interface": "model-exchange"}
    finding = probed(tmp_path, "lag", providesDirectionalDerivative=True, options=options)[
        "directional derivatives"
    ]
    assert finding.verdict == "false"
    assert "its directional derivative of `der_y` over `u` is 0, by differences 1" in finding.what


def test_outputs_that_cannot_be_got_between_steps(tmp_path):
    found = probed(tmp_path, "strict")
    assert found.failed_checks == ()  # it declares no feedthrough, so that is never asked
    assert "is an error: fmi2GetReal returned Error" in found["reevaluate"].what
    found = probed(tmp_path, "strict", variables={"z": {"output": 0.0, "from": ["u"]}}, file="z.fmu")
    assert found.failed_checks == ("reevaluate",)
    assert found["reevaluate"].what.endswith(
        "use `Fmu(..., reevaluate=False)` (in a file `reevaluate = false`)"
    )


def test_a_switch_is_respected(tmp_path):
    found = probed(tmp_path, "gain", options={"reevaluate": False})
    assert found["reevaluate"].what == "switched off by `reevaluate=False`"
    assert found["feedthrough"].verdict == "true"


# faults that no test FMU has


def instead(monkeypatch, name, function):
    """Let live FMUs do something else."""
    original = getattr(live.CoSimulation, name)
    monkeypatch.setattr(live.CoSimulation, name, lambda self, *given: function(self, original, *given))


def test_outputs_that_do_not_follow(tmp_path, monkeypatch):
    def step(self, original, t, h, u):
        self.stepped_under = u
        return original(self, t, h, u)

    def output(self, original, t, u):
        return original(self, t, getattr(self, "stepped_under", u))

    instead(monkeypatch, "step", step)
    instead(monkeypatch, "output", output)
    found = probed(tmp_path, "gain")
    assert found.failed_checks == ()
    assert found["feedthrough"].verdict == "true"
    assert found["reevaluate"].verdict == "not declared"
    assert found["reevaluate"].what.endswith(
        "use `Fmu(..., reevaluate=False)` (in a file `reevaluate = false`)"
    )


def test_a_trace_left_by_looking(tmp_path, monkeypatch):
    looks = []

    def output(self, original, t, u):
        looks.append(t)
        return original(self, t, u) + 1e-3 * looks.count(looks[-1])

    instead(monkeypatch, "output", output)
    assert "reevaluate" in probed(tmp_path, "first").failed_checks


def test_a_step_whatever_its_size(tmp_path, monkeypatch):
    def step(self, original, t, h, u):
        self.count = getattr(self, "count", 0) + 1
        original(self, 0.1 * (self.count - 1), 0.1, u)
        return t + h

    instead(monkeypatch, "step", step)
    finding = probed(tmp_path, "lag")["variable step"]
    assert finding.verdict == "false"
    assert finding.what == "a step of 0.05 s moves it as far as one of 0.1 s"


def test_inputs_that_are_held_though_they_move(tmp_path, monkeypatch):
    instead(monkeypatch, "step", lambda self, original, t, h, u: original(self, t, h, u[:1]))
    found = probed(tmp_path, "ramp")
    assert found.failed_checks == ("input derivatives",)
    assert "taken as held" in found["input derivatives"].what


def test_slopes_that_are_wrong(tmp_path, monkeypatch):
    instead(monkeypatch, "slope", lambda self, original, t, u: original(self, t, u) + 0.5)
    assert probed(tmp_path, "ramp").failed_checks == ("output derivatives",)


def test_instances_that_share_something(tmp_path, monkeypatch):
    steps = []

    def output(self, original, t, u):
        return original(self, t, u) + len(steps)

    def step(self, original, t, h, u):
        steps.append(t)
        return original(self, t, h, u)

    instead(monkeypatch, "start", lambda self, original, t: (steps.clear(), original(self, t))[1])
    instead(monkeypatch, "output", output)
    instead(monkeypatch, "step", step)
    found = probed(tmp_path, "lag", 1)
    assert found["repeats"].verdict == "true"
    assert found["instances"].verdict == "false"


def test_memory_that_grows(tmp_path, monkeypatch):
    kept = []
    instead(
        monkeypatch, "save", lambda self, original: (kept.append(bytearray(b"x" * 65536)), original(self))[1]
    )
    finding = probed(tmp_path, "lag")["memory"]
    assert finding.verdict == "false"
    assert int(finding.what.split()[-2].replace(",", "")) >= 3000


def test_memory_that_grows_once_or_by_little_is_not_a_leak(tmp_path, monkeypatch):
    """Blocks of 100 cycles: one takes 4 MB, or each takes a page or two, which may be noise."""
    sizes = iter([1 << 22, *(1 << 23 for _ in range(99))])
    monkeypatch.setattr(execution_checks, "_resident", lambda: next(sizes))
    assert probed(tmp_path, "lag")["memory"].verdict == "true"
    sizes = iter(range(0, 1 << 30, 8192))
    finding = probed(tmp_path, "lag", file="again.fmu")["memory"]
    assert finding.verdict == "untried"
    assert finding.what.startswith("not judged, it may be noise: 4,000 times saved")
    assert "82 bytes each time" in finding.what


@pytest.mark.parametrize("version", [2, 3])
def test_a_crash_of_a_second_instance_is_blamed_on_that(tmp_path, version):
    model = Fmu(build("lag", version, folder=tmp_path, defines=["ABORTS_SECOND_INSTANCE"]), time_limit="30 s")
    found = probe(model)
    assert found.failed_checks == ("repeats", "instances")
    assert "it crashed: aborted (SIGABRT), in its start" in found["repeats"].what
    assert found["steps"].what.endswith("each instance had a process of its own: a second one ends it")
    assert found["rollback"].verdict == found["variable step"].verdict == "true"
    assert [finding.name for finding in found.findings] == list(CHECKS)


# the stop time


@pytest.mark.parametrize("version", VERSIONS)
def test_the_stop_time_makes_no_difference(tmp_path, version):
    found = probed(tmp_path, "lag", version)["stop time"]
    assert found == Finding(
        "stop time", "true", "10 steps, told the stop time and not told: the same to the bit"
    )


def test_what_goes_to_the_stop_time_is_probed_untold(tmp_path):
    found = probed(tmp_path, "lag", defines=["RUNS_TO_STOP"])
    assert found.failed_checks == ("stop time",)
    assert "told the stop time, it goes to the stop time in its first step" in found["stop time"].what
    assert found["stop time"].what.endswith("use `Fmu(..., stop_time=False)` (in a file `stop_time = false`)")
    options = {"stop_time": False}
    found = probed(tmp_path, "lag", defines=["RUNS_TO_STOP"], file="untold.fmu", options=options)
    assert found.failed_checks == ()
    assert found["stop time"].verdict == "not declared"


# those that fail


@pytest.mark.parametrize(
    ("name", "words"),
    [("refuses", "no licence for"), ("badinit", "no steady state"), ("gutless", "fmi2DoStep")],
)
def test_what_does_not_start(tmp_path, name, words):
    found = probed(tmp_path, name)
    assert found.failed_checks == ("loads",)
    assert words in found["loads"].what
    assert {finding.verdict for finding in found.findings[1:]} == {"untried"}


@pytest.mark.parametrize(("name", "words"), [("fails", "the valve is stuck"), ("nan", "`y` is nan at 0.5 s")])
def test_what_fails_later_is_tried_until_then(tmp_path, name, words):
    found = probed(tmp_path, name)
    assert found.failed_checks == ("steps",)
    assert words in found["steps"].what
    assert found["rollback"].verdict == "true"


def test_no_step_at_all(tmp_path):
    found = probed(tmp_path, "fails", options={"at": 0.0})
    assert found.failed_checks == ("steps",)
    assert found["rollback"] == Finding("rollback", "untried", "it makes no step")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("crashes", "it crashed: segmentation fault (SIGSEGV), in a step from 0.5 s to 0.6 s"),
        ("aborts", "it crashed: aborted (SIGABRT), in a step from 0.5 s to 0.6 s"),
        ("exits", "it ended the process, with exit code 3, in a step from 0.5 s to 0.6 s"),
        ("hangs", "it took longer than {} s, in a step from 0.5 s to 0.6 s"),
    ],
)
def test_another_process_bears_it(tmp_path, name, words):
    path = build(name, 2, folder=tmp_path)
    for limit in (3, 15, 75) if name == "hangs" else (75,):  # a busy machine may need longer to load it
        found = probe(Fmu(path, time_limit=f"{limit} s"))
        expected = words.format(limit)
        if found["loads"].verdict == "true" and found["steps"].what == expected:
            break
    assert found["loads"].verdict == "true"
    assert found["steps"] == Finding("steps", "false", expected)
    assert {finding.verdict for finding in found.findings[2:]} == {"untried"}


def test_another_process_finds_the_same(tmp_path):
    path = build("liar", 2, folder=tmp_path)
    apart = probe(Fmu(path, time_limit="30 s"))
    assert apart["rollback"] == probe(Fmu(path), here=True)["rollback"]
    assert [finding.name for finding in apart.findings] == list(CHECKS)


def test_after_a_crash_the_next_check_goes_on(tmp_path, monkeypatch):
    asked = []

    def process(model, names, failed):
        if model.isolate:  # alone as well
            return [], "it crashed", False
        asked.append((names[0], sorted(failed)))
        done = {"loads": 4, "memory": 3}.get(names[0], len(names))
        late = names[0] == "memory"
        return [Finding(name, "true", "") for name in names[:done]], "it crashed", late

    monkeypatch.setattr(probing.process, "_run_process", process)
    found = probe(Fmu(build("lag", 2, folder=tmp_path)))
    assert asked == [
        ("loads", []),
        ("memory", ["rollback"]),
        ("input derivatives", ["reevaluate", "rollback"]),
    ]
    assert found.failed_checks == ("rollback", "reevaluate")
    assert [finding.name for finding in found.findings] == list(CHECKS)


def test_a_fault_of_our_own_is_told(tmp_path, monkeypatch):
    model = Fmu(build("lag", 2, folder=tmp_path))
    monkeypatch.setitem(CHECKS, "loads", None)
    with pytest.raises(TypeError):
        probe(model, here=True)
    monkeypatch.setattr(probing.process, "CHECKS", {"nothing": None})
    with pytest.raises(InternalError, match="KeyError: 'nothing'"):
        probe(model)


def test_no_binary_is_refused(tmp_path):
    with pytest.raises(FileError, match="no binary for this platform"):
        probe(Fmu(build("lag", 2, folder=tmp_path, platform="win64")))


def test_a_slow_one_makes_few_steps(tmp_path, monkeypatch):
    def step(self, original, t, h, u):
        time.sleep(0.05)
        return original(self, t, h, u)

    instead(monkeypatch, "step", step)
    found = probed(tmp_path, "ramp", options={"time_limit": "1 s"})
    assert found.failed_checks == ()
    assert found["rollback"].what.startswith("2 restores, 1 step made again after each")
    assert found["memory"].verdict == "untried"


# the verb


def invoked(*words: str | Path):
    return CliRunner().invoke(app, ["probe", *map(str, words)], prog_name="hocket")


def test_the_verb_and_its_exit_codes(tmp_path):
    good = invoked(build("lag", 2, folder=tmp_path), "--here")
    assert good.exit_code == 0, good.output
    assert good.stdout.splitlines()[0].split() == ["capability", "verdict", "found"]
    assert good.stdout.splitlines()[-1] == "all that it declares is true"
    bad = invoked(build("liar", 2, folder=tmp_path), "--time-limit", "30 s")
    assert bad.exit_code == 1
    assert bad.stdout.splitlines()[-1] == "not to be trusted: rollback"
    for words in (
        ("nothing.fmu",),
        (tmp_path / "lag.fmu", "--interface", "scheduled"),
        (tmp_path / "lag.fmu", "--time-limit", "soon"),
        (build("lag", 2, folder=tmp_path, platform="win64", file="win.fmu"),),
    ):
        refused = invoked(*words)
        assert refused.exit_code == 2
        assert refused.stdout == ""


def test_the_verb_takes_an_interface(tmp_path):
    found = invoked(build("vanderpol", 2, folder=tmp_path), "--interface", "model-exchange", "--here")
    assert found.exit_code == 0
    assert "FMI 2, model exchange: loaded" in found.stdout
