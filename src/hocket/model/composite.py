"""A co-simulation is a model: a scenario with a step and an orchestrator is coupled like any other.

In:  a Scenario, a step, an Orchestrator
Out: a Composite: frozen data; it is planned and opened elsewhere
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias

from hocket.errors import ScenarioError
from hocket.model.clock import Duration, format_duration, seconds
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities, Extrapolator, Simulator
from hocket.model.registry import OPENER, known_words, load, look_up
from hocket.model.scenario import Scenario

StartMode: TypeAlias = Literal["window", "cold"]


class Orchestrator(Protocol):
    """Writes the plan of a level: pure, starts nothing."""

    def plan(self, scenario: Scenario) -> Any:
        """Return the Plan (hocket.plan) of one step of the level."""


@dataclass(frozen=True, init=False)
class Composite:
    """A level: a scenario, its step, its orchestrator and its extrapolation.

    `start="window"` gives the extrapolators a past at the start, where every simulator can roll back, so that
    the order is kept; "cold" begins with what is there. A `sampled` level sees its inputs as they are when
    its step begins, and shows its outputs from its end on, whatever the order around it.
    """

    scenario: Scenario
    step: Fraction
    orchestrator: Orchestrator
    extrapolation: Extrapolator
    start: StartMode
    sampled: bool

    def __init__(
        self,
        scenario: Scenario,
        step: Duration,
        orchestrator: Orchestrator | str = "jacobi",
        extrapolation: Extrapolator | str = "hold",
        start: StartMode = "window",
        sampled: bool = False,
    ):
        if not isinstance(scenario, Scenario):
            what = f"a composite is made of a Scenario, not of {scenario!r:.60}"
            raise ScenarioError(what, expected="Composite(Scenario({...}, {...}), step)")
        try:
            length = seconds(step)
        except ValueError as error:
            raise ScenarioError(str(error), where="step") from None
        if length <= 0:
            what = f"the step {format_duration(length)} is not positive"
            raise ScenarioError(what, where="step", expected="a step above zero")
        extrapolation = _resolve_word(extrapolation, "extrapolators", "extrapolation", "fit")
        orchestrator = _resolve_word(orchestrator, "orchestrators", "orchestrator", "plan")
        if start not in ("window", "cold"):
            raise ScenarioError(f"`start` cannot be {start!r}", "start", '"window" or "cold"')
        for name, value in (
            ("scenario", _resolve_extrapolations(scenario)),
            ("step", length),
            ("orchestrator", orchestrator),
            ("extrapolation", extrapolation),
            ("start", start),
            ("sampled", sampled),
        ):
            object.__setattr__(self, name, value)

    def with_scenario(self, scenario: Scenario) -> Composite:
        """Return the same level around another scenario."""
        return self.with_changes(scenario=scenario)

    def with_changes(self, **parts: Any) -> Composite:
        """Return the same level with other parts."""
        return Composite(**{part.name: getattr(self, part.name) for part in fields(Composite)} | parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Composite, tuple(getattr(self, part.name) for part in fields(Composite))

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs of the scenario."""
        return self.scenario.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs of the scenario; `hocket.coupling.feedthrough` finds their direct feedthrough."""
        return self.scenario.outputs

    @property
    def abilities(self) -> Capabilities:
        """What all the simulators inside can do."""
        children = [model.abilities for model in self.scenario.models.values()]
        orders = [ability.order for ability in children if ability.order is not None]
        return Capabilities(
            rewind=all(ability.rewind for ability in children),
            variable_step=bool(getattr(self.orchestrator, "adaptive", False)),
            slopes=all(ability.slopes for ability in children),
            order=min(orders, default=None),
        )

    def open(self) -> Simulator:
        """Make a live level with a clock of its own: the engine does it."""
        simulator: Simulator = load(OPENER)(self)
        return simulator


def as_level(model: object) -> Composite | None:
    """Return a model that is a level as such, and None for any other."""
    return model if isinstance(model, Composite) else None


def _resolve_word(given: Any, kind: str, key: str, method: str) -> Any:
    """Return what a word stands for, or the thing itself."""
    if isinstance(given, str):
        return look_up(kind, given)
    if isinstance(given, type) or not hasattr(given, method):
        words = ", ".join(f'"{word}"' for word in known_words(kind))
        raise ScenarioError(f"`{given!r:.60}` is no {key}", key, f"an object such as `Jacobi()`, or {words}")
    return given


def _resolve_extrapolations(scenario: Scenario) -> Scenario:
    """Return the scenario with what the words on its connections stand for; unknown ones stay."""
    known = known_words("extrapolators")
    made = tuple(
        replace(each, extrapolation=look_up("extrapolators", each.extrapolation))
        if isinstance(each.extrapolation, str) and each.extrapolation in known
        else each
        for each in scenario.connections
    )
    return scenario if made == scenario.connections else scenario.with_changes(connections=made)
