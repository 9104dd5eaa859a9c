"""Two masses and a spring: each simulator is right, their coupling blows up, two words mend it.

python examples/gallery/dual_mass.py [FOLDER]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from drawing import chosen_folder, draw
from scipy.linalg import expm

import hocket as hk

file = hk.read(Path(__file__).parents[1] / "masses.toml")
better = hk.Composite(file.composite.scenario, "0.1 s", "gauss-seidel", extrapolation="linear")


def exact_position(t: np.ndarray) -> np.ndarray:
    """Return where the first mass is; the force is 10 (xb - xa) + (vb - va)."""
    A = np.array([[0, 1, 0, 0], [-1.1, -0.11, 1, 0.1], [0, 0, 0, 1], [1, 0.1, -11, -0.3]])
    return np.array([(expm(A * each) @ [1.0, 0.0, 2.0, 0.0])[0] for each in t])


def main(folder: Path) -> None:
    """Check before the run, run, and compare with the matrix exponential."""
    curves = {}
    for name, level in {"as it was": file.composite, "as recommended": better}.items():
        found = hk.check(level, stop="25 s")
        run = hk.run(level, "25 s", folder=None)
        t, x = run["a.x"]
        off = np.abs(x - exact_position(t)).max() / np.abs(exact_position(t)).max()
        worst = found.prediction.worst.relative
        print(f"{name}: {found.verdict()[0].split(';')[0]}; predicted {worst:.1%}, it was {off:.1%}")
        curves[name] = (t, x)
    curves["exact"] = (t, exact_position(t), "exact")
    draw(folder / "dual_mass.png", "Said before the run: unstable", [{"label": "a.x [m]", "curves": curves}])


if __name__ == "__main__":
    main(chosen_folder())
