"""What a run shows of itself in notebooks: how it went, and every port with its range and a curve.

In:  the facts of a run, and its series
Out: HTML
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from hocket.files.plotting import Series
from hocket.model.html import MOST_ROWS, html_curve, html_details, html_lines, html_table, html_view
from hocket.model.protocols import Array

POINTS = 120
"""Of a curve: at most twice as many, so that peaks are seen."""


def view_run(
    name: str,
    facts: Mapping[str, object],
    ports: Sequence[str],
    read: Callable[[str], Series],
    notes: Iterable[object],
) -> str:
    """Return a run as HTML; only the ports that are shown are read."""
    rows = [_view_port(read(port)) for port in ports[:MOST_ROWS]]
    rows += [{"port": port} for port in ports[MOST_ROWS:]]
    told = html_details("notes", html_lines(str(note) for note in notes))
    return html_view(f"Run {name}", facts, html_table(rows, raw=("curve",)), told)


def _view_port(series: Series) -> dict[str, object]:
    row: dict[str, object] = {"port": series.name, "unit": series.unit or ""}
    if len(series.t) and np.issubdtype(series.values.dtype, np.number):
        values = series.values.astype(float)
        every = max(1, len(values) // POINTS)
        starts = range(0, len(values), every)
        at = sorted({k for first in starts for k in _extremes(values[first : first + every], first)})
        row |= {"final": float(values[-1]), "least": float(values.min()), "largest": float(values.max())}
        row["curve"] = html_curve(series.t[at].tolist(), values[at].tolist())
    return row


def _extremes(part: Array, first: int) -> tuple[int, int]:
    return first + int(part.argmin()), first + int(part.argmax())
