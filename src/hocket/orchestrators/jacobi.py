"""Jacobi: all step at once, with inputs extrapolated from the past.

In:  a Scenario
Out: a Plan: feed all; step all together; read all
"""

from __future__ import annotations

from dataclasses import dataclass

from hocket.coupling.wiring import wire
from hocket.model.composite import OrchestratorTraits
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import ExplicitOrchestrator, step_body
from hocket.plan import Plan


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
        return self._plan_around(scenario, wiring, step_body(scenario, wiring.names))
