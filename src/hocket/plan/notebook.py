"""What a reading of a plan finds, each thing once.

In:  a kind of fault, an instruction and its place
Out: Violations in the order of the plan
"""

from __future__ import annotations

from hocket.errors import suggest_nearest
from hocket.plan.kinds import KINDS, Violation
from hocket.plan.walking import Spot
from hocket.plan.words import describe_instruction

HINTS = 5
"""So many misspelt names get a nearest match: each is a search through all names."""


class ViolationLog:
    """The faults of one body; `title` is its name in the plan."""

    def __init__(self, title: str):
        self.title = title
        self.found: dict[tuple[str, ...], Violation] = {}
        self._near: dict[str, str] = {}

    def add(self, kind: str, spot: Spot | None, sim: str = "", port: str = "", **more: object) -> None:
        """Note a fault, if it is not known yet; without a spot it is about the whole body."""
        where = self.title
        if spot is not None:
            where = f"{self.title} {'.'.join(map(str, spot[0]))}: {describe_instruction(spot[1])}"
        key = (kind, where, sim, port, str(more.get("source", "")))
        if key not in self.found:
            what, expected, hint = (text.format(sim=sim, port=port, **more) for text in KINDS[kind])
            self.found[key] = Violation(what, where, expected, hint, kind, sim, port)

    def drop(self, kind: str, names: set[str]) -> None:
        """Forget faults of a kind that only follow from others: they are about these simulators."""
        follows = [key for key in self.found if key[0] == kind and (key[2] in names or key[4] in names)]
        for key in follows:
            del self.found[key]

    def nearest_name(self, name: str, names: dict[str, int] | list[str]) -> str:
        """Return the nearest match of a misspelt name."""
        if name not in self._near:
            self._near[name] = suggest_nearest(name, names) if len(self._near) < HINTS else ""
        return self._near[name]
