"""Figures that notebooks show by themselves, as they show those of pyplot.

In:  a figure of Matplotlib, which is imported here: whoever imports this module draws
Out: the same, with a picture for notebooks
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure that is shown where it is the last thing in a cell, without a magic and without pyplot."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=110)
        return picture.getvalue()
