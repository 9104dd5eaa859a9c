"""What wrappers share that let a model do what it cannot do by itself.

In:  a Model
Out: a Model like it, that says what is emulated, how, and what that costs
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hocket.errors import ScenarioError
from hocket.model.composite import as_level
from hocket.model.ports import Port
from hocket.model.protocols import Array, Model
from hocket.simulators.wrappers.replay import Replay

SETTINGS = ("stop_time", "early")
"""What engines may set on a simulator before it starts."""
_SHARED = ("class_name", "path", "is_isolated", "period", "description", "energy")
"""What else is read off models, where they have it."""


class Emulating:
    """A model around another one: ports and names are those of the one inside."""

    model: Model
    shared: tuple[str, ...] = _SHARED

    def __getattr__(self, name: str) -> Any:
        if name != "shared" and name in self.shared:
            return getattr(self.model, name)
        raise AttributeError(f"`{type(self).__name__}` has no attribute `{name}`")

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Those of the model inside."""
        return self.model.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Those of the model inside."""
        return self.model.outputs

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
    """Return whether a model is a wrapper that emulates an ability."""
    return isinstance(model, (Emulating, Replay))


def check_wrapped(model: Any, name: str, verb: str) -> None:
    """Refuse what is no model, and a level."""
    if isinstance(model, type) or not hasattr(model, "open"):
        raise ScenarioError(f"`{model!r:.60}` is no model", name, "such as `Python(Tank)`")
    if as_level(model) is not None:
        hint = f"`{name}` around each of those in it that need it"
        raise ScenarioError(f"a level is not {verb} as a whole", name, "one simulator", hint)


def forward_methods(wrapper: Any, inner: Any, *names: str) -> None:
    """Give a live wrapper the methods of the one inside that it has, and what engines may set."""
    wrapper.settles = bool(getattr(inner, "settles", False))
    for name in SETTINGS:
        if name in names and hasattr(inner, name):
            setattr(wrapper, name, getattr(inner, name))
    for name in names:
        if name not in SETTINGS and hasattr(inner, name):
            setattr(wrapper, name, getattr(inner, name))


def start_inner(wrapper: Any, inner: Any, t: float) -> None:
    """Start the one inside, with what was set on the wrapper."""
    for name in SETTINGS:
        if name in vars(wrapper):
            setattr(inner, name, getattr(wrapper, name))
    inner.start(t)


def outputs_of(simulator: Any, t: float, u: Array) -> list[float]:
    """Return the outputs as plain numbers, one for each port."""
    y = simulator.output(t, u)
    return [float(y)] if isinstance(y, (int, float)) else [float(value) for value in np.reshape(y, -1)]
