"""Jacobi: everyone steps at once, with inputs extrapolated from the past.

In:  a Scenario
Out: a Plan: feed all; step all together; read all
"""

from __future__ import annotations

from dataclasses import dataclass

from hocket.coupling.wiring import wire
from hocket.model.composite import OrchestratorTraits
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import ExplicitOrchestrator, in_parallel
from hocket.plan import Feed, Plan, Read, Step


@dataclass(frozen=True, kw_only=True)
class Jacobi(ExplicitOrchestrator):
    """The parallel algorithm."""

    @property
    def traits(self) -> OrchestratorTraits:
        """All at once."""
        return self._describe("parallel", "parallel")

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        wiring = wire(scenario)
        names = wiring.names
        fed = [name for name, model in scenario.models.items() if model.inputs]
        read = [name for name, model in scenario.models.items() if model.outputs]
        steps = (
            *((in_parallel(Feed(name) for name in fed),) if fed else ()),
            in_parallel(Step(name) for name in names),
            *((in_parallel(Read(name) for name in read),) if read else ()),
        )
        return self._plan_around(scenario, wiring, steps)
