"""Scout runs: where a pilot run ends early, runs with much longer steps look at what comes later.

In:  an Experiment, Pilots whose time was up before the end of the run
Out: a ScoutedError: how large the error becomes by the end of the run, as longer steps tell
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hocket.analysis.pilot import FREE, Pilots, run_pilot
from hocket.analysis.pilot_error import PilotError, PortPilotError, estimate_pilot_error
from hocket.errors import HocketError
from hocket.files.error_estimate import format_time
from hocket.model.experiment import Experiment
from hocket.model.units import Share

LONGEST = 64
"""Times the step of the user: scouts with longer ones tell nothing of it."""
FEWEST = 8
"""Macro steps that a scout makes at least."""
LENGTHS = (4, 2, 1)
"""Scouts have steps of so many times the shortest among them: three show an order."""
SHARE = 0.75
"""Of the time of the pilot run: what scouts may take."""
APART = 10.0
"""The factor by which scouts may be wrong about the part of the run that the pilot has seen: what they
tell of the rest is larger by it, never smaller."""
CARRIES = 0.1
"""Of the largest error: ports with more than this must show an order."""
MARGIN = 2.0
"""The factor by which what scouts suggest must be below the limit."""
COVERED, NEARLY = 0.5, 0.9
"""Of the run: what a pilot must have seen to tell of it where there are no scouts, or where they are lost."""


@dataclass(frozen=True)
class ScoutedError:
    """What scouts tell of the error by the end of the run."""

    relative: float
    """The largest error over the peak, at the steps of the user; infinite: not known."""
    times: int
    """The steps of the best scout, in steps of the user; 0: it goes on as the pilot run did."""
    why: str = ""
    """Why it is not known."""
    ports: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The error of each port over its peak, and when it is largest."""

    @property
    def suggestion(self) -> str:
        """What scouts with longer steps suggest; "": there were none."""
        if not self.times or not math.isfinite(self.relative):
            return ""
        return f"steps {self.times} times as long suggest {Share(self.relative):.2g} of peak by its end"

    def objection(self, limit: float, until: float) -> str:
        """Return why a run may not be called sound on the word of its first part; "": it may."""
        seen = f"the pilot run ended early, at {format_time(until)} s"
        more = "more time may tell (`--pilot-seconds`)"
        if not math.isfinite(self.relative):
            return f"{seen}, and {self.why}; {more}"
        if MARGIN * self.relative <= limit:
            return ""
        what = f"steps {self.times} times as long suggest" if self.times else "if it goes on growing so,"
        return f"{seen}; {what} an error of {Share(self.relative):.2g} of peak by the end; {more}"


def scout_ahead(
    experiment: Experiment, pilots: Pilots, error: PilotError, promised: int | None
) -> ScoutedError:
    """Return what the error may be by the end of a run of which the pilots have seen the first part only."""
    seen = (pilots.until - pilots.start) / (float(pilots.asked * pilots.step) or 1.0)
    found = _run_scouts(experiment, pilots, error, promised)
    if found is not None and (seen < NEARLY or math.isfinite(found.relative)):
        return found
    if seen < COVERED:
        return ScoutedError(math.inf, 0, f"of the other {Share(1.0 - seen):.2g} of the run nothing is known")
    grown = max((_extrapolate(each, pilots.start, seen) for each in error.flowing), default=0.0)
    return ScoutedError(grown, 0)


def _run_scouts(
    experiment: Experiment, pilots: Pilots, error: PilotError, promised: int | None
) -> ScoutedError | None:
    """Return what three runs with longer steps tell; None: there are none."""
    first = pilots.runs[0]
    whole = first.seconds * pilots.asked / max(first.steps, 1)
    allowed, times = SHARE * first.seconds + FREE / 2.0, 2
    while whole * sum(1.0 / (times * each) for each in LENGTHS) > allowed:
        times *= 2
    if times > LONGEST or pilots.asked < FEWEST * times * max(LENGTHS):
        return None
    try:
        runs = tuple(
            run_pilot(experiment, Fraction(1, times * each), pilots.asked, 2.0 * allowed) for each in LENGTHS
        )
    except HocketError:
        return None
    unknown = ScoutedError(math.inf, times, f"steps {times} times as long are too long to tell of the rest")
    last = pilots.asked - times * max(LENGTHS)
    if any(run.failure or run.steps < last for run in runs):
        return unknown
    found = estimate_pilot_error(Pilots(runs, pilots.step, pilots.asked, pilots.start), promised)
    if not found.ports or not found.converges:
        return unknown
    worst = max(each.relative for each in found.flowing)
    chosen = [each for each in found.flowing if each.relative > CARRIES * worst]
    if worst > 0.0 and any(each.order is None or _is_lost(each) for each in chosen):
        return unknown
    ports, seen = {}, {each.port: each.largest for each in error.ports}
    for each in found.ports:
        early, late, at = _at_own_steps(each, times, promised, pilots.until)
        ratio = seen.get(each.port, 0.0) / (early * each.scale) if early > 0.0 else 1.0
        if each in chosen and not 1.0 / APART <= ratio <= APART:
            return unknown  # of what the pilot has seen they tell another error
        ports[each.port] = (late * min(max(ratio, 1.0), APART), at)
    return ScoutedError(max((ports[each.port][0] for each in chosen), default=0.0), times, "", ports)


def _is_lost(port: PortPilotError) -> bool:
    """Return whether the best scout is as wrong as the port is large: then it tells nothing."""
    return port.differences[-1] > port.scale


def _at_own_steps(
    port: PortPilotError, times: int, promised: int | None, until: float
) -> tuple[float, float, float]:
    """Return the error of a port at the steps of the user, by the order that scouts show.

    That up to a time, the one after it, both over the peak, and when it is largest after it.
    """
    order = min(port.order or 1.0, float(promised or 1))
    size, later = np.abs(port.error), port.t > until
    if not size.any() or not later.any() or not port.scale:
        return 0.0, 0.0, until
    whole = port.differences[-1] / (2.0**order - 1.0) / times**order / port.scale
    profile = whole * size / size.max()
    at = float(port.t[later][int(np.argmax(profile[later]))])
    return float(profile[~later].max(initial=0.0)), float(profile[later].max()), at


def _extrapolate(port: PortPilotError, start: float, seen: float) -> float:
    """Return the error by the end of the run if it goes on growing by a power of time, at least the first."""
    size, t = np.abs(port.error), port.t - start
    if not len(t) or not port.scale:
        return 0.0
    half = float(size[t <= 0.5 * t[-1]].max(initial=0.0))
    whole = float(size.max(initial=0.0))
    power = max(1.0, math.log2(whole / half)) if half > 0.0 and whole > 0.0 else 1.0
    return float(whole / seen**power / port.scale)
