"""What follows from a frozen object is worked out once, and forgotten with the object.

In:  an object that does not change, and a function of it
Out: the same answer as long as the object lives

The answers are kept beside the objects, by identity: comparing two scenarios of a hundred thousand models
costs more than most of what follows from them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """A function of one frozen object that remembers its answers while their objects live."""

    def __init__(self, function: Callable[[K], V]):
        self._function = function
        self._answers: dict[int, tuple[weakref.ref[Any], V]] = {}

    def __call__(self, key: K) -> V:
        """Return the answer; errors are not remembered."""
        known = self._answers.get(id(key))
        if known is not None and known[0]() is key:
            return known[1]
        answer = self._function(key)
        number = id(key)
        self._answers[number] = weakref.ref(key, lambda _: self._answers.pop(number, None)), answer
        return answer
