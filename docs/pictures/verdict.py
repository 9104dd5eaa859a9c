"""Draw what the README begins with: `python docs/pictures/verdict.py` writes docs/pictures/verdict.png.

In:  examples/masses.toml: as it is, and with the change that `hocket check` recommends
Out: both runs beside the exact solution, and above them what was said before there was any run
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.linalg import expm

import hocket as hk

ROOT = Path(__file__).parents[2]
STOP = 100.0


def exact_position(t: np.ndarray) -> np.ndarray:
    """Return where mass a is, from the matrix exponential; the force is 10 (xb - xa) + (vb - va)."""
    A = [[0, 1, 0, 0], [-1.1, -0.11, 1, 0.1], [0, 0, 0, 1], [1, 0.1, -11, -0.3]]
    flow, states = expm(np.array(A) * (t[1] - t[0])), [np.array([1.0, 0.0, 2.0, 0.0])]
    for _ in t[1:]:
        states.append(flow @ states[-1])
    return np.array(states)[:, 0]


def draw(path: Path) -> None:
    """Run both couplings and draw them."""
    from matplotlib.figure import Figure

    coupling = hk.read(ROOT / "examples/masses.toml").composite
    better = hk.Composite(coupling.scenario, coupling.step, hk.GaussSeidel(), extrapolation="linear")
    said = hk.check(coupling, stop="25 s").verdict()[0].split(" (")[0]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    lines = ((coupling, "#D55E00", "as it was coupled"), (better, "#0072B2", "as hocket check recommends"))
    for composite, colour, label in lines:
        t, x = hk.run(composite, STOP, folder=None)["a.x"]
        axes.plot(t, x, color=colour, linewidth=1.2, label=label)
    axes.plot(t, exact_position(t), color="black", linewidth=0.9, linestyle=":", label="exact")
    axes.set(xlabel="time [s]", ylabel="position of a mass [m]", xlim=(0, STOP), ylim=(-13.5, 13.5))
    title = f"Said before the run:  {said}"
    axes.set_title(title, loc="left", fontweight="bold", fontsize=11, color="#D55E00")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.legend(frameon=False, ncols=3, loc="lower left", fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    draw(ROOT / "docs/pictures/verdict.png")
