"""How connections and models are called on the page.

In:  drives, models, levels
Out: a few words each
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from hocket.clock import format_duration
from hocket.files.wording import describe_extrapolation, model_type
from hocket.model import Model
from hocket.simulators.balanced import Balanced
from hocket.simulators.fmu import Fmu
from hocket.wiring import Drive


def extrapolation_words(drive: Drive) -> str:
    """Return how an input is extrapolated."""
    return "passed on" if drive.extrapolation is None else describe_extrapolation(drive.extrapolation)


def conversion_words(drive: Drive) -> str:
    """Return the factor and offset of a connection; empty if it changes nothing."""
    factor = "" if drive.gain == 1.0 else f"× {drive.gain:g}"
    return f"{factor} {drive.offset:+g}".strip() if drive.offset else factor


def model_words(model: Model) -> Iterator[str]:
    """Yield what is worth knowing about a model on a small card."""
    if isinstance(model, Balanced):
        yield from model_words(model.model)
        yield f"balanced by {model.form}"
        return
    yield model_type(model)
    names = (str(getattr(model, name)) for name in ("class_name", "path") if hasattr(model, name))
    yield from (Path(name).name if os.path.isabs(name) else name for name in names)
    method, step = getattr(model, "method", None), getattr(model, "step", None)
    if isinstance(model, Fmu):
        method = f"model exchange by {method}" if model.exchange else "co-simulation"
    yield from [str(method)] if isinstance(method, str) and getattr(model, "x0", None) != () else []
    yield from [f"own steps of {format_duration(step)}"] if isinstance(step, Fraction) else []
