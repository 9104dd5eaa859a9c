"""Orders by their numbers: all orders of some names as a sequence that is never listed.

In:  names
Out: the order with a number, in the sequence of `itertools.permutations`; the number of an order
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

MOST = 20
"""Names whose orders can be numbered: a number has 63 bits."""


@dataclass(frozen=True)
class NumberedOrders(Sequence[tuple[str, ...]]):
    """All orders of some names; `fixed` many at the front stay where they are."""

    names: tuple[str, ...]
    fixed: int = 0

    def __len__(self) -> int:
        return math.factorial(len(self.names) - self.fixed)

    @overload
    def __getitem__(self, number: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[tuple[str, ...], ...]: ...
    def __getitem__(self, number: int | slice) -> Any:
        """Return the order with a number, by the digits of the number in factorials."""
        if isinstance(number, slice):
            return tuple(self[each] for each in range(*number.indices(len(self))))
        rest = number + len(self) if number < 0 else number
        if not 0 <= rest < len(self):
            raise IndexError(number)
        left = list(self.names[self.fixed :])
        order = list(self.names[: self.fixed])
        for size in range(len(left) - 1, -1, -1):
            digit, rest = divmod(rest, math.factorial(size))
            order.append(left.pop(digit))
        return tuple(order)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self[number] for number in range(len(self)))

    def number(self, order: Sequence[str]) -> int:
        """Return the number of an order; where names are fixed, of that rotation of it which begins so."""
        turned = list(order)
        if self.fixed:
            begin = turned.index(self.names[0])
            turned = turned[begin:] + turned[:begin]
        left = list(self.names[self.fixed :])
        found = 0
        for name in turned[self.fixed :]:
            digit = left.index(name)
            found = found * len(left) + digit
            left.pop(digit)
        return found

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:  # noqa: ARG002
        """Return the number of an order, without looking for it."""
        fits = isinstance(value, tuple) and sorted(value) == sorted(self.names)
        if fits and self[found := self.number(value)] == value:  # type: ignore[arg-type]
            return found
        raise ValueError(value)


@dataclass(frozen=True)
class OrderWords(Sequence[str]):
    """The same orders as texts, with blanks between names."""

    orders: NumberedOrders

    def __len__(self) -> int:
        return len(self.orders)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[str, ...]: ...
    def __getitem__(self, number: int | slice) -> Any:
        """Return the order with a number as a text."""
        if isinstance(number, slice):
            return tuple(" ".join(each) for each in self.orders[number])
        return " ".join(self.orders[number])
