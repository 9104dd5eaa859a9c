"""Everything a page tells, gathered before a word of it is written; what cannot be had is said.

In:  a Run, and perhaps the Study it came from
Out: a Story
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hocket.analysis.checking import Check, check
from hocket.engine.blueprint import PlanTree
from hocket.errors import HocketError
from hocket.files.estimate import ErrorEstimate
from hocket.files.run import Run
from hocket.files.study import Experiment
from hocket.files.toml import loads
from hocket.files.trust import read_estimate


@dataclass(frozen=True, eq=False)
class ReportData:
    """A run and what is known of it. Each `no_...` says why its fellow is missing."""

    run: Run
    design: PlanTree | None = None
    no_design: str = ""
    check: Check | None = None
    no_check: str = ""
    trust: ErrorEstimate | None = None
    no_trust: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    """Plan and scenario as they were kept."""


def gather_report_data(run: Run, study: Experiment | None = None) -> ReportData:
    """Return what there is to tell; nothing that fails on the way loses the rest."""
    no_design = no_check = no_trust = ""
    design, found, trust = None, None, None
    texts = {name: _stored_text(run, name) for name in ("plan", "scenario")}
    try:
        study = study or loads(texts["scenario"])
        design = study.composite.blueprint
    except Exception as error:  # code that a scenario names may fail in any way
        no_design = f"the scenario kept in the run folder cannot be read again: {_error_words(error)}"
    if study is not None and design is not None:
        try:
            found = check(study)
        except Exception as error:
            no_check = f"the coupling could not be judged: {_error_words(error)}"
    try:
        trust = read_estimate(run.path)
    except Exception as error:
        no_trust = f"the estimate kept in the run folder cannot be read: {_error_words(error)}"
    return ReportData(run, design, no_design, found, no_check or no_design, trust, no_trust, texts)


def _stored_text(run: Run, name: str) -> str:
    try:
        return run.plan_text if name == "plan" else run.scenario_text
    except (HocketError, ValueError):
        return ""


def _error_words(error: Exception) -> str:
    if isinstance(error, HocketError):
        first = error.faults[0]
        more = f" (and {len(error.faults) - 1} more)" if len(error.faults) > 1 else ""
        return f"{first.what}{more}"
    return f"{type(error).__name__}: {error}"
