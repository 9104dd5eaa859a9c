"""`hocket tune`: the front, the proposal with the lines to change, files, refusals, and Ctrl-C."""

import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from command_line import COMMAND, good, invoked, refused
from systems import EXAMPLES

MASSES = EXAMPLES / "two_masses.toml"
FEW = ("--over", "step=0.1,0.2", "--over", "extrapolation=hold,linear")
"""Of these the front is known: linear beats hold at each step."""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = MASSES.read_text().replace('stop = "50 s"', 'stop = "5 s"').replace('"linear"', '"hold" # so far')
    Path("masses.toml").write_text(text)
    return Path("masses.toml")


def exact_error(composite, stop=5.0):
    """The 2-norm of the largest errors of force, x and v in a run, against the matrix exponential."""
    A = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])
    run = hk.run(composite, stop)
    t = run["second.x"].t
    z = np.array([expm(A * each) @ [0.1, 0.1, 0.2, 0.1] for each in t])
    truth = {
        "first.force": z[:, 0] + 2 * z[:, 1] - z[:, 2] - 2 * z[:, 3],
        "second.x": z[:, 2],
        "second.v": z[:, 3],
    }
    return np.sqrt(sum(np.abs(run[name].values - value).max() ** 2 for name, value in truth.items()))


def test_the_front_the_proposal_and_the_lines(file):
    lines = good("tune", file, *FEW).splitlines()
    assert lines[1] == "Pareto front; * is proposed"
    heads = lines[2].split()
    assert heads[:3] == ["row", "error", "work"]
    assert "step" in heads
    assert "extrapolation" not in heads
    assert lines[3].split()[0] == "now"
    assert [line.split()[0] for line in lines[4:6]] == ["0", "1"]
    assert lines[4].split()[:2] == ["0", "*"]
    assert lines[4].endswith("0.1 s")
    assert lines[5].endswith("0.2 s")
    assert "in all of them: extrapolation = linear" in lines
    assert "4 couplings judged" in lines
    (why,) = [line for line in lines if line.startswith("row 0 is proposed")]
    now = exact_error(hk.read(file).composite)
    tuned = exact_error(hk.read(file).composite.with_changes(extrapolation="linear"))
    assert why == f"row 0 is proposed: {now / tuned:.0f} times less error than now at the same work"
    assert lines[-3:] == [
        "change this line of masses.toml:",
        '  -extrapolation = "hold" # so far',
        '  +extrapolation = "linear" # so far',
    ]


def test_verify_compares_prediction_and_reality(file):
    facts = json.loads(good("tune", file, *FEW, "--verify", "--json", "-"))
    composite = hk.read(file).composite
    for run, made in zip(
        facts["runs"], (composite, composite.with_changes(extrapolation="linear")), strict=True
    ):
        truth = exact_error(made)
        assert run["error_of_the_run"] == pytest.approx(truth, rel=1e-6)
        assert run["predicted_error"] == pytest.approx(truth, rel=1e-3)
    assert facts["proposed"] == facts["row"] == 0
    assert facts["changes"] == [
        {
            "table": "",
            "key": "extrapolation",
            "old": 'extrapolation = "hold" # so far',
            "new": 'extrapolation = "linear" # so far',
        }
    ]
    told = good("tune", file, *FEW, "--verify")
    assert "predicted, and what runs show" in told
    assert "the predictions are within" in told


def test_apply_writes_the_file_with_its_comments(file):
    told = good("tune", file, *FEW, "--apply", "1")
    assert "wrote masses.tuned.toml: the file with 2 lines changed" in told
    before, after = (Path(name).read_text() for name in (file, "masses.tuned.toml"))
    assert after == before.replace('step = "0.1 s"', 'step = "0.2 s"').replace('"hold" # so', '"linear" # so')
    hk.run("masses.tuned.toml")


def test_out_writes_the_proposal_and_says_what_is_lost(file, tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    text = file.read_text()
    file.write_text(text.replace("second.force = ", '[connections."second.force"]\nfrom = '))
    told = good("tune", file, "--over", "second.force.extrapolation=linear", "--out", folder / "better.toml")
    assert f"wrote {folder / 'better.toml'}, written anew: comments are lost" in told
    made = hk.read(folder / "better.toml").composite
    (force,) = [each for each in made.scenario.connections if each.target == "second.force"]
    assert force.extrapolation == hk.Polynomial(1)


def test_picture_page_and_json(file):
    told = good("tune", file, *FEW, "--plot", "front.png", "--page", "front.html", "--json", "front.json")
    assert "wrote front.png" in told
    assert "wrote front.html (" in told
    assert "wrote front.json" in told
    assert Path("front.png").stat().st_size > 10_000
    facts = json.loads(Path("front.json").read_text())
    assert facts["objectives"] == ["error", "work"]
    assert [row["step"] for row in facts["front"]] == ["0.1 s", "0.2 s"]
    assert [row["work"] for row in facts["front"]] == [1.0, 0.5]
    assert (facts["judged"], facts["couplings"], facts["ended_by"]) == (4, 4, None)


def test_the_file_says_what_may_be_chosen_and_the_command_line_wins(file):
    table = 'step = ["0.1 s", "0.2 s", "0.25 s"]\nobjectives = ["rho", "step"]\nlimits = { step = 0.15 }'
    file.write_text(f"{file.read_text()}\n[tune]\n{table}\n")
    facts = json.loads(good("tune", file, "--json", "-"))
    assert facts["judged"] == 3
    assert facts["objectives"] == ["rho", "step"]
    assert facts["limits"] == {"step": 0.15}
    assert {row["step"] for row in facts["front"]} <= {"0.2 s", "0.25 s"}  # steps are to be long
    facts = json.loads(good("tune", file, "--over", "step=0.3", "--objective", "work", "--json", "-"))
    assert facts["judged"] == 1
    assert facts["objectives"] == ["work"]


def test_long_fronts_are_thinned(file):
    over = ("--over", "step=0.1:0.2:30", "--objective", "step", "--objective", "work")
    assert (
        len(json.loads(good("tune", file, *over, "--json", "-"))["front"]) == 1
    )  # longer steps are less work
    over = ("--over", "step=0.1:0.2:30", "--objective", "error", "--objective", "work")
    lines = good("tune", file, *over).splitlines()
    assert any(line.endswith("rows are on the front: --all shows them") for line in lines)
    rows = [line for line in good("tune", file, *over, "--all").splitlines() if line[:1].isdigit()]
    assert len([line for line in lines if line[:1].isdigit()]) < len(rows)


def test_a_search_goes_on_where_it_was(file):
    first = good("tune", file, *FEW, "--folder", "kept")
    kept = Path("kept/judged.jsonl").read_text()
    assert good("tune", file, *FEW, "--folder", "kept") == first
    assert Path("kept/judged.jsonl").read_text() == kept
    assert "is about another search" in refused("tune", file, "--over", "step=0.3", "--folder", "kept")


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_tells_what_was_found_and_how_to_go_on(file):
    words = ["tune", str(file), "--over", "step=1ms:100ms:3000", "--folder", "kept", "--workers", "1"]
    process = subprocess.Popen(
        [*COMMAND, *words, "--search", "all", "--objective", "rho", "--objective", "work"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    journal = Path("kept/judged.jsonl")
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.read_text().count("\n") > 60):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "Pareto front; * is proposed" in out
    assert "of 3,000 couplings were judged" in err
    assert "they are kept in kept: the same command goes on from there" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--over", "stepp=1,2"), "did you mean `step`?"),
        (("--over", "second.fore.alpha=0,1"), "did you mean `second.force.alpha`?"),
        (("--over", "step=1ms:10ms"), "low:high:count"),
        (("--over", "step=0:1:3:log"), "low:high:count:log"),
        (("--over", "extrapolation=linar"), "did you mean `linear`?"),
        (("--over", "order=first"), "an order of first second"),
        (("--over", "step"), "such as step=1ms:100ms:9:log"),
        (("--over", "step=1", "--over", "step=2"), "`step` is given twice"),
        (("--objective", "erorr"), "did you mean `error`?"),
        (("--objective", "nosuch.py:f"), "there is no file"),
        (("--limit", "rho=x"), "`x` is not a number"),
        (("--limit", "rhoo=1"), "--limit rhoo"),
        ((*FEW, "--limit", "error=1e-30"), "none of 4 couplings is within the limits"),
        ((*FEW, "--apply", "7"), "the front has no row 7"),
        (("--page", "nowhere/x.html"), "there is no folder `nowhere`"),
        (("--plot", "x.bmp"), "cannot draw a `bmp` file"),
        (("--json", "nowhere/x.json"), "there is no folder `nowhere`"),
        (("--out", "x.txt"), "is not a name for a scenario"),
        (("--out", "masses.toml"), "is the scenario itself"),
        (("--search", "clever"), "one of `auto`, `all`, `genetic`"),
        (("--stop", "soon"), "is not a duration"),
        (("--stop", "0"), "the run stops at 0 s and starts at 0 s"),
        (("--folder", "masses.toml"), "cannot be a folder"),
    ],
)
def test_what_is_wrong_is_said(file, words, told):
    said = refused("tune", file, *words)
    assert told in said
    assert "where:" in said
    assert "expected:" in said or "try:" in said


def test_without_a_stop_errors_cannot_count(file):
    file.write_text(file.read_text().replace('stop = "5 s"', ""))
    assert "nothing says when the run stops" in refused("tune", file, *FEW, "--objective", "error")
    assert "nothing says when the run stops" in refused("tune", file, *FEW, "--verify")
    told = good("tune", file, "--over", "step=0.1,0.2")
    assert "rho" in told
    assert "with --stop errors can count, too" in told


def test_faults_in_the_file_say_so(file):
    file.write_text(file.read_text() + '\n[tune]\nstep = "1 ms:2"\n')
    assert "`tune.step` in masses.toml" in refused("tune", file)


def test_help_has_examples():
    told = invoked("tune", "--help").stdout
    assert "Example: hocket tune car.toml" in told
    assert "--page" in told


def test_errors_of_several_units_are_not_added_up_silently(file):
    both = good("tune", file, *FEW, "--page", "page.html", "--json", "all.json")
    note = "`error` adds up N, m and m/s as they are: `relative` compares each output with its own size"
    assert both.count(note) == 1
    assert "adds up N, m and m/s" in Path("page.html").read_text()
    (kept,) = json.loads(Path("all.json").read_text())["notes"]
    assert kept.startswith(note)
    for named in ("error:second.x", "relative"):
        assert "adds up" not in good("tune", file, *FEW, "--objective", named, "--objective", "work")
    some = good("tune", file, *FEW, "--objective", "error:second.*", "--objective", "work")
    assert "`error:second.*` adds up m and m/s as they are" in some


def test_a_step_that_does_not_divide_the_run_is_told(file):
    lines = good("tune", file, "--over", "step=0.03,0.07", "--objective", "error:*.x", "--objective", "work")
    assert "its step of 30 ms does not divide the run to 5 s: stop at 4.98 s or 5.01 s" in lines
    assert "does not divide" not in good("tune", file, *FEW)


def test_verify_runs_to_the_nearest_end_that_the_step_divides(file):
    """5 s are 166.7 steps of 30 ms: the run is one of 167."""
    words = ("--over", "step=0.03", "--verify")
    now, row = json.loads(good("tune", file, *words, "--json", "-"))["runs"]
    assert (now["run_to_s"], row["run_to_s"]) == (5.0, 5.01)
    made = hk.read(file).composite.with_changes(step="30 ms")
    assert row["error_of_the_run"] == pytest.approx(exact_error(made, "5.01 s"), rel=1e-6)
    assert "run to [s]" in good("tune", file, *words)


def test_a_run_that_starts_late_is_as_long_as_it_is(file):
    """Nothing depends on time: from 7 s to 12 s all is as from 0 s to 5 s."""
    early = json.loads(good("tune", file, *FEW, "--verify", "--json", "-"))
    file.write_text(file.read_text().replace('stop = "5 s"', 'start = "7 s"\nstop = "12 s"'))
    late = json.loads(good("tune", file, *FEW, "--verify", "--json", "-"))
    for one, other in zip(early["front"], late["front"], strict=True):
        assert other["error"] == pytest.approx(one["error"], rel=1e-9)
    for one, other in zip(early["runs"], late["runs"], strict=True):
        assert other["error_of_the_run"] == pytest.approx(one["error_of_the_run"], rel=1e-6)
    told = good("tune", file, "--over", "step=0.03")
    assert "its step of 30 ms does not divide the run to 12 s: stop at 11.98 s or 12.01 s" in told


def test_a_search_ends_when_its_time_is_up():
    said = invoked("tune", str(EXAMPLES / "two_masses.toml"), "--seconds", "0.01", "--workers", "1")
    assert said.exit_code == 0
    assert "the time of 0.01 s is up: 25 of 432 couplings were judged" in said.stderr
    assert "+step" in said.stdout
    short = ("--seconds", "0.01", "--workers", "1", "--json", "-")
    facts = json.loads(invoked("tune", str(EXAMPLES / "two_masses.toml"), *short).stdout)
    assert (facts["judged"], facts["couplings"], facts["ended_by"]) == (25, 432, "time")
