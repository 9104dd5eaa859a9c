"""A co-simulation is a model: a scenario with a step and an orchestrator is coupled like any other.

In:  a Scenario, a step, an Orchestrator
Out: a Composite: frozen data; it is planned and opened elsewhere
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeGuard, get_args, runtime_checkable

from hocket.errors import ScenarioError, raise_faults
from hocket.model import registry
from hocket.model.arguments import choice_faults, expect, expect_flags, is_one_of, is_whole, set_fields
from hocket.model.clock import Duration, format_duration, seconds
from hocket.model.memo import Remembering
from hocket.model.ports import Port
from hocket.model.protocols import (
    Capabilities,
    Extrapolator,
    Model,
    Simulator,
    is_extrapolator,
    period_of,
    text_ports,
)
from hocket.model.scenario import Scenario

StartMode: TypeAlias = Literal["window", "cold"]
OutputsMode: TypeAlias = Literal["stale", "consistent"]
InputsMode: TypeAlias = Literal["clean", "delayed"]
OnZeno: TypeAlias = Literal["stop", "continue"]
AT_MOST = 1000
"""Instants that may follow each other at one time, if a level says nothing else."""


@runtime_checkable
class Orchestrator(Protocol):
    """Writes the plan of a level: pure, starts nothing."""

    def plan(self, scenario: Scenario) -> Any:
        """Return the Plan (hocket.plan) of one step of the level."""


def is_orchestrator(given: object) -> TypeGuard[Orchestrator]:
    """Return whether an object, not a class, writes plans."""
    return not isinstance(given, type) and isinstance(given, Orchestrator)


Schedule: TypeAlias = Literal["parallel", "sequential", "multirate", "asynchronous"]


@dataclass(frozen=True)
class OrchestratorTraits:
    """What an algorithm says of itself beside its plan; searches and passes decide by it, not by classes."""

    schedule: Schedule | None = None
    """How simulators take turns in a step; None: only its plan says, or the algorithm inside."""
    words: str = ""
    """The same as the literature calls it."""
    order: Literal["auto"] | tuple[str | tuple[str, ...], ...] | None = None
    """Of a sequential one; with an argument `order` of the same form."""
    rates: tuple[tuple[str, int], ...] | None = None
    """Of one with steps of different lengths: steps of a simulator per step of the level; others make one."""
    inner: Orchestrator | None = None
    """The algorithm that is made use of, with an argument `inner`."""
    iterates: bool = False
    """Whether steps are made again until what is exchanged agrees, or so many times."""
    settles: bool = False
    """Whether it iterates until what is exchanged agrees."""
    predicts: bool = False
    """Whether some simulators make their steps twice, the first time with inputs that are predicted."""
    adaptive: bool = False
    """Whether steps are of any length up to that of the level."""
    first: Fraction = Fraction(1)
    """The part of the level's step that a run begins with."""
    outputs: OutputsMode | None = None
    """Whether outputs are evaluated again after the exchange; None: only its plan says."""
    inputs: InputsMode | None = None
    """When a new input from outside begins to act; None: only its plan says."""

    @property
    def is_delayed(self) -> bool:
        """Whether it says that outputs are stale, or that inputs from outside act a step late."""
        return self.outputs == "stale" or self.inputs == "delayed"

    @property
    def is_explicit(self) -> bool:
        """Whether all step once in a step of the level, together or in turn, and nothing is made again."""
        return self.schedule in ("parallel", "sequential")


@runtime_checkable
class DescribedOrchestrator(Protocol):
    """An orchestrator that describes itself; of others nothing is assumed."""

    @property
    def traits(self) -> OrchestratorTraits:
        """What it says of itself."""


def traits_of(orchestrator: object) -> OrchestratorTraits:
    """Return what an algorithm says of itself."""
    return orchestrator.traits if isinstance(orchestrator, DescribedOrchestrator) else OrchestratorTraits()


def algorithm_layers(orchestrator: Any) -> Iterator[Any]:
    """Yield an algorithm, the one inside it, and so on: the last is that of one step."""
    while orchestrator is not None:
        yield orchestrator
        orchestrator = traits_of(orchestrator).inner


class CapabilityRequest(NamedTuple):
    """What an algorithm asks of simulators of its level: a capability, of which, why, what is lost."""

    capability: str
    sims: tuple[str, ...]
    why: str
    loses: str = ""
    """Empty: it cannot be done without."""
    part: Fraction = Fraction(1)
    divides: bool = False
    """Whether any multiple of the part may be asked for."""


@runtime_checkable
class DemandingOrchestrator(Protocol):
    """An orchestrator that says what it needs, before anything is planned."""

    def needs(self, scenario: Scenario) -> Iterable[CapabilityRequest]:
        """Yield what it asks of the simulators of a level."""


@dataclass(frozen=True, init=False, repr=False)
class Composite(Remembering):
    """A level: a scenario, its step, its orchestrator and its extrapolation.

    `start="window"` gives the extrapolators a past at the start, where every simulator can roll back, so that
    the order is kept; "cold" begins with what is there. A `sampled` level sees its inputs as they are when
    its step begins, and shows its outputs from its end on, whatever the order around it. A level that
    `inherits_step` has none of its own: inside another it has the step of that one, whichever it is given.

    `on_zeno`: where the events of a simulator pile up before some time, or chatter, the run ends with an
    error ("stop"), or goes on with events of it that are at least 1/256 of the step apart ("continue").
    `at_most_instants` may follow each other at one time.
    """

    scenario: Scenario
    step: Fraction
    orchestrator: Orchestrator
    extrapolation: Extrapolator
    start: StartMode
    sampled: bool
    inherits_step: bool
    on_zeno: OnZeno
    at_most_instants: int

    def __init__(
        self,
        scenario: Scenario,
        step: Duration,
        orchestrator: Orchestrator | str = "jacobi",
        extrapolation: Extrapolator | str = "hold",
        start: StartMode = "window",
        sampled: bool = False,
        inherits_step: bool = False,
        on_zeno: OnZeno = "stop",
        at_most_instants: int = AT_MOST,
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
        extrapolation = _resolve_word(extrapolation, "extrapolators", "extrapolation", is_extrapolator)
        orchestrator = _resolve_word(orchestrator, "orchestrators", "orchestrator", is_orchestrator)
        expect_flags(sampled=sampled)
        if not is_one_of(start, ("window", "cold")):
            raise ScenarioError(f"`start` cannot be {start!r}", "start", '"window" or "cold"')
        raise_faults(choice_faults("on_zeno", on_zeno, get_args(OnZeno)))
        fits = is_whole(at_most_instants, 1) and at_most_instants < 2**31
        expect(fits, "at_most_instants", at_most_instants, "a whole number from 1 to 2^31 - 1")
        set_fields(
            self,
            scenario=_hand_step_down(_resolve_extrapolations(scenario), length),
            step=length,
            orchestrator=orchestrator,
            extrapolation=extrapolation,
            start=start,
            sampled=sampled,
            inherits_step=inherits_step,
            on_zeno=on_zeno,
            at_most_instants=at_most_instants,
        )

    def with_scenario(self, scenario: Scenario) -> Composite:
        """Return the same level around another scenario."""
        return self.with_changes(scenario=scenario)

    def with_changes(self, **parts: Any) -> Composite:
        """Return the same level with other parts; a step that is given is its own from then on."""
        parts = {"inherits_step": False, **parts} if "step" in parts else parts
        return Composite(**{part.name: getattr(self, part.name) for part in fields(Composite)} | parts)

    def __repr__(self) -> str:
        how = f"{format_duration(self.step)}, {self.orchestrator!r:.80}, {self.extrapolation!r:.80}"
        return f"<Composite: {how}; {self.scenario!r}>"

    def _repr_html_(self) -> str:
        from hocket.model.html import html_view  # here: notebooks only

        return html_view("Composite", {}, self.html_parts())

    def html_parts(self) -> str:
        """Return what notebooks show of it and of the levels inside it, as HTML."""
        from hocket.model.html import html_details, html_view

        facts = {
            "macro step": format_duration(self.step),
            "orchestrator": repr(self.orchestrator),
            "extrapolation": repr(self.extrapolation),
        }
        inside = {name: as_level(model) for name, model in self.scenario.models.items()}
        levels = (html_details(name, level.html_parts()) for name, level in inside.items() if level)
        return html_view("", facts, self.scenario.html_parts(), *levels)

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
    def has_terminals(self) -> bool:
        """Whether a model inside has terminals."""
        return self.scenario.has_terminals

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The strings and binaries inside, by their paths: inputs that nothing drives in it, and outputs."""
        driven = {connection.target for connection in self.scenario.connections}
        ports = {name: text_ports(model) for name, model in self.scenario.models.items()}
        inputs = [f"{name}.{port}" for name, (texts, _) in ports.items() for port in texts]
        outputs = [f"{name}.{port}" for name, (_, texts) in ports.items() for port in texts]
        return tuple(path for path in inputs if path not in driven), tuple(outputs)

    @property
    def capabilities(self) -> Capabilities:
        """What all the simulators inside can do."""
        children = [model.capabilities for model in self.scenario.models.values()]
        orders = [capability.order for capability in children if capability.order is not None]
        return Capabilities(
            rollback=all(capability.rollback for capability in children),
            variable_step=traits_of(self.orchestrator).adaptive,
            slopes=all(capability.all_slopes for capability in children),
            order=min(orders, default=None),
            events=any(capability.events for capability in children),
        )

    def open(self) -> Simulator:
        """Make a live level with a clock of its own: the engine does it."""
        simulator: Simulator = registry.load_place(registry.OPENER)(self)
        return simulator


def as_level(model: object) -> Composite | None:
    """Return a model that is a level as such, and None for any other."""
    return model if isinstance(model, Composite) else None


def is_sampled(model: object) -> bool:
    """Return whether a model is a sampled level."""
    return isinstance(model, Composite) and model.sampled


def accepts_any_step(model: Model) -> bool:
    """Return whether a simulator accepts steps of any length, or waits through them as a sampled one does.

    Levels do if all inside do, and if their steps may end at events.
    """
    level = as_level(model)
    if level is None:
        return model.capabilities.variable_step or period_of(model) is not None
    return level.sampled or all(map(accepts_any_step, level.scenario.models.values()))


def levels(level: Composite, prefix: str = "", sampled: bool = True) -> Iterator[tuple[str, Composite]]:
    """Yield a level and those inside, each with its path and a dot; without what is `sampled`, if asked."""
    yield prefix, level
    for name, model in level.scenario.models.items():
        inner = as_level(model)
        if inner and (sampled or not inner.sampled):
            yield from levels(inner, f"{prefix}{name}.", sampled)


def _hand_step_down(scenario: Scenario, step: Fraction) -> Scenario:
    """Return the scenario with the step in those of its levels that have none of their own."""
    changed: dict[str, Any] = {
        name: model.with_changes(step=step, inherits_step=True)
        for name, model in scenario.models.items()
        if isinstance(model, Composite) and model.inherits_step and model.step != step
    }
    return scenario.with_models({**scenario.models, **changed}) if changed else scenario


def _resolve_word(given: Any, kind: registry.Kind, key: str, is_one: Callable[[object], bool]) -> Any:
    """Return what a word stands for, or the thing itself."""
    if isinstance(given, str):
        return registry.look_up(kind, given)
    if not is_one(given):
        words = ", ".join(f'"{word}"' for word in registry.names(kind))
        raise ScenarioError(
            f"`{given!r:.60}` is not an {key}", key, f"an object such as `Jacobi()`, or {words}"
        )
    return given


def _resolve_extrapolations(scenario: Scenario) -> Scenario:
    """Return the scenario with what the words on its connections stand for; unknown ones stay."""
    made = tuple(
        replace(each, extrapolation=registry.look_up("extrapolators", each.extrapolation))
        if isinstance(each.extrapolation, str) and registry.is_known("extrapolators", each.extrapolation)
        else each
        for each in scenario.connections
    )
    return scenario if made == scenario.connections else scenario.with_changes(connections=made)
