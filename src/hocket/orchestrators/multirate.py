"""Multirate: within one level some step more often than others.

In:  a Scenario, how often each simulator steps, and who goes first
Out: a Plan: steps of the slow ones, and within each of them several of the fast ones

Slowest first and fastest first: Gear and Wells 1984; the compound step: Verhoeven et al. 2006 (Hafner 2021,
sections 2.4, 3.5 and 5.8.2). More than two rates nest, as in Striebel 2006.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args

from hocket.coupling.wiring import Wiring, wire
from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model.composite import CapabilityRequest, OrchestratorTraits, as_level
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import ExplicitOrchestrator, in_parallel
from hocket.plan import Body, Feed, Instruction, Plan, Read, Restore, Save, Step, Times

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
            yield Fault(f"there is a rate for `{name}`, which is no model", "rates", "", hint)
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


def quote_names(sims: list[str]) -> str:
    """Return names for a message."""
    more = f" and {len(sims) - 6} more" if len(sims) > 6 else ""
    return ", ".join(f"`{sim}`" for sim in sims[:6]) + more


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
    one long step, the slow ones step with that, then the fast ones go back and make their short steps; they
    must be able to roll back. Each rate is a multiple of the slower ones. Equal rates step together.

    Outputs that only slower ones listen to are read when these step, the others after each step.
    """

    rates: GivenRates = ()
    scheme: Annotated[Scheme, "who first"] = "slowest-first"

    def __init__(
        self,
        rates: Mapping[str, int],
        scheme: Scheme = "slowest-first",
        *,
        outputs: Literal["stale", "consistent"] = "consistent",
        inputs: Literal["clean", "delayed"] = "clean",
    ):
        known = get_args(Scheme)
        if scheme not in known:
            words = ", ".join(f'"{word}"' for word in known)
            hint = suggest_nearest(scheme, known) if isinstance(scheme, str) else ""
            raise ScenarioError(f"`scheme` cannot be {scheme!r:.60}", "scheme", f"one of {words}", hint)
        object.__setattr__(self, "rates", check_rates(rates))
        object.__setattr__(self, "scheme", scheme)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "inputs", inputs)
        self.__post_init__()

    @property
    def traits(self) -> OrchestratorTraits:
        """Steps of several lengths on one grid."""
        return self._describe("multirate", f"sequential, {_FIRST[self.scheme]}", rates=self.rates)

    def needs(self, scenario: Scenario) -> Iterator[CapabilityRequest]:
        """Yield short steps of the fast ones, and rollback where they predict."""
        yield from rate_needs(scenario, self.rates)
        rates = {name: dict(self.rates).get(name, 1) for name in scenario.models}
        again = tuple(
            name for name, rate in self.rates if rate > max(1, min(rates.values())) and name in rates
        )
        if self.scheme == "compound" and any(rate > 1 for rate in rates.values()):
            why = "the fast ones predict with one long step, and go back"
            yield CapabilityRequest("rollback", again, why)

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        wiring = wire(scenario)
        groups = group_by_rate(scenario, self.rates, nested=True)
        if self.scheme == "compound":
            _check_compound_rollback(scenario, groups)
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
            *self._step_body(group.sims, part),
            *self._read_body(sim for sim in group.sims if sim in heard),
        )
        faster = self.body(number + 1, group.rate)
        once: Body = {
            "slowest-first": (*own, *faster),
            "fastest-first": (*faster, *own),
            "compound": (*self._compound_body(number, part, own), *faster),
        }[self.scheme]
        late = self._read_body(sim for sim in group.sims if sim not in heard)
        return (*((Times(times, once),) if times > 1 else once), *late)

    def _compound_body(self, number: int, part: Fraction, own: Body) -> Body:
        """Return the steps of a group between a long step of the faster ones and their way back."""
        faster = tuple(sim for group in self.groups[number + 1 :] for sim in group.sims)
        if not faster:
            return own
        ahead = (*self._step_body(faster, part), *self._read_body(faster))
        return (Save(faster), *ahead, *own, Restore(faster))

    def _step_body(self, sims: tuple[str, ...], part: Fraction) -> Body:
        fed = [sim for sim in sims if self.scenario.models[sim].inputs]
        steps: list[Instruction] = [in_parallel(Feed(sim) for sim in fed)] if fed else []
        return (*steps, in_parallel(Step(sim, part) for sim in sims))

    def _read_body(self, sims: Iterable[str]) -> Body:
        read = [sim for sim in sims if self.scenario.models[sim].outputs]
        return (in_parallel(Read(sim) for sim in read),) if read else ()

    def _driving_simulators(self, number: int) -> set[str]:
        """Return who drives a simulator of a group or of a faster one."""
        names = self.wiring.names
        listening = {sim for group in self.groups[number:] for sim in group.sims}
        return {
            names[drive.child]
            for name, drives in zip(names, self.wiring.drives, strict=True)
            for drive in drives
            if name in listening and drive is not None and drive.child >= 0
        }


def _check_compound_rollback(scenario: Scenario, groups: list[RateGroup]) -> None:
    fast = [sim for group in groups[1:] for sim in group.sims]
    stuck = [sim for sim in fast if not scenario.models[sim].capabilities.rollback]
    if stuck:
        raise ScenarioError(
            f"a compound step is made again by the fast ones, and {quote_names(stuck)} cannot go back",
            where="orchestrator",
            expected="fast simulators with save() and restore(), FMUs with canGetAndSetFMUstate",
            hint='scheme "slowest-first", which goes back nowhere; `Replay`, replay = true in a file',
        )
