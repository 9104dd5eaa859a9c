"""What is said after a run: estimated errors, connection defects, energy residuals of its power bonds.

In:  a Run, its ErrorEstimate if there is one, and its BondFlows
Out: measures, in one list, for command line, JSON and report
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hocket.analysis.error_prediction import LARGE
from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.reconciliation import APART, Disagreement, compare_errors
from hocket.files.bond_flows import KEEPS, BondFlows, read_bond_flows
from hocket.files.error_estimate import ErrorEstimate
from hocket.files.run_folder import Run
from hocket.model.units import Share

DEFECT = (
    "a connection defect is the distance between an input and the output that drives it at the end of a "
    "step: the local error of the coupling, in the unit of the input; it is not the global error"
)
RESIDUAL = (
    "the energy residual was taken on one side of a bond and never given on the other; a bond conserves "
    f"energy if it is at most {Share(KEEPS)} of the transferred energy. Where power oscillates the residual "
    "may vanish again: `hocket run --ledger` records it over time, `--plot` draws it"
)


@dataclass(frozen=True, eq=False)
class RunMeasure(Measure):
    """Something that is said about a run."""

    run: Run
    estimate: ErrorEstimate | None
    flows: BondFlows


class GlobalErrors(RunMeasure):
    """The estimated global error of each port."""

    picture = ""

    @property
    def title(self) -> str:
        """The heading names the method."""
        richardson = self.estimate is not None and self.estimate.method == "Richardson"
        return f"estimated global errors ({'Richardson extrapolation' if richardson else 'linear models'})"

    @property
    def outcome(self) -> Outcome:
        """Whether there is an estimate, it is reliable, and small."""
        found = self.estimate
        if found is None or not found.ports:
            return Outcome.NOT_JUDGED
        if found.is_wrong:
            return Outcome.BAD
        worst = found.ports[0].relative
        return Outcome.UNRELIABLE if found.doubts else Outcome.CAUTION if worst > LARGE else Outcome.GOOD

    def verdict(self) -> list[str]:
        """Return the largest error, and whether the estimate is reliable."""
        return self.estimate.verdict() if self.estimate else []

    def rows(self) -> Rows:
        """Return a row for each port, with where it ended."""
        found = self.estimate
        return [
            {
                "port": each.port,
                "unit": each.run.unit,
                "last value": self.run.final(each.port),
                "estimated error": each.largest,
                "at [s]": each.at,
                "of peak": Share(each.relative),
                "observed order": None if each.order is None else round(each.order, 2),
            }
            for each in (found.ports if found else ())
        ]

    def facts(self) -> dict[str, Any]:
        found = self.estimate
        if found is None:
            return {}
        return {
            "method": found.method,
            "expected order": found.predicted,
            "estimated errors": found.rows(),
            "doubts": found.doubts,
            "not included": found.unseen,
        }

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw each port with the band in which it is expected to be."""
        return self.estimate.plot(path) if self.estimate else None


class Reconciliation(RunMeasure):
    """The error that was predicted before the run beside the one that is estimated after it."""

    title = "predicted and estimated errors"

    @property
    def ports(self) -> tuple[Disagreement, ...]:
        """The ports that matter, those whose errors are furthest apart first."""
        return compare_errors(self.estimate) if self.estimate else ()

    @property
    def outcome(self) -> Outcome:
        """Whether both agree: one of them is wrong where they do not."""
        apart = self.ports and self.ports[0].factor > APART
        return Outcome.UNRELIABLE if apart else Outcome.GOOD

    def verdict(self) -> list[str]:
        """Return the port of which they say different things."""
        if self.outcome is Outcome.GOOD:
            return []
        worst = self.ports[0]
        both = f"{Share(worst.predicted):.2g} of peak before the run, {Share(worst.estimated):.2g} after it"
        apart = f"a factor of {worst.factor:.2g}" if math.isfinite(worst.factor) else "all of it"
        return [f"doubt: predicted and estimated error of `{worst.port}` differ by {apart}: {both}"]

    def rows(self) -> Rows:
        """Return a row for each port that matters."""
        return [
            {
                "port": each.port,
                "predicted, of peak": Share(each.predicted),
                "estimated, of peak": Share(each.estimated),
                "factor": each.factor,
            }
            for each in self.ports
        ]


class Defects(RunMeasure):
    """The defect of each connection."""

    title = "connection defects"

    def rows(self) -> Rows:
        return self.estimate.defect_rows() if self.estimate else []

    def notes(self) -> list[str]:
        """Return what a defect is."""
        return [DEFECT] if self.rows() else []


class Residuals(RunMeasure):
    """The energy residual of each bond."""

    title = "energy through power bonds"
    picture = "energy"

    def verdict(self) -> list[str]:
        """Return the bonds with the largest residual."""
        return list(self.flows.verdict())

    def rows(self) -> Rows:
        return self.flows.rows()

    def notes(self) -> list[str]:
        """Return what the residual is."""
        return [RESIDUAL] if self.flows.bonds else []

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the residuals over time, if they were recorded."""
        return self.flows.plot(path)


class LevelResiduals(RunMeasure):
    """The energy residuals of each level."""

    title = "energy through power bonds, by level"

    def rows(self) -> Rows:
        """Return a row for each level, unless there is one bond only."""
        return self.flows.level_rows() if len(self.flows.bonds) > 1 else []

    def facts(self) -> dict[str, Any]:
        return {self.title: self.flows.level_rows()}


class StoredEnergies(RunMeasure):
    """The stored energy of simulators that declare it."""

    title = "stored energy"

    def rows(self) -> Rows:
        """Return a row for each simulator, and their sum."""
        return self.flows.stored_rows()


MEASURES: tuple[type[RunMeasure], ...] = (
    GlobalErrors,
    Reconciliation,
    Residuals,
    LevelResiduals,
    StoredEnergies,
    Defects,
)
"""Every measure of a run, in the order in which it is told."""


def run_measures(run: Run, estimate: ErrorEstimate | None) -> tuple[RunMeasure, ...]:
    """Return everything that is said about a run."""
    flows = read_bond_flows(run)
    return tuple(each(run, estimate, flows) for each in MEASURES)
