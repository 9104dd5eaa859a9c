"""How algorithms, models and steps are called: as a scenario file would.

In:  orchestrators, extrapolators, models, levels
Out: a few words each
"""

from __future__ import annotations

from typing import Any

from hocket.bonds import Bond
from hocket.clock import written
from hocket.engine.blueprint import Blueprint
from hocket.errors import HocketError
from hocket.files.toml.codec import EXTRAPOLATIONS, MODELS, ORCHESTRATORS
from hocket.files.toml.kinds import Family
from hocket.files.toml.place import Findings, Place, Source
from hocket.model import Extrapolator, Model, Orchestrator
from hocket.simulators.emulating import inside


def orchestrator(thing: Orchestrator) -> str:
    """Return what a file would say: `jacobi`, or `gauss-seidel (order = ...)`."""
    return _as_in_file(ORCHESTRATORS, thing)


def extrapolation(thing: Extrapolator) -> str:
    """Return what a file would say: `linear`, or `nepce (alpha = -0.1)`."""
    return _as_in_file(EXTRAPOLATIONS, thing)


def kind(model: Model) -> str:
    """Return the type of a model as a file names it."""
    bare = inside(model)
    found = (kind.name for kind in MODELS.kinds if kind.cls is type(bare))
    return next(found, type(bare).__name__)


def balance(bond: Bond) -> str:
    """Return how both sides of a bond agree on its power."""
    return {None: "none", "inversion": f"inversion (eps = {bond.eps:g})"}.get(bond.balance, str(bond.balance))


def pace(level: Blueprint, around: Blueprint | None) -> str:
    """Return how a level steps; `around` is the level it is in."""
    length = written(level.composite.step)
    if around is None:
        return f"steps of {length}"
    ratio = around.composite.step / level.composite.step
    if ratio == 1:
        return f"one step of {length} in each step around it"
    if ratio < 1:
        return f"one step of {length} in every {1 / ratio} steps around it"
    return f"{ratio} steps of {length} in each step around it"


def _as_in_file(family: Family, thing: Any) -> str:
    try:
        return _told(family.write(thing, Place(Findings(), Source())))
    except HocketError:
        return type(thing).__name__


def _told(text: Any) -> str:
    if not isinstance(text, dict):
        return str(text)
    options = ", ".join(f"{key} = {_plain(value)}" for key, value in text.items() if key != "type")
    if "type" not in text:
        return f"({options})"
    return f"{text['type']} ({options})" if options else str(text["type"])


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return _told(value)
    if isinstance(value, list):
        return ", ".join(f"({_plain(item)})" if isinstance(item, list) else str(item) for item in value)
    return str(value)
