"""What is believed of the error of a run: an estimate per port, defects per connection, and the doubts.

In:  series of a run, and what was estimated of them
Out: an ErrorEstimate: frozen data with rows, words and a picture
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from hocket.errors import ScenarioError, suggest_nearest
from hocket.files.drawing import Series
from hocket.model import Array

Method: TypeAlias = Literal["Richardson", "defect"]
"""From runs with shorter steps; or from how far inputs were from the outputs that drive them."""
WRONG = 0.5
"""An error above this part of the largest value is of its size."""


def time_tolerance(t: Array, others: Array) -> Array:
    """Return how far two times may be apart that are the same but for rounding, at each of some times."""
    apart = np.diff(others)
    shortest = float(apart[apart > 0.0].min(initial=np.inf))
    return np.asarray(np.minimum(1e-9 * (1.0 + np.abs(t)), 0.1 * shortest))


def format_time(t: float) -> str:
    """Return a time in few digits, but to a hundredth of a second: a run may start late."""
    return f"{t:.4g}" if abs(t) < 1e3 else f"{t:.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, eq=False)
class PortEstimate:
    """One port: how far it is from where it should be."""

    run: Series
    error: Array
    """The estimate at each time of the run, with its sign: the run less the truth."""
    order: float | None
    """With which the difference falls as the steps get shorter; None: there is none to see."""
    rounding: float = 0.0
    """What is smaller than this is the rounding of others: values that should be zero."""

    @property
    def port(self) -> str:
        """Its path."""
        return self.run.name

    @property
    def largest(self) -> float:
        """The largest estimate, in the unit of the port."""
        size = np.abs(self.error)
        return float(size.max(initial=0.0)) if not np.isnan(size).any() else math.inf

    @property
    def at(self) -> float:
        """When the estimate is largest, in seconds."""
        return float(self.run.t[int(np.argmax(np.abs(self.error)))]) if len(self.error) else 0.0

    @property
    def relative(self) -> float:
        """The largest estimate over the largest value; of what is rounding, zero."""
        scale = float(np.abs(self.run.values).max(initial=0.0))
        if max(self.largest, scale) <= self.rounding:
            return 0.0
        if not math.isfinite(self.largest) or not math.isfinite(scale):
            return math.inf
        return self.largest / scale if scale else math.inf if self.largest else 0.0


@dataclass(frozen=True)
class InputDefect:
    """One connection: how far its input was from the output that drives it, at the ends of steps."""

    input: str
    output: str
    unit: str
    largest: float
    at: float
    """Seconds."""
    mean: float
    relative: float
    """The largest over the largest value."""


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """An estimate per port, the worst in relation to its values first, and when not to believe it."""

    ports: tuple[PortEstimate, ...]
    doubts: tuple[str, ...]
    """Why not to believe it; empty: it may be believed."""
    predicted: int | None
    """The order that the parts promise; None: every step is exact."""
    method: Method = "Richardson"
    unseen: tuple[str, ...] = ()
    """What the estimate leaves out."""
    gaps: tuple[InputDefect, ...] = ()
    """Of the method `defect`: each connection, the worst first."""
    runs: int = 0
    """How many runs with shorter steps came to their end, of two."""

    def __getitem__(self, port: str) -> PortEstimate:
        for each in self.ports:
            if each.port == port:
                return each
        known = [each.port for each in self.ports]
        raise ScenarioError(f"no error of `{port}` was estimated", hint=suggest_nearest(port, known))

    def __contains__(self, port: object) -> bool:
        return any(each.port == port for each in self.ports)

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each port."""
        return [
            {
                "port": each.port,
                "unit": each.run.unit,
                "estimated error": each.largest,
                "at [s]": each.at,
                "of the largest value": each.relative,
                "order": each.order,
            }
            for each in self.ports
        ]

    def defect_rows(self) -> list[dict[str, object]]:
        """Return a row for each connection of the method `defect`."""
        return [
            {
                "input": each.input,
                "output": each.output,
                "unit": each.unit,
                "largest defect": each.largest,
                "at [s]": each.at,
                "mean": each.mean,
                "of the largest value": each.relative,
            }
            for each in self.gaps
        ]

    @property
    def good(self) -> bool:
        """There is an estimate, it may be believed, and it is not of the size of the values."""
        return bool(self.ports) and not self.doubts and self.ports[0].relative < WRONG

    def verdict(self) -> list[str]:
        """Return what it comes to, in words: how wrong, where, and whether to believe it."""
        return [
            *self._error_lines(),
            *self._reliability_lines(),
            *(f"not seen: {what}" for what in self.unseen),
        ]

    def _error_lines(self) -> Iterator[str]:
        if self.ports:
            worst = self.ports[0]
            unit = f" {worst.run.unit}" if worst.run.unit else ""
            belief = ", not to be trusted" if self.doubts else ""
            yield (
                f"estimated error{belief}: at most {worst.largest:.2g}{unit} in `{worst.port}`, "
                f"{worst.relative:.2g} of its largest value, at {format_time(worst.at)} s"
            )
            if worst.relative >= WRONG:
                yield "the run is wrong: its error is of the size of its values"
        else:
            yield "how wrong the run is cannot be told"
        if self.gaps:
            gap = self.gaps[0]
            unit = f" {gap.unit}" if gap.unit else ""
            yield (
                f"largest defect: `{gap.input}` was up to {gap.largest:.2g}{unit} from `{gap.output}`, "
                f"{gap.relative:.2g} of its largest value, at {format_time(gap.at)} s"
            )

    def _reliability_lines(self) -> Iterator[str]:
        for doubt in self.doubts:
            yield f"doubt: {doubt}"
        if self.doubts or not self.ports:
            return
        if self.method == "defect":
            yield "it may be believed as far as linear models go: they follow the run"
            return
        orders = [each.order for each in self.ports if each.order is not None]
        if orders:
            promised = "" if self.predicted is None else f", {self.predicted} was promised"
            seen = orders[0]
            yield f"it may be believed: the error falls with order {seen:.2f} with the steps{promised}"
        else:
            yield "it may be believed: shorter steps change nothing but rounding"

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw each port with the band in which it is expected to be."""
        from hocket.files.bands import draw_bands

        return draw_bands(self, path)
