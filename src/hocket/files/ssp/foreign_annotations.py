"""Steps that other tools keep in annotations of an SSP: OSP (libcosim, Vico) and OMSimulator.

In:  the nodes of systems, components and of the default experiment
Out: the steps that they ask for; what they mean to the tool that wrote them is told in notes

FMPy writes no annotation: its step is an argument of the call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from hocket.files.ssp.package import Node
from hocket.model.clock import format_duration, seconds

OSP = "com.opensimulationplatform"
VICO = "com.github.ntnu-ihb.vico"
OMSIMULATOR = "org.openmodelica"
TYPES = frozenset({OSP, VICO, OMSIMULATOR})
"""The annotations that are looked into; of others nothing is known."""

_VARIABLE = ("VariableStepMaster", "VariableStepSolver")


def experiment_step(node: Node | None) -> Fraction | None:
    """Return the step of the outermost level that a default experiment asks for, as OSP writes it."""
    for told in _elements(node, (OSP, VICO), "FixedStepAlgorithm"):
        step = _read_step(told, "baseStepSize")
        if step is not None:
            node_note = f"its step is {format_duration(step)}, its algorithm is jacobi, extrapolation is hold"
            told.note(f"an annotation of OSP says how the SSP is run: {node_note} ({told.place})")
        return step
    return None


def component_step(node: Node) -> Fraction | None:
    """Return the step that a component asks for by itself, as OSP writes it."""
    return next((_read_step(told, "value") for told in _elements(node, (OSP, VICO), "StepSizeHint")), None)


def system_step(node: Node) -> tuple[Fraction | None, bool]:
    """Return the step of a system, as OMSimulator writes it; or the longest, and that there are others."""
    about = f"an annotation of OMSimulator says how `{node.get('name')}` is run"
    for told in _elements(node, (OMSIMULATOR,), "FixedStepMaster"):
        step = _read_step(told, "stepSize")
        if step is not None:
            told.note(f"{about}: its step is {format_duration(step)} ({told.place})")
        return step, False
    for told in (each for tag in _VARIABLE for each in _elements(node, (OMSIMULATOR,), tag)):
        step = _read_step(told, "maximumStepSize")
        if step is not None:
            how = f"`{told.get('description') or told.tag}` with steps of up to {format_duration(step)}"
            told.note(f"{about}, by {how}: here the step is fixed, and not longer ({told.place})")
        return step, True
    return None, False


def _elements(node: Node | None, types: tuple[str, ...], tag: str) -> Iterator[Node]:
    """Yield the elements of this name in the annotations of a node, at any depth."""
    for annotation in node.all("Annotations", "Annotation") if node else ():
        if annotation.get("type") in types:
            yield from (inner for inner in annotation.walk() if inner.tag == tag)


def _read_step(node: Node, attribute: str) -> Fraction | None:
    """Return a step in seconds; None where there is none, or after noting that it is not one."""
    text = node.get(attribute)
    try:
        length = float(text) if text else 0.0
    except ValueError:
        length = math.nan
    if length > 0 and math.isfinite(length):
        return seconds(length)
    if text:
        node.note(f"the {attribute} of an annotation is `{text}`: it is left out ({node.place})")
    return None
