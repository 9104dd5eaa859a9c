"""What the pictures of measures share.

In:  a measure
Out: a Matplotlib figure; nothing global is touched and no display is needed
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hocket.files.atomic_files import replace_file
from hocket.files.plotting import check_drawable, import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hocket.model.protocols import Array


BLUE, RED, GREY = "#0072B2", "#D55E00", "#444444"


def new_figure(
    width: float, height: float, columns: int = 1, widths: Sequence[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure with axes side by side, of equal or of these relative widths."""
    figure: Figure = import_extra("matplotlib.figure", "plot").Figure(
        figsize=(width, height), layout="constrained"
    )
    axes = list(figure.subplots(1, columns, squeeze=False, width_ratios=widths)[0])
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_figure(figure: Figure, path: Path | str | None) -> Figure:
    """Return the figure; `path` also saves it, in the format of its ending."""
    if path is not None:
        check_drawable(path)
        with replace_file(path) as file:
            figure.savefig(file, format=Path(path).suffix[1:].lower(), dpi=150)
    return figure


def set_axes_title(axes: Axes, title: str) -> None:
    """Put a title where those of runs are."""
    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")


def draw_share_bars(axes: Axes, names: Sequence[str], shares: Sequence[float], colour: str = BLUE) -> None:
    """Draw shares as lying bars, the largest on top."""
    places = np.arange(len(names))[::-1]
    axes.barh(places, shares, color=colour)
    axes.set_yticks(places, names)
    axes.grid(axis="x", alpha=0.3)


def draw_radius_curve(
    values: Array, rho: Array, intervals: Sequence[tuple[float, float]], logarithmic: bool
) -> tuple[Figure, Axes]:
    """Draw a radius over a parameter, with the intervals in which it is below one shaded."""
    figure, (axes,) = new_figure(7, 4)
    shown = np.isfinite(rho)
    low = min(1.0, float(rho[shown].min(initial=1.0)))
    high = min(2.0, max(1.0, float(rho[shown].max(initial=1.0))))
    margin = 0.08 * max(high - low, 1e-6)
    for low_end, high_end in intervals:
        axes.axvspan(low_end, high_end, color=BLUE, alpha=0.15, linewidth=1)
    axes.axhline(1.0, color=GREY, linewidth=0.8, linestyle="--")
    axes.plot(values, np.where(shown, rho, 1e6), color=BLUE, linewidth=1.3)
    axes.set_xscale("log" if logarithmic else "linear")
    axes.set_xlim(values[0], values[-1])
    axes.set_ylim(low - margin, high + margin)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_ylabel("spectral radius")
    axes.grid(alpha=0.3)
    set_axes_title(axes, "stable where shaded" if intervals else "stable nowhere")
    return figure, axes
