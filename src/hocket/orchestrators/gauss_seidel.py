"""Gauss-Seidel: one after the other; what comes later interpolates what is already known.

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
from hocket.model.arguments import is_one_of
from hocket.model.composite import InputsMode, OrchestratorTraits, OutputsMode
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import ExplicitOrchestrator, step_body
from hocket.plan import Plan

Order: TypeAlias = Literal["auto"] | tuple[str | tuple[str, ...], ...]


@dataclass(frozen=True, init=False)
class GaussSeidel(ExplicitOrchestrator):
    """The sequential algorithm. A group inside the order, as in `["a", ["b", "c"]]`, steps together."""

    order: Annotated[Order, "which steps when", 'a list of models: ["a", ["b", "c"]], or "auto"'] = "auto"

    def __init__(
        self,
        order: Literal["auto"] | Sequence[str | Sequence[str]] = "auto",
        *,
        outputs: OutputsMode = "consistent",
        inputs: InputsMode = "clean",
    ):
        if not is_one_of(order, ("auto",)) and not _is_order(order):
            expected = '"auto", or a list of names and groups'
            raise ScenarioError(f"`{order!s:.60}` is not an order", "order", expected)
        groups = tuple(group if isinstance(group, str) else tuple(group) for group in order)
        object.__setattr__(self, "order", "auto" if isinstance(order, str) else groups)
        super().__init__(outputs=outputs, inputs=inputs)

    @property
    def traits(self) -> OrchestratorTraits:
        """One after the other."""
        words = "sequential, order found" if self.order == "auto" else "sequential, order given"
        return self._describe("sequential", words, order=self.order)

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        wiring = wire(scenario)
        groups = best_order(wiring) if self.order == "auto" else self._order_groups(scenario)
        steps = (instruction for group in groups for instruction in step_body(scenario, group))
        return self._plan_around(scenario, wiring, tuple(steps))

    def _order_groups(self, scenario: Scenario) -> list[tuple[str, ...]]:
        groups = [(group,) if isinstance(group, str) else group for group in self.order]
        named = Counter(name for group in groups for name in group)
        models = scenario.models
        faults = [
            Fault(
                f"the order names `{name}`, which is not a model", "order", hint=suggest_nearest(name, models)
            )
            for name in named
            if name not in models
        ]
        wrong = (
            *("has an empty group" for group in groups if not group),
            *(f"names `{name}` twice" for name, count in sorted(named.items()) if count > 1),
            *(
                f"leaves out `{name}`"
                for name in models
                if name not in named and not models[name].capabilities.observes
            ),
        )
        faults += [Fault(f"the order {what}", "order") for what in wrong]
        if faults:
            raise ScenarioError(faults)
        return groups


def _is_order(given: object) -> bool:
    """Return whether something is a list of names, and of groups of names."""
    return (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and all(
            isinstance(each, str)
            or (isinstance(each, Sequence) and all(isinstance(name, str) for name in each))
            for each in given
        )
    )


def best_order(wiring: Wiring) -> list[tuple[str, ...]]:
    """Return the order with the fewest connections whose source steps after its target.

    Delayed connections that an output reacts to at once count double. Ties go by name, however the models
    are listed.
    """
    names = sorted(wiring.names)
    place = {name: number for number, name in enumerate(names)}
    weight: dict[tuple[int, int], int] = {}
    for child, drives in enumerate(wiring.drives):
        reacting = {name for port in wiring.models[child].outputs for name in port.feedthrough}
        for port, drive in zip(wiring.models[child].inputs, drives, strict=True):
            if drive is not None and drive.child not in (OWN, child):
                edge = (place[wiring.names[drive.child]], place[wiring.names[child]])
                weight[edge] = weight.get(edge, 0) + (2 if port.name in reacting else 1)
    order: list[int] = []
    for group in strong_components(len(names), weight):
        order += least_feedback_order(group, weight)
    return [(names[number],) for number in order]
