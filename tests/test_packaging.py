"""What hocket is installed from: recipes say what pyproject.toml says; a bare install needs no extra."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

from systems import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {"matplotlib-base": "matplotlib"}
BARE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"matplotlib", "pandas", "sksundae", "fmpy", "lxml", "pymoo", "distributed",
                                  "simpy", "SALib", "xarray", "h5py", "IPython", "gymnasium", "control"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from hocket.cli import main
sys.argv = ["hocket", *sys.argv[1:]]
main()
"""


def test_the_conda_recipe_has_the_requirements_of_the_project():
    text = (ROOT / "packaging/conda/meta.yaml").read_text()
    assert f'version = "{PROJECT["version"]}"' in text
    run = set(re.findall(r"^    - (.+)$", text.split("  run:\n")[1].split("  run_constrained:")[0], re.M))
    wanted = {re.sub(r"(?<=[\w-])(?=[<>])", " ", each, count=1) for each in PROJECT["dependencies"]}
    assert run == wanted | {f"python {PROJECT['requires-python']}"}
    constrained = re.findall(
        r"^    - (\S+) (\S+)$", text.split("  run_constrained:\n")[1].split("test:")[0], re.M
    )
    optional = {each for extra in PROJECT["optional-dependencies"].values() for each in extra}
    assert {f"{CONDA_NAMES.get(name, name)}{least}" for name, least in constrained} <= optional


def test_the_container_installs_extras_that_exist():
    text = (ROOT / "packaging/Dockerfile").read_text()
    (extras,) = re.findall(r"\.whl\)\[([\w,]+)\]", text)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert "USER hocket" in text


def bare(*words: str, folder) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BARE, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_bare_install_runs_checks_and_says_which_extra_draws(tmp_path):
    assert bare("new", "demo.toml", folder=tmp_path).returncode == 0
    done = bare("run", "demo.toml", "--csv", "rows.csv", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) > 100
    assert bare("check", "demo.toml", folder=tmp_path).returncode == 0
    drawn = bare("plot", "runs/demo-001", folder=tmp_path)
    assert drawn.returncode == 2
    assert "Traceback" not in drawn.stderr
    assert "plot" in drawn.stderr
    assert "pip install" in drawn.stderr
