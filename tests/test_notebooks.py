"""The tutorials as notebooks: as their pages, without outputs, run in a kernel; progress bars."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import hocket as hk
from hocket.execution import notebook_progress as module
from systems import EXAMPLES, ROOT

NAMES = ("algorithm", "ci", "controller", "house", "two_fmus")


def test_notebooks_are_as_their_tutorials_and_have_no_outputs():
    words = [sys.executable, ROOT / "tools/notebooks.py", "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(path.stem for path in (EXAMPLES / "notebooks").glob("*.ipynb")) == sorted(NAMES)
    for name in NAMES:
        cells = json.loads((EXAMPLES / f"notebooks/{name}.ipynb").read_text())["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert len(code) >= 3
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def run_notebook(name: str, folder: Path) -> list[dict]:
    """Run a notebook in a kernel, in a copy of the folders it looks into; return its outputs."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    place = folder / "examples/notebooks"
    place.mkdir(parents=True)
    (folder / "tests").symlink_to(ROOT / "tests")
    for file in ("car.toml", "skyhook.py"):
        shutil.copy(EXAMPLES / file, folder / "examples")
    read = nbformat.read(EXAMPLES / f"notebooks/{name}.ipynb", as_version=4)
    client = nbclient.NotebookClient(read, timeout=300, resources={"metadata": {"path": str(place)}})
    client.kernel_name = "python3"
    client.execute()
    return [output for cell in read.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.filterwarnings("ignore")  # of the kernel's client
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "house" else pytest.mark.slow) for name in NAMES]
)
def test_a_notebook_runs_and_prints_what_its_tutorial_says(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    outputs = run_notebook(name, tmp_path)
    printed = "".join(output.get("text", "") for output in outputs)
    assert "Traceback" not in printed
    assert "  where:" not in printed  # no command was refused
    page = (ROOT / f"docs/tutorials/{name}.md").read_text()
    for part in page.split('```text title="prints"\n')[1:]:
        assert part.split("\n```")[0] in printed
    assert printed


class Shown:
    """Stands for IPython: keeps what is displayed."""

    def __init__(self, kernel=True):
        self.pictures: list[str] = []
        self.modules = {
            "ipykernel": SimpleNamespace(),
            "IPython": SimpleNamespace(get_ipython=lambda: object() if kernel else None),
            "IPython.display": SimpleNamespace(HTML=str, display=self.display),
        }

    def display(self, drawn, display_id):
        self.pictures.append(drawn)
        return SimpleNamespace(update=self.pictures.append)


def show(monkeypatch, kernel=True) -> Shown:
    shown = Shown(kernel)
    for name, fake in shown.modules.items():
        monkeypatch.setitem(sys.modules, name, fake)
    return shown


def test_a_run_in_a_notebook_shows_how_far_it_is_and_then_nothing(monkeypatch):
    shown = show(monkeypatch)
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    hk.run(EXAMPLES / "two_masses.toml", realtime=100.0)
    assert len(shown.pictures) >= 2
    assert "seconds: " in shown.pictures[0]
    assert " of 50 (" in shown.pictures[0]
    assert "<progress" in shown.pictures[0]
    assert shown.pictures[-1] == ""


def test_what_is_quick_or_not_in_a_notebook_shows_nothing(monkeypatch):
    shown = show(monkeypatch)
    hk.run(EXAMPLES / "two_masses.toml")
    assert shown.pictures == []
    plain = show(monkeypatch, kernel=False)
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    hk.run(EXAMPLES / "two_masses.toml", realtime=1000.0)
    assert plain.pictures == []


def test_a_sweep_counts_runs(monkeypatch):
    shown = show(monkeypatch)
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    monkeypatch.setattr(module, "PAUSE", 0.0)
    variants = [{"first.A[2,1]": -k} for k in (0.1, 0.2)]
    hk.sweep(EXAMPLES / "two_masses.toml", variants, workers=1, processes=False, realtime=100.0)
    assert any(each.count("runs: ") and " of 2 (" in each for each in shown.pictures)
    assert not any("seconds" in each for each in shown.pictures)  # one bar, not one for each run
