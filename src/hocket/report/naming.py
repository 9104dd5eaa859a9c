"""How algorithms and models are called: as a scenario file would.

In:  orchestrators, extrapolators, models, levels
Out: a few words each
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from hocket.clock import written
from hocket.engine.blueprint import Blueprint
from hocket.errors import HocketError
from hocket.files.toml.codec import EXTRAPOLATIONS, MODELS, ORCHESTRATORS
from hocket.files.toml.kinds import Family
from hocket.files.toml.place import Findings, Place, Source
from hocket.model import Model
from hocket.simulators.fmu import Fmu
from hocket.wiring import Drive


def orchestrator(thing: object) -> str:
    """Return what a file would say: `jacobi`, or `gauss-seidel (order = ...)`."""
    return _as_in_file(ORCHESTRATORS, thing)


def extrapolation(thing: object) -> str:
    """Return what a file would say: `linear`, or `nepce (alpha = -0.1)`."""
    return _as_in_file(EXTRAPOLATIONS, thing)


def fitted(drive: Drive) -> str:
    """Return how an input is extrapolated."""
    return "passed on" if drive.extrapolation is None else extrapolation(drive.extrapolation)


def conversion(drive: Drive) -> str:
    """Return the factor and offset of a connection; empty if it changes nothing."""
    factor = "" if drive.gain == 1.0 else f"× {drive.gain:g}"
    return f"{factor} {drive.offset:+g}".strip() if drive.offset else factor


def model_words(model: Model) -> Iterator[str]:
    """Yield what is worth knowing about a model on a small card."""
    yield next((kind.name for kind in MODELS.kinds if kind.cls is type(model)), type(model).__name__)
    names = (str(getattr(model, name)) for name in ("class_name", "path") if hasattr(model, name))
    yield from (Path(name).name if os.path.isabs(name) else name for name in names)
    method, step = getattr(model, "method", None), getattr(model, "step", None)
    if isinstance(model, Fmu):
        method = f"model exchange by {method}" if model.exchange else "co-simulation"
    yield from [str(method)] if isinstance(method, str) and getattr(model, "x0", None) != () else []
    yield from [f"own steps of {written(step)}"] if isinstance(step, Fraction) else []


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
        text = family.write(thing, Place(Findings(), Source()))
    except HocketError:
        return type(thing).__name__
    if not isinstance(text, dict):
        return str(text)
    options = ", ".join(f"{key} = {_plain(value)}" for key, value in text.items() if key != "type")
    return f"{text['type']} ({options})" if options else str(text["type"])


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"({_plain(item)})" if isinstance(item, list) else str(item) for item in value)
    return str(value)
