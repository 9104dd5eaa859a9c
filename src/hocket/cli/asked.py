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
from hocket.files.study import Experiment, Tuning

TIMED = ("error", "relative", "measured", "seconds")
"""Objectives of a run, which must end."""
_OPTIONS = {"tune": "--over", "objectives": "--objective", "limits": "--limit", "search": "--search"}
"""By what the search calls them."""


@dataclass(frozen=True)
class TuningRequest:
    """A scenario, and what its search is about."""

    file: Path
    study: Experiment
    tuning: Tuning
    stop: Fraction | None
    """When the run stops."""
    typed: frozenset[str]
    """The options that were."""

    @contextmanager
    def locate_faults(self) -> Iterator[None]:
        """Let faults say whether they come from an option or from the file."""
        try:
            yield
        except ScenarioError as error:
            error.faults = tuple(map(self._locate_fault, error.faults))
            raise

    def _locate_fault(self, fault: Fault) -> Fault:
        key, _, name = fault.where.partition(".")
        option = _OPTIONS.get(key)
        if option is None:
            return fault
        if key == "tune":
            fault = replace(fault, hint=self._suggest_name(name.partition(",")[0]) or fault.hint)
        inside = {"tune": self.study.tune.over, "objectives": self.study.tune.objectives}
        if option in self.typed or not inside.get(key, self.study.tune.limits):
            return replace(fault, where=f"{option} {name}".strip())
        path = fault.where if key == "tune" else f"tune.{fault.where}"
        return replace(fault, where=f"`{path}` in {self.file}")

    def _suggest_name(self, name: str) -> str:
        """Return the name that may have been meant; nothing if it is one."""
        known = list(_tunable_names(self.study.composite))
        close = [] if name in known else difflib.get_close_matches(name, known, 1, 0.75)
        return f"did you mean `{close[0]}`?" if close else ""


def _tunable_names(composite: Composite) -> Iterator[str]:
    """Yield what can be chosen by name, parameters of models aside."""
    from hocket.analysis.varied import variable_names  # here: the other verbs start sooner
    from hocket.tuning.space import CHOICES

    yield from variable_names(composite)
    for level in composite.blueprint.levels():
        before = f"{level.path}." if level.path else ""
        yield from (f"{before}{word}" for word in CHOICES)
        for each in level.composite.scenario.connections:
            yield from (f"{before}{each.target}.{word}" for word in ("extrapolation", "alpha"))


def read_tuning_request(
    file: Path,
    over: Sequence[str] | None,
    objective: Sequence[str] | None,
    limit: Sequence[str] | None,
    stop: str | None,
) -> TuningRequest:
    """Return what is asked for; what was typed wins over the file."""
    study = read(file)
    ends = _parse_stop(stop) if stop else study.stop
    if ends is not None and ends <= study.start:
        raise ScenarioError("the run stops before it starts", "--stop", f"more than {float(study.start):g} s")
    limits = {
        name: _parse_limit(name, text) for name, text in _parse_pairs(limit, "--limit", "rho=1").items()
    }
    tuning = Tuning(
        _parse_pairs(over, "--over", "step=1ms:100ms:9:log") or study.tune.over,
        tuple(objective or study.tune.objectives),
        {**study.tune.limits, **limits},
    )
    if any(name.partition(":")[0] in TIMED for name in (*tuning.objectives, *tuning.limits)):
        check_stop(study, stop, [file], "tune")
    given = {"--over": over, "--objective": objective, "--limit": limit}
    typed = frozenset(name for name, value in given.items() if value)
    return TuningRequest(file, study, tuning, ends, typed)


def _parse_pairs(texts: Sequence[str] | None, option: str, such_as: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise ScenarioError(f"`{text}` is no name with a value", option, f"such as {such_as}")
        if name in found:
            raise ScenarioError(f"`{name}` is given twice", f"{option} {text}", "each name once")
        found[name] = value
    return found


def _parse_limit(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is no number", f"--limit {name}={text}", "such as rho=1") from None


def _parse_stop(text: str) -> Fraction:
    try:
        return seconds(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is not a duration", "--stop", '10, "500 ms", "2 min"') from None
