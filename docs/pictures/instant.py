"""Draw an instant: `python docs/pictures/instant.py` writes docs/pictures/instant.svg.

In:  nothing
Out: a ball that hits a table: the time before and after, the instants between, and the rows that are kept
"""

from __future__ import annotations

from pathlib import Path

WIDTH, HEIGHT = 860, 400
BLUE, ORANGE, GREY, DARK = "#0072B2", "#D55E00", "#8a8f98", "#20242a"
COLUMNS = {0: 330, 1: 430, 2: 540}
"""Where each n stands."""
LEFT, RIGHT, TOP, FLOOR = 70, 800, 70, 200


def text(x: float, y: float, words: str, size: int = 13, anchor: str = "middle", fill: str = DARK) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{words}</text>'


def line(x0: float, y0: float, x1: float, y1: float, colour: str = GREY, more: str = "") -> str:
    return f'<line x1="{x0:g}" y1="{y0:g}" x2="{x1:g}" y2="{y1:g}" stroke="{colour}" {more}/>'


def dot(x: float, y: float, colour: str, full: bool = True) -> str:
    fill = colour if full else "white"
    return f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{fill}" stroke="{colour}" stroke-width="2"/>'


def speed() -> list[str]:
    """Return the speed of the ball: it falls faster and faster, and turns around in the first instant."""
    before, after = FLOOR + 40, FLOOR - 70
    return [
        line(LEFT, FLOOR - 40, COLUMNS[0], before, BLUE, 'stroke-width="2.5"'),
        line(COLUMNS[1], after, COLUMNS[2], after, BLUE, 'stroke-width="2.5" stroke-dasharray="2 4"'),
        line(COLUMNS[0], before, COLUMNS[1], after, BLUE, 'stroke-width="1.5" stroke-dasharray="2 4"'),
        line(COLUMNS[2], after, RIGHT, FLOOR + 10, BLUE, 'stroke-width="2.5"'),
        dot(COLUMNS[0], before, BLUE),
        dot(COLUMNS[1], after, BLUE),
        dot(COLUMNS[2], after, BLUE),
        text(LEFT + 6, FLOOR - 52, "ball.v", 13, "start", BLUE),
    ]


def lamp() -> list[str]:
    """Return a count that follows one instant later, as it sees what the first one has changed."""
    low, high = FLOOR + 90, FLOOR + 66
    return [
        line(LEFT, low, COLUMNS[1], low, ORANGE, 'stroke-width="2.5"'),
        line(COLUMNS[1], low, COLUMNS[2], high, ORANGE, 'stroke-width="1.5" stroke-dasharray="2 4"'),
        line(COLUMNS[2], high, RIGHT, high, ORANGE, 'stroke-width="2.5"'),
        dot(COLUMNS[0], low, ORANGE),
        dot(COLUMNS[1], low, ORANGE),
        dot(COLUMNS[2], high, ORANGE),
        text(LEFT + 6, low - 10, "counter.hits", 13, "start", ORANGE),
    ]


def draw() -> str:
    """Return the picture as SVG."""
    wide = COLUMNS[2] - COLUMNS[0] + 90
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="system-ui, sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<rect x="{COLUMNS[0] - 45}" y="{TOP - 32}" width="{wide}" height="312" rx="6" fill="#f3f5f8"/>',
        text((COLUMNS[0] + COLUMNS[2]) / 2, 22, "one time, t = 0.4515 s: no time passes in here", 14),
        text((LEFT + COLUMNS[0] - 45) / 2, TOP - 14, "a step ends at the event"),
        text((COLUMNS[2] + 45 + RIGHT) / 2, TOP - 14, "the next step begins behind it"),
    ]
    parts += [text(x, TOP - 14, f"n = {n}", 14) for n, x in COLUMNS.items()]
    parts += [line(x, TOP, x, FLOOR + 100, "#c9ced6", 'stroke-dasharray="4 4"') for x in COLUMNS.values()]
    parts += [*speed(), *lamp()]
    words = {
        0: ("as it was", "(left limit)"),
        1: ("ball: react,", "commit"),
        2: ("counter: react,", "commit"),
    }
    for n, lines in words.items():
        parts += [text(COLUMNS[n], FLOOR + 124 + 16 * k, each, 12) for k, each in enumerate(lines)]
    below = FLOOR + 178
    parts += [dot(COLUMNS[n], below - 4, DARK) for n in COLUMNS]
    parts += [
        text(LEFT, below, "rows of the table", 13, "start"),
        text(COLUMNS[2] + 30, below, "the last one is the state after the event", 13, "start"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(), encoding="utf-8")
