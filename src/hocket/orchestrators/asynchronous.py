"""Asynchronous: no common steps; the simulator that is furthest behind goes next.

In:  a Scenario, how often each simulator steps
Out: a Plan: turns, taken by the one that is furthest behind (Liang et al. 2011; Hafner 2021, fig. 2.14)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from hocket.coupling.wiring import wire
from hocket.model.composite import CapabilityRequest, InputsMode, OrchestratorTraits, OutputsMode
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import ExplicitOrchestrator, step_body
from hocket.orchestrators.gauss_seidel import best_order
from hocket.orchestrators.multirate import GivenRates, check_rates, group_by_rate, rate_needs
from hocket.plan import Body, Next, Plan, Times


@dataclass(frozen=True, init=False)
class Asynchronous(ExplicitOrchestrator):
    """Turns: `Asynchronous({"fast": 7, "slow": 2})`, in steps per step of the level; any whole numbers.

    Values are exchanged after every turn. Where several stand at the same time the slowest goes first, so
    that the faster ones, which follow, interpolate; among those of equal rate the order is that of
    `GaussSeidel()`. All meet at the end of the level's step.
    """

    rates: GivenRates = ()

    def __init__(
        self,
        rates: Mapping[str, int],
        *,
        outputs: OutputsMode = "consistent",
        inputs: InputsMode = "clean",
    ):
        object.__setattr__(self, "rates", check_rates(rates))
        super().__init__(outputs=outputs, inputs=inputs)

    @property
    def traits(self) -> OrchestratorTraits:
        """No common step."""
        return self._describe("asynchronous", "sequential, the furthest behind first", rates=self.rates)

    def needs(self, scenario: Scenario) -> Iterator[CapabilityRequest]:
        """Yield short steps of the fast ones."""
        return rate_needs(scenario, self.rates)

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        groups, wiring = group_by_rate(scenario, self.rates, nested=False), wire(scenario)
        order = [sim for group in best_order(wiring) for sim in group]
        turns = tuple(
            step_body(scenario, [sim], Fraction(1, group.rate))
            for group in groups
            for sim in sorted(group.sims, key=order.index)
        )
        steps: Body = (Next(turns),)
        if len(groups) == 1:  # all equally often: one after the other
            once = tuple(instruction for turn in turns for instruction in turn)
            steps = once if groups[0].rate == 1 else (Times(groups[0].rate, once),)
        return self._plan_around(scenario, wiring, steps)
