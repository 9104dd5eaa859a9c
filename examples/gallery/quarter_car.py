"""A quarter of a truck over a kerb, in two FMUs with a power bond between them: who makes the energy?

python examples/gallery/quarter_car.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from drawing import chosen_folder, draw

import hocket as hk

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from fmus.build import build

STOP = 4.0


def truck(folder: Path, step: str, algorithm: str = "jacobi", extrapolation: str = "hold") -> hk.Composite:
    """Return chassis and wheel, which exchange the speed of the one and the force of the strut."""
    models = {name: hk.Fmu(build(name, 2, folder=folder)) for name in ("chassis", "wheel")}
    wires = {"chassis.force": "wheel.force", "wheel.velocity": "chassis.velocity"}
    bonds = {"strut": hk.Bond("chassis.force", "wheel.velocity")}
    return hk.Composite(hk.Scenario(models, wires, bonds=bonds), step, algorithm, extrapolation)


def main(folder: Path) -> None:
    """Run with coarser and finer steps, and with an order of calls; count the energy that is made."""
    positions, energies = {}, {}
    cases = {
        "10 ms": ("10 ms",),
        "5 ms": ("5 ms",),
        "10 ms, Gauss-Seidel": ("10 ms", "gauss-seidel"),
        "1 ms": ("1 ms",),
    }
    for name, case in cases.items():
        run = hk.run(truck(folder, *case), STOP, ledger=True, folder=None)
        bond = run.info["bonds"]["strut"]
        highest = max(run["chassis.position"].values)
        print(f"{name}: the coupling made {bond['gained']:.2f} J, the highest point is {highest:.4f} m")
        positions[name] = run["chassis.position"]
        energies[name] = run["strut.gained"]
    panels = [
        {"label": "chassis [m]", "curves": positions},
        {"label": "energy made [J]", "curves": energies},
    ]
    draw(folder / "quarter_car.png", "The coupling itself makes energy", panels)


if __name__ == "__main__":
    main(chosen_folder())
