"""Which variable takes which value: names as `system.component.parameter`, higher levels over lower ones.

In:  the Settings of the bindings at every level
Out: the values of each component's variables and of each system's connectors
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hocket.files.ssp.findings import Findings, listed
from hocket.files.ssp.reading.mapping import Setting
from hocket.files.ssp.reading.parts import Component, Part, System
from hocket.files.ssp.reading.variables import around
from hocket.files.ssp.units import Unit, fmu_unit
from hocket.simulators.fmu.facts import WHOLE, Variable
from hocket.simulators.fmu.recipe import Fmu


def assign(system: System, findings: Findings) -> None:
    """Fill in the values of the outermost system and of everything in it."""
    _system(system, {}, findings)
    for note in _unused(_settings(system)):
        findings.note(note)


def _system(system: System, given: Mapping[str, Setting], findings: Findings) -> None:
    merged = _merged(system.bindings, given)
    for name, connector in system.connectors.items():
        if name in merged:
            system.settings[name] = merged[name]
            _take(system, name, merged[name], connector.unit, findings)
    down = _down(system, merged)
    for wire in system.wires:
        source, target = wire.source.connector, wire.target
        if wire.constant and target.element is not None and source in system.values:
            down[target.element][target.connector] = system.settings[source].passed_on(
                system.values[source],
                system.connectors[source].unit,
                wire.link.transformation,
                wire.link.suppress,
            )
    for part in system.parts.values():
        if isinstance(part, System):
            _system(part, down[part.name], findings)
        elif isinstance(part, Component) and part.fmu is not None:
            _component(part, part.fmu, _merged(part.bindings, down[part.name]), findings)


def _down(system: System, merged: Mapping[str, Setting]) -> dict[str, dict[str, Setting]]:
    """Return what is for each element, by the names in it; an element's own name may have dots."""
    down: dict[str, dict[str, Setting]] = {name: {} for name in system.parts}
    for name, setting in merged.items():
        end = name.find(".")
        while end >= 0:
            if name[:end] in down:
                down[name[:end]][name[end + 1 :]] = setting
            end = name.find(".", end + 1)
    return down


def _merged(own: Iterable[tuple[str, Setting]], given: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return what counts by name: what is given from above, else the last of an element's own bindings."""
    merged: dict[str, Setting] = {}
    for name, setting in (*own, *given.items()):
        if name in merged:
            merged[name].parameter.used = True  # overruled, which is no reason for a note
        merged[name] = setting
    return merged


def _component(component: Component, fmu: Fmu, given: Mapping[str, Setting], findings: Findings) -> None:
    calculated = []
    for name, setting in given.items():
        found = around(component, name)
        if found is None:
            continue
        if not found.settable or found.type == "clock":
            calculated.append(name)
            setting.parameter.used = True
            continue
        _take(component, name, setting, fmu_unit(fmu, found.unit), findings)
        if name in component.values:
            component.values[name] = _fitting(component.values[name], found)
    if calculated:
        what = f"the FMU of `{component.name}` calculates {listed(calculated)}"
        findings.note(f"{what}: the values given are not set")


def _take(part: Part, name: str, setting: Setting, unit: Unit | None, findings: Findings) -> None:
    try:
        part.values[name] = setting.taken(unit)
    except ValueError as error:
        hint = 'suppressUnitConversion="true" in a mapping, if the numbers are meant as they are'
        findings.fault(setting.node, f"`{part.name}.{name}`: {error}", "units that convert", hint)
    except TypeError:
        what = f"`{part.name}.{name}` is {setting.value!r:.40}, which cannot be transformed"
        findings.fault(setting.node, what, "a number")


def _fitting(value: Any, variable: Variable) -> Any:
    """Return a value as its variable wants it, where a set says the same in another type."""
    if isinstance(value, list):
        return [_fitting(item, variable) for item in value]
    if variable.type == "boolean" and value in (0.0, 1.0):
        return bool(value)
    if isinstance(value, bool) and variable.type in (*WHOLE, "real", "float32"):
        return int(value)
    if variable.type == "enumeration" and isinstance(value, str) and value not in variable.items:
        return int(value) if re.fullmatch(r"\s*-?\d+\s*", value) else value
    return value


def _settings(system: System) -> Iterator[Setting]:
    for part in (system, *system.parts.values()):
        if part is not system and isinstance(part, System):
            yield from _settings(part)
        elif not (isinstance(part, Component) and part.fmu is None):
            yield from (setting for _, setting in part.bindings)


def _unused(found: Iterable[Setting]) -> Iterator[str]:
    """Yield a note for each file with values that nothing took."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for setting in found:
        if not setting.parameter.used:
            by_file[setting.node.file].append(setting.parameter.name)
    for file, names in by_file.items():
        yield f"nothing takes {listed(names)} of {file}"
