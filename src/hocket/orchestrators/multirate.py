"""Multirate: within one level some step more often than others.

In:  a Scenario, how often each simulator steps, and which goes first
Out: a Plan: steps of the slow ones, and within each of them several of the fast ones

Slowest first and fastest first: Gear and Wells 1984; the compound step: Verhoeven et al. 2006 (Hafner 2021,
sections 2.4, 3.5 and 5.8.2). More than two rates nest, as in Striebel 2006.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args

from hocket.coupling.wiring import Wiring, wire
from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model.arguments import choice_faults, set_fields
from hocket.model.composite import CapabilityRequest, InputsMode, OrchestratorTraits, OutputsMode, as_level
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import (
    ExplicitOrchestrator,
    read_body,
    require_rollback,
    step_body,
)
from hocket.plan import Body, Plan, Restore, Save, Times

Rates: TypeAlias = tuple[tuple[str, int], ...]
"""Names with their rates; those not named have 1."""
GivenRates: TypeAlias = Annotated[
    Rates,
    "steps of each simulator per step of the level; 1 where none is given",
    "a table of whole numbers: { fast = 10 }",
]


class RateGroup(NamedTuple):
    """Simulators that step equally often."""

    rate: int
    sims: tuple[str, ...]


def check_rates(given: Any) -> Rates:
    """Return rates as hashable pairs; raises ScenarioError with all that are not whole numbers."""
    if not isinstance(given, Mapping):
        what = f"rates are given by name, not as {given!r:.60}"
        raise ScenarioError(what, "rates", 'a whole number for each fast simulator: {"fast": 10}')
    faults = [
        Fault(
            f"the rate of `{name}` is {rate!r:.60}",
            "rates",
            "a whole number from 1 to 2^31 - 1: its steps per step of the level",
        )
        for name, rate in given.items()
        if isinstance(rate, bool) or not isinstance(rate, int) or not 0 < rate < 2**31
    ]
    if faults:
        raise ScenarioError(faults)
    return tuple((str(name), rate) for name, rate in given.items())


def group_by_rate(scenario: Scenario, rates: Rates, *, nested: bool) -> list[RateGroup]:
    """Return simulators by rate, the slowest first; `nested`: each rate is a multiple of slower ones."""
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


def rate_needs(scenario: Scenario, rates: Rates) -> Iterator[CapabilityRequest]:
    """Yield what those that make several steps per step of the level must be able to do."""
    for name, rate in rates:
        if rate > 1 and name in scenario.models:
            why = f"it makes {rate} steps in each step of the level"
            yield CapabilityRequest("variable step", (name,), why, "", Fraction(1, rate))


def _rate_faults(scenario: Scenario, rates: Rates) -> Iterator[Fault]:
    for name, rate in rates:
        model = scenario.models.get(name)
        if model is None:
            hint = suggest_nearest(name, scenario.models)
            yield Fault(f"there is a rate for `{name}`, which is not a model", "rates", "", hint)
        elif rate > 1 and as_level(model) is None and not model.capabilities.variable_step:
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


Scheme: TypeAlias = Literal["slowest-first", "fastest-first", "compound"]
_FIRST = {
    "slowest-first": "slowest first",
    "fastest-first": "fastest first",
    "compound": "mixed: a compound step",
}


@dataclass(frozen=True, init=False)
class Multirate(ExplicitOrchestrator):
    """Own steps for each simulator: `Multirate({"fast": 10})` makes ten of `fast` per step of the level.

    "slowest-first": the slow ones make their step with extrapolated inputs, then the fast ones theirs with
    what the slow ones came to. "fastest-first": the fast ones first. "compound": the fast ones predict with
    one long step, the slow ones step with that, then the fast ones roll back and make their short steps.
    Each rate is a multiple of the slower ones. Equal rates step together.

    Outputs that only slower ones listen to are read when these step, the others after each step.
    """

    rates: GivenRates = ()
    scheme: Annotated[Scheme, "which first"] = "slowest-first"

    def __init__(
        self,
        rates: Mapping[str, int],
        scheme: Scheme = "slowest-first",
        *,
        outputs: OutputsMode = "consistent",
        inputs: InputsMode = "clean",
    ):
        faults = [*choice_faults("scheme", scheme, get_args(Scheme))]
        if faults:
            raise ScenarioError(faults)
        set_fields(self, rates=check_rates(rates), scheme=scheme)
        super().__init__(outputs=outputs, inputs=inputs)

    @property
    def traits(self) -> OrchestratorTraits:
        """Steps of several lengths on one grid."""
        words, predicts = f"sequential, {_FIRST[self.scheme]}", self.scheme == "compound"
        return self._describe("multirate", words, rates=self.rates, predicts=predicts)

    def needs(self, scenario: Scenario) -> Iterator[CapabilityRequest]:
        """Yield short steps of the fast ones, and rollback where they predict."""
        yield from rate_needs(scenario, self.rates)
        rates = {name: dict(self.rates).get(name, 1) for name in scenario.models}
        again = tuple(
            name for name, rate in self.rates if rate > max(1, min(rates.values())) and name in rates
        )
        if self.scheme == "compound" and any(rate > 1 for rate in rates.values()):
            why = "the fast ones predict with one long step, and roll back"
            yield CapabilityRequest("rollback", again, why)

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        wiring = wire(scenario)
        groups = group_by_rate(scenario, self.rates, nested=True)
        if self.scheme == "compound":
            fast = [sim for group in groups[1:] for sim in group.sims]
            why = "a compound step is made again by the fast ones"
            hint = 'scheme "slowest-first", which needs no rollback; `Replay`, replay = true in a file'
            require_rollback(scenario, fast, why, hint)
        return self._plan_around(scenario, wiring, _BodyWriter(scenario, wiring, groups, self.scheme).body())


@dataclass(frozen=True)
class _BodyWriter:
    """Writes the steps of groups, the slowest first, each inside a step of the one before it."""

    scenario: Scenario
    wiring: Wiring
    groups: list[RateGroup]
    scheme: Scheme

    def body(self, number: int = 0, around: int = 1) -> Body:
        """Return what a group and all faster ones do in one of so many equal parts of the step."""
        if number == len(self.groups):
            return ()
        group = self.groups[number]
        part, times = Fraction(1, group.rate), group.rate // around
        heard = self._driving_simulators(number) if times > 1 else set(group.sims)
        own = (
            *step_body(self.scenario, group.sims, part, read=False),
            *read_body(self.scenario, (sim for sim in group.sims if sim in heard)),
        )
        faster = self.body(number + 1, group.rate)
        once: Body = {
            "slowest-first": (*own, *faster),
            "fastest-first": (*faster, *own),
            "compound": (*self._compound_body(number, part, own), *faster),
        }[self.scheme]
        late = read_body(self.scenario, (sim for sim in group.sims if sim not in heard))
        return (*((Times(times, once),) if times > 1 else once), *late)

    def _compound_body(self, number: int, part: Fraction, own: Body) -> Body:
        """Return the steps of a group between a long step of the faster ones and their rollback."""
        faster = tuple(sim for group in self.groups[number + 1 :] for sim in group.sims)
        if not faster:
            return own
        return (Save(faster), *step_body(self.scenario, faster, part), *own, Restore(faster))

    def _driving_simulators(self, number: int) -> set[str]:
        """Return which simulators drive one of a group or of a faster one."""
        names = self.wiring.names
        listening = {sim for group in self.groups[number:] for sim in group.sims}
        return {
            names[drive.child]
            for name, drives in zip(names, self.wiring.drives, strict=True)
            for drive in drives
            if name in listening and drive is not None and drive.child >= 0
        }
