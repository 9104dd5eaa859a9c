"""How algorithms, models and steps are called: as a scenario file would.

In:  orchestrators, extrapolators, models, levels
Out: a few words each
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hocket.coupling.wiring import Drive
from hocket.errors import HocketError
from hocket.files.toml.codec import MODELS
from hocket.files.toml.registered_kinds import EXTRAPOLATIONS, ORCHESTRATORS, KindFamily
from hocket.files.toml.syntax import FilePlace, Source, TomlFindings
from hocket.model.bonds import Bond
from hocket.model.clock import format_duration
from hocket.model.composite import Orchestrator
from hocket.model.protocols import (
    Extrapolator,
    Model,
    is_isolated,
    method_of,
    origin_of,
    state_count,
    step_of,
)
from hocket.planning.tree import PlanTree
from hocket.simulators.crossing import Detector
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.python import Python
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
    return next(found, "crossing" if isinstance(bare, Detector) else type(bare).__name__)


def describe_model(model: Model) -> Iterator[str]:
    """Yield what a model is: its type, where it comes from, its method, order and steps."""
    bare, method, step = innermost_model(model), method_of(model), step_of(model)
    yield model_type(model)
    if isinstance(bare, Fmu):
        method = f"model exchange by {bare.method}" if bare.exchange else "co-simulation"
    origin, order = origin_of(model), model.capabilities.order
    yield from [Path(origin).name if os.path.isabs(origin) else origin] if origin else []
    yield from ["isolated"] if is_isolated(model) else []
    yield from ["not loaded"] if isinstance(bare, Python) and not bare.is_loaded else []
    stateless = state_count(model) == 0
    yield from ["no state"] if stateless else [method] if method else []
    yield from [f"order {order}"] if order is not None and not stateless else []
    yield from [f"steps of {format_duration(step)}"] if step else []


def describe_balance(bond: Bond) -> str:
    """Return how both sides of a bond agree on its power."""
    return {None: "none", "inversion": f"inversion (eps = {bond.eps:g})"}.get(bond.balance, str(bond.balance))


def describe_drive(drive: Drive) -> str:
    """Return how an input is extrapolated."""
    return "passed on" if drive.extrapolation is None else describe_extrapolation(drive.extrapolation)


def describe_conversion(drive: Drive) -> str:
    """Return the factor and offset of a connection; empty if it changes nothing."""
    factor = "" if drive.gain == 1.0 else f"× {drive.gain:g}"
    return f"{factor} {drive.offset:+g}".strip() if drive.offset else factor


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
