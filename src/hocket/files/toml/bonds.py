"""Power bonds in a file: `[bonds.joint]` with the two inputs whose product is a power.

In:  a table of tables, with its place
Out: the bonds by name, and back; every bond is kept with its place
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, get_args

from hocket.bonds import Balance, Bond, named_bonds
from hocket.files.toml.forms import NUMBER, TEXT, TRUTH, ChoiceForm
from hocket.files.toml.kinds import Field, table_kind
from hocket.files.toml.named import NamedTablesForm
from hocket.files.toml.place import WRONG

BOND = table_kind(
    "a bond",
    Bond,
    Field("effort", TEXT, "the input that the effort drives: mass.force"),
    Field("flow", TEXT, "the input that the flow drives, the other way: spring.speed"),
    Field("unit", TEXT, "of their product, if that is no power in W"),
    Field("reverse", TRUTH, "whether their product counts from who gives the flow to who gives the effort"),
    Field(
        "balance", ChoiceForm(get_args(Balance)), "how both sides agree on the power; left out: they do not"
    ),
    Field("eps", NUMBER, "of the inversion: outputs below this part of the largest are not divided by"),
    tagged=False,
)


class BondsForm(NamedTablesForm):
    """The bonds of a level."""

    def with_name(self, name: str, thing: Any, models: Collection[str]) -> Any:
        """Return the bond, if it may have that name."""
        example = thing if thing is not WRONG else Bond("", "")
        named_bonds({name: example}, models)
        return thing


BONDS = BondsForm("bonds", BOND, "a bond", "[bonds.joint]")
