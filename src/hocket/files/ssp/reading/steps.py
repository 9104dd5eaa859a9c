"""The step that an SSP does not tell: the smallest one its FMUs ask for, or a thousandth of the run.

In:  the FMUs, the start and the stop of the default experiment
Out: a step, and words that say where it comes from
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from hocket.clock import format_duration, seconds
from hocket.files.fmus import round_down
from hocket.files.ssp.reading.parts import Component, System
from hocket.simulators.fmu.recipe import Fmu

_DEFAULT = Fraction(1, 1000)
_TRIED = 10_000


def default_step(system: System, start: Fraction, stop: Fraction | None) -> tuple[Fraction, str]:
    """Return the step and the reason for it."""
    span = stop - start if stop is not None and stop > start else None
    usual = _DEFAULT, "since nothing says how long the run is"
    if span is not None:
        usual = round_down(span / 1000), "about a thousandth of the run"
    wishes = _requested_steps(system, usual[0], span)
    step, reason = min(wishes, key=lambda wish: wish[0], default=usual)
    if span is not None and (span / step).denominator != 1:
        step = span / (span / step).__ceil__()
        reason += ", shortened to divide the run"
    return step, f"the SSP tells no step: it is {format_duration(step)}, {reason}"


def _requested_steps(
    system: System, usual: Fraction, span: Fraction | None, path: str = ""
) -> Iterator[tuple[Fraction, str]]:
    """Yield the steps that the FMUs at any depth ask for, each with the reason."""
    for part in system.parts.values():
        name = f"{path}{part.name}"
        if isinstance(part, System):
            yield from _requested_steps(part, usual, span, f"{name}.")
        elif isinstance(part, Component) and part.fmu is not None:
            asked, own = (
                _finite_seconds(part.fmu.description.step),
                _finite_seconds(_internal_step(part, part.fmu)),
            )
            if asked:
                yield asked, f"which `{name}` asks for"
            elif own:
                step = own * _step_multiple(own, usual, span)
                yield step, f"a multiple of the {format_duration(own)} that `{name}` steps by inside"


def _internal_step(component: Component, fmu: Fmu) -> float | None:
    """Return the step that an FMU keeps to inside."""
    solved = component.options.get("interface") == "model-exchange"
    return None if solved or fmu.description.cs is None else fmu.description.cs.fixed_step


def _step_multiple(own: Fraction, usual: Fraction, span: Fraction | None) -> int:
    """Return how many steps inside fit into the usual one, so that they divide the run if they can."""
    times, count = max(1, (usual / own).__floor__()), span / own if span is not None else None
    if count is None or count.denominator != 1:
        return times
    tried = range(times, max(0, times - _TRIED), -1)
    return next((n for n in tried if count.numerator % n == 0), times)


def _finite_seconds(time: float | None) -> Fraction | None:
    return seconds(time) if time is not None and 0 < time < math.inf else None
