"""Draw the rooms of the source: `python docs/pictures/rooms.py` writes docs/pictures/rooms.svg.

In:  the imports between the packages of src/hocket
Out: one box per room in the order of the imports, with what it is about, and an arrow per import

The picture is read off the source, so it cannot be out of date without `--check` saying so.
"""

from __future__ import annotations

import ast
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from house import House  # noqa: E402

ORDER = [
    "errors", "model", "coupling", "plan", "orchestrators", "simulators", "planning", "engine", "files",
    "execution", "analysis", "search", "report", "testing", "cli",
]  # fmt: skip
WIDTH, HEIGHT, GAP, LEFT = 640, 44, 12, 190


def room_imports(house: House) -> dict[str, set[str]]:
    """Return which rooms each room imports from."""
    found: dict[str, set[str]] = {room: set() for room in ORDER}
    for module, others in house.imports.items():
        parts = module.split(".")
        if len(parts) > 1 and parts[1] in found:
            found[parts[1]] |= {name.split(".")[1] for name in others if name.count(".")} - {parts[1]}
    return found


def first_line(house: House, room: str) -> str:
    """Return what a room says of itself."""
    text = ast.get_docstring(house.trees[f"hocket.{room}"]) or ""
    return text.splitlines()[0].rstrip(".")


def draw(house: House) -> str:
    """Return the picture as SVG."""
    imports = room_imports(house)
    place = {room: GAP + number * (HEIGHT + GAP) for number, room in enumerate(ORDER)}
    height = GAP + len(ORDER) * (HEIGHT + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + GAP} {height}"'
        ' font-family="system-ui, sans-serif">',
        f'<rect width="{LEFT + WIDTH + GAP}" height="{height}" fill="white"/>',
    ]
    for room, others in imports.items():
        for other in sorted(others & place.keys()):
            start, end = place[room] + HEIGHT / 2, place[other] + HEIGHT / 2
            bend = LEFT - 16 - 9.5 * abs(ORDER.index(room) - ORDER.index(other))
            lines.append(
                f'<path d="M {LEFT} {start} C {bend} {start} {bend} {end} {LEFT} {end}" fill="none"'
                f' stroke="#0072B2" stroke-opacity="0.35"><title>{room} imports {other}</title></path>'
            )
    for room in ORDER:
        y = place[room]
        lines += [
            f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#F2F6FA"'
            ' stroke="#0072B2"/>',
            f'<text x="{LEFT + 10}" y="{y + 18}" font-weight="600" font-size="14">{room}</text>',
            f'<text x="{LEFT + 10}" y="{y + 35}" font-size="12" fill="#333">'
            f"{escape(first_line(house, room))[:108]}</text>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> int:
    """Write the picture; with `--check` only say whether it is up to date."""
    target, text = Path(__file__).with_name("rooms.svg"), draw(House(ROOT))
    if "--check" in sys.argv:
        return int(not target.exists() or target.read_text() != text)
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
