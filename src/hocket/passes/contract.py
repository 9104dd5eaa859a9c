"""What every pass of the compiler is: conditions before, a change, conditions after.

In:  a level
Out: why a pass has something to do there, what it lacks, the changed level, what does not hold on it
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from hocket.errors import Fault
from hocket.model import Insertion, as_level

if TYPE_CHECKING:
    from hocket.engine.composite import Composite


class Pass(Protocol):
    """One concern, compiled away (Gomes 2016, section 3). Options are fields; it is frozen."""

    name: ClassVar[str]

    def reasons(self, level: Composite) -> list[str]:
        """Return why there is something to do; empty: nothing is."""

    def check_preconditions(self, level: Composite) -> list[Fault]:
        """Return the conditions before that do not hold: abilities or facts that are missing."""

    def apply(self, level: Composite) -> Composite:
        """Return the level changed; what is new in it stands in `Scenario.inserted`."""

    def check_postconditions(self, level: Composite) -> list[Fault]:
        """Return the conditions after that do not hold; asked after later passes too."""


def levels(level: Composite, prefix: str = "", sampled: bool = True) -> Iterator[tuple[str, Composite]]:
    """Yield a level and those inside, each with its path and a dot; without what is `sampled`, if asked."""
    yield prefix, level
    for name, model in level.scenario.models.items():
        inner: Any = as_level(model)
        if inner and (sampled or not inner.sampled):
            yield from levels(inner, f"{prefix}{name}.", sampled)


def insertions(level: Composite) -> dict[str, Insertion]:
    """Return what was inserted at all levels, by its path."""
    return {
        f"{path}{key}": note for path, each in levels(level) for key, note in each.scenario.inserted.items()
    }
