"""The recorded ports over time, with their error bands, as data that the page's script draws.

In:  a Run, and perhaps the estimate of its error
Out: a section with a filter, and the data as JSON: the most telling ports first, within a size
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocket.errors import list_names
from hocket.files.error_estimate import ErrorEstimate, PortEstimate
from hocket.files.plotting import Series
from hocket.files.run_folder import Run
from hocket.model.protocols import Array
from hocket.report.markup import esc, json_numbers, json_script, note, section, template

Edges: TypeAlias = NDArray[np.intp]


def span_edges(rows: int, points: int) -> Edges | None:
    """Return where the spans begin, two points each; None: all rows fit."""
    if rows <= points:
        return None
    return np.linspace(0, rows, max(1, points // 2), endpoint=False).astype(np.intp)


def thin_times(t: Array, edges: Edges | None) -> Array:
    """Return the times of the points: of each span its first sample and its last."""
    if edges is None:
        return t
    ends = np.append(edges[1:], len(t)) - 1
    return np.stack([t[edges], t[ends]], axis=1).ravel()


def thin_values(values: Array, edges: Edges | None) -> Array:
    """Return the lowest and the highest of each span, in the order in which they occur."""
    if edges is None:
        return values
    low, high = np.fmin.reduceat(values, edges), np.fmax.reduceat(values, edges)
    falls = _first_places(values, high, edges) < _first_places(values, low, edges)
    return np.stack([np.where(falls, high, low), np.where(falls, low, high)], axis=1).ravel()


def thin_band(values: Array, error: Array, edges: Edges | None) -> tuple[Array, Array]:
    """Return the lower and upper edge of a band; of a span the lowest and the highest, twice each."""
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = values - np.abs(error), values + np.abs(error)
    if edges is None:
        return low, high
    return np.fmin.reduceat(low, edges).repeat(2), np.fmax.reduceat(high, edges).repeat(2)


def _first_places(values: Array, wanted: Array, edges: Edges) -> Edges:
    """Return where in each span its wanted value is first seen."""
    lengths = np.diff(edges, append=len(values))
    places = np.where(values == wanted.repeat(lengths), np.arange(len(values)), len(values))
    found: Edges = np.minimum.reduceat(places, edges)
    return found


POINTS, FEWEST = 2000, 400
"""Points per port, at the most and at the least."""
BUDGET = 330_000
"""Numbers on a page: about three megabytes."""
AT_ONCE = 12
"""Charts that are drawn before more are asked for."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One port, short enough for a page."""

    name: str
    unit: str
    t: Array
    v: Array
    rows: int
    low: Array | None = None
    high: Array | None = None
    largest: float | None = None
    """The largest estimate of its error."""
    relative: float = -1.0

    @property
    def is_constant(self) -> bool:
        """Whether it never moves."""
        return len(self.v) == 0 or bool(np.all(self.v == self.v[0]))


@dataclass(frozen=True, eq=False)
class ChartSelection:
    """Ports for the page, the most telling first."""

    curves: tuple[Curve, ...]
    left_out: tuple[str, ...]
    points: int
    """At the most, per port."""


def ports_section(run: Run, trust: ErrorEstimate | None) -> str:
    """Return the section and its data."""
    if not run.ports:
        return section("ports", "Recorded ports", note("Nothing was recorded."))
    chosen = select_curves(run, trust)
    body = _ports_note(run, chosen) + template("charts.html") + json_script(chart_data(chosen))
    return section("ports", "Recorded ports", body)


def select_curves(run: Run, trust: ErrorEstimate | None) -> ChartSelection:
    """Return the ports that the page holds: what moves before what does not, the least certain first."""
    doubted = {each.port: each for each in trust.ports} if trust else {}
    wide = 3 if doubted else 1
    points = int(min(POINTS, max(FEWEST, BUDGET // (wide * len(run.ports)))))
    room = max(1, BUDGET // (wide * points))
    found = [_thin_curve(run[port], doubted.get(port), points) for port in run.ports]
    found.sort(key=lambda curve: (curve.is_constant, -curve.relative))
    return ChartSelection(tuple(found[:room]), tuple(curve.name for curve in found[room:]), points)


def chart_data(chosen: ChartSelection) -> dict[str, object]:
    """Return what the script draws; ports of one rate share their times."""
    times: list[list[float | None]] = []
    known: dict[bytes, int] = {}
    ports = []
    for curve in chosen.curves:
        key = curve.t.tobytes()
        if key not in known:
            known[key] = len(times)
            times.append(json_numbers(curve.t.tolist(), 10))
        entry: dict[str, object] = {"name": curve.name, "unit": curve.unit, "t": known[key]}
        entry |= {"v": json_numbers(curve.v.tolist()), "rows": curve.rows}
        if curve.low is not None and curve.high is not None and curve.largest is not None:
            largest = curve.largest if math.isfinite(curve.largest) else None
            entry |= {
                "low": json_numbers(curve.low.tolist()),
                "high": json_numbers(curve.high.tolist()),
                "error": largest,
            }
        ports.append(entry)
    return {"times": times, "ports": ports, "atOnce": AT_ONCE}


def _thin_curve(series: Series, doubted: PortEstimate | None, points: int) -> Curve:
    edges = span_edges(len(series.t), points)
    t, v = thin_times(series.t, edges), thin_values(series.values, edges)
    curve = Curve(series.name, series.unit, t, v, len(series.t))
    if doubted is None or not len(doubted.error):
        return curve
    error = np.abs(doubted.error)
    if not np.array_equal(doubted.run.t, series.t):  # between the times of the estimate it is interpolated
        error = np.interp(series.t, doubted.run.t, error)
    low, high = thin_band(series.values, error, edges)
    return replace(curve, low=low, high=high, largest=doubted.largest, relative=doubted.relative)


def _ports_note(run: Run, chosen: ChartSelection) -> str:
    said = ["Drag over a chart to zoom into all of them, with Shift to move, double-click to see everything."]
    longest = max(curve.rows for curve in chosen.curves)
    if longest > chosen.points:
        said.append(
            f"Of up to {longest:,} rows each chart keeps the lowest and the highest value of"
            f" {chosen.points // 2:,} short spans."
        )
    if any(curve.low is not None for curve in chosen.curves):
        said.append("Bands are where the exact values are expected; the least certain ports come first.")
    elif run.is_complete:
        said.append("There are no error bands yet: hocket check with this run's folder estimates them.")
    rest = ""
    if chosen.left_out:
        names = esc(list_names(chosen.left_out, 400, quote=""))
        rest = (
            f'<details class="more"><summary>{len(chosen.left_out):,} of {len(run.ports):,} ports are left'
            f" out to keep the page small; hocket plot draws them</summary><p>{names}</p></details>"
        )
    return note(" ".join(said)) + rest
