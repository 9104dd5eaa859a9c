"""Power bonds in a file: `[bonds.joint]` with the two inputs whose product is a power.

In:  a table of tables, with its place
Out: the bonds by name, and back; every bond is kept with its place
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from hocket.bonds import Balance, Bond
from hocket.files.toml.forms import NUMBER, TEXT, TRUTH, Choice
from hocket.files.toml.kinds import Field, Kind, kind
from hocket.files.toml.layout import Section
from hocket.files.toml.place import WRONG, Place
from hocket.model import Scenario
from hocket.simulators.state_space import StateSpace

_ANY = StateSpace()
"""Stands for the model whose name a bond must not have."""

_EXPECTED = "a table for each bond: [bonds.joint]"

BOND = kind(
    "a bond",
    Bond,
    Field("effort", TEXT, "the input that the effort drives: mass.force"),
    Field("flow", TEXT, "the input that the flow drives, the other way: spring.speed"),
    Field("unit", TEXT, "of their product, if that is no power in W"),
    Field("reverse", TRUTH, "whether their product counts from who gives the flow to who gives the effort"),
    Field("balance", Choice(get_args(Balance)), "how both sides agree on the power; left out: they do not"),
    Field("eps", NUMBER, "of the inversion: outputs below this part of the largest are not divided by"),
    tagged=False,
)


class Bonds:
    """The bonds of a level, by name."""

    name = "bonds"
    kind: Kind = BOND

    def read(self, value: Any, place: Place) -> Any:
        if not isinstance(value, dict):
            return place.unexpected(value, _EXPECTED)
        keys = [entry.name for entry in self.kind.fields]
        bare = [key for key, inner in value.items() if key in keys and not isinstance(inner, dict)]
        if bare:
            return (place / bare[0]).fault("a bond has no name", _EXPECTED)
        models = place.beside("models")
        bonds: dict[str, Bond] = {}
        for name, table in value.items():
            here = place / name
            for role, spot in (("", here), (".effort", here / "effort"), (".flow", here / "flow")):
                place.findings.places[f"{place.level}bonds.{name}{role}"] = spot
            bond = self.kind.read(table, here)
            taken = {name: _ANY} if isinstance(models, dict) and name in models else {}
            example = bond if bond is not WRONG else Bond("", "")
            good = here.tried(lambda: Scenario(taken, bonds={name: example})) is not WRONG  # noqa: B023
            if good and bond is not WRONG:
                bonds[name] = bond
        return bonds

    def write(self, value: Mapping[str, Bond], place: Place) -> Any:
        section = Section(
            {name: Section(self.kind.write(bond, place / name)) for name, bond in value.items()}
        )
        return section or None

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {"type": "object", "additionalProperties": self.kind.schema()}


BONDS = Bonds()
