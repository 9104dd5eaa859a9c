"""Gauss-Seidel: one after the other; who comes later interpolates what is already known.

In:  a Scenario and an order, or the wish to find one
Out: a Plan: feed, step, read for each in turn
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from hocket.coupling.graph import least_feedback_order, strong_components
from hocket.coupling.wiring import OWN, Wiring, wire
from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model.composite import OrchestratorTraits
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import ExplicitOrchestrator, in_parallel
from hocket.plan import Feed, Instruction, Plan, Read, Step

Order: TypeAlias = Literal["auto"] | tuple[str | tuple[str, ...], ...]


@dataclass(frozen=True, init=False)
class GaussSeidel(ExplicitOrchestrator):
    """The sequential algorithm. A group inside the order, as in `["a", ["b", "c"]]`, steps together."""

    order: Annotated[Order, "who steps when", 'a list of models: ["a", ["b", "c"]], or "auto"'] = "auto"

    def __init__(
        self,
        order: Literal["auto"] | Sequence[str | Sequence[str]] = "auto",
        *,
        outputs: Literal["stale", "consistent"] = "consistent",
        inputs: Literal["clean", "delayed"] = "clean",
    ):
        listed = isinstance(order, Sequence) and all(isinstance(group, Sequence) for group in order)
        if order != "auto" and (isinstance(order, str) or not listed):
            expected = '"auto", or a list of names and groups'
            raise ScenarioError(f"`{order!s:.60}` is no order", "order", expected)
        groups = (
            order if isinstance(order, str) else tuple(g if isinstance(g, str) else tuple(g) for g in order)
        )
        object.__setattr__(self, "order", groups)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "inputs", inputs)
        self.__post_init__()

    @property
    def traits(self) -> OrchestratorTraits:
        """One after the other."""
        words = "sequential, order found" if self.order == "auto" else "sequential, order given"
        return self._describe("sequential", words, order=self.order)

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        wiring = wire(scenario)
        groups = best_order(wiring) if self.order == "auto" else self._order_groups(scenario)
        steps: list[Instruction] = []
        for group in groups:
            fed = [name for name in group if scenario.models[name].inputs]
            read = [name for name in group if scenario.models[name].outputs]
            steps += [in_parallel(Feed(name) for name in fed)] if fed else []
            steps.append(in_parallel(Step(name) for name in group))
            steps += [in_parallel(Read(name) for name in read)] if read else []
        return self._plan_around(scenario, wiring, tuple(steps))

    def _order_groups(self, scenario: Scenario) -> list[tuple[str, ...]]:
        groups = [(group,) if isinstance(group, str) else group for group in self.order]
        named = [name for group in groups for name in group]
        faults = [
            Fault(
                f"the order names `{name}`, which is no model",
                "order",
                "",
                suggest_nearest(name, scenario.models),
            )
            for name in named
            if name not in scenario.models
        ]
        faults += [Fault("the order has an empty group", "order") for group in groups if not group]
        faults += [
            Fault(f"the order names `{n}` twice", "order")
            for n, count in sorted(Counter(named).items())
            if count > 1
        ]
        known = set(named)
        faults += [Fault(f"the order leaves out `{n}`", "order") for n in scenario.models if n not in known]
        if faults:
            raise ScenarioError(faults)
        return groups


def best_order(wiring: Wiring) -> list[tuple[str, ...]]:
    """Return the order with the fewest connections whose source steps after its target.

    Delayed connections that an output reacts to at once count double. Ties keep the order of the scenario.
    """
    weight: dict[tuple[int, int], int] = {}
    for child, drives in enumerate(wiring.drives):
        reacting = {name for port in wiring.models[child].outputs for name in port.feedthrough}
        for port, drive in zip(wiring.models[child].inputs, drives, strict=True):
            if drive is not None and drive.child not in (OWN, child):
                edge = (drive.child, child)
                weight[edge] = weight.get(edge, 0) + (2 if port.name in reacting else 1)
    order: list[int] = []
    for group in strong_components(len(wiring.names), weight):
        order += least_feedback_order(group, weight)
    return [(wiring.names[child],) for child in order]
