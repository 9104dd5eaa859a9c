"""Stored energy of a state, and how a state is moved onto a level of it.

In:  a matrix Q (W = x'Qx/2) or a function of the state
Out: W(x), and the nearest state with another W
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import SimulatorError
from hocket.model.protocols import Array
from hocket.simulators.methods import apply_matrix, dot

ROUNDS = 60
"""At most so many moves along a gradient; quadratic energies need one or two."""
NUDGE = float(np.finfo(float).eps) ** 0.25
"""The part of a state by which it is moved to see how its energy bends."""
CLOSE = 4.0 * float(np.finfo(float).eps)


class QuadraticEnergy:
    """W = x'Qx/2, in joules; the native engine has its twin."""

    def __init__(self, Q: Array):
        self.Q = Q
        self.held = _energy_projection(Q)
        """Takes from a state what holds energy; None: all of it does."""

    def value(self, x: Array) -> float:
        """Return x'Qx/2."""
        return 0.5 * dot(x.tolist(), apply_matrix(self.Q, x).tolist())

    def shape(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient of W at x, and its second derivatives by each state alone, the bends."""
        return apply_matrix(self.Q, x), np.diagonal(self.Q)

    def ascent_direction(self, x: Array, gradient: Array, bends: Array) -> Array:
        """Return what of x holds energy: the gradient over Q. On this way one move leads to any level."""
        return x if self.held is None else apply_matrix(self.held, x)

    def curvature(self, d: Array, bends: Array) -> float:
        """Return the second derivative of W along d: d'Qd."""
        return dot(d.tolist(), apply_matrix(self.Q, d).tolist())


class DeclaredEnergy:
    """W as a function of the state, zero where it holds nothing; its derivatives are central differences."""

    def __init__(self, function: Callable[[Array], Any], name: str):
        self.function = function
        self.name = name

    def value(self, x: Array) -> float:
        """Call the function."""
        returned = self.function(x)
        try:
            return float(returned)
        except (TypeError, ValueError):
            what = f"`{self.name}` returned {returned!r:.60}"
            raise SimulatorError(what, expected="the stored energy, one number") from None

    def shape(self, x: Array) -> tuple[Array, Array]:
        here, size = self.value(x), max(1e-3 * float(np.max(np.abs(x), initial=0.0)), 1e-9)
        gradient, bends = np.empty(x.size), np.empty(x.size)
        for number in range(x.size):
            nudge = NUDGE * max(abs(float(x[number])), size)
            moved = x.copy()
            moved[number] = x[number] + nudge
            above = self.value(moved)
            moved[number] = x[number] - nudge
            below = self.value(moved)
            gradient[number] = (above - below) / (2.0 * nudge)
            bends[number] = (above - 2.0 * here + below) / (nudge * nudge)
        return gradient, bends

    def ascent_direction(self, x: Array, gradient: Array, bends: Array) -> Array:
        """Return the gradient over the bends, no state by more than itself, none where nothing bends."""
        steep = np.abs(bends)
        d = np.divide(gradient, steep, out=np.zeros(x.size), where=steep > 0.0)
        far = np.abs(x)
        return np.where(far > 0.0, np.clip(d, -far, far), d)

    def curvature(self, d: Array, bends: Array) -> float:
        """Return it as if no state bent the energy of another: a guess that rounds make up for."""
        return float(np.sum(bends * d * d))


Energy: TypeAlias = QuadraticEnergy | DeclaredEnergy


def _energy_projection(Q: Array) -> Array | None:
    """Return the projection along states without energy; None: there are none. In units where Q is 1 or 0."""
    units = np.sqrt(np.maximum(np.diagonal(Q), 0.0))
    back = np.divide(1.0, units, out=np.zeros(units.size), where=units > 0.0)
    sizes, ways = np.linalg.eigh(back[:, None] * Q * back) if Q.size else (np.zeros(0), Q)
    held = ways[:, sizes > 1e-12]
    return None if held.shape == Q.shape else (back[:, None] * held) @ (held.T * units)


def project_to_energy(energy: Energy, x: Array, target: float, push: Array) -> Array:
    """Return the state on the level `target` that is reached from x along the gradient of the energy.

    The gradient is taken over the second derivatives (of declared functions over those by each state alone),
    so that it does not depend on units, and a state without energy stays where it is. States keep their
    signs where the energy is lowest at zero. What is below the lowest energy leads there. Where the gradient
    vanishes, x leaves along `push`.
    """
    x = np.array(x)
    W = energy.value(x)
    for _ in range(ROUNDS):
        aim = 0.0 if target < 0.0 < W else target  # first to zero: beside a far target that would be lost
        miss = aim - W
        if not math.isfinite(miss) or abs(miss) <= CLOSE * max(abs(aim), abs(W)):
            break
        gradient, bends = energy.shape(x)
        d = energy.ascent_direction(x, gradient, bends)
        b = dot(gradient.tolist(), d.tolist())
        if b <= 0.0:
            if miss < 0.0:
                break
            d, b = push, max(dot(gradient.tolist(), push.tolist()), 0.0)
        a = energy.curvature(d, bends)
        length = max(_move_length(a, b, miss), -1.0)  # so that no state changes its sign on the way down
        moved, there = _move_nearer(energy, x, d, length, aim, W)
        if moved is None:
            break
        x, W = moved, there
    floor = max(target, 0.0)
    return _scale_to_energy(energy, x, floor) if floor * (1.0 + 1e-12) < W else x


def _scale_to_energy(energy: Energy, x: Array, target: float) -> Array:
    """Return the state on the straight way to zero that has this energy; x itself, if zero has more.

    For what came from far above: where states bend the energy of each other, the rounds end too early.
    """
    gradient, bends = energy.shape(x)
    held = np.where((gradient != 0.0) | (bends != 0.0), x, 0.0)
    low, high, least = 0.0, 1.0, energy.value(x - held)
    if least >= target:
        return x - held if least < energy.value(x) else x
    for _ in range(200):
        middle = 0.5 * (low + high)
        if energy.value(x + (middle - 1.0) * held) > target:
            high = middle
        else:
            low = middle
    return x + (low - 1.0) * held


def _move_length(a: float, b: float, miss: float) -> float:
    """Return the smaller root of a s^2/2 + b s = miss; the lowest point if there is none."""
    if a <= 0.0:
        return miss / b if b > 0.0 else 0.0
    inside = b * b + 2.0 * a * miss
    if inside <= 0.0:
        return -b / a
    return 2.0 * miss / (b + math.sqrt(inside))


def _move_nearer(
    energy: Energy, x: Array, d: Array, length: float, target: float, W: float
) -> tuple[Array | None, float]:
    """Return the state after a move that brings the energy nearer to its target; None if none does."""
    if not math.isfinite(length):
        return None, W
    for _ in range(40):
        moved = x + length * d
        there = energy.value(moved)
        if abs(target - there) < abs(target - W):
            return moved, there
        length *= 0.5
    return None, W
