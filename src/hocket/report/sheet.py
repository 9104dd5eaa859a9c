"""One HTML file around its parts, with styles and scripts inside.

In:  a title, pieces of HTML, the names of styles and scripts that stand beside this module
Out: a page that needs no network and no other file
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hocket.report.markup import esc

_HERE = Path(__file__).parent
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def html_page(title: str, parts: Iterable[str], styles: Iterable[str], scripts: Iterable[str]) -> str:
    """Return the page as text."""
    style, script = (
        "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names) for names in (styles, scripts)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{esc(title)}</title><style>{style}</style></head>\n"
        f"<body><main>\n{chr(10).join(filter(None, parts))}\n</main><script>{script}</script></body></html>\n"
    )


def page_footer() -> str:
    """Return who wrote it."""
    try:
        made = f"hocket {version('hocket')}"
    except PackageNotFoundError:
        made = "hocket"
    return f"<footer>written by {esc(made)}; this page needs no network and no other file</footer>"
