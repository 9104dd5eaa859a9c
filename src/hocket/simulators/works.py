"""The work at ports of a linear model over an exact step, as forms of its state and inputs.

In:  x' = A x + B u; which outputs and inputs are multiplied; the length of the step, the degree of the inputs
Out: per pair a matrix W: with z the state and the coefficients of the inputs, the work is z' W z
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hocket.model import Array
from hocket.simulators.state_space import StateSpace

NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)
"""Where and how the work of a part of a step is summed, on [-1, 1]."""


def works(model: StateSpace, pairs: Sequence[tuple[int, int]], h: float, degree: int) -> list[Array]:
    """Return the forms of output times input, per pair, over h seconds under inputs of this degree.

    Summed over a part in which the state hardly moves, then over twice that until the step is full: neither
    fast oscillations nor fast decays are missed, however long the step.
    """
    from scipy.linalg import expm  # here: the process of an isolated FMU does without

    n, m = len(model.A), len(model.inputs)
    A, B = np.reshape(model.A, (n, n)), np.reshape(model.B, (n, m))
    size = n + m * (degree + 1)
    flow = np.zeros((size, size))  # of the state and of the inputs' coefficients, time in steps
    flow[:n, :n], flow[:n, n : n + m] = h * A, h * B
    for k in range(degree):
        row = n + k * m
        flow[row : row + m, row + m : row + 2 * m] = (k + 1) * np.eye(m)
    doublings = (
        max(math.ceil(math.log2(max(float(np.abs(flow[:n, :n]).sum(axis=1).max(initial=0.0)), 0.5))), 0) + 1
    )
    part = 0.5**doublings
    C, D = model.output_matrices
    rates = np.zeros((len(pairs), size, size))
    for rate, (output, driven) in zip(rates, pairs, strict=True):
        rate[:n, n + driven], rate[n : n + m, n + driven] = C[output], D[output]
    moves = [expm(0.5 * part * (1.0 + node) * flow) for node in NODES]
    forms = sum(
        0.5 * part * weight * (move.T @ rates @ move) for weight, move in zip(WEIGHTS, moves, strict=True)
    )
    move = expm(part * flow)
    for _ in range(doublings):
        forms, move = forms + move.T @ forms @ move, move @ move
    units = np.concatenate([np.ones(n), *(np.full(m, h**k) for k in range(degree + 1))])
    return list(h * units[:, None] * forms * units)
