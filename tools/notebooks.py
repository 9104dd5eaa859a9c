"""Write the tutorials as notebooks: `python tools/notebooks.py` (or `make lists`) writes examples/notebooks.

In:  docs/tutorials
Out: a notebook of each, without outputs: text, code of Python, and commands as `!hocket ...`
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TUTORIALS, NOTEBOOKS = ROOT / "docs/tutorials", ROOT / "examples/notebooks"
BUILD_FMUS = """\
# stands for the FMUs of two suppliers: compiled from the C sources of the tests of this repository
import sys

sys.path.append("../../tests")
from fmus.build import build

for name in ("first", "second"):
    build(name, 2, folder=".")"""
NEW_PLANT = """\
# a scenario to try it with, and the one of the examples
import shutil

!hocket new plant.toml
for name in ("car.toml", "skyhook.py"):
    shutil.copy(f"../{name}", ".")"""
BEFORE = {"two_fmus": BUILD_FMUS, "ci": NEW_PLANT}
"""What a notebook needs that the reader of a page has already."""
_PART = re.compile(
    r'```python\n(?P<code>.*?)\n```(?:\n\n```text title="prints"\n.*?\n```)?'
    r"|(?P<commands>(?:^ {4}hocket [^\n]*\n)+)",
    re.S | re.M,
)


def notebook(page: Path) -> str:
    """Return the notebook of a tutorial, as JSON."""
    text = page.read_text()
    cells: list[dict[str, object]] = []

    def add(kind: str, source: str) -> None:
        source = source.strip("\n")
        if not source:
            return
        cell: dict[str, object] = {"cell_type": kind, "id": f"{page.stem}-{len(cells)}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": source.splitlines(keepends=True)})

    begin = 0
    for found in _PART.finditer(text):
        add("markdown", _links(text[begin : found.start()]))
        if page.stem in BEFORE and all(cell["cell_type"] == "markdown" for cell in cells):
            add("code", BEFORE[page.stem])
        code = found["code"]
        add("code", code if code is not None else re.sub(r"^ {4}", "!", found["commands"], flags=re.M))
        begin = found.end()
    add("markdown", _links(text[begin:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    written = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(written, indent=1, ensure_ascii=False) + "\n"


def _links(text: str) -> str:
    return re.sub(r"\]\(\.\./(?!\.\./)", "](../../docs/", text)


def main() -> None:
    """Write all of them; with --check only say which differ."""
    NOTEBOOKS.mkdir(exist_ok=True)
    differ = []
    for page in sorted(TUTORIALS.glob("*.md")):
        path, text = NOTEBOOKS / f"{page.stem}.ipynb", notebook(page)
        if not path.exists() or path.read_text() != text:
            differ.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(text)
    if differ and "--check" in sys.argv:
        sys.exit(f"not as their tutorials: {', '.join(differ)}; run `python tools/notebooks.py`")


if __name__ == "__main__":
    main()
