"""What a probe finds.

In:  of each capability a verdict and a sentence
Out: a Probe, and whether the FMU can be trusted
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hocket.errors import count

Verdict: TypeAlias = Literal["true", "false", "not declared", "untried"]
Found: TypeAlias = tuple[Verdict, str]

INTEGRATED: Found = "not declared", "hocket integrates it"


def judge_claim(good: bool, what: str) -> Found:
    return "true" if good else "false", what


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one capability."""

    name: str
    verdict: Verdict
    what: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found of an FMU; `probe["rollback"]` is one finding."""

    file: str
    findings: tuple[Finding, ...]

    def __getitem__(self, name: str) -> Finding:
        return {finding.name: finding for finding in self.findings}[name]

    def __str__(self) -> str:
        width = max(len(finding.name) for finding in self.findings)
        lines = (f"{found.name:{width}}  {found.verdict:12}  {found.what}" for found in self.findings)
        return "\n".join((*lines, self.summary))

    @property
    def failed_checks(self) -> tuple[str, ...]:
        """The names of what is not as it should be."""
        return tuple(finding.name for finding in self.findings if finding.verdict == "false")

    @property
    def summary(self) -> str:
        """One line: whether it can be trusted."""
        if self.failed_checks:
            return f"not to be trusted: {', '.join(self.failed_checks)}"
        return "all that it declares is true"


def quote_messages(said: Sequence[str]) -> str:
    """Return what an FMU has said, to be appended."""
    return f"; it said {count(len(said), 'message')}, the first {said[0][:200]!r}" if said else ""


def format_seconds(value: float) -> str:
    """Return a duration in s, ms or µs."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"
