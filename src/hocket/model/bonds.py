"""Connections that carry power: an effort one way, a flow the other.

In:  the paths of two inputs
Out: frozen data
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.arguments import (
    check_names,
    expect,
    expect_flags,
    is_one_of,
    is_positive,
    is_text,
)

Balance: TypeAlias = Literal["inversion", "energy"]
AgreedPower: TypeAlias = Literal["product", "mean"]


@dataclass(frozen=True, slots=True)
class Bond:
    """A pair of connections that carries power: an effort one way, a flow the other.

    `effort` and `flow` are the inputs that the two drive: `Bond("mass.force", "spring.speed")`. Their product
    is the power, counted from what gives the effort to what gives the flow; `reverse` counts it the other
    way, where the signs of the ports are such. Both sides keep an account of it, in `unit`. `balance` lets
    both agree on the power of each step: see docs/energy.md. The agreed `power` is the "product" of the two
    signals as they are extrapolated, or the extrapolated "mean" of both views of it (Moshagen 2021, eq. 16).
    """

    effort: str
    flow: str
    unit: str = "W"
    reverse: bool = False
    balance: Balance | None = None
    eps: float = 0.05
    """Of the inversion: outputs smaller than this part of the largest so far are not divided by."""
    power: AgreedPower = "product"

    def __post_init__(self) -> None:
        where = f"bond of `{self.effort}` and `{self.flow}`"
        if not isinstance(self.effort, str) or not isinstance(self.flow, str):
            raise ScenarioError("a bond is made of two inputs", where, 'Bond("mass.force", "spring.speed")')
        hint = suggest_nearest(str(self.balance), get_args(Balance))
        known = self.balance is None or is_one_of(self.balance, get_args(Balance))
        expect(known, "balance", self.balance, '"inversion", "energy", or None', hint, where)
        hint = suggest_nearest(str(self.power), get_args(AgreedPower))
        known = is_one_of(self.power, get_args(AgreedPower))
        expect(known, "power", self.power, '"product" or "mean"', hint, where)
        expect(is_text(self.unit), "unit", self.unit, 'a unit such as "W", or "" for none', "", where)
        expect_flags(where, reverse=self.reverse)
        expect(is_positive(self.eps), "eps", self.eps, "a number above 0", "", where)


def named_bonds(bonds: Mapping[str, Bond], models: Collection[str]) -> dict[str, Bond]:
    """Return bonds by name; raises ScenarioError for what is not a bond."""
    check_names(bonds, "bond", '{"joint": Bond("mass.force", "spring.speed")}', models)
    for name, bond in bonds.items():
        if not isinstance(bond, Bond):
            raise ScenarioError(f"`{name}` is not a bond but {bond!r:.60}", "bonds", "Bond(effort, flow)")
    return dict(bonds)
