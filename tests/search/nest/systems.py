"""Chains of masses, and how wrong runs are against the matrix exponential of the whole system."""

from __future__ import annotations

import numpy as np

import hocket
from hocket import Composite, Jacobi, Scenario, StateSpace
from systems import THREE

SIX = ("x1", "v1", "x2", "v2", "x3", "v3")


def chain(stiff_pairs, count=30, stiff=100.0, soft=1.0, step="20 ms", extrapolation="hold"):
    """Return masses in a row, the first one at a wall; springs of these pairs (i, i + 1) are stiff.

    Every mass tells its position and speed to its right neighbour, which computes the force of the spring
    between them. All start with different speeds, so that every spring moves.
    """
    springs = [stiff if (number, number + 1) in stiff_pairs else soft for number in range(count)]
    models, wires = {}, {}
    for place, c in enumerate(springs):
        d = 0.02 * c if c == stiff else 0.2 * c
        first, last, name = place == 0, place == count - 1, f"m{place + 1:02d}"
        inputs = ([] if first else ["xl", "vl"]) + ([] if last else ["force"])
        left = [] if first else [c, d]
        right = [] if last else [1.0]
        models[name] = StateSpace(
            A=[[0, 1], [-c, -d]],
            B=[[0.0] * len(inputs), [*left, *right]],
            C=[[1, 0], [0, 1], [c, d]],
            D=[[0.0] * len(inputs)] * 2 + [[-each for each in left] + [0.0] * len(right)],
            x0=[0.0, np.cos((place + 1) ** 2)],
            inputs=inputs,
            outputs=["x", "v", "pull"],
        )
        if not first:
            before = f"m{place:02d}"
            wires |= {
                f"{name}.xl": f"{before}.x",
                f"{name}.vl": f"{before}.v",
                f"{before}.force": f"{name}.pull",
            }
    return Composite(Scenario(models, wires), step, Jacobi(), extrapolation)


def pairs_within(*clusters):
    """Return the pairs of neighbours inside clusters such as (5, 8)."""
    return {(number, number + 1) for low, high in clusters for number in range(low, high)}


def chain_matrix(stiff_pairs, count=30, stiff=100.0, soft=1.0):
    """The chain as one system, x and v of each mass in turn."""
    A = np.zeros((2 * count, 2 * count))
    for place in range(count):
        A[2 * place, 2 * place + 1] = 1.0
        c = stiff if (place, place + 1) in stiff_pairs else soft
        d = 0.02 * c if c == stiff else 0.2 * c
        ends = [place] if place == 0 else [place, place - 1]
        for one in ends:
            for other in ends:
                sign = -1.0 if one == other else 1.0
                A[2 * one + 1, 2 * other] += sign * c
                A[2 * one + 1, 2 * other + 1] += sign * d
    return A


def three_matrix(scenario):
    """The three masses of Hafner's thesis as one system (equation 6.76, its entry (4, 5) corrected)."""
    c1, c12, c23, c3 = THREE["parameters"]["c1_c12_c23_c3"][str(scenario)]
    d1, d12, d23, d3 = THREE["parameters"]["d1_d12_d23_d3"]
    A = np.array(
        [
            [0, 1, 0, 0, 0, 0],
            [-(c1 + c12), -(d1 + d12), c12, d12, 0, 0],
            [0, 0, 0, 1, 0, 0],
            [c12, d12, -(c12 + c23), -(d12 + d23), c23, d23],
            [0, 0, 0, 0, 0, 1],
            [0, 0, c23, d23, -(c23 + c3), -(d23 + d3)],
        ]
    )
    A[1::2] /= 10.0
    return A


def motion(A, x0, t):
    """The exact states at these times, a row for each state: expm(A t) x0 by eigenvectors."""
    values, vectors = np.linalg.eig(A)
    parts = np.linalg.solve(vectors, np.asarray(x0, dtype=complex))
    return np.real((vectors * parts) @ np.exp(np.outer(values, t)))


def real_errors(composite, A, x0, stop, names, micro=False):
    """Run it; return the largest errors of x and v of each mass, and their largest exact values."""
    run = hocket.run(composite, stop, every="micro" if micro else None)
    paths = {port.split(".")[-2]: port.rpartition(".")[0] for port in run.ports}
    errors, scales = [], []
    for place, name in enumerate(names):
        path = paths[name]
        for offset, port in enumerate("xv"):
            if micro:
                table = run.table(f"{path}@micro")
                t, values = table.column(0).to_numpy(), table.column(f"{path}.{port}").to_numpy()
            else:
                t, values = run[f"{path}.{port}"]
            truth = motion(A, x0, t)[2 * place + offset]
            errors.append(np.abs(values - truth).max())
            scales.append(np.abs(truth).max())
    return np.array(errors), np.array(scales)
