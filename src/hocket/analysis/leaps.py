"""Many micro steps at once: what a linear model does in all of them is one matrix.

In:  a Composite of linear models
Out: the same Composite; what has many micro steps in a step takes them in one leap, equal but for rounding
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hocket.analysis.stand_ins import Tangent, TangentSimulator
from hocket.engine.composite import Composite
from hocket.model import Array, Model
from hocket.parameters import leaves, with_leaves
from hocket.signals import shift_origin
from hocket.simulators.methods import Maps, micro_steps
from hocket.simulators.state_space import StateSpace, StateSpaceSimulator

FEW = 3
"""Micro steps up to which they are made one by one."""


def merge_micro_steps(composite: Composite) -> Composite:
    """Return the composite with leaps in place of the micro steps of its linear models."""
    changed = {
        path: found for path, model in leaves(composite) if (found := _merge_model_steps(model)) is not None
    }
    return with_leaves(composite, changed)


def _merge_model_steps(model: Model) -> Model | None:
    if getattr(model, "step", None) is None:
        return None
    kind = {StateSpace: LeapingModel, Tangent: LeapingTangent}.get(type(model))
    if kind is None:
        return None
    made: Model = object.__new__(kind)
    made.__dict__.update(vars(model))
    return made


class LeapingModel(StateSpace):
    """A StateSpace whose simulators leap."""

    def open(self) -> StateSpaceSimulator:
        """Make a live simulator."""
        return LeapingSimulator(self)


class LeapingSimulator(StateSpaceSimulator):
    """A StateSpaceSimulator that makes all micro steps of a step at once, unless each is looked at."""

    def __init__(self, model: StateSpace):
        super().__init__(model)
        self.leaps: dict[tuple[float, int, int], Array] = {}

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h."""
        count = micro_steps(h, self.step_length)
        if count <= FEW or self.micro is not None or not self.size:
            return super().step(t, h, u)
        length, done = h / count, 0
        maps = self.maps(length, len(u) - 1)
        if maps.first is not None and self.last_h != length:
            super().step(t, length, u)
            done = 1
        coefficients = np.array(shift_origin(list(u), done * length))
        key = length, count - done, len(u)
        if key not in self.leaps:
            self.leaps[key] = _merged_step_matrix(maps, length, count - done)
        whole, size = self.leaps[key], len(self.z)
        driven = coefficients.reshape(-1, *np.shape(self.z)[1:])
        self.z = whole[:, :size] @ self.z + whole[:, size:] @ driven
        self.last_h = length
        return t + h


def _merged_step_matrix(maps: Maps, length: float, count: int) -> Array:
    """Return what so many micro steps do, as a matrix that acts on [z, c_0, c_1, ...]."""
    powers, size, inputs = maps.Gamma.shape
    one = np.zeros((size + powers * inputs, size + powers * inputs))
    one[:size, :size] = maps.Phi
    one[:size, size:] = maps.Gamma.transpose(1, 0, 2).reshape(size, powers * inputs)
    shift = np.zeros((powers, powers))
    for k in range(powers):
        for j in range(k, powers):
            shift[k, j] = math.comb(j, k) * length ** (j - k)
    one[size:, size:] = np.kron(shift, np.eye(inputs))
    return np.asarray(np.linalg.matrix_power(one, count)[:size])


@dataclass(frozen=True, eq=False)
class LeapingTangent(Tangent):
    """A Tangent whose simulators leap."""

    def open(self) -> TangentSimulator:
        """Make a live simulator."""
        return TangentSimulator(self, LeapingSimulator(self.linear))
