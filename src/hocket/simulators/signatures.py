"""What equations can be called with, looked at before they are called.

In:  functions and the parameters meant for them
Out: faults, with the nearest names
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hocket.errors import Fault, suggest_nearest


def call_faults(
    equations: Mapping[str, Callable[..., Any]], given: Mapping[str, Any], options: Iterable[str], where: str
) -> Iterator[Fault]:
    """Yield why equations, by the letter that stands for them, cannot be called with (t, x, u, **given).

    `options` are the keywords of the recipe itself: a misspelt one looks like a parameter.
    """
    signatures = {role: found for role, code in equations.items() if (found := _inspect_signature(code))}
    takers = {role: _named_parameters(signature) for role, signature in signatures.items()}
    for role, taken in takers.items():
        if taken is None:
            what = f"`{role}` is `{role}{signatures[role]}` and cannot be called with t, x and u"
            yield Fault(what, where, f"`def {role}(t, x, u)`, even if it uses only some of them")
    known = {role: taken for role, taken in takers.items() if taken is not None}
    unknown: list[str] = []
    for name in given:
        without = [
            role for role, taken in known.items() if not _takes_parameter(signatures[role], taken, name)
        ]
        if without:
            unknown.append(name)
            own = dict.fromkeys(parameter for taken in known.values() for parameter in taken)
            yield _unknown_parameter_fault(
                name, without, len(without) < len(known), list(own), options, where
            )
    for name in dict.fromkeys(name for taken in known.values() for name in taken):
        needing = [
            role
            for role, taken in known.items()
            if name in taken and taken[name].default is inspect.Parameter.empty
        ]
        if needing and name not in given and not difflib.get_close_matches(name, unknown, n=1, cutoff=0.6):
            listed = " and ".join(f"`{role}`" for role in needing)
            verb = "needs" if len(needing) == 1 else "need"
            yield Fault(f"{listed} {verb} the parameter `{name}`", where, "", f"`Ode(..., {name}=...)`")


def energy_faults(energy: Any, given: Mapping[str, Any], where: str) -> Iterator[Fault]:
    """Yield why an energy, if there is one, cannot be called with (x, **given)."""
    signature = _inspect_signature(energy) if callable(energy) else None
    if signature is None:
        return
    try:
        signature.bind(None, **given)
    except TypeError as error:
        listed = ", ".join(("x", *given))
        what = f"`energy` is `energy{signature}` and cannot be called with {listed}: {error}"
        yield Fault(what, where, f"`def energy({listed})`, even if it uses only some of them")


def _unknown_parameter_fault(
    name: str, without: list[str], taken_by_others: bool, own: list[str], options: Iterable[str], where: str
) -> Fault:
    listed = " and ".join(f"`{role}`" for role in without)
    what = f"`{name}` is no parameter of {listed}"
    if taken_by_others:
        expected = "f, g and the Jacobian are called with the same parameters"
        return Fault(what, where, expected, f"`def {without[0]}(t, x, u, {name})`, used or not")
    meant = suggest_nearest(name, [*own, *options])
    if not meant.startswith("did"):
        meant = suggest_nearest(name, own) or f"leave it out, or `def {without[0]}(t, x, u, {name})`"
    return Fault(what, where, "", meant)


def _inspect_signature(code: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(code)
    except (TypeError, ValueError):
        return None  # compiled code cannot be asked: calling it tells


def _named_parameters(signature: inspect.Signature) -> dict[str, inspect.Parameter] | None:
    """Return what can be given by name after t, x and u; None if these three are not taken."""
    try:
        filled = signature.bind_partial(None, None, None).arguments
    except TypeError:
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: parameter
        for name, parameter in signature.parameters.items()
        if parameter.kind in named and name not in filled
    }


def _takes_parameter(signature: inspect.Signature, taken: Mapping[str, Any], name: str) -> bool:
    anything = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    return name in taken or (anything and name not in list(signature.parameters)[:3])
