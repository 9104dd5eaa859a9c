"""A motor under a sampled PID controller that needs time to compute: what does the delay cost?

python examples/gallery/pid_with_delay.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from drawing import chosen_folder, draw

import hocket as hk

sys.path.append(str(Path(__file__).parents[1]))
from sampled_pid import loop


def main(folder: Path) -> None:
    """Let the controller compute for longer and longer."""
    curves = {}
    for delay in ("0 s", "10 ms", "20 ms", "40 ms"):
        found = hk.check(loop(delay), stop="4 s")
        t, angle = hk.run(loop(delay), "4 s", folder=None)["motor.angle"]
        said = found.verdict()[0].split(":")[0]
        far = 100.0 * (max(angle) - 1.0)
        print(f"{delay}: {said}, spectral radius {found.stability.rho:.5f}; {far:.1f} % too far")
        curves[f"computes for {delay}"] = (t, angle)
    panels = [{"label": "angle [rad]", "curves": curves}]
    draw(folder / "pid_with_delay.png", "Sampled every 50 ms, and late", panels)


if __name__ == "__main__":
    main(chosen_folder())
