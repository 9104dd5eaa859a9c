"""One thing that is said about a coupling or a run, in one shape for every reader.

In:  the result of one analysis, as a subclass
Out: title, verdict, rows, notes, facts and picture; command line, JSON and report iterate over lists of them

A measure of `hocket check` stands in `coupling_check.MEASURES`, one of a run in `run_measures.MEASURES`;
nothing else names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

Rows: TypeAlias = list[dict[str, object]]
"""One mapping per row; its keys are the titles of the columns, the same in every row."""


class Outcome(IntEnum):
    """What a measure means for the whole; the largest one counts."""

    GOOD = 0
    CAUTION = 1
    NOT_JUDGED = 2
    UNRELIABLE = 3
    BAD = 4

    @property
    def exit_code(self) -> int:
        """With which a command ends."""
        return (0, 0, 3, 1, 1)[self]


class Drawing:
    """Something with a picture."""

    def draw(self) -> Any:
        """Return the picture as a Matplotlib figure."""
        raise NotImplementedError

    def plot(self, path: Path | str | None = None) -> Any:
        """Return the picture as a Matplotlib figure; `path` also saves it, in the format of its ending."""
        from hocket.files.plotting import save_figure

        return save_figure(self.draw(), path)


class Measure(Drawing):
    """What a measure may say; what it does not say is empty."""

    picture: ClassVar[str | None] = None
    """What `--plot` adds to the name of the file that this measure draws; None: it draws none."""

    @property
    def title(self) -> str:
        """The heading of its table, and its key in JSON."""
        raise NotImplementedError

    @property
    def outcome(self) -> Outcome:
        """What it means for the whole."""
        return Outcome.GOOD

    def verdict(self) -> list[str]:
        """Return its lines of the verdict, for an engineer at first reading."""
        return []

    def rows(self) -> Rows:
        """Return its table."""
        return []

    def notes(self) -> list[str]:
        """Return sentences that stand under the table."""
        return []

    def facts(self) -> dict[str, Any]:
        """Return what JSON holds of it; keys are those of no other measure."""
        return {self.title: self.rows()}


@dataclass(frozen=True)
class Unjudged(Measure):
    """Measures that could not be taken, and why."""

    reasons: tuple[str, ...]
    title = "not judged"

    def verdict(self) -> list[str]:
        return [f"not judged: {reason}" for reason in self.reasons]

    def facts(self) -> dict[str, Any]:
        return {self.title: self.reasons}


def verdict_lines(measures: Iterable[Measure]) -> list[str]:
    """Return the lines of all verdicts."""
    return [line for each in measures for line in each.verdict()]


def worst_outcome(measures: Iterable[Measure]) -> Outcome:
    """Return the outcome that counts."""
    return max((each.outcome for each in measures), default=Outcome.GOOD)


def join_facts(measures: Sequence[Measure], outcome: Outcome | None = None) -> dict[str, Any]:
    """Return what JSON holds: the outcome, the verdict, and the facts of each; None: the worst of theirs."""
    found = worst_outcome(measures) if outcome is None else outcome
    facts: dict[str, Any] = {
        "good": found.exit_code == 0,
        "outcome": found.name.lower().replace("_", " "),
        "verdict": verdict_lines(measures),
    }
    for each in measures:
        facts |= each.facts()
    return facts
