"""What is known after a read beside the result: every fault, what was assumed, what was renamed.

In:  whatever the parts of the import come across
Out: one FileError with all faults; notes in words
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hocket.errors import Fault, FileError, HocketError
from hocket.files.ssp.nodes import Node

T = TypeVar("T")


@dataclass(eq=False)
class Findings:
    """Collects; nothing is raised before everything was looked at."""

    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """By path in hocket: what the SSP calls an element that had to be renamed."""
    foreign: Counter[str] = field(default_factory=Counter)
    """The types of other tools' annotations, which are not read."""

    def fault(self, at: Node | str, what: str, expected: str = "", hint: str = "") -> None:
        """Note what is wrong, and where."""
        where = at if isinstance(at, str) else at.where
        fault = Fault(what, where, expected, hint)
        if fault not in self.faults:
            self.faults.append(fault)

    def note(self, text: str) -> None:
        """Note what was assumed or left out."""
        if text not in self.notes:
            self.notes.append(text)

    def tried(self, at: Node, make: Callable[[], T], about: str = "") -> T | None:
        """Return what is made; its faults are noted here, with what they are about in front."""
        try:
            return make()
        except HocketError as error:
            for fault in error.faults:
                # the path of an unpacked file says nothing to who wrote the SSP
                inner = f" ({fault.where})" if fault.where and "/" not in fault.where else ""
                told = replace(fault, what=f"{about}{fault.what}", where=f"{at.where}{inner}")
                if told not in self.faults:
                    self.faults.append(told)
        return None

    def raise_faults(self) -> None:
        """Raise all faults as one error, if there are any."""
        if self.faults:
            raise FileError(self.faults)
