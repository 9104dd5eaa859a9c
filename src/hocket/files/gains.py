"""Pictures of what power bonds gained over time.

In:  BondFlows whose accounts were recorded
Out: a Matplotlib figure; nothing global is touched and no display is needed
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.files.bands import BLUE, SHOWN, save_figure
from hocket.files.drawing import Series, check_drawable, import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hocket.files.flows import BondFlow, BondFlows

_HUGE = 1e100  # an unstable run may leave numbers for which Matplotlib finds no scale


def draw_gains(flows: BondFlows, path: Path | str | None = None) -> Any:
    """Draw the worst bonds, each in axes of its own: their gains are of different sizes."""
    if path is not None:
        check_drawable(path)
    shown = flows.series[:SHOWN]
    facts = {f"{each.bond}.gained": each for each in flows.bonds}
    figures, size = import_extra("matplotlib.figure", "plot"), (9, 0.9 + 1.7 * len(shown))
    figure: Figure = figures.Figure(figsize=size, layout="constrained")
    stack = list(figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0])
    for axes, series in zip(stack, shown, strict=True):
        _draw_gain(axes, series, facts.get(series.name))
    stack[-1].set_xlabel("time [s]")
    figure.align_ylabels()
    left_out = len(flows.series) - len(shown)
    if left_out:
        figure.supxlabel(f"and {left_out} more bonds", fontsize="small", x=1.0, ha="right")
    return save_figure(figure, path)


def _draw_gain(axes: Axes, series: Series, flow: BondFlow | None) -> None:
    finite = np.where(np.abs(series.values) < _HUGE, series.values, np.nan)
    axes.axhline(0.0, color="#444444", linewidth=0.8)
    axes.plot(series.t, finite, color=BLUE, linewidth=1.3)
    axes.set_ylabel(f"gained [{series.unit or '-'}]")
    bond = series.name.rpartition(".")[0]
    title = f"{bond}: {flow.verdict_word}, {flow.gain_text}" if flow else bond
    axes.set_title(title.replace("$", r"\$"), loc="left", fontsize="medium", fontweight="bold")
    axes.margins(x=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
