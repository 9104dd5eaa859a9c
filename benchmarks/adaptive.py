"""What step control keeps and what it saves: errors beside tolerances, and a transient at equal error.

In:  nothing; `python benchmarks/adaptive.py`
Out: two tables: errors of oscillators in tolerances, for each way to control steps, with the steps; and of a
     transient, per tolerance, the error, the steps of simulators (those taken back count), those of the
     longest fixed step whose error is not larger, and the ratio, with the limit that was set

A pulse of 20 that decays with 40/s drives an oscillator with a period of about 6 s; both are linear and
solved exactly, so that only the coupling errs. Jacobi, linear extrapolation, 20 s. The tests of
orchestrators assert the same.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import hocket as hk
from orchestrators import test_adaptive_errors as controlled

LIMIT = 2.0
HEADS = ("tolerance", "error", "steps", "fixed: error", "steps", "ratio")
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5)
WAYS: dict[str, tuple[Any, int, dict[str, str]]] = {
    "defect, PI": (hk.Jacobi(), 1, {}),
    "the same, I": (hk.Jacobi(), 1, {"controller": "I"}),
    "the same, PID": (hk.Jacobi(), 1, {"controller": "PID"}),
    "hold": (hk.Jacobi(), 0, {}),
    "quadratic": (hk.Jacobi(), 2, {}),
    "Gauss-Seidel": (hk.GaussSeidel(), 1, {}),
    "Iterate, to 1e-9": (hk.Iterate(hk.Jacobi(), 1e-9), 1, {}),
    "orders": (hk.Jacobi(), 1, {"estimate": "orders"}),
    "richardson": (hk.Jacobi(), 1, {"estimate": "richardson"}),
    "defect, per step": (hk.Jacobi(), 1, {"per": "step"}),
}
"""What is made inside, the degree of the inputs, and the options that are not the default."""


def oscillators() -> None:
    """Print the errors of oscillators that push each other by their positions, 10 s, in tolerances."""
    print("four oscillators, 10 s: largest error / tolerance, and steps of the level (rejected)")
    heads = "".join(f"{each:>9.0e}" for each in TOLERANCES)
    print(f"{'':<20}{heads}{'slope':>8}{'at 1e-2':>14}{'at 1e-5':>14}")
    for name, (inner, degree, options) in WAYS.items():
        errors, told = [], []
        for tolerance in TOLERANCES:
            control = hk.Adaptive(inner, tolerance, **options)  # type: ignore[arg-type]
            run = hk.run(controlled.oscillators(control, hk.Polynomial(degree)), 10)
            counted = run.info["counts"]["adapted"][""]
            errors.append(controlled.largest_error(run))
            told.append(f"{counted['accepted']} ({counted['rejected']})")
        ratios = "".join(f"{error / each:>9.2g}" for error, each in zip(errors, TOLERANCES, strict=True))
        slope = controlled.slope_of(TOLERANCES, errors)
        print(f"{name:<20}{ratios}{slope:>8.2f}{told[0]:>14}{told[-1]:>14}")


def velocities() -> None:
    """Print the same by half steps, where velocities and forces are connected too."""
    tolerances = controlled.FOUR_DECADES
    errors = list(controlled.two_mass_errors(tolerances, "richardson", m1=1, m2=1))
    ratios = [error / each for error, each in zip(errors, tolerances, strict=True)]
    slope = controlled.slope_of(tolerances, errors)
    print("two masses of 1 kg that exchange place, speed and force, richardson, 1e-2 to 1e-6:")
    print(f"{'':<20}{min(ratios):.2g} to {max(ratios):.2g}, slope {slope:.2f}")


def transient() -> float:
    """Print the steps of a transient, controlled and with the best fixed step; return the least ratio."""
    print("".join(f"{head:>14}" for head in HEADS))
    ratios: list[float] = []
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-4):
        error, steps = controlled.adaptive_work(tolerance)
        other, fixed = controlled.fixed_work(error)
        ratios.append(fixed / steps)
        print(f"{tolerance:>14g}{error:>14.3g}{steps:>14}{other:>14.3g}{fixed:>14}{ratios[-1]:>14.1f}")
    return min(ratios)


def main() -> None:
    """Print the tables."""
    oscillators()
    velocities()
    print("\na transient: steps of simulators at equal error, with step control and with the best fixed step")
    least = transient()
    verdict = "kept" if least >= LIMIT else "MISSED"
    print(f"the smallest ratio is {least:.1f}, at least {LIMIT:g} was asked for: {verdict}")
    sys.exit(least < LIMIT)


if __name__ == "__main__":
    main()
