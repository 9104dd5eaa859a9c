"""Two FMUs in a row, and why the signal was one step late.

python examples/gallery/two_fmus.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from drawing import chosen_folder, draw

import hocket as hk

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from fmus.build import build


def chain(folder: Path, algorithm: hk.Jacobi | hk.GaussSeidel) -> hk.Composite:
    """Return a sine, an FMU that lags behind it, and an FMU that hands on what it is given."""
    models = {
        "sine": hk.blocks.Sine(frequency=0.5),
        "lag": hk.Fmu(build("lag", 2, folder=folder)),
        "gain": hk.Fmu(build("gain", 2, folder=folder), k=1.0),
    }
    return hk.Composite(hk.Scenario(models, {"lag.u": "sine.y", "gain.u": "lag.y"}), "100 ms", algorithm)


def steps_late(run: hk.Run) -> int:
    """Return by how many rows the second FMU shows what the first one showed."""
    first, second = run["lag.y"].values, run["gain.y"].values
    return next(late for late in range(5) if np.array_equal(first[2 : -late or None], second[2 + late :]))


def main(folder: Path) -> None:
    """Run three couplings of the same two FMUs."""
    curves = {}
    for name, algorithm in {
        "Jacobi, outputs as after the step": hk.Jacobi(outputs="stale"),
        "Jacobi, outputs evaluated again": hk.Jacobi(),
        "Gauss-Seidel": hk.GaussSeidel(outputs="stale"),
    }.items():
        run = hk.run(chain(folder, algorithm), "4 s", folder=None)
        print(f"{name}: {steps_late(run)} steps late")
        curves[name] = run["gain.y"]
    curves["what the first FMU shows"] = (*run["lag.y"], "exact")
    draw(folder / "two_fmus.png", "One signal, three couplings", [{"label": "gain.y", "curves": curves}])
    print("what is done in a step, under Jacobi with outputs as after the step:")
    print(
        hk.run(chain(folder, hk.Jacobi(outputs="stale")), "1 s").plan_text.split("each step:\n")[1].rstrip()
    )


if __name__ == "__main__":
    main(chosen_folder())
