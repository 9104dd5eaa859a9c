"""Terminals: variables of a model that are connected together, by the names of their members.

In:  connections, some of them between two terminals
Out: connections between ports, those of the members; or why two terminals do not fit

The matching rules are those of FMI 3 (2.4.9) and that of its layered standard for buses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hocket.errors import Fault, Place, list_names, raise_faults, suggest_nearest
from hocket.model.protocols import innermost

C = TypeVar("C")

TRANSCEIVER = "org.fmi-ls-bus.transceiver"
"""What one sends the other receives: `Tx_Data` drives `Rx_Data`, both ways."""
RULES = ("plug", "bus", "sequence", TRANSCEIVER)
FLOWS = ("inflow", "outflow")


@dataclass(frozen=True, slots=True)
class TerminalMember:
    """A variable of a terminal; an array has a port for each element, a parameter has none."""

    name: str
    variable: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    kind: str = "signal"
    """signal, or inflow or outflow: those of terminals that are connected add up to zero."""

    @property
    def role(self) -> str:
        return "an input" if self.inputs else "an output" if self.outputs else "no port"


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal, with those inside it."""

    name: str
    """With the names of the terminals around it: `CanChannel.Configuration`."""
    rule: str
    kind: str = ""
    members: tuple[TerminalMember, ...] = ()
    inside: tuple[Terminal, ...] = ()
    streams: bool = False
    """Whether it has stream variables, which hocket does not connect."""

    @property
    def own_name(self) -> str:
        return self.name.rpartition(".")[2]

    def all(self) -> Iterator[Terminal]:
        """Yield it and those inside."""
        yield self
        for each in self.inside:
            yield from each.all()


def has_terminals(model: Any) -> bool:
    """Return whether a model, or one inside a level or a wrapper, has terminals; nothing is read for that."""
    bare: Any = innermost(model)
    try:
        return bool(bare.has_terminals)
    except AttributeError:  # of few models is it known
        return False


def connect_terminals(models: Mapping[str, Any], connections: Sequence[C]) -> tuple[C, ...]:
    """Return the connections with those of terminals replaced by those of their members.

    Raises ScenarioError with everything that does not fit.
    """
    known = dict(_terminals_by_path(models))
    found: list[C] = []
    faults: list[Fault] = []
    for connection in connections:
        ends: Any = connection
        source, target = known.get(ends.source), known.get(ends.target)
        if source is None and target is None:
            found.append(connection)
            continue
        place = Place.of(f"connections.{ends.target}")
        if source is None or target is None:
            faults.append(_lone_terminal(ends, known, place))
            continue
        wrong = [*_own_faults(ends, source, target)]
        wires: list[tuple[str, str, float]] = []
        if not wrong:
            before = (ends.source.removesuffix(source.name), ends.target.removesuffix(target.name))
            links = _Links(before)
            links.join(source, target)
            wires, wrong = links.wires, links.faults
        faults += [replace(fault, place=place) for fault in wrong]
        found += [replace(ends, source=s, target=t, gain=gain) for s, t, gain in wires]
    raise_faults(faults)
    return tuple(found)


def _terminals_by_path(models: Mapping[str, Any]) -> Iterator[tuple[str, Terminal]]:
    """Yield every terminal with its path, through levels."""
    for name, model in models.items():
        if not has_terminals(model):
            continue
        bare: Any = innermost(model)
        try:
            inside = _terminals_by_path(bare.scenario.models)
        except AttributeError:  # it is not a level
            yield from ((f"{name}.{each.name}", each) for top in bare.terminals for each in top.all())
        else:
            yield from ((f"{name}.{path}", each) for path, each in inside)


def _lone_terminal(ends: Any, known: Mapping[str, Terminal], place: Place) -> Fault:
    one, other = (ends.source, ends.target) if ends.source in known else (ends.target, ends.source)
    owner = other.partition(".")[0]
    there = [path for path in known if path.partition(".")[0] == owner]
    return Fault(
        f"`{one}` is a terminal, `{other}` is not",
        place,
        "terminals at both ends",
        suggest_nearest(other, there) or (f"`{owner}` has {list_names(there, 4)}" if there else ""),
    )


def _own_faults(ends: Any, source: Terminal, target: Terminal) -> Iterator[Fault]:
    """Yield what keeps two terminals apart, whatever their members are."""
    both = f"`{ends.source}` and `{ends.target}`"
    if ends.source == ends.target:
        yield Fault(f"the terminal `{ends.source}` is connected to itself", "", "two terminals")
        return
    if ends.gain != 1.0 or ends.offset != 0.0:
        yield Fault(f"a connection of terminals has a gain or an offset: {both}", "", "none of them")
    if source.rule != target.rule:
        yield Fault(
            f"{both} have different matching rules: `{source.rule}` and `{target.rule}`", "", "the same rule"
        )
    elif source.rule not in RULES:
        what = f"{both} have a matching rule that hocket does not know: `{source.rule}`"
        yield Fault(what, "", ", ".join(RULES), "connect their variables one by one")
    if source.kind and target.kind and source.kind != target.kind:
        yield Fault(
            f"{both} are of different kinds: `{source.kind}` and `{target.kind}`", "", "the same kind"
        )


class _Links:
    """The connections of the members of two terminals."""

    def __init__(self, before: tuple[str, str]):
        self.before = before
        """The paths of the two models, each with a dot."""
        self.wires: list[tuple[str, str, float]] = []
        """Source, target and gain."""
        self.faults: list[Fault] = []

    def join(self, one: Terminal, other: Terminal) -> None:
        """Connect two terminals and those inside them."""
        wires = len(self.wires)
        for terminal, before in zip((one, other), self.before, strict=True):
            if terminal.streams:
                what = f"`{before}{terminal.name}` has stream variables, which hocket does not connect"
                self._refuse(what, "signals and flows", "connect its variables one by one")
        names = _matching_names(one.rule, [m.name for m in one.members], [m.name for m in other.members])
        self._check_names(one, other, names)
        members = {member.name: member for member in other.members}
        for member, name in zip(one.members, names, strict=True):
            if name in members:
                self._connect(member, members[name])
        self._join_inside(one, other)
        if len(self.wires) == wires and not self.faults and "." not in one.name:
            self._refuse(f"{self._both(one, other)} have no port in common", "members that match")

    def _check_names(self, one: Terminal, other: Terminal, names: Sequence[str]) -> None:
        if one.rule == "bus":
            return
        there = [member.name for member in other.members]
        extra = [each.name for each, name in zip(one.members, names, strict=True) if name not in there]
        missing = [name for name in there if name not in names]
        for terminal, before, lonely in zip((one, other), self.before, (extra, missing), strict=True):
            if lonely:
                what = f"{list_names(lonely, 4)} of `{before}{terminal.name}` has no counterpart in "
                mate = other if terminal is one else one
                self._refuse(
                    what + f"`{self.before[terminal is one]}{mate.name}`",
                    f"members that all match, by the rule `{one.rule}`",
                )

    def _join_inside(self, one: Terminal, other: Terminal) -> None:
        if one.rule == "sequence":
            pairs = list(zip(one.inside, other.inside, strict=False))
        else:
            there = {each.own_name: each for each in other.inside}
            pairs = [(each, there[each.own_name]) for each in one.inside if each.own_name in there]
        if one.rule in ("plug", "sequence") and not len(pairs) == len(one.inside) == len(other.inside):
            self._refuse(f"{self._both(one, other)} do not hold the same terminals", "the same ones in both")
        for mine, its in pairs:
            ends = _Ends(self.before[0] + mine.name, self.before[1] + its.name)
            wrong = [*_own_faults(ends, mine, its)]
            self.faults += wrong
            if not wrong:
                self.join(mine, its)

    def _connect(self, one: TerminalMember, other: TerminalMember) -> None:
        """Let the output of two members drive the input."""
        paths = (f"`{self.before[0]}{one.variable}`", f"`{self.before[1]}{other.variable}`")
        forwards = bool(one.outputs and other.inputs)
        if not forwards and not (other.outputs and one.inputs):
            if one.role == other.role and not one.inputs and not one.outputs:
                return  # parameters are set, not connected
            what = f"{paths[0]} is {one.role}, and {paths[1]} is {other.role}"
            self._refuse(what, "an input and an output")
            return
        outputs, inputs = (one.outputs, other.inputs) if forwards else (other.outputs, one.inputs)
        before = self.before if forwards else self.before[::-1]
        if len(outputs) != len(inputs):
            sizes = f"{len(one.inputs or one.outputs)} and {len(other.inputs or other.outputs)}"
            self._refuse(f"{paths[0]} and {paths[1]} have {sizes} elements", "as many in both")
        elif (one.kind in FLOWS) != (other.kind in FLOWS):
            self._refuse(
                f"{paths[0]} is {one.kind}, and {paths[1]} is {other.kind}", "two signals, or two flows"
            )
        else:
            # flows into two components that are connected add up to zero
            gain = -1.0 if one.kind in FLOWS and one.kind == other.kind else 1.0
            pairs = zip(outputs, inputs, strict=True)
            self.wires += [(f"{before[0]}{s}", f"{before[1]}{t}", gain) for s, t in pairs]

    def _both(self, one: Terminal, other: Terminal) -> str:
        return f"`{self.before[0]}{one.name}` and `{self.before[1]}{other.name}`"

    def _refuse(self, what: str, expected: str, hint: str = "") -> None:
        self.faults.append(Fault(what, "", expected, hint))


@dataclass(frozen=True, slots=True)
class _Ends:
    source: str
    target: str
    gain: float = 1.0
    offset: float = 0.0


def _matching_names(rule: str, one: Sequence[str], other: Sequence[str]) -> list[str]:
    """Return the names of the members of the other that those of one belong to, by the rule."""
    if rule == "sequence":
        return [*other[: len(one)], *("" for _ in one[len(other) :])]
    return [_swap(name) for name in one] if rule == TRANSCEIVER else [*one]


def _swap(name: str) -> str:
    """Return what receives what a member of a transceiver sends, and the other way around."""
    begin, rest = name[:3], name[3:]
    return {"Tx_": "Rx_", "Rx_": "Tx_"}.get(begin, begin) + rest


def twice_named(members: Iterable[TerminalMember]) -> list[str]:
    """Return the names that two members have."""
    names = [member.name for member in members]
    return sorted({name for name in names if names.count(name) > 1})
