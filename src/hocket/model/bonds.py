"""Connections that carry power: an effort one way, a flow the other.

In:  the paths of two inputs
Out: frozen data
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from hocket.errors import Place, ScenarioError
from hocket.model.arguments import is_positive

_NAME = re.compile(r"[^\W\d][\w-]*")

Balance: TypeAlias = Literal["inversion", "energy"]


@dataclass(frozen=True, slots=True)
class Bond:
    """A pair of connections that carries power: an effort one way, a flow the other.

    `effort` and `flow` are the inputs that the two drive: `Bond("mass.force", "spring.speed")`. Their product
    is the power, counted from who gives the effort to who gives the flow; `reverse` counts it the other way,
    where the signs of the ports are such. Both sides keep an account of it, in `unit`. `balance` lets both
    agree on the power of each step: see docs/energy.md.
    """

    effort: str
    flow: str
    unit: str = "W"
    reverse: bool = False
    balance: Balance | None = None
    eps: float = 0.05
    """Of the inversion: outputs smaller than this part of the largest so far are not divided by."""

    def __post_init__(self) -> None:
        where = f"bond of `{self.effort}` and `{self.flow}`"
        if not isinstance(self.effort, str) or not isinstance(self.flow, str):
            raise ScenarioError("a bond is made of two inputs", where, 'Bond("mass.force", "spring.speed")')
        for key, value, fits, expected in (
            (
                "balance",
                self.balance,
                self.balance in (None, *get_args(Balance)),
                '"inversion", "energy", or None',
            ),
            ("unit", self.unit, isinstance(self.unit, str), 'a unit such as "W", or "" for none'),
            ("reverse", self.reverse, isinstance(self.reverse, bool), "True or False"),
            ("eps", self.eps, is_positive(self.eps), "a number above 0"),
        ):
            if not fits:
                raise ScenarioError(f"`{key}` is {value!r}", Place(key=key, detail=where), expected)


def named_bonds(bonds: Mapping[str, Bond], models: Collection[str]) -> dict[str, Bond]:
    """Return bonds by name; raises ScenarioError for what is none."""
    if not isinstance(bonds, Mapping):
        expected = '{"joint": Bond("mass.force", "spring.speed")}'
        raise ScenarioError("the bonds of a scenario have names", "bonds", expected)
    for name, bond in bonds.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ScenarioError(f"`{name}` cannot name a bond", "bonds", "letters, digits, _ and -, no dots")
        if name in models:
            raise ScenarioError(f"`{name}` names a bond and a model", "bonds", "names that differ")
        if not isinstance(bond, Bond):
            raise ScenarioError(f"`{name}` is no bond but {bond!r:.60}", "bonds", "Bond(effort, flow)")
    return dict(bonds)
