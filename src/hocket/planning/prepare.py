"""A co-simulation is a simulator: a scenario with a step and an orchestrator is a model like any other.

In:  a Scenario, a step, an Orchestrator
Out: a Model whose simulators are levels
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

from hocket import orchestrators
from hocket.coupling.feedthrough import Feedthrough
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import scenario_faults, wire_unchecked
from hocket.engine.opening import open_level
from hocket.engine.reference.level import Level
from hocket.errors import ScenarioError, suggest_nearest
from hocket.model import extrapolators as signals
from hocket.model.clock import Duration, format_duration, seconds
from hocket.model.extrapolators import Hold
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities, Extrapolator, Model
from hocket.model.scenario import Connection, Orchestrator, Scenario
from hocket.plan import Plan
from hocket.planning.compiler.contract import levels
from hocket.planning.compiler.modularity import Modularity
from hocket.planning.power_balance_pass import balance_bonds
from hocket.planning.tree import PlanTree, clock_of, make_blueprint

StartMode: TypeAlias = Literal["window", "cold"]


@dataclass(frozen=True, init=False)
class Composite:
    """A level: a scenario, its step, its orchestrator and its extrapolation.

    `start="window"` gives the extrapolators a past at the start, where every simulator can rewind, so that
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
            raise ScenarioError(
                f"the step {format_duration(length)} is not positive",
                where="step",
                expected="a step above zero",
            )
        extrapolation = _resolve_word(extrapolation, signals.EXTRAPOLATORS, "extrapolation", "fit")
        orchestrator = _resolve_word(orchestrator, orchestrators.ORCHESTRATORS, "orchestrator", "plan")
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

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs of the scenario; they react to whatever reaches them through consistent levels."""
        wiring = wire_unchecked(self.scenario)
        reacts = (getattr(self.orchestrator, "outputs", ""), getattr(self.orchestrator, "inputs", ""))
        if "stale" in reacts or "delayed" in reacts:
            return self.scenario.outputs
        if len(wiring.outputs) != len(self.scenario.outputs):
            return self.scenario.outputs
        return tuple(
            replace(port, feedthrough=tuple(self.inputs[number].name for number in reach))
            for port, reach in zip(self.scenario.outputs, Feedthrough(wiring).inputs_by_output(), strict=True)
        )

    @cached_property
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

    def plan(self) -> Plan:
        """Return what will be done: the plan of this level with the plans of the levels inside."""
        return self.blueprint.plan

    @cached_property
    def blueprint(self) -> PlanTree:
        """Everything that follows from the scenario, at all levels; raises ScenarioError with every fault."""
        return make_blueprint(prepare_composite(self))

    def open(self) -> Level:
        """Make a live level with a clock of its own, for inputs of any degree up to 8."""
        design = self.blueprint
        return open_level(design, clock_of(design), 8 if self.inputs else 0, sloped=self.abilities.slopes)


def _resolve_word(given: Any, known: Mapping[str, Any], key: str, method: str) -> Any:
    """Return what a word stands for, or the thing itself."""
    if isinstance(given, str):
        if given not in known:
            raise ScenarioError(f"there is no {key} `{given}`", key, hint=suggest_nearest(given, known))
        return known[given]
    if isinstance(given, type) or not hasattr(given, method):
        words = ", ".join(f'"{word}"' for word in known)
        raise ScenarioError(f"`{given!r:.60}` is no {key}", key, f"an object such as `Jacobi()`, or {words}")
    return given


def _resolve_extrapolations(scenario: Scenario) -> Scenario:
    """Return the scenario with what the words on its connections stand for; the unknown stay, to be told."""
    known: Mapping[Any, Any] = signals.EXTRAPOLATORS
    made = tuple(
        replace(each, extrapolation=known.get(each.extrapolation, each.extrapolation))
        if isinstance(each.extrapolation, str)
        else each
        for each in scenario.connections
    )
    return scenario if made == scenario.connections else scenario.with_changes(connections=made)


def draft_blueprint(composite: Composite) -> PlanTree:
    """Return everything that is known before a model is opened; raises ScenarioError with every fault."""
    compiled = any(each.scenario.constraints for _, each in levels(composite))
    return make_blueprint(prepare_composite(composite, tries=False)) if compiled else composite.blueprint


def prepare_composite(composite: Composite, tries: bool = True) -> Composite:
    """Return the composite as it will run: without constraints, bonds are balanced, ports are made.

    Sampled models become levels. Raises ScenarioError with all faults at once. Without `tries` no simulator
    is opened to see how constraints react to their inputs; that cannot be run.
    """
    composite = without_constraints(composite, tries)
    scenario = with_level_ports(_with_sampled_levels(balance_bonds(composite)))
    faults = scenario_faults(scenario)
    if faults:
        raise ScenarioError(faults)
    return composite.with_scenario(scenario)


def without_constraints(composite: Composite, tries: bool = True) -> Composite:
    """Return the composite with simulators that solve its constraints in their place; see `prepare_composite`."""
    needed = Modularity(tries=tries)
    if not needed.reasons(composite):
        return composite
    kept: dict[Any, Composite] = composite.__dict__.setdefault("_compiled", {})
    if tries not in kept:
        kept[tries] = _eliminate_constraints(composite, needed)
    return kept[tries]


def _eliminate_constraints(composite: Composite, needed: Modularity) -> Composite:
    try:
        return needed.apply(composite)
    except ScenarioError as error:
        others = scenario_faults(with_level_ports(composite.scenario))
        connected = [fault for fault in others if "connections." in fault.where]
        raise ScenarioError([*connected, *error.faults]) from None


def _with_sampled_levels(scenario: Scenario) -> Scenario:
    changed: dict[str, Model] = {}
    for name, model in scenario.models.items():
        if isinstance(model, Composite):
            changed[name] = model.with_scenario(_with_sampled_levels(model.scenario))
        elif getattr(model, "period", None) is not None:
            changed[name] = as_sampled_level(model)
    return scenario.with_models({**scenario.models, **changed}) if changed else scenario


def as_sampled_level(model: Any) -> Composite:
    """Return a model with a period as a level of one child: inputs are sampled and held, outputs too."""
    taken = [Connection(port.name, f"sampled.{port.name}", Hold()) for port in model.inputs]
    given = [Connection(f"sampled.{port.name}", port.name) for port in model.outputs]
    outputs = [Port(port.name, port.unit, type=port.type) for port in model.outputs]
    inner = Scenario({"sampled": model.without_period()}, [*taken, *given], model.inputs, outputs, record=[])
    return Composite(inner, model.period, sampled=True)
