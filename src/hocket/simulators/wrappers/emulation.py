"""What wrappers share that let a model do what it cannot do by itself.

In:  a Model
Out: a Model like it, that says what is emulated, how, and what that costs
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hocket.errors import ScenarioError
from hocket.model.composite import as_level
from hocket.model.extrapolators import shift_origin
from hocket.model.ports import Port
from hocket.model.protocols import (
    Array,
    EarlyReturnSimulator,
    EndingSimulator,
    InitialisationSimulator,
    Model,
    NamedSimulator,
    NotingSimulator,
    PreferredStepSimulator,
    RunEndSimulator,
    StoredEnergySimulator,
    hand_on,
    is_model,
    period_of,
    provides,
    settles_at_start,
)

SETTINGS = (RunEndSimulator, EarlyReturnSimulator, NamedSimulator)
"""What engines may set on a simulator before it starts."""
UNCHANGED = (
    *SETTINGS,
    InitialisationSimulator,
    NotingSimulator,
    PreferredStepSimulator,
    StoredEnergySimulator,
)
"""What a wrapper shows as it is where its steps are those of the simulator inside."""


class ModelWrapper:
    """A model around another one, with the same ports; what else is the same each wrapper says itself."""

    model: Model

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self.model.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        return self.model.outputs


class Emulating(ModelWrapper):
    """A wrapper that emulates a capability; `emulation` says how, `price` what that costs and loses.

    `rank` orders the wrappers of a model from the inside out. `file_keys` are the keys, with their values,
    that ask for it in a scenario file.
    """

    emulates: ClassVar[str]
    rank: ClassVar[int]

    @property
    def period(self) -> Fraction | None:
        return period_of(self.model)

    @property
    def file_keys(self) -> dict[str, Any]:
        raise NotImplementedError

    def without_period(self) -> Any:
        """Return the same model in the step of its level."""
        inner: Any = self.model
        return replace(self, model=inner.without_period())  # type: ignore[type-var]


def emulation_layers(model: Any) -> Iterator[Any]:
    """Yield the wrappers around a model, the outermost first."""
    while is_emulation(model):
        yield model
        model = model.model


def innermost_model(model: Any) -> Any:
    """Return the model that stands in all its wrappers."""
    while is_emulation(model):
        model = model.model
    return model


def is_emulation(model: object) -> bool:
    """Return whether a model is a wrapper that emulates a capability."""
    return isinstance(model, Emulating)


def check_wrapped(model: Any, name: str, verb: str) -> None:
    """Refuse what is not a model; and a level, if `verb` says what is not done to it as a whole."""
    if not is_model(model):
        raise ScenarioError(f"`{model!r:.60}` is not a model", name, "such as `Python(Tank)`")
    if verb and as_level(model) is not None:
        hint = f"`{name}` around each of those in it that need it"
        raise ScenarioError(f"a level is not {verb} as a whole", name, "one simulator", hint)


class LiveWrapper:
    """A live simulator around another one, which does what is not defined here."""

    def __init__(self, model: Model, *shared: type):
        """Open the model; of these protocols its simulator's own methods and settings are shown here."""
        self.inner: Any = model.open()
        self.settles = settles_at_start(self.inner)
        hand_on(self.inner, self, shared)

    @property
    def ended(self) -> bool:
        """Whether the one inside has asked to end the simulation."""
        return bool(provides(self.inner, EndingSimulator) and self.inner.ended)

    def start(self, t: float) -> None:
        self._hand_over_settings()
        self.inner.start(t)

    def _hand_over_settings(self) -> None:
        """Set on the one inside what the engine has set here."""
        hand_on(self, self.inner, SETTINGS)

    def output(self, t: float, u: Array) -> Array:
        y: Array = self.inner.output(t, u)
        return y

    def step(self, t: float, h: float, u: Array) -> float:
        reached: float = self.inner.step(t, h, u)
        return reached

    def close(self) -> None:
        self.inner.close()


def outputs_of(simulator: Any, t: float, u: Array) -> list[float]:
    """Return the outputs as plain numbers, one for each port."""
    y = simulator.output(t, u)
    return [float(y)] if isinstance(y, (int, float)) else [float(value) for value in np.reshape(y, -1)]


def shift_inputs(u: Array, s: float) -> Array:
    """Return the coefficients of the same inputs in powers of the time since s later."""
    return u if s == 0.0 or len(u) == 1 else np.array(shift_origin(u, s))
