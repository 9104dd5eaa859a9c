"""What `hocket tune` is asked for: what was typed, put together with what the file says.

In:  a file, and texts such as `step=1ms:100ms:9:log` and `rho=1`
Out: a study with a Tuning; or faults that say where they come from
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from hocket.cli.typed import check_stop
from hocket.clock import seconds
from hocket.engine.composite import Composite
from hocket.errors import Fault, ScenarioError
from hocket.files.formats import read
from hocket.files.study import Study, Tuning

TIMED = ("error", "relative", "measured", "seconds")
"""Objectives of a run, which must end."""
_OPTIONS = {"tune": "--over", "objectives": "--objective", "limits": "--limit", "search": "--search"}
"""By what the search calls them."""


@dataclass(frozen=True)
class Asked:
    """A scenario, and what its search is about."""

    file: Path
    study: Study
    tuning: Tuning
    stop: Fraction | None
    """When the run stops."""
    typed: frozenset[str]
    """The options that were."""

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Let faults say whether they come from an option or from the file."""
        try:
            yield
        except ScenarioError as error:
            error.faults = tuple(map(self._placed, error.faults))
            raise

    def _placed(self, fault: Fault) -> Fault:
        key, _, name = fault.where.partition(".")
        option = _OPTIONS.get(key)
        if option is None:
            return fault
        if key == "tune":
            fault = replace(fault, hint=self._guess(name.partition(",")[0]) or fault.hint)
        inside = {"tune": self.study.tune.over, "objectives": self.study.tune.objectives}
        if option in self.typed or not inside.get(key, self.study.tune.limits):
            return replace(fault, where=f"{option} {name}".strip())
        path = fault.where if key == "tune" else f"tune.{fault.where}"
        return replace(fault, where=f"`{path}` in {self.file}")

    def _guess(self, name: str) -> str:
        """Return the name that may have been meant; nothing if it is one."""
        known = list(_names(self.study.composite))
        close = [] if name in known else difflib.get_close_matches(name, known, 1, 0.75)
        return f"did you mean `{close[0]}`?" if close else ""


def _names(composite: Composite) -> Iterator[str]:
    """Yield what can be chosen by name, parameters of models aside."""
    from hocket.analysis.varied import names_of  # here: the other verbs start sooner
    from hocket.tuning.space import CHOICES

    yield from names_of(composite)
    for level in composite.blueprint.levels():
        before = f"{level.path}." if level.path else ""
        yield from (f"{before}{word}" for word in CHOICES)
        for each in level.composite.scenario.connections:
            yield from (f"{before}{each.target}.{word}" for word in ("extrapolation", "alpha"))


def asked_for(
    file: Path,
    over: Sequence[str] | None,
    objective: Sequence[str] | None,
    limit: Sequence[str] | None,
    stop: str | None,
) -> Asked:
    """Return what is asked for; what was typed wins over the file."""
    study = read(file)
    ends = _seconds(stop) if stop else study.stop
    if ends is not None and ends <= study.start:
        raise ScenarioError("the run stops before it starts", "--stop", f"more than {float(study.start):g} s")
    limits = {name: _number(name, text) for name, text in _pairs(limit, "--limit", "rho=1").items()}
    tuning = Tuning(
        _pairs(over, "--over", "step=1ms:100ms:9:log") or study.tune.over,
        tuple(objective or study.tune.objectives),
        {**study.tune.limits, **limits},
    )
    if any(name.partition(":")[0] in TIMED for name in (*tuning.objectives, *tuning.limits)):
        check_stop(study, stop, [file], "tune")
    given = {"--over": over, "--objective": objective, "--limit": limit}
    typed = frozenset(name for name, value in given.items() if value)
    return Asked(file, study, tuning, ends, typed)


def _pairs(texts: Sequence[str] | None, option: str, such_as: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise ScenarioError(f"`{text}` is no name with a value", option, f"such as {such_as}")
        if name in found:
            raise ScenarioError(f"`{name}` is given twice", f"{option} {text}", "each name once")
        found[name] = value
    return found


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is no number", f"--limit {name}={text}", "such as rho=1") from None


def _seconds(text: str) -> Fraction:
    try:
        return seconds(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is not a duration", "--stop", '10, "500 ms", "2 min"') from None
