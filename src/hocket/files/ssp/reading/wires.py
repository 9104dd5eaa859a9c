"""From two ports that an SSP connects to a connection of hocket: units, factors, tables in between.

In:  Spots and the Wire between them
Out: Connections, with a small model where one is not enough
"""

from __future__ import annotations

from hocket.files.names import free_name, legal_names
from hocket.files.ssp.findings import ImportFindings
from hocket.files.ssp.reading.parts import DirectedConnection, SspConnection
from hocket.files.ssp.reading.spots import Spot
from hocket.files.ssp.terms import LOOKUP
from hocket.files.ssp.units import IDENTITY, AffineMap, unit_conversion
from hocket.losing import describe_loss
from hocket.model import Connection, Extrapolator, Model, Port
from hocket.simulators.python import Python
from hocket.simulators.state_space import Gain
from hocket.units import conversion

_LOSSLESS = {("boolean", "integer"), ("enumeration", "integer"), ("integer", "enumeration")}


class _TableError(Exception):
    """A table of values that cannot be had, and what is expected instead."""

    def __init__(self, reason: str, expected: str):
        super().__init__(reason)
        self.expected = expected


class ConnectionBuilder:
    """The connections of one level; models that are needed between are added to its own."""

    def __init__(self, models: dict[str, Model], findings: ImportFindings):
        self.models, self.findings = models, findings
        self.connections: list[Connection] = []
        self.between: dict[str, str] = {}
        """The models added, and the model that each leads to."""
        self._driven: dict[str, str] = {}

    def connect(
        self, source: Spot, target: Spot, wire: DirectedConnection, extrapolation: Extrapolator | None
    ) -> None:
        """Add a connection."""
        node = wire.link.node
        if target.path in self._driven:
            sources = f"`{self._driven[target.path]}` and `{source.path}`"
            self.findings.fault(node, f"`{target.path}` has two sources, {sources}", "one source per input")
            return
        self._driven[target.path] = source.path
        try:
            units, told, table = _wire_effect(source, target, wire)
        except _TableError as error:
            what = f"`{source.path}` to `{target.path}`: {error}"
            self.findings.fault(node, what, error.expected)
            return
        except ValueError as error:
            what = f"`{source.path}` to `{target.path}`: {error}"
            hint = 'suppressUnitConversion="true", if the numbers are meant as they are'
            self.findings.fault(node, what, "units that convert", hint)
            return
        made = _automatic_conversion(source.port, target.port)
        whole = units.then(told)
        if table or describe_loss(source.port.type, target.port.type, *whole):
            self._insert_model(source, target, self._cast(source, target, table), whole, extrapolation)
        elif made is None or (source.own and target.own):
            same = Gain(1.0) if target.port.type == "real" else self._cast(source, target, {})
            self._insert_model(source, target, same, whole, extrapolation)
        else:
            rest = told if units.is_close(made) else made.inverse().then(units).then(told)
            self.connections.append(Connection(source.path, target.path, extrapolation, *rest))

    def _cast(self, source: Spot, target: Spot, table: dict[int, int]) -> Model:
        kinds = source.port.type, target.port.type
        if kinds[0] != kinds[1] and kinds not in _LOSSLESS:
            made = "zero or not" if kinds[1] == "boolean" else "rounded"
            what = f"`{source.path}` is a {kinds[0]} and drives the {kinds[1]} `{target.path}`"
            self.findings.note(f"{what}: it is {made}")
        y = Port("y", type=kinds[1])
        return Python(LOOKUP, outputs=[y], table=sorted(table.items()), to=kinds[1])

    def _insert_model(
        self, source: Spot, target: Spot, model: Model, line: AffineMap, extrapolation: Extrapolator | None
    ) -> None:
        """Put a model without units between two ports."""
        wanted = f"to {target.path}"
        name = free_name(legal_names([wanted])[wanted], self.models)
        self.models[name] = model
        self.between[name] = target.path.partition(".")[0]
        self.connections.append(Connection(source.path, f"{name}.u", None, *line))
        self.connections.append(Connection(f"{name}.y", target.path, extrapolation))


def _automatic_conversion(source: Port, target: Port) -> AffineMap | None:
    """Return what hocket makes of the units by itself; None if it would refuse the connection."""
    try:
        return AffineMap(*conversion(source.unit, target.unit))
    except ValueError:
        return None


def _wire_effect(
    source: Spot, target: Spot, wire: DirectedConnection
) -> tuple[AffineMap, AffineMap, dict[int, int]]:
    """Return what a wire does: to the units, then by its transformation; or a table.

    Raises ValueError for units that do not convert, _TableError for a table that cannot be had.
    """
    links = [wire.link, *([wire.then] if wire.then else [])]
    tables = [link.transformation for link in links if link.transformation.kind != "linear"]
    units, told = _wire_lines(source, target, wire, links)
    if not tables:
        return units, told, {}
    if len(tables) > 1:
        raise _TableError("two tables of values in a row", "one of them")
    if not units.then(told).is_close(IDENTITY):
        raise _TableError("a table of values, and a factor or a conversion of units", "one of them")
    try:
        numbers = tables[0].numbers(source.items, target.items)
    except ValueError as error:
        raise _TableError(str(error), "items of both enumerations") from None
    if tables[0].kind != "boolean":
        return IDENTITY, IDENTITY, numbers
    no, yes = numbers.get(0, 0), numbers.get(1, 1)
    return IDENTITY, AffineMap(float(yes - no), float(no)), {}


def _wire_lines(
    source: Spot, target: Spot, wire: DirectedConnection, links: list[SspConnection]
) -> tuple[AffineMap, AffineMap]:
    """Return what happens to the units on the way, then what the last transformation does."""
    stops = [source.unit, *([wire.via] if wire.then and wire.via else []), target.unit]
    if len(stops) == len(links):  # a dictionary without a unit: converted at once
        suppressed = any(link.suppress for link in links)
        told = links[0].transformation.line.then(links[1].transformation.line)
        return IDENTITY if suppressed else unit_conversion(stops[0], stops[1]), told
    units = IDENTITY
    for number, link in enumerate(links):
        if number:
            units = units.then(links[number - 1].transformation.line)
        units = units if link.suppress else units.then(unit_conversion(stops[number], stops[number + 1]))
    return units, links[-1].transformation.line
