"""A user's package: each class is known to files, calls and the command line by its entry point."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hocket import Capabilities, GaussSeidel, Port
from hocket.plan.accelerators import Accelerator


@dataclass(frozen=True)
class Alphabetical:
    """Gauss-Seidel in the order of the names."""

    reverse: Annotated[bool, "whether z comes first"] = False
    last: tuple[str, ...] = ()
    """These come at the end."""

    def plan(self, scenario):
        first = sorted((name for name in scenario.models if name not in self.last), reverse=self.reverse)
        return GaussSeidel([*first, *self.last]).plan(scenario)


@dataclass(frozen=True)
class DampedLine:
    """A line through the newest two samples, less steep by a factor."""

    part: Annotated[float, "how much of the slope is believed"] = 0.5
    samples = 2
    degree = 1
    slopes = False

    def start(self, y0):
        return None

    def fit(self, samples, w):
        newest = samples[-1]
        if len(samples) == 1:
            return [newest.value, 0.0 * newest.value], w
        slope = self.part * (newest.value - samples[0].value) / (newest.s - samples[0].s)
        return [newest.value - slope * newest.s, slope], w


@dataclass(frozen=True)
class Decay:
    """x' = -rate x + u."""

    rate: Annotated[float, "per second"]
    x0: float = 1.0
    label: str = ""
    inputs = (Port("u"),)
    outputs = (Port("x"),)
    capabilities = Capabilities(rollback=True)

    def open(self):
        return LiveDecay(self)


class LiveDecay:
    def __init__(self, model):
        self.model = model

    def start(self, t):
        self.x = self.model.x0

    def output(self, t, u):
        return np.array([self.x])

    def step(self, t, h, u):
        shrink = np.exp(-self.model.rate * h)
        self.x = shrink * self.x + (1.0 - shrink) / self.model.rate * u[0, 0]
        return t + h

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state

    def close(self):
        pass


@dataclass(frozen=True, slots=True)
class Halved(Accelerator):
    """The next guess is half way."""

    def start(self):
        return HalfWay()


class HalfWay:
    def begin(self):
        pass

    def next_guess(self, given, found, sweep):
        return [0.5 * (g + f) for g, f in zip(given, found, strict=True)]
