"""Predictor and corrector: every step is made twice, and in between what is exchanged is corrected by Newton.

In:  a Scenario and the algorithm of one pass
Out: a Plan: save; repeat twice: restore, and what the algorithm does; record

The first pass predicts, with extrapolated inputs. The sensitivities of what it finds to what it was given say
which values at the end of the step agree with themselves; the second pass is made with these (Schweizer & Lu
2014; theory, section 7.4). One rollback a step, and the stability of an iteration to convergence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from hocket.errors import Fault, ScenarioError
from hocket.model.arguments import set_fields
from hocket.model.composite import CapabilityRequest, Orchestrator, OrchestratorTraits
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import WrappingOrchestrator
from hocket.orchestrators.iterate import Iterate
from hocket.orchestrators.jacobi import Jacobi
from hocket.plan import Plan
from hocket.plan.accelerators import Newton


@dataclass(frozen=True)
class PredictorCorrector(WrappingOrchestrator):
    """The steps of `inner` made twice: predicted, and corrected by interface sensitivities.

    Without a `jacobian` the sensitivities are differences: in the first step, and where they serve no longer,
    the step is made once more for each number handed back. With one (`hocket.interface_jacobian`: from linear
    models, directional derivatives of FMUs among them) it is made exactly twice, always.
    """

    inner: Annotated[Orchestrator, "the algorithm of one pass"] = Jacobi()  # noqa: RUF009 - it is frozen
    jacobian: Annotated[
        Sequence[Sequence[float]] | None, "derivatives of what a pass finds by what it is given, if known"
    ] = None
    falls: Annotated[float, "the fall of the residual that keeps differences"] = 0.1

    def __post_init__(self) -> None:
        faults: list[Fault] = []
        for make in (lambda: Newton(self.falls, self.jacobian), lambda: Iterate(self.inner)):
            try:
                made = make()
            except ScenarioError as error:
                faults += error.faults
            else:
                if isinstance(made, Newton):
                    set_fields(self, jacobian=made.jacobian)
        if faults:
            raise ScenarioError(faults)

    @property
    def _repeated(self) -> Iterate:
        return Iterate(self.inner, None, 2, Newton(self.falls, self.jacobian))

    @property
    def traits(self) -> OrchestratorTraits:
        """The steps of the one inside, twice."""
        return self._describe(", predicted and corrected", iterates=True, settles=False)

    def needs(self, scenario: Scenario) -> Iterator[CapabilityRequest]:
        """Yield rollback of all."""
        yield from self._repeated.needs(scenario)

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        return self._repeated.plan(scenario)
