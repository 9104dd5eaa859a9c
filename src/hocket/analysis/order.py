"""How fast the error falls with the steps: promised by the parts, and seen in the whole.

In:  a Composite; the errors with all steps as they are, halved and quartered
Out: an Order, in words where promise and sight differ
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hocket.analysis.hidden import hidden_ports
from hocket.engine.blueprint import PlanTree, window_obstacles
from hocket.engine.composite import Composite
from hocket.engine.notes import start_notes
from hocket.signals import Hold
from hocket.wiring import OWN

NOISE = 1e-11
"""Relative errors below this are rounding and show no order."""
AGREED = 0.25
"""How far a measured order may be from the predicted one."""


@dataclass(frozen=True)
class ErrorOrder:
    """The power of the steps with which the error of a run falls, at fixed ratios of all steps."""

    predicted: int | None
    """min(p, q + 1) over all leaves and levels; None: no step adds an error."""
    why: str
    """Who takes part with the lowest order."""
    measured: float | None
    """From the errors with all steps halved and quartered; None: not measured, or nothing to measure."""
    words: str


def predicted_order(composite: Composite) -> tuple[int | None, str]:
    """Return min(p, q + 1) over all leaves and levels, and where it is taken.

    p is the order of a solver, q the degree of an extrapolation (Hafner 2021, theorem 6.9). A cold start
    caps it (formulas, section 4).
    """
    design = composite.blueprint
    wiring = design.leaves.wiring
    found = [
        (model.abilities.order, f"`{name}` is integrated with order {model.abilities.order}")
        for name, model in zip(wiring.names, wiring.models, strict=True)
        if model.abilities.order is not None
    ]
    for level in design.levels():
        found += [] if level.composite.sampled else _extrapolation_orders(level)
    found += _cold_start_orders(design)
    return min(found, key=lambda each: each[0], default=(None, "every step is exact"))


def _extrapolation_orders(level: PlanTree) -> Iterator[tuple[int, str]]:
    for child, drives in enumerate(level.wiring.drives):
        model, unwritten = level.wiring.models[child], hidden_ports(level, child)
        for port, drive in zip(model.inputs, drives, strict=True):
            if drive is None or drive.extrapolation is None or port.name in unwritten:
                continue
            if drive.child == OWN and not isinstance(drive.extrapolation, Hold):
                continue
            ends = (child, drive.child)
            if any(end in level.inner and level.inner[end].composite.sampled for end in ends):
                continue  # what is sampled sees and shows what it shall: steps in time
            honoured = model.abilities.input_degree
            degree = drive.extrapolation.degree
            degree = degree if honoured is None else min(degree, honoured)
            yield degree + 1, f"`{level.name(child)}.{port.name}` is extrapolated with degree {degree}"


def _cold_start_orders(design: PlanTree) -> Iterator[tuple[int, str]]:
    """Yield what a start without a past costs."""
    note = "; ".join(start_notes(design, design.leaves))
    for level in design.levels() if note else ():
        if level.composite.start == "cold" or window_obstacles(design.leaves):
            for each in level.wiring.extrapolators:
                cap = 3 if each.slopes else 2
                if each.degree + 1 > cap:
                    yield cap, note


def determine_order(composite: Composite, errors: Sequence[float]) -> ErrorOrder:
    """Return the order promised, and the one that errors at full, half and quarter steps show."""
    predicted, why = predicted_order(composite)
    if not errors:
        return ErrorOrder(predicted, why, None, "not measured with shorter steps")
    measured, words = compare_orders(errors, predicted)
    return ErrorOrder(predicted, why, measured, words)


def compare_orders(errors: Sequence[float], predicted: int | None) -> tuple[float | None, str]:
    """Return the order that three errors show, and what to say of it."""
    full, half, quarter = errors
    if not all(map(math.isfinite, errors)):
        return None, "no order can be measured: the errors grow beyond all numbers"
    if quarter <= NOISE:
        return None, "no order can be measured: the errors are as small as rounding"
    before, measured = math.log2(full / half), math.log2(half / quarter)
    if predicted is None:
        return measured, f"no error was expected, yet there is one; it falls with order {measured:.2f}"
    if abs(measured - predicted) <= AGREED:
        return measured, f"measured {measured:.2f}, as predicted"
    says = f"measured {measured:.2f}, predicted {predicted}: "
    if abs(before - measured) > AGREED:
        return measured, f"{says}it was {before:.2f} one halving before; these steps are too long to show it"
    if measured > predicted:
        return measured, f"{says}the part with the lowest order is too small to be seen here"
    return measured, f"{says}the coupling, or a jump of a source, loses order: shorter steps gain less"
