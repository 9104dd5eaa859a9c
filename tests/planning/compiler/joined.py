"""Two masses rigidly joined: each one's output depends at once on the other's (requirements 1.3)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

import hocket as hk

SPRING, DAMPER, STOP = 1.0, 0.5, 10


def models(m1: float, m2: float) -> dict[str, hk.StateSpace]:
    """Return a mass from force to acceleration, and one from acceleration to force."""
    first = hk.StateSpace(
        [[0, 1], [-SPRING / m1, -DAMPER / m1]],
        [[0], [1 / m1]],
        [[1, 0], [0, 1], [-SPRING / m1, -DAMPER / m1]],
        [[0], [0], [1 / m1]],
        x0=[1, 0],
        inputs=["F [N]"],
        outputs=["x [m]", "v [m/s]", hk.Port("a", "m/s2", feedthrough=("F",))],
    )
    second = hk.StateSpace(
        [[0, 1], [0, 0]],
        [[0], [1]],
        [[-SPRING, -DAMPER]],
        [[-m2]],
        x0=[1, 0],
        inputs=["a [m/s2]"],
        outputs=[hk.Port("F", "N", feedthrough=("a",))],
    )
    return {"one": first, "two": second}


CONNECTIONS = {"one.F": "two.F", "two.a": "one.a"}


def joined(m1: float, m2: float, step: str, extrapolation: str = "hold") -> hk.Composite:
    """Return the two masses."""
    return hk.Composite(hk.Scenario(models(m1, m2), CONNECTIONS), step, extrapolation=extrapolation)


def error(composite: hk.Composite, m1: float, m2: float, path: str = "one.x", **how) -> float:
    """Return the largest error of the position, against one mass on both springs."""
    run = hk.run(composite, STOP, **how)
    A = np.array([[0, 1], [-2 * SPRING / (m1 + m2), -2 * DAMPER / (m1 + m2)]])
    t, x = run[path]
    return float(max(abs(value - (expm(A * at) @ [1.0, 0.0])[0]) for at, value in zip(t, x, strict=True)))
