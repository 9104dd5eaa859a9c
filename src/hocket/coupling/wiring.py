"""Names become numbers: which output drives which input of a level, with what factor and extrapolator.

In:  a Scenario, by names
Out: a Wiring, by indices; or every fault in the scenario at once
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from hocket.errors import Fault, Place, ScenarioError, raise_faults, suggest_nearest
from hocket.model import registry
from hocket.model.composite import as_level, is_sampled
from hocket.model.extrapolators import Hold, Latch
from hocket.model.memo import Memo
from hocket.model.ports import Port
from hocket.model.protocols import (
    Extrapolator,
    Model,
    described_variables,
    is_extrapolator,
    period_of,
    text_ports,
)
from hocket.model.scenario import Connection, Scenario

if TYPE_CHECKING:
    from hocket.coupling.power_accounts import DrivenInput, WiredBond

A = {
    "real": "a real",
    "integer": "an integer",
    "boolean": "a boolean",
    "enumeration": "an enumeration",
    "string": "a string",
    "binary": "a binary",
    "clock": "a clock",
}
_FITS = {("boolean", "integer"), ("enumeration", "integer")}


def describe_loss(source: str, target: str, gain: float, offset: float) -> str:
    """Return what a connection would lose silently; empty if nothing."""
    if target == "real":
        return ""
    if target == "clock" and source != "clock":
        return "and a clock ticks without a value"
    if source != target and (source, target) not in _FITS:
        return f"and {A[target]} cannot hold all its values"
    whole = gain == int(gain) and offset == int(offset)
    if (gain, offset) != (1.0, 0.0) and not (target == "integer" and whole):
        return f"and {gain:g} times it{f' plus {offset:g}' if offset else ''} is not always {A[target]}"
    return ""


OWN = -1
"""In place of a child's number: the level itself."""
CONSTANT = -2
"""In a flattened wiring, in place of a child's number: a level's input that nothing drives, at `offset`."""


class Drive(NamedTuple):
    """What drives an input: an output of a child, or an input of the level itself (child = OWN)."""

    child: int
    port: int
    extrapolation: Extrapolator | None = None
    gain: float = 1.0
    offset: float = 0.0


def controlled_drives(wiring: Wiring) -> list[Drive]:
    """Return the drives inside a level whose error step control sees.

    No step is short enough for outputs that jump. Some tools declare all they put out as discrete: where
    nothing else drives, reals that are neither sampled nor announce their jumps count as continuous. One
    that only watches takes no harm from an error.
    """
    inner = [
        drive
        for model, drives in zip(wiring.models, wiring.drives, strict=True)
        for drive in drives
        if drive is not None and drive.child != OWN and not model.capabilities.observes
    ]
    sources = [wiring.models[drive.child] for drive in inner]
    ports = [model.outputs[drive.port] for model, drive in zip(sources, inner, strict=True)]
    continuous = [
        (drive, port, model)
        for drive, port, model in zip(inner, ports, sources, strict=True)
        if not is_sampled(model) and not isinstance(drive.extrapolation, Latch)
    ]
    moving = [drive for drive, port, _ in continuous if not port.discrete]
    declared = [
        drive
        for drive, port, model in continuous
        if port.type == "real" and not port.event and not model.capabilities.events
    ]
    return moving or declared


class TextDrive(NamedTuple):
    """A text (string or binary) handed on as it is: beside the numbers, and held."""

    child: int
    port: int
    target: int
    target_port: int


@dataclass(frozen=True)
class Wiring:
    """One level: its children and what drives their inputs and the level's own outputs."""

    names: tuple[str, ...]
    models: tuple[Model, ...]
    drives: tuple[tuple[Drive | None, ...], ...]
    """Per child and input; None: the input keeps its start value."""
    outputs: tuple[Drive, ...] = ()
    """Per output of the level: where its value is."""
    texts: tuple[TextDrive, ...] = ()
    bonds: tuple[WiredBond, ...] = ()

    @cached_property
    def texts_of(self) -> dict[int, list[TextDrive]]:
        """The texts that a child gets."""
        found: dict[int, list[TextDrive]] = {}
        for drive in self.texts:
            found.setdefault(drive.target, []).append(drive)
        return found

    @cached_property
    def text_places(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The texts of the level itself, in the order of `Composite.texts`: child and number of each."""
        driven = {(drive.target, drive.target_port) for drive in self.texts}
        every = [text_ports(model) for model in self.models]
        inputs = [(child, port) for child, (texts, _) in enumerate(every) for port in range(len(texts))]
        outputs = [(child, port) for child, (_, texts) in enumerate(every) for port in range(len(texts))]
        return [place for place in inputs if place not in driven], outputs

    @cached_property
    def extrapolators(self) -> frozenset[Extrapolator]:
        """The distinct extrapolators of the level."""
        by_identity = {
            id(drive.extrapolation): drive.extrapolation
            for drives in self.drives
            for drive in drives
            if drive is not None and drive.extrapolation is not None
        }
        return frozenset(by_identity.values())

    def used_outputs(self, child: int) -> set[int]:
        """Return the outputs of a child that drive something, or an output of the level."""
        drives = [drive for each in self.drives for drive in each if drive is not None]
        return {drive.port for drive in (*drives, *self.outputs) if drive.child == child}

    def output_path(self, child: int, port: int) -> str:
        """Return the path of an output; what is sorted by it does not depend on how models are listed."""
        return f"{self.names[child]}.{self.models[child].outputs[port].name}"

    def numbers(self) -> dict[str, int]:
        """Return the number of each child by its name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def first_outputs(self) -> list[int]:
        """Per child: where its outputs begin among those of all children; last, how many there are."""
        return [0, *accumulate(len(model.outputs) for model in self.models)]

    @cached_property
    def output_places(self) -> dict[str, tuple[int, int]]:
        """Child and number of every output, by its path."""
        return {
            f"{name}.{port.name}": (child, index)
            for child, (name, model) in enumerate(zip(self.names, self.models, strict=True))
            for index, port in enumerate(model.outputs)
        }


def wire(scenario: Scenario, extrapolation: Extrapolator | None = None) -> Wiring:
    """Return the wiring of one level; raises ScenarioError with every fault found in it.

    `extrapolation` is for the connections between children that name none; those from and to sampled
    models are latched instead, and what is not a real is held.
    """
    raise_faults(_WIRINGS(scenario)[1])
    return wire_unchecked(scenario, extrapolation)


def wire_unchecked(scenario: Scenario, extrapolation: Extrapolator | None = None) -> Wiring:
    """Return as much of the wiring as there is; faults are left for `wire` to report."""
    wiring = _WIRINGS(scenario)[0]
    if extrapolation is None:
        return wiring

    sampled = [is_sampled(model) or period_of(model) is not None for model in wiring.models]

    def with_extrapolation(drive: Drive | None, child: int, port: int) -> Drive | None:
        if drive is None or drive.extrapolation is not None or drive.child == OWN:
            return drive
        if sampled[child] or sampled[drive.child]:
            return drive._replace(extrapolation=Latch())
        ends = wiring.models[child].inputs[port], wiring.models[drive.child].outputs[drive.port]
        jumps = any(end.discrete for end in ends)
        return drive._replace(extrapolation=Hold() if jumps else extrapolation)

    return replace(
        wiring,
        drives=tuple(
            tuple(with_extrapolation(d, child, port) for port, d in enumerate(drives))
            for child, drives in enumerate(wiring.drives)
        ),
    )


def scenario_faults(scenario: Scenario) -> list[Fault]:
    """Return every fault that can be known before a model is opened, at all levels."""
    faults = list(_WIRINGS(scenario)[1])
    for name, model in scenario.models.items():
        level = as_level(model)
        for fault in scenario_faults(level.scenario) if level else ():
            faults.append(fault.within(name))
    return faults


@dataclass(frozen=True, slots=True)
class PortFault(Fault):
    """A connection leads to a port that is not there."""

    port: str = ""
    """The path of the port, as the connection names it."""


class _Names:
    """The ports of a level by their paths."""

    def __init__(self, scenario: Scenario):
        self.scenario = scenario
        self.models = tuple(scenario.models.values())
        self.number = {name: index for index, name in enumerate(scenario.models)}
        self._sides: dict[int, tuple[dict[str, int], dict[str, int]]] = {}

    def ends(self, child: int) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """Return the targets and the sources of a child; seen from inside, the level's inputs are sources."""
        if child == OWN:
            return self.scenario.outputs, self.scenario.inputs
        return self.models[child].inputs, self.models[child].outputs

    def side(self, child: int) -> tuple[dict[str, int], dict[str, int]]:
        """Return the numbers of targets and of sources by name; equal models share them."""
        key = OWN if child == OWN else id(self.models[child])
        if key not in self._sides:
            targets, sources = ({port.name: i for i, port in enumerate(end)} for end in self.ends(child))
            self._sides[key] = targets, sources
        return self._sides[key]

    def find(self, path: str, source: bool, where: str) -> tuple[int, int]:
        """Return child and port of a path; raises ScenarioError."""
        own = self.side(OWN)[source]
        if path in own:
            return OWN, own[path]
        owner, dot, port = path.partition(".")
        role, place = "output" if source else "input", Place.of(where)
        if not dot:
            hint = suggest_nearest(path, [*own, *_paths(self.scenario, source)])
            what = f"`{path}` is not an {role} here"
            raise ScenarioError([PortFault(what, place, "a path such as `model.port`", hint, path)])
        if owner not in self.number:
            hint = suggest_nearest(owner, self.number)
            raise ScenarioError([PortFault(f"there is no model `{owner}`", place, "", hint, path)])
        child = self.number[owner]
        if port not in self.side(child)[source]:
            hint = self._hint(owner, port, source)
            raise ScenarioError([PortFault(f"`{owner}` has no {role} `{port}`", place, "", hint, path)])
        return child, self.side(child)[source][port]

    def _hint(self, owner: str, port: str, source: bool) -> str:
        child = self.number[owner]
        known = self.side(child)
        if port in known[not source]:
            other = "input" if source else "output"
            return f"`{owner}.{port}` is an {other}; perhaps source and target are exchanged"
        level = as_level(self.models[child])
        if not level:
            return suggest_nearest(port, known[source])
        inside = [c.source for c in level.scenario.connections if c.target == port and not source]
        if inside:
            return f"it is driven inside `{owner}` already, by `{inside[0]}`: one source per input"
        return suggest_nearest(port, [*known[source], *_paths(level.scenario, source)])

    def text(self, path: str, source: bool) -> tuple[int, int] | None:
        """Return child and number of a text port; None where the path leads to none."""
        owner, _, port = path.partition(".")
        child = self.number.get(owner, OWN)
        names = () if child == OWN else text_ports(self.models[child])[source]
        return (child, names.index(port)) if port in names else None

    def text_drive(self, connection: Connection, where: str) -> TextDrive | None:
        """Return how a text is handed on; None if the connection is one of numbers."""
        ends = self.text(connection.source, True), self.text(connection.target, False)
        if ends == (None, None):
            return None
        if ends[0] is None or ends[1] is None:
            text = connection.source if ends[0] else connection.target
            raise ScenarioError(f"`{text}` is a text, the other end is not", where, "texts at both ends")
        return TextDrive(*ends[0], *ends[1])

    def check_text(self, connection: Connection, where: str) -> None:
        """Refuse what a text cannot be given, and a binary for a string; raises ScenarioError."""
        faults = []
        given = {
            "gain": connection.gain != 1.0,
            "offset": connection.offset != 0.0,
            "extrapolation": connection.extrapolation is not None,
        }
        named = " and no ".join(name for name, is_given in given.items() if is_given)
        if named:
            what = f"`{connection.source}` is a text, which has no {named}"
            faults.append(Fault(what, where, "a text, handed on as it is"))
        source, target = self._text_type(connection.source), self._text_type(connection.target)
        if source and target and source != target:
            what = f"`{connection.source}` is {A[source]}, `{connection.target}` is {A[target]}"
            faults.append(Fault(what, where, "two strings, or two binaries"))
        if faults:
            raise ScenarioError(faults)

    def _text_type(self, path: str) -> str:
        """Return whether a text is a string or a binary; empty if its model does not tell."""
        owner, _, port = path.partition(".")
        model = self.models[self.number[owner]]
        while level := as_level(model):
            owner, _, port = port.partition(".")
            model = level.scenario.models[owner]
        known = described_variables(model)
        return str(known[port].type) if port in known else ""

    def ends_of(self, connection: Connection, where: str) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return source and target of a connection; raises ScenarioError with the faults of both."""
        found: list[tuple[int, int]] = []
        faults: list[Fault] = []
        for path, is_source in ((connection.source, True), (connection.target, False)):
            try:
                found.append(self.find(path, is_source, where))
            except ScenarioError as wrong:
                faults += wrong.faults
        if faults:
            raise ScenarioError(faults)
        source, target = found
        return source, target

    def drive(
        self, connection: Connection, source: tuple[int, int], target: tuple[int, int], where: str
    ) -> Drive:
        """Return how the source drives the target; raises ScenarioError."""
        if source[0] == OWN and target[0] == OWN:
            what = f"`{connection.source}` passes straight to `{connection.target}`"
            raise ScenarioError(what, where, "", "put a `Gain(1)` between")
        output, entry = self.ends(source[0])[True][source[1]], self.ends(target[0])[False][target[1]]
        try:
            gain, offset = _convert_unit(output.unit, entry.unit)
        except ValueError as error:
            expected = f"`{connection.source}` and `{connection.target}` in units that convert"
            raise ScenarioError(str(error), where, expected) from None
        gain, offset = connection.gain * gain, connection.gain * offset + connection.offset
        if output.event != entry.event:
            event, other = (output, entry) if output.event else (entry, output)
            what = f"`{connection.source}` cannot drive `{connection.target}`: `{event.name}` is an event"
            hint = (
                "a simulator between that holds the last value"
                if output.event
                else "a sampler between, or a `Crossing`"
            )
            expected = f"two events, or two values: `{other.name}` always has one"
            raise ScenarioError(what, where, expected, hint)
        gone = describe_loss(output.type, entry.type, gain, offset)
        if gone:
            alone = source[0] != OWN and output.type == "real" and not self.ends(source[0])[False]
            alone = alone and not entry.event
            hint = f'of a table or CSV: types = {{ {output.name} = "{entry.type}" }}' if alone else ""
            raise ScenarioError(
                f"`{connection.source}` is {A[output.type]}, {gone}", where, A[entry.type], hint
            )
        chosen: Any = connection.extrapolation
        if isinstance(chosen, str):
            try:
                chosen = registry.look_up("extrapolators", chosen)
            except ScenarioError as error:
                raise ScenarioError([replace(error.faults[0], place=Place.of(where))]) from None
        if chosen is not None and not is_extrapolator(chosen):
            hint = suggest_nearest(str(chosen), registry.names("extrapolators"))
            raise ScenarioError(f"`{chosen!r:.40}` is not an extrapolation", where, "", hint)
        if chosen is not None and chosen.degree > 0 and entry.discrete:
            what = "a real that changes at events only" if entry.held else A[entry.type]
            raise ScenarioError(f"{what} cannot be extrapolated", where, '"hold"')
        return Drive(source[0], source[1], chosen, gain, offset)


def _convert_unit(source: str, target: str) -> tuple[float, float]:
    """Return gain and offset; what has the same unit, or none, needs no units."""
    if not source or not target or source == target:
        return 1.0, 0.0
    from hocket.model.units import conversion

    return conversion(source, target)


def _build_wiring(scenario: Scenario) -> tuple[Wiring, list[Fault]]:
    faults: list[Fault] = []
    if not scenario.models:
        faults.append(Fault("a scenario without models", "models", "at least one model"))
    for name, model in {id(model): (name, model) for name, model in scenario.models.items()}.values():
        faults += _port_faults(name, model)
    names = _Names(scenario)
    driven: dict[tuple[int, int], Drive] = {}
    texts: list[TextDrive] = []
    origin: dict[str, str] = {}
    for connection in scenario.connections:
        where = f"connections.{connection.target}"
        try:
            text = names.text_drive(connection, where)
            if text is not None:
                _claim(origin, connection, where)
                names.check_text(connection, where)
                texts.append(text)
                continue
            source, target = names.ends_of(connection, where)
            _claim(origin, connection, where, "add them in a `Sum` and connect that")
            driven[target] = names.drive(connection, source, target, where)
        except ScenarioError as wrong:
            faults += wrong.faults
    drives = tuple(
        tuple(driven.get((child, index)) for index in range(len(model.inputs)))
        for child, model in enumerate(names.models)
    )
    outputs = [driven.get((OWN, index)) for index in range(len(scenario.outputs))]
    bonds: tuple[WiredBond, ...] = ()
    connected = not faults
    if connected and scenario.bonds:
        from hocket.coupling.power_accounts import wire_bonds

        bonds, faults = wire_bonds(scenario.bonds, partial(_find_driven_input, names, driven), names.ends)
    if connected and scenario.constraints:
        from hocket.coupling.constraint_groups import group_constraints

        faults += group_constraints(scenario)[1]
    # a misspelt name leaves its port undriven: that is said only where nothing else is wrong
    faults += _undriven_faults(scenario, driven) if not faults else []
    wiring = Wiring(
        tuple(scenario.models),
        names.models,
        drives,
        tuple(drive for drive in outputs if drive),
        tuple(texts),
        bonds,
    )
    return wiring, faults


def _find_driven_input(
    names: _Names, driven: Mapping[tuple[int, int], Drive], path: str
) -> DrivenInput | Fault:
    """Return where an input of a bond is, and what drives it."""
    from hocket.coupling.power_accounts import DrivenInput

    try:
        child, port = names.find(path, source=False, where="")
    except ScenarioError as wrong:
        led = [f"`{each.target}`" for each in names.scenario.connections if each.source == path]
        hint = f"a bond names the inputs that are driven, here {' or '.join(led)}"
        return replace(wrong.faults[0], hint=hint) if led else wrong.faults[0]
    drive = driven.get((child, port))
    if child == OWN or drive is None or drive.child == OWN:
        hint = "a bond stands in the level that holds both of its simulators, or the levels they are in"
        return Fault(f"`{path}` is not driven by a simulator of this level", "", "a driven input", hint)
    return DrivenInput(child, port, drive.child, drive.port, drive.gain, drive.offset)


def _claim(origin: dict[str, str], connection: Connection, where: str, hint: str = "") -> None:
    """Note what drives a target; raises ScenarioError if something does already."""
    source, target = connection.source, connection.target
    if target in origin:
        what = f"`{target}` has two sources, `{origin[target]}` and `{source}`"
        raise ScenarioError(what, where, "one source per input", hint)
    origin[target] = source


def _undriven_faults(scenario: Scenario, driven: Collection[tuple[int, int]]) -> Iterator[Fault]:
    found: Collection[str] = ()
    if scenario.constraints:
        from hocket.coupling.constraint_groups import determined_inputs

        found = determined_inputs(scenario)
    for child, (name, model) in enumerate(scenario.models.items()):
        for index, port in enumerate(model.inputs):
            if (child, index) not in driven and port.type == "clock":
                what, expected = f"nothing ticks the clock `{name}.{port.name}`", "a connection from a clock"
                hint = 'connect a clock of another simulator to it: an output `Port(..., type="clock")`'
                yield Fault(what, f"models.{name}", expected, hint)
            elif (child, index) not in driven and port.start is None and f"{name}.{port.name}" not in found:
                what = "an event" if port.event else "an output"
                yield Fault(
                    f"nothing drives `{name}.{port.name}`",
                    f"models.{name}",
                    "a connection or a start value",
                    f'connect {what} to it, or give it a start value: "{port.name} = 0.0"',
                )
    for index, port in enumerate(scenario.outputs):
        if (OWN, index) not in driven:
            yield Fault(f"nothing drives the output `{port.name}`", "outputs", "a connection to it")


def _port_faults(name: str, model: Model) -> Iterator[Fault]:
    seen: set[str] = set()
    for port in (*model.inputs, *model.outputs):
        if port.name in seen:
            yield Fault(f"`{name}` has two ports named `{port.name}`", f"models.{name}", "names that differ")
        seen.add(port.name)
    events = [port for port in (*model.inputs, *model.outputs) if port.event]
    if events and as_level(model) is None and not model.capabilities.events:
        what = f"`{name}.{events[0].name}` is an event, and `{name}` takes no part in instants"
        hint = "give its class due(), react() and commit(); or leave the event out"
        yield Fault(what, f"models.{name}", "a simulator that reacts to events", hint)
    inputs = {port.name for port in model.inputs}
    for port in model.outputs:
        for unknown in sorted(set(port.feedthrough) - inputs):
            what = f"`{name}.{port.name}` reacts to `{unknown}`, which is not an input"
            yield Fault(what, f"models.{name}", "", suggest_nearest(unknown, inputs))


def _paths(scenario: Scenario, source: bool) -> Iterator[str]:
    for name, model in scenario.models.items():
        for port in model.outputs if source else model.inputs:
            yield f"{name}.{port.name}"


_WIRINGS: Memo[Scenario, tuple[Wiring, list[Fault]]] = Memo(_build_wiring)
"""Wiring and faults, worked out once per scenario."""
