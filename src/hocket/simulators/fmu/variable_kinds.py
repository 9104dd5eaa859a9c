"""Causality, variability and `initial`: what FMI allows together, and what holds where nothing is told.

In:  the words of a model description
Out: a VariableKind: the words that count
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

REALS = frozenset({"Real", "Float64", "Float32"})
PARAMETERS = ("parameter", "calculatedParameter", "structuralParameter")
SETTABLE = ("input", "parameter", "structuralParameter")
"""The causalities of variables that have a start value always."""
ALLOWED = {
    "discrete": ("input", "output", "local"),
    "continuous": ("input", "output", "local", "independent"),
    "constant": ("output", "local"),
    "fixed": (*PARAMETERS, "local"),
    "tunable": (*PARAMETERS, "local"),
}
"""By variability the causalities that FMI allows with it."""


@dataclass(frozen=True, slots=True)
class VariableKind:
    """The words that count: as they are told, or else as FMI says."""

    causality: str
    variability: str
    initial: str | None
    """None: an independent variable; in FMI 1 it follows from the start value."""
    forbidden: str = ""
    """What FMI forbids and can only mean one thing, which it is taken for; empty: nothing."""

    @property
    def is_allowed(self) -> bool:
        """Whether causality and variability go together."""
        return self.causality in ALLOWED.get(self.variability, ())


@lru_cache(maxsize=4096)
def find_kind(
    version: str, tag: str, causality: str | None, variability: str | None, initial: str | None
) -> VariableKind:
    """Return what the words of a variable mean; the same object for all variables with the same words."""
    causality = "local" if causality in (None, "internal", "none") else causality
    if version == "1.0":
        if variability == "parameter":
            return VariableKind("parameter", "fixed", None)
        return VariableKind(causality, variability or "continuous", None)
    usual = "continuous" if version == "2.0" or tag in REALS else "discrete"
    if version == "3.0" and causality in PARAMETERS:
        usual = "fixed"
    kind = VariableKind(causality, variability or usual, initial)
    if initial is not None:
        return kind
    if not kind.is_allowed and (variability is not None or version == "2.0"):
        return _take_for_allowed(kind, f"variability `{variability}`" if variability else "no variability")
    return replace(kind, initial=_usual_initial(kind))


def _take_for_allowed(kind: VariableKind, told: str) -> VariableKind:
    """Return what a forbidden combination can only mean."""
    kind = replace(kind, forbidden=f"causality `{kind.causality}` goes with {told}")
    if kind.causality in PARAMETERS and kind.variability != "constant":
        kind = replace(kind, variability="fixed")
    elif kind.causality == "independent":
        kind = replace(kind, variability="continuous")
    else:
        return replace(kind, initial="exact")
    return replace(kind, initial=_usual_initial(kind))


def _usual_initial(kind: VariableKind) -> str | None:
    if kind.causality == "independent":
        return None
    return "exact" if kind.variability == "constant" or kind.causality in SETTABLE else "calculated"
