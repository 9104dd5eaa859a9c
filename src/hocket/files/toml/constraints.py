"""Constraints in a file: `[constraints.link]` with equations between ports; and what solves them.

In:  a table of tables, with its place
Out: the constraints by name, and back; every constraint is kept with its place
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hocket.constraints import Constraint, named_constraints
from hocket.files.toml.forms import MATRIX, NUMBER, TEXT, TEXTS, VECTOR, WHOLE, ListForm, MappingForm
from hocket.files.toml.kinds import Field, table_kind
from hocket.files.toml.named import NamedTablesForm
from hocket.files.toml.place import WRONG
from hocket.files.toml.ports import OUTPUTS
from hocket.simulators.constraint import Coupler

_RATES = MappingForm(TEXT, 'a table of outputs and their time derivatives: { "left.x" = "left.v" }')


def _build_constraint(
    equations: tuple[str, ...],
    rates: Mapping[str, str] | None = None,
    mu: float | None = None,
    determines: tuple[str, ...] = (),
) -> Constraint:
    """Equations between ports, which determine the inputs in them."""
    return Constraint(equations, rates or {}, mu, determines)


CONSTRAINT = table_kind(
    "a constraint",
    _build_constraint,
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


class ConstraintsForm(NamedTablesForm):
    """The constraints of a level."""

    def with_name(self, name: str, thing: Any, models: Collection[str]) -> Any:
        """Return the constraint, if it may have that name."""
        return thing if thing is WRONG else named_constraints({name: thing}, models)[name]


CONSTRAINTS = ConstraintsForm("constraints", CONSTRAINT, "a constraint", "[constraints.link]")

COUPLER = table_kind(
    "coupler",
    Coupler,
    Field("equations", TEXTS, "between the ports that it reads and determines"),
    Field("reads", OUTPUTS, "outputs of others, by their paths"),
    Field("determines", OUTPUTS, "inputs of others, by their paths"),
    Field("W", MATRIX, "how inputs follow from what equations are short of: a row per input"),
    Field("degrees", ListForm(WHOLE, "a list of whole numbers"), "2 where inputs act on accelerations"),
    Field("mu", VECTOR, "how fast gaps are closed, per equation, in 1/s"),
    Field("rates", _RATES, "what it reads that is the time derivative of other things it reads"),
    Field("middle", TEXTS, "what is read in the middle of the step, beside inputs that are held"),
    Field("start", VECTOR, "the inputs before the first step"),
    Field("over", NUMBER, "the step that W is for, in seconds; left out: any"),
)
