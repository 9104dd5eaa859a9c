"""Inputs that nothing provides but equations determine: an artificial simulator computes them.

In:  a level whose scenario has constraints, such as a massless link between two masses
Out: a level without: simulators that equations couple make their steps together with a Coupler, again and
     again until the equations hold
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from hocket.coupling.constraint_groups import ConstraintGroup, group_constraints, is_level_input
from hocket.coupling.level_ports import with_level_ports
from hocket.errors import Fault, ScenarioError, collect_faults, join_names, raise_faults
from hocket.model.arguments import free_name, is_number
from hocket.model.composite import algorithm_layers, as_level, is_sampled, levels, traits_of
from hocket.model.extrapolators import Hermite, Hold, Polynomial
from hocket.model.protocols import Extrapolator, Model, period_of
from hocket.model.scenario import Connection, Insertion, Scenario
from hocket.orchestrators import Iterate, Jacobi
from hocket.plan.accelerators import Accelerator
from hocket.planning.compiler.contract import SOLVER
from hocket.planning.compiler.coupler_design import CouplerDesign, derive_coupler, draft_coupler
from hocket.planning.compiler.sublevels import (
    add_to_host,
    allows_grouping,
    gather_models,
    sweep_orchestrator,
)
from hocket.simulators.constraint import GIVEN, Coupler

if TYPE_CHECKING:
    from hocket.model.composite import Composite


@dataclass(frozen=True)
class Modularity:
    """Constraints become Couplers, each in an iteration with the simulators it couples (Gomes 2016).

    The iteration goes on until the inputs that are found change by less than `tolerance` of their size.
    `gap` is what equations may be short of at the start, as a part of the values in them. With `tries=False`
    no simulator is opened: what comes out shows what is inserted, and cannot be run.
    """

    tolerance: float = 1e-8
    at_most: int = 50
    accelerate: Accelerator | str = "quasi-newton"
    gap: float = 1e-6
    tries: bool = True
    name: ClassVar[str] = "modularity"

    def __post_init__(self) -> None:
        if not (is_number(self.gap) and self.gap >= 0.0):
            raise ScenarioError(f"`gap` is {self.gap!r:.60}", "gap", "a part of the values, such as 1e-6")

    def reasons(self, level: Composite) -> list[str]:
        """Return which constraints there are, at all levels."""
        return [
            f"`{prefix}{name}` determines inputs that nothing drives: {'; '.join(constraint.equations)}"
            for prefix, each in levels(level)
            for name, constraint in each.scenario.constraints.items()
        ]

    def check_preconditions(self, level: Composite) -> list[Fault]:
        """Return why a constraint cannot be compiled; simulators are opened and tried."""
        return [
            fault.within(prefix) for prefix, each in levels(level) for fault in self._derive_couplers(each)[1]
        ]

    def apply(self, level: Composite) -> Composite:
        """Return the level without constraints; raises ScenarioError where that cannot be."""
        inner: dict[str, Composite] = {}
        faults: list[Fault] = []
        deep = [
            name
            for name, model in level.scenario.models.items()
            if (inner_level := as_level(model))
            and any(each.scenario.constraints for _, each in levels(inner_level))
        ]
        models: dict[str, Any] = _models_with_ports(level.scenario) if deep else {}
        for name in deep:
            with collect_faults(faults, name):
                inner[name] = self.apply(models[name])
        if inner:
            level = level.with_changes(scenario=level.scenario.with_models({**models, **inner}))
        done, wrong = self._derive_couplers(level)
        raise_faults([*faults, *wrong])
        for each in done:
            level = self._insert_coupler(level, each)
        return level

    def check_postconditions(self, level: Composite) -> list[Fault]:
        """Return inputs of Couplers without a source, and constraints that are still there."""
        faults = []
        for prefix, each in levels(level):
            scenario = each.scenario
            driven = {connection.target for connection in scenario.connections}
            for name in scenario.constraints:
                what = f"the constraint `{name}` was not compiled"
                faults.append(Fault(what, f"{prefix}constraints.{name}", "no constraints"))
            for name, model in scenario.models.items():
                if isinstance(model, Coupler):
                    open_ = [port.name for port in model.inputs if f"{name}.{port.name}" not in driven]
                    open_ += [port.name for port in model.determines if port.name not in driven]
                    faults += [Fault(f"nothing drives `{path}`", f"{prefix}{name}") for path in open_]
        return faults

    def _derive_couplers(self, level: Composite) -> tuple[list[CouplerDesign], list[Fault]]:
        """Return the Coupler of every coupling of one level, and all that is wrong."""
        scenario = level.scenario.with_models(_models_with_ports(level.scenario))
        found, faults = group_constraints(level.scenario)
        faults += [fault for each in found for fault in _coupling_faults(level, each)]
        if faults:
            return [], faults
        done: list[CouplerDesign] = []
        for coupling in found:
            with collect_faults(faults):
                derive = partial(derive_coupler, level=level, gap=self.gap) if self.tries else draft_coupler
                done.append(derive(scenario, coupling))
        return done, faults

    def _insert_coupler(self, level: Composite, done: CouplerDesign) -> Composite:
        """Return the level with a Coupler in it, or in a level of those that it couples."""
        scenario = level.scenario
        coupling, coupler = done.coupling, done.coupler
        name = free_name("_".join(coupling.constraints), scenario.models)
        scenario = scenario.with_changes(
            models={**scenario.models, **done.sloped},
            constraints={
                key: each for key, each in scenario.constraints.items() if key not in coupling.constraints
            },
        )
        added = _coupler_connections(scenario, coupler, name)
        reason = _coupler_reason(coupling, coupler, done.sloped)
        noted = {name: Insertion(self.name, reason)}
        noted |= {each.target: Insertion(self.name, _connection_reason(each, name)) for each in added}
        sloped: Mapping[str, Any] = done.sloped
        noted |= {
            each: Insertion(self.name, f"{model.emulation}: emulated, {model.price}")
            for each, model in sloped.items()
        }
        whole = scenario.with_changes(
            models={**scenario.models, name: coupler},
            connections=(*scenario.connections, *added),
            hosts=add_to_host(scenario.hosts, coupling.models[0], name),
            inserted={**scenario.inserted, **noted},
        )
        if coupling.once:
            chosen = sweep_orchestrator(level.orchestrator, scenario, name)
            why = f"steps `{name}` after the others, to correct what it determines for the next step"
            whole = whole.with_changes(inserted={**whole.inserted, SOLVER: Insertion(self.name, why)})
            return level.with_changes(scenario=whole, orchestrator=chosen)
        members = (*coupling.models, name)
        why = f"makes the steps of {join_names(coupling.models)} again until the equations of `{name}` hold"
        if set(members) == set(whole.models) or not allows_grouping(level.orchestrator):
            whole = whole.with_changes(inserted={**whole.inserted, SOLVER: Insertion(self.name, why)})
            chosen = self._iterate_around(level.orchestrator, scenario, name)
            return level.with_changes(scenario=whole, orchestrator=chosen)
        own = scenario.with_models({each: scenario.models[each] for each in coupling.models})
        inner = self._iterate_around(_plain_orchestrator(level.orchestrator), own, name)
        return gather_models(
            level, whole, members, free_name(f"{name}_level", whole.models), inner, Insertion(self.name, why)
        )

    def _iterate_around(self, orchestrator: Any, scenario: Scenario, last: str) -> Any:
        """Return the orchestrator that iterates, with the Coupler at the end of each sweep."""
        traits = traits_of(orchestrator)
        if traits.adaptive:
            return replace(orchestrator, inner=self._iterate_around(orchestrator.inner, scenario, last))
        if traits.settles:
            return replace(orchestrator, inner=sweep_orchestrator(orchestrator.inner, scenario, last))
        inner = traits.inner if traits.iterates else orchestrator
        return Iterate(
            sweep_orchestrator(inner, scenario, last), self.tolerance, self.at_most, self.accelerate
        )


def _plain_orchestrator(orchestrator: Any) -> Any:
    """Return the algorithm of a sweep: rates of simulators stay outside."""
    traits = traits_of(orchestrator)
    if traits.order is not None:
        return orchestrator
    return Jacobi(outputs=traits.outputs or "consistent", inputs=traits.inputs or "clean")


def _models_with_ports(scenario: Scenario) -> dict[str, Model]:
    """Return the models; levels have ports for all that connections and equations reach in them."""
    found, faults = group_constraints(scenario)
    name, paths = free_name("reached", scenario.models), [] if faults else found
    added = [Connection(path, f"{name}.{path}") for each in paths for path in each.reads]
    added += [Connection(f"{name}.{path}", path) for each in paths for path in each.determines]
    reached = with_level_ports(
        scenario.with_changes(connections=(*scenario.connections, *added), constraints={})
    )
    return dict(reached.models)


def _coupling_faults(level: Composite, coupling: ConstraintGroup) -> Iterator[Fault]:
    """Yield what keeps the simulators of a coupling from making their steps again together."""
    scenario = level.scenario
    for name in coupling.models:
        model: Any = scenario.models[name]
        if period_of(model) is not None or is_sampled(model):
            what = f"`{name}` is sampled: between its own steps it answers to nothing"
            yield Fault(what, coupling.where, "simulators that react within a step of the level")
        elif not model.capabilities.rollback and not coupling.once:
            yield Fault(
                f"steps are made again until the equations hold, and `{name}` cannot roll back",
                coupling.where,
                "simulators with save() and restore(), FMUs with canGetAndSetFMUstate",
                "`Replay(model)`, or replay = true in a file, where it is cheap enough",
            )
    traits = traits_of(level.orchestrator)
    if coupling.once and not traits.is_explicit:
        what = "inputs that are corrected once a step need an algorithm of one step"
        yield Fault(what, f"{coupling.where}.once", "jacobi or gauss-seidel")
    *_, innermost = algorithm_layers(level.orchestrator)
    rates = traits_of(innermost).rates
    if rates is not None:
        own = [name for name in coupling.models if name in dict(rates)]
        whole = set(coupling.models) == set(scenario.models) or not allows_grouping(level.orchestrator)
        if own or whole:
            what = f"{join_names(tuple(own) or coupling.models)} would step at rates of their own"
            hint = "a level of their own with a shorter step, constraint and all"
            yield Fault(what, coupling.where, "one step for all that equations couple", hint)
    if scenario.hosts is not None:
        lives = {
            host for host, names in scenario.hosts.models.items() for each in coupling.models if each in names
        }
        if len(lives) > 1:
            what = f"{join_names(coupling.models)} live on different hosts"
            yield Fault(what, coupling.where, "one host for all that equations couple")


def _coupler_connections(scenario: Scenario, coupler: Coupler, name: str) -> list[Connection]:
    moving = {
        path
        for equation, degree in zip(coupler.parsed_equations, coupler.degrees, strict=True)
        for path in equation.paths
        if degree == 2 and path not in coupler.rates
    }

    def choose_extrapolation(path: str) -> Extrapolator | None:
        if is_level_input(scenario, path):
            return None  # the curve that the level is given, up to the end of the step
        return Hermite(1) if path in moving else Polynomial(1) if path in coupler.middle else Hold()

    reads = [
        Connection(port.name, f"{name}.{port.name}", choose_extrapolation(port.name))
        for port in coupler.reads
    ]
    back = [
        Connection(f"{name}.{port.name}", target, Hold())
        for port in coupler.determines
        for target in (f"{name}.{GIVEN}{port.name}", port.name)
    ]
    return [*reads, *back]


def _connection_reason(connection: Connection, name: str) -> str:
    if connection.target.startswith(f"{name}.{GIVEN}"):
        return f"hands `{name}` back what it determined in the iteration before"
    if connection.target.startswith(f"{name}."):
        return f"`{connection.source}` stands in an equation of `{name}`, or is a rate of what does"
    return f"`{name}` determines this input"


def _coupler_reason(coupling: ConstraintGroup, coupler: Coupler, sloped: Mapping[str, Model]) -> str:
    held = "; ".join(f"`{text}`" for text in coupler.equations)
    story = [f"computes {join_names(coupling.determines)}, which nothing provides, so that {held}"]
    for number, (text, degree, mu) in enumerate(
        zip(coupler.equations, coupler.degrees, coupler.mu, strict=True)
    ):
        if degree == 2:
            law = f"g' + {mu:g} g = 0"
            if coupler.laws:
                named = zip(coupler.laws[number], ("g", "g'", "g''"), strict=True)
                law = f"{' + '.join(f'{weight:g} {what}' for weight, what in named if weight)} = 0"
            story.append(f"the inputs of `{text}` act on accelerations: {law} is asked for")
    for path, rate in coupler.rates.items():
        story.append(f"the time derivative of `{path}` is `{rate}`")
    for name in sloped:
        story.append(f"those of the outputs of `{name}` are emulated by differences")
    return "; ".join(story)
