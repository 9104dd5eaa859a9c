"""Draws the pictures of energy: a spring and a mass over time, and error over work of two masses.

Run it with `python docs/pictures/energy.py`, or with a folder to draw into.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.pop(0)  # the folder of this file, which would be taken for the one of the tests
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import numpy as np

import hocket as hk
from energy.systems import System, spring_mass, two_masses
from hocket.files.plotting import BLUE, GREY, RED, new_figure, save_figure, set_axes_title

HERE = Path(__file__).resolve().parent
TANGENT = hk.Hermite()
TICKS = (200, 500, 1000, 2000, 5000)
REMEDIES: dict[str, tuple[Any, Any, str | None, str, str]] = {
    "hold": ("hold", hk.Jacobi(), None, GREY, ":"),
    "linear": ("linear", hk.Jacobi(), None, RED, "-"),
    "tangent": (TANGENT, hk.Jacobi(), None, RED, "--"),
    "Gauss-Seidel, hold": ("hold", hk.GaussSeidel(), None, GREY, "-"),
    "inversion": (TANGENT, hk.Jacobi(), "inversion", BLUE, "--"),
    "energy": (TANGENT, hk.Jacobi(), "energy", BLUE, "-"),
    "iteration": ("linear", hk.Iterate(), None, "black", "-."),
}
"""Inputs, algorithm, balance, colour and line of each."""


def coupled(system: System, name: str, step: str) -> hk.Run:
    """Run a system with a remedy."""
    inputs, how, balance, *_ = REMEDIES[name]
    return hk.run(hk.Composite(system.scenario(balance), step, how, inputs), system.end)


def over_time(path: Path) -> None:
    """Draw the energy of a spring and a mass over that of the start."""
    system = spring_mass()
    figure, (axes,) = new_figure(8, 3.2)
    for name in ("hold", "linear", "tangent", "Gauss-Seidel, hold", "inversion", "energy"):
        t, rows = system.seen(coupled(system, name, "0.2"))
        stored = system.stored(rows)
        axes.plot(t, stored / stored[0], label=name, color=REMEDIES[name][3], linestyle=REMEDIES[name][4])
    axes.set(xlabel="t in s", ylabel="energy over that of the start", ylim=(0.95, 1.6), xlim=(0, 80))
    axes.legend(frameon=False, ncols=3, loc="upper right")
    set_axes_title(axes, "spring and mass, H = 0.2 s")
    save_figure(figure, path)


def over_work(path: Path) -> None:
    """Draw the errors of motion of two masses over steps of simulators."""
    figure, both = new_figure(9, 3.6, 2)
    for axes, system in zip(both, (two_masses(), two_masses(d=0.1, dk=0.2)), strict=True):
        for name, (*_, colour, line) in REMEDIES.items():
            points = []
            for step in system.steps:
                run = coupled(system, name, step)
                t, rows = system.seen(run)
                expected = system.reference(t)
                off = np.abs(rows - expected).max(axis=0) / np.abs(expected).max(axis=0)
                counts = run.info["counts"]
                sweeps = counts.get("sweeps", {}).get("", {}).get("total", counts["steps"])
                points.append((2 * sweeps, off.max()))
            axes.loglog(*zip(*points, strict=True), label=name, color=colour, linestyle=line, marker=".")
        axes.set(xlabel="steps of simulators", ylim=(3e-4, 5), xticks=TICKS, xticklabels=map(str, TICKS))
        axes.minorticks_off()
        set_axes_title(axes, system.name)
    both[0].set_ylabel("error of motion")
    both[1].legend(frameon=False, fontsize="small", loc="lower left")
    save_figure(figure, path)


def draw(folder: Path) -> None:
    """Write both."""
    folder.mkdir(parents=True, exist_ok=True)
    over_time(folder / "energy.png")
    over_work(folder / "energy_work.png")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
