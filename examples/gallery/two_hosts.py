"""A plant on two hosts: how many messages does an accurate result need?

python examples/gallery/two_hosts.py [FOLDER]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from drawing import chosen_folder, draw
from scipy.linalg import expm

import hocket as hk
from hocket.planning.compiler.distribution import Distribution

plant = hk.read(Path(__file__).parents[1] / "two_hosts.toml").composite


def exact_position(t: np.ndarray) -> np.ndarray:
    """Return where the left mass is."""
    whole = np.array([[0, 1, 0, 0], [-2, -1, 1, 0.5], [0, 0, 0, 1], [1, 0.5, -2, -1]])
    return np.array([(expm(whole * each) @ [1.0, 0.0, 0.0, 0.0])[0] for each in t])


def main(folder: Path) -> None:
    """Exchange every 0.2 s, every 20 ms, and every 0.2 s with small steps and a polynomial between."""
    curves = {}
    for name, (level, port) in {
        "every 0.2 s, held": (hk.Composite(plant.scenario, "0.2 s"), "left.x"),
        "every 20 ms, held": (hk.Composite(plant.scenario, "20 ms"), "left.x"),
        "every 0.2 s, cubic, small steps": (Distribution("20 ms", "cubic").apply(plant), "plant.left.x"),
    }.items():
        run = hk.run(level, "10 s", folder=None, engine="interpreter")
        t, x = run[port]
        messages = sum(link["messages"] for link in run.info["counts"]["messages"].values())
        off = np.abs(x - exact_position(t))
        print(f"{name}: {messages} messages, off by {off.max():.1e} m")
        curves[name] = (t, np.maximum(off, 1e-9))
    draw(
        folder / "two_hosts.png",
        "What is exchanged, and what it buys",
        [{"label": "error of left.x [m]", "curves": curves}],
    )


if __name__ == "__main__":
    main(chosen_folder())
