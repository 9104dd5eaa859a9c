"""The rules of FMI 2 and 3 that no schema holds: what a model description breaks of them, by rule.

In:  a model description, as it is written, whose references all exist
Out: faults, where a run would be wrong; notes, one for each rule with the variables that break it
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hocket.errors import Fault, list_names
from hocket.simulators.fmu.description_xml import DescriptionXml, VariableRow, parse_reference
from hocket.simulators.fmu.variable_kinds import REALS, SETTABLE, VariableKind

_SHOWN = 6
"""Names of variables that break one rule."""
_INTERVALS = {"constant", "fixed", "tunable"}
_PART = r"(?:[A-Za-z_]\w*|'(?:[^'\\]|\\.)+')(?:\[\d+(?:, ?\d+)*\])?"
_PATH = rf"{_PART}(?:\.{_PART})*"
_STRUCTURED = re.compile(rf"{_PATH}|(?:der|previous)\((?:der\({_PATH}(?:, ?\d+)?\)|{_PATH})(?:, ?\d+)?\)")


@dataclass
class BrokenRules:
    """What a model description breaks."""

    faults: list[Fault] = field(default_factory=list)
    by_rule: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Who breaks a rule, by the words of a note that ends where the names begin."""

    @property
    def notes(self) -> list[str]:
        """One note for each rule, with its first names."""
        return [f"{rule}: {list_names(names, _SHOWN)}" for rule, names in self.by_rule.items()]


def find_broken_rules(xml: DescriptionXml) -> BrokenRules:
    """Return what is broken; of the rules here FMI 1 has those of names and types only."""
    broken = BrokenRules()
    reader = _RuleReader(xml, broken)
    reader.check_names()
    if xml.version == "1.0":
        return broken
    for number, row in enumerate(xml.rows, 1):
        reader.check_variable(row, row.reference if xml.version == "3.0" else number)
    reader.check_shared_references()
    reader.check_structure()
    reader.check_units()
    return broken


_RARE = frozenset(
    {"derivative", "previous", "reinit", "min", "nominal", "unit", "displayUnit", "declaredType", "clocks"}
)
"""Attributes with rules of their own."""
_NAMING = ("derivative", "previous", "clocks")
"""Attributes that name other variables."""


class _RuleReader:
    def __init__(self, xml: DescriptionXml, broken: BrokenRules):
        root = xml.root
        self.xml, self.root, self.rows, self.broken = xml, root, xml.rows, broken
        self.modern = xml.version == "3.0"
        self.rules = broken.by_rule
        self.units = {
            unit.get("name"): {shown.get("name") for shown in unit.iterfind("DisplayUnit")}
            for unit in root.iterfind("UnitDefinitions/Unit")
        }
        self.types = xml.types
        self.structured = root.get("variableNamingConvention") == "structured"
        self.exchange = root.find("ModelExchange") is not None
        numbers = (parse_reference(row.given["derivative"]) for row in self.rows if "derivative" in row.given)
        self.states = set(numbers)

    @cached_property
    def named_rows(self) -> Mapping[int, VariableRow]:
        """Those variables that others name, by the numbers they are named by."""
        told = (row.given.get(name, "") for row in self.rows for name in _NAMING if name in row.given)
        numbers = {parse_reference(number) for text in told for number in text.split()}
        name = "valueReference" if self.modern else "index"
        numbers |= {parse_reference(element.get(name)) for _, element in self.xml.unknowns}
        sized = (child for row in self.rows for child in row.children("Dimension"))
        numbers |= {parse_reference(child.get("valueReference")) for child in sized}
        return self.xml.by_number(numbers)

    # variables

    def check_names(self) -> None:
        names = [row.name for row in self.rows]
        names += [alias.get("name", "") for row in self.rows for alias in row.children("Alias")]
        if len(set(names)) < len(names):
            doubled = sorted(name for name, count in Counter(names).items() if count > 1)
            self.rules["variables of one name: the first counts"].extend(doubled)
        for row in self.rows:
            if row.kind.variability == "continuous" and row.tag not in REALS:
                self.rules["variables that are not real are declared continuous"].append(row.name)
            if "declaredType" in row.given and row.given["declaredType"] not in self.types:
                self.rules["declared types are used that are not defined, by"].append(row.name)

    def check_variable(self, row: VariableRow, number: int) -> None:
        """Check a variable; `number` is what others name it by."""
        given, kind, rules = row.given, row.kind, self.rules
        if self.structured and not _STRUCTURED.fullmatch(row.name):
            rules["names are not well formed, though they are declared to be structured"].append(row.name)
        if row.tag == "Enumeration" and "declaredType" not in given:
            rules["enumerations have no declared type"].append(row.name)
        if not _RARE.isdisjoint(given):
            self._check_rare(row, number)
        if kind.forbidden:
            rules[f"{kind.forbidden}, which FMI forbids, of"].append(row.name)
        elif not kind.is_allowed:
            rules["causality and variability do not go together"].append(row.name)
        if row.tag != "Clock":
            self._check_start(row)
        if self.modern and (row.inside or row.tag == "Clock"):
            self._check_modern(row)

    def _check_rare(self, row: VariableRow, number: int) -> None:
        given, rules = row.given, self.rules
        if "derivative" in given:
            self._check_derivative(row)
        if "previous" in given:
            self._check_previous(row)
        state = row.kind.variability == "continuous" and number in self.states
        if given.get("reinit") in ("true", "1") and not state:
            rules["`reinit` is declared of what is not a continuous state"].append(row.name)
        self._check_range(row)
        unit = given.get("unit")
        if unit is None and "declaredType" in given:
            declared = self.types.get(given["declaredType"])
            unit = None if declared is None else declared.attributes.get("unit")
        if row.tag in REALS and unit is not None:
            if unit not in self.units:
                rules["units are used that are not defined, by"].append(row.name)
            elif "displayUnit" in given and given["displayUnit"] not in self.units[unit]:
                rules["display units are used that are not defined, by"].append(row.name)
        for text in given.get("clocks", "").split() if self.modern else ():
            clock = self.named_rows.get(parse_reference(text))
            if clock is not None and clock.tag != "Clock":
                rules["`clocks` names variables that are not clocks"].append(row.name)

    def _check_start(self, row: VariableRow) -> None:
        given, kind, rules = row.given, row.kind, self.rules
        there = "start" in given or (row.tag in ("String", "Binary") and bool(row.children("Start")))
        if there:
            if kind.initial == "calculated" or kind.causality == "independent":
                rules["start values are given of what is calculated"].append(row.name)
        elif kind.initial in ("exact", "approx") or kind.causality in SETTABLE:
            rules["start values are missing that FMI demands"].append(row.name)
        if "initial" in given and given["initial"] not in self._allowed_initials(kind):
            rules["`initial` is not allowed with causality and variability"].append(row.name)

    def _allowed_initials(self, kind: VariableKind) -> tuple[str, ...]:
        if kind.causality == "calculatedParameter" or (
            kind.causality == "local" and kind.variability in ("fixed", "tunable")
        ):
            return ("approx", "calculated")
        if kind.causality == "independent" or (kind.causality == "input" and not self.modern):
            return ()
        if kind.variability == "constant" or kind.causality in SETTABLE:
            return ("exact",)
        return ("exact", "approx", "calculated")

    def _check_derivative(self, row: VariableRow) -> None:
        state = self.named_rows.get(parse_reference(row.given["derivative"]))
        if state is row:
            if self.exchange:
                what = f"`{row.name}` is declared to be its own derivative"
                self.broken.faults.append(Fault(what, "", "the state it is the derivative of"))
            else:
                self.rules["variables are declared to be their own derivative"].append(row.name)
        elif state is not None and state.kind.variability != "continuous":
            self.rules["derivatives are declared of what is not continuous"].append(row.name)

    def _check_previous(self, row: VariableRow) -> None:
        if self.named_rows.get(parse_reference(row.given["previous"])) is row:
            self.rules["variables are declared to be their own previous value"].append(row.name)
        if self.modern and not row.given.get("clocks", "").split():
            self.rules["`previous` is declared without clocks"].append(row.name)

    def _check_range(self, row: VariableRow) -> None:
        given = row.given
        if "min" in given and "max" in given:
            try:
                if float(given["min"]) > float(given["max"]):
                    self.rules["the smallest value is above the largest"].append(row.name)
            except ValueError:
                return  # told elsewhere
        if "nominal" in given and self._is_zero(given["nominal"]):
            self.rules["the nominal value is 0"].append(row.name)

    @staticmethod
    def _is_zero(text: str) -> bool:
        try:
            return float(text) == 0.0
        except ValueError:
            return False

    def _check_modern(self, row: VariableRow) -> None:
        given, rules = row.given, self.rules
        if row.tag == "Clock":
            kind = given.get("intervalVariability")
            if kind is None:
                rules["clocks do not say how their intervals vary"].append(row.name)
            elif kind in _INTERVALS and not {"intervalDecimal", "intervalCounter"} & given.keys():
                rules["clocks have no interval"].append(row.name)
        dimensions = row.children("Dimension")
        if row.kind.causality == "structuralParameter" and dimensions:
            rules["structural parameters have dimensions"].append(row.name)
        for dimension in dimensions:
            size = self.named_rows.get(parse_reference(dimension.get("valueReference")))
            if size is not None and size.children("Dimension"):
                what = f"`{size.name}`, a dimension of `{row.name}`, has dimensions itself"
                self.broken.faults.append(Fault(what, "", "one whole number"))

    # the whole

    def check_shared_references(self) -> None:
        """Two names of one value: FMI 3 has aliases for that; two inputs would overwrite each other."""
        firsts: dict[str, dict[int, VariableRow]] = defaultdict(dict)
        shared: dict[tuple[str, int], list[VariableRow]] = {}
        for row in self.rows:
            # FMI 2 counts them by type, and items as integers
            kind = "" if self.modern else "Integer" if row.tag == "Enumeration" else row.tag
            first = firsts[kind].setdefault(row.reference, row)
            if first is not row:
                shared.setdefault((kind, row.reference), [first]).append(row)
        for (_, number), rows in shared.items():
            inputs = [row.name for row in rows if row.kind.causality == "input"]
            if len(inputs) > 1:
                what = f"the inputs {list_names(inputs, _SHOWN)} share the value reference {number}"
                self.broken.faults.append(Fault(what, "", "a value reference for each"))
            elif self.modern:
                rule = "value references are shared, for which FMI 3 has `Alias`, by"
                self.rules[rule].extend(row.name for row in rows)
        times = [row.name for row in self.rows if row.kind.causality == "independent"]
        if self.modern and len(times) != 1:
            self.rules["there is not one independent variable"].extend(times or ["none"])

    def check_structure(self) -> None:
        listed: dict[str, list[VariableRow]] = defaultdict(list)
        for group, element in self.xml.unknowns:
            attribute = "valueReference" if self.modern else "index"
            row = self.named_rows.get(parse_reference(element.get(attribute)))
            if row is None:
                continue
            listed[group].append(row)
            given, kinds = element.get("dependencies"), element.get("dependenciesKind")
            if kinds is not None and len((given or "").split()) != len(kinds.split()):
                rule = "`dependencies` and `dependenciesKind` have different lengths, of"
                self.rules[rule].append(row.name)
        for row in listed["Output"]:
            if row.kind.causality != "output":
                self.rules["`ModelStructure` lists as outputs what is not of this causality"].append(row.name)
        inside = {id(row) for row in listed["Output"]}
        for row in self.rows:
            if row.kind.causality == "output" and id(row) not in inside and row.tag != "Clock":
                self.rules["outputs are missing in `ModelStructure`"].append(row.name)
        for row in listed["EventIndicator"]:
            if row.kind.variability != "continuous":
                self.rules["event indicators are not continuous"].append(row.name)
        for group, rows in listed.items():
            seen: set[int] = set()
            for row in rows:
                if id(row) in seen:
                    self.rules[f"`ModelStructure` lists twice as {group}"].append(row.name)
                seen.add(id(row))

    def check_units(self) -> None:
        for unit in self.root.iterfind("UnitDefinitions/Unit"):
            name = unit.get("name", "")
            for element in unit.iterfind("*"):
                if not is_usable_factor(element.get("factor", "1")):
                    shown = name if element.tag == "BaseUnit" else f"{name}, {element.get('name')}"
                    self.rules["units with a factor of 0, or none, are not converted"].append(shown)
                if element.get("inverse") in ("true", "1") and not self._is_zero(element.get("offset", "0")):
                    self.rules["display units are inverse and have an offset"].append(name)


def is_usable_factor(factor: str | float) -> bool:
    """Return whether a unit can be converted by a factor."""
    try:
        value = float(factor)
    except ValueError:
        return False
    return math.isfinite(value) and value != 0.0
