"""How wrong a run was: the same again with half the steps, and with a quarter (Richardson).

In:  a Study that was run, and its Run
Out: a Trust: an error per recorded port over time, and why not to believe it
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hocket.analysis.order import predicted_order
from hocket.analysis.variants import scaled
from hocket.errors import HocketError
from hocket.execution import EngineName
from hocket.files.drawing import Series
from hocket.files.run import Run
from hocket.files.study import Study
from hocket.model import Array
from hocket.running import perform
from hocket.simulators.state_space import StateSpace

PARTS = (2, 4)
"""Of the steps, in the runs beside the first."""
SEEN = 0.5
"""An order below this is none: the error does not fall with the steps."""
NOISE = 1e-11
"""Relative differences below this are rounding."""


@dataclass(frozen=True, eq=False)
class Doubted:
    """One port: how far it is from where shorter steps lead."""

    run: Series
    error: Array
    """The estimate at each time of the run."""
    order: float | None
    """With which the difference falls; None: there is none to see."""

    @property
    def port(self) -> str:
        """Its path."""
        return self.run.name

    @property
    def largest(self) -> float:
        """The largest estimate, in the unit of the port."""
        return float(np.abs(self.error).max(initial=0.0))

    @property
    def relative(self) -> float:
        """The largest estimate over the largest value."""
        scale = float(np.abs(self.run.values).max(initial=0.0))
        return self.largest / scale if scale else math.inf if self.largest else 0.0


@dataclass(frozen=True, eq=False)
class Trust:
    """An estimate per port, the worst in relation to its values first, and when not to believe it."""

    ports: tuple[Doubted, ...]
    doubts: tuple[str, ...]
    predicted: int | None
    """The order that the parts promise."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each port."""
        return [
            {
                "port": each.port,
                "unit": each.run.unit,
                "estimated error": each.largest,
                "of the largest value": each.relative,
                "order": each.order,
            }
            for each in self.ports
        ]

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw each port with the band in which it is expected to be."""
        from hocket.analysis.pictures import BLUE, saved, stack, titled

        shown = self.ports[:6]
        figure, axes = stack(9, 0.9 + 1.7 * len(shown), len(shown))
        for place, each in zip(axes, shown, strict=True):
            t, values = each.run.t, each.run.values
            band = np.abs(each.error)
            place.fill_between(t, values - band, values + band, color=BLUE, alpha=0.25, linewidth=0.0)
            place.plot(t, values, color=BLUE, linewidth=1.2)
            unit = f" [{each.run.unit}]" if each.run.unit else ""
            titled(place, f"{each.port}{unit}: {each.largest:.2g} at most")
            place.grid(alpha=0.3)
        if len(axes):
            axes[-1].set_xlabel("time [s]")
        return saved(figure, path)


def trust(
    study: Study, run: Run, engine: EngineName = "native", told: Callable[[str], None] | None = None
) -> Trust:
    """Return how wrong a finished run is, from two more with shorter steps: six times its cost.

    The order is the one that is seen; where none is, what the parts promise counts, and a doubt is noted.
    `told` is called with what is being done.
    """
    promised, _ = predicted_order(study.composite)
    doubts = list(_doubts(study))
    others: list[Run] = []
    for part in PARTS:
        shorter = replace(study, composite=scaled(study.composite, Fraction(1, part), own=True))
        shorter = replace(shorter, every=study.every or study.composite.step)
        if told:
            told(f"with 1/{part} of the steps")
        try:
            other = perform(shorter, {}, record=run.ports, engine=engine)
        except HocketError as error:
            doubts.append(f"no run with 1/{part} of the steps: {str(error).splitlines()[0]}")
            break
        if other.status != "finished":
            doubts.append(f"the run with 1/{part} of the steps was stopped")
            break
        others.append(other)
    found = [_estimated(run[port], [other[port] for other in others], promised) for port in run.ports]
    known = [each for each in found if each is not None]
    unseen = [each.port for each in known if each.order is not None and each.order < SEEN]
    if unseen:
        more = f" and {len(unseen) - 1} more" if len(unseen) > 1 else ""
        doubts.append(f"`{unseen[0]}`{more} does not settle as the steps get shorter: no order is to be seen")
    return Trust(tuple(sorted(known, key=lambda each: -each.relative)), tuple(doubts), promised)


def _doubts(study: Study) -> Iterator[str]:
    leaves = study.composite.blueprint.leaves.wiring
    inside = [
        name
        for name, model in zip(leaves.names, leaves.models, strict=True)
        if model.inputs and not isinstance(model, StateSpace)
    ]
    if inside:
        more = f" and {len(inside) - 1} more" if len(inside) > 1 else ""
        yield f"what `{inside[0]}`{more} integrates inside is not seen: its own steps stay as they are"
    for level in study.composite.blueprint.levels():
        for note in level.plan.notes:
            if "broken by a delay" in note:
                # feedthrough on both sides: differences need not tell the error (requirements, section 1.2)
                yield f"{note}; an estimate from shorter steps may mislead"


def _estimated(run: Series, others: list[Series], promised: int | None) -> Doubted | None:
    """Return the error of one port, at the times that all runs share."""
    places, values = np.arange(len(run.t)), []
    for other in others:
        at = np.clip(np.searchsorted(other.t, run.t - 1e-9 * (1.0 + np.abs(run.t))), 0, len(other.t) - 1)
        places = places[np.abs(other.t[at] - run.t)[places] <= 2e-9 * (1.0 + np.abs(run.t[places]))]
        values.append(other.values[at])
    if not values or not len(places):
        return None
    first = run.values[places] - values[0][places]
    order = None
    if len(values) > 1:
        order = _order(first, values[0][places] - values[1][places], run.values)
    power = order if order is not None and order >= SEEN else float(promised or 1)
    error = first * 2.0**power / (2.0**power - 1.0)
    shared = Series(run.t[places], run.values[places], run.unit, run.name)
    return Doubted(shared, error, order)


def _order(first: Array, second: Array, values: Array) -> float | None:
    """Return with which power differences fall when the steps are halved; None: they are rounding."""
    noise = NOISE * float(np.abs(values).max(initial=1e-300))
    one, other = (float(np.sqrt(np.mean(part**2))) for part in (first, second))
    return math.log2(one / other) if one > noise and other > 0.0 else None
