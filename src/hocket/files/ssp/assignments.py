"""Which variable takes which value: names as `system.component.parameter`, higher levels over lower ones.

In:  the settings of the bindings at every level
Out: the values of each component's variables and of each system's connectors
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from hocket.errors import list_names, suggest_nearest
from hocket.files.ssp.connection_ports import find_owning_variable
from hocket.files.ssp.document import Component, System, SystemElement
from hocket.files.ssp.parameter_values import ParameterSetting
from hocket.files.ssp.unit_definitions import fmu_unit
from hocket.files.ssp.vocabulary import map_array
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import FLOATS, WHOLE, FmuVariable, NamedUnit, parse_whole

Settings: TypeAlias = Mapping[str, ParameterSetting]
"""By the names in an element."""


def assign_values(system: System) -> None:
    """Fill in the values of the outermost system and of everything in it."""
    _assign_to_system(system, {})
    for note in _unused_value_notes(setting for _, setting in _all_settings(system)):
        system.node.note(note)
    for part, setting in _all_settings(system):
        if setting.is_mapped and not setting.parameter.used:
            name = setting.parameter.name
            hint = suggest_nearest(name, _known_names(part))
            what = f"the target `{name}` of a mapping is not in `{part.name}`"
            setting.node.fault(what, "a parameter, an input or a connector of it", hint)


def _assign_to_system(system: System, given: Settings) -> None:
    merged = _merge_settings(system, given)
    for name, connector in system.connectors.items():
        if name in merged:
            system.settings[name] = merged[name]
            _store_value(system, name, merged[name], connector.unit)
    down = _settings_by_element(system, merged)
    for wire in system.wires:
        source, target = wire.source.connector, wire.target
        if wire.constant and target.element is not None and source in system.values:
            down[target.element][target.connector] = replace(
                system.settings[source],
                value=system.values[source],
                unit=system.connectors[source].unit,
                transformation=wire.link.transformation,
                suppress=wire.link.suppress,
            )
    for part in system.parts.values():
        if isinstance(part, System):
            _assign_to_system(part, down[part.name])
        elif isinstance(part, Component) and part.fmu is not None:
            _assign_to_component(part, part.fmu, _merge_settings(part, down[part.name]))


def _settings_by_element(system: System, merged: Settings) -> dict[str, dict[str, ParameterSetting]]:
    """Return what is for each element, by the names in it; an element's own name may have dots."""
    down: dict[str, dict[str, ParameterSetting]] = {name: {} for name in system.parts}
    for name, setting in merged.items():
        end = name.find(".")
        while end >= 0:
            if name[:end] in down:
                down[name[:end]][name[end + 1 :]] = setting
            end = name.find(".", end + 1)
    return down


def _merge_settings(part: SystemElement, given: Settings) -> Settings:
    """Return what counts by name: what is given from above, else the last of an element's own bindings.

    Where bindings differ, a note tells both meanings: not every tool lets the same one count.
    """
    merged: dict[str, ParameterSetting] = {}
    for name, setting in (*part.bindings, *given.items()):
        before = merged.get(name)
        if before is not None:
            before.parameter.used = True  # overruled: it is not one that nothing takes
            if not before.is_same(setting):
                _note_repeated(part, name, before, setting, above=given.get(name) is setting)
        merged[name] = setting
    return merged


def _note_repeated(
    part: SystemElement, name: str, before: ParameterSetting, now: ParameterSetting, above: bool
) -> None:
    which, other = ("of the level above", "the own one") if above else ("that comes later", "the first")
    counts = f"the binding {which} counts, {now.value!r:.40} ({now.node.place})"
    part.node.note(
        f"`{part.name}.{name}` is bound twice: {counts}; "
        f"for a tool that takes {other} it is {before.value!r:.40} ({before.node.place})"
    )


def _known_names(part: SystemElement) -> list[str]:
    """Return what can be set in an element; of what is inside a system with its path."""
    if isinstance(part, Component):
        return [*part.connectors, *(part.fmu.description.by_name if part.fmu else ())]
    inside = part.parts.values() if isinstance(part, System) else ()
    return [*part.connectors, *(f"{each.name}.{name}" for each in inside for name in _known_names(each))]


def _assign_to_component(component: Component, fmu: Fmu, given: Settings) -> None:
    calculated = []
    for name, setting in given.items():
        found = find_owning_variable(component, name)
        if found is None:
            continue
        if not found.settable or found.type == "clock":
            calculated.append(name)
            setting.parameter.used = True
            continue
        _store_value(component, name, setting, fmu_unit(fmu.description, found.unit))
        if name in component.values:
            component.values[name] = map_array(partial(_adapt_type, found), component.values[name])
    if calculated:
        what = f"the FMU of `{component.name}` calculates {list_names(dict.fromkeys(calculated), 3)}"
        component.node.note(f"{what}: the values given are not set")


def _store_value(part: SystemElement, name: str, setting: ParameterSetting, unit: NamedUnit | None) -> None:
    try:
        part.values[name] = setting.convert_value(unit)
    except ValueError as error:
        hint = 'suppressUnitConversion="true" in a mapping, if the numbers are meant as they are'
        setting.node.fault(f"`{part.name}.{name}`: {error}", "units that convert", hint)
    except TypeError:
        what = f"`{part.name}.{name}` is {setting.value!r:.40}, which cannot be transformed"
        setting.node.fault(what, "a number")


def _adapt_type(variable: FmuVariable, value: Any) -> Any:
    """Return a value as its variable wants it, where a set says the same in another type."""
    if variable.type == "boolean" and value in (0.0, 1.0):
        return bool(value)
    if isinstance(value, float) and value.is_integer() and variable.type in (*WHOLE, "enumeration"):
        return int(value)
    if isinstance(value, bool) and variable.type in (*WHOLE, *FLOATS):
        return int(value)
    if variable.type == "enumeration" and isinstance(value, str) and value not in variable.items:
        return parse_whole(value) if re.fullmatch(r"\s*-?\d+(\.0*)?\s*", value) else value
    return value


def _all_settings(system: System) -> Iterator[tuple[SystemElement, ParameterSetting]]:
    for part in (system, *system.parts.values()):
        if part is not system and isinstance(part, System):
            yield from _all_settings(part)
        elif not (isinstance(part, Component) and part.fmu is None):
            yield from ((part, setting) for _, setting in part.bindings)


def _unused_value_notes(found: Iterable[ParameterSetting]) -> Iterator[str]:
    """Yield a note for each file with values that nothing took."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for setting in found:
        if not setting.parameter.used and not setting.is_mapped:
            by_file[setting.node.file].append(setting.parameter.name)
    for file, names in by_file.items():
        yield f"nothing takes {list_names(dict.fromkeys(names), 3)} of {file}"
