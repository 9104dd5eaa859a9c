"""What objects show of themselves in notebooks: small pieces of HTML without style sheets or scripts.

In:  facts, rows of tables, lines, curves
Out: HTML as text, with everything escaped that came from outside
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

MOST_ROWS = 40
"""Of a table: how many are shown."""


def html_view(title: str, facts: Mapping[str, object], *parts: str) -> str:
    """Return a heading, a line of facts, and what follows them."""
    told = " · ".join(
        f"{escape(key)}: {_cell(value)}" for key, value in facts.items() if value not in ("", None)
    )
    return f"<div><b>{escape(title)}</b> {told}{''.join(parts)}</div>"


def html_table(rows: Sequence[Mapping[str, object]], raw: Iterable[str] = ()) -> str:
    """Return a table with a column for each key; columns in `raw` hold HTML. No rows: nothing."""
    if not rows:
        return ""
    keys, free = list(dict.fromkeys(key for row in rows for key in row)), set(raw)
    head = "".join(f"<th style='text-align:left'>{escape(key)}</th>" for key in keys)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td style='text-align:left'>{row.get(key, '') if key in free else _cell(row.get(key, ''))}</td>"
            for key in keys
        )
        + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = len(rows) - MOST_ROWS
    rest = f"<div>and {more} more</div>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def html_lines(lines: Iterable[str]) -> str:
    """Return lines, one below the other."""
    return "".join(f"<div>{escape(line)}</div>" for line in lines)


def html_details(title: str, body: str) -> str:
    """Return what can be unfolded; nothing if it is empty."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>" if body else ""


def html_pre(text: str) -> str:
    """Return text in columns."""
    return f"<pre>{escape(text)}</pre>"


def html_curve(t: Sequence[float], values: Sequence[float]) -> str:
    """Return a curve without axes, as wide as a word or two."""
    finite = [(x, y) for x, y in zip(t, values, strict=True) if abs(y) < float("inf")]
    if len(finite) < 2:
        return ""
    xs, ys = zip(*finite, strict=True)
    wide, high = (xs[-1] - xs[0]) or 1.0, (max(ys) - min(ys)) or 1.0
    ends = " ".join(f"{120 * (x - xs[0]) / wide:.1f},{23 - 22 * (y - min(ys)) / high:.1f}" for x, y in finite)
    line = f"<polyline points='{ends}' fill='none' stroke='currentColor' stroke-width='1'/>"
    return f"<svg width='120' height='24' viewBox='0 0 120 24'>{line}</svg>"


class VerdictView:
    """Shows the lines of its verdict in notebooks, and its table below them."""

    def verdict(self) -> list[str]:
        """Return the answer, the most important first."""
        raise NotImplementedError

    def rows(self) -> Sequence[Mapping[str, object]]:
        """Return its table."""
        return []

    def _repr_html_(self) -> str:
        return html_view(type(self).__name__, {}, html_lines(self.verdict()), html_table(self.rows()))


def _cell(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return escape(text if len(text) <= 200 else f"{text[:197]}...")
