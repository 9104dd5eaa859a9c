"""A law that does not hold, and when numbers are the same.

In:  the name of a law and what was seen; numbers
Out: an AssertionError; yes or no
"""

from collections.abc import Sequence

import numpy as np

from hocket.model import Array


class LawBroken(AssertionError):  # noqa: N818 - it is read as a sentence
    """A law does not hold: `law` names it."""

    def __init__(self, law: str, what: str):
        self.law = law
        super().__init__(f"law broken: {law}\n  {what}")


def arrays_equal(ones: Sequence[Array], others: Sequence[Array]) -> bool:
    """Say whether the arrays hold the same numbers."""
    return all(np.array_equal(one, other, equal_nan=True) for one, other in zip(ones, others, strict=True))
