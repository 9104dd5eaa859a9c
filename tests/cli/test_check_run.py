"""`hocket check RUN` and what is kept of it: verdicts, tables, JSON, pictures, exit codes, Ctrl-C."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from cli.test_check import MASSES
from command_line import COMMAND, good, invoked, refused, without_loads
from hocket.files.error_estimate import TRUST, read_estimate
from systems import EXAMPLES, rewrite_run

EXAMPLE = EXAMPLES / "two_masses.toml"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return the folder of a run that took options: from the file alone it would be another."""
    monkeypatch.chdir(tmp_path)
    options = "--stop", "20", "--step", "0.5 s", "--engine", "interpreter"
    good("run", EXAMPLE, *options, "--folder", "out")
    return Path("out")


def truth(t):
    """Return the force between the two masses of the example: x' = A x by eigenvalues."""
    A = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])
    values, vectors = np.linalg.eig(A)
    weights = np.linalg.solve(vectors, np.array([0.1, 0.1, 0.2, 0.1]))
    states = np.array([(vectors * np.exp(values * time)) @ weights for time in t]).real
    return states @ [1.0, 2.0, -1.0, -2.0]


def test_the_verdict_comes_first_and_is_the_error_of_what_was_run(run):
    done = invoked("check", run)
    assert done.exit_code == 0, done.output
    assert done.stderr == "again with 1/2 of the steps\nagain with 1/4 of the steps\n"
    first, second, *rest = done.stdout.splitlines()
    error = np.abs(hk.open_run(run)["first.force"].values - truth(hk.open_run(run)["first.force"].t)).max()
    told = float(first.split(" of peak, ")[1].split(" N in `first.force`")[0])
    assert told == pytest.approx(error, rel=0.05)
    assert second.startswith("observed order ")
    assert second.endswith(" matches the expected order 2: the estimate is reliable")
    assert "estimated global errors (Richardson extrapolation)" in rest
    assert "estimated error" in done.stdout
    assert read_estimate(run).ports[0].largest == pytest.approx(error, rel=0.05)


DECAY = """
class Decay:
    inputs = ["u"]
    outputs = ["y"]

    def __init__(self, rate=1.0):
        self.rate = rate

    def start(self, t):
        self.y = 1.0

    def output(self, t):
        return [self.y]

    def step(self, t, h, u):
        self.y -= h * self.rate * u[0][0]
"""
LOOP = """
step = "0.1 s"
[run]
stop = 1
[models.a]
type = "python"
class = "decay.py:Decay"
[connections]
"a.u" = "a.y"
"""


def test_parameters_that_were_set_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("decay.py").write_text(DECAY)
    Path("loop.toml").write_text(LOOP)
    good("run", "loop.toml", "--set", "a.rate=3", "--stop", "2", "--step", "20 ms", "--folder", "out")
    monkeypatch.chdir("/")
    done = invoked("check", tmp_path / "out")
    assert done.exit_code == 0, done.output
    n = np.arange(101)
    error = np.abs(0.94**n - np.exp(-0.06 * n)).max()  # Euler's method, in the end
    assert read_estimate(tmp_path / "out")["a.y"].largest == pytest.approx(error, rel=0.02)
    assert "not included: what is integrated inside `a`" in done.stdout


def test_what_was_found_is_shown_again(run):
    invoked("check", run)
    shown = good("check", run)
    assert "this was found before and is kept in the folder: --again estimates it anew" in shown
    assert good("check", run, "--quick") == shown  # two runs tell more than none
    again = invoked("check", run, "--again")
    assert again.stderr.startswith("again with")
    assert shown.splitlines()[:2] == again.stdout.splitlines()[:2]


def test_without_another_run(run):
    text = good("check", run, "--quick")
    lines = text.splitlines()
    assert lines[0].startswith("estimated global error: ")
    assert lines[1].startswith("largest connection defect: ")
    assert " between input `first.x` and output " in lines[1]
    assert "it is not the global error" in lines[-1]
    assert "estimated global errors (linear models)" in lines
    assert read_estimate(run).method == "defect"
    assert invoked("check", run).stderr.startswith("again with")  # the better one is still to be had
    assert read_estimate(run).method == "Richardson"
    good("check", run, "--quick", "--again")
    assert read_estimate(run).method == "Richardson"


def test_json_and_picture(run):
    done = invoked("check", run, "--json", "-")
    facts = json.loads(done.stdout)
    assert done.stderr == ""
    assert facts["good"]
    assert (facts["method"], facts["expected_order"], facts["found_before"]) == ("Richardson", 2, False)
    assert [row["port"] for row in facts["estimated_errors"]] == ["first.force", "second.v", "second.x"]
    text = good("check", run, "--json", "facts.json", "--plot", "bands.png")
    assert text.splitlines()[-2:] == ["wrote bands.png", "wrote facts.json"]
    again = json.loads(Path("facts.json").read_text())
    assert again.pop("found_before")
    assert again.items() <= facts.items()
    assert Path("bands.png").read_bytes()[:4] == b"\x89PNG"


def test_only_some_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    masses = {f"m{n}": hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
              for n in range(14)}  # fmt: skip
    ring = {f"m{n}.u": f"m{(n + 1) % 14}.y" for n in range(14)}
    hk.run(hk.Composite(hk.Scenario(masses, ring), "0.1 s"), 2, folder="ring")
    text = invoked("check", "ring").stdout
    assert "and 6 more: hocket check " in text
    assert "m13.y" in good("check", "ring", "--all")


# run --trust, summary, plot


def test_run_keeps_what_it_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoked("run", EXAMPLE, "--stop", "10", "--trust", "--plot", "band.png", "--folder", "out")
    assert done.exit_code == 0, done.output
    assert done.stderr == "again with 1/2 of the steps\nagain with 1/4 of the steps\n"
    header = next(line for line in done.stdout.splitlines() if line.startswith("port "))
    assert "last value" in header
    assert "estimated error" in header
    assert Path("band.png").read_bytes()[:4] == b"\x89PNG"
    assert read_estimate("out").runs == 2
    assert "found before" in good("check", "out")
    quiet = invoked("run", EXAMPLE, "--stop", "10", "--trust", "--quiet", "--folder", "quiet")
    assert (quiet.stdout, quiet.stderr) == ("quiet\n", "")
    assert read_estimate("quiet").rows() == read_estimate("out").rows()


def test_plot_draws_the_bands(run):
    good("plot", run, "--out", "plain.svg")
    invoked("check", run)
    good("plot", run, "--out", "bands.svg")
    good("plot", run, "second.*", "--out", "some.svg")
    counts = {
        file: Path(file).read_text().count("FillBetween") for file in ("plain.svg", "bands.svg", "some.svg")
    }
    assert counts["plain.svg"] == 0
    assert counts["bands.svg"] > counts["some.svg"] > 0
    (run / TRUST).write_text("{")
    done = invoked("plot", run, "--out", "again.svg")
    assert done.exit_code == 0
    assert done.stderr.startswith("without bands: `trust.json` cannot be read")


# when not to believe it


def test_a_loop_broken_by_a_delay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lag = hk.StateSpace(A=[[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])
    models = {"a": hk.Gain(1.2), "b": hk.Gain(-1.2), "lag": lag, "sum": hk.Sum("u", "v")}
    scenario = hk.Scenario(models, {"sum.u": "b.y", "sum.v": "lag.y", "a.u": "sum.y", "b.u": "a.y"})
    hk.run(hk.Composite(scenario, "0.1 s", hk.Jacobi(outputs="stale")), 3, folder="loop")
    done = invoked("check", "loop")
    assert done.exit_code == 1
    assert done.stdout.startswith("estimated global error, not reliable: ")
    assert "doubt: feedthrough on both sides: the algebraic loop " in done.stdout
    assert "doubt: no observed order in " in done.stdout
    assert invoked("check", "loop").exit_code == 1  # from the folder, too


def test_an_unstable_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("masses.toml").write_text(MASSES.format(step="1 s", outputs="stale"))
    ran = invoked("run", "masses.toml", "--folder", "out")
    assert ran.exit_code == 0
    assert ran.stderr.startswith("before the run: unstable: spectral radius ")
    done = invoked("check", "out")
    assert done.exit_code == 1
    assert "the result is wrong: the global error exceeds 50 % of peak" in done.stdout
    assert ", expected order 1: " in done.stdout
    quick = invoked("check", "out", "--quick", "--again")
    assert quick.exit_code == 1
    assert "the result is wrong" in quick.stdout


def test_a_scenario_that_cannot_be_opened_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lag = hk.Ode(
        lambda t, x, u: [u[0] - x[0]], x0=[1.0], inputs=["u"], outputs=["y"], g=lambda t, x, u: [x[0]]
    )
    hk.run(hk.Composite(hk.Scenario({"lag": lag}, {"lag.u": "lag.y"}), "0.1 s"), 1, folder="out")
    done = invoked("check", "out")
    assert done.exit_code == 3
    lines = done.stdout.splitlines()
    assert lines[0] == "not judged: there is no estimate of the global error"
    assert lines[1].startswith("doubt: the scenario cannot be opened again (scenario.toml, line ")
    assert "the defect of `lag.u`" in done.stdout


def test_a_run_that_was_stopped(run, monkeypatch):
    text = (run / "scenario.toml").read_text()
    assert 'stop = "20 s"' in text
    (run / "scenario.toml").write_text(text.replace('stop = "20 s"', 'stop = "40 s"'))
    rewrite_run(run, status="stopped", stop=40.0)
    done = invoked("check", run)
    assert done.exit_code == 1
    assert "doubt: the run ended early at 20 s, stopped: it is judged up to there, not beyond" in done.stdout
    assert read_estimate(run).ports[0].run.t[-1] == 20.0


# what is refused, and what is damaged


def test_a_folder_that_is_no_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    assert "`empty` is not a run" in refused("check", "empty")
    assert "run.json" in refused("check", "empty")
    (Path("empty") / "run.json").write_text("{}")
    assert "`empty` is not a run" in refused("check", "empty/run.json")
    assert "there is no file `nothing`" in refused("check", "nothing")


def test_options_of_the_other_kind(run):
    assert "`--stop` is for scenarios" in refused("check", run, "--stop", "3")
    assert "`--set` is for scenarios" in refused("check", run, "--set", "first.x0=1")
    assert "`--quick` is for runs" in refused("check", EXAMPLE, "--quick")
    assert "`--again` is for runs" in refused("check", EXAMPLE, "--again")
    assert "cannot draw a `xyz` file" in refused("check", run, "--plot", "a.xyz")
    assert not (run / TRUST).exists()


def test_a_run_that_is_under_way(run):
    rewrite_run(run, status="running", process=os.getpid())
    assert "`out` is still under way" in refused("check", run)


def test_an_estimate_that_is_damaged_is_made_anew(run):
    before = invoked("check", run).stdout
    (run / TRUST).write_text('{"hocket_trust": 1, "begun": ')
    done = invoked("check", run)
    assert done.exit_code == 0
    assert done.stderr.startswith("`trust.json` cannot be read: ")
    assert "the error is estimated anew\nagain with 1/2 of the steps" in done.stderr
    assert done.stdout == before
    assert read_estimate(run).runs == 2


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_keeps_what_there_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    slow = (
        "import time, pathlib"
        + DECAY
        + """
        if h < 0.1:
            time.sleep(0.01)
            if t > 0.4:
                pathlib.Path("slow").touch()
"""
    )
    Path("decay.py").write_text(slow)
    Path("loop.toml").write_text(LOOP)
    good("run", "loop.toml", "--stop", "500", "--folder", "out")
    words = [*COMMAND, "check", "out"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    try:
        while not Path("slow").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 1
    assert without_loads(err) == "again with 1/2 of the steps\n"
    assert "doubt: the run with 1/2 of the steps was interrupted at " in out
    found = read_estimate("out")
    assert found.runs == 0
    t = found["a.y"].run.t
    assert 0.3 < t[-1] < 100.0
    np.testing.assert_allclose(found["a.y"].error, 2.0 * (0.9 ** (10 * t) - 0.95 ** (20 * t)), atol=1e-12)


def test_help():
    text = good("check", "--help")
    assert "hocket check runs/car-001" in text
    assert "--again" in text


def test_a_run_that_trust_calls_wrong_ends_with_exit_code_1(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoked("run", EXAMPLE, "--stop", "400", "--step", "10 s", "--trust", "--folder", "out")
    assert "the result is wrong" in done.stdout
    assert done.exit_code == 1
    fine = invoked("run", EXAMPLE, "--stop", "20", "--step", "0.5 s", "--trust", "--folder", "fine")
    assert fine.exit_code == 0
