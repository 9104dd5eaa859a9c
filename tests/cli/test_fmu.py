"""FMUs and SSPs on the command line, as somebody meets them who has just been sent one."""

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hocket
from command_line import good, interrupted, invoked, refused
from fmus.build import build
from systems import ROOT

COUPLED = (
    "--connect",
    "second.force=first.force",
    "--connect",
    "second.x->first.x",
    "--connect",
    "first.v = second.v",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """FMUs that every test may use."""
    folder = tmp_path_factory.mktemp("fmus")
    names = (
        "lag",
        "gain",
        "first",
        "second",
        "ball",
        "types",
        "fails",
        "hangs",
        "nan",
        "chatty",
        "vanderpol",
        "bare",
    )
    for name in names:
        build(name, 2, folder=folder)
    build("arrays", 3, folder=folder)
    return folder


@pytest.fixture(autouse=True)
def here(store, tmp_path, monkeypatch):
    """A folder to be in, with the FMUs in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOCKET_CACHE", str(store / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    for file in store.glob("*.fmu"):
        (tmp_path / file.name).symlink_to(file)
    return tmp_path


def final(port, folder="out"):
    return hocket.open_run(folder).final(port)


# run


def test_an_fmu_runs_under_its_default_experiment():
    first, second = good("run", "lag.fmu").splitlines()
    assert first.startswith("lag finished: 10 steps from 0 to 1 s")
    assert second == 'runs/lag-001  hocket.open_run("runs/lag-001")'


def test_options_win_over_the_experiment():
    good("run", "lag.fmu", "--stop", "2", "--step", "10 ms", "--set", "y0=1", "--folder", "out")
    assert final("lag.y") == pytest.approx(0.99**200)
    run = hocket.open_run("out")
    assert run.info["parameters"] == {"y0": 1}
    assert run.info["counts"]["steps"] == 200


def test_two_fmus_are_coupled(here):
    options = ("--step", "10ms", "--set", "second.x0=0.5", "--set", "first.m=20", "--folder", "out")
    good("run", "first.fmu", "second.fmu", *COUPLED, *options)
    first, second = hocket.Fmu("first.fmu", m=20), hocket.Fmu("second.fmu", x0=0.5)
    wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    composite = hocket.Composite(hocket.Scenario({"first": first, "second": second}, wires), "10 ms")
    assert final("second.x") == hocket.run(composite, 1).final("second.x")
    good("run", "out/scenario.toml", "--folder", "again")
    assert final("second.x", "again") == final("second.x")


def test_the_second_of_a_name_gets_a_number():
    good("run", "lag.fmu", "lag.fmu", "--connect", "lag_2.u=lag.y", "--set", "lag.y0=1", "--folder", "out")
    assert hocket.open_run("out").ports == ("lag.y", "lag_2.y")
    assert final("lag_2.y") > 0


def test_an_fmu_may_drive_itself():
    good("run", "lag.fmu", "--connect", "u=y", "--set", "y0=1", "--folder", "out")
    assert final("lag.y") == 1.0


@pytest.mark.parametrize(
    ("written", "port", "value"),
    [
        (("p_real=.5", "u_real=2"), "y_real", 1.0),
        (("p_real=1e3", "u_real=-1"), "y_real", -1000.0),
        (("p_int=3.0",), "y_int", 3),
        (("p_bool=FALSE",), "y_bool", 0),
        (("p_enum=high",), "y_enum", 3),
        (("p_enum=3", "p_string=12"), "y_enum", 3),
        (('p_string="12"',), "y_enum", 2),
        (("types.p_int=4",), "y_int", 4),
    ],
)
def test_values_as_they_are_typed(written, port, value):
    options = [word for one in written for word in ("--set", one)]
    good("run", "types.fmu", *options, "--folder", "out")
    assert final(f"types.{port}") == value


def test_arrays():
    options = ("--set", "n=2", "--set", "A=[[1, 2], [3, 4]]", "--set", "u=[1, 1]")
    good("run", "arrays.fmu", *options, "--record", "y*", "--folder", "out")
    assert [final(f"arrays.y[{k}]") for k in (1, 2)] == [3, 7]
    assert "try:      --record 'y*'\n" in refused("run", "arrays.fmu", "--record", "y")


def test_a_whole_array_wins_over_elements_in_the_file(here):
    model = '[models.it]\ntype = "fmu"\npath = "arrays.fmu"\nparameters = { "A[1,1]" = 99, u = [1, 1, 1] }\n'
    (here / "it.toml").write_text(f"step = 0.1\n{model}")
    whole = "A=[[1, 2, 0], [3, 4, 0], [0, 0, 1]]"
    good("run", "it.toml", "--stop", "1", "--set", whole, "--folder", "out")
    assert [final(f"it.y[{k}]") for k in (1, 2, 3)] == [3, 7, 1]


def test_observe_and_record():
    good("run", "lag.fmu", "--observe", "der_y", "--folder", "all")
    assert hocket.open_run("all").ports == ("lag.y", "lag.der_y")
    good("run", "lag.fmu", "gain.fmu", "--observe", "lag.der_y", "--record", "lag.der_y", "--folder", "some")
    assert hocket.open_run("some").ports == ("lag.der_y",)
    good("run", "lag.fmu", "--record", "y", "--record", "u", "--folder", "short")
    assert hocket.open_run("short").ports == ("lag.y", "lag.u")


def test_model_exchange():
    good("run", "vanderpol.fmu", "--interface", "model-exchange", "--stop", "10", "--folder", "me")
    good("run", "vanderpol.fmu", "--step", "1 ms", "--stop", "10", "--folder", "cs")
    assert final("vanderpol.x", "me") == pytest.approx(final("vanderpol.x", "cs"), abs=1e-3)
    assert "model exchange" in refused("run", "types.fmu", "--interface", "model-exchange").replace("-", " ")


def test_isolated():
    good("run", "lag.fmu", "--set", "y0=1", "--isolate", "--folder", "alone")
    good("run", "lag.fmu", "--set", "y0=1", "--folder", "here")
    assert final("lag.y", "alone") == final("lag.y", "here")


def test_a_time_limit_isolates():
    message = refused("run", "hangs.fmu", "--time-limit", "500 ms", code=1)
    assert message.startswith("a step took longer than 0.5 s: fmi2DoStep did not return\n")
    assert "a greater `time_limit` (--time-limit) of the FMU\n" in message
    assert "where:    --time-limit\n" in refused("run", "lag.fmu", "--time-limit", "soon")
    assert "`--time-limit` is 0\n" in refused("sweep", "lag.fmu", "--vary", "T=1", "--time-limit", "0")
    good("sweep", "lag.fmu", "--vary", "T=1", "--time-limit", "30 s", "--folder", "out")
    model = hocket.read("out/001/scenario.toml").composite.scenario.models["lag"]
    assert model.is_isolated
    assert model.time_limit == 30


def test_plot_alone_draws_in_the_folder_of_the_run():
    assert good("run", "lag.fmu", "--plot").splitlines()[-1] == "wrote runs/lag-001/plot.png"
    assert Path("runs/lag-001/plot.png").read_bytes().startswith(b"\x89PNG")
    good("run", "--plot", "lag.fmu", "--folder", "first")
    good("run", "lag.fmu", "--plot", "--folder", "middle")
    good("run", "lag.fmu", "--plot", "lag.svg", "--folder", "named")
    assert [Path(name).exists() for name in ("first/plot.png", "middle/plot.png", "lag.svg")] == [True] * 3
    good("run", "lag.fmu", "--folder", "first", "--overwrite")
    assert hocket.open_run("first").status == "finished"


def test_real_time():
    text = good("run", "lag.fmu", "--stop", "0.2", "--realtime", "2", "--folder", "out")
    assert re.search(r"^real time: factor 2, [\d,]+ overruns?, at most [\d.,]+ ms late$", text, re.MULTILINE)
    assert hocket.open_run("out").info["timings"]["phases"]["steps"] >= 0.09
    assert "where:    --realtime\n" in refused("run", "lag.fmu", "--realtime", "0")


def test_warnings_of_fmus_are_told_once():
    result = invoked("run", "chatty.fmu")
    assert result.exit_code == 0
    said = result.stderr.splitlines()
    assert said[0].startswith("chatty")
    assert said[1] == "(9 more such messages: --log shows all)"
    assert len(said) == 2
    loud = invoked("run", "chatty.fmu", "--log").stderr
    assert loud.count("(warning)") >= 10


def test_an_fmu_that_fails_says_so_once():
    message = refused("run", "fails.fmu", code=1)
    assert message.count("the valve is stuck") == 1
    assert "where:    `fails`, step() at t = 0.5 s" in message
    assert "`nan.y` is nan" in refused("run", "nan.fmu", code=1)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_keeps_the_rows(here):
    words = ["run", "lag.fmu", "--stop", "1e9", "--every", "1000"]
    code, out, err = interrupted(words, here / "runs" / "lag-001")
    assert (code, out[:12]) == (1, "lag stopped:")
    assert err.startswith("stopped by Ctrl-C")


# what goes wrong


@pytest.mark.parametrize(
    ("words", "essentials"),
    [
        (("lga.fmu",), ["there is no file `lga.fmu`", "did you mean `lag.fmu`?"]),
        (("lag.fmu", "lga.fmu"), ["there is no file `lga.fmu`"]),
        (("lag.fmu", "demo.toml"), ["`demo.toml` is not an FMU", "one scenario, or several FMUs"]),
        (("lag.fmu", "--set", "t=3"), ["there is no variable `t`", "--set, `lag`", "`T`"]),
        (("lag.fmu", "--set", "T=-3"), ["`T` is -3.0", "at least 1e-06 s"]),
        (("lag.fmu", "--set", "T=3 ms"), ["`T` is '3 ms'", "a number, in s"]),
        (("lag.fmu", "--set", "T"), ["`T` is not a name with a value", "name=value"]),
        (("lag.fmu", "--set", "der_y=1"), ["`der_y` cannot be set"]),
        (("lag.fmu", "gain.fmu", "--set", "k=3"), ["`k` does not name a model", "`lag.name`"]),
        (("lag.fmu", "gain.fmu", "--set", "gian.k=3"), ["no model `gian`", "did you mean `gain`?"]),
        (("types.fmu", "--set", "p_enum=hgih"), ["no item `hgih`", "did you mean `high`?"]),
        (
            ("lag.fmu", "--observe", "der"),
            ["no variable `der` to observe", "did you mean `der_y`?", "--observe"],
        ),
        (("lag.fmu", "--record", "T"), ["`T` is not a port", "--observe T"]),
        (("lag.fmu", "--stop", "0.25"), ["does not divide", "--stop", "choose another step"]),
        (("lag.fmu", "--step", "0.3"), ["does not divide"]),
        (("lag.fmu", "--step", "0"), ["not positive", "--step"]),
        (("lag.fmu", "gain.fmu", "--connect", "lag.u=gain.z"), ["`gain` has no output `z`", "--connect"]),
        (("lag.fmu", "gain.fmu", "--connect", "lgg.u=gain.y"), ["no model `lgg`", "did you mean `lag`?"]),
        (("lag.fmu", "gain.fmu", "--connect", "gain.y=lag.u"), ["source and target are exchanged"]),
        (("lag.fmu", "gain.fmu", "--connect", "lag.u"), ["`lag.u` is not a connection", "b.u=a.y"]),
        (("first.fmu", "second.fmu", "--connect", "first.x=second.v"), ["cannot be converted", "--connect"]),
    ],
)
def test_mistakes(words, essentials):
    message = refused("run", *words)
    for essential in essentials:
        assert essential in message
    assert not Path("runs").exists()


def test_the_nearest_verb():
    assert "did you mean `hocket run lag.fmu`?" in refused("lag.fmu")


# show and plan


def test_the_page_of_an_fmu():
    page = good("show", "first.fmu")
    for line in (
        "first  FMI 2.0, co-simulation and model exchange",
        "  runs here       yes",
        "  experiment      from 0 s to 1 s, steps of 0.1 s",
        "  co-simulation   rollback, serialised states, steps of any length",
        "  holds           2 inputs, 1 output, 8 parameters, 4 locals",
        "  states          2: position, speed",
        "force  real  N     x, v",
        "m           real     kg     10     >= 0",
        "run it:  hocket run first.fmu --plot",
    ):
        assert line in page.splitlines()
    assert "der_speed" not in page
    assert "der_speed" in good("show", "first.fmu", "--all")


def test_the_page_of_one_that_does_not_run_here(here):
    build("lag", 2, folder=here / "other", platform="win64")
    build("clocked", 3, folder=here / "other")
    page = good("show", "other/lag.fmu")
    assert "no: the FMU has no binary for this platform; it is for Windows only" in page
    assert "tick  clock" in good("show", "other/clocked.fmu")
    assert "tick" in refused("run", "other/clocked.fmu", "--stop", "1")  # nothing ticks it


def test_what_the_binary_lacks(here):
    build("lag", 2, folder=here / "other", binary=b"\x7fELF")
    page = good("show", "other/lag.fmu")
    assert "declared, but its binary lacks the functions: rollback (fmi2GetFMUstate" in page


def test_functions_of_fmi_1_are_named_after_the_model(here):
    build("ramp", 1, folder=here / "other")
    build("bare", 1, folder=here / "other", canInterpolateInputs="true")
    page = good("show", "other/ramp.fmu")
    assert "steps of any length, inputs that move during a step, output derivatives\n" in page
    lacks = "lacks the functions: inputs that move during a step (fmiSetRealInputDerivatives)"
    assert lacks in good("show", "other/bare.fmu")


def test_a_variable_named_like_an_element(here):
    build("gain", 2, folder=here / "other", xml=lambda text: text.replace('name="y"', 'name="y[1, 2]"'))
    assert re.search(r"^y\[1, 2\] +real +u$", good("show", "other/gain.fmu"), re.MULTILINE)
    good("run", "other/gain.fmu", "--record", "y[1, 2]", "--folder", "out")
    assert hocket.open_run("out").ports == ("gain.y[1, 2]",)


def test_texts_are_shown(here):
    models = "".join(f'[models.{name}]\ntype = "fmu"\npath = "types.fmu"\n' for name in "ab")
    wire = '[connections]\n"b.u_string" = "a.y_string"\n"b.u_real" = "a.y_real"\n'
    (here / "texts.toml").write_text(f"step = 0.1\n{models}{wire}")
    shown = good("show", "texts.toml")
    assert re.search(r"^b\.u_string +a\.y_string +text$", shown, re.MULTILINE)
    assert re.search(r"^b\.u_real +a\.y_real +hold$", shown, re.MULTILINE)


def test_types_and_ranges():
    page = good("show", "types.fmu")
    assert re.search(r"u_enum +enumeration +1 +off = 1, low = 2, high = 3", page)
    assert re.search(r"p_string +string +'hello '", page)
    assert re.search(r"k +real tunable +2 +-100 \.\. 100", good("show", "gain.fmu"))
    assert re.search(r"A +real \[n x n\] +2, 0, 0, 0, 2, 0 \.\.\.", good("show", "arrays.fmu"))


def test_problems_are_noted(here):
    build("lag", 2, folder=here / "other", needsExecutionTool="true")
    assert "note: it needs hocket's tests on this computer to run" in good("show", "other/lag.fmu")
    assert "there is no file `lga.fmu`" in refused("show", "lga.fmu")
    (here / "broken.fmu").write_bytes(b"PK\x03\x04 and no more")
    assert "the archive is damaged" in refused("show", "broken.fmu")


def test_plan_of_fmus():
    assert good("plan", "lag.fmu").startswith("lag: steps of 0.1 s, jacobi")
    plan = good("plan", "lag.fmu", "gain.fmu", "--connect", "gain.u=lag.y")
    assert "    feed gain\n    read gain\n" in plan


# SSP


@pytest.fixture
def ssp(here):
    first, second = hocket.Fmu("first.fmu"), hocket.Fmu("second.fmu")
    wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    composite = hocket.Composite(hocket.Scenario({"first": first, "second": second}, wires), "10 ms")
    hocket.write(composite, "two.ssp")
    return composite


def test_a_scenario_from_an_ssp_can_be_taken_elsewhere(ssp, here, monkeypatch):
    (here / "made").mkdir()
    told = good("compile", "two.ssp", "--out", "made/plain.toml")
    assert f"its FMUs are in {Path('made/plain.resources')}" in told
    text = Path("made/plain.toml").read_text()
    assert 'path = "plain.resources/first.fmu"' in text
    assert str(here) not in text
    assert "cache" not in text
    shutil.move("made", "elsewhere")
    Path("two.ssp").unlink()
    monkeypatch.setenv("HOCKET_CACHE", str(here / "another"))
    good("run", "elsewhere/plain.toml", "--stop", "1", "--folder", "out")
    assert final("second.x") == hocket.run(ssp, 1).final("second.x")


def test_a_scenario_from_an_unpacked_ssp_names_its_fmus_from_where_it_is(ssp, here):
    with zipfile.ZipFile("two.ssp") as archive:
        archive.extractall("open")
    good("compile", "open/SystemStructure.ssd", "--out", "plain.toml")
    text = Path("plain.toml").read_text()
    assert f'folder = "{Path("open/resources")}"' in text
    assert str(here) not in text
    good("run", "plain.toml", "--stop", "1", "--folder", "out")
    assert final("second.x") == hocket.run(ssp, 1).final("second.x")


def test_an_ssp_is_run_shown_and_planned(ssp):
    good(
        "run",
        "two.ssp",
        "--stop",
        "1",
        "--set",
        "second.x0=0.5",
        "--observe",
        "first.speed",
        "--folder",
        "out",
    )
    assert final("second.x") == hocket.run(ssp, 1, parameters={"second.x0": 0.5}).final("second.x")
    assert "first.speed" in hocket.open_run("out").ports
    shown = good("show", "two.ssp")
    assert "├── first  fmu, first.fmu, co-simulation" in shown
    assert good("plan", "two.ssp").startswith("two: steps of 10 ms, jacobi")
    assert "`hocket run two.ssp --stop 10`\n" in refused("run", "two.ssp")


def test_what_was_assumed_is_noted(here, ssp):

    with zipfile.ZipFile("two.ssp") as archive:
        text = archive.read("SystemStructure.ssd").decode()
    kept = re.sub(r"<(\w+:)?Annotations>.*?</(\w+:)?Annotations>", "", text, flags=re.DOTALL)
    with zipfile.ZipFile("plain.ssp", "w") as archive:
        archive.writestr("SystemStructure.ssd", kept)
        for name in ("first", "second"):
            archive.write(f"{name}.fmu", f"resources/{name}.fmu")
    notes = [line for line in good("show", "plain.ssp").splitlines() if line.startswith("note: ")]
    assert any("step" in note for note in notes)
    told = good("run", "plain.ssp", "--stop", "1", "--folder", "out").splitlines()
    assert set(notes) <= set(told)


# sweep


def test_a_sweep_prints_a_table_of_final_values():
    lines = good(
        "sweep",
        "lag.fmu",
        "--vary",
        "T=1,2",
        "--vary",
        "y0=1:3:3",
        "--stop",
        "1",
        "--record",
        "y",
        "--csv",
        "t.csv",
    ).splitlines()
    assert lines[0].split() == ["run", "T", "y0", "lag.y"]
    rows = [line.split() for line in lines[1:7]]
    assert [row[:3] for row in rows] == [
        [f"{n:03}", T, y0] for n, (T, y0) in enumerate(((T, y0) for T in "12" for y0 in "123"), 1)
    ]
    assert float(rows[0][3]) == pytest.approx(0.9**10, rel=1e-5)
    assert lines[7:] == ["final values of 6 runs in runs/lag-sweep-001", "wrote t.csv"]
    written = Path("t.csv").read_text().splitlines()
    assert written[0] == "run,T,y0,lag.y,status"
    assert written[6].startswith("006,2,3.0,")
    assert final("lag.y", "runs/lag-sweep-001/006") == float(written[6].split(",")[3])


def test_a_sweep_of_coupled_fmus_with_fixed_parameters(ssp):
    words = ("--vary", "second.x0=0,0.5", "--set", "first.m=20", "--quiet")
    assert good("sweep", "first.fmu", "second.fmu", *COUPLED, *words) == "runs/first-second-sweep-001\n"
    run = hocket.open_run("runs/first-second-sweep-001/002")
    assert run.info["parameters"] == {"first.m": 20, "second.x0": 0.5}
    good("sweep", "two.ssp", "--stop", "1", "--vary", "second.x0=0,0.5", "--folder", "out")
    assert "holds a run already" in refused(
        "sweep", "two.ssp", "--stop", "1", "--vary", "first.m=1", "--folder", "out"
    )


def test_lists_and_texts_vary_too():
    good("sweep", "arrays.fmu", "--set", "n=2", "--vary", "u=[1,2],[3,4]", "--folder", "lists")
    assert final("arrays.y[2]", "lists/002") == 8
    good("sweep", "types.fmu", "--vary", "p_enum=low,high", "--vary", "p_string=a:b,12", "--folder", "texts")
    assert final("types.y_enum", "texts/004") == 3


def test_a_run_of_a_sweep_that_fails():
    result = invoked("sweep", "fails.fmu", "--vary", "at=0.25,5")
    assert result.exit_code == 1
    assert result.stderr.count("the valve is stuck") == 1
    assert result.stderr.startswith("at = 0.25: ")
    assert re.search(r"001 +0\.25 +failed\n002 +5 +1\n", result.stdout)


@pytest.mark.parametrize(
    ("words", "essentials"),
    [
        (("--vary", "q=1,2"), ["there is no variable `q`", "--vary, `lag`"]),
        (("--vary", "T=1,-1"), ["`T` is -1.0", "--vary, `lag`"]),
        (("--vary", "T=1", "--set", "y0=x"), ["`y0` is 'x'", "--vary or --set"]),
        (("--vary", "T=1:2"), ["`1:2` is not a range", "1:3:5"]),
        (("--vary", "T=1:2:0"), ["`1:2:0` is not a range"]),
        (("--vary", "T="), ["`T` has no values"]),
        (("--vary", "T=1,,2"), ["`T` has no values"]),
        (("--vary", "T=1", "--vary", "T=2"), ["`T` varies twice"]),
        (("--vary", "T"), ["`T` is not a name with a value", "--vary"]),
        (("--vary", "T=1", "--stop", "0.33"), ["does not divide", "--stop"]),
        (("--vary", "T=1", "--record", "z"), ["no port `z` to record", "--record"]),
        (("--vary", "T=1", "--csv", "nowhere/t.csv"), ["there is no folder `nowhere`"]),
        ((), ["--vary"]),
    ],
)
def test_mistakes_in_a_sweep(words, essentials):
    message = refused("sweep", "lag.fmu", *words)
    for essential in essentials:
        assert essential in message
    assert "2 faults" not in message
    assert not Path("runs").exists()


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_stops_a_sweep(here):
    words = ["sweep", "lag.fmu", "--stop", "1e9", "--every", "1000", "--vary", "T=1:4:4", "--workers", "2"]
    code, out, err = interrupted(words, here / "runs" / "lag-sweep-001" / "002")
    assert code == 1
    assert err == "stopped by Ctrl-C: 2 of 4 runs were begun\n"
    assert out.count("stopped") == 2
    assert hocket.open_run("runs/lag-sweep-001/001").status == "stopped"


# the page for users


def test_the_page_about_fmus_is_true(here):
    text = (ROOT / "docs" / "fmus.md").read_text()
    names: dict = {}
    build("canbus", 3, folder=here, modelName="bus").rename(here / "bus.fmu")
    build("node", 3, folder=here)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)
    assert names["run"].status == "finished"
    assert len(names["runs"]) == 3
    commands = re.findall(r"^    hocket ((?:run|sweep) .*?[^\\])$", text, re.DOTALL | re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        good(*shlex.split(command.replace("\\\n", "")))
    assert hocket.open_run("runs/first-second-001").final("second.x") == names["run"].final("second.x")


def test_fmi_1_model_exchange_in_every_verb(here, tmp_path):
    build("oscillator", 1, folder=tmp_path, interfaces=["me"])
    assert "states          2, which FMI 1 does not name" in good("show", "oscillator.fmu")
    assert "all that it declares is true" in good("probe", "oscillator.fmu")
    good("run", "oscillator.fmu", "--step", "10ms", "--isolate", "--set", "w=3")
    run = hocket.open_run("runs/oscillator-001")
    assert run["oscillator.x"].values[-1] == pytest.approx(math.cos(3.0), abs=1e-5)
    assert re.search(r"0\.318 ", good("check", "oscillator.fmu"))  # 2 rad/s in Hz
    table = good("sweep", "oscillator.fmu", "--vary", "w=1,2", "--record", "x", "--csv", "table.csv")
    assert "w" in table


def test_the_page_of_one_with_many_variables(here, tmp_path):
    names = [f"p{k}" for k in range(450)]
    build("lag", 2, folder=tmp_path / "many", variables={name: {"parameter": 1.0} for name in names})
    page = good("show", "many/lag.fmu")
    assert "p120 " in page
    assert "p440 " not in page
    assert re.search(r"and 25\d more: --all", page)
    assert "p440 " in good("show", "many/lag.fmu", "--all")


def test_what_an_fmu_prints_does_not_mix_with_answers(store, tmp_path):
    """It prints into a buffer of C, which is written when the process ends."""
    path = build("lag", 2, folder=tmp_path, defines=["PRINTS"], file="noisy.fmu")
    for words in (["--json", "-"], ["--csv", "-"]):
        command = [
            sys.executable,
            "-m",
            "hocket",
            "run",
            str(path),
            "--no-isolate",
            "--stop",
            "1",
            "--step",
            "0.5",
        ]
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
        assert "noisy says hello" in done.stderr
        if "--json" in words:
            assert json.loads(done.stdout)["status"] == "finished"
        else:
            assert done.stdout.splitlines()[1:] == ["0,0", "0.5,0", "1,0"]
