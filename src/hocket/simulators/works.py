"""What flows into a linear model over an exact step, as forms of its state and inputs.

In:  a StateSpace; its bonds; the length of the step, the degree of the inputs
Out: matrices W: with z the state and the coefficients of the inputs, z' W z is the energy
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hocket.model import Array
from hocket.simulators.balancing import Seat
from hocket.simulators.state_space import StateSpace

NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)
"""Where and how the powers of a part of a step are summed, on [-1, 1]."""
ROUNDED = 1e-13
"""The part of what it is made of below which a power is zero."""


def works(model: StateSpace, seats: Sequence[Seat], h: float, degree: int) -> Array:
    """Return the forms of the works of the bonds over h seconds; the last is what comes in besides."""
    n, m = len(model.A), len(model.inputs)
    size = n + m * (degree + 1)
    flow = np.zeros((size, size))  # of the state and of the inputs' coefficients, time in steps
    flow[:n, :n], flow[:n, n : n + m] = (h * matrix for matrix in _state_matrices(model))
    for k in range(degree):
        row = n + k * m
        flow[row : row + m, row + m : row + 2 * m] = (k + 1) * np.eye(m)
    powers = np.zeros((len(seats) + 1, size, size))
    powers[:, : n + m, : n + m] = _power_forms(model, seats)
    units = np.concatenate([np.ones(n), *(np.full(m, h**k) for k in range(degree + 1))])
    forms: Array = h * units[:, None] * _integrate_forms(flow, powers) * units
    return forms


def _state_matrices(model: StateSpace) -> tuple[Array, Array]:
    """Return A and B."""
    n, m = len(model.A), len(model.inputs)
    return np.reshape(model.A, (n, n)), np.reshape(model.B, (n, m))


def _power_forms(model: StateSpace, seats: Sequence[Seat]) -> Array:
    """Return the power of each bond, and that which is of no bond, as forms of state and inputs."""
    (A, B), (C, D) = _state_matrices(model), model.output_matrices
    n, m = B.shape
    powers = np.zeros((len(seats) + 1, n + m, n + m))
    for power, seat in zip(powers, seats, strict=False):
        power[:, n + seat.input] = seat.sign * np.concatenate([C[seat.output], D[seat.output]])
    if model.stored_energy is not None:
        rate, Q = np.concatenate([A, B], axis=1), model.stored_energy.Q
        besides, large = -np.sum(powers, axis=0), np.sum(np.abs(powers), axis=0)
        besides[:n], large[:n] = besides[:n] + Q @ rate, large[:n] + np.abs(Q) @ np.abs(rate)
        besides, large = 0.5 * (besides + besides.T), 0.5 * (large + large.T)
        powers[-1] = np.where(np.abs(besides) > ROUNDED * large, besides, 0.0)
    return powers


def _integrate_forms(flow: Array, powers: Array) -> Array:
    """Return the integrals of powers along a flow, over one unit of time.

    Summed over a part in which the state hardly moves, then over twice that until the step is full: neither
    fast oscillations nor fast decays are missed, however long the step.
    """
    from scipy.linalg import expm  # here: the process of an isolated FMU does without

    fastest = float(np.abs(flow).sum(axis=1).max(initial=0.0))
    doublings = 1 + max(math.ceil(math.log2(fastest)), 0) if fastest > 0.0 else 0
    part = 0.5**doublings
    total = np.zeros_like(powers)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        move = expm(0.5 * part * (1.0 + node) * flow)
        total = total + 0.5 * part * weight * (move.T @ powers @ move)
    move = expm(part * flow)
    for _ in range(doublings):
        total, move = total + move.T @ total @ move, move @ move
    return total
