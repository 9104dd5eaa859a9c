"""How things are called on the screen: algorithms as in a file, steps and numbers as people say them.

In:  levels, extrapolators, numbers
Out: a few words each
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hocket.clock import written
from hocket.engine.blueprint import Blueprint
from hocket.files.toml.codec import EXTRAPOLATIONS, MODELS, ORCHESTRATORS
from hocket.files.toml.kinds import Family
from hocket.files.toml.place import Findings, Place, Source
from hocket.model import Extrapolator, Model, Orchestrator
from hocket.simulators.fmu.probe.words import count as count


def orchestrator(thing: Orchestrator) -> str:
    """Return what a file would say: `jacobi`, or `gauss-seidel (order = ...)`."""
    return _as_in_file(ORCHESTRATORS, thing)


def extrapolation(thing: Extrapolator) -> str:
    """Return what a file would say: `linear`, or `nepce (alpha = -0.1)`."""
    return _as_in_file(EXTRAPOLATIONS, thing)


def kind(model: Model) -> str:
    """Return the type of a model as a file names it."""
    found = (kind.name for kind in MODELS.kinds if kind.cls is type(model))
    return next(found, type(model).__name__)


def _as_in_file(family: Family, thing: Any) -> str:
    written = family.write(thing, Place(Findings(), Source()))
    if not isinstance(written, dict):
        return str(written)
    options = ", ".join(f"{key} = {_plain(value)}" for key, value in written.items() if key != "type")
    return f"{written['type']} ({options})"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"({_plain(item)})" if isinstance(item, list) else str(item) for item in value)
    return str(value)


def step(level: Blueprint, around: Blueprint | None) -> str:
    """Return how a level steps, in words; `around` is the level it is in."""
    length = written(level.composite.step)
    ratio = Fraction(1) if around is None else around.composite.step / level.composite.step
    if around is None:
        return f"steps of {length}"
    if ratio == 1:
        return f"one step of {length} in each step around it"
    if ratio < 1:
        return f"one step of {length} in every {1 / ratio} steps around it"
    return f"{ratio} steps of {length} in each step around it"


def significant(number: float) -> str:
    """Return a number with three digits that mean something: 0.0213, 1.24, 35,700."""
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def short(number: float) -> str:
    """Return a number in few signs: 950, 1.20k, 34.0M."""
    for scale, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:#.3g}".rstrip(".") + sign
    return f"{number:#.3g}".rstrip(".")
