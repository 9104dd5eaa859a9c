"""`hocket check`: words where something is zero, endless, grows, is written elsewhere, or cannot be run."""

import json
import math
import os
import stat
import threading

import pytest

from command_line import good, invoked, refused
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import spectral_radius
from hocket.files.toml import write
from systems import EXAMPLES, FILTERS, two_masses

LAGS = """
step = "{step}"
{more}
[run]
stop = "{stop}"
[models.a]
type = "state-space"
A = [[{rate}]]
B = [[1]]
C = [[1]]
x0 = [1]
inputs = ["u"]
outputs = ["y"]
[models.b]
type = "gain"
gain = {gain}
[connections]
a.u = "b.y"
b.u = "a.y"
"""


def lags(tmp_path, step="10 ms", stop="1 s", rate=-1, gain=-0.5, more=""):
    file = tmp_path / "lags.toml"
    file.write_text(LAGS.format(step=step, stop=stop, rate=rate, gain=gain, more=more))
    return file


SYMMETRIC = """
step = "10 ms"
[run]
stop = "5 s"
[models.a]
type = "state-space"
A = [[-1, 0.3, 0], [0.3, -1.5, 0.3], [0, 0.3, -1]]
B = [[1], [0.7], [{other}]]
C = [[1, 0, -1], [1, 1, 1]]
x0 = [1, 0.2, 1]
inputs = ["u"]
outputs = ["difference", "sum"]
[models.b]
type = "state-space"
A = [[-2]]
B = [[-1]]
C = [[1]]
inputs = ["u"]
outputs = ["y"]
[connections]
a.u = "b.y"
b.u = "a.sum"
"""


def test_the_rounding_of_an_output_that_stays_zero_is_no_error(tmp_path):
    """Two states are alike for ever: their difference is 1e-16, whichever way it is computed."""
    file = tmp_path / "symmetric.toml"
    file.write_text(SYMMETRIC.format(other=1))
    facts = json.loads(good("check", file, "--json", "-"))
    by_port = {row["port"]: row for row in facts["predicted_errors"]}
    assert by_port["a.difference"]["global_error"] < 1e-13
    assert by_port["a.difference"]["of_peak"] == 0.0
    assert " in `b.y`, " in facts["verdict"][1]
    assert facts["observed_order"] == pytest.approx(1.0, abs=0.1)
    file.write_text(SYMMETRIC.format(other=1.001))
    (wrong,) = [
        row
        for row in json.loads(good("check", file, "--json", "-"))["predicted_errors"]
        if row["port"] == "a.difference"
    ]
    assert 1e-4 < wrong["of_peak"] < 1.0


def test_a_simulator_alone_has_no_error_but_rounding(tmp_path):
    file = tmp_path / "one.toml"
    file.write_text(
        'step = "10 ms"\n[run]\nstop = 1\n[models.a]\ntype = "state-space"\nA = [[-1]]\nC = [[1]]\nx0 = [1]\n'
        'outputs = ["y"]\n'
    )
    assert good("check", file).splitlines()[1] == "predicted global error: rounding only"


def test_no_outputs_at_all(tmp_path):
    file = tmp_path / "sink.toml"
    file.write_text(
        'step = "10 ms"\n[run]\nstop = 1\n[models.a]\ntype = "state-space"\nA = [[-1]]\nB = [[1]]\nx0 = [1]\n'
        'inputs = ["u = 0.0"]\n'
    )
    said = good("check", file)
    assert said.startswith("stable: spectral radius 0.99005\n")
    assert "\nnot judged: global error: there are no outputs whose error could be predicted\n" in said


@pytest.mark.parametrize(
    ("step", "stop", "near"), [("10 ms", "5 ms", "10 ms"), ("0.3 s", "10 s", "9.9 s or 10.2 s")]
)
def test_what_no_run_could_end_at_is_refused(tmp_path, step, stop, near):
    """As `hocket run` does."""
    said = refused("check", lags(tmp_path, step, stop))
    assert said.startswith(f"the step {step} does not divide the run from 0 s to {stop}\n")
    assert f"stop at {near}, or choose another step" in said
    assert "does not divide" in refused("run", lags(tmp_path, step, stop))


def test_of_a_very_long_run_the_beginning_is_predicted(tmp_path):
    facts = json.loads(good("check", lags(tmp_path, stop="1e9 s"), "--json", "-"))
    (left_out,) = [reason for reason in facts["not_judged"] if reason.startswith("global error after ")]
    assert left_out.endswith(": the run has 100,000,000,000 macro steps, only the first are predicted")
    first = json.loads(good("check", lags(tmp_path, stop="10 s"), "--json", "-"))
    for long, short in zip(facts["predicted_errors"], first["predicted_errors"], strict=True):
        assert long["global_error"] == pytest.approx(short["global_error"], rel=1e-9)


def test_a_coupling_that_does_not_follow_a_system_that_grows(tmp_path):
    """x' = x + 2 x, the second part held: exp(3 h) by itself, e + 2 (e - 1) with e = exp(h) coupled."""
    near = invoked("check", lags(tmp_path, rate=1, gain=2))
    assert near.exit_code == 0
    assert "and the coupling follows it" in near.stdout.splitlines()[0]
    far = invoked("check", lags(tmp_path, "10 s", "1000 s", rate=0, gain=2))
    own, coupled = math.exp(20.0), 1.0 + 20.0
    assert far.stdout.startswith(
        f"the exact system is unstable, spectral radius {own:.6g}, and the coupling does not follow it: "
        f"spectral radius {coupled:.6g}\n"
    )


def test_a_loop_without_a_solution_is_named(tmp_path):
    file = tmp_path / "loop.toml"
    gains = "".join(
        f'[models.{name}]\ntype = "gain"\ngain = {gain}\n' for name, gain in (("a", 2), ("b", 0.5))
    )
    file.write_text(f'step = "10 ms"\n{gains}[connections]\na.u = "b.y"\nb.u = "a.y"\n')
    done = invoked("check", file)
    assert done.exit_code == 1
    assert done.stdout.startswith(
        "ill posed: an algebraic loop has no solution, or no single one: a.y -> b.y"
    )
    assert "algebraic loop: a.y -> b.y, without a unique solution\n" in done.stdout
    assert "solved" not in done.stdout


def test_times_of_a_run_that_starts_late_are_told_to_the_step(tmp_path):
    text = lags(tmp_path, stop="1000000002 s").read_text().replace("[run]", '[run]\nstart = "1e9 s"')
    (tmp_path / "late.toml").write_text(text)
    facts = json.loads(good("check", tmp_path / "late.toml", "--json", "-"))
    told = float(facts["verdict"][1].partition(", at ")[2].partition(" s")[0])
    assert told == pytest.approx(facts["predicted_errors"][0]["at_s"], abs=0.006)
    assert 1e9 < told <= 1e9 + 2


# where the answer goes


def test_json_goes_into_a_pipe_and_leaves_it_one(tmp_path):
    """A file is replaced whole; a pipe or a device must not be: it would be gone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()), daemon=True)
    reader.start()
    good("check", lags(tmp_path), "--json", pipe)
    reader.join(timeout=20)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert json.loads(heard[0])["good"]


def test_json_goes_where_a_link_points(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("{}")
    link.symlink_to(target)
    good("check", lags(tmp_path), "--json", link)
    assert link.is_symlink()
    assert json.loads(target.read_text())["good"]


# robustness is never 1 - rho


@pytest.mark.parametrize("coupling", FILTERS)
def test_one_minus_rho_is_never_shown_for_the_radius(tmp_path, coupling):
    composite = two_masses(coupling, 8.9)
    file = tmp_path / "masses.toml"
    write(composite, file)
    said = good("check", file)
    facts = json.loads(good("check", file, "--json", "-"))
    missing = 1.0 - spectral_radius(read_linear(composite))
    assert facts["spectral_radius"] == pytest.approx(1.0 - missing, abs=1e-9)
    assert len(facts["stability_radii"]) == 2
    shown = [value for row in facts["stability_radii"] for value in row.values() if isinstance(value, float)]
    assert len(shown) >= 4
    assert all(value != pytest.approx(missing, rel=0.02) for value in shown)
    for share in (f"{100.0 * missing:.2g} %", f"{100.0 * missing:.3g} %", f"{missing:.3g}", f"{missing:.6g}"):
        assert f" {share} " not in f" {' '.join(said.replace(',', ' ').split())} "


def test_what_equations_became_is_not_blamed_for_being_least_robust(tmp_path):
    example = EXAMPLES / "massless_link.toml"
    compiled = tmp_path / "compiled.toml"
    good("compile", example, "--out", compiled)
    for file in (example, compiled):
        lines = good("check", file).splitlines()
        assert [
            line for line in lines if line.startswith("stability radius (structured): ") and "`right`" in line
        ]
        assert "inserted by the pass modularity" in next(line for line in lines if line.startswith("link "))
        assert "`link`, inserted by the pass modularity, was identified" in "\n".join(lines)
        facts = json.loads(good("check", file, "--json", "-"))
        assert [row["uncertain"] for row in facts["stability_radii"]] == ["right", "left", "link"]
        assert [row["note"] != "" for row in facts["stability_radii"]] == [False, False, True]


def test_the_stop_that_was_typed_is_where_the_fault_is(tmp_path):
    file = lags(tmp_path)
    assert "where:    --stop\n" in refused("check", file, "--stop", "0.333")
    assert "where:    `stop` in " in refused("check", lags(tmp_path, stop="0.333 s"))
