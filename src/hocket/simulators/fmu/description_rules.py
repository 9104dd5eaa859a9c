"""The rules of FMI 2 and 3 that no schema holds: what a model description breaks of them, by rule.

In:  the XML of a model description whose references all exist
Out: faults, where a run would be wrong; notes, one for each rule with the variables that break it
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from hocket.errors import Fault, list_names

_SHOWN = 6
"""Names of variables that break one rule."""
_PARAMETERS = ("parameter", "calculatedParameter", "structuralParameter")
ALLOWED = {
    "discrete": ("input", "output", "local"),
    "continuous": ("input", "output", "local", "independent"),
    "constant": ("output", "local"),
    "fixed": (*_PARAMETERS, "local"),
    "tunable": (*_PARAMETERS, "local"),
}
"""By variability the causalities that FMI allows with it."""
_REALS = ("Real", "Float64", "Float32")
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


def find_broken_rules(root: Element, version: str, checked: bool = False) -> BrokenRules:
    """Return what is broken; `checked`: FMPy has told of what it knows. FMI 1 has no such rules."""
    broken = BrokenRules()
    if version == "1.0":
        return broken
    reader = _RuleReader(root, version, broken)
    for variable in reader.variables:
        reader.check_variable(variable)
        if not checked:
            reader.check_declaration(variable)
    reader.check_shared_references(checked)
    reader.check_structure()
    reader.check_units()
    return broken


@dataclass(frozen=True, slots=True)
class _Row:
    """A variable with what its inner element adds in FMI 2."""

    name: str
    tag: str
    given: Mapping[str, str]
    element: Element
    causality: str
    variability: str


class _RuleReader:
    def __init__(self, root: Element, version: str, broken: BrokenRules):
        self.root, self.modern, self.broken = root, version == "3.0", broken
        self.rules = broken.by_rule
        self.variables = [self._row(element) for element in root.iterfind("ModelVariables/*")]
        if self.modern:
            self.known = {self._number(row.given.get("valueReference")): row for row in self.variables}
        else:
            self.known = dict(enumerate(self.variables, 1))
        self.units = {unit.get("name") for unit in root.iterfind("UnitDefinitions/Unit")}
        self.types = {each.get("name") for each in root.iterfind("TypeDefinitions/*")}
        self.structured = root.get("variableNamingConvention") == "structured"
        self.exchange = root.find("ModelExchange") is not None
        numbers = (self._number(row.given.get("derivative")) for row in self.variables)
        self.states = {id(self.known[number]) for number in numbers if number in self.known}

    @staticmethod
    def _number(text: str | None) -> int:
        return int(text) if text is not None and text.strip().isdecimal() else -1

    def _row(self, element: Element) -> _Row:
        given: Mapping[str, str] = element.attrib
        tag = element.tag
        if not self.modern:
            inner = next(child for child in element if child.tag != "Annotations")
            given, tag = {**inner.attrib, **given}, inner.tag
        causality = given.get("causality", "local")
        usual = "continuous" if tag in _REALS or not self.modern else "discrete"
        usual = "fixed" if self.modern and causality in _PARAMETERS else usual
        return _Row(given["name"], tag, given, element, causality, given.get("variability", usual))

    # variables

    def check_declaration(self, row: _Row) -> None:
        """Check what FMPy checks too."""
        if "unit" in row.given and row.given["unit"] not in self.units:
            self.rules["units are used that are not defined, by"].append(row.name)
        if row.causality not in ALLOWED.get(row.variability, ()):
            self.rules["causality and variability do not go together"].append(row.name)
        elif row.tag not in _REALS and row.given.get("variability") == "continuous":
            self.rules["variables that are not real are declared continuous"].append(row.name)
        if row.tag != "Clock":
            self._check_start(row)

    def check_variable(self, row: _Row) -> None:
        given, name, rules = row.given, row.name, self.rules
        if self.structured and not _STRUCTURED.fullmatch(name):
            rules["names are not well formed, though they are declared to be structured"].append(name)
        if self.modern and "declaredType" in given and given["declaredType"] not in self.types:
            rules["declared types are used that are not defined, by"].append(name)
        if row.tag == "Enumeration" and "declaredType" not in given:
            rules["enumerations have no declared type"].append(name)
        if "derivative" in given:
            self._check_derivative(row)
        if "previous" in given:
            self._check_previous(row)
        state = row.variability == "continuous" and id(row) in self.states
        if given.get("reinit") in ("true", "1") and not state:
            rules["`reinit` is declared of what is not a continuous state"].append(name)
        self._check_range(row)
        if self.modern:
            self._check_modern(row)

    def _check_start(self, row: _Row) -> None:
        given, rules = row.given, self.rules
        there = "start" in given or (
            row.tag in ("String", "Binary") and row.element.find("Start") is not None
        )
        initial = given.get("initial")
        settable = row.causality in ("input", "parameter", "structuralParameter")
        exact = row.variability == "constant" or settable or initial in ("exact", "approx")
        if exact and not there:
            rules["start values are missing that FMI demands"].append(row.name)
        if there and (initial == "calculated" or row.causality == "independent"):
            rules["start values are given of what is calculated"].append(row.name)
        if initial is None:
            return
        allowed: tuple[str, ...] = ("exact", "approx", "calculated")
        if row.causality == "calculatedParameter" or (
            row.causality == "local" and row.variability in ("fixed", "tunable")
        ):
            allowed = ("approx", "calculated")
        elif row.causality == "independent" or (row.causality == "input" and not self.modern):
            allowed = ()
        elif row.variability == "constant" or settable:
            allowed = ("exact",)
        if initial not in allowed:
            rules["`initial` is not allowed with causality and variability"].append(row.name)

    def _check_derivative(self, row: _Row) -> None:
        state = self.known.get(self._number(row.given["derivative"]))
        if state is row:
            if self.exchange:
                what = f"`{row.name}` is declared to be its own derivative"
                self.broken.faults.append(Fault(what, "", "the state it is the derivative of"))
            else:
                self.rules["variables are declared to be their own derivative"].append(row.name)
        elif state is not None and state.variability != "continuous":
            self.rules["derivatives are declared of what is not continuous"].append(row.name)

    def _check_previous(self, row: _Row) -> None:
        if self.known.get(self._number(row.given["previous"])) is row:
            self.rules["variables are declared to be their own previous value"].append(row.name)
        if self.modern and not row.given.get("clocks", "").split():
            self.rules["`previous` is declared without clocks"].append(row.name)

    def _check_range(self, row: _Row) -> None:
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

    def _check_modern(self, row: _Row) -> None:
        given, rules = row.given, self.rules
        for number in given.get("clocks", "").split():
            clock = self.known.get(self._number(number))
            if clock is not None and clock.tag != "Clock":
                rules["`clocks` names variables that are not clocks"].append(row.name)
        if row.tag == "Clock":
            kind = given.get("intervalVariability")
            if kind is None:
                rules["clocks do not say how their intervals vary"].append(row.name)
            elif kind in _INTERVALS and not {"intervalDecimal", "intervalCounter"} & given.keys():
                rules["clocks have no interval"].append(row.name)
        if row.causality == "structuralParameter" and row.element.find("Dimension") is not None:
            rules["structural parameters have dimensions"].append(row.name)
        for dimension in row.element.iterfind("Dimension"):
            size = self.known.get(self._number(dimension.get("valueReference")))
            if size is not None and size.element.find("Dimension") is not None:
                what = f"`{size.name}`, a dimension of `{row.name}`, has dimensions itself"
                self.broken.faults.append(Fault(what, "", "one whole number"))

    # the whole

    def check_shared_references(self, checked: bool) -> None:
        """Two names of one value: FMI 3 has aliases for that; two inputs would overwrite each other."""
        groups: dict[tuple[str | None, int], list[_Row]] = defaultdict(list)
        for row in self.variables:
            number = self._number(row.given.get("valueReference"))
            kind = None if self.modern else {"Enumeration": "Integer"}.get(row.tag, row.tag)
            groups[kind, number].append(row)
        doubled: set[str] = set()
        names: set[str] = set()
        for row in self.variables:
            (doubled if row.name in names else names).add(row.name)
        if doubled and not checked:
            self.rules["variables of one name: the first counts"].extend(sorted(doubled))
        for (_, number), rows in groups.items():
            inputs = [row.name for row in rows if row.causality == "input"]
            if len(inputs) > 1:
                what = f"the inputs {list_names(inputs, _SHOWN)} share the value reference {number}"
                self.broken.faults.append(Fault(what, "", "a value reference for each"))
            elif self.modern and len(rows) > 1 and not checked:
                rule = "value references are shared, for which FMI 3 has `Alias`, by"
                self.rules[rule].extend(row.name for row in rows)
        times = [row.name for row in self.variables if row.causality == "independent"]
        if self.modern and not checked and len(times) != 1:
            self.rules["there is not one independent variable"].extend(times or ["none"])

    def check_structure(self) -> None:
        listed: dict[str, list[_Row]] = defaultdict(list)
        for group, element in self._unknowns():
            attribute = "valueReference" if self.modern else "index"
            row = self.known.get(self._number(element.get(attribute)))
            if row is None:
                continue
            listed[group].append(row)
            given, kinds = element.get("dependencies"), element.get("dependenciesKind")
            if kinds is not None and len((given or "").split()) != len(kinds.split()):
                rule = "`dependencies` and `dependenciesKind` have different lengths, of"
                self.rules[rule].append(row.name)
        for row in listed["Output"]:
            if row.causality != "output":
                self.rules["`ModelStructure` lists as outputs what is not of this causality"].append(row.name)
        inside = {id(row) for row in listed["Output"]}
        for row in self.variables:
            if row.causality == "output" and id(row) not in inside and row.tag != "Clock":
                self.rules["outputs are missing in `ModelStructure`"].append(row.name)
        for row in listed["EventIndicator"]:
            if row.variability != "continuous":
                self.rules["event indicators are not continuous"].append(row.name)
        for group, rows in listed.items():
            seen: set[int] = set()
            for row in rows:
                if id(row) in seen:
                    self.rules[f"`ModelStructure` lists twice as {group}"].append(row.name)
                seen.add(id(row))

    def _unknowns(self) -> Iterator[tuple[str, Element]]:
        if self.modern:
            for element in self.root.iterfind("ModelStructure/*"):
                yield element.tag, element
            return
        for group in self.root.iterfind("ModelStructure/*"):
            for element in group.iterfind("Unknown"):
                yield {"Outputs": "Output"}.get(group.tag, group.tag), element

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
