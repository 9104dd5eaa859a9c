"""Scenarios on several hosts whose motion is known: two masses (requirements, 1.2), a chain of six."""

import numpy as np
from scipy.linalg import expm

import hocket as hk

TWO = {"plant": ["left"], "lab": ["right"]}
A = np.array([[0, 1, 0, 0], [-2, -1, 1, 0.5], [0, 0, 0, 1], [1, 0.5, -2, -1]])
STATES = ("plant.left.x", "plant.left.v", "lab.right.x", "lab.right.v")
FLAT = ("left.x", "left.v", "right.x", "right.v")


def left():
    """x'' = -x - 0.5 v + force."""
    return hk.StateSpace(
        [[0, 1], [-1, -0.5]], [[0], [1]], np.eye(2), x0=[1, 0], inputs=["force"], outputs=["x", "v"]
    )


def right():
    """The second mass and the spring between both: its force reacts at once to the first mass."""
    return hk.StateSpace(
        [[0, 1], [-2, -1]],
        [[0, 0], [1, 0.5]],
        [[1, 0.5], [1, 0], [0, 1]],
        [[-1, -0.5], [0, 0], [0, 0]],
        inputs=["x1", "v1"],
        outputs=["force", "x", "v"],
    )


def scenario(hosts=None, **more):
    wires = {"left.force": "right.force", "right.x1": "left.x", "right.v1": "left.v"}
    return hk.Scenario({"left": left(), "right": right()}, wires, hosts=hosts or TWO, **more)


def state(t):
    """The masses at a time, also before the start."""
    return expm(A * t) @ [1.0, 0.0, 0.0, 0.0]


def error(run, ports=STATES, matrix=A, first=None, only=None):
    """The largest error of all ports at all rows; `only` looks at multiples of a step."""
    values, vectors = np.linalg.eig(matrix)
    weights = np.linalg.solve(vectors, [1.0, 0, 0, 0] if first is None else first)
    worst = 0.0
    for index, port in enumerate(ports):
        t, y = np.asarray(run[port].t), np.asarray(run[port].values)
        if only:
            near = np.abs(t / only - np.round(t / only)) < 1e-9
            t, y = t[near], y[near]
        exact = np.real((vectors[index] * weights) @ np.exp(np.outer(values, t)))
        worst = max(worst, float(np.abs(y - exact).max()))
    return worst


MASSES = 6


def chain(hosts=None):
    """Six masses between springs and dampers; each pulls at its neighbours by its place and speed."""
    models, wires = {}, {}
    for k in range(MASSES):
        near = [j for j in (k - 1, k + 1) if 0 <= j < MASSES]
        models[f"m{k}"] = hk.StateSpace(
            [[0, 1], [-2.0 - 0.1 * k, -0.6]],
            [[0] * (2 * len(near)), [1.0, 0.2] * len(near)],
            np.eye(2),
            x0=[1.0 if k == 0 else 0.0, 0.1 * k],
            inputs=[f"{what}{j}" for j in near for what in "xv"],
            outputs=["x", "v"],
        )
        wires |= {f"m{k}.{what}{j}": f"m{j}.{what}" for j in near for what in "xv"}
    three = {"one": ["m0", "m1"], "two": ["m2", "m3"], "three": ["m4", "m5"]}
    return hk.Scenario(models, wires, hosts=hosts or three)


def chain_matrix():
    """The chain as one system, and its start."""
    whole = np.zeros((2 * MASSES, 2 * MASSES))
    first = np.zeros(2 * MASSES)
    for k in range(MASSES):
        whole[2 * k, 2 * k + 1] = 1.0
        whole[2 * k + 1, 2 * k : 2 * k + 2] = [-2.0 - 0.1 * k, -0.6]
        for j in (k - 1, k + 1):
            if 0 <= j < MASSES:
                whole[2 * k + 1, 2 * j : 2 * j + 2] = [1.0, 0.2]
        first[2 * k : 2 * k + 2] = [1.0 if k == 0 else 0.0, 0.1 * k]
    return whole, first
