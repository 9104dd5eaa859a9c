"""A production line in SimPy heats its hall, and waits for it to cool.

python examples/gallery/factory.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from drawing import chosen_folder, draw

import hocket as hk

sys.path.append(str(Path(__file__).parents[1]))
from production_line import factory


def main(folder: Path) -> None:
    """Run a shift, with macro steps of one and of ten minutes."""
    runs = {}
    for step in ("1 min", "10 min"):
        run = runs[step] = hk.run(hk.Composite(factory.scenario, step), "8 h", folder=None)
        warmest = max(run["hall.temperature"].values) - 273.15
        print(f"macro step {step}: {run.final('line.made'):.0f} parts, the hall at up to {warmest:.2f} degC")
    print(hk.check(factory, stop="8 h", pilot_seconds=30.0).verdict()[0].split(":")[0])
    curves = {
        f"{step}": (s.t / 3600.0, s.values - 273.15)
        for step, run in runs.items()
        for s in [run["hall.temperature"]]
    }
    t, made = runs["1 min"]["line.made"]
    panels = [
        {"label": "hall [degC]", "time": "time [h]", "curves": curves},
        {"label": "parts", "time": "time [h]", "curves": {"made": (t / 3600.0, made)}},
    ]
    draw(folder / "factory.png", "Machines heat the hall, and wait for it", panels)


if __name__ == "__main__":
    main(chosen_folder())
