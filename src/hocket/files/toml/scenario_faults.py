"""The scenario's own faults, at the lines they come from.

In:  a composite that was read, and where each of its names stands
Out: further faults

A fault says where in the scenario it is (`axle.connections.wheel.force`); the reader has kept the place of
each of these names, in whichever file.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hocket.errors import Fault, ScenarioError
from hocket.files.toml.syntax import FilePlace, TomlFindings
from hocket.model.composite import Composite
from hocket.planning.planner import draft_tree
from hocket.planning.prepare import prepare_composite


def check_composite(composite: Composite, place: FilePlace) -> None:
    """Note every fault that can be known before a model is opened; `place` is that of the whole file.

    After faults of the file, only what is wrong with connections between models that could be read.
    """
    findings = place.findings
    findings.places[""] = place
    whole = not findings.faults
    only_bonds = all("bonds" in spot.keys for spot, _ in findings.faults)
    try:
        _ = draft_tree(composite) if whole else prepare_composite(composite, tries=False)
    except ScenarioError as error:
        for fault in error.faults:
            if only_bonds or _concerns_readable_models(fault, findings):
                here = _find_place(fault.where, findings) or place
                findings.faults.append((here, replace(fault, where=here.where)))


def _concerns_readable_models(fault: Fault, findings: TomlFindings) -> bool:
    """Return whether a fault is about a connection, and not about a model that could not be read."""
    level, connected, _ = fault.where.partition("connections.")
    names: list[str] = re.findall(r"`([^`]+)`", fault.what)
    paths = [f"{level}{path}." for path in (*names, ".".join(names))]
    return bool(connected) and not any(path.startswith(f"{b}.") for path in paths for b in findings.broken)


def _find_place(where: str, findings: TomlFindings) -> FilePlace | None:
    """Return the place that a scenario calls `where`; None: it is not known."""
    places = findings.places
    if found := places.get(where):
        return found
    level, dot, key = where.rpartition(".")
    if inside := places.get(level + dot):
        return inside / key
    return _find_place(level, findings) if level else None
