"""What follows from a frozen object is worked out once, and forgotten with the object.

In:  an object that does not change, and a function of it
Out: the same answer as long as the object lives

The answers are kept in the objects themselves: most of them refer to the object they are about (a plan to its
composite), and a table beside the objects would keep both for ever. Comparing two scenarios of a hundred
thousand models costs more than most of what follows from them: equal objects have answers of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class Remembering:
    """A frozen object that keeps answers about itself; copies and pickles of it have its fields only."""

    remembered: dict[Memo[Any, Any], Any]
    """By the function that was asked; it is there once one was."""


K = TypeVar("K", bound=Remembering)


class Memo(Generic[K, V]):
    """A function of one frozen object that remembers its answers as long as their objects live."""

    def __init__(self, function: Callable[[K], V]):
        self._function = function

    def __call__(self, key: K) -> V:
        """Return the answer; errors are not remembered."""
        answers = vars(key).get("remembered")
        if answers is None:
            answers = vars(key).setdefault("remembered", {})
        if self in answers:
            known: V = answers[self]
            return known
        answer: V = self._function(key)
        return answers.setdefault(self, answer)  # type: ignore[no-any-return]
