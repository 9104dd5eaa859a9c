"""What is known after a read beside the result: every fault, what was assumed, what was renamed.

In:  whatever the parts of the import come across
Out: one FileError with all faults; notes in words
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hocket.errors import Fault, FileError, HocketError
from hocket.files.ssp.nodes import Node

T = TypeVar("T")
_SHOWN = 3
_PLACE = re.compile(r"(.*), line (\d+)")


@dataclass(eq=False)
class ImportFindings:
    """Collects; nothing is raised before everything was looked at."""

    told: dict[Fault, None] = field(default_factory=dict)
    noted: dict[str, None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """By path in hocket: what the SSP calls an element that had to be renamed."""
    foreign: Counter[str] = field(default_factory=Counter)
    """The types of other tools' annotations, which are not read."""

    @property
    def faults(self) -> list[Fault]:
        """The faults, each once, as they were found."""
        return list(self.told)

    def fault(self, at: Node | str, what: str, expected: str = "", hint: str = "") -> None:
        """Note what is wrong, and where."""
        where = at if isinstance(at, str) else at.where
        self.told[Fault(what, where, expected, hint)] = None

    def note(self, text: str) -> None:
        """Note what was assumed or left out."""
        self.noted[text] = None

    def attempt(self, at: Node, make: Callable[[], T], about: str = "") -> T | None:
        """Return what is made; its faults are noted here, with what they are about in front."""
        try:
            return make()
        except HocketError as error:
            for fault in error.faults:
                # the path of an unpacked file says nothing to who wrote the SSP
                inner = f" ({fault.where})" if fault.where and "/" not in fault.where else ""
                self.told[replace(fault, what=f"{about}{fault.what}", where=f"{at.where}{inner}")] = None
        return None

    def raise_faults(self) -> None:
        """Raise all faults as one error, if there are any, as they stand in the files."""
        faults = self.faults
        places = [_PLACE.match(fault.where) for fault in faults]
        files = list(dict.fromkeys(place[1] if place else "" for place in places))
        lines = [(files.index(place[1]), int(place[2])) if place else (len(files), 0) for place in places]
        ordered = sorted(range(len(lines)), key=lambda number: lines[number])
        if ordered:
            raise FileError([faults[number] for number in ordered])


def list_names(names: Iterable[str]) -> str:
    """Return the first names, each once, and how many more there are."""
    every = list(dict.fromkeys(names))
    shown = ", ".join(f"`{name}`" for name in every[:_SHOWN])
    return shown + (f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else "")
