"""Rows as tables on the screen.

In:  rows, each a mapping from heads to values
Out: what Rich can draw
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


def titled_table(
    title: str, rows: Sequence[Mapping[str, object]], most: int | None
) -> Iterator[RenderableType]:
    """Yield rows as a table under a title; `most` of them."""
    if not rows:
        return
    yield ""
    yield Text(title, "cyan")
    grid = Table(box=None, pad_edge=False)
    for head, value in rows[0].items():
        grid.add_column(head, header_style="dim", justify="left" if isinstance(value, str) else "right")
    for row in rows[:most]:
        grid.add_row(*(format_cell(value) for value in row.values()))
    yield grid
    if most is not None and len(rows) > most:
        yield f"and {len(rows) - most} more: --all"


def format_cell(value: object) -> str:
    """Return a value in few digits; near one in more."""
    if isinstance(value, float):
        return f"{value:.6g}" if 0.5 < abs(value) < 2.0 else f"{value:.3g}"
    return "" if value is None else str(value)
