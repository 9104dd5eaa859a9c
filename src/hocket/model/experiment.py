"""What a scenario file holds: a composite, and how `hocket run` runs it unless told otherwise.

In:  a Composite and the [run] table
Out: frozen data
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hocket.errors import ScenarioError
from hocket.model.arguments import (
    as_path,
    as_texts,
    expect,
    expect_texts,
    is_blank,
    is_one_of,
    set_fields,
)
from hocket.model.clock import format_duration, seconds
from hocket.model.composite import Composite

if TYPE_CHECKING:
    from hocket.model.distributions import Distribution
    from hocket.model.execution_time import ExecutionTime
    from hocket.model.validity import ValidRange


@dataclass(frozen=True)
class Tuning:
    """What `hocket tune` may choose, and what counts; what is empty, it chooses itself."""

    over: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Values by name, as they are written."""
    objectives: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, repr=False)
class Experiment:
    """A composite with the defaults of its run, in seconds; times may be given as durations: "10 s"."""

    composite: Composite
    start: Fraction = Fraction(0)
    stop: Fraction | None = None
    """None: the caller of `run` must say."""
    every: Fraction | Literal["micro"] | None = None
    """The output interval; None: every macro step."""
    name: str = ""
    tune: Tuning = Tuning()
    uncertain: Mapping[str, Distribution] = field(default_factory=dict, hash=False)
    """What `hocket study` varies, by path; texts such as "normal(20, 2)" are parsed."""
    valid: Mapping[str, ValidRange] = field(default_factory=dict, hash=False)
    """Where recorded ports may be believed, by path; texts such as "0 < p < 10 bar" are parsed."""
    wcet: Mapping[str, ExecutionTime] = field(default_factory=dict, hash=False)
    """How long a step of a simulator takes at the most, by path; texts such as "2 ms" are parsed."""
    origin: str = ""
    """The date that is time 0, for frames and spans of time; empty: there is none."""
    original: str = ""
    """Of a compiled scenario: the text of the file that it was made from."""
    path: Path | None = field(default=None, compare=False)
    """The file it was read from."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What was assumed when it was read, in words."""

    def __repr__(self) -> str:
        span = "" if self.stop is None else f" to {format_duration(self.stop)}"
        return f"<Experiment {self.name or '(no name)'}{span}: {self.composite!r}>"

    def _repr_html_(self) -> str:
        from hocket.model.html import html_view  # here: notebooks only

        stop = "" if self.stop is None else format_duration(self.stop)
        facts = {"start": format_duration(self.start), "stop": stop, "file": self.path}
        return html_view(f"Experiment {self.name}", facts, self.composite.html_parts())

    def __post_init__(self) -> None:
        expect(isinstance(self.composite, Composite), "composite", self.composite, "a Composite")
        expect(self.start is not None, "start", self.start, "a time, such as 0")
        expect(isinstance(self.tune, Tuning), "tune", self.tune, "a Tuning")
        if not isinstance(self.uncertain, Mapping) or self.uncertain:
            from hocket.model.distributions import as_distributions  # here: few files need it

            set_fields(self, uncertain=as_distributions(self.uncertain, "uncertain"))
        if not isinstance(self.valid, Mapping) or self.valid:
            from hocket.model.validity import as_ranges

            set_fields(self, valid=as_ranges(self.valid, "valid"))
        if not isinstance(self.wcet, Mapping) or self.wcet:
            from hocket.model.execution_time import as_execution_times

            set_fields(self, wcet=as_execution_times(self.wcet, "wcet"))
        expect_texts(name=self.name, original=self.original)
        if not is_blank(self.origin):
            from hocket.model.calendar import format_moment, parse_moment  # here: few files need it

            set_fields(self, origin=format_moment(parse_moment(self.origin, "origin")))
        if self.path is not None:
            set_fields(self, path=as_path(self.path))
        set_fields(self, notes=as_texts(self.notes, "notes"))
        for key in ("start", "stop", "every"):
            given = getattr(self, key)
            if (
                isinstance(given, Fraction)
                or given is None
                or (key == "every" and is_one_of(given, ("micro",)))
            ):
                continue
            try:
                set_fields(self, **{key: seconds(given)})
            except ValueError as error:
                raise ScenarioError(str(error), key) from None
