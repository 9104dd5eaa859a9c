"""Pulses of sources between two samples, as a measure of `hocket check`.

In:  an Experiment with a stop time
Out: a doubt per pulse: neither the run nor what is predicted of it has them
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hocket.analysis.measure import Measure, Outcome
from hocket.model.experiment import Experiment
from hocket.planning.planner import plan_tree
from hocket.planning.source_pulses import MissedPulse, missed_pulses


@dataclass(frozen=True)
class MissedPulses(Measure):
    """Pulses of sources that fall between two samples."""

    pulses: tuple[MissedPulse, ...]
    title = "pulses between samples"

    @property
    def outcome(self) -> Outcome:
        return Outcome.CAUTION if self.pulses else Outcome.GOOD

    def verdict(self) -> list[str]:
        return [f"doubt: {pulse}" for pulse in self.pulses]

    def facts(self) -> dict[str, Any]:
        return {self.title: [asdict(pulse) for pulse in self.pulses]} if self.pulses else {}


def find_missed_pulses(experiment: Experiment) -> list[Measure]:
    """Return the measure if there are such pulses until the stop time."""
    if experiment.stop is None:
        return []
    found = missed_pulses(plan_tree(experiment.composite), float(experiment.start), float(experiment.stop))
    pulses = tuple(found)
    return [MissedPulses(pulses)] if pulses else []
