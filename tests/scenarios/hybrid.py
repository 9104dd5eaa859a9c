"""What the tests of events share: both engines with the same rows, and what is read off them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import hocket as hk
from systems import ENGINES


def rows(run: Any, port: str) -> tuple[np.ndarray, np.ndarray]:
    """Return times and values."""
    return np.asarray(run[port].t), np.asarray(run[port].values)


def both_engines(composite: hk.Composite, folder: Path, **options: Any) -> Any:
    """Run on both engines; return the run after its rows were found equal, bit for bit."""
    runs = [hk.run(composite, engine=engine, folder=folder / engine, **options) for engine in ENGINES]
    assert runs[0].info["engine"] == "native", runs[0].info["why_interpreted"]
    for port in runs[0].ports:
        for one, other in zip(*(rows(run, port) for run in runs), strict=True):
            assert one.tobytes() == other.tobytes(), port
    return runs[0]


def present(run: Any, port: str) -> list[tuple[float, float]]:
    """Return the times and values at which an event is present."""
    return [(float(t), float(value)) for t, value in zip(*rows(run, port), strict=True) if value == value]


def values_at(run: Any, port: str, time: float) -> list[float]:
    """Return the values at one time, instant after instant; the first one is the left limit."""
    t, values = rows(run, port)
    return [float(value) for value in values[t == time]]


def final_values(run: Any, port: str, times: Any) -> list[float]:
    """Return the values after all that happens at these times."""
    return [values_at(run, port, time)[-1] for time in times]
