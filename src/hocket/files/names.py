"""Names that hocket can use: that of a model has no dots and no spaces.

In:  names of files, or of another format
Out: the same where possible, else similar ones
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_LEGAL = re.compile(r"[^\W\d][\w-]*")


def legal_names(names: Iterable[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Return a name for a model for each name; those that are legal are kept."""
    wanted = list(names)
    chosen = {name: name for name in wanted if _LEGAL.fullmatch(name)}
    used = {*chosen.values(), *taken}
    for name in wanted:
        if name not in chosen:
            plain = re.sub(r"[^\w-]", "_", name)
            chosen[name] = free_name(plain if _LEGAL.fullmatch(plain) else f"_{plain}", used)
            used.add(chosen[name])
    return {name: chosen[name] for name in wanted}


def free_name(name: str, used: Collection[str]) -> str:
    """Return the name, with a number behind it if it is taken."""
    number, found = 1, name
    while found in used:
        number += 1
        found = f"{name}_{number}"
    return found
