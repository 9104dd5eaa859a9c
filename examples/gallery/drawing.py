"""What the scripts of the gallery share: the folder to draw into, and the looks of their pictures.

In:  curves by their names
Out: a picture
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
EXACT = {"color": "black", "linewidth": 1.4, "linestyle": (0, (1, 3))}


def chosen_folder() -> Path:
    """Return the folder that was typed, or `out`."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def draw(path: Path, title: str, panels: Sequence[Mapping[str, Any]]) -> None:
    """Draw panels below each other, the title above, and save them.

    A panel is a mapping: `label` for its y axis, `curves` by name as (t, y) or (t, y, "exact"), and perhaps
    `time` for its x axis and `limits` of y.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1.2 + 2.3 * len(panels)), layout="constrained")
    for number, panel in enumerate(panels, 1):
        axes = figure.add_subplot(len(panels), 1, number)
        for colour, (name, (t, y, *kind)) in zip(
            COLOURS * 9, sorted(panel["curves"].items(), key=lambda each: len(each[1])), strict=False
        ):
            looks = EXACT if kind else {"color": colour, "linewidth": 1.2}
            axes.plot(t, y, label=name, **looks)
        axes.set(xlabel=panel.get("time", "time [s]"), ylabel=panel["label"], ylim=panel.get("limits"))
        axes.margins(x=0.0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e4e4e4", linewidth=0.8)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
        if number == 1:
            axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
    figure.savefig(path, dpi=100)
