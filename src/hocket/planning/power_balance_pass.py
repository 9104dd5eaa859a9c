"""Bonds that are balanced: their simulators become ones that keep the agreed power.

In:  a Composite whose bonds say `balance`
Out: its scenario with the models wrapped, and connections for what they must know of each other
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from hocket.coupling.level_ports import port_at, with_level_ports
from hocket.coupling.power_accounts import WiredBond
from hocket.coupling.wiring import scenario_faults, wire
from hocket.errors import Fault, Place, ScenarioError, collect_faults, raise_faults
from hocket.model.bonds import AgreedPower, Bond
from hocket.model.composite import Composite, algorithm_layers, as_level, traits_of
from hocket.model.extrapolators import Latch
from hocket.model.protocols import Extrapolator, Model
from hocket.model.scenario import Connection, Scenario
from hocket.model.units import conversion
from hocket.simulators.wrappers.balanced import Agreed, Balanced, BondSide, PartnerBond


def balance_bonds(composite: Composite) -> Scenario:
    """Return the scenario of a level and those inside as it will run; other faults are left to `wire`."""
    return _balance_level(composite, with_level_ports(composite.scenario))


def _balance_level(composite: Composite, whole: Scenario) -> Scenario:
    """Return a scenario with its bonds balanced; `whole` is the same with the ports that paths need."""
    scenario, ported = composite.scenario, dict[str, Any](whole.models)
    faults: list[Fault] = []
    inner: dict[str, Model] = {}
    for name, model in scenario.models.items():
        if isinstance(model, Composite):
            with collect_faults(faults, name):
                inner[name] = model.with_scenario(_balance_level(model, ported[name].scenario))
    raise_faults(faults)
    scenario = scenario.with_models({**scenario.models, **inner}) if inner else scenario
    bonds = {name: bond for name, bond in scenario.bonds.items() if bond.balance is not None}
    if not bonds or scenario_faults(whole):
        return scenario
    joints = {joint.name: joint for joint in wire(whole).bonds}
    return _BondBalancer(composite.with_scenario(scenario)).balance(bonds, joints)


class _BalancedEnd(NamedTuple):
    """A side of a bond that is balanced by energy: the simulators at both ends, and the connections."""

    bond: str
    owner: str
    partner: str
    side: BondSide
    out: Connection
    back: Connection


@dataclass
class _BondBalancer:
    """What is gathered on the way: the sides of each simulator, and the connections between them."""

    level: Composite
    sides: dict[str, list[BondSide]] = field(default_factory=dict)
    forms: dict[str, str] = field(default_factory=dict)
    powers: dict[str, AgreedPower] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Per simulator: the first of its bonds."""
    faults: list[Fault] = field(default_factory=list)
    made: dict[str, Connection] = field(default_factory=dict)
    ends: dict[str, list[_BalancedEnd]] = field(default_factory=dict)
    """Per simulator: its sides that are balanced by energy."""

    @cached_property
    def driver(self) -> dict[str, Connection]:
        """What drives each input."""
        return {connection.target: connection for connection in self.level.scenario.connections}

    def balance(self, bonds: Mapping[str, Bond], joints: Mapping[str, WiredBond]) -> Scenario:
        """Return the scenario with all bonds in it."""
        raise_faults(
            fault for name, bond in bonds.items() for fault in self._add_bond(name, bond, joints[name])
        )
        for path, ends in self.ends.items():
            self.sides[path] = [
                replace(end.side, beyond=self._link_neighbours(end), settles=True) for end in ends
            ]
            for end in ends:
                booked, work = f"{end.back.target}_booked", f"{end.out.target}_work"
                self._link(booked, work, Latch(), f"bonds.{end.bond}")
        models = self._wrap_models(self.level.scenario.models, "")
        raise_faults(self.faults)
        return self.level.scenario.with_changes(
            models=models, connections=(*self.level.scenario.connections, *self.made.values())
        )

    def _add_bond(self, name: str, bond: Bond, joint: WiredBond) -> Iterator[Fault]:
        where = f"bonds.{name}"
        effort, flow = self.driver[bond.effort], self.driver[bond.flow]
        watts = conversion(bond.unit, "W")[0]
        ends = [
            (self._find_leaf(effort.source), self._find_leaf(bond.flow), -watts * joint.given.factor, effort),
            (self._find_leaf(flow.source), self._find_leaf(bond.effort), watts * joint.taken.factor, flow),
        ]
        if any(each is None for output, entry, *_ in ends for each in (output, entry)):
            expected = "paths of the simulators themselves, such as `axle.spring.speed`"
            yield Fault("a balanced bond goes through the port of a level", where, expected)
            return
        *_, innermost = algorithm_layers(self.level.orchestrator)
        if traits_of(innermost).schedule != "parallel":
            what = f"the sides of a balanced bond do not step together, by {type(innermost).__name__}"
            hint = 'orchestrator "jacobi", alone, in `Iterate` or in `Adaptive`; or no `balance`'
            yield Fault(what, where, "Jacobi: both agree on the power of a step before it", hint)
            return
        yield from self._step_faults(bond, where, [output[0] for output, *_ in ends if output])
        for (output, entry, sign, connection), other in zip(ends, ends[::-1], strict=True):
            assert output is not None
            assert entry is not None
            extrapolation = connection.extrapolation or self.level.extrapolation
            if extrapolation.degree == 0:
                what = f"`{connection.target}` is held: power that is held freezes the motion"
                yield Fault(what, where, 'extrapolation "linear", or "hermite" where there are slopes')
                return
            if extrapolation.slopes and traits_of(innermost).outputs == "stale":
                what = f"`{connection.target}` follows slopes that are read before what was exchanged"
                yield Fault(what, where, 'Jacobi(outputs="consistent"), or extrapolation "linear"')
                return
            yield from self._add_side(name, bond, output, entry, sign)
            self._link(f"{connection.source}_told", connection.source, extrapolation, where)
            if bond.balance == "energy":
                partner = other[0]
                assert partner is not None
                target = bond.flow if connection is effort else bond.effort
                self._link(f"{target}_share", f"{partner[0]}.share", Latch(), where)
                side, back = self.sides[output[0]][-1], flow if connection is effort else effort
                end = _BalancedEnd(name, output[0], partner[0], side, connection, back)
                self.ends.setdefault(output[0], []).append(end)

    def _add_side(
        self, name: str, bond: Bond, output: tuple[str, str], entry: tuple[str, str], sign: float
    ) -> Iterator[Fault]:
        path = output[0]
        self.names.setdefault(path, name)
        if self.forms.setdefault(path, str(bond.balance)) != bond.balance:
            what = f"`{path}` is in bonds balanced by inversion and by energy"
            yield Fault(what, f"bonds.{name}", "one `balance` per simulator")
        if self.powers.setdefault(path, bond.power) != bond.power:
            what = f"`{path}` is in bonds that agree on the product and on the mean"
            yield Fault(what, f"bonds.{name}", "one `power` per simulator")
        self.sides.setdefault(path, []).append(BondSide(output[1], entry[1], sign, eps=bond.eps))

    def _link_neighbours(self, end: _BalancedEnd) -> tuple[PartnerBond, ...]:
        """Return the other bonds of the partner, and connect what tells of them."""
        others = [each for each in self.ends[end.partner] if each.bond != end.bond]
        found = []
        for number, other in enumerate(others):
            units = [self._port_unit(other.out.source, True), self._port_unit(other.back.target, False)]
            name, count = f"{end.side.input}_beyond_{number}", len(self.ends[other.partner])
            found.append(PartnerBond(name, other.side.sign, (units[0], units[1]), count))
            output, entry, share = (f"{end.owner}.{port.name}" for port in found[-1].ports)
            where = f"bonds.{end.bond}"
            self._link(output, other.out.source, other.out.extrapolation or self.level.extrapolation, where)
            back = replace(other.back, extrapolation=other.back.extrapolation or self.level.extrapolation)
            self._add_connection(replace(back, target=entry), where)
            self._link(share, f"{other.partner}.share", Latch(), where)
        return tuple(found)

    def _step_faults(self, bond: Bond, where: str, paths: list[str]) -> Iterator[Fault]:
        """Note simulators that cannot know for which step an energy or a power was agreed."""
        adapts = any(traits_of(each).adaptive for each in algorithm_layers(self.level.orchestrator))
        for path in paths:
            steps = self._steps_per_macro(path)
            if steps == "longer":
                what = (
                    f"`{path}` makes longer steps than the level of its bond: what was agreed is old by then"
                )
                yield Fault(what, where, "levels whose steps are as long, or shorter")
            elif steps == "several" and adapts and bond.balance == "energy":
                what = f"`{path}` makes several steps in one whose length is chosen on the way"
                level = path.partition(".")[0]
                hint = f'`balance = "inversion"`, or step control inside `{level}`'
                yield Fault(what, where, "one step for each step of the bond's level", hint)

    def _steps_per_macro(self, path: str) -> Literal["one", "several", "longer"]:
        """Return how many steps a simulator makes in one of this level, as the levels around it say."""
        models: Mapping[str, Any] = self.level.scenario.models
        found: Literal["one", "several"] = "one"
        for name in path.split(".")[:-1]:
            level = models[name]
            if level.step > self.level.step:
                return "longer"
            layers = map(traits_of, algorithm_layers(level.orchestrator))
            divides = any(traits.adaptive or traits.rates is not None for traits in layers)
            if level.step < self.level.step or divides:
                found = "several"
            models = level.scenario.models
        return found

    def _port_unit(self, path: str, source: bool) -> str:
        port = port_at(self.level.scenario, path, source)
        return port.unit if port is not None else ""

    def _link(self, target: str, source: str, extrapolation: Extrapolator, where: str) -> None:
        self._add_connection(Connection(source, target, extrapolation), where)

    def _add_connection(self, link: Connection, where: str) -> None:
        if self.made.setdefault(link.target, link) != link:
            what = f"`{link.source}` is extrapolated in two ways by balanced bonds"
            raise ScenarioError(what, where, "one extrapolation for all bonds of an output")

    def _find_leaf(self, path: str) -> tuple[str, str] | None:
        """Return the path of the simulator that has a port, and the port; None: a level has it.

        A port of a level that is named after what it leads to is only on the way: files have such.
        """
        model: Any = None
        models: Mapping[str, Model] = self.level.scenario.models
        parts = path.split(".")
        for number, part in enumerate(parts[:-1]):
            model = models.get(part)
            rest = ".".join(parts[number + 1 :])
            level = as_level(model)
            if level is None:
                return (".".join(parts[: number + 1]), rest) if model is not None else None
            scenario = level.scenario
            passed = {each.target for each in scenario.connections if each.source == each.target}
            if rest not in passed and rest in (*scenario.input_names, *scenario.output_names):
                return None
            models = scenario.models
        return None

    def _wrap_models(self, models: Mapping[str, Model], prefix: str) -> dict[str, Model]:
        """Return models with those wrapped that have sides, at any depth."""
        made = dict(models)
        below = [path[len(prefix) :].partition(".")[0] for path in self.sides if path.startswith(prefix)]
        for name in dict.fromkeys(below):
            path = prefix + name
            model: Any = models[name]
            if path not in self.sides:
                inside = self._wrap_models(model.scenario.models, f"{path}.")
                made[name] = model.with_scenario(model.scenario.with_models(inside))
                continue
            form: Any = self.forms[path]
            if isinstance(model, Balanced):
                what = f"`{path}` is in balanced bonds of two levels"
                expected = "all its balanced bonds in one level"
                self.faults.append(Fault(what, f"bonds.{self.names[path]}", expected))
                continue
            try:
                divided = form == "energy" and self._steps_per_macro(path) == "several"
                whole = float(self.level.step) if divided else None
                power: Agreed = "linear" if self.powers[path] == "mean" else "product"
                made[name] = Balanced(
                    model, tuple(self.sides[path]), form, linked=True, whole=whole, power=power
                )
            except ScenarioError as error:
                where = f"bonds.{self.names[path]}"
                self.faults += [
                    replace(fault, what=f"`{path}` cannot be balanced: {fault.what}", place=Place.of(where))
                    for fault in error.faults
                ]
        return made
