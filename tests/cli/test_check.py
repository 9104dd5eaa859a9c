"""`hocket check`: verdicts in words, tables, JSON, pictures and exit codes."""

import json
import math

import pytest

from command_line import good, invoked, refused
from fmus.build import build
from hocket.analysis.stability_map import VariedRadius
from systems import EXAMPLES

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
    assert lines[0] == "stable: spectral radius 0.992558"
    assert lines[1].startswith("predicted global error: 0.078 % of peak, 7.8e-05 N in `first.force`")
    assert "predicted errors" in lines
    assert "observed order 1.99 matches the expected order 2" in lines


def test_an_unstable_coupling_names_its_dominant_states_and_a_change(tmp_path):
    file = written(tmp_path, "1 s")
    done = invoked("check", file)
    assert done.exit_code == 1
    assert done.stdout.startswith("unstable: spectral radius ")
    assert "`a`" in done.stdout.splitlines()[0] or "`b`" in done.stdout.splitlines()[0]
    assert "predicted global error: grows without bound" in done.stdout
    helps = 'recommended change: orchestrator "iterate" and extrapolation "linear": spectral radius '
    factor = done.stdout.partition(helps)[2].partition(",")[0]
    text = file.read_text().replace(
        'orchestrator = { type = "jacobi", outputs = "stale" }',
        'orchestrator = { type = "iterate", inner = { type = "jacobi", outputs = "stale" } }\n'
        'extrapolation = "linear"',
    )
    file.write_text(text)
    better = invoked("check", file)
    assert better.exit_code == 0
    assert better.stdout.startswith(f"stable: spectral radius {factor}\n")
    better = invoked("check", written(tmp_path, "10 ms"))
    assert better.exit_code == 0
    assert better.stdout.startswith("stable: spectral radius 0.999608")
    assert done.stderr == ""


def test_json(tmp_path):
    done = invoked("check", written(tmp_path), "--json", "-")
    facts = json.loads(done.stdout)
    assert facts["good"] == (done.exit_code == 0) == facts["stable"]
    assert {row["port"] for row in facts["predicted_errors"]} == {"a.x", "a.v", "b.force"}
    assert facts["zero_stable"]
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
    assert "predicted global error" not in done.stdout
    assert "predicted global error" in invoked("check", file, "--stop", "5").stdout


def test_sources_and_sampled_devices(tmp_path):
    done = invoked("check", EXAMPLES / "car.toml")
    assert done.exit_code == 0, done.stderr
    assert "not judged: other macro steps: `skyhook` is sampled every 20 ms" in done.stdout
    assert "steps 40 times per period; try `--robust` " in done.stdout


def test_black_boxes(tmp_path):
    first, second = (build(name, 2, folder=tmp_path) for name in ("first", "second"))
    links = ("first.x=second.x", "first.v=second.v", "second.force=first.force")
    connect = [word for link in links for word in ("--connect", link)]
    done = invoked("check", first, second, *connect, "--stop", "20")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("stable: spectral radius 0.99")
    assert "identified" in done.stdout


def test_what_jumps_is_not_judged(tmp_path):
    ball, facts = build("ball", 2, folder=tmp_path), tmp_path / "facts.json"
    done = invoked("check", ball, "--json", facts)
    assert done.exit_code == 3
    assert done.stdout.startswith("not judged: `ball`: ")
    said = json.loads(facts.read_text())
    assert (said["good"], said["outcome"]) == (False, "not judged")


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


# other steps, robustness, and what varies

LOOP = """
step = "0.1 s"
[models.plant]
type = "state-space"
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [1.0]
inputs = ["u"]
outputs = ["x"]
[models.gain]
type = "gain"
gain = -3.0
[connections]
"plant.u" = "gain.y"
"gain.u" = "plant.x"
"""
"""The factor is e - 3 (1 - e), e = exp(-h): stable up to a step of ln 2."""


def a_loop(tmp_path, more=""):
    file = tmp_path / "loop.toml"
    file.write_text(LOOP + more)
    return file


def test_other_steps_robustness_and_consistency(tmp_path):
    said = good("check", a_loop(tmp_path))
    assert (
        "\nother macro steps: stable up to a macro step of 0.6931 s (search range 0.000391 s to 3.2 s)\n"
        in said
    )
    assert "\nstability radius (structured): " in said
    assert " of the step map of `plant`, instability with no oscillation; " in said
    assert "\nrelative consistency (Glumac and Kovacic)\n" in said
    assert "\ndelta = " in said
    facts = json.loads(good("check", a_loop(tmp_path), "--json", "-"))
    assert facts["largest_stable_step"] == pytest.approx(math.log(2.0), rel=1e-6)
    assert [row["uncertain"] for row in facts["stability_radii"]] == ["plant"]
    assert facts["relative_consistency"] > 0.0
    without = good("check", a_loop(tmp_path), "--no-robust")
    assert "other macro steps" not in without
    assert "stability radi" not in without


def test_one_value_varies(tmp_path):
    said = good("check", a_loop(tmp_path), "--vary", "step=10ms:1", "--plot", tmp_path / "steps.png")
    assert said.startswith("stable for `step` from 0.01 to 0.693147\n")
    assert (tmp_path / "steps.png").read_bytes()[:4] == b"\x89PNG"
    assert said.splitlines()[-1] == f"wrote {tmp_path / 'steps.png'}"
    e = math.exp(-0.1)
    facts = json.loads(good("check", a_loop(tmp_path), "--vary", "gain.D[1,1]=-40:0", "--json", "-"))
    (only,) = facts["intervals"]
    assert only["from"] == pytest.approx(-(1.0 + e) / (1.0 - e), rel=1e-6)
    assert good("check", a_loop(tmp_path), "--vary", "step=1:9").startswith(
        "stable for no `step` from 1 to 9"
    )


def test_two_values_vary(tmp_path):
    words = ["--vary", "step=0.1:2:9", "--vary", "gain.D[1,1]=-8:-2:5"]
    said = good(
        "check", a_loop(tmp_path), *words, "--plot", tmp_path / "map.png", "--json", tmp_path / "m.json"
    )
    assert said.startswith("stable at ")
    assert " of 45 points of the map\n" in said
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"
    facts = json.loads((tmp_path / "m.json").read_text())
    assert facts["names"] == ["step", "gain.D[1,1]"]
    for (h, gain), _ in facts["boundary"]:
        assert math.exp(-h) == pytest.approx((-gain - 1.0) / (-gain + 1.0), rel=1e-6)
    assert "--plot PNG draws the map" in good("check", a_loop(tmp_path), *words)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("step", "`step` is not a name with a value"),
        ("step=1", "`1` is not a range"),
        ("step=1:1", "begins where it ends"),
        ("step=2:1", "has its lower end last"),
        ("step=0:1", "a step must be above zero"),
        ("step=soon:later", "is not a duration"),
        ("gain.D[1,1]=a:b", "is not a range of numbers"),
        ("gain.D[1,1]=0:inf", "has its lower end last, or no end"),
        ("step=1:2:x", "is not a range"),
        ("step=1:2:1", "a map of 1 points"),
        ("stp=1:2", "did you mean `step`?"),
        ("plant.A[2,1]=1:2", "has no entry [2,1]"),
        ("plant.mass=1:2", "has no parameter `mass`"),
    ],
)
def test_bad_ranges(tmp_path, typed, said):
    assert said in refused("check", a_loop(tmp_path), "--vary", typed)


def test_two_different_things_vary(tmp_path):
    same = ("--vary", "step=1:2")
    assert "`step` varies twice" in refused("check", a_loop(tmp_path), *same, *same)
    assert "3 things vary" in refused("check", a_loop(tmp_path), *same, *same, *same)


def test_an_experiment_that_starts_later(tmp_path):
    """x' = -(1 + t) x by Euler steps of 0.1 s: from 3 s on the factor is 1 - 0.4."""
    (tmp_path / "late.py").write_text("def f(t, x, u):\n    return [-(1 + t) * x[0]]\n")
    file = tmp_path / "late.toml"
    ode = 'type = "ode"\nf = "late.py:f"\nx0 = [1]\noutputs = ["y"]\nmethod = "euler"\nstep = "0.1 s"\n'
    file.write_text(f'step = "0.1 s"\n[run]\nstart = 3\nstop = 4\n[models.a]\n{ode}')
    assert good("check", file).startswith("stable: spectral radius 0.6\n")


def test_ctrl_c_ends_a_map(tmp_path, monkeypatch):
    asked = []

    def stopped(self, *values):
        asked.append(values)
        if len(asked) == 20:
            raise KeyboardInterrupt
        return 0.5

    monkeypatch.setattr(VariedRadius, "__call__", stopped)
    done = invoked("check", a_loop(tmp_path), "--vary", "step=0.1:2", "--vary", "gain.D[1,1]=-8:-2")
    assert (done.exit_code, done.stderr, done.stdout) == (1, "interrupted\n", "")
    assert len(asked) == 20


def a_cubic_loop(tmp_path):
    """x' = -x^3 + u, u = -x held: soft at the start, and judged along pilot runs."""
    (tmp_path / "soft.py").write_text("def f(t, x, u):\n    return [-(x[0] ** 3) + u[0]]\n")
    file = tmp_path / "soft.toml"
    plant = 'type = "ode"\nf = "soft.py:f"\nx0 = [2]\ninputs = ["u"]\noutputs = ["x"]\n'
    gain = 'type = "gain"\ngain = -1\n'
    wires = '[connections]\n"plant.u" = "gain.y"\n"gain.u" = "plant.x"\n'
    text = f'step = "0.1 s"\n[run]\nstop = 2\n{wires}[models.plant]\n{plant}[models.gain]\n{gain}'
    file.write_text(text)
    return file


def test_pilot_runs_and_the_limit_of_the_error(tmp_path):
    file = a_cubic_loop(tmp_path)
    assert good("check", file).startswith("sound along this trajectory, to 2 s: predicted global error ")
    assert not good("check", file, "--no-pilot").startswith("sound along this trajectory")
    said = json.loads(good("check", file, "--json", "-"))
    assert said["judgement"] == "sound"
    assert said["along_the_trajectory"]["limit"] == 0.5
    done = invoked("check", file, "--max-error", "0.1%")
    assert done.exit_code == 1
    assert done.stdout.startswith("unsound along this trajectory, to 2 s: ")
    assert "is not a part of the peak" in refused("check", file, "--max-error", "some")
