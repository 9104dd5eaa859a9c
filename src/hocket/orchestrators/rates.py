"""How often each simulator of a level steps: whole numbers of steps per step of the level.

In:  rates by name, as a user writes them
Out: groups of one rate, the slowest first; or every fault in them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model import Scenario, as_level

Rates: TypeAlias = tuple[tuple[str, int], ...]
"""Names with their rates; those not named have 1."""


class RateGroup(NamedTuple):
    """Simulators that step equally often."""

    rate: int
    sims: tuple[str, ...]


def check_rates(given: Any) -> Rates:
    """Return rates as hashable pairs; raises ScenarioError with all that are no whole numbers."""
    if not isinstance(given, Mapping):
        what = f"rates are given by name, not as {given!r:.60}"
        raise ScenarioError(what, "rates", 'a whole number for each fast simulator: {"fast": 10}')
    faults = [
        Fault(
            f"the rate of `{name}` is {rate!r:.60}",
            "rates",
            "a whole number from 1 on: its steps per step of the level",
        )
        for name, rate in given.items()
        if isinstance(rate, bool) or not isinstance(rate, int) or rate < 1
    ]
    if faults:
        raise ScenarioError(faults)
    return tuple((str(name), rate) for name, rate in given.items())


def group_by_rate(scenario: Scenario, rates: Rates, *, nested: bool) -> list[RateGroup]:
    """Return who steps how often, the slowest first; `nested`: each rate is a multiple of slower ones."""
    faults = list(_rate_faults(scenario, rates))
    given = dict(rates)
    found: dict[int, list[str]] = {}
    for name in scenario.models:
        found.setdefault(given.get(name, 1), []).append(name)
    groups = [RateGroup(rate, tuple(found[rate])) for rate in sorted(found)]
    if nested and not faults:
        faults += _grid_faults(groups)
    if faults:
        raise ScenarioError(faults)
    return groups


def _rate_faults(scenario: Scenario, rates: Rates) -> Iterator[Fault]:
    for name, rate in rates:
        model = scenario.models.get(name)
        if model is None:
            hint = suggest_nearest(name, scenario.models)
            yield Fault(f"there is a rate for `{name}`, which is no model", "rates", "", hint)
        elif rate > 1 and as_level(model) is None and not model.abilities.variable_step:
            yield Fault(
                f"`{name}` is to make {rate} steps per step, and it accepts only whole ones",
                "rates",
                "simulators with a variable step, FMUs with canHandleVariableCommunicationStepSize",
                f"a level of its own for `{name}`, with the shorter step; or `substep` in a file",
            )


def _grid_faults(groups: list[RateGroup]) -> Iterator[Fault]:
    for slow, fast in pairwise(groups):
        if fast.rate % slow.rate:
            near = slow.rate * max(2, round(fast.rate / slow.rate))
            yield Fault(
                f"`{fast.sims[0]}` makes {fast.rate} steps and `{slow.sims[0]}` {slow.rate}: "
                "their grids do not meet",
                "rates",
                "each rate a multiple of the slower ones",
                f"{near} for `{fast.sims[0]}`, or `Asynchronous`, which needs no common grid",
            )


def quote_names(sims: list[str]) -> str:
    """Return names for a message."""
    more = f" and {len(sims) - 6} more" if len(sims) > 6 else ""
    return ", ".join(f"`{sim}`" for sim in sims[:6]) + more
