"""Text becomes HTML: escaped, names as code, rows as tables with numbers to the right.

In:  texts, numbers, rows
Out: pieces of HTML that cannot break the page, whatever is in them
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, TypeAlias

from hocket.model.units import Share

_CODE = re.compile(r"`([^`\n]+)`")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def esc(text: object) -> str:
    """Return text that means itself, between tags and in quotes."""
    return html.escape(_UNSEEN.sub("�", str(text)), quote=True)


def prose(text: object) -> str:
    """Return a sentence with what is in backticks as code."""
    return _CODE.sub(r"<code>\1</code>", esc(text))


def format_number(value: float) -> str:
    """Return a number in few digits, near one in more; minus and infinity as people write them."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 1e3 <= abs(value) < 1e6:
        return f"{float(f'{value:.4g}'):,.0f}".replace("-", "−")
    text = f"{value:.6g}" if 0.9 < abs(value) < 1.1 else f"{value:.3g}"
    mantissa, sign, exponent = text.partition("e")
    power = f"e{int(exponent)}" if sign else ""
    return f"{mantissa}{power}".replace("-", "−")


def format_cell(value: object) -> str:
    """Return a cell as HTML."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return format_number(value) if isinstance(value, float) and not isinstance(value, Share) else prose(value)


def html_table(rows: Sequence[Mapping[str, object]], most: int | None = None) -> str:
    """Return rows as a table, without empty columns; those beyond `most` are folded away."""
    if not rows:
        return ""
    heads = [head for head in rows[0] if any(row.get(head) not in (None, "") for row in rows)]
    align = {head: ' class="n"' if _is_numeric(row.get(head) for row in rows) else "" for head in heads}
    head = "".join(f'<th scope="col"{align[name]}>{esc(name)}</th>' for name in heads)
    lines = ["".join(f"<td{align[name]}>{format_cell(row.get(name))}</td>" for name in heads) for row in rows]

    def table(some: Iterable[str]) -> str:
        body = "".join(f"<tr>{line}</tr>" for line in some)
        text = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f'<div class="scroll">{text}</div>'

    if most is None or len(rows) <= most + 2:
        return table(lines)
    rest = f"<summary>{len(rows) - most} more</summary>{table(lines[most:])}"
    return f'{table(lines[:most])}<details class="more">{rest}</details>'


def bullets(lines: Iterable[str], kind: str = "") -> str:
    """Return sentences as a list; nothing for none."""
    found = "".join(f"<li>{prose(line)}</li>" for line in lines)
    return f'<ul class="{kind}">{found}</ul>' if found else ""


def _is_numeric(values: Iterable[object]) -> bool:
    kinds = [isinstance(value, (int, float)) for value in values if value is not None]
    return bool(kinds) and all(kinds)


def section(name: str, title: str, body: str) -> str:
    """Return a part of the page; nothing if there is nothing in it."""
    return f'<section id="{name}"><h2>{esc(title)}</h2>{body}</section>' if body else ""


def note(text: str) -> str:
    """Return a sentence in small print."""
    return f'<p class="note">{prose(text)}</p>'


def page_header(brand: str, title: str, facts: Iterable[str]) -> str:
    """Return the top of a page: what it is about, and what is asked first."""
    line = esc(" · ".join(filter(None, facts)))
    return f'<header><p class="brand">{brand}</p><h1>{esc(title)}</h1><p class="sub">{line}</p></header>'


Tone: TypeAlias = Literal["ok", "warn", "bad", "none"]
"""Told by colour, sign and word alike."""
SIGNS: dict[Tone, tuple[str, str]] = {
    "ok": ("✓", "good"),
    "warn": ("!", "caution"),
    "bad": ("✕", "bad"),
    "none": ("–", "not known"),
}


def verdict_card(
    title: str, tone: Tone, first: str, lines: Iterable[str] = (), more: str = "", wide: bool = False
) -> str:
    """Return a verdict: its first line with a sign, then `more`, which is HTML, and the other lines."""
    sign, word = SIGNS[tone]
    return (
        f'<article class="card {tone}{" wide" if wide else ""}"><h2>{esc(title)}</h2>'
        f'<p class="first"><span class="sign" role="img" aria-label="{word}">{sign}</span>'
        f"<span>{prose(first)}</span></p>{more}{bullets(lines)}</article>"
    )


def card_section(name: str, cards: Iterable[str]) -> str:
    """Return verdicts side by side."""
    return f'<section id="{name}" class="cards" aria-label="{name}">{"".join(cards)}</section>'


def json_numbers(values: Iterable[float], digits: int = 6) -> list[float | None]:
    """Return numbers as JSON holds them, in few digits; it has neither infinity nor what is not a number."""
    return [float(f"{x:.{digits}g}") if math.isfinite(x) else None for x in values]


def json_script(data: object) -> str:
    """Return data for the page's script; nothing in it ends the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{text}</script>'


_HERE = Path(__file__).parent
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def template(name: str) -> str:
    """Return a piece of HTML, a style or a script that stands in a file of its own."""
    return (_HERE / name).read_text(encoding="utf-8")


def html_page(title: str, parts: Iterable[str], styles: Iterable[str], scripts: Iterable[str]) -> str:
    """Return the page as text."""
    style, script = ("\n".join(map(template, names)) for names in (styles, scripts))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{esc(title)}</title><style>{style}</style></head>\n"
        f"<body><main>\n{chr(10).join(filter(None, parts))}\n</main><script>{script}</script></body></html>\n"
    )


def page_footer() -> str:
    """Return which program wrote the page."""
    try:
        made = f"hocket {version('hocket')}"
    except PackageNotFoundError:
        made = "hocket"
    return f"<footer>written by {esc(made)}; this page needs no network and no other file</footer>"
