"""Files from strangers: to show, plan, describe and report them loads nothing, and `--no-code` refuses to."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hocket as hk
from command_line import good, invoked, refused
from fmus.build import build
from hocket.model.code_loading import no_code
from systems import rewrite_run

EVIL = """
import os, pathlib
pathlib.Path(os.environ["HOCKET_TEST_MARKER"]).write_text("evil code ran")
class Evil:
    outputs = ["y"]
    def start(self, t): pass
    def output(self, t): return [1.0]
    def step(self, t, h, u): pass
def f(t, *more): return [0.0]
"""
BEGIN = 'step = "10 ms"\n[run]\nstop = "1 s"\n'
GAIN = '[models.gain]\ntype = "gain"\ngain = 2\n'
LAG = (
    '[models.{0}]\ntype = "state-space"\nA = [[-1]]\nB = [[1]]\nC = [[1]]\ninputs = ["u"]\noutputs = ["y"]\n'
)


def python_model(code: str) -> str:
    model = f'[models.evil]\ntype = "python"\nclass = {json.dumps(code)}\n'
    return f'{BEGIN}{GAIN}{model}[connections]\ngain.u = "evil.y"\n'


def constraint(equation: str) -> str:
    body = BEGIN + LAG.format("left") + LAG.format("right")
    return f"{body}[constraints.c]\nequations = [{json.dumps(equation)}]\n"


SCENARIOS = {
    "a class beside the file": python_model("evil.py:Evil"),
    "a module beside the file": python_model("evil:Evil"),
    "a class of the standard library": python_model("subprocess:Popen"),
    "a path that leaves the folder": python_model("../../evil.py:Evil"),
    "an absolute path": python_model("{outside}/evil.py:Evil"),
    "a link": python_model("evil_link.py:Evil"),
    "a folder of its own": f'{BEGIN}[models.m]\ntype="ode"\nfolder="{{outside}}"\nf="evil.py:f"\nx0=[1]\n',
    "an ordinary differential equation": f'{BEGIN}[models.m]\ntype = "ode"\nf = "evil.py:f"\nx0 = [1]\n',
    "a function of time": f'{BEGIN}[models.m]\ntype = "function"\nf = "evil.py:f"\noutputs = ["y"]\n',
    "an objective": f'{BEGIN}{GAIN}[tune]\nobjectives = ["evil.py:f"]\n',
    "an entry point for a model": f'{BEGIN}[models.m]\ntype = "evil-model"\n',
    "an entry point for an algorithm": f'orchestrator = "evil-algorithm"\n{BEGIN}{GAIN}',
    "an equation with code": constraint("__import__('evil').f(left.y) = right.y"),
    "an equation with attributes": constraint("left.y.__class__.__mro__ = right.y"),
    "an equation that never ends": constraint("9**9**9**9 = left.y - right.y"),
    "a deep equation": constraint("(" * 20_000 + "left.y" + ")" * 20_000 + " = right.y"),
    "an FMU": f'{BEGIN}[models.m]\ntype = "fmu"\npath = "hostile.fmu"\n',
    "an FMU that leaves its folder": f'{BEGIN}[models.m]\ntype = "fmu"\npath = "slip.fmu"\n',
    "an FMU as large as the disk": f'{BEGIN}[models.m]\ntype = "fmu"\npath = "bomb.fmu"\n',
    "an FMU with entities": f'{BEGIN}[models.m]\ntype = "fmu"\npath = "entities.fmu"\n',
    "measurements from elsewhere": f'{BEGIN}[models.m]\ntype = "csv"\npath = "/proc/self/environ"\n',
    "measurements without end": f'{BEGIN}[models.m]\ntype = "csv"\npath = "/dev/zero"\n',
    "huge numbers": f'step = "1e400 s"\n[models.gain]\ntype = "gain"\ngain = {"9" * 5000}\n',
    "deep nesting": f"{BEGIN}[models.gain]\ntype = {'[' * 50_000}{']' * 50_000}\n",
    "deep levels": BEGIN + "".join(f"[models{'.a.models' * n}.a]\ntype = 'composite'\n" for n in range(60)),
    "names that move the cursor": f'{BEGIN}[models."a\\u001b]0;evil\\u0007\\u001b[2Jb"]\ntype = "gain"\n',
    "a file within itself": f'{BEGIN}[models.m]\ntype = "composite"\nfile = "s.toml"\n',
    "markup": f'{BEGIN}[models."<script>alert(1)</script>"]\ntype = "gain"\ngain = 2\n',
}  # fmt: skip


@pytest.fixture
def stranger(tmp_path):
    """A folder with evil code in and around it, and a package that is installed."""
    outside = tmp_path / "outside"
    folder = tmp_path / "a" / "b"
    package = tmp_path / "installed"
    for each in (outside, folder, package / "evil_plugin-1.0.dist-info"):
        each.mkdir(parents=True)
    for each in (outside, folder, tmp_path, package):
        (each / "evil.py").write_text(EVIL)
    (folder / "evil_link.py").symlink_to(outside / "evil.py")
    info = package / "evil_plugin-1.0.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hocket.simulators]\nevil-model = evil:Evil\n[hocket.orchestrators]\nevil-algorithm = evil:Evil\n"
    )
    build("hostile", 2, folder=folder)
    description = zipfile.ZipFile(folder / "hostile.fmu").read("modelDescription.xml").decode()
    with zipfile.ZipFile(folder / "slip.fmu", "w") as archive:
        archive.writestr("modelDescription.xml", description)
        archive.writestr("../../evil_slip.py", EVIL)
    with zipfile.ZipFile(folder / "bomb.fmu", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", description)
        archive.writestr("resources/zeros", bytes(60 << 20))
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    kind = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "evil">{entities}]>'
    bomb = f"{kind}<fmiModelDescription>&e11;</fmiModelDescription>"
    with zipfile.ZipFile(folder / "entities.fmu", "w") as archive:
        archive.writestr("modelDescription.xml", bomb)
    return folder


def looked_at(jobs, tmp_path, timeout=60):
    """Return what the driver tells of each command line."""
    marker = tmp_path / "marker"
    attack = f"open({str(marker)!r}, 'a').write('FMU ran')"
    tests = Path(__file__).parents[1]
    env = os.environ | {
        "HOCKET_TEST_MARKER": str(marker),
        "HOCKET_TEST_ATTACK": attack,
        "PYTHONPATH": os.pathsep.join([str(tests), *filter(None, sys.path), str(tmp_path / "installed")]),
    }
    driver = Path(__file__).with_name("hostile_driver.py")
    done = subprocess.run(
        [sys.executable, str(driver)],
        input=json.dumps([[str(word) for word in words] for words in jobs]),
        capture_output=True, text=True, timeout=timeout, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert not marker.exists(), marker.read_text()
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(jobs)
    for answer in answers:
        about = f"{answer['words']}: {answer['said']}"
        assert answer["heard"] == [], about
        assert answer["crash"] == "", about
        assert "This is a fault of hocket's own" not in answer["said"], about
        assert "\x1b" not in answer["said"], about
        assert answer["code"] in (0, 1, 2, 3), about
        assert answer["took"] < 30, about
    return answers


def test_looking_at_hostile_scenarios_loads_nothing(stranger, tmp_path):
    assert len(SCENARIOS) >= 20
    outside = str(tmp_path / "outside")
    jobs = []
    for number, text in enumerate(SCENARIOS.values()):
        file = stranger / ("s.toml" if 'file = "s.toml"' in text else f"s{number}.toml")
        file.write_text(text.replace("{outside}", outside))
        jobs += [(verb, file) for verb in ("show", "plan", "describe")]
        jobs += [("run", file, "--no-code", "--folder", tmp_path / f"run{number}")]
    answers = looked_at(jobs, tmp_path)
    assert not (tmp_path / "evil_slip.py").exists()
    with_code = [name for name, text in SCENARIOS.items() if "evil.py:" in text or "Popen" in text]
    for name, answer in zip(SCENARIOS, answers[3::4], strict=True):
        if name in with_code and name != "an objective":
            assert "is code, and code is not loaded" in answer["said"], answer["said"]


def run_folder(path, scenario):
    """A run folder whose scenario is another than what was run."""
    decay = hk.StateSpace([[-1]], [], [[1]], outputs=["y"], x0=[1])
    run = hk.run(hk.Composite(hk.Scenario({"decay": decay}), step=0.1), stop=1, folder=path)
    (run.path / "scenario.toml").write_text(scenario)
    rewrite_run(run.path)
    return run.path


RUN_FACTS = {
    "markup in the name": {"name": "<script>alert(1)</script><img src=x onerror=alert(2)>"},
    "markup in an error": {"status": "failed", "error": "</script><script>alert(1)</script>"},
    "a name that moves the cursor": {"name": "\x1b]0;evil\x07\x1b[2J"},
    "tables from elsewhere": {"tables": [{"name": "", "file": "../../../etc/passwd", "columns": 1}]},
    "huge numbers": {"reached": 10**400, "stop": 10**400},
    "deep facts": {"counts": json.loads("[" * 900 + "]" * 900)},
    "another process": {"status": "running", "process": 10**30},
    "notes of other kinds": {"notes": [{"a": [1, 2, {}]}, None, 3], "timings": [], "counts": None},
}


def test_looking_at_hostile_run_folders_loads_nothing(stranger, tmp_path):
    scenarios = {name: text for name, text in SCENARIOS.items() if len(text) < 2000}
    jobs = []
    for number, text in enumerate(scenarios.values()):
        folder = run_folder(stranger / f"run{number}", text.replace("{outside}", str(tmp_path / "outside")))
        (folder / "evil.py").write_text(EVIL)
        jobs += [("report", folder), ("check", folder, "--no-code"), ("export", folder, tmp_path / "x.csv")]
    for name, facts in RUN_FACTS.items():
        folder = run_folder(stranger / f"facts {len(jobs)} {len(name)}", SCENARIOS["markup"])
        rewrite_run(folder, **facts)
        jobs += [
            ("report", folder),
            ("check", folder, "--no-code"),
            ("plot", folder, "--out", tmp_path / "p.png"),
        ]
    looked_at(jobs, tmp_path)
    for page in stranger.glob("*/report.html"):
        text = page.read_text()
        assert "<script>alert" not in text
        assert "<img src=x" not in text


def test_verbs_that_load_code_say_which_and_from_where(stranger, monkeypatch):
    monkeypatch.setenv("HOCKET_TEST_MARKER", str(stranger / "marker"))
    file = stranger / "s.toml"
    file.write_text(python_model("evil.py:Evil"))
    result = invoked("run", file, "--folder", stranger / "run")
    assert result.exit_code == 0, result.output
    assert f"loads `evil.py:Evil` from {stranger / 'evil.py'}\n" in result.stderr
    assert "not loaded" not in good("show", file, "--code")


def test_the_interface_of_python_refuses_code_as_well(stranger):
    file = stranger / "s.toml"
    file.write_text(python_model("evil.py:Evil"))
    with no_code():
        experiment = hk.read(file)
        with pytest.raises(hk.ScenarioError, match=r"`evil\.py:Evil` is code, and code is not loaded"):
            hk.run(experiment)
        with pytest.raises(hk.ScenarioError, match=r"`hostile\.fmu` is code, and code is not loaded"):
            hk.run(hk.Fmu(stranger / "hostile.fmu"), stop=1)
    assert "HOCKET_NO_CODE" not in os.environ
    assert "is code" in refused("run", file, "--no-code")
