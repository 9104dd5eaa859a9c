"""Draws the pictures of algorithms: one macro step of three simulators, from the plan that each one writes.

Run it with `python docs/pictures/draw.py`, or with a folder to draw into.
"""

from __future__ import annotations

import sys
from pathlib import Path

import hocket as hk
from hocket.planning.planner import plan_tree
from hocket.report.timeline import write_timeline_svg

HERE = Path(__file__).parent / "algorithms"


def lag(*inputs: str) -> hk.StateSpace:
    """Return a model that follows the sum of its inputs and reacts to none of them at once."""
    return hk.StateSpace([[-1.0]], [[1.0] * len(inputs)], [[1.0]], x0=[1.0], inputs=inputs, outputs=["y"])


CHAIN = hk.Scenario(
    {"engine": lag("load"), "gearbox": lag("torque", "load"), "wheel": lag("torque")},
    {
        "engine.load": "gearbox.y",
        "gearbox.torque": "engine.y",
        "gearbox.load": "wheel.y",
        "wheel.torque": "gearbox.y",
    },
)
"""Three in a row; each drives the next one and is driven by it."""

ALGORITHMS: dict[str, hk.Orchestrator] = {
    "jacobi": hk.Jacobi(),
    "gauss-seidel": hk.GaussSeidel(["engine", "gearbox", "wheel"]),
    "iterate": hk.Iterate(hk.Jacobi()),
    "predictor-corrector": hk.PredictorCorrector(),
    "slowest-first": hk.Multirate({"wheel": 4}),
    "fastest-first": hk.Multirate({"wheel": 4}, "fastest-first"),
    "compound-step": hk.Multirate({"wheel": 4}, "compound"),
    "asynchronous": hk.Asynchronous({"wheel": 5, "gearbox": 3}),
    "adaptive": hk.Adaptive(hk.Jacobi(), 1e-4),
}


def draw(folder: Path) -> None:
    """Write a picture of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, algorithm in ALGORITHMS.items():
        made = hk.Composite(CHAIN, "10 ms", algorithm, extrapolation="linear")
        write_timeline_svg(plan_tree(made), name, folder / f"{name}.svg")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
