"""Sampled devices in the exact solution: they jump at their periods, and hold what they show in between.

In:  a Composite with sampled levels, and the coupled system around what these show
Out: the system with what devices hold as further states, and the jumps of these

A device sees its inputs as they are when its period begins, and moves by one step in it; outputs that react
at once show what it sees at that moment. That it holds them is a part of the system, no error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from hocket.analysis.exact import ExactSolution, block_diagonal, coupled_system, wiring_matrices
from hocket.analysis.played import PlayedSource
from hocket.engine.blueprint import PlanTree
from hocket.engine.composite import Composite
from hocket.errors import ScenarioError
from hocket.model import Array


@dataclass(frozen=True, eq=False)
class SampledDevice:
    """A model that is stepped once in a period: x' = F x + G u + rate, y = C x + D u + shift."""

    name: str
    period: Fraction
    F: Array
    G: Array
    C: Array
    D: Array
    rate: Array
    shift: Array
    x0: Array


@dataclass(frozen=True, eq=False)
class SampledSystem:
    """The system between jumps, with what is shown, kept and seen by devices behind its own states."""

    system: ExactSolution
    devices: tuple[SampledDevice, ...]
    seen: Array
    """The inputs of the devices as rows that act on the outputs, and on one."""
    places: tuple[tuple[slice, slice, slice], ...]
    """Of each device: where the states have what it shows, keeps and sees."""
    shares: Array
    """How sources act on the outputs."""
    _jumps: dict[tuple[int, ...], Array] = field(default_factory=dict, repr=False)

    def times(self, end: float) -> dict[float, tuple[int, ...]]:
        """Return when devices jump, and which."""
        found: dict[Fraction, tuple[int, ...]] = {}
        for number, device in enumerate(self.devices):
            for count in range(1, int(end / float(device.period)) + 1):
                at = count * device.period
                found[at] = (*found.get(at, ()), number)
        return {float(at): found[at] for at in sorted(found) if float(at) < end}

    def jump(self, who: tuple[int, ...]) -> Array:
        """Return the states after a jump, as rows that act on [x, 1, s]: all end a period, then all look."""
        if who not in self._jumps:
            self._jumps[who] = self._build_jump([self.devices[k] for k in who], [self.places[k] for k in who])
        return self._jumps[who]

    def _build_jump(self, devices: list[SampledDevice], places: list[tuple[slice, slice, slice]]) -> Array:
        n, k = len(self.system.x0), self.shares.shape[1]
        whole = np.eye(n + 1 + k)
        for device, (shows, keeps, saw) in zip(devices, places, strict=True):
            whole[keeps] = 0.0
            whole[keeps, keeps], whole[keeps, saw], whole[keeps, n] = device.F, device.G, device.rate
            whole[shows] = device.C @ whole[keeps]
            whole[shows, n] += device.shift
        shown = np.concatenate([np.arange(n)[shows] for shows, _, _ in places])
        looks = np.concatenate([np.arange(n)[saw] for _, _, saw in places])
        seen = self.seen[looks - self.places[0][2].start]
        inputs = seen[:, :-1] @ np.hstack([self.system.C, self.system.d[:, None], self.shares]) @ whole
        inputs[:, n] += seen[:, -1]
        D = block_diagonal([device.D for device in devices])
        back = seen[:, :-1] @ self.system.C[:, shown]
        more = np.linalg.solve(np.eye(len(shown)) - D @ back, D @ inputs)
        whole[shown] += more
        whole[looks] = inputs + back @ more
        return whole[:n]


def devices_of(composite: Composite) -> tuple[SampledDevice, ...]:
    """Return what is sampled; raises ScenarioError for what cannot be told apart from its steps."""
    return tuple(_read_device(level) for level in composite.blueprint.levels() if level.composite.sampled)


def _read_device(level: PlanTree) -> SampledDevice:
    model: Any = level.wiring.models[0]
    name, period = level.name(0), level.composite.step
    if len(level.wiring.models) != 1 or level.inner:
        raise ScenarioError(f"`{level.path}` is sampled, and what is in it is more than one simulator")
    n, m, p = len(getattr(model, "x0", ())), len(model.inputs), len(model.outputs)
    rate, shift = (getattr(model, key, np.zeros(size)) for key, size in (("rate", n), ("shift", p)))
    if hasattr(model, "F") and model.h == period:
        return SampledDevice(
            name, period, model.F, model.G[0], model.C[:p], model.D[0][:p], rate, shift[:p], model.x0
        )
    if hasattr(model, "D") and not n:
        D = np.array(model.D, dtype=float).reshape(p, m)
        none = np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0))
        return SampledDevice(name, period, *none, D, np.zeros(0), np.asarray(shift), np.zeros(0))
    raise ScenarioError(f"`{level.path}` is sampled, and moves between its samples")


def couple_devices(composite: Composite, devices: tuple[SampledDevice, ...]) -> tuple[SampledSystem, Array]:
    """Return the system with its devices, and how the sources push its states."""
    wiring = composite.blueprint.leaves.wiring
    pairs = list(zip(wiring.names, wiring.models, strict=True))
    names = {device.name for device in devices}
    inner, pushes, shares = coupled_system(composite, names)
    free = [
        name in names
        for name, model in pairs
        if name in names or isinstance(model, PlayedSource)
        for _ in model.outputs
    ]
    held = np.array(free, dtype=bool)
    L, g = wiring_matrices(composite)
    rows = [name in names for name, model in pairs for _ in model.inputs]
    seen = np.hstack([L[rows], g[rows, None]])
    first = np.concatenate(
        [np.zeros(0), *(model.first for _, model in pairs if isinstance(model, PlayedSource))]
    )
    base = inner.C @ inner.x0 + inner.d + shares[:, ~held] @ first
    shown, looked = _start_outputs(devices, seen, base, shares[:, held])
    kept = [device.x0 for device in devices]
    x0 = np.concatenate([inner.x0, shown, *kept, looked])
    n, more = len(inner.x0), len(x0) - len(inner.x0)
    A = np.zeros((len(x0), len(x0)))
    A[:n, :n], A[:n, n : n + len(shown)] = inner.A, pushes[:, held]
    C = np.hstack([inner.C, shares[:, held], np.zeros((len(base), more - len(shown)))])
    states = (*inner.states, *(f"shown {number}" for number in range(len(shown))))
    for device in devices:
        states = (*states, *(f"{device.name}.x{number + 1}" for number in range(len(device.x0))))
    states = (*states, *(f"seen {number}" for number in range(len(looked))))
    system = ExactSolution(A, np.append(inner.b, np.zeros(more)), C, inner.d, x0, states, inner.ports)
    moved = np.vstack([pushes[:, ~held], np.zeros((more, (~held).sum()))])
    return SampledSystem(system, devices, seen, _device_slices(devices, n), shares[:, ~held]), moved


def _start_outputs(
    devices: tuple[SampledDevice, ...], seen: Array, base: Array, shares: Array
) -> tuple[Array, Array]:
    """Return what devices show and see at the start, where all agree."""
    own = np.concatenate([device.C @ device.x0 + device.shift for device in devices])
    D = block_diagonal([device.D for device in devices])
    right = own + D @ (seen[:, :-1] @ base + seen[:, -1])
    shown = np.asarray(np.linalg.solve(np.eye(len(own)) - D @ seen[:, :-1] @ shares, right), dtype=float)
    return shown, np.asarray(seen[:, :-1] @ (base + shares @ shown) + seen[:, -1])


def _device_slices(devices: tuple[SampledDevice, ...], first: int) -> tuple[tuple[slice, slice, slice], ...]:
    found = []
    for sizes in (
        [len(each.D) for each in devices],
        [len(each.F) for each in devices],
        [each.D.shape[1] for each in devices],
    ):
        ends = first + np.cumsum([0, *sizes])
        found.append([slice(int(a), int(b)) for a, b in pairwise(ends)])
        first = int(ends[-1])
    return tuple(zip(*found, strict=True))
