"""What files, the command line and calls know by a word.

In:  a kind such as "orchestrators", and a word
Out: the object that the word stands for
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.extrapolators import EXTRAPOLATORS

ORCHESTRATORS = {
    "jacobi": "hocket.orchestrators.jacobi:Jacobi",
    "gauss-seidel": "hocket.orchestrators.gauss_seidel:GaussSeidel",
    "iterate": "hocket.orchestrators.iterate:Iterate",
}

OPENER = "hocket.engine.opening:open_composite"
"""What opens a level: the engine, which a description neither needs nor imports."""


def known_words(kind: str) -> list[str]:
    """Return the words of a kind."""
    return list(EXTRAPOLATORS if kind == "extrapolators" else ORCHESTRATORS)


def look_up(kind: str, word: str) -> Any:
    """Return what a word stands for; raises ScenarioError with the nearest word."""
    if word not in known_words(kind):
        key = "extrapolation" if kind == "extrapolators" else "orchestrator"
        raise ScenarioError(f"there is no {key} `{word}`", key, hint=suggest_nearest(word, known_words(kind)))
    if kind == "extrapolators":
        return EXTRAPOLATORS[word]
    return load(ORCHESTRATORS[word])()


def load(place: str) -> Any:
    """Return what stands at a place such as "package.module:name"."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
