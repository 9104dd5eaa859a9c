"""The timeline of one macro step as a file by itself: an SVG that holds its own style, on white.

In:  a Blueprint
Out: the SVG as text, or written to a file
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hocket.engine.blueprint import PlanTree
from hocket.errors import FileError
from hocket.files.whole import write_text
from hocket.report.markup import esc
from hocket.report.pieces import Lane, Schedule
from hocket.report.schedule import lay_out_step
from hocket.report.timeline import DENSE, lane_elements, legend_entries

LETTER = 6.3
"""Pixels of a letter of 12."""
NAMES = 26
"""Letters of a name before it is cut."""
EDGE, ROW = 8, 22
"""Pixels around the picture, and of a row of the key."""

_HERE = Path(__file__).parent
_COLOUR = re.compile(r"(--[\w-]+):\s*([^;]+);")
_USED = re.compile(r"var\((--[\w-]+)\)")
_OWN = """
svg { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
.paper { fill: #fff; }
.name { fill: var(--ink); font-size: 13px; } .name.head { font-weight: 620; }
.key text { fill: var(--soft); font-size: 12px; }
"""
_ARROWS = (
    (False, "flow", "a sample of a step that is made"),
    (True, "flow past", "extrapolated from the past"),
)


def write_timeline_svg(root: PlanTree, name: str, path: Path | str) -> None:
    """Write the timeline of a plan as an SVG."""
    file = Path(path)
    check_svg_ending(file)
    write_text(file, timeline_svg(root, name))


def check_svg_ending(file: Path) -> None:
    """Refuse what is no SVG."""
    if file.suffix.lower() != ".svg":
        hint = f"`{file.with_suffix('.svg').name}`; a browser or Inkscape turns it into other formats"
        raise FileError(f"a plan is not drawn as `{file.name}`", str(file), "a file that ends in .svg", hint)


def timeline_svg(root: PlanTree, name: str) -> str:
    """Return the timeline of one macro step as an SVG."""
    made = lay_out_step(root, name)
    beside = max(map(_name_width, made.lanes)) + 2 * EDGE
    across = max(beside + made.width + EDGE, 360.0)
    dense = len(made.arrows) > DENSE
    if dense:
        made.arrows.clear()
    names = "".join(_lane_name_svg(lane) for lane in made.lanes)
    signs, below = _legend_svg(made, across)
    lines = _omission_lines(made, dense)
    words = "".join(
        f'<text x="{EDGE}" y="{below + ROW * n + 15}">{esc(t)}</text>' for n, t in enumerate(lines)
    )
    height = EDGE + made.height + below + ROW * len(lines) + EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across:g}" height="{height:g}" '
        f'viewBox="0 0 {across:g} {height:g}" role="img">'
        f"<title>{esc(name)}: one macro step, as planned</title><style>{svg_style()}</style>"
        f'<rect class="paper" width="100%" height="100%"/><g transform="translate(0 {EDGE})">{names}'
        f'<g transform="translate({beside:g} 0)">{lane_elements(made)}</g>'
        f'<g class="key" transform="translate(0 {made.height:g})">{signs}{words}</g></g></svg>\n'
    )


def svg_style() -> str:
    """Return the style of the page's timeline with its light colours put in: few programs know variables."""
    page = (_HERE / "page.css").read_text(encoding="utf-8")
    colours = dict(_COLOUR.findall(page[: page.index("}")]))
    own = _OWN + (_HERE / "timeline.css").read_text(encoding="utf-8")
    return _USED.sub(lambda found: colours[found[1]], own)


def _lane_name_svg(lane: Lane) -> str:
    kind = "name head" if lane.level else "name"
    x, y = EDGE + 12 * lane.depth, lane.middle + 4.5
    return f'<text class="{kind}" x="{x}" y="{y:g}">{esc(_shorten_name(lane.name))}</text>'


def _shorten_name(name: str) -> str:
    return name if len(name) <= NAMES else f"{name[: NAMES - 1]}…"


def _name_width(lane: Lane) -> float:
    return 12 * lane.depth + LETTER * (1.3 if lane.level else 1.15) * len(_shorten_name(lane.name))


def _legend_signs(made: Schedule) -> Iterator[tuple[int, str, str]]:
    yield from legend_entries(made)
    for past, kind, label in _ARROWS:
        if any(arrow.past is past for arrow in made.arrows):
            tip = '<path class="tip" d="M20 5l4 3l-4 3"/>'
            yield 26, f'<g class="{kind}"><path d="M1 8H24"/>{tip}</g>', label


def _legend_svg(made: Schedule, across: float) -> tuple[str, int]:
    """Return the meaning of all signs, in as many rows as they need, and where they end."""
    found, x, y = [], float(EDGE), 6
    for width, sign, label in _legend_signs(made):
        needed = width + 6 + LETTER * len(label) + 14
        if x > EDGE and x + needed > across:
            x, y = float(EDGE), y + ROW
        text = f'<text x="{width + 6}" y="12">{esc(label)}</text>'
        found.append(f'<g transform="translate({x:g} {y})">{sign}{text}</g>')
        x += needed
    return "".join(found), y + ROW


def _omission_lines(made: Schedule, dense: bool) -> list[str]:
    lines = [f"{made.left_out} more lanes are not drawn"] if made.left_out else []
    return lines + (["more arrows than can be told apart: none is drawn"] if dense else [])
