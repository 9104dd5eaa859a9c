"""How algorithms, models and steps are called: as a scenario file would.

In:  orchestrators, extrapolators, models, levels
Out: a few words each
"""

from __future__ import annotations

from typing import Any

from hocket.errors import HocketError
from hocket.files.toml.codec import MODELS
from hocket.files.toml.registered_kinds import EXTRAPOLATIONS, ORCHESTRATORS, KindFamily
from hocket.files.toml.syntax import FilePlace, Source, TomlFindings
from hocket.model.bonds import Bond
from hocket.model.clock import format_duration
from hocket.model.composite import Orchestrator
from hocket.model.protocols import Extrapolator, Model
from hocket.planning.tree import PlanTree
from hocket.simulators.wrappers.emulation import innermost_model


def describe_orchestrator(thing: Orchestrator) -> str:
    """Return what a file would say: `jacobi`, or `gauss-seidel (order = ...)`."""
    return _as_in_file(ORCHESTRATORS, thing)


def describe_extrapolation(thing: Extrapolator) -> str:
    """Return what a file would say: `linear`, or `nepce (alpha = -0.1)`."""
    return _as_in_file(EXTRAPOLATIONS, thing)


def model_type(model: Model) -> str:
    """Return the type of a model as a file names it."""
    bare = innermost_model(model)
    found = (kind.name for kind in MODELS.kinds if kind.cls is type(bare))
    return next(found, type(bare).__name__)


def describe_balance(bond: Bond) -> str:
    """Return how both sides of a bond agree on its power."""
    return {None: "none", "inversion": f"inversion (eps = {bond.eps:g})"}.get(bond.balance, str(bond.balance))


def describe_pace(level: PlanTree, around: PlanTree | None) -> str:
    """Return how a level steps; `around` is the level it is in."""
    length = format_duration(level.composite.step)
    if around is None:
        return f"steps of {length}"
    ratio = around.composite.step / level.composite.step
    if ratio == 1:
        return f"one step of {length} in each step around it"
    if ratio < 1:
        return f"one step of {length} in every {1 / ratio} steps around it"
    return f"{ratio} steps of {length} in each step around it"


def _as_in_file(family: KindFamily, thing: Any) -> str:
    try:
        return _format_options(family.write(thing, FilePlace(TomlFindings(), Source())))
    except HocketError:
        return type(thing).__name__


def _format_options(text: Any) -> str:
    if not isinstance(text, dict):
        return str(text)
    options = ", ".join(f"{key} = {_format_value(value)}" for key, value in text.items() if key != "type")
    if "type" not in text:
        return f"({options})"
    return f"{text['type']} ({options})" if options else str(text["type"])


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return _format_options(value)
    if isinstance(value, list):
        return ", ".join(
            f"({_format_value(item)})" if isinstance(item, list) else str(item) for item in value
        )
    return str(value)
