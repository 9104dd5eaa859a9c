"""Constraints in a file: `[constraints.link]` with equations between ports; and what solves them.

In:  a table of tables, with its place
Out: the constraints by name, and back; every constraint is kept with its place
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hocket.constraints import Constraint, named_constraints
from hocket.files.toml.forms import MATRIX, NUMBER, TEXT, TEXTS, VECTOR, WHOLE, Listing, Mapped
from hocket.files.toml.kinds import Field, Kind, kind
from hocket.files.toml.layout import Section
from hocket.files.toml.place import WRONG, Place
from hocket.files.toml.ports import OUTPUTS
from hocket.simulators.constraint import Coupler

_EXPECTED = "a table for each constraint: [constraints.link]"
_RATES = Mapped(TEXT, 'a table of outputs and their time derivatives: { "left.x" = "left.v" }')


def _constraint(
    equations: tuple[str, ...],
    rates: Mapping[str, str] | None = None,
    mu: float | None = None,
    determines: tuple[str, ...] = (),
) -> Constraint:
    """Equations between ports, which determine the inputs in them."""
    return Constraint(equations, rates or {}, mu, determines)


CONSTRAINT = kind(
    "a constraint",
    _constraint,
    Field("equations", TEXTS, 'such as ["left.x = right.x", "left.F + right.F = 0"]'),
    Field(
        "rates",
        _RATES,
        "the outputs that are time derivatives of others",
        get=lambda each: each.rates or None,
    ),
    Field("mu", NUMBER, "how fast gaps are closed, in 1/s; left out: in about a step"),
    Field("determines", TEXTS, "inputs that are to be found though they stand in no equation"),
    tagged=False,
    cls=Constraint,
)


class Constraints:
    """The constraints of a level, by name."""

    name = "constraints"
    kind: Kind = CONSTRAINT

    def read(self, value: Any, place: Place) -> Any:
        if not isinstance(value, dict):
            return place.unexpected(value, _EXPECTED)
        keys = [entry.name for entry in self.kind.fields]
        bare = [key for key, inner in value.items() if key in keys and not isinstance(inner, dict)]
        if bare:
            return (place / bare[0]).fault("a constraint has no name", _EXPECTED)
        models = place.beside("models")
        found: dict[str, Constraint] = {}
        for name, table in value.items():
            here = place / name
            spots = {"": here} | {
                f".{key}": here / key for key in keys if isinstance(table, dict) and key in table
            }
            for key, spot in spots.items():
                place.findings.places[f"{place.level}constraints.{name}{key}"] = spot
            constraint = self.kind.read(table, here)
            if constraint is not WRONG:
                taken = models if isinstance(models, dict) else ()
                made = here.tried(lambda: named_constraints({name: constraint}, taken))  # noqa: B023
                found |= {} if made is WRONG else made
        return found

    def write(self, value: Mapping[str, Constraint], place: Place) -> Any:
        section = Section(
            {name: Section(self.kind.write(each, place / name)) for name, each in value.items()}
        )
        return section or None

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {"type": "object", "additionalProperties": self.kind.schema()}


CONSTRAINTS = Constraints()

COUPLER = kind(
    "coupler",
    Coupler,
    Field("equations", TEXTS, "between the ports that it reads and determines"),
    Field("reads", OUTPUTS, "outputs of others, by their paths"),
    Field("determines", OUTPUTS, "inputs of others, by their paths"),
    Field("W", MATRIX, "how inputs follow from what equations are short of: a row per input"),
    Field("degrees", Listing(WHOLE, "a list of whole numbers"), "2 where inputs act on accelerations"),
    Field("mu", VECTOR, "how fast gaps are closed, per equation, in 1/s"),
    Field("rates", _RATES, "what it reads that is the time derivative of other things it reads"),
    Field("middle", TEXTS, "what is read in the middle of the step, beside inputs that are held"),
    Field("start", VECTOR, "the inputs before the first step"),
    Field("over", NUMBER, "the step that W is for, in seconds; left out: any"),
)
