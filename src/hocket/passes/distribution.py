"""Distribution: the models of a host become one level with a small step; others are stood in for.

In:  a level whose scenario says who runs where
Out: a level of hosts that exchange values only every step H, each with stand-ins for the others

The transformation of Gomes 2016, section 3.3. The values that arrive every H are extrapolated to the small
steps by the stand-ins; with `iterate` the hosts repeat their step until they agree (waveform iteration).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from hocket.clock import Duration, format_duration, seconds
from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.feedthrough import Feedthrough
from hocket.hosts import Hosts
from hocket.model import Extrapolator, Insertion, Model, Orchestrator, Scenario, as_level
from hocket.orchestrators import GaussSeidel, Iterate, Jacobi
from hocket.passes.splitting import (
    Split,
    crossing_connections,
    ends_in_stand_in,
    host_orchestrator,
    with_small_steps,
)
from hocket.passing import with_level_ports
from hocket.signals import EXTRAPOLATORS, Polynomial
from hocket.simulators.stand_in import StandIn
from hocket.wiring import wire_unchecked

if TYPE_CHECKING:
    from hocket.engine.composite import Composite

SMALL = 10
"""Small steps in a step, where none is given."""


@dataclass(frozen=True, init=False)
class Distribution:
    """Hosts exchange values every step of the level, and go on with `small_step` inside (left out: a tenth).

    `extrapolation` carries the values of the others through the step. `iterate` makes the step again: a whole
    number of sweeps, or a tolerance; then every simulator must be able to rewind.
    """

    small_step: Fraction | None
    extrapolation: Extrapolator
    iterate: int | float | None
    name: ClassVar[str] = "distribution"

    def __init__(
        self,
        small_step: Duration | None = None,
        extrapolation: Extrapolator | str = Polynomial(2),  # noqa: B008 - it is frozen
        iterate: int | float | None = None,
    ):
        try:
            small = None if small_step is None else seconds(small_step)
        except ValueError as error:
            raise ScenarioError(str(error), "small_step") from None
        if small is not None and small <= 0:
            raise ScenarioError(f"a small step of {small_step}", "small_step", "a step above zero")
        if isinstance(extrapolation, str):
            if extrapolation not in EXTRAPOLATORS:
                hint = suggest_nearest(extrapolation, EXTRAPOLATORS)
                raise ScenarioError(f"there is no extrapolation `{extrapolation}`", "extrapolation", "", hint)
            extrapolation = EXTRAPOLATORS[extrapolation]
        if iterate is not None and (isinstance(iterate, bool) or not iterate > 0):
            raise ScenarioError(f"`iterate` is {iterate!r}", "iterate", "a number of sweeps, or a tolerance")
        object.__setattr__(self, "small_step", small)
        object.__setattr__(self, "extrapolation", extrapolation)
        object.__setattr__(self, "iterate", iterate)

    def reasons(self, level: Composite) -> list[str]:
        """Return the connections that run from host to host without a stand-in at their end."""
        hosts = level.scenario.hosts
        if hosts is None:
            return []
        return [
            f"`{each.source}` on `{source}` drives `{each.target}` on `{target}`"
            for each, source, target in crossing_connections(level.scenario, hosts)
            if not ends_in_stand_in(level.scenario, each)
        ]

    def check_preconditions(self, level: Composite) -> list[Fault]:
        """Return what keeps the level from being distributed."""
        scenario, hosts = level.scenario, level.scenario.hosts
        if hosts is None:
            hint = 'hosts={"plant": ["left"], "lab": ["right"]}, or a table [hosts] in the file'
            return [Fault("nobody says which model runs on which host", "hosts", "hosts of the level", hint)]
        faults = hosts.faults(scenario.models)
        if faults:
            return faults
        return [
            *_step_faults(level, self.small(level)),
            *_algorithm_faults(level.orchestrator),
            *_extrapolation_faults(self.extrapolation),
            *_information_faults(scenario, hosts),
            *(_rewind_faults(scenario) if self.iterate is not None else ()),
        ]

    def small(self, level: Composite) -> Fraction:
        """Return the step inside the hosts of a level."""
        return level.step / SMALL if self.small_step is None else self.small_step

    def apply(self, level: Composite) -> Composite:
        """Return the level of hosts."""
        faults = self.check_preconditions(level)
        if faults:
            raise ScenarioError(faults)
        hosts = level.scenario.hosts
        assert hosts is not None
        split = Split(with_small_steps(level.scenario, level.step, self.small(level)), hosts)
        inside: dict[str, Model] = {
            host: level.with_changes(
                scenario=split.host_scenario(host),
                step=self.small(level),
                orchestrator=host_orchestrator(level.orchestrator, host, split),
                sampled=False,
            )
            for host in hosts.models
        }
        each = f"every {format_duration(level.step)}"
        why = f"{_join_hosts(list(hosts.models))} exchange values {each}"
        inserted = {
            host: Insertion(self.name, f"one level for what runs on `{host}`: {why}") for host in inside
        }
        sent = split.sent_connections()
        inserted |= {
            one.target: Insertion(self.name, f"the value of `{one.source}` is sent {each}") for one in sent
        }
        scenario = level.scenario.with_changes(
            models=inside,
            connections=(*sent, *split.level_connections()),
            record=split.record_patterns(),
            bonds=split.outer_bonds(),
            hosts=Hosts({host: [host] for host in hosts.models}, hosts.link, hosts.links),
            inserted=split.outer_insertions() | inserted,
        )
        return level.with_changes(
            scenario=scenario,
            orchestrator=self._outer_orchestrator(level.orchestrator),
            extrapolation=self.extrapolation,
        )

    def _outer_orchestrator(self, orchestrator: Any) -> Orchestrator:
        plain = orchestrator.inner if isinstance(orchestrator, Iterate) else orchestrator
        if isinstance(plain, GaussSeidel):
            plain = GaussSeidel(outputs=plain.outputs, inputs=plain.inputs)
        if self.iterate is None:
            return plain
        if isinstance(self.iterate, int):
            return Iterate(plain, None, self.iterate, "plain")
        return Iterate(plain, self.iterate, accelerate="plain")

    def check_postconditions(self, level: Composite) -> list[Fault]:
        """Return where values pass from host to host without a stand-in, or loops run across hosts."""
        scenario, hosts = level.scenario, level.scenario.hosts
        if hosts is None or hosts.faults(scenario.models):
            return []
        faults = [
            Fault(
                f"`{each.source}` on `{source}` drives `{each.target}` on `{target}` at every step",
                f"connections.{each.target}",
                "a stand-in at the end of what passes from host to host",
            )
            for each, source, target in crossing_connections(scenario, hosts)
            if not ends_in_stand_in(scenario, each)
        ]
        return [*faults, *_loop_faults(scenario, hosts)]


def _step_faults(level: Composite, small: Fraction) -> Iterator[Fault]:
    ratio = level.step / small
    if ratio.denominator != 1:
        whole = max(1, ratio.__floor__())
        near = " or ".join(format_duration(level.step / count) for count in (whole, whole + 1))
        what = f"the small step {format_duration(small)} does not divide the step {format_duration(level.step)} of the level"
        yield Fault(what, "small_step", "the step of the level divided by a whole number", near)
        return
    for name, model in level.scenario.models.items():
        own = getattr(model, "step", None)
        if isinstance(own, Fraction) and as_level(model) is None and (small / own).denominator != 1:
            what = f"the step {format_duration(own)} of `{name}` does not divide the small step {format_duration(small)}"
            yield Fault(what, f"models.{name}", "a small step of whole steps of its models")


def _algorithm_faults(orchestrator: Any) -> Iterator[Fault]:
    plain = orchestrator.inner if isinstance(orchestrator, Iterate) else orchestrator
    if not isinstance(plain, (Jacobi, GaussSeidel)):
        what = f"the steps of `{type(orchestrator).__name__}` are not all of one length"
        hint = "Jacobi or Gauss-Seidel here; step control comes after it, in the accuracy pass"
        yield Fault(what, "orchestrator", "values that are exchanged at every step of the level", hint)


def _extrapolation_faults(extrapolation: Any) -> Iterator[Fault]:
    if not hasattr(extrapolation, "fit"):
        yield Fault(
            f"`{extrapolation!r:.40}` is no extrapolation", "extrapolation", "such as `Polynomial(2)`"
        )
    elif extrapolation.slopes:
        what = f"`{extrapolation!r}` wants slopes, and hosts send values"
        yield Fault(what, "extrapolation", "an extrapolation of values", "`Polynomial(2)`")


def _information_faults(scenario: Scenario, hosts: Hosts) -> Iterator[Fault]:
    """Yield what cannot pass from host to host."""
    for host in hosts.models:
        try:
            Scenario({host: StandIn(["y"])})
        except ScenarioError as error:
            yield from (replace(fault, where=f"hosts.{host}") for fault in error.faults)
    for name in scenario.constraints:
        hint = "the modularity pass first: it makes assignments of them"
        yield Fault(f"`{name}` is an equation between ports", f"constraints.{name}", "assignments", hint)
    placed = hosts.host_by_model()
    wiring = wire_unchecked(with_level_ports(scenario))
    for text in wiring.texts:
        source, target = wiring.names[text.child], wiring.names[text.target]
        if placed[source] != placed[target]:
            what = f"a text of `{source}` on `{placed[source]}` goes to `{target}` on `{placed[target]}`"
            yield Fault(what, f"models.{target}", "numbers between hosts", "put both on one host")
    for name, bond in scenario.bonds.items():
        ends = {placed.get(path.partition(".")[0], "") for path in (bond.effort, bond.flow)}
        if len(ends) > 1 and bond.balance:
            what = f"the bond `{name}` is balanced, and its sides are on {_join_hosts(sorted(ends))}"
            hint = "put both on one host, or leave out `balance`"
            yield Fault(what, f"bonds.{name}", "both sides on one host: they agree at every step", hint)
    yield from _loop_faults(scenario, hosts)


def _loop_faults(scenario: Scenario, hosts: Hosts) -> Iterator[Fault]:
    placed = hosts.host_by_model()
    graph = Feedthrough(wire_unchecked(with_level_ports(scenario)), at_start=True)
    for loop in graph.loops:
        ends = {placed[graph.wiring.names[child]] for child, _ in loop}
        if len(ends) > 1:
            path = " -> ".join(graph.name(node) for node in loop)
            what = f"the algebraic loop {path} runs across {_join_hosts(sorted(ends))}"
            hint = "put these models on one host, where the loop is solved at every small step"
            yield Fault(what, "connections", "loops within one host", hint)


def _rewind_faults(scenario: Scenario) -> Iterator[Fault]:
    for name, model in scenario.models.items():
        if not model.abilities.rewind:
            what = f"the hosts make their steps again, and `{name}` cannot go back"
            hint = "`iterate=None`; `Replay(model)`, or replay = true in a file"
            yield Fault(what, f"models.{name}", "simulators with save() and restore()", hint)


def _join_hosts(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
