"""Draws the pictures of tuning: figure 6 of Glumac & Kovacic 2019, and the page of an example in a browser.

Run it with `python docs/pictures/tune.py`, or with a folder to draw into. It judges ten thousand couplings,
which takes a minute or two. The page is painted by Chromium, where there is one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.pop(0)  # the folder of this file, which would be taken for the one of the tests
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from hocket.cli import app
from systems import two_masses

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples" / "tuned_masses.toml"
GRID = {"two.F.alpha": "0:1.1:100", "step": "1e-3:10:100:log"}


def figure_6(path: Path) -> None:
    """Draw rho and delta of Control21 over alpha and h, with the front."""
    from hocket.search.tune.tune import tune

    tune(two_masses("Control21", 8.9), GRID, ["rho", "delta"], limits={"rho": 1.0}).plot(path)


def page(path: Path) -> None:
    """Paint the page of the example, if there is a browser."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "front.html"
        app(["tune", str(EXAMPLE), "--page", str(file), "--quiet"], standalone_mode=False)
        how = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1280,1180"]
        where = [f"--user-data-dir={folder}/profile", f"--screenshot={path}", file.as_uri()]
        subprocess.run([browser, *how, *where], check=True, capture_output=True)


def draw(folder: Path) -> None:
    """Write both."""
    folder.mkdir(parents=True, exist_ok=True)
    figure_6(folder / "tune.png")
    page(folder / "tune_page.png")


if __name__ == "__main__":
    draw(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE)
