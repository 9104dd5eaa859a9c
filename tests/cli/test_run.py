"""The command line as a newcomer meets it: every verb, every exit code, the usual mistakes."""

from __future__ import annotations

import inspect
import json
import os
import re
import select
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

import hocket
from command_line import COMMAND, good, interrupted, invoked, refused, without_loads
from hocket.cli.terminal import format_significant, format_with_prefix
from hocket.errors import InternalError, count
from hocket.files.toml.codec import schema
from systems import ENGINES, ROOT

VERBS = ("run", "plan", "show", "new", "export", "plot", "schema", "sweep", "probe")
SIMULATORS = """\
import time


class Tank:
    inputs = ["flow [l/s] = 500"]
    outputs = ["level [m]"]
    order = 1

    def __init__(self, bursts=1e9, lasts=0.0):
        self.bursts, self.lasts = bursts, lasts

    def start(self, t):
        self.level = 0.0

    def output(self, t):
        return [self.level]

    def step(self, t, h, u):
        if t >= self.bursts:
            raise RuntimeError("the tank bursts")
        time.sleep(self.lasts)
        self.level += h * u[0][0]
"""
TANK = """\
step = "10 ms"
[run]
stop = 1
[models.tank]
type = "python"
class = "simulators.py:Tank"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):  # they would colour a pipe
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def demo(here: Path) -> Path:
    good("new", "demo.toml")
    return here / "demo.toml"


def edited(file: Path, instead_of: str, typed: str) -> Path:
    text = file.read_text()
    assert instead_of in text
    file.write_text(text.replace(instead_of, typed, 1))
    return file


# run


def test_run_says_in_two_lines_how_it_went(demo: Path, here: Path) -> None:
    first, *notes, second = good("run", "demo.toml").splitlines()
    assert re.fullmatch(
        r"demo finished: 1,000 steps from 0 to 10 s in [\d.]+ s \([\d.,]+ times real time\); "
        r"1,001 rows, 6 ports",
        first,
    )
    assert second == 'runs/demo-001  hocket.open_run("runs/demo-001")'
    run = hocket.open_run("runs/demo-001")
    assert (run.name, run.status, run.info["engine"]) == ("demo", "finished", "native")
    assert notes == [f"note: {note}" for note in run.info["notes"]]
    assert set(here.iterdir()) == {demo, here / "runs"}


def test_folders_count_up(demo: Path, here: Path) -> None:
    (here / "runs" / "demo-007").mkdir(parents=True)
    (here / "runs" / "demo-2-999").mkdir()
    for number in ("008", "009"):
        assert good("run", "demo.toml", "--stop", "0.1", "--quiet") == f"runs/demo-{number}\n"


def test_options_win_over_the_file(demo: Path) -> None:
    edited(demo, "[run]", '[run]\nstart = "1 s"\nevery = "500 ms"')
    good("run", "demo.toml", "--folder", "file")
    assert hocket.open_run("file")["left.x"].t.tolist() == [1 + k / 2 for k in range(19)]
    options = (
        "--start",
        "-1",
        "--stop",
        "2 s",
        "--every",
        "1",
        "--record",
        "left.*",
        "--record",
        "right.force",
    )
    good("run", "demo.toml", *options, "--engine", "interpreter", "--threads", "1", "--folder", "typed")
    typed = hocket.open_run("typed")
    assert typed["left.x"].t.tolist() == [-1, 0, 1, 2]
    assert set(typed.ports) == {"left.x", "left.v", "right.force"}
    assert typed.info["engine"] == "interpreter"


def test_both_engines_compute_the_same(demo: Path) -> None:
    for engine in ENGINES:
        good("run", "demo.toml", "--engine", engine, "--folder", engine, "--csv", f"{engine}.csv")
    assert Path("native.csv").read_bytes() == Path("interpreter.csv").read_bytes()


def test_micro_steps(demo: Path) -> None:
    edited(demo, "x0 = [1, 0]", 'method = "rk4"\nstep = "1 ms"\nx0 = [1, 0]')
    good("run", "demo.toml", "--every", "micro", "--stop", "1", "--folder", "out")
    assert len(hocket.open_run("out")["left.x"].t) == 1001


def test_overwrite(demo: Path) -> None:
    good("run", "demo.toml", "--folder", "out")
    message = refused("run", "demo.toml", "--folder", "out")
    assert "`out` holds a run already" in message
    assert "--overwrite" in message
    good("run", "demo.toml", "--folder", "out", "--overwrite", "--stop", "1")
    assert hocket.open_run("out").info["stop"] == 1.0
    assert "`--overwrite` needs `--folder`" in refused("run", "demo.toml", "--overwrite")
    sweep = ("sweep", "tank.toml", "--vary", "bursts=5,6")
    Path("simulators.py").write_text(SIMULATORS)
    Path("tank.toml").write_text(TANK)
    assert "`--overwrite` needs `--folder`" in refused(*sweep, "--overwrite")
    good(*sweep, "--folder", "swept")
    assert "overwrite=True (--overwrite)\n" in refused(*sweep, "--folder", "swept")


def test_options_of_fmus_where_there_is_none(demo: Path) -> None:
    words = ("--interface", "model-exchange", "--isolate", "--time-limit", "5 s", "--log")
    message = refused("run", "demo.toml", *words)
    for option in ("--interface", "--isolate", "--time-limit", "--log"):
        assert f"`{option}` is for FMUs, and there is none\n     where:    demo.toml\n" in message
    assert "`--log` is for FMUs" in refused("sweep", "demo.toml", "--vary", "left.k=1", "--log")
    assert "`--all` is for an FMU, and `demo.toml` is not one" in refused("show", "demo.toml", "--all")
    assert not Path("runs").exists()


def test_a_folder_that_is_none(demo: Path, here: Path) -> None:
    (here / "file").write_text("mine")
    message = refused("run", "demo.toml", "--folder", "file")
    assert message.startswith("`file` is a file\n")
    assert (here / "file").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that cannot be written to")
def test_a_folder_that_cannot_be_made(demo: Path) -> None:
    message = refused("run", "demo.toml", "--folder", "/proc/x", code=1)
    assert "cannot write `x`" in message
    assert "during the run" not in message


def test_plot_and_csv(demo: Path) -> None:
    lines = good("run", "demo.toml", "--csv", "a.csv", "--plot", "a.png").splitlines()
    assert lines[-2:] == ["wrote a.csv", "wrote a.png"]
    assert Path("a.csv").read_text().startswith('"time [s]","left.x [m]"')
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")


def test_what_could_not_be_written_is_refused_before_the_run(
    demo: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "out").mkdir()
    for option in ("--csv", "--plot"):
        assert "there is no folder `nowhere`" in refused("run", "demo.toml", option, "nowhere/a.png")
        assert "`out` is a folder" in refused("run", "demo.toml", option, "out")
    assert "cannot draw a `txt` file" in refused("run", "demo.toml", "--plot", "a.txt")
    assert ".png, .svg or .pdf" in refused("run", "demo.toml", "--plot", "a")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install hocket[plot]" in refused("run", "demo.toml", "--plot", "a.png")
    assert not Path("runs").exists()


def test_why_it_is_not_the_native_engine(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hocket.execution.session.native_obstacle", lambda *_: "it is Sunday")
    assert "run by the interpreter, because it is Sunday\n" in good("run", "demo.toml")


def test_a_fault_of_the_run_says_where_it_comes_from(demo: Path) -> None:
    assert "where:    --stop\n" in refused("run", "demo.toml", "--stop", "10.001")
    edited(demo, 'stop = "10 s"', 'stop = "10.001 s"')
    assert "where:    `stop` in demo.toml\n" in refused("run", "demo.toml")


# the other verbs


def test_plan_in_words() -> None:
    good("new", "car.toml", "--nested")
    lines = good("plan", "car.toml").splitlines()
    assert lines[0] == "car: steps of 10 ms, gauss-seidel, outputs consistent"
    assert "axle: 10 steps of 1 ms in each step around it, gauss-seidel, outputs consistent" in lines
    assert "    read road, body, axle.wheel, together" in lines
    assert lines.count("  each step:") == 2


def test_plan_of_levels_with_equal_and_longer_steps(here: Path) -> None:
    inner = '[models.{0}]\ntype = "composite"\nstep = "{1}"\n'
    inner += '[models.{0}.models.g]\ntype = "sum"\ninputs = ["u = 1"]\n'
    text = 'step = "10 ms"\nrun.stop = 1\n' + inner.format("same", "10 ms") + inner.format("slow", "30 ms")
    (here / "a.toml").write_text(text)
    plan = good("plan", "a.toml")
    assert "same: one step of 10 ms in each step around it, jacobi" in plan
    assert "slow: one step of 30 ms in every 3 steps around it, jacobi" in plan


def test_show_names_everything() -> None:
    good("new", "car.toml", "--nested")
    shown = good("show", "car.toml")
    for line in (
        "car  steps of 10 ms, gauss-seidel, extrapolation linear, outputs consistent",
        "├── road  table, rollback, output derivatives",
        "│   └── out  height [cm]",
        "out  on_body [N]      direct feedthrough of all inputs",
        "axle.wheel.road    road.height            linear         × 0.01",
        "connections inside axle",
        "runs from 0 s to 5 s, a row every step, recording *",
    ):
        assert line in shown
    assert not any(line.endswith(" ") for line in shown.splitlines())


def test_show_the_rest(here: Path) -> None:
    (here / "simulators.py").write_text(SIMULATORS)
    (here / "tank.toml").write_text(
        'step = "10 ms"\nrecord = ["tank.*"]\n'
        'orchestrator = { type = "gauss-seidel", order = ["pump", ["tank", "sensor"], "limit"] }\n'
        '[models.pump]\ntype = "table"\nt = [0, 1]\n'
        'columns = { "flow [l/min]" = [0, 1], "warm [degC]" = [1, 2] }\n'
        '[models.tank]\ntype = "python"\nclass = "simulators.py:Tank"\nperiod = "20 ms"\n'
        '[models.sensor]\ntype = "state-space"\nA = [[-1]]\nB = [[1]]\nC = [[1]]\n'
        'inputs = ["u [K] = 300"]\noutputs = ["y"]\nmethod = "rk4"\nstep = "5 ms"\n'
        '[models.limit]\ntype = "gain"\ngain = 2\n'
        "[connections]\n"
        'tank.flow = { from = "pump.flow", extrapolation = { type = "nepce", alpha = -0.1 } }\n'
        'sensor.u = { from = "pump.warm" }\nlimit.u = "sensor.y"\n'
    )
    shown = good("show", "tank.toml")
    assert "tank  python, simulators.py:Tank, not loaded, sampled every 20 ms" in shown
    assert "`simulators.py:Tank` is not loaded" in shown
    shown = good("show", "tank.toml", "--code")
    assert "gauss-seidel (order = pump, (tank, sensor), limit), extrapolation hold" in shown
    assert "tank  python, simulators.py:Tank, order 1, sampled every 20 ms" in shown
    assert "sensor  state-space, rk4, order 4, steps of 5 ms, rollback, output derivatives" in shown
    assert "in   flow [l/s]  = 500" in shown
    assert re.search(r"tank\.flow +pump\.flow +nepce \(alpha = -0\.1\) +× 0\.0166667", shown)
    assert re.search(r"sensor\.u +pump\.warm +hold +\+273\.15", shown)
    assert "limit  state-space, no state, rollback, output derivatives" in shown
    assert "until told to stop by --stop" in shown
    assert "recording tank.*" in shown


@pytest.mark.parametrize("options", [(), ("--nested",)], ids=["plain", "nested"])
def test_new_runs_at_once(options: tuple[str, ...]) -> None:
    assert good("new", "fresh", *options) == "wrote fresh.toml\nrun it:  hocket run fresh.toml\n"
    text = Path("fresh.toml").read_text()
    assert "hocket run fresh.toml" in text
    assert "NAME" not in text
    tomllib.loads(text)
    good("run", "fresh.toml", "--folder", "out")
    run = hocket.open_run("out")
    assert run.status == "finished"
    for port in run:
        assert abs(run.final(port)) < 30, f"{port} has not come to rest"


def test_starters_are_converged(demo: Path) -> None:
    """Halving the step changes next to nothing: the first picture a newcomer sees is right."""
    good("new", "car.toml", "--nested")
    for name, port in (("demo", "right.x"), ("car", "body.x")):
        good("run", f"{name}.toml", "--folder", f"{name}-1")
        edited(Path(f"{name}.toml"), 'step = "10 ms"', 'step = "5 ms"')
        good("run", f"{name}.toml", "--folder", f"{name}-2")
        coarse, fine = (hocket.open_run(f"{name}-{number}")[port].values for number in (1, 2))
        scale = np.abs(fine).max()
        assert scale > 0.01
        assert np.abs(coarse - fine[::2]).max() < 5e-3 * scale


def test_new_overwrites_nothing(here: Path) -> None:
    (here / "mine.toml").write_text("precious")
    assert "`mine.toml` exists already" in refused("new", "mine.toml")
    assert (here / "mine.toml").read_text() == "precious"
    assert "a name that ends in .toml" in refused("new", "mine.txt")
    assert "there is no folder `nowhere`" in refused("new", "nowhere/mine.toml")


def test_schema() -> None:
    assert json.loads(good("schema")) == schema()


def test_export_and_plot(demo: Path) -> None:
    good("run", "demo.toml")
    run = hocket.open_run("runs/demo-001")
    assert good("export", "runs/demo-001", "all.csv") == "wrote all.csv\n"
    assert len(Path("all.csv").read_text().splitlines()) == 1002
    good("export", "runs/demo-001", "some.parquet", "--ports", "left.*", "--ports", "right.x")
    table = parquet.read_table("some.parquet")
    assert table.column_names[1:] == ["left.x", "left.v", "right.x"]
    assert table.column("left.x").to_numpy().tolist() == run["left.x"].values.tolist()
    assert good("plot", "runs/demo-001", "left.x", "right.*", "--out", "x.svg") == "wrote x.svg\n"
    assert "<svg" in Path("x.svg").read_text()
    assert good("plot", "runs/demo-001") == "wrote demo-001.png\n"
    assert Path("demo-001.png").exists()


def test_export_and_plot_refuse(demo: Path) -> None:
    good("run", "demo.toml")
    assert "there is no `demo-002`" in refused("plot", "runs/demo-002")
    assert "there is no `demo-002`" in refused("export", "runs/demo-002", "a.csv")
    assert ".csv or .parquet" in refused("export", "runs/demo-001", "a.xlsx")
    assert "did you mean `left.x`?" in refused("export", "runs/demo-001", "a.csv", "--ports", "left.y")
    assert "did you mean `left.x`?" in refused("plot", "runs/demo-001", "left.y")
    assert "cannot draw a `docx` file" in refused("plot", "runs/demo-001", "--out", "a.docx")
    for verb in (("plot", "runs/demo-001", "--out"), ("export", "runs/demo-001")):
        assert "there is no folder `nowhere`" in refused(*verb, "nowhere/a.csv")


def test_version_and_help() -> None:
    assert good("--version") == f"hocket {hocket.__version__}\n"
    assert "Example: hocket new demo.toml" in good("--help")
    for verb in VERBS:
        text = good(verb, "--help")
        assert f"Example: hocket {verb}" in text
        assert "--debug" in text
        assert max(map(len, text.splitlines())) <= 80
        assert good(verb, "-h") == good("help", verb) == text
    assert "Ctrl-C" in good("run", "--help")
    assert good("-h") == good("help") == good("--help")


def test_the_list_of_verbs_says_what_their_help_begins_with() -> None:
    for name, (module, about) in import_module("hocket.cli.app").VERBS.items():
        function = getattr(import_module(f"hocket.cli.{module}"), name)
        assert inspect.getdoc(function).splitlines()[0] == about


# the mistakes of a newcomer


def test_missing_file(demo: Path) -> None:
    for verb in ("run", "plan", "show"):
        message = refused(verb, "dmeo.toml")
        assert message == (
            "there is no file `dmeo.toml`\n  where:    dmeo.toml\n  try:      did you mean `demo.toml`?\n"
        )
    assert not Path("runs").exists()


def test_wrong_verb(demo: Path) -> None:
    assert "did you mean `run`?" in refused("rnu", "demo.toml")
    assert "did you mean `hocket run demo.toml`?" in refused("demo.toml")
    assert "one of `run`, `check`" in refused("xyzzy")


def test_wrong_usage(demo: Path) -> None:
    assert "--stop" in refused("run", "demo.toml", "--sotp", "1")
    assert "FILE" in refused("run")
    assert "native" in refused("run", "demo.toml", "--engine", "fast")
    assert "--threads" in refused("run", "demo.toml", "--threads", "0")


@pytest.mark.parametrize(
    ("instead_of", "typed", "essentials"),
    [
        ('"left.x"', '"left.xx"', ["`left` has no output `xx`", "line 45", "did you mean `x`?"]),
        (
            "extrapolation =",
            "extrapolaton =",
            ["no key `extrapolaton`", "line 9", "did you mean `extrapolation`?"],
        ),
        ("x0 = [1, 0]", 'step = "4 ms"', ["4 ms of `left` does not divide the step 10 ms", "5 ms"]),
        ('"10 ms"', '"-10 ms"', ["the step -10 ms is not positive", "line 7"]),
        ('"10 ms"', "0", ["the step 0 s is not positive", "line 7"]),
        ("[connections]", '[connections]\nleft.force = "left.x"', ["`left.force` has two sources"]),
        ('left.force = "spring.on_left"', "", ["nothing drives `left.force`", "start value"]),
        ('["x [m]", "v [m/s]"]', '["x [kg]", "v [m/s]"]', ["`kg` cannot be converted to `m`"]),
        ('"10 ms"', "10 ms", ["this is not TOML", "in quotes"]),
        ("x0 = [1, 0]", 'x0 = "far"', ['`x0` is the text "far"', "line 22"]),
        ('type = "state-space"', 'type = "state-spaec"', ["no model of type `state-spaec`", "`state-space`"]),
        (
            "[connections]",
            '[models.a]\ntype = "python"\nclass = "a.py:A"\n[connections]',
            ["there is no file", "a.py"],
        ),
    ],
    ids=[
        "misspelt port",
        "misspelt key",
        "step that does not divide",
        "negative step",
        "zero step",
        "two sources",
        "unconnected input",
        "unit mismatch",
        "not TOML",
        "wrong type",
        "misspelt model type",
        "missing Python class",
    ],
)
def test_bad_file(demo: Path, instead_of: str, typed: str, essentials: list[str]) -> None:
    edited(demo, instead_of, typed)
    for verb in ("run", "plan", "show"):
        message = refused(verb, "demo.toml")
        for essential in essentials:
            assert essential in message
        assert "demo.toml, line " in message
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("options", "essentials"),
    [
        (("--stop", "10.001"), ["does not divide the run", "stop at 10 s or 10.01 s"]),
        (("--stop", "-1"), ["before it starts"]),
        (("--stop", "soon"), ["`soon` is not a duration"]),
        (("--every", "13 ms"), ["is not a multiple of the step 10 ms"]),
        (("--every", "0"), ["above zero"]),
        (("--record", "left.y"), ["no port `left.y` to record", "did you mean `left.x`?"]),
    ],
    ids=["broken step", "stop before start", "no duration", "between steps", "every zero", "record"],
)
def test_bad_options_leave_nothing_behind(
    demo: Path, options: tuple[str, ...], essentials: list[str]
) -> None:
    for folder in ((), ("--folder", "out")):
        message = refused("run", "demo.toml", *options, *folder)
        for essential in essentials:
            assert essential in message
        assert "rows" not in message.replace("rows every", "")
    assert not Path("runs").exists()
    assert not Path("out").exists()


def test_nothing_says_when_to_stop(demo: Path) -> None:
    edited(demo, 'stop = "10 s"', "")
    message = refused("run", "demo.toml")
    assert "nothing says when the run stops" in message
    assert "--stop 10" in message
    good("run", "demo.toml", "--stop", "1")


def test_simulator_that_raises_in_mid_run(here: Path) -> None:
    (here / "simulators.py").write_text(SIMULATORS)
    (here / "tank.toml").write_text(TANK + "parameters = { bursts = 0.5 }\n")
    message = refused("run", "tank.toml", code=1)
    assert message == (
        "`tank` raised RuntimeError: the tank bursts\n"
        "  where:    `tank`, step() at t = 0.5 s, simulators.py line 20\n"
        f"rows up to t = 0.5 s are kept in {here / 'runs' / 'tank-001'}\n"
    )
    run = hocket.open_run("runs/tank-001")
    assert run.status == "failed"
    assert len(run["tank.level"].t) == 51
    good("export", "runs/tank-001", "a.csv")


def test_debug_adds_where_in_the_code(here: Path) -> None:
    (here / "simulators.py").write_text(SIMULATORS)
    (here / "tank.toml").write_text(TANK + "parameters = { bursts = 0.5 }\n")
    result = invoked("run", "tank.toml", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert 'simulators.py", line 20' in result.stderr
    assert invoked("run", "nothing.toml", "--debug").exit_code == 2


def test_faults_of_our_own_ask_to_be_reported(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, what in (
        (InternalError("the clock went backwards"), "the clock went backwards\n"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero\n"),
    ):

        def broken(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(hocket, "run", broken)
        message = refused("run", "demo.toml", code=1)
        assert message.startswith(what)
        assert "please report it" in message


def test_markup_in_names_is_left_alone(here: Path) -> None:
    assert "`[bold]x.toml`" in refused("run", "[bold]x.toml")


def test_numbers_as_people_read_them() -> None:
    assert [format_significant(x) for x in (0.02134, 1.239, 99.96, 35721.0)] == [
        "0.0213",
        "1.24",
        "100",
        "35,700",
    ]
    assert [format_with_prefix(x) for x in (9.5, 950, 1200, 34e6, 2e9)] == [
        "9.50",
        "950",
        "1.20k",
        "34.0M",
        "2.00G",
    ]
    assert [count(n, "row") for n in (0, 1, 1001)] == ["0 rows", "1 row", "1,001 rows"]


# in a process of its own


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_keeps_the_rows(demo: Path, here: Path) -> None:
    words = ["run", "demo.toml", "--stop", "1e9", "--every", "10"]
    code, out, err = interrupted(words, here / "runs" / "demo-001")
    assert code == 1
    assert re.fullmatch(r"stopped by Ctrl-C at t = \S+ s; every row so far is kept\n", err)
    assert out.startswith("demo stopped: ")
    assert 'hocket.open_run("runs/demo-001")' in out
    run = hocket.open_run("runs/demo-001")
    assert run.status == "stopped"
    t = run["left.x"].t
    assert t[-1] == run.info["reached"]
    assert t[:-1].tolist() == [10.0 * k for k in range(len(t) - 1)]
    assert 10 * (len(t) - 2) < t[-1] <= 10 * (len(t) - 1)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_second_ctrl_c_ends_a_long_step(here: Path) -> None:
    (here / "simulators.py").write_text(SIMULATORS)
    (here / "tank.toml").write_text(TANK + "parameters = { lasts = 100 }\n")
    words = ["run", "tank.toml", "--engine", "interpreter"]
    code, out, err = interrupted(words, here / "runs" / "tank-001", signals=2)
    assert (code, out) == (1, "")
    assert without_loads(err) == "interrupted\nevery row that was written is kept in runs/tank-001\n"


def test_exit_codes_and_pipes(demo: Path) -> None:
    commands = (["run", "demo.toml", "--stop", "1"], ["run", "none.toml"], ["show", "demo.toml"])
    processes = [
        subprocess.Popen(
            [*COMMAND, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONIOENCODING": "ascii"},  # a terminal of the past
        )
        for words in commands
    ]
    (fine, complaint), (nothing, bad), (shown, _) = (process.communicate(timeout=30) for process in processes)
    assert [process.returncode for process in processes] == [0, 2, 0]
    assert (fine.splitlines()[-1], complaint) == ('runs/demo-001  hocket.open_run("runs/demo-001")', "")
    assert nothing == ""
    assert bad.startswith("there is no file `none.toml`\n")
    assert shown.isascii()


def on_terminal(words: list[str], until: Callable[[bytes], bool] = lambda _: False) -> tuple[int, str]:
    """Run in a terminal of 80 columns; press Ctrl-C when `until` likes what is on the screen."""
    import fcntl
    import pty
    import struct
    import termios

    screen, keyboard = pty.openpty()
    fcntl.ioctl(keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [*COMMAND, *words],
        stdin=keyboard,
        stdout=keyboard,
        stderr=keyboard,
        env=environment | {"TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(keyboard)
    seen = b""
    pressed = False
    try:
        while True:
            ready, _, _ = select.select([screen], [], [], 20)
            assert ready, "nothing happens"
            try:
                more = os.read(screen, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not more:
                break
            seen += more
            if not pressed and until(seen):
                process.send_signal(signal.SIGINT)
                pressed = True
        return process.wait(20), re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", seen.decode().replace("\r\n", "\n"))
    finally:
        process.kill()
        os.close(screen)


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_progress_bar(demo: Path) -> None:
    code, text = on_terminal(
        ["run", "demo.toml", "--stop", "1e8", "--every", "100"], lambda b: b.count(b"s/s") > 4
    )
    assert code == 1
    bars = [line for line in re.split("[\r\n]", text) if "steps/s" in line]
    assert re.search(
        r"demo ━+[╸╺]?━* [\d.]+/1e\+08 s [\d.]+[kM]? s/s  [\d.]+[kM]? steps/s \S*:\d\d", bars[-1]
    )
    assert all(len(line) <= 80 for line in bars)
    assert "stopped by Ctrl-C" in text
    summary = [" ".join(line.split()) for line in text[text.rindex("demo stopped") :].splitlines()]
    assert summary[4] == "engine native"
    assert summary[-3:] == [
        "folder runs/demo-001",
        "look hocket plot runs/demo-001",
        'hocket.open_run("runs/demo-001")',
    ]


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_errors_on_a_terminal_are_broken_between_words(demo: Path) -> None:
    edited(demo, '"10 ms"', "10 ms")
    code, text = on_terminal(["run", "demo.toml"])
    assert code == 2
    what, *labelled = [line.rstrip() for line in text.splitlines()]
    assert what == "this is not TOML, expected newline or end of document after a statement: `step ="
    assert labelled == [
        "10 ms                  # how often values are exchanged`",
        "  where:    demo.toml, line 7",
        '  try:      put the duration in quotes: "10 ms"',
    ]


@pytest.mark.parametrize("verb", ["run", "plan", "check", "describe"])
def test_a_wrong_connection_that_was_typed_is_told_as_such(demo: Path, verb: str) -> None:
    told = refused(verb, demo, "--connect", "left.x=nope.y")
    assert "there is no model `nope`" in told
    assert "where:    --connect" in told
    assert "connections." not in told
    assert "where:    --connect" in refused(verb, demo, "--connect", "left.force=right.x")


def test_entries_of_matrices_can_be_set_and_swept(demo: Path) -> None:
    good("run", demo, "--set", "left.A[2,1]=-2", "--folder", "one")
    good("sweep", demo, "--vary", "left.A[2,1]=-1,-2", "--folder", "two")
    demo.write_text(demo.read_text().replace("[-1, -0.2]", "[-2, -0.2]"))
    good("run", demo, "--folder", "three")
    ends = [hocket.open_run(path)["left.x"].values[-1] for path in ("one", "two/002", "three")]
    assert ends[0] == ends[1] == ends[2]


def test_help_does_without_numpy():
    script = "import sys\nfrom hocket.cli import main\ntry:\n    main()\nfinally:\n    print(*sys.modules)"
    command = [sys.executable, "-c", script, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *_, modules = done.stdout.splitlines()
    assert "hocket.cli.app" in modules.split()
    assert not {"numpy", "hocket.model.composite", "hocket.files.formats"} & set(modules.split())


def test_a_short_run_imports_what_it_uses_and_lets_idle_threads_sleep(tmp_path):
    """Threads of OpenBLAS wait awake for tens of ms, unless told otherwise before NumPy is loaded."""
    script = """
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print("before numpy", os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
sys.meta_path.insert(0, Watch())
from hocket.cli import main
try:
    main()
finally:
    print(*sorted(sys.modules))
"""
    command = [sys.executable, "-c", script, "run", str(ROOT / "examples" / "two_masses.toml"), "--quiet"]
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    first, *_, modules = done.stdout.splitlines()
    assert first == "before numpy 20"
    lazy = {"hocket.simulators.fmu.recipe", "hocket.simulators.fmu.live", "rich.console", "pint", "pandas"}
    assert not lazy & set(modules.split())
    assert "hocket.execution.session" in modules.split()
