"""The three masses of Hafner's thesis (2021, section 6.2.3): a hierarchy where one level is not enough.

python examples/gallery/thesis_masses.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from drawing import chosen_folder, draw

import hocket as hk

sys.path.append(str(Path(__file__).parents[1]))
from three_masses import exact, flat, nested


def main(folder: Path) -> None:
    """Couple them flat, and with a level for the stiff pair."""
    curves = {}
    for name, level in {
        "flat, 0.1 s": flat("100 ms"),
        "flat, 0.025 s": flat("25 ms"),
        "stiff pair in a level, 0.2 s and 0.05 s": nested("200 ms", "50 ms"),
    }.items():
        run = hk.run(level, 100, every="micro", folder=None)
        port = next(port for port in run.ports if port.endswith("middle.x"))
        t, x = run[port]
        said = hk.check(level, stop=100).verdict()[0].split(";")[0]
        print(f"{name}: {said}; off by {np.abs(x - exact(t)[2]).max():.4f} m")
        if np.abs(x).max() < 20.0:
            curves[name] = (t, x)
    curves["exact"] = (t, exact(t)[2], "exact")
    panels = [{"label": "middle mass [m]", "curves": curves, "limits": (-2.5, 2.5)}]
    draw(
        folder / "thesis_masses.png",
        "Flat at 0.1 s it blows up; nested, at twice the step, it does not",
        panels,
    )


if __name__ == "__main__":
    main(chosen_folder())
