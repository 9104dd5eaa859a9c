"""Distribution: the models of a host become one level with a small step; others are stood in for.

In:  a level whose scenario says which model runs on which host
Out: a level of hosts that exchange values only every step H, each with stand-ins for the others

The transformation of Gomes 2016, section 3.3. The values that arrive every H are extrapolated to the small
steps by the stand-ins; with `iterate` the hosts repeat their step until they agree (waveform iteration).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from hocket.coupling.feedthrough import feedthrough_graph
from hocket.coupling.level_ports import port_at, with_level_ports
from hocket.coupling.wiring import wire_unchecked
from hocket.errors import Fault, Place, ScenarioError, join_names, raise_faults
from hocket.model import registry
from hocket.model.arguments import free_name, set_fields
from hocket.model.bonds import Bond
from hocket.model.clock import Duration, format_duration
from hocket.model.composite import Orchestrator, algorithm_layers, as_level, traits_of
from hocket.model.extrapolators import Polynomial
from hocket.model.hosts import Hosts
from hocket.model.ports import Port
from hocket.model.protocols import Extrapolator, Model, is_extrapolator, step_of
from hocket.model.scenario import Connection, Insertion, Scenario
from hocket.orchestrators import Iterate
from hocket.planning.compiler.contract import SOLVER
from hocket.planning.compiler.sublevels import redirect_record, restrict_order
from hocket.simulators.recipes import positive_duration
from hocket.simulators.state_space import SENT, StandIn

if TYPE_CHECKING:
    from hocket.model.composite import Composite


def crossing_connections(scenario: Scenario, hosts: Hosts) -> Iterator[tuple[Connection, str, str]]:
    """Yield the connections that run from host to host, with both hosts."""
    placed = hosts.host_by_model()
    for each in scenario.connections:
        source, target = (placed.get(path.partition(".")[0]) for path in (each.source, each.target))
        if source is not None and target is not None and source != target:
            yield each, source, target


def with_small_steps(scenario: Scenario, step: Fraction, small: Fraction) -> Scenario:
    """Return the scenario with the small step in those levels that passes made with its own step."""
    made: dict[str, Any] = {
        name: level for name in scenario.inserted if (level := as_level(scenario.models.get(name)))
    }
    short = {
        name: level.with_changes(scenario=with_small_steps(level.scenario, step, small), step=small)
        for name, level in made.items()
        if level.step == step
    }
    return scenario.with_models({**scenario.models, **short}) if short else scenario


def _direct_crossings(scenario: Scenario, hosts: Hosts) -> Iterator[tuple[str, str]]:
    """Yield what runs from host to host without a stand-in at its end, in words and by its target."""
    for each, source, target in crossing_connections(scenario, hosts):
        owner, _, rest = each.target.partition(".")
        level = as_level(scenario.models.get(owner))
        if level is None or not isinstance(level.scenario.models.get(rest.partition(".")[0]), StandIn):
            yield f"`{each.source}` on `{source}` drives `{each.target}` on `{target}`", each.target


@dataclass
class Split:
    """A scenario cut along its hosts."""

    scenario: Scenario
    hosts: Hosts
    placed: Mapping[str, str] = field(init=False)
    stand_ins: dict[str, dict[str, str]] = field(init=False)
    """Per host: the stand-in of each simulator elsewhere that is listened to."""

    def __post_init__(self) -> None:
        self.placed = self.hosts.host_by_model()
        self.stand_ins = {host: {} for host in self.hosts.models}
        for each, _, host in crossing_connections(self.scenario, self.hosts):
            owner = each.source.partition(".")[0]
            name = free_name(f"{owner}_at_{host}", self.hosts.models[host])
            self.stand_ins[host].setdefault(owner, name)

    def host(self, path: str) -> str | None:
        """Return the host of a port; None: it is one of the level itself."""
        own = self.scenario.input_names | self.scenario.output_names
        return None if path in own else self.placed[path.partition(".")[0]]

    def outputs_heard(self, host: str) -> dict[str, dict[str, Port]]:
        """Return, per simulator elsewhere, the outputs that are listened to on a host."""
        found: dict[str, dict[str, Port]] = {owner: {} for owner in self.stand_ins[host]}
        for each, _, target in crossing_connections(self.scenario, self.hosts):
            if target == host:
                owner, _, name = each.source.partition(".")
                seen = port_at(self.scenario, each.source, True)
                if seen is None:
                    raise ScenarioError(f"there is no output `{each.source}`", "connections")
                found[owner][name] = Port(name, seen.unit, type=seen.type, held=seen.held)
        return found

    def host_scenario(self, host: str) -> Scenario:
        """Return what runs on a host: its models, and the stand-ins.

        What the stand-ins show is an output of the host too: so it is evaluated again when a message comes,
        and the first small step after it begins with the new values.
        """
        models = {name: self.scenario.models[name] for name in self.hosts.models[host]}
        connections: list[Connection] = []
        inserted = {
            name: why
            for name, why in self.scenario.inserted.items()
            if name == SOLVER or self.placed.get(name.partition(".")[0]) == host
        }
        outputs: list[Port] = []
        for owner, shown in self.outputs_heard(host).items():
            name = self.stand_ins[host][owner]
            models[name] = StandIn(shown.values(), owner)
            there = f"`{owner}` runs on `{self.placed[owner]}`: its values arrive and are extrapolated here"
            inserted[name] = Insertion("distribution", there)
            for port in shown.values():
                outputs.append(Port(f"{name}.{port.name}", port.unit))
                connections.append(Connection(f"{name}.{port.name}", f"{name}.{port.name}"))
        for each in self.scenario.connections:
            source, target = self.host(each.source), self.host(each.target)
            if target != host or source is None:
                continue
            if source != host:
                owner, _, output = each.source.partition(".")
                each = replace(each, source=f"{self.stand_ins[host][owner]}.{output}")
                inserted[each.target] = Insertion("distribution", f"`{owner}` is stood in for")
            connections.append(each)
        return Scenario(models, connections, outputs=outputs, bonds=self._bonds(host), inserted=inserted)

    def sent_values(self) -> dict[str, Connection]:
        """Return what is sent between hosts, by the input that it drives: to a stand-in there."""
        found: dict[str, Connection] = {}
        for each, source, target in crossing_connections(self.scenario, self.hosts):
            owner, _, port = each.source.partition(".")
            path = f"{target}.{self.stand_ins[target][owner]}.{port}{SENT}"
            found[each.target] = Connection(f"{source}.{each.source}", path)
        return found

    def level_connections(self) -> Iterator[Connection]:
        """Yield the connections from and to the ports of the level itself."""
        for each in self.scenario.connections:
            source, target = self.host(each.source), self.host(each.target)
            if source is None:
                yield replace(each, target=f"{target}.{each.target}")
            elif target is None:
                yield replace(each, source=f"{source}.{each.source}")

    def outer_insertions(self) -> dict[str, Insertion]:
        """Return why there is what is left outside the hosts: connections from and to the level itself."""
        why, found = self.scenario.inserted, {}
        for each in self.scenario.connections:
            target = self.host(each.target)
            if each.target in why and (target is None or self.host(each.source) is None):
                found[each.target if target is None else f"{target}.{each.target}"] = why[each.target]
        return found

    def _bonds(self, host: str) -> dict[str, Bond]:
        return {
            name: bond
            for name, bond in self.scenario.bonds.items()
            if {self.placed.get(path.partition(".")[0]) for path in (bond.effort, bond.flow)} == {host}
        }

    def outer_bonds(self) -> dict[str, Bond]:
        """Return the bonds between hosts, kept where their values are sent."""
        sent = self.sent_values()
        return {
            name: replace(bond, effort=sent[bond.effort].target, flow=sent[bond.flow].target)
            for name, bond in self.scenario.bonds.items()
            if bond.effort in sent and bond.flow in sent
        }

    def record_patterns(self) -> tuple[str, ...]:
        """Return what is to be recorded, under the new paths."""
        bonds = {name: host for host in self.hosts.models for name in self._bonds(host)}
        return redirect_record(self.scenario.record, {**self.placed, **bonds})


def host_orchestrator(orchestrator: Any, host: str, split: Split) -> Orchestrator:
    """Return the algorithm of the level for one host; an order keeps the models that are there."""
    traits = traits_of(orchestrator)
    if traits.iterates:
        inner = host_orchestrator(orchestrator.inner, host, split)
        return replace(orchestrator, inner=inner)  # type: ignore[no-any-return]
    if traits.order is None or traits.order == "auto":
        return orchestrator  # type: ignore[no-any-return]
    first = tuple(split.stand_ins[host].values())
    kept = restrict_order(traits.order, split.hosts.models[host])
    return replace(orchestrator, order=(first, *kept) if first else kept)  # type: ignore[no-any-return]


SMALL = 10
"""Small steps in a step, where none is given."""


@dataclass(frozen=True)
class Distribution:
    """Hosts exchange values every step of the level, and go on with `small_step` inside (left out: a tenth).

    `extrapolation` carries the values of the others through the step. `iterate` makes the step again: a whole
    number of iterations, or a tolerance; then every simulator must be able to roll back.
    """

    small_step: Duration | None = None
    extrapolation: Extrapolator | str = Polynomial(2)  # noqa: RUF009 - it is frozen
    iterate: int | float | None = None
    name: ClassVar[str] = "distribution"

    def __post_init__(self) -> None:
        small, iterate = self.small_step, self.iterate
        if iterate is not None and (isinstance(iterate, bool) or not iterate > 0):
            raise ScenarioError(
                f"`iterate` is {iterate!r}", "iterate", "a number of iterations, or a tolerance"
            )
        set_fields(self, small_step=None if small is None else positive_duration(small, "small_step"))
        if isinstance(self.extrapolation, str):
            set_fields(self, extrapolation=registry.look_up("extrapolators", self.extrapolation))

    def reasons(self, level: Composite) -> list[str]:
        """Return the connections that run from host to host without a stand-in at their end."""
        hosts = level.scenario.hosts
        if hosts is None:
            return []
        return [what for what, _ in _direct_crossings(level.scenario, hosts)]

    def check_preconditions(self, level: Composite) -> list[Fault]:
        """Return what keeps the level from being distributed."""
        scenario, hosts = level.scenario, level.scenario.hosts
        if hosts is None:
            hint = 'hosts={"plant": ["left"], "lab": ["right"]}, or a table [hosts] in the file'
            return [Fault("nothing says which model runs on which host", "hosts", "hosts of the level", hint)]
        faults = hosts.faults(scenario.models)
        if faults:
            return faults
        return [
            *_step_faults(level, self.small(level)),
            *_algorithm_faults(level.orchestrator),
            *_extrapolation_faults(self.extrapolation),
            *_information_faults(scenario, hosts),
            *(_rollback_faults(scenario) if self.iterate is not None else ()),
        ]

    def small(self, level: Composite) -> Fraction:
        """Return the step inside the hosts of a level."""
        return level.step / SMALL if self.small_step is None else Fraction(self.small_step)

    def apply(self, level: Composite) -> Composite:
        """Return the level of hosts."""
        raise_faults(self.check_preconditions(level))
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
        why = f"{join_names(list(hosts.models))} exchange values {each}"
        inserted = {
            host: Insertion(self.name, f"one level for what runs on `{host}`: {why}") for host in inside
        }
        sent = {one.target: one for one in split.sent_values().values()}.values()
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
        plain: Any
        *_, plain = algorithm_layers(orchestrator)
        if traits_of(plain).order is not None:
            plain = replace(plain, order="auto")
        if self.iterate is None:
            return plain  # type: ignore[no-any-return]
        if isinstance(self.iterate, int):
            return Iterate(plain, None, self.iterate, "plain")
        return Iterate(plain, self.iterate, accelerate="plain")

    def check_postconditions(self, level: Composite) -> list[Fault]:
        """Return where values pass from host to host without a stand-in, or loops run across hosts."""
        scenario, hosts = level.scenario, level.scenario.hosts
        if hosts is None or hosts.faults(scenario.models):
            return []
        expected = "a stand-in at the end of what passes from host to host"
        faults = [
            Fault(f"{what} at every step", f"connections.{target}", expected)
            for what, target in _direct_crossings(scenario, hosts)
        ]
        return [*faults, *_loop_faults(scenario, hosts)]


def _step_faults(level: Composite, small: Fraction) -> Iterator[Fault]:
    ratio = level.step / small
    if ratio.denominator != 1:
        whole = max(1, ratio.__floor__())
        near = " or ".join(format_duration(level.step / count) for count in (whole, whole + 1))
        around = format_duration(level.step)
        what = f"the small step {format_duration(small)} does not divide the step {around} of the level"
        yield Fault(what, "small_step", "the step of the level divided by a whole number", near)
        return
    for name, model in level.scenario.models.items():
        own = step_of(model)
        if own is not None and as_level(model) is None and (small / own).denominator != 1:
            steps = format_duration(own), format_duration(small)
            what = f"the step {steps[0]} of `{name}` does not divide the small step {steps[1]}"
            yield Fault(what, f"models.{name}", "a small step of whole steps of its models")


def _algorithm_faults(orchestrator: Any) -> Iterator[Fault]:
    traits = traits_of(orchestrator)
    plain = traits_of(traits.inner) if traits.iterates else traits
    if not plain.is_explicit:
        what = f"the steps of `{type(orchestrator).__name__}` are not all of one length"
        hint = "Jacobi or Gauss-Seidel here; step control comes after it, in the accuracy pass"
        yield Fault(what, "orchestrator", "values that are exchanged at every step of the level", hint)


def _extrapolation_faults(extrapolation: Any) -> Iterator[Fault]:
    if not is_extrapolator(extrapolation):
        yield Fault(
            f"`{extrapolation!r:.40}` is not an extrapolation", "extrapolation", "such as `Polynomial(2)`"
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
            yield from (replace(fault, place=Place.of(f"hosts.{host}")) for fault in error.faults)
    for name in scenario.constraints:
        hint = "the modularity pass first: it makes assignments of them"
        yield Fault(f"`{name}` is an equation between ports", f"constraints.{name}", "assignments", hint)
    for name in scenario.crossings:
        what = f"`{name}` ends steps at an event, and hosts agree on their steps before they make them"
        hint = "put what is watched and what reacts into a level on one host, with the crossing in it"
        yield Fault(what, f"crossings.{name}", "no crossings between hosts", hint)
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
            what = f"the bond `{name}` is balanced, and its sides are on {join_names(sorted(ends))}"
            hint = "put both on one host, or leave out `balance`"
            yield Fault(what, f"bonds.{name}", "both sides on one host: they agree at every step", hint)
    yield from _loop_faults(scenario, hosts)


def _loop_faults(scenario: Scenario, hosts: Hosts) -> Iterator[Fault]:
    placed = hosts.host_by_model()
    graph = feedthrough_graph(with_level_ports(scenario), at_start=True)
    for loop in graph.loops:
        ends = {placed[graph.wiring.names[child]] for child, _ in loop}
        if len(ends) > 1:
            path = " -> ".join(graph.name(node) for node in loop)
            what = f"the algebraic loop {path} runs across {join_names(sorted(ends))}"
            hint = "put these models on one host, where the loop is solved at every small step"
            yield Fault(what, "connections", "loops within one host", hint)


def _rollback_faults(scenario: Scenario) -> Iterator[Fault]:
    for name, model in scenario.models.items():
        if not model.capabilities.rollback:
            what = f"the hosts make their steps again, and `{name}` cannot roll back"
            hint = "`iterate=None`; `Replay(model)`, or replay = true in a file"
            yield Fault(what, f"models.{name}", "simulators with save() and restore()", hint)
