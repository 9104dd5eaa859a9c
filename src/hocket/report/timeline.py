"""The timeline of one macro step as a picture.

In:  a PlanTree
Out: a section with two SVGs: the names, which stay, and the lanes, which scroll
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hocket.errors import FileError
from hocket.files.atomic_files import write_text
from hocket.planning.tree import PlanTree
from hocket.report.markup import esc, note, section, template
from hocket.report.schedule import (
    LABEL,
    LANE,
    Arrow,
    Bar,
    Frame,
    Lane,
    MarkKind,
    Schedule,
    TimelineMark,
    lay_out_step,
)

SIGN = 6.4
"""Pixels of a letter in a bar."""
APART = 2.5
"""Pixels from a mark to the arrows that come from above, and to those from below."""
DENSE = 260
"""Arrows beyond which they are seen only when a lane is pointed at."""

_MARKS: dict[MarkKind, tuple[str, str]] = {
    "feed": ('<path d="M-5-5h10l-5 9z"/>', "feed: fit its inputs"),
    "read": ('<circle r="4.6"/>', "read: its outputs"),
    "solve": ('<path d="M0-6l6 6l-6 6l-6-6z"/>', "solve an algebraic loop"),
    "save": ('<path d="M-5-6h10v12l-5-4l-5 4z"/>', "save"),
    "restore": ('<path d="M-6 0l8-6v4a6 6 0 0 1 4 8a6 5 0 0 0-4-4v4z"/>', "restore"),
    "admit": ('<path d="M-5-6l10 6l-10 6z"/>', "admit inputs from outside"),
    "react": ('<path d="M1-7l-6 8h4l-1 6l6-8h-4z"/>', "react: what happens at this instant"),
    "commit": ('<path d="M-6-1l2.5-2.5l2.5 2.5l5-5l2.5 2.5l-7.5 7.5z"/>', "commit: the instant ends"),
    "record": ('<rect x="-4" y="-4" width="8" height="8"/>', "record a row"),
    "send": ('<path d="M-4 5v-6h-3l7-7l7 7h-3v6z"/>', "send to another host"),
    "receive": ('<path d="M-4-6v6h-3l7 7l7-7h-3v-6z"/>', "receive from another host"),
}
"""The shape of each mark around its place, and its meaning."""
_ARROWS = {"flow": "a sample of a step that is made", "flow past": "extrapolated from the past"}


def timeline_section(root: PlanTree, name: str) -> str:
    """Return the section."""
    made = lay_out_step(root, name)
    dense = " dense" if len(made.arrows) > DENSE else ""
    kinds = {frame.kind for frame in made.frames}
    again = ""
    if "iteration" in kinds:
        again = " Of a loop (↻) two iterations are drawn: the second knows where the first one ended."
    elif "repeat" in kinds:
        again = " What is in a loop (↻) is drawn as it is the first time."
    key = note(
        "Left to right in the order of the plan; what stands in one shaded column may run side by side. Each"
        " bar is a step, with its simulated length. Arrows are samples: solid where the source has made the"
        f" step already, dashed where its past is extrapolated. Point at anything for its words.{again}"
    )
    rest = note(f"{made.left_out} more lanes are not drawn.") if made.left_out else ""
    lanes = (
        f'<svg class="lanes{dense}" width="{made.width:g}" height="{made.height:g}" role="img" '
        f'aria-label="timeline of one macro step">{lane_elements(made)}</svg>'
    )
    names = f'<div class="names" style="height:{made.height:g}px">{_lane_names(made)}</div>'
    picture = f'<div class="timeline">{names}<div class="scroll">{lanes}</div></div>'
    return section("timeline", "One macro step, as planned", key + _legend_list(made) + picture + rest)


def lane_elements(made: Schedule) -> str:
    """Return what is in the lanes, as elements of an SVG."""
    behind = [_lane_svg(lane, made.width) for lane in made.lanes]
    frames = [_frame_svg(frame) for frame in sorted(made.frames, key=lambda frame: -frame.width)]
    return "".join(
        (
            *behind,
            *frames,
            *map(_arrow_svg, made.arrows),
            *map(_bar_svg, made.bars),
            *map(_mark_svg, made.marks),
        )
    )


def _lane_names(made: Schedule) -> str:
    return "".join(
        f'<span class="name{" head" if lane.level else ""}" data-lane="{esc(lane.path)}" '
        f'title="{esc(lane.path or lane.name)}" style="--top:{lane.middle:g}px;--depth:{lane.depth}">'
        f"{esc(lane.name)}</span>"
        for lane in made.lanes
    )


def _lane_svg(lane: Lane, width: float) -> str:
    inset = 4 * lane.depth
    if lane.level:
        return (
            f'<rect class="box" data-lane="{esc(lane.path)}" x="{1 + inset}" y="{lane.top}" '
            f'width="{width - 2 - 2 * inset:g}" height="{lane.bottom - lane.top}" rx="5"/>'
        )
    y = f"{lane.middle:g}"
    across = f'x1="{inset}" x2="{width - inset:g}" y1="{y}" y2="{y}"'
    return f'<line class="lane" data-lane="{esc(lane.path)}" {across}/>'


def _bar_svg(bar: Bar) -> str:
    height = LANE - 12
    top = bar.lane.middle - height / 2
    kind = "bar level" if bar.lane.level else "bar"
    label = ""
    if len(bar.label) * SIGN < bar.width - 8:
        label = _text_svg(bar.x + bar.width / 2, bar.lane.middle + 4, bar.label)
    return (
        f'<g class="{kind}"><title>{esc(bar.words)}</title><rect x="{bar.x:g}" y="{top:g}" '
        f'width="{max(bar.width, 2):g}" height="{height}" rx="3"/>{label}</g>'
    )


def _frame_svg(frame: Frame) -> str:
    x, height = frame.x, frame.bottom - frame.top
    middle, across = (frame.top + frame.bottom) / 2, x + frame.width / 2
    text = ""
    if frame.kind == "gap":
        text = _text_svg(across, middle, "⋯") + _text_svg(across, middle + 14, frame.label)
    elif frame.label and (len(frame.label) * 5.4 < frame.width + 4):
        text = _text_svg(x + 3, frame.bottom + 11 + LABEL * frame.row, frame.label)
    return (
        f'<g class="frame {frame.kind}"><title>{esc(frame.words)}</title><rect x="{x:g}" y="{frame.top:g}" '
        f'width="{max(frame.width, 1):g}" height="{height:g}" rx="3"/>{text}</g>'
    )


def _text_svg(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}">{esc(text)}</text>'


def _arrow_svg(arrow: Arrow) -> str:
    y0 = arrow.source.inner if arrow.inside else arrow.source.middle
    side = 1 if arrow.target.middle > y0 else -1
    x0, x1 = arrow.x0, max(arrow.x0, arrow.x1 - APART * side)
    y1 = arrow.target.middle - 5 * side
    turn = min(5.0, x1 - x0, abs(y1 - y0) / 2)
    line = f"M{x0:g} {y0:g}H{x1 - turn:g}Q{x1:g} {y0:g} {x1:g} {y0 + turn * side:g}V{y1:g}"
    head = f"M{x1 - 3:g} {y1 - 4 * side:g}L{x1:g} {y1:g}L{x1 + 3:g} {y1 - 4 * side:g}"
    how = "extrapolated from its past" if arrow.past else "as it is known by now"
    said = f"{arrow.source.path or 'from outside'} → {arrow.target.path}: {how}"
    ends = f'data-from="{esc(arrow.source.path)}" data-to="{esc(arrow.target.path)}"'
    return (
        f'<g class="{_arrow_kind(arrow)}" {ends}>'
        f'<title>{esc(said)}</title><path d="{line}"/><path class="tip" d="{head}"/></g>'
    )


def _arrow_kind(arrow: Arrow) -> str:
    return "flow past" if arrow.past else "flow"


def _mark_svg(mark: TimelineMark) -> str:
    place = f'transform="translate({mark.x:g} {mark.y:g})"'
    return f'<g class="mark {mark.kind}" {place}><title>{esc(mark.words)}</title>{_MARKS[mark.kind][0]}</g>'


def legend_entries(made: Schedule) -> Iterator[tuple[int, str, str]]:
    """Yield each sign that is used: its width in pixels, 16 high, the elements of an SVG, and its meaning."""
    yield 26, '<g class="bar"><rect x="1" y="2" width="24" height="12" rx="3"/></g>', "step"
    used = {mark.kind for mark in made.marks}
    for kind, (shape, label) in _MARKS.items():
        if kind in used:
            yield 16, f'<g class="mark {kind}" transform="translate(8 8)">{shape}</g>', label
    flows = {_arrow_kind(arrow) for arrow in made.arrows}
    for flow, label in _ARROWS.items():
        if flow in flows:
            yield (
                26,
                f'<g class="{flow}"><path d="M1 8H24"/><path class="tip" d="M20 5l4 3l-4 3"/></g>',
                label,
            )


def _legend_list(made: Schedule) -> str:
    signs = (
        f'<li><svg width="{width}" height="16">{sign}</svg>{esc(label)}</li>'
        for width, sign, label in legend_entries(made)
    )
    return f'<ul class="key">{"".join(signs)}</ul>'


LETTER = 6.3
"""Pixels of a letter of 12."""
NAMES = 26
"""Letters of a name before it is cut."""
EDGE, ROW = 8, 22
"""Pixels around the picture, and of a row of the key."""

_COLOUR = re.compile(r"(--[\w-]+):\s*([^;]+);")
_USED = re.compile(r"var\((--[\w-]+)\)")


def write_timeline_svg(root: PlanTree, name: str, path: Path | str) -> None:
    """Write the timeline of a plan as an SVG."""
    file = Path(path)
    check_svg_ending(file)
    write_text(file, timeline_svg(root, name))


def check_svg_ending(file: Path) -> None:
    """Refuse what is not an SVG."""
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
    lines = [f"{made.left_out} more lanes are not drawn"] if made.left_out else []
    lines += ["more arrows than can be told apart: none is drawn"] if dense else []
    words = "".join(_text_svg(EDGE, below + ROW * n + 15, line) for n, line in enumerate(lines))
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
    page = template("page.css")
    colours = dict(_COLOUR.findall(page[: page.index("}")]))
    return _USED.sub(lambda found: colours[found[1]], template("svg.css") + template("timeline.css"))


def _lane_name_svg(lane: Lane) -> str:
    kind = "name head" if lane.level else "name"
    x, y = EDGE + 12 * lane.depth, lane.middle + 4.5
    return f'<text class="{kind}" x="{x}" y="{y:g}">{esc(_shorten_name(lane.name))}</text>'


def _shorten_name(name: str) -> str:
    return name if len(name) <= NAMES else f"{name[: NAMES - 1]}…"


def _name_width(lane: Lane) -> float:
    return 12 * lane.depth + LETTER * (1.3 if lane.level else 1.15) * len(_shorten_name(lane.name))


def _legend_svg(made: Schedule, across: float) -> tuple[str, int]:
    """Return the meaning of all signs, in as many rows as they need, and where they end."""
    found, x, y = [], float(EDGE), 6
    for width, sign, label in legend_entries(made):
        needed = width + 6 + LETTER * len(label) + 14
        if x > EDGE and x + needed > across:
            x, y = float(EDGE), y + ROW
        text = f'<text x="{width + 6}" y="12">{esc(label)}</text>'
        found.append(f'<g transform="translate({x:g} {y})">{sign}{text}</g>')
        x += needed
    return "".join(found), y + ROW
