"""`hocket check`: verdicts in words, tables, JSON, pictures and exit codes."""

import json
from pathlib import Path

from command_line import invoked, refused
from fmus.build import build

EXAMPLES = Path(__file__).parents[1] / "examples"

MASSES = """
step = "{step}"
orchestrator = {{ type = "jacobi", outputs = "{outputs}" }}
[run]
stop = 25
[models.a]
type = "state-space"
A = [[0, 1], [-0.1, -0.01]]
B = [[0], [0.1]]
C = [[1, 0], [0, 1]]
x0 = [1, 0]
inputs = ["force [N]"]
outputs = ["x [m]", "v [m/s]"]
[models.b]
type = "state-space"
A = [[0, 1], [-11, -0.3]]
B = [[0, 0], [1, 0.1]]
C = [[10, 1]]
D = [[-10, -1]]
x0 = [2, 0]
inputs = ["x [m]", "v [m/s]"]
outputs = ["force [N]"]
[connections]
"a.force" = "b.force"
"b.x" = "a.x"
"b.v" = "a.v"
"""


def written(tmp_path, step="0.1 s", outputs="stale"):
    file = tmp_path / "masses.toml"
    file.write_text(MASSES.format(step=step, outputs=outputs))
    return file


def test_a_stable_coupling(tmp_path):
    done = invoked("check", EXAMPLES / "two_masses.toml")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "stable: the largest factor per step is 0.992558"
    assert lines[1].startswith("expected error: at most 7.8e-05 N in `first.force`")
    assert "expected errors" in lines
    assert "order: measured 1.99, as predicted" in lines


def test_an_unstable_coupling_names_who_takes_part_and_what_helps(tmp_path):
    file = written(tmp_path, "1 s")
    done = invoked("check", file)
    assert done.exit_code == 1
    assert done.stdout.startswith("unstable: the largest factor per step is ")
    assert "`a`" in done.stdout.splitlines()[0] or "`b`" in done.stdout.splitlines()[0]
    assert "the error grows without bound" in done.stdout
    assert "what helps most: a step of 10 ms" in done.stdout
    better = invoked("check", written(tmp_path, "10 ms"))
    assert better.exit_code == 0
    assert better.stdout.startswith("stable: the largest factor per step is 0.999608")
    assert done.stderr == ""


def test_json(tmp_path):
    done = invoked("check", written(tmp_path), "--json", "-")
    facts = json.loads(done.stdout)
    assert facts["good"] == (done.exit_code == 0) == facts["stable"]
    assert {row["port"] for row in facts["errors"]} == {"a.x", "a.v", "b.force"}
    assert facts["zero-stable"]
    again = invoked("check", written(tmp_path), "--json", tmp_path / "facts.json")
    assert json.loads((tmp_path / "facts.json").read_text()) == facts
    assert again.stdout.splitlines()[-1] == f"wrote {tmp_path / 'facts.json'}"


def test_a_picture(tmp_path):
    done = invoked("check", written(tmp_path), "--plot", tmp_path / "modes.png")
    assert (tmp_path / "modes.png").read_bytes()[:4] == b"\x89PNG", done.stderr


def test_without_an_end_no_error_is_expected(tmp_path):
    file = written(tmp_path)
    file.write_text(file.read_text().replace("[run]\nstop = 25\n", ""))
    done = invoked("check", file)
    assert "expected error" not in done.stdout
    assert "expected error" in invoked("check", file, "--stop", "5").stdout


def test_sources_and_sampled_devices(tmp_path):
    done = invoked("check", EXAMPLES / "car.toml")
    assert done.exit_code == 0, done.stderr
    assert "not judged: the error: `road` depends on time" in done.stdout


def test_black_boxes(tmp_path):
    first, second = (build(name, 2, folder=tmp_path) for name in ("first", "second"))
    links = ("first.x=second.x", "first.v=second.v", "second.force=first.force")
    connect = [word for link in links for word in ("--connect", link)]
    done = invoked("check", first, second, *connect, "--stop", "20")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("stable: the largest factor per step is 0.99")
    assert "identified" in done.stdout


def test_what_jumps_is_not_judged(tmp_path):
    done = invoked("check", build("ball", 2, folder=tmp_path))
    assert done.exit_code == 1
    assert done.stdout.startswith("not judged: `ball` ")


def test_an_ill_posed_scenario(tmp_path):
    file = tmp_path / "loop.toml"
    file.write_text(
        'step = "0.1 s"\n[models.a]\ntype = "gain"\ngain = 1.0\n[models.b]\ntype = "gain"\ngain = 1.0\n'
        '[connections]\n"a.u" = "b.y"\n"b.u" = "a.y"\n'
    )
    done = invoked("check", file)
    assert done.exit_code == 1
    assert done.stdout.startswith("ill posed: an algebraic loop has no solution")


def test_bad_scenarios(tmp_path):
    assert "there is no file" in refused("check", tmp_path / "missing.toml")
    assert "--stop" in refused("check", written(tmp_path), "--stop", "soon")
