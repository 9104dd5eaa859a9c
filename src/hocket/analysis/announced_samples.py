"""Devices that announce their samples, in the exact solution: what they do at a sample, and when it is seen.

In:  a SampledStandIn
Out: an AnnouncedDevice: its changes until a time, each as rows that act on the states of the whole system
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocket.analysis.sampled_models import SampledStandIn
from hocket.model.protocols import Array

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Change:
    """What happens at a device: it takes a sample, or shows what it computed from one."""

    samples: bool
    waiting: int
    """How many samples wait to be shown when it happens."""


@dataclass(frozen=True, eq=False)
class AnnouncedDevice:
    """x becomes F x + G u + rate with a sample; C x + D u + shift is shown with it, or a latency later.

    It keeps x and, behind it, what it will show: all outputs of each sample that waits, the oldest first.
    """

    name: str
    period: Fraction
    offset: Fraction
    latency: Fraction
    prompt: Mask
    """Which outputs are shown with the sample; the others wait."""
    at_once: Mask
    """Which outputs follow from x before the sample; the others from what it becomes."""
    F: Array
    G: Array
    C: Array
    D: Array
    rate: Array
    shift: Array
    own: Array
    """What it shows before its first sample."""
    x0: Array
    """What it keeps at the start."""

    @staticmethod
    def of(name: str, model: SampledStandIn) -> AnnouncedDevice:
        """Return what a stand-in does."""
        inside, sampling, p = model.inside, model.sampling, len(model.outputs)
        at_once = np.array([bool(port.feedthrough) for port in inside.outputs], dtype=bool)
        starts = np.array([port.start or 0.0 for port in model.inputs])
        latency = sampling.period if sampling.delay is None else sampling.delay
        prompt = np.full(p, latency == 0) if sampling.delay is not None else at_once
        C, D, shift = inside.C[:p], inside.D[0][:p], np.asarray(inside.shift)[:p]
        own = C @ inside.x0 + D @ starts + shift
        room = 0 if prompt.all() else int(latency / sampling.period) + 1
        x0 = np.concatenate([inside.x0, np.zeros(room * p)])
        matrices = inside.F, inside.G[0], C, D, np.asarray(inside.rate), shift
        offset = sampling.offset or Fraction(0)
        return AnnouncedDevice(name, sampling.period, offset, latency, prompt, at_once, *matrices, own, x0)

    @property
    def places(self) -> tuple[list[str], list[str]]:
        """The names of what it shows and keeps in the linear reading, where all of it is numbered."""
        n, p = len(self.F), len(self.own)
        kept = [*range(n), *range(n + p, len(self.x0) + p)]
        return [f"{self.name}.x{k + 1}" for k in range(n, n + p)], [f"{self.name}.x{k + 1}" for k in kept]

    def changes_until(self, end: float) -> Iterator[tuple[Fraction, Change]]:
        """Yield its changes before a time; what is due is shown before a sample is taken."""
        sample, waiting = self.offset, list[Fraction]()
        while True:
            if waiting and waiting[0] <= sample:
                at, change = waiting[0], Change(False, len(waiting))
                del waiting[0]
            else:
                at, change = sample, Change(True, len(waiting))
                waiting += [] if self.prompt.all() else [sample + self.latency]
                sample += self.period
            if float(at) >= end:
                return
            yield at, change

    def show(self, shows: slice, keeps: slice, whole: Array) -> Array:
        """Return rows of all states in which what waits the longest is shown."""
        after, queue = whole.copy(), self._queue(keeps)
        after[shows][~self.prompt] = whole[queue[0]][~self.prompt]
        for older, newer in pairwise(queue):
            after[older] = whole[newer]
        after[queue[-1]] = 0.0
        return after

    def sample(
        self, change: Change, shows: slice, keeps: slice, inputs: Array, one: int, whole: Array
    ) -> Array:
        """Return rows of all states after a sample of these inputs; `one` is the place of constants."""
        after, states = whole.copy(), slice(keeps.start, keeps.start + len(self.F))
        moved = self.F @ whole[states] + self.G @ inputs
        moved[:, one] += self.rate
        before = self.C @ whole[states] + self.D @ inputs
        values = np.where(self.at_once[:, None], before, self.C @ moved + self.D @ inputs)
        values[:, one] += self.shift
        after[states] = moved
        after[shows][self.prompt] = values[self.prompt]
        if not self.prompt.all():
            after[self._queue(keeps)[change.waiting]] = values
        return after

    def _queue(self, keeps: slice) -> list[slice]:
        p = len(self.own)
        return [slice(at, at + p) for at in range(keeps.start + len(self.F), keeps.stop, p)]
