"""Waveform iteration: windows of many steps, made again until the curves that are exchanged agree.

In:  a Scenario whose models take and show curves (`with_curves` makes it)
Out: a Plan: save; repeat: restore, all make their window; record

Each simulator integrates a whole window under the curves of the others from the iteration before
(Lelarasmee et al. 1982; theory, section 7.5). What it ends at is the coupling in the steps between samples,
iterated to convergence, whatever the window is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from hocket.errors import Fault, ScenarioError
from hocket.model.arguments import is_whole, set_fields
from hocket.model.composite import CapabilityRequest, Orchestrator, OrchestratorTraits, traits_of
from hocket.model.scenario import Connection, Scenario
from hocket.orchestrators.explicit import WrappingOrchestrator
from hocket.orchestrators.iterate import Iterate
from hocket.orchestrators.jacobi import Jacobi
from hocket.plan import Plan
from hocket.plan.accelerators import Accelerator, QuasiNewton


@dataclass(frozen=True)
class Waveform(WrappingOrchestrator):
    """The step of the level is a window; in it each simulator makes `samples` steps and hands on its curves.

    Between samples inputs are polynomials of `degree`. `inner` is the algorithm of one iteration, with stale
    outputs: they are curves of the window. `tolerance`, `at_most` and `accelerate` are those of `Iterate`.
    """

    samples: Annotated[int, "steps of each simulator in a window, and samples of its curves"] = 100
    degree: Annotated[int, "of the polynomials between samples, 0 to 8"] = 3
    inner: Annotated[Orchestrator, "the algorithm of one iteration"] = Jacobi(outputs="stale")  # noqa: RUF009
    tolerance: Annotated[float | None, 'the relative change that ends it; "none": at_most iterations'] = 1e-9
    at_most: Annotated[int, "iterations in a window, at most"] = 100
    accelerate: Annotated[
        Accelerator | str | None, 'how iterations are accelerated; "plain": they are not'
    ] = QuasiNewton()  # noqa: RUF009 - it is frozen

    def __post_init__(self) -> None:
        faults: list[Fault] = []
        if not is_whole(self.samples, 1):
            faults.append(Fault(f"`samples` is {self.samples!r}", "samples", "a whole number from 1 on"))
        if not is_whole(self.degree) or self.degree > 8:
            faults.append(Fault(f"`degree` is {self.degree!r}", "degree", "0 to 8"))
        try:
            made = Iterate(self.inner, self.tolerance, self.at_most, self.accelerate)
            set_fields(self, tolerance=made.tolerance, accelerate=made.accelerate)
        except ScenarioError as error:
            faults += error.faults
        else:
            traits = traits_of(self.inner)
            if not traits.is_explicit or traits.outputs != "stale":
                what = "an iteration of windows is one of stale outputs: they are curves of the window"
                faults.append(Fault(what, "inner", 'Jacobi(outputs="stale") or GaussSeidel(outputs="stale")'))
        if faults:
            raise ScenarioError(faults)

    @property
    def _repeated(self) -> Iterate:
        return Iterate(self.inner, self.tolerance, self.at_most, self.accelerate)

    @property
    def traits(self) -> OrchestratorTraits:
        """The windows, again."""
        settles = self.tolerance is not None
        return self._describe(", windows iterated", iterates=True, settles=settles)

    def needs(self, scenario: Scenario) -> Iterator[CapabilityRequest]:
        """Yield rollback of all."""
        yield from self._repeated.needs(scenario)

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one window; raises ScenarioError where models have no curves."""
        values = [each.target for each in scenario.connections if joins_models(scenario, each)]
        if any("@" not in target for target in values):
            what = "windows are iterated as the algorithm of a level itself"
            raise ScenarioError(what, "orchestrator", "`Waveform` in no other algorithm")
        return self._repeated.plan(scenario)


def joins_models(scenario: Scenario, connection: Connection) -> bool:
    """Return whether a connection leads from one model of a level to another one."""
    ends = (connection.source, connection.target)
    return all("." in path and path.partition(".")[0] in scenario.models for path in ends)
