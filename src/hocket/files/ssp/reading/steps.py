"""The step that an SSP does not tell: the smallest one its FMUs ask for, or a thousandth of the run.

In:  the FMUs, the start and the stop of the default experiment
Out: a step, and words that say where it comes from
"""

from __future__ import annotations

from fractions import Fraction

from hocket.clock import seconds, written
from hocket.files.fmus import rounded_down
from hocket.files.ssp.reading.parts import System

_DEFAULT = Fraction(1, 1000)


def default_step(system: System, start: Fraction, stop: Fraction | None) -> tuple[Fraction, str]:
    """Return the step and the reason for it."""
    span = stop - start if stop is not None and stop > start else None
    asked = {
        component.name: seconds(wish)
        for component in system.components()
        if component.fmu and (wish := component.fmu.description.step) and wish > 0
    }
    if asked:
        name = min(asked, key=lambda name: asked[name])
        step, reason = asked[name], f"which `{name}` asks for"
    elif span is not None:
        step, reason = rounded_down(span / 1000), "about a thousandth of the run"
    else:
        step, reason = _DEFAULT, "since nothing says how long the run is"
    if span is not None and (span / step).denominator != 1:
        step = span / (span / step).__ceil__()
        reason += ", shortened to divide the run"
    return step, f"the SSP tells no step: it is {written(step)}, {reason}"
